//! A long report while others write.
//!
//! It reads at a safe snapshot. So it never waits, makes no writer fail, and sees the same state
//! from beginning to end.
//!
//! `cargo run -p pantile --example long_reader`

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use pantile::{Database, Durability, Options, Range, Result, Table, TableDef, Type};

const ITEMS: u64 = 2000;

/// Moves one piece from one item to another, so the sum stays the same.
fn restock(db: &Database, stock: &Table, n: u64) -> Result<()> {
    db.run(|txn| {
        for (item, change) in [(n * 17 % ITEMS, -1i64), (n * 31 % ITEMS, 1)] {
            txn.modify(stock, &[item.into()], |row| {
                let pieces = row.get::<i64>(1)?;
                row.set(1, (pieces + change).into())?;
                Ok(true)
            })?;
        }
        Ok(())
    })
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    // Commits do not wait for a sync, so that many happen beside the reader.
    let db = Options::new().durability(Durability::None).open(dir.path())?;
    let stock = db.create_table(
        TableDef::new("stock").column("item", Type::U64).column("pieces", Type::I64).primary_key(["item"]),
    )?;
    db.run(|txn| (0..ITEMS).try_for_each(|item| txn.insert(&stock, &[item.into(), 50i64.into()])))?;

    let done = AtomicBool::new(false);
    let (sums, written) = thread::scope(|scope| {
        let writers: Vec<_> = (0..2u64)
            .map(|writer| {
                let (db, stock, done) = (&db, &stock, &done);
                scope.spawn(move || -> Result<u64> {
                    let mut n = 0;
                    while !done.load(Ordering::Relaxed) {
                        restock(db, stock, writer * 1_000_003 + n)?;
                        n += 1;
                    }
                    Ok(n)
                })
            })
            .collect();
        let report = || -> Result<Vec<i64>> {
            // By now the snapshot is newer than the first rows.
            thread::sleep(Duration::from_millis(10));
            let snapshot = db.begin_safe_snapshot()?;
            println!("when the report begins, its snapshot is {:?} old", snapshot.age());
            let mut sums = Vec::new();
            for _ in 0..5 {
                let pieces = snapshot.scan(&stock, Range::all())?.map(|row| row?.get::<i64>(1));
                sums.push(pieces.sum::<Result<i64>>()?);
                thread::sleep(Duration::from_millis(60));
            }
            println!("when it ends, the snapshot is {:?} old", snapshot.age());
            Ok(sums)
        };
        let sums = report();
        done.store(true, Ordering::Relaxed);
        (sums, writers.into_iter().map(|w| w.join().expect("a writer")).sum::<Result<u64>>())
    });
    let (sums, written) = (sums?, written?);
    println!("{written} commits ran beside it; its sums are {sums:?}");
    assert!(written > 0 && sums.iter().all(|&sum| sum == 50 * ITEMS as i64));
    Ok(())
}
