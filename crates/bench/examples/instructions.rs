//! Runs a fixed number of transactions in one thread, for counting the instructions they take.
//!
//! `scripts/instructions` runs this under callgrind and counts only what [`measured`] does.
//! Seeds are fixed and time is simulated, so two runs execute the same transactions.
//!
//! Arguments: the workload (`ycsb`, `tpcc`, or one of them with `-together`, where rows whose keys are
//! known are the matter of one call; `load` and `load-indexed`, where a row counts as a transaction),
//! the transactions to count (10,000).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Database, IndexDef, Isolation, MediumKind, Options, Table, TableDef, Type, Value};
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
            run(&Ycsb { together, ..ycsb }, transactions)
        }
        "tpcc" => run(&Tpcc { scale: Scale::full(1), together, seed: 1 }, transactions),
        "load" => load(false, transactions),
        "load-indexed" => load(true, transactions),
        _ => Err(Error::Setting(
            "usage: instructions ycsb|tpcc[-together]|load[-indexed] [TRANSACTIONS]".into(),
        )),
    }
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

/// Loads the data, warms up with half as many transactions, and runs those that are counted.
fn run<W: Workload>(workload: &W, transactions: u64) -> Result<()> {
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
    measured(client, &time, transactions)?;
    let after = db.stats();
    println!(
        "{}: {} commits, {} blocks reclaimed",
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

fn one<C: Client>(client: &mut C, time: &SimulatedTime) -> Result<()> {
    client.draw();
    client.attempt()?;
    time.advance(INTERVAL);
    Ok(())
}
