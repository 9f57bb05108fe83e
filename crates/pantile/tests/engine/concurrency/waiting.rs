//! Waiting for other transactions, deadlocks, and the kinds of conflicts.

use std::sync::Barrier;
use std::time::Duration;

use pantile::{
    Conflict, Database, Error, IndexDef, Isolation, MediumKind, Options, Range, Result, RowId, Timestamp,
    Transaction, Value,
};
use pantile_testkit::await_that;

use super::table::Things;
use crate::support::{abort_at, in_memory, is_duplicate, wait_at};
use crate::waiting::sleeps;

/// Longer than any wait in these tests.
const LONG: Duration = Duration::from_secs(600);

const WAITER: &str = "waits-to-insert";
const UPDATER: &str = "waits-to-update";

fn two_things() -> Things {
    two_things_in(&in_memory())
}

fn two_things_in(db: &Database) -> Things {
    let things = Things::new(db, &[IndexDef::unique("by_name", ["name"])]);
    things.fill((0..2).map(|n| (n, n, 0)));
    things
}

#[track_caller]
fn conflict<T: std::fmt::Debug>(result: Result<T>) -> Conflict {
    match result {
        Err(Error::Conflict { conflict, table }) => {
            assert_eq!(table, "things");
            conflict
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn conflicts_say_which() {
    let options = Options::new().medium(MediumKind::Dram);
    let things = two_things_in(&options.writers_move(false).open("unused").unwrap());
    let db = &things.db;
    for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let mut holder = db.begin().unwrap();
        things.resize(&mut holder, 0, 1).unwrap();
        let mut other = db.begin_with(abort_at(level)).unwrap();
        assert_eq!(conflict(things.resize(&mut other, 0, 2)), Conflict::Locked);
        let mut other = db.begin_with(wait_at(level, Duration::from_millis(20))).unwrap();
        assert_eq!(conflict(things.resize(&mut other, 0, 2)), Conflict::TimedOut);
    }
    // A reader waits only for older transactions.
    let old = db.begin_with(wait_at(Isolation::Serializable, LONG)).unwrap();
    let mut holder = db.begin().unwrap();
    things.resize(&mut holder, 1, 1).unwrap();
    assert_eq!(things.size(&old, 1).unwrap(), Some(0));
    let young = db.begin_with(wait_at(Isolation::Serializable, Duration::from_millis(20))).unwrap();
    assert_eq!(conflict(things.size(&young, 1)), Conflict::TimedOut);
    drop((old, young, holder));

    let mut old = db.begin_with(wait_at(Isolation::Serializable, LONG)).unwrap();
    let mut young = db.begin().unwrap();
    things.resize(&mut young, 0, 5).unwrap();
    assert_eq!(conflict(things.resize(&mut old, 0, 6)), Conflict::Locked, "waiting cannot help");
    young.commit().unwrap();
    assert_eq!(conflict(things.resize(&mut old, 0, 6)), Conflict::WrittenByLater);
    let young = db.begin().unwrap();
    assert_eq!(things.size(&young, 1).unwrap(), Some(0));
    assert_eq!(things.size(&young, 77).unwrap(), None);
    drop(young);
    assert_eq!(conflict(things.resize(&mut old, 1, 6)), Conflict::ReadByLater);
    assert_eq!(conflict(things.insert(&mut old, 77, 77, 0)), Conflict::ReadByLater);

    let mut snapshot = db.begin_with(abort_at(Isolation::Snapshot)).unwrap();
    db.run(|t| things.resize(t, 0, 7)).unwrap();
    assert_eq!(conflict(things.resize(&mut snapshot, 0, 8)), Conflict::ChangedSinceSnapshot);
    db.run(|t| things.rename(t, 0, 50)).unwrap();
    let taken = things.insert(&mut snapshot, 60, 0, 0);
    assert_eq!(conflict(taken), Conflict::ChangedSinceSnapshot, "the snapshot shows a row with this name");
}

/// Below Serializable, a key is taken or free as the transaction that has its row leaves it. A
/// replica's appliers need that: the next one begins before the one that deleted the row has committed.
#[test]
fn an_insert_waits_for_what_becomes_of_the_row() {
    for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
        for (deletes, commits) in [(true, true), (true, false), (false, true)] {
            for (is_prepared, many) in [(false, false), (false, true), (true, false)] {
                insert_beside(level, deletes, commits, is_prepared, many);
            }
        }
    }
}

fn insert_beside(level: Isolation, deletes: bool, commits: bool, is_prepared: bool, many: bool) {
    let things = two_things();
    let insert = |txn: &mut Transaction| match many {
        false => things.insert(txn, 0, 7, 2),
        true => {
            let things_of = [[9u64, 9, 9], [0, 7, 2]]
                .map(|[id, name, size]| [Value::UInt(id), Value::UInt(name), Value::Int(size as i64)]);
            txn.insert_many(&things.table, things_of).map(drop)
        }
    };
    let mut holder = things.db.begin_with(wait_at(level, LONG)).unwrap();
    if deletes {
        assert!(things.delete(&mut holder, 0).unwrap());
    } else {
        things.resize(&mut holder, 0, 1).unwrap();
    }
    let end: Box<dyn FnOnce()> = if is_prepared {
        let holder = things.db.prepare(holder, b"holder").unwrap();
        Box::new(
            move || if commits { holder.commit().map(drop).unwrap() } else { holder.rollback().unwrap() },
        )
    } else {
        Box::new(move || if commits { holder.commit().map(drop).unwrap() } else { holder.rollback() })
    };
    let mut hasty = things.db.begin_with(abort_at(level)).unwrap();
    assert_eq!(conflict(insert(&mut hasty)), Conflict::Locked);
    drop(hasty);
    let mut other = things.db.begin_with(wait_at(level, LONG)).unwrap();
    let inserted = std::thread::scope(|scope| {
        let waiter = std::thread::Builder::new().name(WAITER.into());
        let inserting = waiter.spawn_scoped(scope, || insert(&mut other)).unwrap();
        await_that("the insert waits", || sleeps(WAITER));
        end();
        inserting.join().unwrap()
    });
    match (level, deletes, commits) {
        (Isolation::Snapshot, _, true) => assert_eq!(conflict(inserted), Conflict::ChangedSinceSnapshot),
        (_, false, _) | (_, _, false) => assert!(is_duplicate(&inserted.unwrap_err())),
        (_, true, true) => {
            inserted.unwrap();
            other.commit().unwrap();
            assert_eq!(things.db.run(|txn| things.size(txn, 0)).unwrap(), Some(2));
        }
    }
}

/// A writer that comes too late for its first row begins again behind the others,
/// if it has read nothing, has no cursor, has looked at no place, and nobody knows its
/// timestamp.
#[test]
fn fresh_writers_begin_again() {
    let things = two_things();
    let db = &things.db;
    let begin = || db.begin_with(wait_at(Isolation::Serializable, LONG)).unwrap();
    let [mut fresh, mut reading, mut known, mut by_place, mut with_cursor] = [(); 5].map(|()| begin());
    let _cursor = with_cursor.cursor(&things.table, Range::all()).unwrap();
    let mut hasty = db.begin_with(abort_at(Isolation::Serializable)).unwrap();
    assert_eq!(things.size(&reading, 1).unwrap(), Some(0));
    let began = known.timestamp();
    assert!(by_place.get_row(&things.table, RowId::new(u64::MAX)).unwrap().is_none());
    let mut young = db.begin().unwrap();
    things.resize(&mut young, 0, 5).unwrap();
    assert_eq!(conflict(things.resize(&mut hasty, 0, 6)), Conflict::Locked);
    for old in [&mut reading, &mut known, &mut by_place, &mut with_cursor] {
        assert_eq!(conflict(things.resize(old, 0, 6)), Conflict::Locked, "waiting cannot help");
    }
    std::thread::scope(|scope| {
        let resizing = scope.spawn(|| {
            assert!(things.resize(&mut fresh, 0, 6).unwrap());
            fresh
        });
        let written = young.commit().unwrap();
        let fresh = resizing.join().unwrap();
        assert!(fresh.timestamp() > written && written > began);
        assert_eq!(conflict(things.resize(&mut hasty, 0, 7)), Conflict::Locked);
        fresh.commit().unwrap();
    });
    for old in [&mut reading, &mut known, &mut by_place, &mut with_cursor] {
        assert_eq!(conflict(things.resize(old, 0, 6)), Conflict::WrittenByLater);
    }
    assert_eq!(known.timestamp(), began);
    things.resize(&mut hasty, 0, 7).unwrap();
    hasty.commit().unwrap();
    assert_eq!(db.run(|txn| things.size(txn, 0)).unwrap(), Some(7));
}

/// A reader goes past older writers, whatever its conflict policy, and they
/// commit behind it.
#[test]
fn readers_wait_for_nobody_at_work() {
    let things = two_things();
    let db = &things.db;
    for level in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let before = db.run(|t| things.size(t, 0)).unwrap().unwrap();
        let mut holder = db.begin().unwrap();
        things.resize(&mut holder, 0, before + 1).unwrap();
        things.insert(&mut holder, 77, 77, 0).unwrap();
        let reader = db.begin_with(abort_at(level).read_only(true)).unwrap();
        assert_eq!(things.size(&reader, 0).unwrap(), Some(before), "{level:?}");
        assert_eq!(things.size(&reader, 77).unwrap(), None);
        assert_eq!(things.all(&reader).unwrap().len(), 2);
        assert!(holder.commit().unwrap() > reader.timestamp());
        let after = if level == Isolation::ReadCommitted { before + 1 } else { before };
        assert_eq!(things.size(&reader, 0).unwrap(), Some(after), "{level:?}");
        db.run(|t| things.delete(t, 77)).unwrap();
    }
}

type Step<'s> = &'s dyn Fn(&mut Transaction) -> Result<()>;

/// A writer reads and writes, a reader comes behind it, and a transaction that
/// began in between changes something. Returns where the writer and that
/// transaction committed, in the order that `first_writer` says.
fn beside_a_move(
    things: &Things,
    read: Step<'_>,
    change: Step<'_>,
    writer_first: bool,
) -> [Result<Timestamp>; 2] {
    let db = &things.db;
    let mut writer = db.begin().unwrap();
    read(&mut writer).unwrap();
    let mut between = db.begin().unwrap();
    things.resize(&mut writer, 0, 5).unwrap();
    let reader = db.begin_read().unwrap();
    assert!(things.size(&reader, 0).unwrap().is_some());
    change(&mut between).unwrap();
    let ended = match writer_first {
        true => [writer.commit(), between.commit()],
        false => {
            let between = between.commit();
            [writer.commit(), between]
        }
    };
    assert!(ended[0].as_ref().map_or(true, |at| *at > reader.timestamp()));
    ended
}

/// What a writer that moves has read must hold where it commits, and stays so.
#[test]
fn a_writer_that_moves_reads_again() {
    let one = |things: &Things, t: &mut Transaction| things.size(t, 1).map(drop);
    let absent = |things: &Things, t: &mut Transaction| things.size(t, 50).map(drop);
    let scan = |things: &Things, t: &mut Transaction| things.all(t).map(drop);
    let by_name =
        |things: &Things, t: &mut Transaction| things.indexed(t, &things.index("by_name")).map(drop);
    let resize = |things: &Things, t: &mut Transaction| things.resize(t, 1, 9).map(drop);
    let insert = |things: &Things, t: &mut Transaction| things.insert(t, 50, 50, 0);
    type Of<'s> = &'s dyn Fn(&Things, &mut Transaction) -> Result<()>;
    let cases: [(Of<'_>, Of<'_>, bool); 8] = [
        (&one, &resize, true),
        (&one, &insert, false),
        (&absent, &resize, false),
        (&absent, &insert, true),
        (&scan, &resize, true),
        (&scan, &insert, true),
        (&by_name, &resize, true),
        (&by_name, &insert, true),
    ];
    for (n, (read, change, related)) in cases.into_iter().enumerate() {
        for writer_first in [true, false] {
            let things = two_things();
            let (read, change) =
                (|t: &mut Transaction| read(&things, t), |t: &mut Transaction| change(&things, t));
            let [writer, between] = beside_a_move(&things, &read, &change, writer_first);
            let between = between.expect("it has read nothing");
            match (writer_first, related) {
                (false, true) => assert_eq!(conflict(writer), Conflict::ReadChanged, "case {n}"),
                (true, true) => assert!(between > writer.unwrap(), "case {n}: it comes behind what was read"),
                (_, false) => assert!(between < writer.unwrap(), "case {n}: nobody is in its way"),
            }
        }
    }
}

#[test]
fn waiting_ends_with_the_other() {
    let things = two_things();
    for level in [Isolation::Serializable, Isolation::ReadCommitted] {
        for commits in [true, false] {
            let before = things.db.run(|t| things.size(t, 0)).unwrap().unwrap();
            let mut holder = things.begin(level);
            things.resize(&mut holder, 0, before + 10).unwrap();
            std::thread::scope(|scope| {
                let waiter = std::thread::Builder::new().name(UPDATER.into()).spawn_scoped(scope, || {
                    let mut txn = things.db.begin_with(wait_at(level, LONG)).unwrap();
                    txn.modify(&things.table, &[0u64.into()], |row| {
                        let size: i64 = row.get(2)?;
                        row.set(2, (size + 1).into()).map(|()| true)
                    })?;
                    txn.commit()
                });
                let waiter = waiter.unwrap();
                await_that("the update waits", || sleeps(UPDATER));
                if commits {
                    holder.commit().unwrap();
                } else {
                    holder.rollback();
                }
                waiter.join().unwrap().expect("no conflict any more");
            });
            let after = things.db.run(|t| things.size(t, 0)).unwrap().unwrap();
            assert_eq!(after, before + if commits { 11 } else { 1 });
        }
    }
}

/// Exactly one transaction of each circle gets the error, and the others go on
/// once it has ended.
#[test]
fn a_deadlock_has_one_victim() {
    for members in [2, 3] {
        let things = Things::new(&in_memory(), &[]);
        things.fill((0..members).map(|n| (n, n, 0)));
        for _ in 0..100 {
            close_circle(&things, members);
        }
    }
}

fn close_circle(things: &Things, members: u64) {
    let barrier = Barrier::new(members as usize);
    let attempt = |first: u64, second: u64| {
        let mut txn = things.db.begin_with(wait_at(Isolation::ReadCommitted, LONG)).unwrap();
        things.resize(&mut txn, first, 1).unwrap();
        barrier.wait();
        things.resize(&mut txn, second, 2)?;
        txn.commit()
    };
    let attempt = &attempt;
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let start = |n| scope.spawn(move || attempt(n, (n + 1) % members));
        let threads: Vec<_> = (0..members).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut errors: Vec<_> = outcomes.into_iter().filter_map(Result::err).collect();
    let victim = errors.pop().expect("each round has a circle");
    assert_eq!(conflict::<()>(Err(victim)), Conflict::Deadlock);
    assert!(errors.is_empty(), "{errors:?}");
}
