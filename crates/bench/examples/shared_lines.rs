//! Which cache lines two transactions write that have nothing to do with each other: other threads, other rows. And how many
//! locked instructions a transaction takes.
//!
//! `scripts/shared-lines` runs `shared_lines run FILE KIND` under a tracer of memory accesses and feeds the trace to
//! `shared_lines count FILE LOCKED`; the second file lists where the program has locked instructions. Two threads take
//! turns, so that only one of them runs at a time; what both write in their turns is shared. If they ran at the same time on cores of their own, those lines would go to and fro: a line that
//! each writes in every transaction does so once in each, and one that is written seldom by either does so as seldom.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs;
use std::io::{self, BufRead};
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Database, MediumKind, Options, Table, TableDef, Transaction, Type, Value};
use pantile_bench::memory::Failure;

type Result<T> = std::result::Result<T, Failure>;

/// Rows of each thread, and rows between theirs: a leaf of an index has up to 64.
const ROWS: u64 = 512;
const BETWEEN: u64 = 256;
/// Transactions of a turn, and turns of each thread. The first is not counted: it finds its slot, its buffers and its memory.
const TRANSACTIONS: u64 = 40;
const TURNS: u64 = 4;
const THREADS: usize = 2;
/// The medium may take this much: the tracer has less room for mappings than a process of its own.
const MAX_BYTES: u64 = 1 << 30;
const LINE: u64 = 64;
/// Simulated time between two transactions.
const INTERVAL: Duration = Duration::from_micros(10);

/// Lines of their own, which are written before each transaction that is counted, by its thread, and behind them.
#[repr(align(64))]
struct Mark(AtomicU64);
static MARKS: [Mark; THREADS + 1] = [const { Mark(AtomicU64::new(0)) }; THREADS + 1];

fn main() -> Result<()> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["run", file, kind] => run(Path::new(file), kind),
        ["count", file, locked] => count(Path::new(file), Path::new(locked)),
        _ => Err("usage: shared_lines run FILE read|update|insert | count FILE LOCKED".into()),
    }
}

/// Runs the turns. Leaves the addresses of the marks in the file.
fn run(file: &Path, kind: &str) -> Result<()> {
    let marks: Vec<_> = MARKS.iter().map(|mark| format!("{:x}\n", std::ptr::from_ref(mark).addr())).collect();
    fs::write(file, marks.concat() + &format!("{:x}\n", base()?))?;
    // Under a tracer a transaction takes so long that each of them would do what is done once in an epoch.
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).max_bytes(MAX_BYTES);
    let db = options.simulated_time(time.clone()).open("unused")?;
    let def = TableDef::new("rows").column("id", Type::U64).column("value", Type::FixedBytes(100));
    let table = db.create_table(def.primary_key(["id"]))?;
    let rows = (0..THREADS as u64 * (ROWS + BETWEEN)).map(|id| [(2 * id).into(), Value::Bytes(&[1; 100])]);
    db.run(|txn| txn.insert_many(&table, rows.clone()))?;
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|own| {
                let (shared, barrier) = ((&db, &table, &time), &barrier);
                scope.spawn(move || take_turns(shared, own, kind, barrier))
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked")?)
    })
}

fn take_turns(
    (db, table, time): (&Database, &Table, &SimulatedTime),
    own: usize,
    kind: &str,
    barrier: &Barrier,
) -> Result<()> {
    // Each finds a slot of its own.
    let txn = db.begin()?;
    barrier.wait();
    drop(txn);
    for turn in 0..TURNS {
        for thread in 0..THREADS {
            barrier.wait();
            if thread == own {
                for n in 0..TRANSACTIONS {
                    MARKS[if turn == 0 { THREADS } else { own }].0.store(n, Ordering::SeqCst);
                    let row = (turn * TRANSACTIONS + n) * 3 % ROWS;
                    db.run(|txn| one(txn, table, own as u64 * (ROWS + BETWEEN) + row, kind))?;
                    time.advance(INTERVAL);
                }
                MARKS[THREADS].0.store(turn, Ordering::SeqCst);
            }
        }
    }
    Ok(())
}

fn one(txn: &mut Transaction, table: &Table, row: u64, kind: &str) -> pantile::Result<()> {
    let value = [2; 100];
    match kind {
        "read" => txn.get(table, &[(2 * row).into()]).map(drop),
        "update" => txn.update(table, &[(2 * row).into()], &[(1, Value::Bytes(&value))]).map(drop),
        _ => txn.insert(table, &[(2 * row + 1).into(), Value::Bytes(&value)]),
    }
}

/// Where the program lies.
fn base() -> Result<u64> {
    let own = std::env::current_exe()?;
    let maps = fs::read_to_string("/proc/self/maps")?;
    let line = maps.lines().find(|line| line.ends_with(&*own.to_string_lossy()));
    let start = line.and_then(|line| u64::from_str_radix(line.split('-').next()?, 16).ok());
    Ok(start.ok_or("the program is not in its own address space")?)
}

/// The transactions that have written a line.
#[derive(Default)]
struct Written {
    /// By thread: how many of its transactions, and the last of them.
    by: [(u64, u64); THREADS],
    from: BTreeSet<u64>,
}

impl Written {
    /// How often it goes to another core for a transaction, if the threads run side by side.
    fn transfers(&self) -> f64 {
        let least = self.by.iter().map(|(transactions, _)| *transactions).min();
        least.unwrap_or(0) as f64 / ((TURNS - 1) * TRANSACTIONS) as f64
    }
}

/// Reads a trace. Prints the locked instructions of a transaction, and for each line that both threads write how many
/// transfers it makes in a transaction and where in the program it is written.
fn count(file: &Path, locked: &Path) -> Result<()> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let locked: HashSet<_> = fs::read_to_string(locked)?.lines().filter_map(hex).collect();
    let mut taken = 0u64;
    let (mut addresses, mut thread, mut transaction, mut place) = (Vec::new(), THREADS, 0, 0);
    let mut lines: HashMap<u64, Written> = HashMap::new();
    for (n, line) in io::stdin().lock().split(b'\n').enumerate() {
        let line = line?;
        if addresses.len() <= THREADS + 1 {
            if n % 1000 == 0 {
                let known = fs::read_to_string(file).unwrap_or_default();
                addresses = known.lines().filter_map(hex).collect();
            }
            continue;
        }
        let Some((kind, address, len)) = access(&line) else { continue };
        if kind == b'I' {
            place = address;
            let base = addresses[THREADS + 1];
            taken += u64::from(thread < THREADS && locked.contains(&place.wrapping_sub(base)));
        }
        if !matches!(kind, b'S' | b'M') {
            continue;
        }
        if let Some(mark) = addresses[..=THREADS].iter().position(|mark| *mark == address) {
            (thread, transaction) = (mark, transaction + 1);
        } else if thread < THREADS {
            for line in address / LINE..=(address + len - 1) / LINE {
                let written = lines.entry(line).or_default();
                let (transactions, last) = &mut written.by[thread];
                *transactions += u64::from(*last != transaction);
                *last = transaction;
                written.from.insert(place);
            }
        }
    }
    let base = *addresses.last().ok_or("no trace")?;
    if taken == 0 {
        return Err("no transaction in the trace: it may be written in another way now".into());
    }
    let transactions = THREADS as u64 * (TURNS - 1) * TRANSACTIONS;
    println!("locked {:.1}", taken as f64 / transactions as f64);
    for written in lines.values().filter(|written| written.transfers() > 0.0) {
        let places: Vec<_> =
            written.from.iter().map(|place| format!("{:x}", place.wrapping_sub(base))).collect();
        println!("{:.3} {}", written.transfers(), places.join(" "));
    }
    Ok(())
}

/// The kind, the address and the length of an access, as valgrind's lackey writes it.
fn access(line: &[u8]) -> Option<(u8, u64, u64)> {
    let text = std::str::from_utf8(line).ok()?.trim_start();
    let (kind, rest) = text.split_once(' ')?;
    let (address, len) = rest.trim_start().split_once(',')?;
    let kind = *kind.as_bytes().first().filter(|_| kind.len() == 1)?;
    Some((kind, u64::from_str_radix(address, 16).ok()?, len.trim_end().parse().ok()?))
}
