//! Tables and indexes that come and go under running transactions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pantile::{Database, Error, IndexDef, MediumKind, Options, Range, TableDef, Type};

fn definition() -> TableDef {
    TableDef::new("t").column("id", Type::U64).column("v", Type::U64).primary_key(["id"])
}

/// Whether a client may meet the error while definitions change.
fn is_expected(error: &Error) -> bool {
    matches!(error, Error::TableDropped(_) | Error::UnknownTable(_)) || error.is_retryable()
}

/// Inserts, changes and reads rows of whatever table is there.
fn client(db: &Database, number: u64, done: &AtomicBool) -> u64 {
    let mut committed = 0;
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
            Ok(()) => committed += 1,
            Err(error) => assert!(is_expected(&error), "{error}"),
        }
    }
    committed
}

fn under_clients(limit: Duration, mut change: impl FnMut(&Database)) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    db.create_table(definition()).expect("create");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let clients: Vec<_> = (0..3)
            .map(|n| {
                scope.spawn({
                    let (db, done) = (&db, &done);
                    move || client(db, n, done)
                })
            })
            .collect();
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline && clients.iter().all(|client| !client.is_finished()) {
            change(&db);
        }
        done.store(true, Ordering::Relaxed);
        let committed: u64 = clients.into_iter().map(|client| client.join().expect("no panic")).sum();
        assert!(committed > 0);
    });
    // Nothing is left but what the definitions say.
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
    under_clients(Duration::from_millis(2500), |db| {
        match db.drop_table("t") {
            Ok(()) => drop(db.create_table(definition()).expect("create")),
            Err(error) => assert!(is_expected(&error), "{error}"),
        }
        thread::sleep(Duration::from_micros(200));
    });
}

#[test]
fn indexes_are_dropped_and_made_under_writers() {
    under_clients(Duration::from_millis(1500), |db| {
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
