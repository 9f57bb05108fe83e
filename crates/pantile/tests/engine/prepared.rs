//! Two-phase commit: what is prepared is there when the database is opened again,
//! with its locks, until it is committed or rolled back; and nothing stands in the way
//! of its commit.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use pantile::lab::medium_of;
use pantile::{
    BackupOptions, CheckOptions, Conflict, ConflictPolicy, Database, Error, IndexDef, Isolation, MediumKind,
    OnPinned, Options, Range, Table, TableChange, TableDef, Transaction, TransactionOptions, Type, Value,
    check, restore, salvage,
};
use pantile_testkit::{Patience, Random, ScratchDir, await_that, copy_of};

use crate::waiting::sleeps;

const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];
const LONG: usize = 150_000;

fn options() -> Options {
    // The tests copy media, which nobody may change meanwhile.
    Options::new().worker(false)
}

fn definition() -> TableDef {
    let def = TableDef::new("t").column("id", Type::U64).column("code", Type::U64);
    let def = def.nullable("data", Type::Bytes(400_000)).primary_key(["id"]);
    def.index(IndexDef::unique("by_code", ["code"]))
}

fn new() -> (Database, Table) {
    let db = options().medium(MediumKind::Dram).open("unused").expect("a database");
    let table = db.create_table(definition()).expect("a table");
    db.run(|txn| (0..4u64).try_for_each(|n| put(txn, &table, n, 10 + n, None))).expect("a commit");
    (db, table)
}

fn put(txn: &mut Transaction, table: &Table, id: u64, code: u64, data: Option<&[u8]>) -> pantile::Result<()> {
    let data = data.map_or(Value::Null, Value::Bytes);
    txn.upsert(table, &[id.into(), code.into(), data]).map(drop)
}

/// The database as it would be opened if the process ended now.
fn killed(db: &Database) -> (Database, Table) {
    let db = options().on_medium(copy_of(&*medium_of(db))).open("unused").expect("it opens");
    let table = db.table("t").expect("the table");
    (db, table)
}

/// Keys and codes.
fn rows(db: &Database, table: &Table) -> Vec<(u64, u64)> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("a scan").map(|row| {
        let row = row.expect("a row");
        (row.get(0).expect("a key"), row.get(1).expect("a code"))
    });
    let rows: Vec<(u64, u64)> = rows.collect();
    let by_code = table.index("by_code").expect("the index");
    for (id, code) in &rows {
        let row = txn.get_by_index(&by_code, &[(*code).into()]).expect("a look-up").expect("the row");
        assert_eq!(row.get::<u64>(0).expect("a key"), *id);
    }
    assert_eq!(txn.scan_index(&by_code, Range::all()).expect("a scan").count(), rows.len());
    rows
}

const BEFORE: [(u64, u64); 4] = [(0, 10), (1, 11), (2, 12), (3, 13)];
/// Rows 0 and 1 have each other's code, 2 is gone, 3 has a long value, 4 is new.
const AFTER: [(u64, u64); 4] = [(0, 11), (1, 10), (3, 13), (4, 14)];

fn change(txn: &mut Transaction, table: &Table) {
    put(txn, table, 0, 99, None).expect("a row");
    put(txn, table, 1, 10, None).expect("a row");
    put(txn, table, 0, 11, None).expect("a row");
    assert!(txn.delete(table, &[2u64.into()]).expect("a row"));
    put(txn, table, 3, 13, Some(&vec![7; LONG])).expect("a row");
    put(txn, table, 4, 14, None).expect("a row");
    put(txn, table, 5, 15, None).expect("a row");
    assert!(txn.delete(table, &[5u64.into()]).expect("a row"));
}

fn prepare(db: &Database, table: &Table, level: Isolation, name: &[u8]) -> pantile::PreparedTransaction {
    let mut txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("begin");
    change(&mut txn, table);
    db.prepare(txn, name).expect("nothing is in its way")
}

fn assert_locked(db: &Database, table: &Table) {
    for id in [0u64, 1, 2, 3, 4] {
        let options = TransactionOptions::new().isolation(Isolation::ReadCommitted);
        let mut txn = db.begin_with(options.conflict(ConflictPolicy::Abort)).expect("begin");
        match txn.upsert(table, &[id.into(), (1000 + id).into(), Value::Null]) {
            Err(Error::Conflict { conflict: Conflict::Locked, .. }) => {}
            other => panic!("row {id}: {other:?}"),
        }
    }
}

fn long_value(db: &Database, table: &Table) -> Option<usize> {
    let txn = db.begin_read().expect("begin");
    let row = txn.get(table, &[3u64.into()]).expect("a look-up").expect("the row");
    row.get::<Option<Vec<u8>>>(2).expect("a value").map(|value| value.len())
}

#[test]
fn it_is_committed_or_rolled_back_in_every_life() {
    for level in LEVELS {
        for commits in [true, false] {
            for lives in 0..3 {
                for closes in [true, false] {
                    let (mut db, mut table) = new();
                    let mut prepared = prepare(&db, &table, level, b"x");
                    for _ in 0..lives {
                        if closes {
                            drop(prepared);
                            let medium = medium_of(&db);
                            db.close().expect("what is prepared is in nobody's way");
                            db = options().on_medium(copy_of(&*medium)).open("unused").expect("it opens");
                            table = db.table("t").expect("the table");
                        } else {
                            let left = killed(&db);
                            drop(prepared);
                            (db, table) = left;
                        }
                        assert_eq!(db.prepared(), [b"x"]);
                        assert_eq!(rows(&db, &table), BEFORE);
                        assert_locked(&db, &table);
                        prepared = db.take_prepared(b"x").expect("it waits");
                        assert_eq!(db.prepared().len(), 0, "it is in hand");
                    }
                    match commits {
                        true => _ = prepared.commit().expect("nothing is in its way"),
                        false => prepared.rollback().expect("nothing is in its way"),
                    }
                    for (db, table) in [(db.clone(), table.clone()), killed(&db)] {
                        assert!(db.prepared().is_empty());
                        let expected = if commits { AFTER } else { BEFORE };
                        assert_eq!(rows(&db, &table), expected, "{level:?}, {lives} lives");
                        assert_eq!(long_value(&db, &table), commits.then_some(LONG));
                        let record = db.table("#prepared").expect("it has been made");
                        assert!(
                            db.begin_read().expect("begin").is_empty(&record, Range::all()).expect("a scan")
                        );
                        db.run(|txn| put(txn, &table, 0, 1000, None)).expect("nothing is locked");
                    }
                }
            }
        }
    }
}

#[test]
fn readers_see_the_rows_before_it_and_do_not_wait() {
    for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let (db, table) = new();
        let prepared = prepare(&db, &table, level, b"x");
        assert_eq!(rows(&db, &table), BEFORE);
        prepared.commit().expect("a commit");
        assert_eq!(rows(&db, &table), AFTER);
    }
}

#[test]
fn readers_wait_for_one_that_is_serializable() {
    const READER: &str = "waits-to-read";
    let (db, table) = new();
    let prepared = prepare(&db, &table, Isolation::Serializable, b"x");
    std::thread::scope(|scope| {
        let reader = std::thread::Builder::new().name(READER.into());
        let reader = reader.spawn_scoped(scope, || rows(&db, &table)).expect("a thread");
        await_that("the reader waits", || sleeps(READER) || reader.is_finished());
        std::thread::sleep(Duration::from_millis(20));
        assert!(!reader.is_finished(), "it would come before a commit that may be acknowledged elsewhere");
        prepared.commit().expect("a commit");
        assert_eq!(reader.join().expect("it reads"), AFTER);
    });
}

/// Nobody may ever decide. Readers wait as long as their conflict policy says. A commit that would have
/// to wait is refused.
#[test]
fn readers_and_commits_do_not_wait_for_ever() {
    let (db, table) = new();
    let policies = [
        (ConflictPolicy::Abort, Conflict::Locked),
        (ConflictPolicy::Wait(Duration::from_millis(20)), Conflict::TimedOut),
    ];
    let begin = |policy| db.begin_with(TransactionOptions::new().conflict(policy)).expect("begin");
    // These have read a row before it is prepared, and so must commit before it...
    let mut writers = policies.map(|(policy, _)| begin(policy));
    for (txn, id) in writers.iter_mut().zip([100u64, 101]) {
        assert!(txn.get(&table, &[0u64.into()]).expect("a look-up").is_some());
        assert!(txn.get(&table, &[id.into()]).expect("a look-up").is_none());
    }
    let prepared = prepare(&db, &table, Isolation::Serializable, b"x");
    // ... and behind a reader that comes after it.
    let reader = db.begin().expect("begin");
    for id in [100u64, 101] {
        assert!(reader.get(&table, &[id.into()]).expect("a look-up").is_none());
    }
    for ((mut txn, id), (policy, conflict)) in writers.into_iter().zip([100u64, 101]).zip(policies) {
        let outcome = put(&mut txn, &table, id, id, None).and_then(|()| txn.commit());
        match outcome {
            Err(Error::Conflict { conflict: Conflict::Locked, .. }) => {}
            other => panic!("{policy:?}: {other:?}"),
        }
        let options = TransactionOptions::new().read_only(true).conflict(policy);
        let txn = db.begin_with(options).expect("begin");
        match txn.get(&table, &[0u64.into()]) {
            Err(Error::Conflict { conflict: met, .. }) if met == conflict => {}
            other => panic!("{policy:?}: {}", other.is_ok()),
        }
    }
    drop(reader);
    prepared.commit().expect("a commit");
    assert_eq!(rows(&db, &table), AFTER);
}

/// What a serializable transaction has read must be so when it is prepared.
#[test]
fn one_whose_reads_have_changed_is_not_prepared() {
    let (db, table) = new();
    let mut txn = db.begin().expect("begin");
    assert!(txn.get(&table, &[1u64.into()]).expect("a look-up").is_some());
    put(&mut txn, &table, 0, 20, None).expect("a row");
    db.run(|txn| put(txn, &table, 1, 21, None)).expect("a commit");
    let error = db.prepare(txn, b"x").expect_err("it has read row 1");
    assert!(matches!(error, Error::Conflict { conflict: Conflict::ReadChanged, .. }), "{error}");
    for (db, table) in [(db.clone(), table.clone()), killed(&db)] {
        assert!(db.prepared().is_empty());
        assert_eq!(rows(&db, &table), [(0, 10), (1, 21), (2, 12), (3, 13)]);
        db.run(|txn| put(txn, &table, 0, 22, None)).expect("nothing is locked");
    }
}

#[test]
fn names_are_taken_once() {
    let (db, table) = new();
    let first = prepare(&db, &table, Isolation::Snapshot, b"a\xff");
    let mut txn = db.begin().expect("begin");
    put(&mut txn, &table, 7, 70, None).expect("a row");
    let error = db.prepare(txn, b"a\xff").expect_err("the name is taken");
    assert!(error.to_string().contains("\"a\\xff\"") && error.to_string().contains("rolled back"), "{error}");
    db.run(|txn| put(txn, &table, 7, 71, None)).expect("nothing is locked");
    let error = db.take_prepared(b"a\xff").expect_err("it is in hand");
    assert!(matches!(error, Error::UnknownPrepared { .. }), "{error}");
    drop(first);
    db.take_prepared(b"a\xff").expect("it waits").rollback().expect("nothing is in its way");
    assert!(db.take_prepared(b"a\xff").is_err());
    let long = db.prepare(db.begin().expect("begin"), &[7; 256]).expect_err("too long").to_string();
    assert!(long.contains("at most 255"), "{long}");
    // The name is free.
    prepare(&db, &table, Isolation::Snapshot, b"a\xff").commit().expect("a commit");
}

#[test]
fn without_changes_there_is_nothing_to_come_back() {
    let (db, table) = new();
    for commits in [true, false] {
        let mut txn = db.begin().expect("begin");
        assert!(txn.get_for_update(&table, &[0u64.into()]).expect("a look-up").is_some());
        let prepared = db.prepare(txn, b"x").expect("it has changed nothing");
        assert!(killed(&db).0.prepared().is_empty());
        match commits {
            true => _ = prepared.commit().expect("a commit"),
            false => prepared.rollback().expect("a rollback"),
        }
        db.run(|txn| put(txn, &table, 0, 10, None)).expect("nothing is locked");
    }
    db.prepare(db.begin_read().expect("begin"), b"r").expect("it only reads").commit().expect("it has");
}

#[test]
fn definitions_stay() {
    let (db, table) = new();
    drop(prepare(&db, &table, Isolation::Snapshot, b"x"));
    assert!(matches!(db.check_prepared(&table), Err(Error::PreparedChanges { .. })));
    let wide = TableChange::new().rename_table("u");
    let refused = [
        db.drop_table("t"),
        db.truncate_table(&table).map(drop),
        db.alter_table(&table, &wide).map(drop),
        db.create_index(&table, IndexDef::new("more", ["id"])).map(drop),
        db.drop_index(&table, "by_code"),
        db.drop_table("#prepared"),
    ];
    for outcome in refused {
        let error = outcome.expect_err("rows of the table are prepared");
        assert!(matches!(&error, Error::PreparedChanges { name, .. } if name == "x"), "{error}");
    }
    // Also in the next life.
    let (next, there) = killed(&db);
    assert!(matches!(next.drop_table("t"), Err(Error::PreparedChanges { .. })));
    next.take_prepared(b"x").expect("it waits").commit().expect("a commit");
    assert_eq!(rows(&next, &there), AFTER);
    next.check_prepared(&there).expect("nothing is prepared");
    next.drop_table("t").expect("nothing is prepared");
    db.take_prepared(b"x").expect("it waits").commit().expect("a commit");
    db.drop_table("t").expect("nothing is prepared");
}

/// A server prepares each of its transactions for a moment, and there is always one.
#[test]
fn an_index_waits_for_those_that_are_being_committed() {
    let (db, table) = new();
    let prepared = prepare(&db, &table, Isolation::Snapshot, b"x");
    let asked = AtomicU32::new(0);
    std::thread::scope(|scope| {
        let made = scope.spawn(|| {
            db.create_index_with(&table, IndexDef::new("more", ["id"]), |_| {
                asked.fetch_add(1, Ordering::Relaxed);
                ControlFlow::Continue(())
            })
        });
        let patience = Patience::new();
        // To build so small an index it asks twice.
        while asked.load(Ordering::Relaxed) < 4 {
            patience.check(|| "it does not wait".into());
            std::thread::yield_now();
        }
        assert!(!made.is_finished());
        prepared.commit().expect("a commit");
        made.join().expect("no panic").expect("an index");
    });
    // It ends where the program says so.
    let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
    put(&mut txn, &table, 0, 77, None).expect("a row");
    let prepared = db.prepare(txn, b"y").expect("nothing is in its way");
    let stopped = db.create_index_with(&table, IndexDef::new("again", ["id"]), |_| ControlFlow::Break(()));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    prepared.rollback().expect("a rollback");
}

/// One that began before an index enters its keys when it is prepared.
#[test]
fn indexes_that_were_made_meanwhile_have_its_rows() {
    let (db, table) = new();
    let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
    put(&mut txn, &table, 0, 20, None).expect("a row");
    let maker = {
        let (db, table) = (db.clone(), table.clone());
        std::thread::spawn(move || db.create_index(&table, IndexDef::new("more", ["code", "id"])))
    };
    let patience = Patience::new();
    while !maker.is_finished() && table.index("more").is_err() {
        patience.check(|| "no index".into());
        std::thread::yield_now();
    }
    let prepared = db.prepare(txn, b"x").expect("nothing is in its way");
    prepared.commit().expect("a commit");
    let more = maker.join().expect("no panic").expect("an index");
    let txn = db.begin_read().expect("begin");
    let found = txn.scan_index(&more, Range::prefix(&[20u64.into()])).expect("a scan");
    assert_eq!(found.count(), 1);
}

/// It can be committed only where it was prepared, so a copy of the rows says that it is missing.
#[test]
fn a_salvage_names_it() {
    let place = ScratchDir::new();
    let path = place.path().join("db");
    let db = options().open(&path).expect("a database");
    let table = db.create_table(definition()).expect("a table");
    db.run(|txn| (0..4u64).try_for_each(|n| put(txn, &table, n, 10 + n, None))).expect("a commit");
    drop(prepare(&db, &table, Isolation::Snapshot, b"x"));
    drop(table);
    db.close().expect("closed");
    let found = salvage(&path, &CheckOptions::new()).expect("opened");
    assert!(found.lost().iter().any(|lost| lost.what.contains("prepared transaction \"x\"")), "{found:?}");
    let new = options().medium(MediumKind::Dram).open("unused").expect("a database");
    let report = found.copy_into(&new, &|_, _| ControlFlow::Continue(())).expect("copied");
    assert_eq!((report.tables, report.rows, report.is_whole()), (1, 4, false));
}

#[test]
fn nothing_else_ends_it() {
    let options = options().medium(MediumKind::Dram);
    let options = options.max_pinned_age(Duration::from_millis(1), OnPinned::End);
    let db = options.open("unused").expect("a database");
    let table = db.create_table(definition()).expect("a table");
    db.run(|txn| (0..4u64).try_for_each(|n| put(txn, &table, n, 10 + n, None))).expect("a commit");
    let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
    change(&mut txn, &table);
    let id = txn.id();
    let prepared = db.prepare(txn, b"x").expect("nothing is in its way");
    let error = db.end_transaction(id).expect_err("it is prepared");
    assert!(matches!(error, Error::TransactionPrepared(_)), "{error}");
    for n in 0..200u64 {
        db.run(|txn| put(txn, &table, 9, 1000 + n, None)).expect("a commit");
        db.upkeep();
        std::thread::sleep(Duration::from_micros(100));
    }
    prepared.commit().expect("a commit");
    db.run(|txn| txn.delete(&table, &[9u64.into()])).expect("a commit");
    assert_eq!(rows(&db, &table), AFTER);
    // One that was asked to end before is not prepared.
    let mut txn = db.begin().expect("begin");
    put(&mut txn, &table, 0, 20, None).expect("a row");
    db.end_transaction(txn.id()).expect("it is open");
    assert!(matches!(db.prepare(txn, b"y"), Err(Error::TransactionEnded { .. })));
    assert!(killed(&db).0.prepared().is_empty());
}

/// Space for its commit is kept while others fill the medium, and the database is full
/// for its record rather than for its commit.
#[test]
fn its_commit_finds_space() {
    let mut random = Random::new(1, 0);
    for round in 0..6u64 {
        let options = options().medium(MediumKind::Dram).max_bytes(8 << 20);
        let db = options.open("unused").expect("a database");
        let table = db.create_table(definition()).expect("a table");
        let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
        let count = 300 + random.below(300);
        for n in 0..count {
            put(&mut txn, &table, n, n, Some(&vec![1; 2_000])).expect("a row");
        }
        let prepared = db.prepare(txn, b"x").expect("there is space");
        let mut n = 1000;
        let full = loop {
            n += 1;
            let data = vec![2; 100 + random.below(4_000) as usize];
            match db.run(|txn| put(txn, &table, n, n, Some(&data))) {
                Ok(()) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(full, Error::StorageFull { .. }), "{full}");
        prepared.commit().unwrap_or_else(|error| panic!("round {round}, {count} rows: {error}"));
        let txn = db.begin_read().expect("begin");
        let small = Range::all().to(std::ops::Bound::Excluded(&[Value::UInt(1000)]));
        assert_eq!(txn.count(&table, small).expect("a scan"), count);
    }
    let db = options().medium(MediumKind::Dram).max_bytes(4 << 20).open("unused").expect("a database");
    let table = db.create_table(definition()).expect("a table");
    let mut txn = db.begin().expect("begin");
    for n in 0..1_200u64 {
        put(&mut txn, &table, n, n, Some(&vec![1; 2_000])).expect("a row");
    }
    let error = db.prepare(txn, b"x").expect_err("it would take more than there is");
    assert!(matches!(error, Error::StorageFull { .. }), "{error}");
    assert!(db.prepared().is_empty() && killed(&db).0.prepared().is_empty());
    db.run(|txn| put(txn, &table, 0, 0, None)).expect("there is space again");
}

/// What is undecided for long keeps its locks and nothing else: what others replace is reclaimed.
#[test]
fn what_others_replace_is_reclaimed_beside_it() {
    for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let options = options().medium(MediumKind::Dram).max_bytes(8 << 20);
        let db = options.open("unused").expect("a database");
        let table = db.create_table(definition()).expect("a table");
        db.run(|txn| (0..4u64).try_for_each(|n| put(txn, &table, n, 10 + n, None))).expect("a commit");
        let other = db.create_table(TableDef { name: "other".into(), ..definition() }).expect("a table");
        db.run(|txn| put(txn, &other, 1, 1, None)).expect("a commit");
        let mut txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("begin");
        change(&mut txn, &table);
        assert!(txn.get_for_update(&other, &[1u64.into()]).expect("a row").is_some());
        let replace = |db: &Database, table: &Table| {
            for n in 0..10_000u64 {
                let id = 100 + n % 20;
                let replaced = db.run(|txn| put(txn, table, id, id, Some(&[1; 2_000])));
                replaced.unwrap_or_else(|error| panic!("{level:?}, row {n}: {error}"));
            }
            let held: Vec<_> = db.transactions().iter().map(|txn| txn.held_bytes).collect();
            assert_eq!(held, [0], "{level:?}");
        };
        let prepared = db.prepare(txn, b"x").expect("nothing is in its way");
        // A row that it has only locked keeps no table.
        drop(other);
        db.drop_table("other").expect("it has changed nothing there");
        replace(&db, &table);
        let (next, its) = killed(&db);
        replace(&next, &its);
        assert_locked(&next, &its);
        prepared.rollback().expect("nothing is in its way");
        assert_eq!(rows(&db, &table)[..4], BEFORE);
        next.take_prepared(b"x").expect("it waits").commit().expect("a commit");
        assert_eq!(rows(&next, &its)[..4], AFTER);
    }
}

/// Many at once, each with locks of its own, over several lives.
#[test]
fn many_are_prepared_beside_each_other() {
    let (db, table) = new();
    for n in 0..100u64 {
        let level = LEVELS[1 + n as usize % 2];
        let mut txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("begin");
        put(&mut txn, &table, 100 + n, 100 + n, Some(&vec![n as u8; 1_000])).expect("a row");
        drop(db.prepare(txn, &n.to_le_bytes()).expect("nothing is in its way"));
    }
    let (db, table) = killed(&db);
    assert_eq!(db.prepared().len(), 100);
    let commits = |n: u64| n.is_multiple_of(3);
    for n in 0..50u64 {
        let prepared = db.take_prepared(&n.to_le_bytes()).expect("it waits");
        if commits(n) {
            prepared.publish().map(drop).expect("a commit")
        } else {
            prepared.rollback().expect("it")
        }
    }
    let (db, table) = {
        drop(table);
        killed(&db)
    };
    assert_eq!(db.prepared().len(), 50);
    for n in 50..100u64 {
        let prepared = db.take_prepared(&n.to_le_bytes()).expect("it waits");
        if commits(n) {
            prepared.commit().map(drop).expect("a commit")
        } else {
            prepared.rollback().expect("it")
        }
    }
    let expected: Vec<_> = (0..100).filter(|n| commits(*n)).map(|n| (100 + n, 100 + n)).collect();
    assert_eq!(rows(&db, &table)[4..], expected);
}

/// The last handle has gone, and a transaction that outlives it must not change what is
/// locked.
#[test]
fn locks_outlive_the_handles() {
    let (db, table) = new();
    let medium = medium_of(&db);
    drop(prepare(&db, &table, Isolation::Snapshot, b"x"));
    let mut other =
        db.begin_with(TransactionOptions::new().isolation(Isolation::ReadCommitted)).expect("begin");
    drop(db);
    let error = put(&mut other, &table, 0, 50, None).expect_err("nobody writes any more");
    assert!(matches!(error, Error::Closed), "{error}");
    drop((other, table));
    let db = options().on_medium(copy_of(&*medium)).open("unused").expect("it opens");
    db.take_prepared(b"x").expect("it waits").commit().expect("a commit");
    assert_eq!(rows(&db, &db.table("t").expect("the table")), AFTER);
}

/// The last handle closes the database, whatever waits and is under way.
#[test]
fn a_database_with_prepared_transactions_and_commits_under_way_is_closed() {
    for (prepares, publishes) in [(false, true), (true, false), (true, true)] {
        let home = ScratchDir::new();
        let db = Database::open(home.path()).expect("open");
        let table = db.create_table(definition()).expect("a table");
        if prepares {
            drop(prepare_one(&db, &table, 8, b"x"));
        }
        if publishes {
            let mut txn = db.begin().expect("begin");
            put(&mut txn, &table, 9, 9, None).expect("a row");
            drop(txn.publish().expect("a commit"));
        }
        drop((table, db));
        let db = Database::open(home.path()).expect("open");
        let how = db.recovery();
        assert!(how.was_closed && how.from_image, "{prepares} {publishes}: {how:?}");
        assert_eq!(db.prepared().len(), usize::from(prepares));
        db.prepared().iter().for_each(|name| db.take_prepared(name).expect("it").rollback().expect("it"));
    }
}

/// A table in which it has only locked a row can get an index, and go.
#[test]
fn a_table_of_which_it_has_changed_nothing_may_go() {
    let (db, table) = new();
    let definition = || TableDef::new("u").column("id", Type::U64).primary_key(["id"]);
    for level in LEVELS {
        let other = db.create_table(definition()).expect("a table");
        db.run(|txn| txn.insert(&other, &[1u64.into()])).expect("a commit");
        let mut txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("begin");
        assert!(txn.get_for_update(&other, &[1u64.into()]).expect("a look-up").is_some());
        put(&mut txn, &table, 0, 50, None).expect("a row");
        let prepared = db.prepare(txn, b"x").expect("nothing is in its way");
        db.create_index(&other, IndexDef::new("by_id", ["id"])).expect("no row of it has changed");
        db.drop_table("u").expect("no row of it has changed");
        prepared.commit().expect("a commit");
    }
}

fn prepare_one(db: &Database, table: &Table, id: u64, name: &[u8]) -> pantile::PreparedTransaction {
    let mut txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
    put(&mut txn, table, id, 100 + id, None).expect("a row");
    db.prepare(txn, name).expect("nothing is in its way")
}

/// A record that cannot be repeated keeps nobody from the rest, and can be rolled back.
#[test]
fn a_damaged_record_keeps_nobody_out() {
    let (db, table) = new();
    drop(prepare(&db, &table, Isolation::Snapshot, b"x"));
    drop(prepare_one(&db, &table, 9, b"y"));
    let record = db.table("#prepared").expect("it has been made");
    db.run(|txn| txn.insert(&record, &[Value::Bytes(b"z"), 0u64.into(), Value::Bytes(b"no record")]))
        .expect("a commit");
    let medium = copy_of(&*medium_of(&db));
    let next = options().begin_wait(Duration::ZERO).on_medium(medium).open("unused").expect("it opens");
    assert_eq!(next.prepared(), [b"x".to_vec(), b"y".to_vec(), b"z".to_vec()]);
    let error = next.take_prepared(b"z").expect("it waits").commit().expect_err("it is damaged");
    assert!(matches!(&error, Error::Damaged { place, .. } if place.contains("\"z\"")), "{error}");
    // A rollback that is refused does not come in the way of the next.
    let all: Vec<_> = std::iter::from_fn(|| next.begin_read().ok()).collect();
    let refused = next.take_prepared(b"z").expect("it waits").rollback();
    assert!(matches!(refused, Err(Error::TooManyTransactions { .. })), "{refused:?}");
    drop(all);
    next.take_prepared(b"z").expect("it waits").rollback().expect("nothing is in its way");
    next.take_prepared(b"x").expect("it waits").commit().expect("a commit");
    next.take_prepared(b"y").expect("it waits").commit().expect("a commit");
    let (last, there) = killed(&next);
    assert!(last.prepared().is_empty());
    assert_eq!(rows(&last, &there).len(), AFTER.len() + 1);
}

/// Others may change the rows of one that could not be made again. It stays so, also if a later opening finds all of it
/// whole.
#[test]
fn what_could_not_be_repeated_is_not_repeated_later() {
    let (db, table) = new();
    let key = |name| [Value::Bytes(name), Value::UInt(0)];
    let prepared = prepare_one(&db, &table, 9, b"x");
    let of_record = |db: &Database| db.table("#prepared").expect("it has been made");
    let record = {
        let (of_record, txn) = (of_record(&db), db.begin_read().expect("begin"));
        let row = txn.get(&of_record, &key(b"x")).expect("a read").expect("the record");
        row.get::<&[u8]>(2).expect("bytes").to_vec()
    };
    prepared.rollback().expect("a rollback");
    let put_record = |db: &Database, bytes: &[u8]| {
        let [name, part] = key(b"y");
        db.run(|txn| txn.upsert(&of_record(db), &[name, part, Value::Bytes(bytes)])).expect("a record");
    };
    put_record(&db, b"no record");
    let (next, _) = killed(&db);
    next.take_prepared(b"y").expect("it waits").commit().expect_err("it cannot be made again");
    next.drop_table("t").expect("it is not known that it has changed it");
    let (next, _) = killed(&db);
    put_record(&next, &record);
    let (last, _) = killed(&next);
    let error = last.take_prepared(b"y").expect("it waits").commit().expect_err("nor is it now");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(matches!(last.drop_table("t"), Err(Error::PreparedChanges { .. })));
    last.take_prepared(b"y").expect("it waits").rollback().expect("a rollback");
    let (end, _) = killed(&last);
    assert!(end.prepared().is_empty());
    end.drop_table("t").expect("nothing is prepared");
}

/// What is prepared has no version yet, and no entry that counts.
#[test]
fn a_database_with_something_prepared_is_sound() {
    let place = ScratchDir::new();
    let [first, backup, copy] = ["first", "backup", "copy"].map(|name| place.path().join(name));
    let db = options().open(&first).expect("a database");
    let table = db.create_table(definition()).expect("a table");
    db.run(|txn| (0..4u64).try_for_each(|n| put(txn, &table, n, 10 + n, None))).expect("a commit");
    let mut txn = db.begin().expect("begin");
    put(&mut txn, &table, 9, 50, None).expect("a row");
    put(&mut txn, &table, 0, 60, None).expect("another key");
    drop(db.prepare(txn, b"x").expect("prepared"));
    // What is prepared has written, and nobody waits for its end here.
    let options_of_backup = BackupOptions::new().wait(Duration::ZERO);
    db.backup_to(&backup, &options_of_backup).expect("a backup");
    drop(table);
    db.close().expect("it closes");
    for path in [&first, &backup] {
        let report = check(path, &CheckOptions::new()).expect("a check");
        assert!(report.is_sound(), "{report:?}");
    }
    restore(&backup, &copy, &CheckOptions::new()).expect("restored");
    let db = options().open(&copy).expect("it opens");
    let table = db.table("t").expect("the table");
    db.take_prepared(b"x").expect("it waits").commit().expect("a commit");
    assert_eq!(rows(&db, &table), [(0, 60), (1, 11), (2, 12), (3, 13), (9, 50)]);
}

/// Writers may have all their slots: what is prepared is rolled back and committed.
#[test]
fn it_needs_no_slot_of_writers() {
    let (db, table) = new();
    let prepared = prepare(&db, &table, Isolation::Snapshot, b"x");
    let kept = prepare_one(&db, &table, 9, b"y");
    // 960 in all.
    let writers: Vec<_> = (0..958).map(|_| db.begin().expect("a slot")).collect();
    prepared.rollback().expect("nothing is in its way");
    kept.commit().expect("a commit");
    drop(writers);
    assert_eq!(rows(&db, &table).len(), BEFORE.len() + 1);
}

#[test]
fn one_of_another_database_is_refused() {
    let ((db, table), (other, _)) = (new(), new());
    let mut txn = db.begin().expect("begin");
    put(&mut txn, &table, 0, 50, None).expect("a row");
    let error = other.prepare(txn, b"x").expect_err("it is of another database").to_string();
    assert!(error.contains("another database"), "{error}");
    assert!(other.prepared().is_empty());
    db.run(|txn| put(txn, &table, 0, 50, None)).expect("nothing is locked");
}
