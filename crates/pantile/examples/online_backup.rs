//! A backup while others write. It holds the state of one moment, and only whole transactions.
//!
//! `cargo run -p pantile --example online_backup`

use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pantile::{BackupOptions, CheckOptions, Database, Range, Result, Table, TableDef, Type, Value};

const ROWS: u64 = 20_000;

/// Each transaction adds a row to both ledgers, so their lengths are equal.
fn book(db: &Database, ledgers: &[Table; 2], number: u64) -> Result<()> {
    db.run(|txn| {
        ledgers.iter().try_for_each(|ledger| txn.insert(ledger, &[number.into(), "one movement".into()]))
    })
}

fn ledgers(db: &Database) -> Result<[Table; 2]> {
    let ledger = |name| {
        let def = TableDef::new(name).column("number", Type::U64).column("text", Type::String(80));
        db.open_or_create(def.primary_key(["number"]))
    };
    Ok([ledger("debit")?, ledger("credit")?])
}

fn lengths(db: &Database) -> Result<[u64; 2]> {
    let [debit, credit] = ledgers(db)?;
    let txn = db.begin_read()?;
    Ok([txn.count(&debit, Range::all())?, txn.count(&credit, Range::all())?])
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let (shop, backup, restored) =
        (dir.path().join("shop"), dir.path().join("monday"), dir.path().join("new"));
    let db = Database::open(&shop)?;
    let both = ledgers(&db)?;
    db.run(|txn| {
        for ledger in &both {
            txn.insert_many(ledger, (0..ROWS).map(|number| [number.into(), "loaded".into()]))?;
        }
        Ok::<_, pantile::Error>(())
    })?;

    let done = AtomicBool::new(false);
    let (report, written) = thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<u64> {
            let mut number = ROWS;
            while !done.load(Ordering::Relaxed) {
                book(&db, &both, number)?;
                number += 1;
            }
            Ok(number - ROWS)
        });
        let report = db.backup_to(&backup, &BackupOptions::new());
        done.store(true, Ordering::Relaxed);
        (report, writer.join().expect("the writer"))
    });
    let (report, written) = (report?, written?);
    println!(
        "the backup has {} rows in {} bytes; {written} commits ran beside it",
        report.rows, report.file_bytes
    );

    // What is restored is checked, row by row, before it is a database.
    pantile::restore(&backup, &restored, &CheckOptions::new())?;
    let copy = Database::open(&restored)?;
    let [debit, credit] = lengths(&copy)?;
    println!("restored: {debit} and {credit} movements");
    assert!(debit == credit && debit >= ROWS, "whole transactions, and everything from before the call");
    assert!(debit <= ROWS + written);

    // The two go their own ways.
    let from: [Value; 1] = [ROWS.into()];
    let [ledger, _] = ledgers(&copy)?;
    copy.run(|txn| txn.delete_range(&ledger, Range::all().from(Bound::Included(&from))))?;
    assert_eq!(lengths(&db)?, [ROWS + written; 2]);
    assert_eq!(lengths(&copy)?[0], ROWS);
    Ok(())
}
