//! T6: rows that a transaction has borrowed keep their bytes while the blocks
//! around them are relocated and reused.

use std::thread::sleep;
use std::time::{Duration, Instant};

use pantile::{
    Database, Isolation, MediumKind, Options, Row, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::Patience;

use super::rows::{Rows, check_row, collect_until, let_epochs_pass, open, options, settle};

type Begin = fn(&Database) -> pantile::Result<Transaction>;

fn at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation)
}

const READERS: [(&str, Begin); 6] = [
    ("serializable", |db| db.begin()),
    ("fresh", |db| db.begin_read()),
    ("safe snapshot", |db| db.begin_safe_snapshot()),
    ("snapshot", |db| db.begin_with(at(Isolation::Snapshot))),
    ("read committed", |db| db.begin_with(at(Isolation::ReadCommitted))),
    ("read-only snapshot", |db| db.begin_with(at(Isolation::Snapshot).read_only(true))),
];

fn borrow<'t>(txn: &'t Transaction, rows: &'t Rows, key: u64) -> Row<'t> {
    txn.get(&rows.table, &[key.into()]).expect("get").expect("a row")
}

/// Rows that are on the medium, and one that writes them. Another table lets a snapshot that is older than every running
/// writer show them.
fn settled(db: &Database) -> (Rows, Rows) {
    let rows = Rows::filled(db, 0..160);
    settle(db);
    let writer = Rows::new(db);
    Rows::named(db, "watch").put(0..1);
    (rows, writer)
}

/// Rewrites all rows except some, which survive among obsolete ones.
fn churn(rows: &mut Rows, rounds: u64, keep: impl Fn(u64) -> bool) {
    for _ in 0..rounds {
        rows.put((0..160).filter(|&key| !keep(key)));
        let_epochs_pass(&rows.db);
    }
}

#[test]
fn t6_borrowed_rows_keep_their_bytes() {
    for (kind, begin) in READERS {
        let db = open(options());
        let mut rows = Rows::filled(&db, 0..160);
        settle(&db);
        // So that a snapshot older than every running writer shows them.
        let mut watch = Rows::named(&db, "watch");
        watch.put(0..1);
        let reader = begin(&db).expect("begin");
        let held: Vec<Row<'_>> = (0..160).step_by(3).map(|key| borrow(&reader, &rows, key)).collect();
        let was: Vec<_> = held.iter().map(|row| check_row(row).expect("a row")).collect();
        // Every fourth row survives and moves; all others are superseded.
        let mut others = Rows::new(&db);
        let reclaimed = db.stats().collector.blocks_reclaimed;
        churn(&mut others, 20, |key| key % 4 == 0);
        // A transaction that reads by statement may see anything newer.
        if kind != "read committed" {
            collect_until(&db, "blocks go", |s| s.collector.blocks_reclaimed > reclaimed + 60);
            churn(&mut others, 5, |key| key % 4 == 0);
        }
        let now: Vec<_> = held.iter().map(|row| check_row(row).expect("a row")).collect();
        assert_eq!(now, was, "{kind}");
        if kind != "read committed" {
            let again: Vec<_> = (0..160)
                .step_by(3)
                .map(|key| check_row(&borrow(&reader, &rows, key)).expect("a row"))
                .collect();
            assert_eq!(again, was, "{kind}");
        }
        drop(held);
        reader.rollback();
        rows.expected.clone_from(&others.expected);
        rows.check();
        // What the reader kept is freed now.
        rows.put(0..160);
        collect_until(&db, "what was kept is gone", |_| rows.blocks() <= 2 * 160 / 16 + 4);
    }
}

/// Each statement of a read-committed transaction reads the latest state; what
/// earlier statements have borrowed stays.
#[test]
fn t6_rows_of_several_statements_are_held_at_once() {
    let db = open(options());
    let rows = Rows::filled(&db, 0..160);
    let mut writer = Rows::new(&db);
    let reader = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    let mut held = Vec::new();
    for round in 0..12u64 {
        let keys = [7, 40, 100 + round];
        for key in keys {
            let row = borrow(&reader, &rows, key);
            let seen = check_row(&row).expect("a row");
            assert_eq!(seen, (key, writer.expected[&key]), "each statement reads what is committed");
            held.push((row, seen));
        }
        churn(&mut writer, 3, |key| key % 5 == round % 5);
    }
    for (row, seen) in &held {
        assert_eq!(check_row(row).expect("a row"), *seen);
    }
    drop(held);
    drop(reader);
    settle(&db);
    writer.check();
}

/// Between two statements nothing is kept, and from the next one on what that has borrowed.
#[test]
fn t6_rows_of_a_statement_after_a_pause() {
    let db = open(options());
    let (rows, mut writer) = settled(&db);
    for read_only in [false, true] {
        let mut reader = db.begin_with(at(Isolation::ReadCommitted).read_only(read_only)).expect("begin");
        let id = reader.id();
        let held = || {
            let running = db.transactions();
            running.iter().find(|txn| txn.transaction.id == Some(id)).expect("it is listed").held_bytes
        };
        for statements in 0..3u64 {
            churn(&mut writer, 2, |key| key % 4 == 0);
            assert_eq!(held() > 0, statements == 0, "only before its first pause");
            let was: Vec<_> = (0..160).step_by(7).map(|key| borrow(&reader, &rows, key)).collect();
            let seen: Vec<_> = was.iter().map(|row| check_row(row).expect("a row")).collect();
            assert!(seen.iter().all(|(key, version)| writer.expected[key] == *version));
            churn(&mut writer, 5, |key| key % 4 == 0);
            assert!(held() > 0, "what it may have borrowed");
            let now: Vec<_> = was.iter().map(|row| check_row(row).expect("a row")).collect();
            assert_eq!(now, seen, "statement {statements}");
            drop(was);
            reader.end_statement();
            assert_eq!(held(), 0);
            let reclaimed = db.stats().collector.blocks_reclaimed;
            churn(&mut writer, 20, |key| key % 4 == 0);
            collect_until(&db, "blocks go", |s| s.collector.blocks_reclaimed > reclaimed + 60);
        }
    }
    writer.check();
}

/// The worker sleeps until a transaction ends. One that is open and gives up what it could read wakes it, too:
/// nothing else happens any more.
#[test]
fn what_a_statement_has_held_goes_from_a_quiet_database() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(2000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    let put = |n: u8| {
        db.run(|txn| {
            (0..2000u64)
                .try_for_each(|id| txn.upsert(&table, &[id.into(), Value::Bytes(&[n; 1900])]).map(|_| ()))
        })
        .expect("a commit");
    };
    put(0);
    let mut reader = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    reader.get(&table, &[7u64.into()]).expect("get").expect("a row");
    (1..12).for_each(put);
    // The worker does what it can.
    let (patience, mut last) = (Patience::new(), (db.stats().collector, Instant::now()));
    while last.1.elapsed() < Duration::from_secs(3) {
        patience.check(|| "the worker never rests".into());
        sleep(Duration::from_millis(50));
        let now = db.stats().collector;
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    let is_kept = || {
        let stats = db.stats();
        stats.medium_bytes > 2 * stats.live_bytes + (17 << 20)
    };
    assert!(is_kept(), "the statement holds nothing: {:#?}", db.stats());
    reader.end_statement();
    let patience = Patience::new();
    while is_kept() {
        patience.check(|| format!("it stays: {:#?}", db.stats()));
        sleep(Duration::from_millis(50));
    }
    reader.commit().expect("committed");
}

/// A snapshot that is taken late keeps what it sees, and not what came and went after it.
#[test]
fn t6_rows_of_a_late_snapshot() {
    let db = open(options());
    let (rows, mut writer) = settled(&db);
    let mut reader = db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    churn(&mut writer, 2, |key| key % 4 == 0);
    let mut cursor = reader.cursor(&rows.table, pantile::Range::all()).expect("a cursor");
    let first = check_row(&cursor.next(&reader).expect("no error").expect("a row")).expect("a row");
    reader.take_snapshot();
    let was: Vec<_> = (0..160).map(|key| (key, writer.expected[&key])).collect();
    churn(&mut writer, 5, |key| key % 4 == 0);
    // The cursor goes on where it was up to the end of the statement.
    let second = check_row(&cursor.next(&reader).expect("no error").expect("a row")).expect("a row");
    assert_eq!([first, second], was[..2]);
    reader.end_statement();
    assert!(matches!(cursor.next(&reader), Err(pantile::Error::UnknownCursor)));
    for round in 0..3 {
        let reclaimed = db.stats().collector.blocks_reclaimed;
        churn(&mut writer, 20, |key| key % 4 == 0);
        collect_until(&db, "blocks go", |s| s.collector.blocks_reclaimed > reclaimed + 60);
        let seen = |key| check_row(&borrow(&reader, &rows, key)).expect("a row");
        assert_eq!((0..160).map(seen).collect::<Vec<_>>(), was, "round {round}");
        reader.end_statement();
    }
    cursor.turn(&reader, false).expect("it goes on at the snapshot");
    let third = check_row(&cursor.next(&reader).expect("no error").expect("a row")).expect("a row");
    assert_eq!(third, was[2]);
    reader.commit().expect("committed");
    writer.check();
}

/// A scan in progress holds one row after another.
#[test]
fn t6_a_scan_goes_on_over_blocks_that_come_and_go() {
    let db = open(options());
    let rows = Rows::filled(&db, 0..160);
    let mut writer = Rows::new(&db);
    for (kind, begin) in READERS {
        settle(&db);
        let before = writer.expected.clone();
        let reader = begin(&db).expect("begin");
        let mut scan = reader.scan(&rows.table, pantile::Range::all()).expect("scan");
        let mut found = Vec::new();
        for row in scan.by_ref() {
            let row = row.expect("a row");
            let seen = check_row(&row).expect("a row");
            if seen.0.is_multiple_of(20) {
                churn(&mut writer, 2, |key| key % 3 == 1);
            }
            assert_eq!(check_row(&row).expect("a row"), seen, "{kind}");
            found.push(seen);
        }
        if kind != "safe snapshot" {
            assert_eq!(found.into_iter().collect::<std::collections::BTreeMap<_, _>>(), before, "{kind}");
        }
        drop(scan);
        drop(reader);
    }
    writer.check();
}
