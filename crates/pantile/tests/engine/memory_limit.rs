//! `Options::memory_limit`: what is refused at the limit, and what goes on.

use std::sync::Arc;

use pantile::{Database, Error, Medium, Options, Table, TableDef, Type, Value};
use pantile_testkit::{exact_memory, fails};

const LIMIT: u64 = 12 << 20;

fn options(medium: &Arc<dyn Medium>, limit: u64) -> Options {
    Options::new().on_medium(Arc::clone(medium)).worker(false).memory_limit(limit)
}

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(20_000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn insert(db: &Database, table: &Table, ids: std::ops::Range<u64>) -> pantile::Result<()> {
    let mut txn = db.begin()?;
    for id in ids {
        txn.insert(table, &[id.into(), Value::Bytes(b"x")])?;
    }
    txn.commit().map(|_| ())
}

/// Adds rows until there is no memory for more. Returns their number.
fn fill(db: &Database, table: &Table) -> (u64, Error) {
    let (mut rows, mut step) = (0, 500);
    loop {
        match insert(db, table, rows..rows + step) {
            Ok(()) => rows += step,
            // There may still be room for a smaller transaction.
            Err(_) if step > 1 => step = 1,
            Err(error) => return (rows, error),
        }
        assert!(rows < 10_000_000, "the limit is never reached");
    }
}

#[test]
fn at_the_limit_rows_can_be_read_changed_and_deleted_but_not_added() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    let (rows, error) = fill(&db, &table);
    assert!(rows > 10_000, "{rows} rows");
    let Error::MemoryFull(taken) = &error else { panic!("{error}") };
    assert!(taken.indexes > taken.anchors && taken.anchors >= rows * 8, "{taken:?}");
    let text = error.to_string();
    for part in ["12.6 MB", "by indexes", "changed nothing", "deletes", "memory_limit"] {
        assert!(text.contains(part), "{text}");
    }
    let stats = db.stats();
    assert!(stats.dram_bytes <= LIMIT, "{} of {LIMIT}", stats.dram_bytes);

    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.get_many(&table, &[[Value::UInt(0)], [Value::UInt(rows)]]).expect("get").len(), 2);
    drop(txn);
    db.run(|txn| txn.update(&table, &[0u64.into()], &[(1, Value::Bytes(b"y"))])).expect("update");
    // What was given up meanwhile makes room for a few rows.
    let added = (0..1000).find(|n| insert(&db, &table, rows + n..rows + n + 1).is_err());
    let rows = rows + added.expect("rows are still refused");
    assert!(db.stats().dram_bytes <= LIMIT);
    for first in (0..rows / 2 - 500).step_by(500) {
        db.run(|txn| (first..first + 500).try_for_each(|id| txn.delete(&table, &[id.into()]).map(|_| ())))
            .expect("delete");
    }
    // The cleaner takes the entries away.
    for _ in 0..1000 {
        db.upkeep();
    }
    insert(&db, &table, rows..rows + 500).expect("there is memory again");
}

#[test]
fn a_large_transaction_ends_before_its_buffers_outgrow_the_limit() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    let mut txn = db.begin().expect("begin");
    let mut put = |id: u64| txn.insert(&table, &[id.into(), Value::Bytes(&[1; 10_000])]);
    let (rows, error) = (0..).find_map(|id| put(id).err().map(|error| (id, error))).expect("an error");
    fails!(Err::<(), _>(error), Error::MemoryFull(_), "by buffers", "smaller steps");
    assert!(rows > 100 && db.stats().dram_bytes <= LIMIT, "{rows} rows, {}", db.stats().dram_bytes);
    txn.commit().expect("what it has written can be committed");
    let txn = db.begin_read().expect("begin");
    assert!(txn.get(&table, &[(rows - 1).into()]).expect("get").is_some());
    assert!(txn.get(&table, &[rows.into()]).expect("get").is_none());
}

#[test]
fn a_database_beyond_the_limit_is_opened_and_can_shrink() {
    let medium = exact_memory();
    let db = options(&medium, 4 * LIMIT).open("unused").expect("open");
    let (rows, _) = fill(&db, &table(&db));
    db.close().expect("close");
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = db.table("t").expect("table");
    fails!(insert(&db, &table, rows..rows + 1), Error::MemoryFull(_), "12.6 MB");
    let changed = db.run(|txn| txn.update(&table, &[0u64.into()], &[(1, Value::Bytes(b"y"))]));
    fails!(changed, Error::MemoryFull(_), "12.6 MB");
    assert!(db.run(|txn| txn.delete(&table, &[0u64.into()])).expect("delete"));
    assert!(db.begin_read().expect("begin").get(&table, &[1u64.into()]).expect("get").is_some());
}

#[test]
fn an_index_that_does_not_fit_is_not_made() {
    let medium = exact_memory();
    let db = options(&medium, LIMIT).open("unused").expect("open");
    let table = table(&db);
    let (rows, _) = fill(&db, &table);
    let made = db.create_index(&table, pantile::IndexDef::new("second", ["id"]));
    fails!(made, Error::MemoryFull(_), "by indexes");
    assert!(db.stats().dram_bytes <= LIMIT + LIMIT / 8, "{}", db.stats().dram_bytes);
    assert!(db.run(|txn| txn.delete(&table, &[(rows - 1).into()])).expect("delete"));
}

#[test]
fn limits_below_the_least_are_refused() {
    let opened = options(&exact_memory(), 1 << 20).open("unused");
    fails!(opened, Error::InvalidOption(_), "memory_limit is 1048576", "from 8388608");
}
