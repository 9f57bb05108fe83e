//! Commits that are visible before they are durable.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use pantile::lab::SimulatedTime;
use pantile::{
    Database, Error, InFlight, IndexDef, Options, Range, Table, TableDef, Transaction, Type, Value,
};
use pantile_media::Medium;
use pantile_testkit::cut::{CutKind, CutMedium, Image, Keep};
use pantile_testkit::{Fault, FaultMedium, How, Operation};

/// Without threads of its own, so that nothing is durable before someone waits.
fn open(medium: Arc<dyn Medium>) -> Database {
    let options = Options::new().on_medium(medium).streams(2).simulated_time(SimulatedTime::default());
    options.open("unused").expect("open")
}

fn fresh() -> (Arc<CutMedium>, Database, Table) {
    let medium = CutMedium::new(&Image::default(), CutKind::File, None);
    let db = open(Arc::<CutMedium>::clone(&medium));
    let table = table_of(&db);
    (medium, db, table)
}

fn table_of(db: &Database) -> Table {
    let def =
        TableDef::new("t").column("id", Type::U64).column("n", Type::U64).column("data", Type::Bytes(900));
    db.create_table(def.primary_key(["id"]).index(IndexDef::unique("by_n", ["n"]))).expect("create")
}

fn put(txn: &mut Transaction, table: &Table, id: u64, n: u64) {
    // Each row has sectors of its own.
    txn.upsert(table, &[id.into(), n.into(), Value::Bytes(&[1; 900])]).expect("upsert");
}

fn publish(db: &Database, table: &Table, id: u64, n: u64) -> InFlight {
    let mut txn = db.begin().expect("begin");
    put(&mut txn, table, id, n);
    txn.publish().expect("publish")
}

fn commit<const ROWS: usize>(db: &Database, table: &Table, rows: [(u64, u64); ROWS]) {
    let put_all = |txn: &mut Transaction| {
        rows.iter().for_each(|&(id, n)| put(txn, table, id, n));
        Ok::<_, Error>(())
    };
    db.run(put_all).expect("commit");
}

fn n(txn: &Transaction, table: &Table, id: u64) -> Option<u64> {
    txn.get(table, &[id.into()]).expect("get").map(|row| row.get(1).expect("n"))
}

/// The rows that are there after a power cut now.
fn after_cut(medium: &CutMedium, keep: Keep, choice: u64) -> Vec<(u64, u64)> {
    let db = open(medium.after_cut(medium.events(), keep, choice));
    let Ok(table) = db.table("t") else { return Vec::new() };
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(&table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| Ok((row.get(0)?, row.get(1)?))).expect("a row")).collect()
}

/// Others go on elsewhere by what it has read, and it leaves no record that says on what it depends.
#[test]
fn what_a_transaction_has_read_that_is_prepared_and_changes_nothing_is_durable() {
    let (medium, db, table) = fresh();
    let flight = publish(&db, &table, 1, 10);
    let mut txn = db.begin().expect("begin");
    assert_eq!(n(&txn, &table, 1), Some(10));
    txn.get_for_update(&table, &[1u64.into()]).expect("a lock");
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), []);
    let prepared = db.prepare(txn, b"elsewhere").expect("prepare");
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [(1, 10)]);
    assert!(flight.is_over());
    prepared.rollback().expect("rollback");
}

#[test]
fn what_a_reader_is_told_is_durable() {
    let (medium, db, table) = fresh();
    let flight = publish(&db, &table, 1, 10);
    assert!(!flight.is_over());
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), []);
    let reader = db.begin_read().expect("begin");
    assert_eq!(n(&reader, &table, 1), Some(10));
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [(1, 10)]);
    assert!(flight.is_over());
    // It has been told, and asks again.
    assert_eq!(n(&reader, &table, 1), Some(10));
    assert!(flight.wait().expect("durable") < reader.timestamp());
}

#[test]
fn what_has_been_read_is_durable_with_the_commit() {
    let (medium, db, table) = fresh();
    let flight = publish(&db, &table, 1, 10);
    let other = db.begin().expect("begin");
    assert_eq!(n(&other, &table, 1), Some(10));
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [], "one that may write goes on");
    other.commit().expect("commit");
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [(1, 10)]);
    flight.wait().expect("durable");
}

/// Nothing of its own has to become durable.
#[test]
fn a_commit_that_has_only_locked_rows_waits_for_what_it_has_read() {
    let (medium, db, table) = fresh();
    commit(&db, &table, [(1, 10)]);
    let lock = || {
        let mut txn = db.begin().expect("begin");
        assert!(txn.get_for_update(&table, &[1.into()]).expect("nobody has it").is_some());
        txn.publish().expect("publish")
    };
    let before = medium.events();
    let free = lock();
    assert!(free.is_over());
    free.wait().expect("durable");
    assert_eq!(medium.events(), before, "it wrote and synced nothing");
    let flight = publish(&db, &table, 1, 11);
    let locked = lock();
    assert!(!locked.is_over());
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [(1, 10)]);
    locked.wait().expect("durable");
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [(1, 11)]);
    flight.wait().expect("durable");
}

#[test]
fn a_transaction_goes_with_the_one_on_which_it_depends() {
    let (medium, db, table) = fresh();
    let mut flights = Vec::new();
    for (id, reads) in [(1, None), (2, Some(1)), (3, None)] {
        let mut txn = db.begin().expect("begin");
        if let Some(other) = reads {
            assert!(n(&txn, &table, other).is_some());
        }
        put(&mut txn, &table, id, id);
        flights.push(txn.publish().expect("publish"));
    }
    let ids = |choice| after_cut(&medium, Keep::Sectors, choice).into_iter().map(|(id, _)| id);
    let left: std::collections::BTreeSet<Vec<u64>> = (0..400).map(|choice| ids(choice).collect()).collect();
    assert!(left.iter().all(|ids| !ids.contains(&2) || ids.contains(&1)), "{left:?}");
    // Of those that do not depend on each other any may be lost.
    assert!(left.contains(&vec![1]) && left.contains(&vec![3]), "{left:?}");
    assert_eq!(after_cut(&medium, Keep::All, 0).len(), 3);
    for flight in flights {
        flight.wait().expect("durable");
    }
    assert_eq!(ids(0).collect::<Vec<_>>(), [1, 2, 3]);
    drop(db);
}

/// A commit counts what it has changed when it ends, and its table may have gone before.
#[test]
fn gauges_forget_rows_of_commits_in_flight() {
    let (_medium, db, table) = fresh();
    let empty = db.stats();
    commit(&db, &table, [1, 2, 3, 4, 5, 6, 7, 8].map(|id| (id, id)));
    let flights = [publish(&db, &table, 9, 9), publish(&db, &table, 1, 10)];
    let table = db.truncate_table(&table).expect("truncate");
    for flight in flights {
        flight.wait().expect("durable");
    }
    db.upkeep();
    let stats = db.stats();
    assert_eq!((stats.tuples, stats.live_bytes), (empty.tuples, empty.live_bytes));
    drop(publish(&db, &table, 1, 1));
    assert_eq!(db.stats().tuples, empty.tuples + 1);
}

#[test]
fn a_unique_key_that_is_given_up_in_flight_is_never_there_twice() {
    let (medium, db, table) = fresh();
    commit(&db, &table, [(1, 10)]);
    let first = publish(&db, &table, 1, 11);
    let second = publish(&db, &table, 2, 10);
    for choice in 0..400 {
        let rows = after_cut(&medium, Keep::Sectors, choice);
        let expected: [&[(u64, u64)]; 3] = [&[(1, 10)], &[(1, 11)], &[(1, 11), (2, 10)]];
        assert!(expected.contains(&&rows[..]), "{rows:?}");
    }
    second.wait().expect("durable");
    assert!(first.is_over());
    first.wait().expect("durable");
    assert_eq!(after_cut(&medium, Keep::Nothing, 0), [(1, 11), (2, 10)]);
}

/// What is visible cannot be taken back, so nobody is told of it any more.
#[test]
fn a_failed_sync_fails_those_in_flight_and_who_reads_them() {
    let medium = FaultMedium::of_kind(CutKind::File, &Image::default(), None);
    let db = open(Arc::<FaultMedium>::clone(&medium));
    let table = table_of(&db);
    commit(&db, &table, [(1, 1), (2, 2)]);
    let mut flight = publish(&db, &table, 1, 10);
    medium.fail("the device does not answer");
    let failed = |error: Error| matches!(error, Error::MediumFailed { .. });
    let Poll::Ready(polled) = pin!(&mut flight).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("without a thread it waits")
    };
    assert!(failed(polled.expect_err("not durable")));
    assert!(failed(flight.wait().expect_err("not durable when asked again")));
    let reader = db.begin_read().expect("begin");
    assert!(failed(reader.get(&table, &[1u64.into()]).expect_err("not durable")));
    assert_eq!(n(&reader, &table, 2), Some(2));
    let other = db.begin().expect("begin");
    assert_eq!(n(&other, &table, 1), Some(10));
    assert!(failed(other.commit().expect_err("not durable")));
    assert_eq!(db.transactions().len(), 1, "those that failed have ended");
}

/// The sync for the commit, and not for its descriptor alone, fails.
#[test]
fn a_sync_that_fails_in_the_middle_is_told() {
    let fault = Fault { operation: Operation::Sync, nth: 16, how: How::ForGood };
    let medium = FaultMedium::of_kind(CutKind::File, &Image::default(), Some(fault));
    let db = open(Arc::<FaultMedium>::clone(&medium));
    let table = table_of(&db);
    let mut acknowledged = 0;
    for id in 0..20 {
        let mut txn = db.begin().expect("begin");
        put(&mut txn, &table, id, id);
        match txn.publish().and_then(|flight| flight.wait()) {
            Ok(_) => acknowledged += 1,
            Err(error) => {
                assert!(matches!(error, Error::MediumFailed { .. }), "{error}");
                break;
            }
        }
    }
    assert!(medium.has_struck() && (1..20).contains(&acknowledged));
    let image = medium.image(Keep::Nothing, 0);
    let left = open(CutMedium::new(&image, CutKind::File, None));
    let txn = left.begin_read().expect("begin");
    let rows = txn.scan(&left.table("t").expect("table"), Range::all()).expect("scan").count();
    assert!(rows >= acknowledged, "{rows} rows of {acknowledged}");
}

fn in_directory() -> (tempfile::TempDir, Database, Table) {
    let dir = tempfile::tempdir().expect("a directory");
    let db = Database::open(dir.path()).expect("open");
    let table = table_of(&db);
    (dir, db, table)
}

#[test]
fn one_thread_has_many_commits_in_flight() {
    let (dir, db, table) = in_directory();
    let mut flights = std::collections::VecDeque::new();
    for id in 0..2_000 {
        if flights.len() == 64 {
            let oldest: InFlight = flights.pop_front().expect("64");
            oldest.wait().expect("durable");
        }
        flights.push_back(publish(&db, &table, id, id));
    }
    // Nobody waits for the last ones, and they become durable all the same.
    drop(flights);
    db.close().expect("close");
    drop(table);
    let db = Database::open(dir.path()).expect("open");
    let rows = db.begin_read().expect("begin");
    let rows = rows.scan(&db.table("t").expect("table"), Range::all()).expect("scan").count();
    assert_eq!(rows, 2_000);
}

/// A commit lists those in flight on which it depends. The blocks of these lists are freed like others.
#[test]
fn lists_of_dependencies_leave_no_blocks() {
    let (_dir, db, table) = in_directory();
    for round in 0..20 {
        let flights: Vec<InFlight> = (0..100).map(|n| publish(&db, &table, 1, round * 100 + n)).collect();
        for flight in flights {
            flight.wait().expect("durable");
        }
    }
    let compacted = db.compact().expect("compacted");
    assert!(compacted.is_done(), "{compacted:?}");
    let stats = db.stats();
    let used = stats.medium_bytes - stats.free_bytes;
    assert!(used < 300_000, "{used} bytes for one row");
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The commit has the database open until it is durable.
#[test]
fn the_last_handle_waits_for_commits_that_nobody_waits_for() {
    let (dir, db, table) = in_directory();
    drop((db, table));
    for id in 0..10u64 {
        let db = Database::open(dir.path()).expect("nobody has it open");
        let table = db.table("t").expect("table");
        assert_eq!(db.begin_read().expect("begin").count(&table, Range::all()).expect("count"), id);
        drop(publish(&db, &table, id, id));
        drop((table, db));
    }
}

#[test]
fn a_commit_in_flight_is_a_future() {
    let (_dir, db, table) = in_directory();
    let flight = publish(&db, &table, 1, 1);
    let at = flight.timestamp();
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut flight = pin!(flight);
    let outcome = loop {
        match flight.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => break outcome,
            Poll::Pending => thread::park(),
        }
    };
    assert_eq!(outcome.expect("durable"), at);
}
