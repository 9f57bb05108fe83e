//! Cursors that lock what they come to, and statements.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

#[test]
fn cursors_lock_what_they_come_to() {
    for level in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let goods = Goods::new(in_memory(), 6);
        let mut holder = goods.begin(Isolation::Snapshot);
        holder.get_for_update(&goods.table, &[1u64.into()]).expect("locked");
        let mut txn = goods.db.begin_with(abort_at(level)).expect("a transaction");
        let mut cursor = txn.cursor(&goods.table, Range::all()).expect("a cursor");
        assert_eq!(locked(&mut cursor, &mut txn).expect("a row"), Some(0));
        assert_eq!(conflict(locked(&mut cursor, &mut txn)), Conflict::Locked);
        assert_eq!(conflict(locked(&mut cursor, &mut txn)), Conflict::Locked, "it stays before the row");
        let skipped = cursor.next_for_update(&mut txn, true).expect("a row").expect("one more");
        assert_eq!(skipped.get::<u64>(0).expect("an id"), 2);
        // Others wait for what it has come to, and not for what it has let go.
        let mut other = goods.db.begin_with(abort_at(Isolation::ReadCommitted)).expect("a transaction");
        let two = [Value::UInt(2)];
        assert_eq!(conflict(other.delete(&goods.table, &two)), Conflict::Locked);
        let place = cursor.row_id().expect("a place");
        assert!(txn.unlock_row(&goods.table, place) && !txn.unlock_row(&goods.table, place));
        let mut other = goods.db.begin_with(abort_at(Isolation::ReadCommitted)).expect("a transaction");
        assert!(other.delete(&goods.table, &two).expect("free"));
        other.rollback();
        let stranger = goods.begin(level);
        assert!(matches!(cursor.next(&stranger), Err(Error::UnknownCursor)));
        // A row that was written is not let go.
        let place = RowId::new(place.get());
        txn.update_row(&goods.table, place, &[(1, 77u32.into())]).expect("updated");
        assert!(!txn.unlock_row(&goods.table, place));
        holder.rollback();
        txn.commit().expect("committed");
    }
}

/// At read committed a cursor locks the newest rows, and leaves out those that are not in its range any more.
#[test]
fn newest_rows_are_locked_at_read_committed() {
    let goods = Goods::new(in_memory(), 10);
    let mut txn = goods.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let two = [Value::UInt(2)];
    let mut cursor = txn.index_cursor(&goods.by_kind, Range::prefix(&two)).expect("a cursor");
    goods
        .db
        .run(|other| {
            other.update(&goods.table, &[1u64.into()], &[(1, 0u32.into())])?;
            other.update(&goods.table, &[6u64.into()], &[(2, "changed".into())]).map(drop)
        })
        .expect("committed");
    let row = cursor.next_for_update(&mut txn, false).expect("a row").expect("one");
    assert_eq!((row.get::<u64>(0).expect("an id"), row.get::<&str>(2).expect("text")), (6, "changed"));
    assert!(locked(&mut cursor, &mut txn).expect("the end").is_none());
    // Reads are of the statement.
    let old = txn.get(&goods.table, &[6u64.into()]);
    assert_eq!(old.expect("a row").expect("one").get::<&str>(2).expect("text"), "text");
    let other = goods.db.begin_with(abort_at(Isolation::ReadCommitted)).expect("a transaction");
    other.rollback();
    txn.commit().expect("committed");
    // At snapshot level the same is a conflict.
    let mut txn = goods.begin(Isolation::Snapshot);
    goods
        .db
        .run(|other| other.update(&goods.table, &[6u64.into()], &[(1, 2u32.into())]).map(drop))
        .expect("ok");
    let mut cursor =
        txn.cursor(&goods.table, Range::all().from(Bound::Included(&[6u64.into()]))).expect("a cursor");
    assert_eq!(conflict(locked(&mut cursor, &mut txn)), Conflict::ChangedSinceSnapshot);
}

/// What others move along the range of a cursor that locks, it comes to once, also where it has read the entries already.
#[test]
fn rows_that_are_moved_ahead_are_locked_at_read_committed() {
    for reverse in [false, true] {
        let goods = Goods::new(in_memory(), 0);
        let row = |id: u64, kind: u32| [id.into(), kind.into(), Value::Null];
        let add = |id, kind| goods.db.run(|other| other.insert(&goods.table, &row(id, kind))).expect("added");
        (0..20).for_each(|id| add(id, id as u32 * 10));
        let mut txn = goods.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        let range = if reverse { Range::all().reverse() } else { Range::all() };
        let mut cursor = txn.index_cursor(&goods.by_kind, range).expect("a cursor");
        let mut come_to: Vec<_> =
            (0..2).map(|_| locked(&mut cursor, &mut txn).expect("a row").expect("one")).collect();
        let change = |id: u64, kind: u32| {
            let changed = goods.db.run(|other| other.update(&goods.table, &[id.into()], &[(1, kind.into())]));
            assert!(changed.expect("changed"));
        };
        // One is moved on in what has been read already, one back there, one out of it, one behind the cursor, and one
        // takes another's place.
        let (on, back, far, behind, gone): (u64, u64, u64, u64, u64) =
            if reverse { (17, 13, 15, 16, 14) } else { (2, 6, 4, 3, 5) };
        change(on, if reverse { 135 } else { 55 });
        change(back, if reverse { 175 } else { 15 });
        change(far, if reverse { 5 } else { 185 });
        change(behind, if reverse { 1000 } else { 0 });
        let replaced = goods.db.run(|other| {
            other.delete(&goods.table, &[gone.into()])?;
            other.insert(&goods.table, &row(100, gone as u32 * 10))
        });
        replaced.expect("replaced");
        while let Some(id) = locked(&mut cursor, &mut txn).expect("a row or the end") {
            come_to.push(id);
            // One that is moved just before the cursor comes to it.
            match (id, reverse) {
                (16, false) => change(17, 174),
                (3, true) => change(2, 14),
                _ => {}
            }
        }
        let mut expected: Vec<u64> = match reverse {
            false => vec![0, 1, 6, 100, 2, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 4, 19],
            true => vec![19, 18, 13, 100, 17, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 15, 0],
        };
        assert_eq!(come_to, expected, "reverse: {reverse}");
        txn.commit().expect("committed");
        // The next statement comes to the one that was moved out of its way, too.
        let mut txn = goods.begin(Isolation::ReadCommitted);
        let mut cursor = txn.index_cursor(&goods.by_kind, Range::all()).expect("a cursor");
        let mut all: Vec<_> = std::iter::from_fn(|| locked(&mut cursor, &mut txn).expect("a row")).collect();
        all.sort_unstable();
        expected.push(behind);
        expected.sort_unstable();
        assert_eq!(all, expected);
    }
}

/// Others move rows on along the index, or put others in their place. A statement comes to each row once all the same.
#[test]
fn all_rows_are_locked_once_whoever_moves_them() {
    const ROWS: u64 = 60;
    let goods = &Goods::new(in_memory(), 0);
    let row = |id: u64, kind: u64| [id.into(), (kind as u32).into(), Value::Null];
    let added = goods.db.run(|txn| (0..ROWS).try_for_each(|id| txn.insert(&goods.table, &row(id, id))));
    added.expect("added");
    for seed in seeds(1, 1) {
        let _note = SeedNote(seed);
        let is_over = &AtomicBool::new(false);
        std::thread::scope(|scope| {
            for mover in 0..2 {
                scope.spawn(move || {
                    let mut random = Random::new(seed, mover);
                    while !is_over.load(Ordering::Relaxed) {
                        // Each has rows of its own.
                        let which = random.below(ROWS / 2) * 2 + mover;
                        let moved = goods.db.run(|txn| {
                            let mut cursor = txn.cursor(&goods.table, Range::all())?;
                            let mut found = None;
                            while let Some(row) = cursor.next(txn)? {
                                let (id, kind): (u64, u64) = (row.get(0)?, row.get(1)?);
                                found = found.or((id % ROWS == which).then_some((id, kind)));
                            }
                            let (id, kind) = found.expect("the row");
                            let next = kind + 1 + random.below(20);
                            if random.below(2) == 0 {
                                return txn.update(&goods.table, &[id.into()], &[(1, (next as u32).into())]);
                            }
                            txn.delete(&goods.table, &[id.into()])?;
                            txn.insert(&goods.table, &row(id + ROWS, next)).map(|()| true)
                        });
                        assert!(moved.expect("moved"));
                    }
                });
            }
            for _ in 0..100 {
                let met =
                    goods.db.run_with(TransactionOptions::new().isolation(Isolation::ReadCommitted), |txn| {
                        txn.begin_statement();
                        let mut cursor = txn.index_cursor(&goods.by_kind, Range::all())?;
                        let mut met = BTreeMap::new();
                        while let Some(row) = cursor.next_for_update(txn, false)? {
                            let id: u64 = row.get(0)?;
                            *met.entry(id % ROWS).or_insert(0) += 1;
                        }
                        Ok::<_, Error>(met)
                    });
                let is_right = |met: &BTreeMap<u64, u64>| {
                    met.len() as u64 == ROWS && met.values().all(|times| *times == 1)
                };
                if !met.as_ref().is_ok_and(is_right) {
                    // Otherwise the others would be waited for.
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{met:?}");
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

/// The row that has taken over a unique key from another one is come to, whichever tuple it is.
#[test]
fn who_takes_over_a_unique_key_is_locked_at_read_committed() {
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("u", Type::U64).primary_key(["id"]);
    let table = db.create_table(def.index(IndexDef::unique("u", ["u"]))).expect("a table");
    let by_u = table.index("u").expect("an index");
    let add = |id: u64, u: u64| db.run(|txn| txn.insert(&table, &[id.into(), u.into()])).expect("added");
    let remove = |id: u64| assert!(db.run(|txn| txn.delete(&table, &[id.into()])).expect("removed"));
    // Their places are taken again.
    (100..110).for_each(|id| add(id, id));
    (100..110).for_each(remove);
    add(1, 4);
    add(2, 5);
    db.upkeep();
    for turn in 0..20 {
        let mut txn = db
            .begin_with(TransactionOptions::new().isolation(Isolation::ReadCommitted))
            .expect("a transaction");
        let mut cursor = txn.index_cursor(&by_u, Range::all()).expect("a cursor");
        assert_eq!(locked(&mut cursor, &mut txn).expect("a row"), Some(1));
        remove(2 + turn);
        add(3 + turn, 5);
        assert_eq!(locked(&mut cursor, &mut txn).expect("a row"), Some(3 + turn));
        assert_eq!(locked(&mut cursor, &mut txn).expect("the end"), None);
        txn.rollback();
        db.upkeep();
    }
}

/// What a serializable transaction is writing holds up no read of one below serializable, and commits behind it. What that
/// one locks is another matter.
#[test]
fn reads_below_serializable_go_past_serializable_writers() {
    for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let goods = Goods::new(in_memory(), 3);
        let mut writer = goods.begin(Isolation::Serializable);
        assert!(writer.update(&goods.table, &[1u64.into()], &[(1, 9u32.into())]).expect("updated"));
        let mut other = goods.db.begin_with(abort_at(level)).expect("a transaction");
        let kind = |txn: &Transaction| -> u32 {
            txn.get(&goods.table, &[1u64.into()]).expect("a row").expect("one").get(1).expect("a kind")
        };
        assert_eq!(kind(&other), kind_of(1));
        assert_eq!(other.scan(&goods.table, Range::all()).expect("a scan").count(), 3);
        let change = |txn: &mut Transaction| txn.update(&goods.table, &[1u64.into()], &[(1, 5u32.into())]);
        assert_eq!(conflict(change(&mut other)), Conflict::Locked);
        assert!(writer.commit().expect("it moves behind") > other.timestamp());
        match level {
            Isolation::Snapshot => {
                assert_eq!(kind(&other), kind_of(1));
                assert_eq!(conflict(change(&mut other)), Conflict::ChangedSinceSnapshot);
            }
            _ => {
                assert_eq!(kind(&other), 9);
                assert!(change(&mut other).expect("the newest row"));
            }
        }
    }
}

/// A serializable transaction that has begun earlier may commit below the statement that comes to its rows. A row that it
/// moves is come to all the same.
#[test]
fn rows_that_an_older_writer_moves_are_locked_at_read_committed() {
    for kind in [5u32, 35] {
        let goods = Goods::new(in_memory(), 0);
        let added = goods.db.run(|txn| {
            (0..5u64).try_for_each(|id| {
                txn.insert(&goods.table, &[id.into(), (id as u32 * 10).into(), Value::Null])
            })
        });
        added.expect("added");
        let mut writer = goods.begin(Isolation::Serializable);
        assert!(writer.update(&goods.table, &[2u64.into()], &[(1, kind.into())]).expect("updated"));
        let mut txn = goods.db.begin_with(abort_at(Isolation::ReadCommitted)).expect("a transaction");
        txn.begin_statement();
        let mut cursor = txn.index_cursor(&goods.by_kind, Range::all()).expect("a cursor");
        let mut come_to = Vec::new();
        while let Some(id) = locked(&mut cursor, &mut txn).transpose() {
            match id {
                Ok(id) => come_to.push(id),
                Err(error) => {
                    assert_eq!(conflict::<()>(Err(error)), Conflict::Locked);
                    break;
                }
            }
        }
        writer.commit().expect("nobody else writes");
        come_to.extend(std::iter::from_fn(|| locked(&mut cursor, &mut txn).expect("a row")));
        come_to.sort_unstable();
        assert_eq!(come_to, [0, 1, 2, 3, 4], "moved to {kind}");
    }
}

/// A row that is moved back each time that the cursor comes to it is come to in the end.
#[test]
fn rows_that_are_moved_back_again_are_locked_at_read_committed() {
    let goods = Goods::new(in_memory(), 0);
    let added = goods.db.run(|txn| {
        [(0u64, 0u32), (9, 100)]
            .into_iter()
            .try_for_each(|(id, kind)| txn.insert(&goods.table, &[id.into(), kind.into(), Value::Null]))
    });
    added.expect("added");
    let mut txn = goods.db.begin_with(abort_at(Isolation::ReadCommitted)).expect("a transaction");
    txn.begin_statement();
    let mut cursor = txn.index_cursor(&goods.by_kind, Range::all()).expect("a cursor");
    assert_eq!(locked(&mut cursor, &mut txn).expect("a row"), Some(0));
    let hold = || {
        let mut holder = goods.begin(Isolation::ReadCommitted);
        assert!(holder.get_for_update(&goods.table, &[9u64.into()]).expect("read").is_some());
        holder
    };
    for kind in [50u32, 30, 20] {
        let mut holder = hold();
        assert_eq!(conflict(locked(&mut cursor, &mut txn)), Conflict::Locked);
        assert!(holder.update(&goods.table, &[9u64.into()], &[(1, kind.into())]).expect("updated"));
        holder.commit().expect("committed");
    }
    assert_eq!(locked(&mut cursor, &mut txn).expect("a row"), Some(9));
    assert_eq!(locked(&mut cursor, &mut txn).expect("the end"), None);
}

/// A cursor that its transaction has made before it took a snapshot goes on to follow what others have changed by then.
#[test]
fn rows_are_locked_across_a_late_snapshot() {
    let goods = Goods::new(in_memory(), 0);
    let added = goods.db.run(|txn| {
        (0..5u64)
            .try_for_each(|id| txn.insert(&goods.table, &[id.into(), (id as u32 * 10).into(), Value::Null]))
    });
    added.expect("added");
    let mut txn = goods.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut cursor = txn.index_cursor(&goods.by_kind, Range::all()).expect("a cursor");
    assert_eq!(locked(&mut cursor, &mut txn).expect("a row"), Some(0));
    let change = |id: u64, kind: u32| {
        goods.db.run(|other| other.update(&goods.table, &[id.into()], &[(1, kind.into())])).expect("changed")
    };
    assert!(change(2, 35));
    txn.take_snapshot();
    let mut rest = || locked(&mut cursor, &mut txn);
    assert_eq!([1, 3, 2].map(Some), [(); 3].map(|()| rest().expect("a row")));
    assert!(change(4, 45));
    assert_eq!(conflict(rest()), Conflict::ChangedSinceSnapshot);
}

/// A value out of line that is newer than the statement belongs to a row that the transaction has changed.
#[test]
fn new_values_out_of_line_are_read_across_a_late_snapshot() {
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64);
    let table =
        db.create_table(def.column("data", Type::Bytes(1 << 20)).primary_key(["id"])).expect("a table");
    let (old, new) = (vec![1; 100_000], vec![2; 100_000]);
    db.run(|txn| txn.insert(&table, &[1u64.into(), 0u64.into(), Value::Bytes(&old)])).expect("added");
    let mut txn =
        db.begin_with(TransactionOptions::new().isolation(Isolation::ReadCommitted)).expect("a transaction");
    txn.begin_statement();
    let mut cursor = txn.cursor(&table, Range::all()).expect("a cursor");
    let changed = db.run(|other| other.update(&table, &[1u64.into()], &[("data", Value::Bytes(&new))]));
    assert!(changed.expect("changed"));
    assert!(txn.update(&table, &[1u64.into()], &[("n", 1u64.into())]).expect("changed"));
    txn.take_snapshot();
    let row = cursor.next(&txn).expect("a row").expect("one");
    assert_eq!((row.get::<u64>(1).expect("a number"), row.get::<Vec<u8>>(2).expect("data")), (1, new));
}

/// Those who change rows after an index was dropped do not maintain it, so nobody can lock the newest rows by it.
#[test]
fn a_dropped_index_leads_to_no_newest_rows() {
    let goods = Goods::new(in_memory(), 10);
    let mut txn = goods.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    let mut cursor = txn.index_cursor(&goods.by_kind, Range::all()).expect("a cursor");
    let first = locked(&mut cursor, &mut txn).expect("a row").expect("one");
    goods.db.drop_index(&goods.table, "by_kind").expect("dropped");
    let moved = (0..10).find(|id| *id != first && kind_of(*id) == 1).expect("a row");
    let changed = goods.db.run(|other| other.update(&goods.table, &[moved.into()], &[(1, 7u32.into())]));
    assert!(changed.expect("changed"));
    let rest: Result<Vec<_>> = std::iter::from_fn(|| locked(&mut cursor, &mut txn).transpose()).collect();
    assert!(matches!(rest, Err(Error::UnknownIndex { .. })), "{rest:?}");
}

#[test]
fn statements_and_late_snapshots() {
    let goods = Goods::new(in_memory(), 3);
    let add = |id: u64| goods.db.run(|txn| txn.insert(&goods.table, &[id.into(), 0u32.into(), Value::Null]));
    let mut txn = goods.begin(Isolation::ReadCommitted);
    let count = |txn: &Transaction| txn.scan(&goods.table, Range::all()).expect("a scan").count();
    let savepoint = txn.savepoint();
    txn.begin_statement();
    add(10).expect("added");
    assert_eq!(count(&txn), 3);
    txn.begin_statement();
    assert_eq!(count(&txn), 4);
    assert!(txn.delete(&goods.table, &[0u64.into()]).expect("deleted"));
    add(11).expect("added");
    txn.take_snapshot();
    assert_eq!((count(&txn), txn.isolation()), (4, Isolation::Snapshot));
    add(12).expect("added");
    assert_eq!(count(&txn), 4);
    let deleted = goods.db.begin_with(abort_at(Isolation::ReadCommitted)).expect("a transaction");
    assert_eq!(count(&deleted), 6, "the deletion is not committed");
    drop(deleted);
    txn.rollback_to(savepoint).expect("it is of the same transaction");
    assert_eq!(count(&txn), 5);
    goods.db.run(|other| other.delete(&goods.table, &[1u64.into()]).map(drop)).expect("deleted");
    assert_eq!(conflict(txn.delete(&goods.table, &[1u64.into()])), Conflict::ChangedSinceSnapshot);
}

#[test]
fn waits_are_interrupted() {
    let goods = Goods::new(in_memory(), 2);
    let mut holder = goods.begin(Isolation::Snapshot);
    holder.delete(&goods.table, &[1u64.into()]).expect("deleted");
    let stop = Arc::new(AtomicBool::new(false));
    let waiting = Arc::new(AtomicBool::new(false));
    let table = &goods.table;
    std::thread::scope(|scope| {
        let mut txn = goods.db.begin_with(wait_at(Isolation::ReadCommitted, LONG)).expect("a transaction");
        let (asked, answer) = (Arc::clone(&waiting), Arc::clone(&stop));
        txn.interrupt_when(move |_| {
            asked.store(true, Ordering::SeqCst);
            // Once.
            answer.swap(false, Ordering::SeqCst)
        });
        let waits = scope.spawn(move || {
            let error = conflict(txn.delete(table, &[1u64.into()]));
            txn.set_conflict(ConflictPolicy::Abort);
            (error, conflict(txn.delete(table, &[1u64.into()])))
        });
        await_that("the delete waits", || waiting.load(Ordering::SeqCst));
        stop.store(true, Ordering::SeqCst);
        assert_eq!(waits.join().expect("joined"), (Conflict::Interrupted, Conflict::Locked));
    });
    let interrupted = Error::Conflict { conflict: Conflict::Interrupted, table: String::new() };
    assert!(!interrupted.is_retryable());
    holder.rollback();
}

/// Where the program's own code panics while a cursor waits, the row is the next one again.
#[test]
fn a_cursor_whose_wait_panics_leaves_out_no_row() {
    let goods = Goods::new(in_memory(), 10);
    let mut holder = goods.begin(Isolation::Snapshot);
    holder.get_for_update(&goods.table, &[5u64.into()]).expect("a lock");
    let (mut txn, mut holder) = (goods.begin(Isolation::ReadCommitted), Some(holder));
    txn.interrupt_when(|_| panic!("the program fails"));
    let mut cursor = txn.cursor(&goods.table, Range::all()).expect("a cursor");
    let mut ids = Vec::new();
    loop {
        match catch_unwind(AssertUnwindSafe(|| locked(&mut cursor, &mut txn))) {
            Ok(found) => match found.expect("no conflict") {
                Some(id) => ids.push(id),
                None => break,
            },
            Err(_) => holder.take().expect("one panic").rollback(),
        }
    }
    assert!(holder.is_none(), "it has waited");
    assert_eq!(ids, (0..10).collect::<Vec<_>>());
}
