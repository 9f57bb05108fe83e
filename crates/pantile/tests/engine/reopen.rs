//! Timestamps continue after a database is reopened, and what was deleted stays
//! deleted.

use std::time::Duration;

use crate::support::{LEVELS, PULSE, abort_at, let_collect};
use pantile::{Durability, Range, TableDef, Timestamp, Type};
use pantile_testkit::{Bed, Home, SeedNote, seeds};

#[test]
fn timestamps_continue() {
    for bed in [Bed::Dram, Bed::File(Durability::Sync), Bed::File(Durability::None), Bed::Nvm] {
        let mut home = Home::new(bed);
        let mut db = home.open();
        let def = TableDef::new("log").column("ts", Type::U64).primary_key(["ts"]);
        db.create_table(def).expect("a table");
        let mut last: Option<Timestamp> = None;
        for round in 0..12usize {
            let table = db.table("log").expect("the table");
            for level in LEVELS {
                let mut txn = db.begin_with(abort_at(level)).expect("a transaction");
                let begun = txn.timestamp();
                assert!(Some(begun) > last, "{begun:?} after {last:?}, {bed:?}");
                let rows = txn.scan(&table, Range::all()).expect("a scan").count();
                assert_eq!(rows, 3 * round + level as usize, "everything older is seen");
                txn.insert(&table, &[begun.get().into()]).expect("the key is free");
                last = Some(txn.commit().expect("a commit"));
            }
            let running = db.begin().expect("a transaction");
            if round % 2 == 0 {
                drop(running);
                home.close(db);
            } else {
                home.kill(db, vec![running]);
            }
            db = home.open();
            let safe = db.begin_safe_snapshot().expect("a snapshot");
            assert!(Some(safe.timestamp()) >= last, "a safe snapshot shows what was there, {bed:?}");
        }
    }
}

/// Tombstones stay while they hide something (T3): here in blocks that are
/// never obsolete enough to be emptied.
#[test]
fn what_is_deleted_stays_deleted() {
    const ROWS: u64 = 2_000;
    for seed in seeds(1, 3) {
        let _note = SeedNote(seed);
        let mut home = Home::new(Bed::Dram).eager(seed);
        let db = home.open();
        let numbers =
            |name| TableDef::new(name).column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
        let table = db.create_table(numbers("rows")).expect("a table");
        let pulse = db.create_table(numbers(PULSE)).expect("a table");
        for id in 0..ROWS {
            db.run(|txn| txn.insert(&table, &[id.into(), id.into()])).expect("the key is free");
        }
        for id in (0..ROWS).step_by(5) {
            assert!(db.run(|txn| txn.delete(&table, &[id.into()])).expect("no other transaction runs"));
        }
        let_collect(&db, &pulse, Duration::from_millis(150));
        println!("{:?}", db.stats().collector);
        drop((table, pulse));
        home.kill(db, Vec::new());
        let db = home.open();
        let table = db.table("rows").expect("the table");
        let txn = db.begin_read().expect("a transaction");
        let ids: Vec<u64> = txn
            .scan(&table, Range::all())
            .and_then(|rows| rows.map(|row| row?.get(0)).collect())
            .expect("no conflict");
        assert!(ids.into_iter().eq((0..ROWS).filter(|id| id % 5 > 0)), "a deleted row is back");
    }
}
