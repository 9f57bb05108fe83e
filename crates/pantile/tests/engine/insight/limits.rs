//! Limits on what a transaction may hold back.

use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{Database, EndedBy, Error, OnPinned, Options, Table, TableDef, Transaction, Type, Value};
use pantile_testkit::await_that;

use super::{open, rewrite};

const KEY: [Value<'static>; 1] = [Value::UInt(1)];
const MINUTE: Duration = Duration::from_secs(60);

fn is_ended(txn: &Transaction, table: &Table) -> Option<EndedBy> {
    match txn.get(table, &KEY) {
        Ok(_) => None,
        Err(Error::TransactionEnded { by, .. }) => Some(by),
        Err(other) => panic!("{other}"),
    }
}

fn actions(db: &Database) -> (u64, u64) {
    let stats = db.stats();
    (stats.pin_warnings, stats.pin_ends)
}

/// A database in which time passes when the test says so.
fn timed(options: Options) -> (Database, Table, SimulatedTime) {
    let time = SimulatedTime::default();
    let (db, table) = open(options.simulated_time(time.clone()));
    rewrite(&db, &table, 100, 1);
    (db, table, time)
}

#[test]
fn an_old_holder_is_warned_of_once() {
    let (db, table, time) = timed(Options::new().max_pinned_age(MINUTE, OnPinned::Warn));
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    db.upkeep();
    assert_eq!(actions(&db), (0, 0), "it is young");
    time.advance(MINUTE);
    for _ in 0..3 {
        db.upkeep();
        time.advance(MINUTE);
    }
    assert_eq!(actions(&db), (1, 0));
    assert_eq!(is_ended(&report, &table), None);
}

#[test]
fn an_old_holder_is_ended_and_one_that_holds_nothing_is_not() {
    let (db, table, time) = timed(Options::new().max_pinned_age(MINUTE, OnPinned::End));
    let holder = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    db.compact().expect("compact");
    let harmless = db.begin_read().expect("begin");
    time.advance(2 * MINUTE);
    let young = db.begin_read().expect("begin");
    db.upkeep();
    assert_eq!(is_ended(&holder, &table), Some(EndedBy::Age(MINUTE)));
    assert_eq!(is_ended(&young, &table), None);
    drop(holder);
    assert!(db.compact().expect("compact").is_done(), "nothing is held any more");
    db.upkeep();
    time.advance(MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&harmless, &table), None, "it holds nothing");
    assert_eq!(actions(&db), (0, 1));
}

/// Nobody else can begin then, the upkeep included.
#[test]
fn a_holder_is_ended_where_all_slots_are_taken() {
    let options = Options::new().max_pinned_age(MINUTE, OnPinned::End).begin_wait(Duration::ZERO);
    let (db, table, time) = timed(options);
    let holder = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    let others: Vec<_> = std::iter::from_fn(|| db.begin_read().ok()).collect();
    assert!(matches!(db.begin(), Err(Error::TooManyTransactions { .. })));
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&holder, &table), Some(EndedBy::Age(MINUTE)));
    drop((holder, others));
    db.upkeep();
    assert_eq!(actions(&db), (0, 1));
}

/// A table that is dropped stays for those who may read it, whether they do or not.
#[test]
fn who_keeps_a_dropped_table_is_ended() {
    let (db, table, time) = timed(Options::new().max_pinned_age(MINUTE, OnPinned::End));
    let def = TableDef::new("dropped").column("id", Type::U64).primary_key(["id"]);
    let dropped = db.create_table(def).expect("a table");
    db.run(|txn| (0..100u64).try_for_each(|id| txn.insert(&dropped, &[id.into()]))).expect("rows");
    let idle = db.begin_read().expect("begin");
    let held = || db.transactions().iter().map(|txn| txn.held_bytes).sum::<u64>();
    assert_eq!(held(), 0);
    db.drop_table("dropped").expect("drop");
    assert!(held() > 0, "{:?}", db.transactions());
    let late = db.begin_read().expect("begin");
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&idle, &table), Some(EndedBy::Age(MINUTE)));
    drop(idle);
    assert_eq!(held(), 0);
    db.upkeep();
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!(actions(&db), (0, 1), "{late:?} holds nothing");
}

#[test]
fn a_holder_of_much_is_ended() {
    let limit = 10_000;
    let (db, table, time) = timed(Options::new().max_pinned_bytes(limit, OnPinned::End));
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 5, 1);
    time.advance(MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&report, &table), None, "{:?}", db.transactions());
    rewrite(&db, &table, 100, 1);
    time.advance(MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&report, &table), Some(EndedBy::Bytes(limit)));
    assert_eq!(actions(&db), (0, 1));
}

/// The stricter of two limits counts.
#[test]
fn a_limit_that_ends_comes_before_one_that_warns() {
    let options = Options::new().max_pinned_age(MINUTE, OnPinned::Warn).max_pinned_bytes(1, OnPinned::End);
    let (db, table, time) = timed(options);
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 1);
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&report, &table), Some(EndedBy::Bytes(1)));
    assert_eq!(actions(&db), (0, 1));
}

/// A warning by one limit leaves the other in force.
#[test]
fn who_was_warned_of_can_still_be_ended() {
    let options =
        Options::new().max_pinned_age(MINUTE, OnPinned::Warn).max_pinned_bytes(1 << 20, OnPinned::End);
    let (db, table, time) = timed(options);
    rewrite(&db, &table, 10_000, 1);
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 1);
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!((is_ended(&report, &table), actions(&db)), (None, (1, 0)));
    rewrite(&db, &table, 10_000, 1);
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!(is_ended(&report, &table), Some(EndedBy::Bytes(1 << 20)));
    assert_eq!(actions(&db), (1, 1));
}

/// Without limits nobody is ended, however old.
#[test]
fn without_limits_nothing_is_done() {
    let (db, table, time) = timed(Options::new());
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 3);
    time.advance(1000 * MINUTE);
    db.upkeep();
    assert_eq!((is_ended(&report, &table), actions(&db)), (None, (0, 0)));
}

/// The worker looks by itself, also while nothing is written any more.
#[test]
fn the_worker_ends_a_holder() {
    let limit = Duration::from_millis(40);
    let (db, table) = open(Options::new().max_pinned_age(limit, OnPinned::End));
    rewrite(&db, &table, 100, 1);
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    await_that("the worker ends it", || db.stats().pin_ends == 1);
    assert_eq!(is_ended(&report, &table), Some(EndedBy::Age(limit)));
}

#[test]
fn limits_change_while_the_database_is_open() {
    let (db, table, time) = timed(Options::new());
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    time.advance(2 * MINUTE);
    db.upkeep();
    assert_eq!(actions(&db), (0, 0), "there is no limit");
    db.set_max_pinned_age(Some((MINUTE, OnPinned::Warn)));
    db.upkeep();
    assert_eq!((actions(&db), is_ended(&report, &table)), ((1, 0), None));
    time.advance(MINUTE);
    db.set_max_pinned_age(None);
    db.set_max_pinned_bytes(Some((1, OnPinned::End)));
    db.upkeep();
    assert_eq!(actions(&db), (1, 1), "it has been warned of, and is looked at again");
    assert_eq!(is_ended(&report, &table), Some(EndedBy::Bytes(1)));
}

#[test]
fn a_limit_reaches_a_database_at_rest() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 100, 1);
    let report = db.begin_read().expect("begin");
    rewrite(&db, &table, 100, 2);
    std::thread::sleep(Duration::from_millis(100));
    db.set_max_pinned_bytes(Some((1, OnPinned::End)));
    await_that("the transaction is ended", || is_ended(&report, &table).is_some());
}
