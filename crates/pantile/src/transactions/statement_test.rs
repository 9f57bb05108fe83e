//! Statements and late snapshots where clocks differ, and what is kept between statements.

use std::time::Duration;

use pantile_cc::SimulatedTime;

use crate::transactions::commit::Published;
use crate::{
    Database, IndexDef, Isolation, MediumKind, Options, Range, Table, TableDef, Transaction,
    TransactionOptions, Type, Value,
};

fn at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation)
}

/// A writer whose clock is ahead has just given row 1 this number, and has not ended. Clocks agree again.
fn changed_ahead(
    db: &Database,
    table: &Table,
    time: &SimulatedTime,
    skew: Duration,
    n: u64,
) -> (Transaction, Published) {
    time.run_ahead(skew);
    let mut writer = db.begin_with(at(Isolation::Snapshot)).expect("begin");
    assert!(writer.update(table, &[1u8.into()], &[("n", n.into())]).expect("update"));
    let published = writer.make_visible().expect("it can commit");
    time.run_ahead(Duration::ZERO);
    (writer, published)
}

/// What it has locked may have been published by a core whose clock is ahead.
#[test]
fn what_is_locked_is_what_is_shown() {
    let skew = Duration::from_millis(1);
    let time = SimulatedTime::with_skew(skew);
    let db =
        Options::new().medium(MediumKind::Dram).simulated_time(time.clone()).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U8).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    let key = [1u8.into()];
    db.run(|txn| txn.insert(&table, &[1u8.into(), 1u64.into()])).expect("insert");
    let (mut writer, published) = changed_ahead(&db, &table, &time, skew, 2);
    let mut late = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    assert!(late.get_for_update(&table, &key).expect("a look-up").is_some());
    let n = |txn: &Transaction| {
        let row = txn.get(&table, &key).expect("a look-up").expect("the row");
        row.get::<u64>("n").expect("a number")
    };
    assert_eq!(n(&late), 2, "in the same statement");
    late.begin_statement();
    assert_eq!(n(&late), 2, "in the next one");
    late.take_snapshot();
    assert_eq!(n(&late), 2, "in a snapshot");
    late.rollback();
    writer.land(published).expect("committed");
}

/// A row that is only locked tells nothing of the commit that unlocks it. The transaction that locks it next sees all
/// the same what was written under the lock.
#[test]
fn what_was_written_under_a_lock_is_shown_to_the_next_holder() {
    let skew = Duration::from_millis(1);
    let time = SimulatedTime::with_skew(skew);
    let (db, table) = unique(&time);
    let key = [1u8.into()];
    time.run_ahead(skew);
    let mut writer = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    assert!(writer.get_for_update(&table, &key).expect("a look-up").is_some());
    writer.insert(&table, &[2u8.into(), 6u64.into()]).expect("insert");
    let published = writer.make_visible().expect("it can commit");
    time.run_ahead(Duration::ZERO);
    let mut late = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    assert!(late.get_for_update(&table, &key).expect("a look-up").is_some());
    let count = |txn: &Transaction| txn.scan(&table, Range::all()).expect("a scan").count();
    late.begin_statement();
    assert_eq!(count(&late), 2, "in the next statement");
    late.take_snapshot();
    assert_eq!(count(&late), 2, "in a snapshot");
    late.rollback();
    writer.land(published).expect("committed");
}

/// A transaction that begins after another has read comes after that one, although it has written nothing.
#[test]
fn nobody_begins_below_one_who_has_read() {
    let skew = Duration::from_millis(1);
    for (level, commits) in [
        (Isolation::Serializable, false),
        (Isolation::Serializable, true),
        (Isolation::ReadCommitted, false),
        (Isolation::ReadCommitted, true),
    ] {
        let time = SimulatedTime::with_skew(skew);
        let (db, table) = unique(&time);
        time.run_ahead(skew);
        let reader = db.begin_with(at(level)).expect("begin");
        time.advance(10 * skew);
        let before = db.core.registry.now();
        assert!(reader.get(&table, &[1u8.into()]).expect("a look-up").is_some());
        let read_at = if level == Isolation::ReadCommitted { before } else { reader.ts };
        match commits {
            true => drop(reader.commit().expect("it only reads")),
            false => drop(reader),
        }
        time.run_ahead(Duration::ZERO);
        assert!(db.begin().expect("begin").ts > read_at, "{level:?}, commits: {commits}");
    }
}

/// A table whose row 1 has the unique key 5.
fn unique(time: &SimulatedTime) -> (Database, Table) {
    let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    let db = options.open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U8).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def.index(IndexDef::unique("n", ["n"]))).expect("create");
    db.run(|txn| txn.insert(&table, &[1u8.into(), 5u64.into()])).expect("insert");
    (db, table)
}

/// A key that a core whose clock is ahead has just given up can be taken. The row that had it has the new one then.
#[test]
fn a_key_that_was_free_is_in_one_row() {
    for snapshot in [false, true] {
        let skew = Duration::from_millis(1);
        let time = SimulatedTime::with_skew(skew);
        let (db, table) = unique(&time);
        let (mut writer, published) = changed_ahead(&db, &table, &time, skew, 6);
        let mut late = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
        late.insert(&table, &[2u8.into(), 5u64.into()]).expect("the key is free");
        if snapshot {
            late.take_snapshot();
        }
        let rows = late.scan(&table, Range::all()).expect("a scan");
        let keys: Vec<u64> = rows.map(|row| row.expect("a row").get("n").expect("a number")).collect();
        assert_eq!(keys, [6, 5]);
        late.rollback();
        writer.land(published).expect("committed");
    }
}

/// A commit that takes a key is above the version that has given it up, whatever the clocks show: no snapshot between
/// them shows the key in two rows.
#[test]
fn a_commit_is_above_what_has_given_up_its_key() {
    let skew = Duration::from_millis(1);
    let time = SimulatedTime::with_skew(skew);
    let (db, table) = unique(&time);
    let (mut writer, published) = changed_ahead(&db, &table, &time, skew, 6);
    let mut late = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    late.insert(&table, &[2u8.into(), 5u64.into()]).expect("the key is free");
    let given_up = late.newest_met.get();
    let committed = late.commit().expect("a commit");
    let written = writer.land(published).expect("committed");
    assert!(committed > written, "{committed:?}, {written:?}, met {given_up:?}");
}

/// A row that is locked by its place stays, and what lies out of line is kept from the moment on at which it is lent.
#[test]
fn a_value_out_of_line_that_is_lent_after_a_pause_is_kept() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U8).column("data", Type::Bytes(400_000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    let long = |byte: u8| vec![byte; 200_000];
    db.run(|txn| (0..10u8).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&long(id))])))
        .expect("insert");
    let mut txn = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    let place = {
        let mut cursor = txn.cursor(&table, Range::all()).expect("a cursor");
        cursor.next(&txn).expect("no error").expect("a row");
        cursor.row_id().expect("its place")
    };
    txn.end_statement();
    let row = txn.get_row_for_update(&table, place).expect("a look-up").expect("the row");
    let change = |by: u8| {
        db.run(|other| {
            (1..10u8).try_for_each(|id| {
                other.update(&table, &[id.into()], &[("data", Value::Bytes(&long(id + by)))]).map(drop)
            })
        })
        .expect("update");
    };
    let held = || db.transactions()[0].held_bytes;
    change(10);
    assert_eq!(held(), 0, "the row is locked, and nothing else is kept");
    let lent = row.pieces("data").expect("bytes").expect("not NULL").next().expect("one").expect("read");
    change(20);
    assert!(held() > 0, "what is lent is kept");
    assert!(lent.iter().all(|byte| *byte == 0));
    assert_eq!(row.get::<Vec<u8>>("data").expect("bytes"), long(0));
    txn.end_statement();
    assert_eq!(held(), 0);
}
