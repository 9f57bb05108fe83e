//! Runs a fixed number of transactions in one thread, for counting the instructions they take.
//!
//! `scripts/instructions` runs this under callgrind and counts only what [`measured`] does.
//! Seeds are fixed and time is simulated, so two runs execute the same transactions.
//!
//! Arguments: the workload (`ycsb`, `tpcc`, or one of them with `-together`, where rows whose keys are
//! known are the matter of one call), the transactions to count (10,000).

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Isolation, MediumKind, Options};
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
        _ => Err(Error::Setting("usage: instructions ycsb|tpcc[-together] [TRANSACTIONS]".into())),
    }
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
