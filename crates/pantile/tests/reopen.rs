//! Timestamps go on after a database is opened again.

mod support;

use pantile::{Durability, Range, TableDef, Timestamp, Type};
use support::{Bed, Home, LEVELS, abort_at};

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
                txn.insert(&table, &[begun.get().into()]).expect("nobody has it");
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
