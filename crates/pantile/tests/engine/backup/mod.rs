//! Backups: what they hold, beside whom they are made, and how they end.

mod beside;
mod ends;
mod going_on;
mod holds;
mod of_others;
mod restoring;

use std::path::Path;
use std::time::Duration;

use pantile::tools::BackupReport;
use pantile::{BackupOptions, CheckOptions, Database, Options, Range, Transaction, check};
use pantile_testkit::ScratchDir;

/// Waits for older writers for as long as a busy machine may stop them, so that
/// the backup has all that was acknowledged.
fn patient() -> BackupOptions {
    BackupOptions::new().wait(Duration::from_secs(600))
}

/// Backs up into a new directory, and checks that the backup is sound.
fn back_up(db: &Database) -> (ScratchDir, BackupReport) {
    let place = ScratchDir::new();
    let report = db.backup_to(place.path(), &patient()).expect("back up");
    is_sound(place.path());
    (place, report)
}

#[track_caller]
fn is_sound(path: &Path) {
    let report = check(path, &CheckOptions::new()).expect("check");
    assert!(report.is_sound() && report.notices == 0 && report.was_closed, "{report:?}");
}

fn open(path: &Path) -> Database {
    Options::new().create(false).open(path).expect("the backup opens")
}

/// The definitions and all rows of all tables, and each index's rows in its
/// order.
fn everything(db: &Database, txn: &Transaction) -> Vec<String> {
    let text = |row: pantile::Result<pantile::Row<'_>>| {
        let row = row.expect("a row");
        format!("{:?}", row.to_values().expect("values"))
    };
    let mut all = Vec::new();
    for name in db.tables() {
        let table = db.table(&name).expect("a table");
        all.push(format!("{:?}", table.definition()));
        all.extend(txn.scan(&table, Range::all()).expect("scan").map(text));
        for def in table.definition().indexes {
            let index = table.index(&def.name).expect("an index");
            all.push(def.name);
            all.extend(txn.scan_index(&index, Range::all()).expect("scan").map(text));
        }
    }
    all
}

/// Asserts that a backup of a database in which nothing changes is the same.
fn check_same(db: &Database) -> BackupReport {
    let (place, report) = back_up(db);
    let copy = open(place.path());
    let (here, there) = (db.begin_read().expect("begin"), copy.begin_read().expect("begin"));
    assert!(everything(db, &here) == everything(&copy, &there), "the backup differs");
    assert!(report.is_current);
    assert_eq!(report.tables as usize, db.tables().len());
    drop(there);
    // It can be written to, and what is written stays.
    let table = pantile::TableDef::new("added").column("id", pantile::Type::U64).primary_key(["id"]);
    let added = copy.create_table(table).expect("create");
    copy.run(|txn| txn.insert(&added, &[1u64.into()])).expect("insert");
    drop(added);
    copy.close().expect("close");
    is_written_to(place.path());
    report
}

fn is_written_to(path: &Path) {
    let report = check(path, &CheckOptions::new()).expect("check");
    assert!(report.is_sound(), "{report:?}");
    let copy = open(path);
    let txn = copy.begin_read().expect("begin");
    let added = copy.table("added").expect("the table");
    assert_eq!(txn.scan(&added, Range::all()).expect("scan").count(), 1);
}
