//! How often transactions fail and how long they wait, with writers that move
//! behind readers and with writers that stay where they began.
//!
//! `cargo run --release -p pantile-bench --example moving [SECONDS]`
//!
//! A background writer changes single rows in both. Beside it run, one load at a
//! time: long readers that scan the table, long writers that read and change
//! many rows beside fresh readers of everything, and short transactions that
//! read one row and change another, uniform and zipf 0.9.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pantile::{
    ConflictPolicy, Database, MediumKind, Options, Range, Result, Table, TableDef, Transaction, Type,
};
use pantile_bench::ycsb::keys::Zipf;
use pantile_testkit::Random;

const ROWS: u64 = 10_000;

struct Load {
    db: Database,
    table: Table,
    zipf: Option<Zipf>,
}

impl Load {
    fn key(&self, random: &mut Random) -> u64 {
        match &self.zipf {
            Some(zipf) => zipf.draw(random),
            None => random.below(ROWS),
        }
    }

    fn add(&self, txn: &mut Transaction, key: u64) -> Result<()> {
        txn.modify(&self.table, &[key.into()], |row| {
            let n = row.get::<u64>(1)?;
            row.set(1, (n + 1).into()).map(|()| true)
        })
        .map(drop)
    }
}

#[derive(Default)]
struct Counts {
    done: AtomicU64,
    failed: AtomicU64,
    longest_us: AtomicU64,
}

impl Counts {
    fn count(&self, outcome: &Result<()>, began: Instant) {
        let counter = if outcome.is_ok() { &self.done } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        self.longest_us.fetch_max(began.elapsed().as_micros() as u64, Ordering::Relaxed);
    }
}

fn scan(load: &Load) -> Result<()> {
    let reader = load.db.begin_read()?;
    reader.scan(&load.table, Range::all())?.try_for_each(|row| row?.get::<u64>(1).map(drop))
}

fn long_write(load: &Load, random: &mut Random) -> Result<()> {
    let mut txn = load.db.begin()?;
    for _ in 0..50 {
        load.add(&mut txn, load.key(random))?;
        std::thread::sleep(Duration::from_micros(200));
    }
    txn.commit().map(drop)
}

fn short_write(load: &Load, random: &mut Random) -> Result<()> {
    let mut txn = load.db.begin()?;
    txn.get(&load.table, &[load.key(random).into()])?;
    load.add(&mut txn, load.key(random))?;
    txn.commit().map(drop)
}

type Work = fn(&Load, &mut Random) -> Result<()>;

/// Runs each work on a thread of its own.
fn run(works: &[Work], theta: Option<f64>, moves: bool, seconds: f64) -> Vec<Counts> {
    let options = Options::new().medium(MediumKind::Dram).writers_move(moves);
    let options = options.conflict(ConflictPolicy::Wait(Duration::from_millis(100)));
    let db = options.open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    db.run(|t| (0..ROWS).try_for_each(|id| t.insert(&table, &[id.into(), 0u64.into()]))).expect("load");
    let load = Load { db, table, zipf: theta.map(|theta| Zipf::new(ROWS, theta)) };
    let counts: Vec<Counts> = works.iter().map(|_| Counts::default()).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (n, (work, counts)) in works.iter().zip(&counts).enumerate() {
            let (load, over) = (&load, &over);
            scope.spawn(move || {
                let mut random = Random::new(7, n as u64);
                while !over.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    counts.count(&work(load, &mut random), began);
                }
            });
        }
        std::thread::sleep(Duration::from_secs_f64(seconds));
        over.store(true, Ordering::Relaxed);
    });
    counts
}

fn main() {
    let seconds = std::env::args().nth(1).and_then(|arg| arg.parse().ok()).unwrap_or(2.0);
    let reads: Work = |load, _| scan(load);
    let loads: [(&str, &[Work], Option<f64>); 5] = [
        ("scan | short writer", &[reads, short_write], None),
        ("scan | long writer", &[reads, long_write], None),
        ("scan | long writer, zipf 0.9", &[reads, long_write], Some(0.9)),
        ("short | short", &[short_write, short_write], None),
        ("short | short, zipf 0.9", &[short_write, short_write], Some(0.9)),
    ];
    println!(
        "{:<30} {:>7} {:>10} {:>8} {:>8} {:>12}",
        "load", "writers", "which", "done", "failed", "longest ms"
    );
    for (name, works, theta) in loads {
        for moves in [true, false] {
            for (counts, which) in run(works, theta, moves, seconds).iter().zip(name.split(" | ")) {
                println!(
                    "{name:<30} {:>7} {:>10} {:>8} {:>8} {:>12.1}",
                    if moves { "move" } else { "stay" },
                    which.split(',').next().unwrap_or(which),
                    counts.done.load(Ordering::Relaxed),
                    counts.failed.load(Ordering::Relaxed),
                    counts.longest_us.load(Ordering::Relaxed) as f64 / 1e3,
                );
            }
        }
    }
}
