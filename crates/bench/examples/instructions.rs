//! Runs a fixed number of transactions in one thread, for counting the instructions they take.
//!
//! `scripts/instructions` runs this under callgrind and counts only what [`measured`] does.
//! Seeds are fixed and time is simulated, so two runs execute the same transactions.
//!
//! Arguments: the workload (`ycsb`, `tpcc`, or one of them with `-together`, where rows whose keys are
//! known are the matter of one call; a kind of TPC-C's transactions, such as `new_order`: all run, and those of
//! that kind are counted; `load` and `load-indexed`, where a row counts as a transaction; `queue`),
//! the transactions to run (10,000). With `calls` it counts by itself what transactions ask of the system.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    Database, IndexDef, Isolation, MediumKind, Options, Table, TableDef, Transaction, Type, Value,
};
use pantile_bench::load::{Context, Silent};
use pantile_bench::runner::Client;
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::workload::Workload;
use pantile_bench::ycsb::{Mix, Ycsb};
use pantile_bench::{Error, Result};

/// Simulated time between two transactions.
const INTERVAL: Duration = Duration::from_micros(100);

/// The medium may take this much: valgrind has less room for mappings than a process of its own.
const MAX_BYTES: u64 = 2 << 30;

static NEVER: AtomicBool = AtomicBool::new(false);

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let workload = arguments.next().unwrap_or_default();
    let transactions = arguments.next().and_then(|number| number.parse().ok()).unwrap_or(10_000);
    let (kind, together) = match workload.strip_suffix("-together") {
        Some(kind) => (kind, true),
        None => (workload.as_str(), false),
    };
    match kind {
        "ycsb" => {
            let mix = Mix { updates: 50, ..Mix::default() };
            let ycsb = Ycsb { tuples: 20_000, ops: 20, mix, theta: 0.0, seed: 1, ..Ycsb::default() };
            run(&Ycsb { together, ..ycsb }, transactions, None)
        }
        "tpcc" => run(&tpcc(together), transactions, None),
        "calls" => calls(transactions),
        "load" => load(false, transactions),
        "load-indexed" => load(true, transactions),
        "queue" => queue(transactions),
        _ => {
            let tpcc = tpcc(together);
            let usage =
                "usage: instructions ycsb|tpcc|KIND[-together]|load[-indexed]|queue|calls [TRANSACTIONS]";
            let kind = tpcc.kinds().iter().position(|name| *name == kind);
            run(&tpcc, transactions, Some(kind.ok_or_else(|| Error::Setting(usage.into()))?))
        }
    }
}

fn tpcc(together: bool) -> Tpcc {
    Tpcc { scale: Scale::full(1), together, seed: 1 }
}

/// Prints for some kinds of durable transactions how many writes, syncs, bytes and fences each takes, in a file.
fn calls(transactions: u64) -> Result<()> {
    let dir = std::env::temp_dir().join(format!("pantile-calls-{}", std::process::id()));
    let outcome = calls_in(&dir, transactions);
    // What could not be removed lies among temporary files.
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

fn calls_in(dir: &Path, transactions: u64) -> Result<()> {
    // Without a thread of its own, so that all is done by the transactions.
    let time = SimulatedTime::default();
    let db = Options::new().simulated_time(time.clone()).streams(1).open(dir)?;
    let def = TableDef::new("rows").column("id", Type::U64).column("value", Type::FixedBytes(100));
    let table = db.create_table(def.primary_key(["id"]))?;
    let value = Value::Bytes(&[7; 100]);
    let row = |id: u64| [id.into(), value];
    db.run(|txn| txn.insert_many(&table, (0..10_000).map(row)))?;
    let change =
        |txn: &mut Transaction, n: u64| txn.update(&table, &[(n % 9_000).into()], &[(1, value)]).map(drop);
    let acts: [(&str, &Act<'_>); 5] = [
        ("read", &|txn, n| txn.get(&table, &[n.into()]).map(drop)),
        ("update", &change),
        ("10 updates", &|txn, n| (0..10).try_for_each(|m| change(txn, n + 700 * m))),
        ("insert", &|txn, n| txn.insert(&table, &row(1_000_000 + n))),
        ("insert and delete", &|txn, n| {
            txn.insert(&table, &row(2_000_000 + n))?;
            txn.delete(&table, &[(1_000_000 + n).into()]).map(drop)
        }),
    ];
    for (name, act) in acts {
        let before = (writes()?, db.stats().medium);
        for n in 0..transactions {
            db.run(|txn| act(txn, n))?;
            time.advance(INTERVAL);
        }
        let (writes, medium) = (writes()? - before.0, db.stats().medium - before.1);
        let each = |count: u64| count as f64 / transactions as f64;
        let (syncs, bytes, fences) = (each(medium.syncs), each(medium.bytes_written), each(medium.fences));
        println!("{:.2} {syncs:.2} {bytes:.0} {fences:.2} {name}", each(writes));
    }
    Ok(())
}

type Act<'a> = dyn Fn(&mut Transaction, u64) -> pantile::Result<()> + 'a;

/// Calls of the system so far by which this process has written.
fn writes() -> Result<u64> {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let count = io.lines().find_map(|line| line.strip_prefix("syscw: ")?.parse().ok());
    count.ok_or_else(|| Error::Setting("the system does not count calls (/proc/self/io)".into()))
}

/// Rows of a transaction of a load.
const ROWS: u64 = 1_000;

/// Adds rows of 100 bytes in the order of their keys. The second half of them is counted.
fn load(is_indexed: bool, rows: u64) -> Result<()> {
    let options = Options::new().medium(MediumKind::Dram).max_bytes(MAX_BYTES).streams(1);
    let db = options.simulated_time(SimulatedTime::default()).open("unused")?;
    let def = TableDef::new("rows").column("id", Type::U64).column("owner", Type::U64);
    let def = def.column("value", Type::FixedBytes(84)).primary_key(["id"]);
    let def = if is_indexed { def.index(IndexDef::new("owner", ["owner"])) } else { def };
    let table = db.create_table(def)?;
    for first in (0..rows).step_by(ROWS as usize) {
        add(&db, &table, first..(first + ROWS).min(rows))?;
    }
    for first in (rows..2 * rows).step_by(ROWS as usize) {
        measured_rows(&db, &table, first..(first + ROWS).min(2 * rows))?;
    }
    println!("{} commits", db.stats().commits);
    Ok(())
}

/// As [`measured`].
#[inline(never)]
fn measured_rows(db: &Database, table: &Table, ids: std::ops::Range<u64>) -> Result<()> {
    add(db, table, ids)
}

fn add(db: &Database, table: &Table, ids: std::ops::Range<u64>) -> Result<()> {
    let value = [7; 84];
    let owner = |id: u64| id.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 44;
    db.run(|txn| {
        let rows = ids.clone().map(|id| [id.into(), owner(id).into(), Value::Bytes(&value)]);
        txn.insert_many(table, rows)
    })?;
    Ok(())
}

/// Rows that wait in the queue.
const WAITING: u64 = 1_000;

/// Adds a row of 100 bytes behind the last one and deletes the first one, in one transaction.
fn queue(turns: u64) -> Result<()> {
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).max_bytes(MAX_BYTES).streams(1);
    let db = options.simulated_time(time.clone()).open("unused")?;
    let def = TableDef::new("rows").column("id", Type::U64).column("value", Type::FixedBytes(100));
    let table = db.create_table(def.primary_key(["id"]))?;
    let value = Value::Bytes(&[7; 100]);
    db.run(|txn| txn.insert_many(&table, (0..WAITING).map(|id| [id.into(), value])))?;
    let turn = |head: u64| {
        time.advance(INTERVAL);
        let is_there = db.run(|txn| {
            txn.insert(&table, &[(head + WAITING).into(), value])?;
            txn.delete(&table, &[head.into()])
        })?;
        assert!(is_there, "row {head}");
        Ok(())
    };
    (0..turns / 2).try_for_each(turn)?;
    measured_turns(&turn, turns / 2..turns / 2 + turns)?;
    println!("{} blocks reclaimed", db.stats().collector.blocks_reclaimed);
    Ok(())
}

/// As [`measured`].
#[inline(never)]
fn measured_turns(turn: &dyn Fn(u64) -> Result<()>, mut heads: std::ops::Range<u64>) -> Result<()> {
    heads.try_for_each(turn)
}

/// Loads the data, warms up with half as many transactions, and runs those that are counted: all, or those of
/// one kind, with the others between them.
fn run<W: Workload>(workload: &W, transactions: u64, kind: Option<usize>) -> Result<()> {
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).max_bytes(MAX_BYTES).streams(1);
    let db = options.simulated_time(time.clone()).open("unused")?;
    let data = workload.load(&db, &Context { threads: 1, stop: &NEVER, observer: &Silent })?;
    let mut clients = workload.clients(&db, &data, 1, Isolation::Serializable)?;
    let client = &mut clients[0];
    for _ in 0..transactions / 2 {
        one(client, &time)?;
    }
    let before = db.stats();
    let counted = match kind {
        None => {
            measured(client, &time, transactions)?;
            transactions
        }
        Some(kind) => (0..transactions).try_fold(0, |counted, _| {
            let is_counted = client.draw() == kind;
            if is_counted { measured_drawn(client, &time) } else { drawn(client, &time) }?;
            Ok::<_, Error>(counted + u64::from(is_counted))
        })?,
    };
    let after = db.stats();
    println!(
        "{counted} of {}: {} commits, {} blocks reclaimed",
        workload.name(),
        after.commits - before.commits,
        after.collector.blocks_reclaimed - before.collector.blocks_reclaimed
    );
    Ok(())
}

/// Its instructions are counted, with everything that it calls.
#[inline(never)]
fn measured<C: Client>(client: &mut C, time: &SimulatedTime, transactions: u64) -> Result<()> {
    (0..transactions).try_for_each(|_| one(client, time))
}

/// As [`measured`].
#[inline(never)]
fn measured_drawn<C: Client>(client: &mut C, time: &SimulatedTime) -> Result<()> {
    drawn(client, time)
}

fn one<C: Client>(client: &mut C, time: &SimulatedTime) -> Result<()> {
    client.draw();
    drawn(client, time)
}

fn drawn<C: Client>(client: &mut C, time: &SimulatedTime) -> Result<()> {
    client.attempt()?;
    time.advance(INTERVAL);
    Ok(())
}
