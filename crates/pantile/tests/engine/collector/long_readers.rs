//! T13: long readers walk through blocks that have been released.

use pantile::{Database, GcOptions, Transaction};

use super::rows::{Rows, collect_until, gc, let_epochs_pass, open, options, put, seen, settle};
use pantile_testkit::Patience;

/// Rewrites all rows often enough for blocks to be bypassed.
fn churn(rows: &mut Rows, rounds: u64) {
    for _ in 0..rounds {
        rows.put(0..200);
        let_epochs_pass(&rows.db);
    }
}

fn begin(db: &Database) -> Transaction {
    db.begin_read().expect("begin")
}

#[test]
fn t13_a_long_reader_walks_over_blocks_that_are_gone() {
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..200);
    let reader = begin(&db);
    let (before, patience) = (rows.expected.clone(), Patience::new());
    while db.stats().collector.blocks_bypassed < 200 {
        patience.check(|| format!("hardly anything is bypassed: {:#?}", db.stats()));
        churn(&mut rows, 4);
        assert_eq!(seen(&reader, &rows.table).expect("rows"), before);
    }
    let stats = db.stats();
    assert!(stats.collector.kept_tiles > 0, "{stats:#?}");
    assert_eq!(stats.collector.versions_traversed, 0);
    // The bypassed blocks can be reused.
    collect_until(&db, "few blocks are left", |_| rows.blocks() < 100);
    assert_eq!(seen(&reader, &rows.table).expect("rows"), before);
    reader.commit().expect("commit");
    settle(&db);
    collect_until(&db, "tiles are dropped", |s| s.collector.kept_tiles == 0);
    rows.check();
}

/// A transaction that may still write in the past delays nothing. What it
/// writes in the end is all there after a crash.
#[test]
fn t13_a_long_writer_is_bypassed_and_commits() {
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..200);
    let mut others = Rows::named(&db, "others");
    others.put(0..40);
    settle(&db);
    let mut writer = db.begin().expect("begin");
    for key in 0..40 {
        put(&mut writer, &others.table, key, 1_000_000 + key).expect("no conflict");
    }
    let patience = Patience::new();
    while db.stats().collector.blocks_bypassed < 100 {
        patience.check(|| format!("hardly anything is bypassed: {:#?}", db.stats()));
        churn(&mut rows, 4);
    }
    others.check_after_crash(options());
    writer.commit().expect("no transaction has read those rows");
    others.expected = (0..40).map(|key| (key, 1_000_000 + key)).collect();
    others.check_after_crash(options());
    rows.check_after_crash(options());
}

#[test]
fn t13_readers_of_different_ages() {
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..200);
    let mut readers = Vec::new();
    for _ in 0..5 {
        readers.push((begin(&db), rows.expected.clone()));
        // Some rows change only before the next reader begins, and some never
        // change.
        rows.put((0..200).filter(|key| key % 5 == readers.len() as u64));
        churn_some(&mut rows, 6);
        for (reader, expected) in &readers {
            assert_eq!(seen(reader, &rows.table).expect("rows"), *expected);
        }
    }
    collect_until(&db, "bypassed blocks", |s| s.collector.blocks_bypassed > 20 && s.collector.kept_tiles > 0);
    for (reader, expected) in &readers {
        assert_eq!(seen(reader, &rows.table).expect("rows"), *expected);
    }
    // The readers do not end in the order in which they began.
    for at in [2, 0, 2, 1, 0] {
        let (reader, _) = readers.remove(at);
        reader.rollback();
        churn_some(&mut rows, 4);
        for (reader, expected) in &readers {
            assert_eq!(seen(reader, &rows.table).expect("rows"), *expected);
        }
    }
    settle(&db);
    collect_until(&db, "tiles are dropped", |s| s.collector.kept_tiles == 0);
    rows.check();
}

/// Rewrites the hot rows; the others survive.
fn churn_some(rows: &mut Rows, rounds: u64) {
    for _ in 0..rounds {
        rows.put((0..200).filter(|key| key % 10 != 9));
        let_epochs_pass(&rows.db);
    }
}

/// Rows are inserted and deleted while the reader runs. Ids are not reused
/// before it ends, and what it saw deleted stays deleted.
#[test]
fn t13_deleted_and_inserted_meanwhile() {
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..200);
    let reader = begin(&db);
    let before = rows.expected.clone();
    for round in 0..20 {
        rows.delete((0..200).filter(|key| key % 4 == round % 4));
        rows.put((0..50).map(|key| 1000 + round % 3 * 100 + key));
        churn_some(&mut rows, 1);
        assert_eq!(seen(&reader, &rows.table).expect("rows"), before);
    }
    drop(reader);
    settle(&db);
    rows.check();
    rows.check_after_crash(options());
}

/// The blocks of a table after the same work beside a long reader, and the
/// number of bypassed blocks.
fn held(bypasses: bool) -> (u64, u64) {
    let db = open(options().gc(GcOptions { bypass: bypasses, ..gc() }));
    let mut rows = Rows::filled(&db, 0..200);
    let reader = begin(&db);
    let before = rows.expected.clone();
    churn(&mut rows, 40);
    // Waits until everything that can be freed is freed.
    let steps = db.stats().collector.steps + 300;
    collect_until(&db, "time passes", |s| {
        s.collector.steps > steps && (!bypasses || s.collector.blocks_bypassed > 400)
    });
    assert_eq!(seen(&reader, &rows.table).expect("rows"), before);
    (rows.blocks(), db.stats().collector.blocks_bypassed)
}

#[test]
fn t13_without_passing_over_the_medium_grows() {
    let (with, bypassed) = held(true);
    assert!(bypassed > 0);
    let (without, bypassed) = held(false);
    assert_eq!(bypassed, 0);
    assert!(without > 3 * with, "{with} blocks with bypassing, {without} without");
    assert!(without >= 40 * 200 / 16, "nothing that the reader might see may be freed");
}
