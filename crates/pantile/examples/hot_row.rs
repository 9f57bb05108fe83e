//! Many clients change one row, and every commit is durable before it returns.
//!
//! A row is locked only until its commit is published. Successive commits to the row share syncs.
//! Each returns when its own sync has ended.
//!
//! `cargo run --release -p pantile --example hot_row [CLIENTS]`, on the disk of
//! the working directory

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pantile::{Database, Result, Table, TableDef, Type};

const SECONDS: Duration = Duration::from_secs(3);

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let clients = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(16);
    let dir = tempfile::tempdir_in(".")?;
    let db = Database::open(dir.path())?;
    let def = TableDef::new("counters").column("id", Type::U32).column("n", Type::U64).primary_key(["id"]);
    let counters = db.create_table(def)?;
    db.run(|txn| txn.upsert(&counters, &[1u32.into(), 0u64.into()]).map(|_| ()))?;

    let mut rates = Vec::new();
    for clients in [1, clients] {
        let (before, aborts) = (value(&db, &counters)?, db.stats().aborts);
        let began = Instant::now();
        let commits = count_together(&db, &counters, clients)?;
        let rate = commits as f64 / began.elapsed().as_secs_f64();
        let again = (db.stats().aborts - aborts) as f64 / commits as f64;
        println!("{clients:3} clients: {rate:8.0} durable commits a second, {again:.2} run again for each");
        assert_eq!(value(&db, &counters)? - before, commits, "each commit counted once");
        rates.push(rate);
    }
    println!("ratio: {:.1}", rates[1] / rates[0]);
    Ok(db.close()?)
}

/// Lets this many clients count in one row. Returns how often they have.
fn count_together(db: &Database, counters: &Table, clients: usize) -> Result<u64> {
    let stop = AtomicBool::new(false);
    let count = || {
        let mut commits = 0;
        while !stop.load(Ordering::Relaxed) {
            db.run(|txn| {
                txn.modify(counters, &[1u32.into()], |row| {
                    let n: u64 = row.get(1)?;
                    row.set(1, (n + 1).into())?;
                    Ok(true)
                })
            })?;
            commits += 1;
        }
        Ok(commits)
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..clients).map(|_| scope.spawn(count)).collect();
        thread::sleep(SECONDS);
        stop.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("a client")).sum()
    })
}

fn value(db: &Database, counters: &Table) -> Result<u64> {
    let txn = db.begin_read()?;
    txn.get(counters, &[1u32.into()])?.expect("the row").get(1)
}
