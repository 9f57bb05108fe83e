//! When something runs out: space, slots, patience.
//!
//! A limit on the sizes of files stands in for a full disk. It holds for a
//! process, so that test runs in one of its own.

mod crash_support;

use crash_support::open_soon;

use std::process::Command;
use std::sync::Barrier;
use std::time::Duration;

use pantile::{
    Conflict, ConflictPolicy, Database, Durability, Error, Isolation, MediumKind, Options, Range, Table,
    TableDef, TransactionOptions, Type, Value,
};
use pantile_nvm::NvmConfig;

const CHUNK: u64 = 2 << 20;
const LIMITED: &str = "PANTILE_TEST_LIMITED";

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(400_000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

/// Fills a database until a commit is refused, and sees that nothing of it is
/// left, that reads and small commits go on, and that all is there afterwards.
fn fill(open: impl Fn() -> Database) {
    let db = open();
    let table = table(&db);
    let small = |id: u64| db.run(|txn| txn.insert(&table, &[id.into(), Value::Bytes(b"small")]));
    small(0).expect("room");
    // Tombstones are a size of their own, which needs a block of its own.
    small(1).expect("room");
    assert!(db.run(|txn| txn.delete(&table, &[1u64.into()])).expect("room"));
    let data = vec![7; 30_000];
    let mut expected = vec![0];
    let refused = (1u64..10_000).step_by(10).find_map(|first| {
        let outcome = db.run(|txn| {
            (first..first + 10).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&data)]))
        });
        match outcome {
            Ok(()) => {
                expected.extend(first..first + 10);
                None
            }
            Err(error) => Some(error),
        }
    });
    let error = refused.expect("full at last");
    fails!(Err::<(), _>(error), Error::StorageFull { .. }, "no room", "left no trace", "reads go on");
    let before = ids(&db, &table);
    assert_eq!(before, expected, "the refused commit left a trace");
    // Rows, deletions and updates of a size for which a block is open still fit.
    for id in 20_000..20_100 {
        small(id).expect("small commits go on");
        expected.push(id);
    }
    assert!(db.run(|txn| txn.delete(&table, &[20_000u64.into()])).expect("deletions go on"));
    expected.retain(|&id| id != 20_000);
    let mut txn = db.begin().expect("begin");
    let huge = vec![1; 300_000];
    txn.insert(&table, &[50_000u64.into(), Value::Bytes(&huge)]).expect("private until the commit");
    fails!(txn.commit(), Error::StorageFull { .. }, "left no trace");
    assert_eq!(ids(&db, &table), expected);
    if db.medium().facts().survives_exit {
        db.close().expect("closing needs no room");
        drop(table);
        let db = open();
        assert_eq!(ids(&db, &db.table("t").expect("table")), expected);
    }
}

#[test]
fn a_limit_that_is_reached() {
    let limit = 6 * CHUNK;
    fill(|| Options::new().medium(MediumKind::Dram).max_bytes(limit).open("unused").expect("open"));
    for options in [
        Options::new(),
        Options::new().durability(Durability::None),
        Options::new().custom_medium(NvmConfig::E),
    ] {
        let place = tempfile::tempdir().expect("directory");
        let options = options.max_bytes(limit);
        fill(|| open_soon(&options, place.path()).expect("open"));
    }
}

/// Does nothing unless it is started under a limit on the sizes of files.
#[test]
fn full_disk() {
    if std::env::var_os(LIMITED).is_none() {
        return;
    }
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        let place = tempfile::tempdir().expect("directory");
        let options = Options::new().durability(durability);
        fill(|| open_soon(&options, place.path()).expect("open"));
    }
}

#[test]
fn a_disk_that_is_full() {
    // In blocks of 512 bytes; with the signal ignored the system returns an error.
    let limited = format!("ulimit -f {} && trap '' XFSZ && exec \"$0\" --exact full_disk", 8 * CHUNK / 512);
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(limited).arg(std::env::current_exe().expect("this binary")).env(LIMITED, "1");
    let output = shell.output().expect("run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "{text}");
}

#[test]
fn a_directory_on_a_full_device() {
    let db = Options::new().max_bytes(CHUNK - 1).open(tempfile::tempdir().expect("directory").path());
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
        let patience = ConflictPolicy::Wait(Duration::from_secs(20));
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
