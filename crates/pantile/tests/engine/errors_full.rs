//! When something runs out: space, slots, patience. Tests of full disks are in
//! `tests/processes`.

use std::sync::Barrier;
use std::time::Duration;

use pantile::{
    Conflict, ConflictPolicy, Database, Error, Isolation, MediumKind, Options, Range, Table, TableDef,
    TransactionOptions, Type, Value,
};
use pantile_testkit::{ScratchDir, fails};

const CHUNK: u64 = 2 << 20;

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(400_000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

#[test]
fn a_directory_on_a_full_device() {
    let db = Options::new().max_bytes(CHUNK - 1).open(ScratchDir::new().path());
    fails!(db, Error::StorageFull { .. }, "0 are allowed", "raise the limit");
}

#[test]
fn transaction_slots_run_out_and_come_back() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = table(&db);
    let mut open: Vec<_> = (0..1024).map(|_| db.begin().expect("a slot")).collect();
    fails!(db.begin(), Error::TooManyTransactions { limit: 1024 }, "1024", "try again");
    fails!(db.begin_safe_snapshot(), Error::TooManyTransactions { .. }, "1024");
    let def = TableDef::new("u").column("id", Type::U8).primary_key(["id"]);
    fails!(db.create_table(def.clone()), Error::TooManyTransactions { .. }, "1024");
    assert_eq!(db.tables(), ["t"]);
    let mut last = open.pop().expect("a transaction");
    last.insert(&table, &[1u64.into(), Value::Bytes(&[])]).expect("insert");
    last.commit().expect("commit");
    db.create_table(def).expect("a slot is free");
    drop(open);
    assert_eq!(db.stats().running, 0);
    assert_eq!(ids(&db, &table), [1]);
}

#[test]
fn a_circle_of_waiting_transactions_is_broken() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| (0..2u64).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&[])])))
        .expect("fill");
    let both_hold_one = Barrier::new(2);
    let cross = |first: u64| {
        let patience = ConflictPolicy::Wait(Duration::from_secs(600));
        let options = TransactionOptions::new().isolation(Isolation::ReadCommitted).conflict(patience);
        let mut txn = db.begin_with(options).expect("begin");
        let change = [(1, Value::Bytes(b"x"))];
        txn.update(&table, &[first.into()], &change).expect("the first");
        both_hold_one.wait();
        txn.update(&table, &[(1 - first).into()], &change)?;
        txn.commit()
    };
    let outcomes = std::thread::scope(|scope| {
        let other = scope.spawn(|| cross(1));
        [cross(0), other.join().expect("no panic")]
    });
    let is_deadlock = |outcome: &pantile::Result<_>| {
        matches!(outcome, Err(Error::Conflict { conflict: Conflict::Deadlock, .. }))
    };
    assert!(outcomes.iter().any(is_deadlock), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| outcome.is_ok() || is_deadlock(outcome)), "{outcomes:?}");
    let of = |error: &Error| error.to_string().contains("cycle") && error.is_retryable();
    assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(of));
}
