//! When something runs out: space, slots, patience. Tests of full disks are in
//! `tests/processes`.

use std::ops::ControlFlow;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::tools::{CheckOptions, salvage};
use pantile::{
    Conflict, ConflictPolicy, Database, Error, IndexDef, Isolation, MediumKind, Options, Range, Table,
    TableDef, TransactionOptions, Type, Value,
};
use pantile_testkit::{ScratchDir, await_that, fails};

use crate::waiting::{sleeping, sleeps};

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
fn a_medium_without_room() {
    let place = ScratchDir::new();
    let db = Options::new().max_bytes(CHUNK).open(place.path()).expect("room for itself and a little");
    let def = |n: u64| TableDef::new(format!("t{n}")).column("id", Type::U8).primary_key(["id"]);
    let put = |n: u64| {
        let table = db.create_table(def(n))?;
        db.run(|txn| txn.insert(&table, &[1u8.into()]))
    };
    let full = (0..200).map(put).find(Result::is_err).expect("a table takes a block");
    fails!(full, Error::StorageFull { .. }, "are allowed", "raise the limit or delete rows");
}

/// Emptying a table writes its definition anew, and is how space comes back.
#[test]
fn a_table_can_be_emptied_and_an_index_dropped_where_there_is_no_room() {
    let place = ScratchDir::new();
    let db = Options::new().max_bytes(4 * CHUNK).open(place.path()).expect("open");
    let table = table(&db);
    db.create_index(&table, IndexDef::new("second", ["id"])).expect("create");
    for size in [100_000, 1_000, 10] {
        let data = vec![7; size];
        let put = |id: &u64| db.run(|txn| txn.insert(&table, &[(*id).into(), Value::Bytes(&data)]));
        let first = size as u64 * 1_000;
        let full = (first..first + 200_000).map(|id| put(&id)).find(Result::is_err).expect("it is full");
        fails!(full, Error::StorageFull { .. }, "raise the limit or delete rows");
    }
    db.drop_index(&table, "second").expect("its definition finds room");
    let table = db.truncate_table(&table).expect("its definition finds room");
    assert_eq!(ids(&db, &table), [0; 0]);
    await_that("space comes back", || {
        db.run(|txn| txn.insert(&table, &[1u64.into(), Value::Bytes(b"x")])).is_ok()
    });
}

/// Where a copy goes there are no rows to delete.
#[test]
fn a_copy_without_room() {
    let place = ScratchDir::new();
    let db = Options::new().open(place.path()).expect("open");
    let from = table(&db);
    let data = vec![7; 400_000];
    db.run(|txn| (0..20u64).try_for_each(|id| txn.insert(&from, &[id.into(), Value::Bytes(&data)])))
        .expect("rows");
    drop(from);
    db.close().expect("close");
    let found = salvage(place.path(), &CheckOptions::new()).expect("a sound database");
    let new = Options::new().medium(MediumKind::Dram).max_bytes(2 * CHUNK).open("unused").expect("open");
    let full = found.copy_into(&new, &|_, _| ControlFlow::Continue(())).expect_err("8 MB of rows");
    assert!(!full.to_string().contains("delete"), "{full}");
    fails!(Err::<(), _>(full), Error::StorageFull { .. }, "are allowed", "raise the limit)");
}

#[test]
fn transaction_slots_run_out_and_come_back() {
    let options = Options::new().medium(MediumKind::Dram).begin_wait(Duration::from_millis(2));
    let db = options.open("unused").expect("open");
    let table = table(&db);
    let mut open: Vec<_> = (0..960).map(|_| db.begin().expect("a slot")).collect();
    let full = "none came free within 2ms; it did not begin; end others sooner";
    fails!(db.begin(), Error::TooManyTransactions { limit: 960, .. }, "960", full);
    let mut readers: Vec<_> = (960..1024).map(|_| db.begin_read().expect("a slot")).collect();
    fails!(db.begin_read(), Error::TooManyTransactions { limit: 1024, .. }, "1024", full);
    fails!(db.begin_safe_snapshot(), Error::TooManyTransactions { .. }, "1024");
    let def = TableDef::new("u").column("id", Type::U8).primary_key(["id"]);
    fails!(db.create_table(def.clone()), Error::TooManyTransactions { .. }, "960");
    readers.pop().expect("a transaction").commit().expect("commit");
    fails!(db.begin(), Error::TooManyTransactions { .. }, "960");
    assert_eq!(db.tables(), ["t"]);
    let mut last = open.pop().expect("a transaction");
    last.insert(&table, &[1u64.into(), Value::Bytes(&[])]).expect("insert");
    last.commit().expect("commit");
    db.create_table(def).expect("a slot is free");
    drop((open, readers));
    assert_eq!(db.stats().running, 0);
    assert_eq!(ids(&db, &table), [1]);
}

/// Forgotten writers, however many, keep nobody from reading.
#[test]
fn writers_leave_slots_to_readers() {
    let options = Options::new().medium(MediumKind::Dram).begin_wait(Duration::ZERO);
    let db = options.open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| txn.insert(&table, &[1u64.into(), Value::Bytes(&[])])).expect("insert");
    let mut open = Vec::new();
    while let Ok(mut txn) = db.begin() {
        let row = [(open.len() as u64 + 2).into(), Value::Bytes(&[])];
        txn.insert(&table, &row).expect("insert");
        open.push(txn);
    }
    assert_eq!(ids(&db, &table), [1]);
    drop(db.begin_safe_snapshot().expect("a slot"));
    let by_statement = TransactionOptions::new().isolation(Isolation::ReadCommitted).read_only(true);
    drop(db.begin_with(by_statement).expect("a slot"));
}

/// More threads than slots: each gets its turn.
#[test]
fn beginning_waits_for_a_slot() {
    let db = Options::new().medium(MediumKind::Dram).begin_wait(Duration::MAX).open("unused").expect("open");
    let table = table(&db);
    let open: Vec<_> = (0..1024).map(|_| db.begin_safe_snapshot().expect("a slot")).collect();
    let work = |id: u64| {
        let row = [id.into(), Value::Bytes(&[])];
        db.run(|txn| txn.insert(&table, &row)).expect("a slot");
    };
    let work = &work;
    const WAITER: &str = "waits-for-slot";
    std::thread::scope(|scope| {
        let start =
            |id| std::thread::Builder::new().name(WAITER.into()).spawn_scoped(scope, move || work(id));
        let waiting: Vec<_> = (0..30).map(|id| start(id).expect("a thread")).collect();
        let is_any_over = || waiting.iter().any(|thread| thread.is_finished());
        await_that("all of them wait", || sleeping(WAITER) >= waiting.len() || is_any_over());
        assert!(!is_any_over(), "all slots are taken");
        drop(open);
    });
    assert_eq!(ids(&db, &table).len(), 30);
}

/// The row stays locked, and no time passes but that of the pauses.
#[test]
fn run_tries_for_a_time_and_pauses() {
    for limit in [Duration::from_secs(30), Duration::from_millis(40), Duration::ZERO] {
        let time = SimulatedTime::default();
        let options =
            Options::new().medium(MediumKind::Dram).conflict(ConflictPolicy::Abort).retry_for(limit);
        let db = options.simulated_time(time.clone()).open("unused").expect("open");
        let table = table(&db);
        let row = [1u64.into(), Value::Bytes(&[])];
        db.run(|txn| txn.insert(&table, &row)).expect("insert");
        let mut holder = db.begin().expect("begin");
        holder.upsert(&table, &row).expect("the lock");
        let (before, mut tries) = (time.now(), 0u32);
        let outcome = db.run(|txn| {
            tries += 1;
            txn.upsert(&table, &row)
        });
        fails!(outcome, Error::Conflict { .. }, "locked");
        let spent = time.now() - before;
        assert!(spent >= limit && spent < limit + Duration::from_millis(50), "{spent:?}");
        // A pause is at least a quarter of a millisecond in the mean, but for the first few.
        assert!(u128::from(tries) <= 10 + limit.as_micros() / 250, "{tries} tries in {limit:?}");
    }
}

/// It waits out a transaction that takes far longer than a thousand tries did.
#[test]
fn run_outlasts_a_lock() {
    let db = Options::new().medium(MediumKind::Dram).conflict(ConflictPolicy::Abort);
    let db = db.retry_for(Duration::MAX).open("unused").expect("open");
    let table = table(&db);
    let row = [1u64.into(), Value::Bytes(&[])];
    db.run(|txn| txn.insert(&table, &row)).expect("insert");
    let mut holder = db.begin().expect("begin");
    holder.upsert(&table, &row).expect("the lock");
    let tries = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            db.run(|txn| {
                tries.fetch_add(1, Ordering::Relaxed);
                txn.upsert(&table, &row)
            })
        });
        await_that("it has tried many times", || tries.load(Ordering::Relaxed) > 60);
        holder.commit().expect("commit");
        assert!(waiter.join().expect("no panic").expect("in the end"));
    });
}

/// No clock can say when such a wait is over.
#[test]
fn a_wait_without_end_ends_with_the_lock() {
    let db = Options::new().medium(MediumKind::Dram).conflict(ConflictPolicy::Wait(Duration::MAX));
    let db = db.open("unused").expect("open");
    let table = table(&db);
    let row = [1u64.into(), Value::Bytes(&[])];
    db.run(|txn| txn.insert(&table, &row)).expect("insert");
    let mut holder = db.begin().expect("begin");
    holder.upsert(&table, &row).expect("the lock");
    const WAITER: &str = "waits-for-ever";
    std::thread::scope(|scope| {
        // One that only reads would go past the holder.
        let waiter = std::thread::Builder::new().name(WAITER.into());
        let waiter = waiter.spawn_scoped(scope, || db.run(|txn| txn.upsert(&table, &row)));
        let waiter = waiter.expect("a thread");
        await_that("it waits", || sleeps(WAITER));
        holder.commit().expect("commit");
        assert!(waiter.join().expect("no panic").expect("in the end"));
    });
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
    assert_eq!(outcomes.iter().filter(|outcome| is_deadlock(outcome)).count(), 1, "{outcomes:?}");
    assert!(outcomes.iter().any(Result::is_ok), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| outcome.is_ok() || is_deadlock(outcome)), "{outcomes:?}");
    let of = |error: &Error| error.to_string().contains("cycle") && error.is_retryable();
    assert!(outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).all(of));
}

/// A large transaction that is refused has opened blocks, which take no space
/// from others.
#[test]
fn a_refused_commit_leaves_its_space_to_others() {
    let options = Options::new().medium(MediumKind::Dram).max_bytes(16 << 20).worker(false);
    let db = options.open("unused").expect("open");
    let table = |name: &str| {
        let def = TableDef::new(name).column("id", Type::U64).column("data", Type::Bytes(3_000));
        db.create_table(def.primary_key(["id"])).expect("create")
    };
    let (large, other) = (table("large"), table("other"));
    let mut txn = db.begin().expect("begin");
    for id in 0..250_000u64 {
        txn.insert(&large, &[id.into(), Value::Bytes(&[7; 60])]).expect("private until the commit");
    }
    fails!(txn.commit(), Error::StorageFull { .. }, "left no trace");
    for id in 0..2_000u64 {
        let row = [id.into(), Value::Bytes(&[7; 2_900])];
        db.run(|txn| txn.insert(&other, &row)).expect("6 MB of 16");
    }
    let spaces = db.space_by_table();
    assert!(spaces.iter().all(|of| of.table != "large"), "{spaces:?}");
}
