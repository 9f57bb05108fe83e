//! A transaction that another thread ends (I-28).

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::{
    BackupOptions, ConflictPolicy, Database, EndedBy, Error, Options, Range, Result, Row, Table, Transaction,
    TransactionOptions, Value,
};
use pantile_testkit::{SaysDone, ScratchDir, await_that, fails};

use super::{open, rewrite};

fn is_ended<T: std::fmt::Debug>(outcome: Result<T>) {
    fails!(
        outcome,
        Error::TransactionEnded { .. },
        "insight/ending.rs",
        "nothing of it is committed",
        "drop it"
    );
}

const KEY: [Value<'static>; 1] = [Value::UInt(1)];

/// Calls each of the ways to use a transaction.
fn no_call_works(db: &Database, table: &Table, mut txn: Transaction) {
    let row = [Value::UInt(500), Value::Bytes(b"new")];
    is_ended(txn.get(table, &KEY).map(|row| row.is_some()));
    is_ended(txn.get(table, &[Value::UInt(999)]).map(|row| row.is_some()));
    is_ended(txn.get_many(table, &[KEY]).map(|rows| rows.len()));
    is_ended(txn.scan(table, Range::all()).map(|scan| scan.count()));
    is_ended(txn.count(table, Range::all()));
    is_ended(txn.estimate(table, Range::all()));
    is_ended(txn.cursor(table, Range::all()).map(|_| ()));
    is_ended(txn.insert(table, &row));
    is_ended(txn.upsert(table, &row));
    is_ended(txn.update(table, &KEY, &[(1, Value::Bytes(b"x"))]));
    is_ended(txn.delete(table, &KEY));
    is_ended(txn.insert_many(table, [row]));
    is_ended(txn.update_many(table, &[(KEY, [(1, Value::Bytes(b"x"))])]));
    is_ended(txn.modify_many(table, &[KEY], |_, _| Ok(true)));
    is_ended(txn.get_for_update(table, &KEY).map(|row| row.is_some()));
    is_ended(txn.delete_range(table, Range::all()));
    is_ended(txn.commit());
    assert!(db.begin_read().expect("begin").get(table, &[Value::UInt(500)]).expect("get").is_none());
}

/// A call for many rows does not go on to its end.
#[test]
fn a_long_call_ends_soon_after_it_is_asked_to() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let mut txn = db.begin().expect("begin");
    let (id, keys, mut changed) = (txn.id(), [KEY; 1_000], 0);
    is_ended(txn.modify_many(&table, &keys, |_, _| {
        changed += 1;
        db.end_transaction(id).map(|_| false)
    }));
    assert!(changed < 100, "{changed}");
    drop(txn);
    let mut txn = db.begin().expect("begin");
    let (id, mut added) = (txn.id(), 0u64);
    let rows = std::iter::repeat_with(|| {
        added += 1;
        db.end_transaction(id).expect("end");
        [Value::UInt(1_000 + added), Value::Bytes(b"new")]
    });
    is_ended(txn.insert_many(&table, rows.take(1_000)));
    assert!(added < 100, "{added}");
}

#[test]
fn every_call_of_an_ended_transaction_fails() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let begin = |txn: Result<Transaction>| {
        let txn = txn.expect("begin");
        db.end_transaction(txn.id()).expect("end");
        txn
    };
    no_call_works(&db, &table, begin(db.begin()));
    let txn = begin(db.begin());
    is_ended(txn.publish().map(|_| ()));
    is_ended(begin(db.begin_read()).get(&table, &KEY).map(|row| row.is_some()));
    is_ended(begin(db.begin_safe_snapshot()).get(&table, &KEY).map(|row| row.is_some()));
    assert_eq!(db.stats().running, 0);
}

#[test]
fn a_writer_that_is_ended_leaves_nothing() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let mut writer = db.begin().expect("begin");
    writer.delete(&table, &KEY).expect("delete");
    db.end_transaction(writer.id()).expect("end");
    db.end_transaction(writer.id()).expect("it has been ended and is still there");
    let id = writer.id();
    let Err(Error::TransactionEnded { id: ended, by: EndedBy::Call(place) }) = writer.commit() else {
        panic!("it commits nothing")
    };
    assert_eq!((ended, place.file()), (id, file!()));
    fails!(db.end_transaction(id), Error::UnknownTransaction(_), "no transaction", "nothing was done");
    let at_once = TransactionOptions::new().conflict(ConflictPolicy::Abort);
    let mut next = db.begin_with(at_once).expect("begin");
    assert!(next.delete(&table, &KEY).expect("nobody has a lock"), "the row is still there");
}

/// The next transaction in the slot is another one.
#[test]
fn only_the_transaction_that_is_named_is_ended() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let first = db.begin_read().expect("begin");
    let id = first.id();
    db.end_transaction(id).expect("end");
    drop(first);
    let second = db.begin_read().expect("begin");
    assert_ne!(second.id(), id);
    fails!(db.end_transaction(id), Error::UnknownTransaction(_), "no transaction");
    assert!(second.get(&table, &KEY).expect("nobody has ended it").is_some());
}

/// What a program may still look at stays as it was, however much is written
/// meanwhile, until it drops the transaction; then all of it is freed.
#[test]
fn borrowed_rows_of_an_ended_reader_stay() {
    let (db, table) = open(Options::new());
    db.run(|txn| (0..200u64).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&[1; 200])])))
        .expect("insert");
    let report = db.begin_read().expect("begin");
    let rows: Vec<Row<'_>> =
        report.scan(&table, Range::all()).expect("scan").collect::<Result<_>>().expect("rows");
    db.end_transaction(report.id()).expect("end");
    rewrite(&db, &table, 200, 5);
    db.compact().expect("compact");
    let stats = db.stats();
    assert_eq!((stats.ended_not_dropped, stats.running), (1, 1));
    let [held] = &db.transactions()[..] else { panic!("one transaction is left") };
    assert!(held.transaction.ended.is_some() && held.held_bytes >= 200 * 200, "{held:?}");
    assert!(held.transaction.to_string().ends_with("and not yet dropped"), "{held:?}");
    for row in &rows {
        assert_eq!(row.get::<&[u8]>("data").expect("data"), [1; 200]);
    }
    is_ended(report.get(&table, &KEY).map(|row| row.is_some()));
    drop(rows);
    drop(report);
    assert!(db.compact().expect("compact").is_done(), "nothing is held any more");
    assert_eq!(db.stats().ended_not_dropped, 0);
}

/// A scan that is under way ends at its next row.
#[test]
fn a_scan_ends_at_its_next_row() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 600, 1);
    let report = db.begin_read().expect("begin");
    let mut scan = report.scan(&table, Range::all()).expect("scan");
    let first = scan.next().expect("a row").expect("not ended");
    db.end_transaction(report.id()).expect("end");
    is_ended(scan.next().expect("an answer").map(|_| ()));
    assert_eq!(first.get::<u64>("id").expect("id"), 0);
}

/// One that waits for a lock wakes up at once, and the lock's holder goes on.
#[test]
fn a_transaction_that_waits_is_woken() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let mut holder = db.begin().expect("begin");
    holder.delete(&table, &KEY).expect("delete");
    let patient = TransactionOptions::new().conflict(ConflictPolicy::Wait(Duration::from_secs(3600)));
    let begun = Barrier::new(2);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let mut txn = db.begin_with(patient.name("waiter")).expect("begin");
            begun.wait();
            is_ended(txn.delete(&table, &KEY));
            is_ended(txn.get(&table, &KEY).map(|row| row.is_some()));
        });
        begun.wait();
        let found = db.transactions().into_iter().find(|t| t.transaction.name == Some("waiter"));
        let id = found.and_then(|found| found.transaction.id).expect("it runs");
        // It may not wait yet, and then it must not begin to.
        db.end_transaction(id).expect("end");
        waiter.join().expect("it returns");
    });
    holder.commit().expect("the other goes on");
}

/// A backup is a transaction like any other, and one that is ended leaves nothing.
#[test]
fn a_backup_can_be_ended() {
    let place = ScratchDir::new();
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 2_000, 1);
    let target = place.path().join("backup");
    let slow = BackupOptions::new().rate(20_000);
    std::thread::scope(|scope| {
        let backup = scope.spawn(|| db.backup_to(&target, &slow));
        let mut id = None;
        await_that("the backup shows", || {
            let running = db.transactions();
            let found = running.iter().find(|found| found.transaction.name == Some("backup"));
            id = found.and_then(|found| found.transaction.id);
            id.is_some()
        });
        db.end_transaction(id.expect("it was found")).expect("end");
        is_ended(backup.join().expect("no panic").map(|_| ()));
    });
    let left = Options::new().create(false).open(&target);
    // A part, if anything had been copied.
    let left = left.expect_err("there is no backup");
    assert!(matches!(left, Error::NoDatabase(_) | Error::IncompleteBackup(_)), "{left}");
    assert_eq!(db.stats().running, 0);
}

#[test]
fn run_does_not_begin_again_what_was_ended() {
    let (db, table) = open(Options::new());
    let mut tries = 0;
    let outcome = db.run(|txn| {
        tries += 1;
        db.end_transaction(txn.id())?;
        txn.insert(&table, &[1u64.into(), Value::Bytes(b"")])
    });
    is_ended(outcome);
    assert_eq!(tries, 1);
}

/// Ended and ending by itself race: the caller gets one answer or the other, and
/// the next transactions of the slot are not disturbed.
#[test]
fn ending_races_with_the_end() {
    let (db, table) = open(Options::new());
    rewrite(&db, &table, 10, 1);
    let (db, table) = (&db, &table);
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let over = SaysDone(stop);
            let (mut ended, mut whole) = (0u32, 0u32);
            for _ in 0..20_000 {
                let txn = db.begin_with(TransactionOptions::new().name("short")).expect("begin");
                match txn.get(table, &KEY).map(|row| row.is_some()) {
                    Ok(found) => whole += u32::from(found),
                    Err(Error::TransactionEnded { id, .. }) => {
                        assert_eq!(id, txn.id());
                        ended += 1;
                    }
                    Err(other) => panic!("{other}"),
                }
            }
            drop(over);
            (ended, whole)
        });
        while !stop.load(Ordering::Relaxed) {
            for found in db.transactions() {
                match db.end_transaction(found.transaction.id.expect("an id")) {
                    Ok(()) | Err(Error::UnknownTransaction(_)) => {}
                    Err(other) => panic!("{other}"),
                }
            }
        }
        let (ended, whole) = worker.join().expect("no panic");
        assert!(ended + whole == 20_000 && whole > 0, "{ended} ended, {whole} whole");
    });
    await_that("all are over", || db.stats().running == 0);
}
