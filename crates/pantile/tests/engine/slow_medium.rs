//! A medium whose fences take long and then fail. Only commits and reads that
//! wait for a fence are delayed, and none of them forever.

use std::sync::Arc;
use std::thread::{self, JoinHandle};

use pantile::{Conflict, ConflictPolicy, Database, Error, Medium, Options, Result, Table};
use pantile::{TableDef, TransactionOptions, Type};
use pantile_testkit::{GatedMedium, await_that, fails};

fn write(db: &Database, table: &Table, id: u32, value: u32) -> JoinHandle<Result<()>> {
    let (db, table) = (db.clone(), table.clone());
    thread::spawn(move || db.run(|txn| txn.upsert(&table, &[id.into(), value.into()]).map(|_| ())))
}

fn value(txn: &pantile::Transaction, table: &Table, id: u32) -> Result<u32> {
    txn.get(table, &[id.into()])?.expect("a row").get(1)
}

fn joined(threads: Vec<JoinHandle<Result<()>>>) -> Vec<Result<()>> {
    await_that("the writers end", || threads.iter().all(JoinHandle::is_finished));
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

#[test]
fn a_slow_and_then_failing_medium_holds_up_only_those_who_wait_for_it() {
    let medium = GatedMedium::new();
    // A worker would wait at the gate as well when it has a state record to write.
    let options = Options::new().streams(8).worker(false).on_medium(Arc::clone(&medium) as Arc<dyn Medium>);
    let db = options.open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U32).column("value", Type::U32);
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    joined((0..8).map(|id| write(&db, &table, id, 0)).collect()).into_iter().for_each(|r| r.expect("insert"));
    for (round, fails) in [(1, false), (2, true)] {
        let before = round - 1;
        medium.close_gate();
        let writers: Vec<_> = (0..4).map(|id| write(&db, &table, id, round)).collect();
        medium.await_waiting(4);
        // Readers of other rows or of an older state do not notice.
        let fresh = db.begin_read().expect("begin");
        assert_eq!(value(&fresh, &table, 6).expect("read"), before * 10);
        let safe = db.begin_safe_snapshot().expect("begin");
        assert_eq!(value(&safe, &table, 0).expect("read"), before);
        // One that wants the pending version, and may write, gets an error if it
        // does not want to wait.
        let at_once = TransactionOptions::new().conflict(ConflictPolicy::Abort);
        let reader = db.begin_with(at_once).expect("begin");
        fails!(value(&reader, &table, 0), Error::Conflict { conflict: Conflict::Locked, .. }, "run it again");
        drop((fresh, safe, reader));
        // One that only reads waits for the commit, and never fails.
        let waiting = {
            let (db, table) = (db.clone(), table.clone());
            thread::spawn(move || value(&db.begin_read().expect("begin"), &table, 0))
        };
        assert!(writers.iter().all(|writer| !writer.is_finished()));
        medium.open_gate(fails.then_some("the device is gone"));
        let seen = waiting.join().expect("no panic").expect("read");
        assert_eq!(seen, if fails { before } else { round });
        for outcome in joined(writers) {
            match fails {
                false => outcome.expect("commit"),
                true => fails!(outcome, Error::MediumFailed { .. }, "the device is gone", "reads go on"),
            }
        }
        let outcome = joined(vec![write(&db, &table, 6, round * 10)]).remove(0);
        assert_eq!(outcome.is_err(), fails, "{outcome:?}");
    }
    let txn = db.begin_read().expect("reads still work");
    for id in 0..4 {
        assert_eq!(value(&txn, &table, id).expect("read"), 1, "what was acknowledged, and nothing else");
    }
    assert_eq!(value(&txn, &table, 6).expect("read"), 10);
    drop(txn);
    fails!(db.close(), Error::MediumFailed { .. }, "the device is gone");
}
