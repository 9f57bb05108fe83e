//! What loops within one transaction keep, counted.

use super::*;
use crate::{
    Database, Isolation, MediumKind, Options, Range, Table, TableDef, TransactionOptions, Type, Value,
};

/// What the buffers of a transaction may take when they are as good as empty, and what
/// the cells of new anchors may take beside.
const SMALL: u64 = 64 << 10;

fn table() -> (Database, Table) {
    // Without a worker nothing is cleaned meanwhile.
    let db = Options::new().medium(MediumKind::Dram).worker(false).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1 << 20));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    (db, table)
}

/// Asserts that many more turns take no more memory.
fn assert_bounded(db: &Database, turns: u64, mut turn: impl FnMut(u64)) {
    (0..turns).for_each(&mut turn);
    let before = db.stats().dram_bytes;
    (turns..20 * turns).for_each(&mut turn);
    let after = db.stats().dram_bytes;
    assert!(after <= before + SMALL, "{before} bytes, and {after} after {} more turns", 19 * turns);
}

#[test]
fn what_is_taken_back_again_and_again_takes_no_memory() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let (db, table) = table();
        let mut txn = db.begin_with(TransactionOptions::new().isolation(isolation)).expect("begin");
        assert_bounded(&db, 1_000, |turn| {
            let savepoint = txn.savepoint();
            // What a serializable transaction has learned of many keys it must keep.
            let id = if isolation == Isolation::Serializable { turn % 10 } else { turn };
            txn.insert(&table, &[id.into(), Value::Bytes(b"x")]).expect("insert");
            txn.rollback_to(savepoint).expect("known");
        });
        txn.insert(&table, &[7u64.into(), Value::Bytes(b"y")]).expect("insert");
        txn.commit().expect("commit");
        assert_eq!(db.begin_read().expect("begin").count(&table, Range::all()).expect("count"), 1);
    }
}

#[test]
fn savepoints_of_one_state_are_one_and_end_one_by_one() {
    let (db, table) = table();
    let mut txn = db.begin().expect("begin");
    let savepoints: Vec<_> = (0..100).map(|_| txn.savepoint()).collect();
    assert_eq!(txn.buffers.savepoints.len(), 1);
    txn.insert(&table, &[1u64.into(), Value::Bytes(b"x")]).expect("insert");
    txn.rollback_to(savepoints[50]).expect("known");
    assert!(txn.rollback_to(savepoints[51]).is_err());
    let later = txn.savepoint();
    txn.release(savepoints[50]);
    assert!(txn.rollback_to(savepoints[50]).is_err() && txn.rollback_to(later).is_err());
    txn.rollback_to(savepoints[49]).expect("known");
    txn.release(savepoints[0]);
    assert!(txn.buffers.savepoints.is_empty() && txn.rollback_to(savepoints[0]).is_err());
}

#[test]
fn a_value_out_of_line_that_is_written_again_and_again_takes_its_own_size() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let (db, table) = table();
        let mut txn = db.begin_with(TransactionOptions::new().isolation(isolation)).expect("begin");
        let mut data = vec![0; 150_000];
        assert_bounded(&db, 40, |turn| {
            data.fill(turn as u8);
            txn.upsert(&table, &[1u64.into(), Value::Bytes(&data)]).expect("upsert");
        });
        txn.squeeze();
        assert!(txn.buffers.writes.len() <= 4, "{}", txn.buffers.writes.len());
        for (n, write) in (0..).zip(&txn.buffers.writes) {
            let table = txn.buffers.tables[write.table as usize].table.id;
            assert_eq!(txn.buffers.write_of(table, write.tuple), Some(n));
        }
        txn.commit().expect("commit");
        let txn = db.begin_read().expect("begin");
        let row = txn.get(&table, &[1u64.into()]).expect("read").expect("a row");
        assert_eq!(row.get::<Vec<u8>>(1).expect("the last value"), data);
    }
}

/// Deleted pieces that a savepoint brings back stay.
#[test]
fn a_value_out_of_line_comes_back_with_its_savepoint() {
    let (db, table) = table();
    let mut txn = db.begin().expect("begin");
    let put = |txn: &mut Transaction, byte: u8| {
        txn.upsert(&table, &[1u64.into(), Value::Bytes(&[byte; 100_000])]).expect("upsert");
    };
    put(&mut txn, 1);
    let savepoint = txn.savepoint();
    (2..6).for_each(|byte| put(&mut txn, byte));
    txn.squeeze();
    txn.rollback_to(savepoint).expect("known");
    let row = txn.get(&table, &[1u64.into()]).expect("read").expect("a row");
    assert_eq!(row.get::<Vec<u8>>(1).expect("the first value"), [1; 100_000]);
    txn.commit().expect("commit");
}

/// A transaction that may have found an id, or a cursor of the same one, must not find
/// another row there.
#[test]
fn ids_wait_for_those_who_may_know_them() {
    for with_cursor in [false, true] {
        let (db, table) = table();
        let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
        let other = (!with_cursor).then(|| db.begin_read().expect("begin"));
        let _cursor = with_cursor.then(|| txn.cursor(&table, Range::all()).expect("a cursor"));
        let before = table.inner.tuples_end();
        for id in 0..1_000u64 {
            let savepoint = txn.savepoint();
            txn.insert(&table, &[id.into(), Value::Bytes(b"x")]).expect("insert");
            txn.rollback_to(savepoint).expect("known");
        }
        assert!(txn.buffers.freed.len() >= 1_000, "{}", txn.buffers.freed.len());
        assert!(table.inner.tuples_end() >= before + 1_000 - 64);
        drop(other);
    }
}
