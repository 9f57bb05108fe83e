//! Tables and indexes are created and dropped under running transactions.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pantile::{Database, Error, IndexDef, MediumKind, Options, Range, TableDef, Type};
use pantile_testkit::{Patience, SaysDone};

fn definition() -> TableDef {
    TableDef::new("t").column("id", Type::U64).column("v", Type::U64).primary_key(["id"])
}

/// Whether a client may meet the error while definitions change.
fn is_expected(error: &Error) -> bool {
    matches!(error, Error::TableDropped(_) | Error::UnknownTable(_)) || error.is_retryable()
}

/// Inserts, changes and reads rows of whichever table exists.
fn client(db: &Database, number: u64, done: &AtomicBool, committed: &AtomicU64) {
    for n in 0.. {
        if done.load(Ordering::Relaxed) {
            break;
        }
        let Ok(table) = db.table("t") else { continue };
        let id = (number << 32) + n % 50;
        let outcome = db.run(|txn| {
            txn.upsert(&table, &[id.into(), n.into()])?;
            txn.delete(&table, &[((number << 32) + (n + 25) % 50).into()])?;
            txn.scan(&table, Range::all().limit(20))?.try_for_each(|row| row.map(|_| ()))
        });
        match outcome {
            Ok(()) => _ = committed.fetch_add(1, Ordering::Relaxed),
            Err(error) => assert!(is_expected(&error), "{error}"),
        }
    }
}

/// Makes `changes` changes, and more until each client has committed something.
fn under_clients(changes: u64, mut change: impl FnMut(&Database)) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    db.create_table(definition()).expect("create");
    let (done, committed) = (AtomicBool::new(false), <[AtomicU64; 3]>::default());
    thread::scope(|scope| {
        let over = SaysDone(&done);
        let clients: Vec<_> = (0..3)
            .map(|n| {
                let (db, done, committed) = (&db, &done, &committed[n as usize]);
                scope.spawn(move || client(db, n, done, committed))
            })
            .collect();
        let (mut made, patience) = (0, Patience::new());
        let is_idle = |one: &AtomicU64| one.load(Ordering::Relaxed) == 0;
        while (made < changes || committed.iter().any(is_idle)) && !clients.iter().any(|c| c.is_finished()) {
            change(&db);
            made += 1;
            patience.check(|| format!("after {made} changes the clients have committed {committed:?}"));
        }
        drop(over);
        clients.into_iter().for_each(|client| client.join().expect("no panic"));
    });
    // Only what the definitions name is left.
    let table = db.table("t").expect("table");
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(&table, Range::all()).expect("scan").count();
    for def in &table.definition().indexes {
        let index = table.index(&def.name).expect("index");
        assert_eq!(txn.scan_index(&index, Range::all()).expect("scan").count(), rows);
    }
}

#[test]
fn tables_are_dropped_and_made_under_writers() {
    under_clients(500, |db| {
        match db.drop_table("t") {
            Ok(()) => drop(db.create_table(definition()).expect("create")),
            Err(error) => assert!(is_expected(&error), "{error}"),
        }
        thread::sleep(Duration::from_micros(200));
    });
}

#[test]
fn indexes_are_dropped_and_made_under_writers() {
    under_clients(200, |db| {
        let table = db.table("t").expect("table");
        match db.create_index(&table, IndexDef::new("by_v", ["v"])) {
            Ok(_) => thread::sleep(Duration::from_micros(500)),
            Err(error) => {
                assert!(is_expected(&error) || matches!(error, Error::IndexExists { .. }), "{error}")
            }
        }
        if let Err(error) = db.drop_index(&table, "by_v") {
            assert!(is_expected(&error) || matches!(error, Error::UnknownIndex { .. }), "{error}");
        }
    });
}

/// A unique index whose creation fails refuses nothing, also in transactions that have written to it meanwhile.
#[test]
fn an_index_that_was_not_made_refuses_no_rows() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = db.create_table(definition()).expect("a table");
    db.run(|txn| txn.insert(&table, &[1u64.into(), 7u64.into()])).expect("a row");
    let mut txn = db.begin().expect("a transaction");
    let mut calls = 0u64;
    let stopped = db.create_index_with(&table, IndexDef::unique("u", ["v"]), |_| {
        calls += 1;
        txn.insert(&table, &[(calls + 10).into(), (calls + 10).into()]).expect("a row");
        if calls < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    txn.insert(&table, &[2u64.into(), 7u64.into()]).expect("there is no index");
    txn.commit().expect("a commit");
    let rows = db.begin_read().expect("a transaction").count(&table, Range::all()).expect("a count");
    assert_eq!(rows, 2 + calls);
    let error = db.create_index(&table, IndexDef::unique("u", ["v"])).expect_err("two rows have one key");
    assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
}
