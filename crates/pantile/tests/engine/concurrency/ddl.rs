//! Definitions change beside running transactions.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::{Error, IndexDef, IndexProgress, Isolation, Range, TableDef, Type};
use pantile_testkit::{Bed, Home, Random, SaysDone, SeedNote, await_that, seeds};

use super::table::Things;
use crate::support::{LEVELS, in_memory, is_conflict, is_duplicate};

fn by_name() -> IndexDef {
    IndexDef::new("by_name", ["name"])
}

/// Progress rises to its end. Break ends the creation, and nothing of the index is left.
#[test]
fn the_creation_of_an_index_shows_progress_and_can_be_ended() {
    const ROWS: u64 = 10_000;
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("code", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("a table");
    db.run(|txn| (0..ROWS).try_for_each(|id| txn.insert(&table, &[id.into(), id.into()]))).expect("rows");
    for def in [IndexDef::new("by_code", ["code"]), IndexDef::unique("by_code", ["code"])] {
        let mut seen = Vec::new();
        let note = |progress: IndexProgress| {
            seen.push((progress.done, progress.total));
            ControlFlow::Continue(())
        };
        let index = db.create_index_with(&table, def.clone(), note).expect("an index");
        assert_eq!(
            db.begin_read().expect("begin").scan_index(&index, Range::all()).expect("a scan").count(),
            10_000
        );
        let (done, total) = seen[seen.len() - 1];
        assert!(seen.is_sorted() && done == total && total >= ROWS && seen.len() > 3, "{seen:?}");
        drop(index);
        db.drop_index(&table, "by_code").expect("dropped");
        for calls in 1..=seen.len() {
            let mut left = calls;
            let mut writer = db.begin().expect("begin");
            let mut write = |id: u64| writer.upsert(&table, &[id.into(), id.into()]).map(drop);
            let end = |_| {
                left -= 1;
                if left > 0 {
                    return ControlFlow::Continue(());
                }
                // It enters its key in the index that goes.
                write(ROWS - 1).expect("a row");
                ControlFlow::Break(())
            };
            let ended = db.create_index_with(&table, def.clone(), end);
            assert!(matches!(ended, Err(Error::Cancelled)), "{calls}: {ended:?}");
            assert!(table.index("by_code").is_err() && table.definition().indexes.is_empty());
            write(ROWS - 2).expect("a row");
            writer.commit().expect("no index forbids it");
        }
        let panics = || db.create_index_with(&table, def.clone(), |_| panic!("nobody reads the progress"));
        catch_unwind(AssertUnwindSafe(panics)).expect_err("a panic");
        db.run(|txn| txn.upsert(&table, &[0u64.into(), 1u64.into()])).expect("no index forbids it");
        db.run(|txn| txn.upsert(&table, &[0u64.into(), 0u64.into()])).expect("as before");
        assert!(matches!(db.drop_index(&table, "by_code"), Err(Error::UnknownIndex { .. })));
    }
    let twice = db.run(|txn| txn.insert(&table, &[ROWS.into(), 5u64.into()]));
    twice.expect("no index forbids it");
}

#[test]
fn closing_ends_the_creation_of_an_index() {
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("a table");
    db.run(|txn| (0..10_000u64).try_for_each(|id| txn.insert(&table, &[id.into()]))).expect("rows");
    std::thread::scope(|scope| {
        let mut closing = None;
        let made = db.create_index_with(&table, IndexDef::new("by_id", ["id"]), |_| {
            if closing.is_none() {
                closing = Some(scope.spawn(|| db.clone().close()));
                await_that("closing begins", || matches!(db.begin_read(), Err(Error::Closed)));
            }
            ControlFlow::Continue(())
        });
        assert!(matches!(made, Err(Error::Closed)), "{made:?}");
        closing.expect("it has been called").join().expect("no panic").expect("nothing else is open");
    });
}

/// At no moment do two rows have one code, though each code goes from row to row.
#[test]
fn codes_that_rows_pass_on_are_unique() {
    const ROWS: u64 = 200;
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("code", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("a table");
    db.run(|txn| (0..ROWS).try_for_each(|id| txn.insert(&table, &[id.into(), id.into()]))).expect("rows");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        let (db, table, done) = (&db, &table, &done);
        scope.spawn(move || {
            for by in (1..).take_while(|_| !done.load(Ordering::Relaxed)) {
                // Each goes to the next row, whose entry the check comes to later.
                let turn = |txn: &mut pantile::Transaction| {
                    txn.update(table, &[(ROWS - 1).into()], &[("code", (ROWS + 1).into())])?;
                    (0..ROWS).try_for_each(|id| {
                        let code = (id + ROWS - by % ROWS) % ROWS;
                        txn.update(table, &[id.into()], &[("code", code.into())]).map(drop)
                    })
                };
                db.run(turn).unwrap_or_else(|error| assert!(is_conflict(&error), "{error}"));
            }
        });
        for _ in 0..150 {
            db.create_index(table, IndexDef::unique("by_code", ["code"])).expect("no two rows have one code");
            db.drop_index(table, "by_code").expect("the index");
        }
        drop(over);
    });
}

#[test]
fn indexes_come_and_go_beside_writers() {
    for seed in seeds(1, 2) {
        let _note = SeedNote(seed);
        let db = Home::new(Bed::Dram).collect_by_seed(seed).open();
        let things = Things::new(&db, &[]);
        things.fill((0..2_000).map(|n| (n, n % 7, 0)));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = SaysDone(&done);
            for n in 0..3 {
                let (things, done) = (&things, &done);
                let mut rng = Random::new(seed << 8 | n, 0);
                scope.spawn(move || {
                    while !done.load(Ordering::Relaxed) {
                        let mut txn = things.begin(*rng.pick(&LEVELS));
                        let changed = (0..4).try_for_each(|_| {
                            let id = rng.below(2_200);
                            let name = rng.below(7);
                            match rng.below(3) {
                                0 => things.delete(&mut txn, id).map(|_| ()),
                                1 => things.rename(&mut txn, id, name).map(|_| ()),
                                _ => txn
                                    .upsert(&things.table, &[id.into(), name.into(), 0i64.into()])
                                    .map(|_| ()),
                            }
                        });
                        let ended = changed.and_then(|()| txn.commit().map(|_| ()));
                        ended.unwrap_or_else(|error| assert!(is_conflict(&error), "{error}"));
                    }
                });
            }
            for _ in 0..12 {
                let old = db.begin_safe_snapshot().expect("a snapshot");
                let index = db.create_index(&things.table, by_name()).expect("an index");
                // The index is complete at once, also for transactions that
                // began before.
                assert_eq!(things.indexed(&old, &index).unwrap(), things.all(&old).unwrap(), "older");
                for _ in 0..5 {
                    let txn = db.begin_read().expect("a transaction");
                    match things.all(&txn).and_then(|all| Ok((all, things.indexed(&txn, &index)?))) {
                        Ok((all, indexed)) => assert_eq!(indexed, all),
                        Err(error) => assert!(is_conflict(&error), "{error}"),
                    }
                }
                db.drop_index(&things.table, "by_name").expect("it is there");
                assert!(matches!(things.table.index("by_name"), Err(Error::UnknownIndex { .. })));
            }
            drop(over);
        });
        let index = db.create_index(&things.table, by_name()).expect("an index");
        let txn = db.begin().expect("a transaction");
        assert_eq!(things.indexed(&txn, &index).unwrap(), things.all(&txn).unwrap());
    }
}

#[test]
fn writers_from_before_an_index_enter_their_keys() {
    for level in LEVELS {
        let db = in_memory();
        let things = Things::new(&db, &[]);
        things.fill((0..10).map(|n| (n, n, 0)));
        let mut before = things.begin(level);
        things.rename(&mut before, 3, 33).unwrap();
        things.delete(&mut before, 4).unwrap();
        things.insert(&mut before, 20, 20, 0).unwrap();
        let index = db.create_index(&things.table, by_name()).unwrap();
        let find = |txn: &pantile::Transaction, name: u64| {
            let row = txn.get_by_index(&index, &[name.into()]).unwrap();
            row.map(|row| row.get::<u64>(0).unwrap())
        };
        assert_eq!((find(&before, 33), find(&before, 20)), (Some(3), Some(20)), "its own rows, {level:?}");
        assert_eq!((find(&before, 3), find(&before, 4)), (None, None));
        things.rename(&mut before, 5, 55).unwrap();
        assert_eq!((find(&before, 5), find(&before, 55)), (None, Some(5)));
        before.commit().unwrap();
        let txn = db.begin().unwrap();
        assert_eq!(things.indexed(&txn, &index).unwrap(), things.all(&txn).unwrap(), "{level:?}");
    }
}

#[test]
fn a_unique_index_is_not_built_over_duplicates() {
    let db = in_memory();
    let things = Things::new(&db, &[]);
    things.fill((0..500).map(|n| (n, n % 499, 0)));
    let unique = || IndexDef::unique("by_name", ["name"]);
    assert!(is_duplicate(&db.create_index(&things.table, unique()).unwrap_err()));
    assert!(things.table.definition().indexes.is_empty());
    db.run(|t| things.insert(t, 1_000, 0, 0)).expect("there is no such index");
    db.run(|t| things.delete(t, 499).and_then(|_| things.delete(t, 1_000))).unwrap();

    // A transaction that began before, and whose row would be the second with
    // its name.
    let mut before = db.begin().unwrap();
    things.insert(&mut before, 2_000, 7, 0).unwrap();
    db.create_index(&things.table, unique()).unwrap();
    let refused = before.commit().unwrap_err();
    assert!(is_duplicate(&refused), "{refused}");
    assert!(is_duplicate(&db.run(|t| things.insert(t, 3_000, 7, 0)).unwrap_err()));
}

/// A writer adds a name that is already taken while the unique index is being
/// built. Either the index or the writer must fail, at whatever moment they
/// meet.
#[test]
fn a_unique_index_is_built_beside_a_duplicate() {
    let db = in_memory();
    for round in 0..60u64 {
        let def = TableDef::new(format!("names{round}"))
            .column("id", Type::U64)
            .column("name", Type::U64)
            .column("size", Type::I64)
            .primary_key(["id"]);
        let things = Things { table: db.create_table(def).unwrap(), db: db.clone() };
        things.fill((0..3_000).map(|n| (n, n, 0)));
        let level = LEVELS[round as usize % 3];
        let (built, committed) = std::thread::scope(|scope| {
            let things = &things;
            let (begun, go) = std::sync::mpsc::channel();
            let (ended, end) = std::sync::mpsc::channel::<()>();
            let writer = scope.spawn(move || {
                go.recv().unwrap();
                std::thread::sleep(Duration::from_micros(round * 15));
                let mut txn = things.begin(level);
                let inserted = things.insert(&mut txn, 9_999, 2_999, 0);
                // It commits only after the index exists.
                end.recv().unwrap();
                inserted.and_then(|()| txn.commit())
            });
            begun.send(()).unwrap();
            let built = things.db.create_index(&things.table, IndexDef::unique("unique", ["name"]));
            ended.send(()).unwrap();
            (built, writer.join().unwrap())
        });
        assert!(built.is_err() || committed.is_err(), "two rows have the name, round {round}");
        for error in built.err().into_iter().chain(committed.err()) {
            assert!(is_duplicate(&error) || is_conflict(&error), "{error}");
        }
    }
}

#[test]
fn tables_come_and_go_beside_writers() {
    let db = in_memory();
    let def = |n: u64| {
        TableDef::new("things")
            .column("id", Type::U64)
            .column("name", Type::U64)
            .column("size", Type::I64)
            .primary_key(["id"])
            .index(IndexDef::new(format!("index{n}"), ["name"]))
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        for n in 0..3 {
            let (db, done) = (&db, &done);
            let mut rng = Random::new(n, 0);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let Ok(table) = db.table("things") else { continue };
                    let things = Things { db: db.clone(), table };
                    let mut txn = things.begin(*rng.pick(&LEVELS));
                    let ended = (0..5)
                        .try_for_each(|_| {
                            let id = rng.below(50);
                            txn.upsert(&things.table, &[id.into(), id.into(), 0i64.into()]).map(|_| ())
                        })
                        .and_then(|()| txn.commit().map(|_| ()));
                    if let Err(error) = ended {
                        assert!(is_conflict(&error) || matches!(error, Error::TableDropped(_)), "{error}");
                    }
                }
            });
        }
        for n in 0..100 {
            let table = db.create_table(def(n)).expect("a table");
            let mut txn =
                db.begin_with(crate::support::abort_at(Isolation::Snapshot)).expect("a transaction");
            let begun = txn.insert(&table, &[10_000u64.into(), 0u64.into(), 0i64.into()]);
            std::thread::sleep(Duration::from_micros(200));
            db.drop_table("things").expect("it is there");
            begun.expect("the key is free");
            assert!(matches!(txn.commit(), Err(Error::TableDropped(_))), "it has written to it");
            let txn = db.begin().expect("a transaction");
            assert!(matches!(txn.get(&table, &[0u64.into()]), Err(Error::TableDropped(_))));
        }
        drop(over);
    });
    assert!(db.tables().is_empty());
}
