//! Several threads count in the same counters, each with many commits in flight.
//!
//! `commit` waits for the disk. `publish` does not: the commit is visible at once, and the program
//! waits for its durability later. Waiting for many commits later takes few syncs.
//!
//! `cargo run -p pantile --example counters`

use std::collections::VecDeque;
use std::thread;
use std::time::Instant;

use pantile::{Database, Range, Result, Table, TableDef, Transaction, Type};

const THREADS: u64 = 4;
const COUNTERS: u64 = 16;
const VISITS: u64 = 2_000;
const IN_FLIGHT: usize = 64;

fn count(txn: &mut Transaction, counters: &Table, id: u64) -> Result<bool> {
    txn.modify(counters, &[id.into()], |row| {
        let n: u64 = row.get(1)?;
        row.set(1, (n + 1).into())?;
        Ok(true)
    })
}

/// Counts visits with a transaction for each, and up to 64 commits in flight.
fn visit(db: &Database, counters: &Table, thread: u64) -> Result<()> {
    let mut in_flight = VecDeque::new();
    for n in 0..VISITS {
        let mut retry = db.retry();
        let commit = loop {
            let outcome = db.begin().and_then(|mut txn| {
                count(&mut txn, counters, (thread + n * 7) % COUNTERS)?;
                txn.publish()
            });
            match outcome {
                Err(error) if retry.again(&error) => {}
                other => break other?,
            }
        };
        in_flight.push_back(commit);
        // The oldest one has had the most time to become durable.
        if in_flight.len() == IN_FLIGHT {
            in_flight.pop_front().expect("64 commits").wait()?;
        }
    }
    in_flight.into_iter().try_for_each(|commit| commit.wait().map(|_| ()))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let db = Database::open(dir.path())?;
    let counters = TableDef::new("counters").column("id", Type::U64).column("n", Type::U64);
    let counters = db.create_table(counters.primary_key(["id"]))?;
    db.run(|txn| txn.insert_many(&counters, (0..COUNTERS).map(|id| [id.into(), 0u64.into()])))?;

    let (began, syncs) = (Instant::now(), db.stats().medium.syncs);
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let (db, counters) = (&db, &counters);
                    move || visit(db, counters, thread)
                })
            })
            .collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread"))
    })?;
    let syncs = db.stats().medium.syncs - syncs;
    let visits = THREADS * VISITS;
    println!("{visits} commits are durable after {:?} and {syncs} syncs", began.elapsed());

    drop(counters);
    db.close()?;
    let db = Database::open(dir.path())?;
    let counters = db.table("counters")?;
    let txn = db.begin_read()?;
    let sum: u64 = txn.scan(&counters, Range::all())?.map(|row| row?.get::<u64>("n")).sum::<Result<_>>()?;
    assert_eq!(sum, visits, "each visit counts once");
    assert!(syncs < visits, "commits share syncs");
    Ok(())
}
