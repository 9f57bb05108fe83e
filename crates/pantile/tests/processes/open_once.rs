//! A database is open in one process at a time (T17).

use std::process::Command;

use pantile::{Database, Error, Options, TableDef, Type};
use pantile_testkit::{ScratchDir, fails, open_soon};

const OPENER: &str = "PANTILE_TEST_OPENER";

/// Does nothing unless it is started as the second process.
#[test]
fn other_process() {
    if let Some(place) = std::env::var_os(OPENER) {
        fails!(Database::open(&place), Error::AlreadyOpen(_), "open already", "close it there first");
    }
}

#[test]
fn a_database_is_open_once() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    let table =
        db.create_table(TableDef::new("t").column("id", Type::U32).primary_key(["id"])).expect("create");
    fails!(Database::open(place.path()), Error::AlreadyOpen(_), "open already", "close it there first");
    let binary = std::env::current_exe().expect("this binary");
    let mut other = Command::new(binary);
    other.args(["--exact", "open_once::other_process"]).env(OPENER, place.path());
    assert!(other.status().expect("run").success(), "another process could open it");
    db.run(|txn| txn.insert(&table, &[1u32.into()])).expect("the first opener continues");
    drop((db, table));
    open_soon(&Options::new(), place.path()).expect("free again");
}
