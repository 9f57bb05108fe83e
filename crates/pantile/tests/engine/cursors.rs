//! Cursors, rows by place, statements, and estimates.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    Conflict, ConflictPolicy, Cursor, Database, Durability, Error, Index, IndexDef, Isolation, MediumKind,
    Options, Position, Range, Result, RowId, Table, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::{Bed, Home, Random, SeedNote, await_that, fails, seeds};

use crate::support::{abort_at, in_memory, wait_at};

const LONG: Duration = Duration::from_secs(600);

struct Goods {
    db: Database,
    table: Table,
    by_kind: Index,
}

impl Goods {
    fn new(db: Database, rows: u64) -> Self {
        let table = db
            .create_table(
                TableDef::new("goods")
                    .column("id", Type::U64)
                    .column("kind", Type::U32)
                    .nullable("text", Type::String(4000))
                    .primary_key(["id"])
                    .index(IndexDef::new("by_kind", ["kind"])),
            )
            .expect("a table");
        let by_kind = table.index("by_kind").expect("an index");
        db.run(|txn| {
            (0..rows).try_for_each(|id| txn.insert(&table, &[id.into(), kind_of(id).into(), "text".into()]))
        })
        .expect("rows");
        Self { db, table, by_kind }
    }

    fn begin(&self, isolation: Isolation) -> Transaction {
        self.db.begin_with(TransactionOptions::new().isolation(isolation)).expect("a transaction")
    }
}

fn kind_of(id: u64) -> u32 {
    (id * 7 % 5) as u32
}

fn id(cursor: &mut Cursor, txn: &Transaction) -> Result<Option<u64>> {
    cursor.next(txn)?.map(|row| row.get(0)).transpose()
}

fn locked(cursor: &mut Cursor, txn: &mut Transaction) -> Result<Option<u64>> {
    cursor.next_for_update(txn, false)?.map(|row| row.get(0)).transpose()
}

#[track_caller]
fn conflict<T: std::fmt::Debug>(result: Result<T>) -> Conflict {
    match result {
        Err(Error::Conflict { conflict, .. }) => conflict,
        other => panic!("{other:?}"),
    }
}

/// A cursor that is turned around and around stands where a list says.
#[test]
fn cursors_turn_anywhere() {
    for seed in seeds(31_000, 20) {
        let _note = SeedNote(seed);
        let mut rng = Random::new(seed, 0xC4);
        let goods = Goods::new(in_memory(), 1 + rng.below(700));
        let rows = goods.db.stats().tuples - 1;
        let mut list: Vec<u64> = (0..rows).collect();
        let of_index = rng.one_in(2);
        if of_index {
            list.sort_by_key(|&id| (kind_of(id), id));
        }
        let level = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted][rng.index(3)];
        let mut txn = goods.begin(level);
        let open = |txn: &Transaction, range: Range<'_>| match of_index {
            true => txn.index_cursor(&goods.by_kind, range),
            false => txn.cursor(&goods.table, range),
        };
        let mut reverse = rng.one_in(2);
        let range = if reverse { Range::all().reverse() } else { Range::all() };
        let mut cursor = open(&txn, range).expect("a cursor");
        let mut at = if reverse { list.len() as i64 } else { -1 };
        for step in 0..2_000 {
            if rng.one_in(40) && cursor.row_id().is_some() {
                reverse = rng.one_in(2);
                if rng.one_in(3) {
                    // Another transaction goes on where this one was.
                    txn = goods.begin(level);
                }
                cursor.turn(&txn, reverse).expect("turned");
            }
            let next = at + if reverse { -1 } else { 1 };
            let expected = usize::try_from(next).ok().and_then(|n| list.get(n)).copied();
            let found = match rng.one_in(4) {
                true => locked(&mut cursor, &mut txn),
                false => id(&mut cursor, &txn),
            };
            assert_eq!(found.expect("a row"), expected, "step {step}");
            if let Some(expected) = expected {
                at = next;
                let place = cursor.row_id().expect("a place");
                let row = txn.get_row(&goods.table, place).expect("read").expect("a row");
                assert_eq!(row.get::<u64>(0).expect("an id"), expected);
            } else {
                assert!(id(&mut cursor, &txn).expect("the end").is_none());
                if cursor.row_id().is_some() {
                    reverse = !reverse;
                    cursor.turn(&txn, reverse).expect("turned");
                }
            }
        }
    }
}

/// By the whole key, a row is found and locked as a cursor over that key would.
#[test]
fn a_row_is_found_by_its_key_as_a_cursor_finds_it() {
    const SINCE_THE_SNAPSHOT: u64 = 9;
    for level in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let goods = Goods::new(in_memory(), 5);
        let new = |id: u64| [id.into(), 0u32.into(), Value::Null];
        let change = |txn: &mut Transaction, id: u64| {
            txn.update(&goods.table, &[id.into()], &[("kind", 70u32.into())]).map(drop)
        };
        let mut txns = [goods.begin(level), goods.begin(level)];
        for txn in &mut txns {
            txn.set_conflict(ConflictPolicy::Abort);
        }
        goods
            .db
            .run(|txn| {
                change(txn, 1)?;
                txn.delete(&goods.table, &[2u64.into()])?;
                txn.insert(&goods.table, &new(SINCE_THE_SNAPSHOT))
            })
            .expect("changes");
        let mut other = goods.begin(Isolation::ReadCommitted);
        change(&mut other, 3).expect("an update");
        other.insert(&goods.table, &new(10)).expect("a new row");
        let [by_cursor, by_key] = txns.each_mut();
        for id in [0, 1, 2, 3, 10, SINCE_THE_SNAPSHOT, 11] {
            let key = [Value::from(id)];
            let mut cursor = by_cursor.cursor(&goods.table, Range::prefix(&key)).expect("a cursor");
            let wanted = match locked(&mut cursor, by_cursor) {
                Ok(row) => Ok(row.map(|row| (cursor.row_id().expect("a place"), row))),
                error => Err(conflict(error)),
            };
            // The other one is to lock it.
            if let Ok(Some((place, _))) = wanted {
                assert!(by_cursor.unlock_row(&goods.table, place), "{level:?}, row {id}");
            }
            let found = match by_key.find_row_for_update(&goods.table, &key) {
                Ok(row) => Ok(row.map(|(place, row)| (place, row.get::<u64>(0).expect("an id")))),
                Err(Error::Conflict { conflict, .. }) => Err(conflict),
                Err(other) => panic!("{other:?}"),
            };
            assert_eq!(found, wanted, "{level:?}, row {id}");
            if let Ok(Some((place, _))) = found {
                assert!(by_key.unlock_row(&goods.table, place), "{level:?}, row {id}");
            }
        }
    }
}

/// Where a change moves a row on in the index, the cursor would meet it again and again.
#[test]
fn rows_that_are_moved_on_are_come_to_once() {
    const ROWS: u64 = 600;
    for (reverse, locks) in [(false, false), (false, true), (true, false), (true, true)] {
        let goods = Goods::new(in_memory(), ROWS);
        let mut txn = goods.begin(Isolation::Serializable);
        let range = if reverse { Range::all().reverse() } else { Range::all() };
        let mut cursor = txn.index_cursor(&goods.by_kind, range).expect("a cursor");
        let mut found = Vec::new();
        loop {
            let next = if locks { locked(&mut cursor, &mut txn) } else { id(&mut cursor, &txn) };
            let Some(id) = next.expect("a row") else { break };
            found.push(id);
            assert!(found.len() <= ROWS as usize, "a row has come again");
            let kind = if reverse { 0 } else { kind_of(id) + 10 };
            let place = cursor.row_id().expect("a place");
            // As a statement that fails half way: what is taken back is not moved.
            if id % 7 == 0 {
                let savepoint = txn.savepoint();
                txn.update_row(&goods.table, place, &[("kind", 99u32.into())]).expect("an update");
                txn.rollback_to(savepoint).expect("a savepoint");
            }
            txn.update_row(&goods.table, place, &[("kind", kind.into())]).expect("an update");
        }
        found.sort_unstable();
        assert_eq!(found, (0..ROWS).collect::<Vec<_>>(), "reverse: {reverse}, locks: {locks}");
        txn.commit().expect("a commit");
    }
}

/// A row that is moved before the cursor has come to it is one that it has not come to.
#[test]
fn rows_that_are_moved_before_are_come_to() {
    let goods = Goods::new(in_memory(), 5);
    goods
        .db
        .run(|txn| {
            (0..5u64).try_for_each(|id| {
                txn.update(&goods.table, &[id.into()], &[("kind", (id as u32 * 10).into())]).map(drop)
            })
        })
        .expect("kinds of their own");
    let mut txn = goods.begin(Isolation::Serializable);
    let mut cursor = txn.index_cursor(&goods.by_kind, Range::all()).expect("a cursor");
    let put = |txn: &mut Transaction, id: u64, kind: u32| {
        txn.update(&goods.table, &[id.into()], &[("kind", kind.into())]).map(drop)
    };
    assert_eq!(id(&mut cursor, &txn).expect("a row"), Some(0));
    assert_eq!(id(&mut cursor, &txn).expect("a row"), Some(1));
    let savepoint = txn.savepoint();
    // By way of a place where the cursor has been.
    put(&mut txn, 3, 5).expect("an update");
    put(&mut txn, 3, 45).expect("an update");
    txn.rollback_to(savepoint).expect("a savepoint");
    put(&mut txn, 1, 37).expect("an update");
    let rest: Vec<_> = std::iter::from_fn(|| id(&mut cursor, &txn).expect("a row")).collect();
    assert_eq!(rest, [2, 3, 4]);
    // Where a cursor goes back, it comes to what there is.
    cursor.turn(&txn, true).expect("turned");
    let back: Vec<_> = std::iter::from_fn(|| id(&mut cursor, &txn).expect("a row")).collect();
    assert_eq!(back, [1, 3, 2, 0]);
}

/// Where time is simulated, transactions of two databases begin at one moment.
#[test]
fn a_cursor_is_of_one_database() {
    let open = || {
        let options = Options::new().medium(MediumKind::Dram).simulated_time(SimulatedTime::default());
        Goods::new(options.open("unused").expect("a database"), 3)
    };
    let goods = [open(), open()];
    let [first, second] = [0, 1].map(|n: usize| goods[n].db.begin_read().expect("a reader"));
    assert_eq!(first.timestamp(), second.timestamp());
    let mut cursor = first.cursor(&goods[0].table, Range::all()).expect("a cursor");
    assert!(matches!(cursor.next(&second), Err(Error::UnknownCursor)));
    assert!(cursor.next(&first).expect("its own").is_some());
}

/// Two readers of one database may read at one moment. A cursor over a table that has been dropped since would
/// otherwise go on for the second, which keeps nothing of the table.
#[test]
fn a_cursor_is_of_one_transaction() {
    let goods = Goods::new(in_memory(), 3);
    // Beside a writer, safe readers read just below it.
    let mut writer = goods.db.begin().expect("a writer");
    writer.get_for_update(&goods.table, &[0u64.into()]).expect("locked");
    let safe = || goods.db.begin_with(TransactionOptions::new().safe_snapshot()).expect("a reader");
    let (first, second) = (safe(), safe());
    assert_eq!(first.timestamp(), second.timestamp());
    let mut cursor = first.cursor(&goods.table, Range::all()).expect("a cursor");
    assert!(cursor.next(&first).expect("its own").is_some());
    assert!(matches!(cursor.next(&second), Err(Error::UnknownCursor)));
}

/// A cursor that has come to no row reads at no moment but that of its own transaction.
#[test]
fn a_cursor_before_its_first_row_stays_with_its_transaction() {
    let goods = Goods::new(in_memory(), 3);
    let first = goods.db.begin_read().expect("a reader");
    let mut cursor = first.cursor(&goods.table, Range::all()).expect("a cursor");
    cursor.turn(&first, true).expect("nothing to turn");
    drop(first);
    goods.db.run(|txn| txn.delete(&goods.table, &[0u64.into()])).expect("deleted");
    let second = goods.db.begin_read().expect("a reader");
    cursor.turn(&second, false).expect("nothing to turn");
    assert!(matches!(cursor.next(&second), Err(Error::UnknownCursor)));
    assert!(cursor.position().is_none());
}

/// What is written by place beside a cursor is what a map says.
#[test]
fn rows_are_written_by_place() {
    for seed in seeds(32_000, 12) {
        let _note = SeedNote(seed);
        let mut rng = Random::new(seed, 0xC4);
        let goods = Goods::new(Home::new(Bed::Dram).open(), 200);
        let mut model: BTreeMap<u64, (u32, String)> =
            (0..200).map(|id| (id, (kind_of(id), "text".to_owned()))).collect();
        for _ in 0..6 {
            let level =
                [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted][rng.index(3)];
            let mut txn = goods.begin(level);
            let before = model.clone();
            let mut cursor = txn.cursor(&goods.table, Range::all()).expect("a cursor");
            while let Some(id) = match rng.one_in(2) {
                true => locked(&mut cursor, &mut txn).expect("a row"),
                false => id(&mut cursor, &txn).expect("a row"),
            } {
                let place = cursor.row_id().expect("a place");
                match rng.below(6) {
                    0 => {
                        assert!(txn.delete_row(&goods.table, place).expect("deleted"));
                        assert!(!txn.delete_row(&goods.table, place).expect("not deleted twice"));
                        assert!(txn.get_row(&goods.table, place).expect("read").is_none());
                        model.remove(&id);
                    }
                    1 | 2 => {
                        let (kind, text) = (rng.below(9) as u32, "x".repeat(rng.index(3000)));
                        let changes = [(1, kind.into()), (2, text.as_str().into())];
                        assert!(txn.update_row(&goods.table, place, &changes).expect("updated"));
                        model.insert(id, (kind, text));
                    }
                    3 => {
                        let savepoint = txn.savepoint();
                        txn.delete_row(&goods.table, place).expect("deleted");
                        txn.rollback_to(savepoint).expect("rolled back");
                        txn.release(savepoint);
                        assert!(matches!(txn.rollback_to(savepoint), Err(Error::UnknownSavepoint)));
                    }
                    4 => {
                        let same = txn.update_row(&goods.table, place, &[(0, Value::UInt(100_000))]);
                        assert!(matches!(same, Err(Error::PrimaryKeyChanged { .. })), "{same:?}");
                        txn.unlock_row(&goods.table, place);
                    }
                    _ => {}
                }
            }
            match !rng.one_in(3) {
                true => drop(txn.commit().expect("nobody else writes")),
                false => {
                    txn.rollback();
                    model = before;
                }
            }
            let reader = goods.db.begin_read().expect("a reader");
            let rows = reader.scan(&goods.table, Range::all()).expect("a scan");
            let rows = rows.map(|row| {
                let row = row.expect("a row");
                let text = row.get::<String>(2).expect("text");
                (row.get(0).expect("an id"), (row.get(1).expect("a kind"), text))
            });
            assert_eq!(rows.collect::<BTreeMap<u64, (u32, String)>>(), model);
            let by_kind = reader.scan_index(&goods.by_kind, Range::all()).expect("a scan");
            assert_eq!(by_kind.count(), model.len());
            assert_eq!(reader.estimate(&goods.table, Range::all()).expect("a count"), model.len() as u64);
        }
        assert!(
            goods
                .begin(Isolation::Snapshot)
                .get_row(&goods.table, RowId::new(u64::MAX))
                .expect("none")
                .is_none()
        );
    }
}

/// A number may be from an earlier opening, before the indexes are loaded (I-24).
#[test]
fn rows_are_written_by_place_first_of_all() {
    let place = tempfile::tempdir().expect("a directory");
    let def = || {
        let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64);
        def.primary_key(["id"]).index(IndexDef::new("by_n", ["n"]))
    };
    let db = Options::new().open(place.path()).expect("open");
    let table = db.create_table(def()).expect("a table");
    let rows = (0..2_000u64).map(|id| [id.into(), id.into()]);
    db.bulk_insert(&table, rows).expect("rows");
    db.close().expect("closed");
    for deletes in [true, false] {
        let db = Options::new().open(place.path()).expect("open");
        let table = db.table("t").expect("the table");
        let mut txn = db.begin().expect("begin");
        if deletes {
            assert!(txn.delete_row(&table, RowId::new(0)).expect("deleted"));
        } else {
            let place = RowId::new(1);
            assert!(txn.update_row(&table, place, &[("n", 7_777u64.into())]).expect("updated"));
        }
        txn.commit().expect("a commit");
        db.close().expect("closed");
    }
    let db = Options::new().open(place.path()).expect("open");
    let (table, txn) = (db.table("t").expect("the table"), db.begin_read().expect("begin"));
    assert_eq!(txn.count(&table, Range::all()).expect("counted"), 1_999);
    let by_n = table.index("by_n").expect("the index");
    assert_eq!(txn.count_index(&by_n, Range::all()).expect("counted"), 1_999);
    assert_eq!(txn.count_index(&by_n, Range::prefix(&[7_777u64.into()])).expect("counted"), 1);
}

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

/// Estimates are exact for short ranges and near for long ones; the number of all rows is exact, after opening too.
#[test]
fn estimates() {
    let mut home = Home::new(Bed::File(Durability::None));
    let goods = Goods::new(home.open(), 20_000);
    let check = |db: &Database, expected: u64| {
        let (table, txn) = (db.table("goods").expect("the table"), db.begin_read().expect("a reader"));
        assert_eq!(txn.estimate(&table, Range::all()).expect("a count"), expected);
        let by_kind = table.index("by_kind").expect("an index");
        for (from, to) in [(0u64, 1u64), (500, 520), (0, 5_000), (3_000, 19_000), (19_990, 30_000), (7, 7)] {
            let (low, high) = ([from.into()], [to.into()]);
            let range = Range::all().from(Bound::Included(&low)).to(Bound::Excluded(&high));
            let real = txn.scan(&table, range).expect("a scan").count() as f64;
            let about = txn.estimate(&table, range).expect("an estimate") as f64;
            assert!((about - real).abs() <= 70.0 + real * 0.25, "{from}..{to}: {about} for {real}");
            assert_eq!(txn.estimate(&table, range.limit(3)).expect("an estimate"), (about as u64).min(3));
        }
        for kind in 0..6u32 {
            let kind = [kind.into()];
            let real = txn.scan_index(&by_kind, Range::prefix(&kind)).expect("a scan").count() as f64;
            let about = txn.estimate_index(&by_kind, Range::prefix(&kind)).expect("an estimate") as f64;
            assert!((about - real).abs() <= 70.0 + real * 0.25, "{kind:?}: {about} for {real}");
        }
    };
    check(&goods.db, 20_000);
    let Goods { db, table, by_kind } = goods;
    db.run(|txn| (0..400u64).try_for_each(|id| txn.delete(&table, &[(id * 3).into()]).map(drop)))
        .expect("deleted");
    let mut undone = db.begin().expect("a transaction");
    undone.insert(&table, &[90_000u64.into(), 1u32.into(), Value::Null]).expect("inserted");
    undone.rollback();
    check(&db, 19_600);
    drop((table, by_kind));
    home.close(db);
    let db = home.open();
    check(&db, 19_600);
    let table = db.table("goods").expect("the table");
    db.run(|txn| txn.insert(&table, &[90_000u64.into(), 1u32.into(), Value::Null])).expect("inserted");
    drop(table);
    home.kill(db, Vec::new());
    check(&home.open(), 19_601);
}

/// The ids on a page, and the position behind it.
fn page(
    db: &Database,
    index: Option<&Index>,
    table: &Table,
    range: Range<'_>,
) -> (Vec<u64>, Option<Position>) {
    let txn = db.begin_read().expect("begin");
    let cursor = match index {
        Some(index) => txn.index_cursor(index, range),
        None => txn.cursor(table, range),
    };
    let (mut cursor, mut ids) = (cursor.expect("a cursor"), Vec::new());
    while let Some(row) = cursor.next(&txn).expect("a row") {
        ids.push(row.get("id").expect("its id"));
    }
    (ids, cursor.position())
}

/// Pages of random sizes are the whole, in both directions and within bounds,
/// beside rows that come and go. A position goes through bytes.
#[test]
fn pages_over_any_index() {
    for seed in seeds(0, 20) {
        let _note = SeedNote(seed);
        let (mut random, goods) = (Random::new(seed, 0), Goods::new(in_memory(), 300));
        let Goods { db, table, by_kind } = &goods;
        let (low, high) = ([Value::from(random.below(3) as u32)], [Value::from(random.below(6) as u32)]);
        let bounds = [
            Range::all(),
            Range::prefix(&low),
            Range::all().from(Bound::Excluded(&low)),
            Range::all().from(Bound::Included(&low)).to(Bound::Excluded(&high)),
        ];
        for index in [None, Some(by_kind)] {
            let range = bounds[if index.is_some() { random.index(4) } else { 0 }];
            let range = if random.one_in(2) { range.reverse() } else { range };
            let (mut all, mut gone, mut end) = (Vec::new(), Vec::new(), None::<Position>);
            let expected = page(db, index, table, range).0;
            loop {
                let rows = 1 + random.index(40);
                let next = end.as_ref().map_or(range, |end| range.behind(end)).limit(rows);
                let (ids, position) = page(db, index, table, next);
                let Some(position) = position else { break };
                all.extend(ids);
                end = Position::from_bytes(&position.to_bytes());
                assert_eq!(end.as_ref(), Some(&position));
                // Also the row at the position.
                let last = *all.last().expect("a row");
                let other = random.below(300);
                for id in [last, other] {
                    if db.run(|txn| txn.delete(table, &[id.into()])).expect("delete") {
                        gone.push(id);
                    }
                }
            }
            let stayed =
                |ids: &[u64]| -> Vec<u64> { ids.iter().copied().filter(|id| !gone.contains(id)).collect() };
            assert_eq!(stayed(&all), stayed(&expected), "{range:?}");
            assert!(all.iter().all(|id| expected.contains(id)), "{range:?}");
        }
    }
}

#[test]
fn positions_are_of_one_index() {
    let Goods { db, table, by_kind } = Goods::new(in_memory(), 30);
    let of_table = page(&db, None, &table, Range::all().limit(3)).1.expect("a position");
    let of_index = page(&db, Some(&by_kind), &table, Range::all().limit(3)).1.expect("a position");
    let txn = db.begin_read().expect("begin");
    fails!(
        txn.scan(&table, Range::all().behind(&of_index)),
        Error::UnknownPosition { .. },
        "\"goods\"",
        "begin"
    );
    fails!(
        txn.count_index(&by_kind, Range::all().behind(&of_table)),
        Error::UnknownPosition { .. },
        "nothing was read"
    );
    assert_eq!(txn.count(&table, Range::all().behind(&of_table)).expect("count"), 27);
    assert_eq!(txn.count(&table, Range::all().behind(&of_table).reverse()).expect("count"), 2);
    let about = txn.estimate(&table, Range::all().behind(&of_table)).expect("estimate");
    assert!((1..=30).contains(&about));
    let behind = txn.count_index(&by_kind, Range::all().behind(&of_index)).expect("count");
    drop(txn);
    // The same key in another index, the same name with another key, and another table.
    db.drop_index(&table, "by_kind").expect("drop");
    let same = db.create_index(&table, IndexDef::new("same", ["kind"])).expect("create");
    let by_kind = db.create_index(&table, IndexDef::new("by_kind", ["kind", "id"])).expect("create");
    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.count_index(&same, Range::all().behind(&of_index)).expect("count"), behind);
    let stale = txn.index_cursor(&by_kind, Range::all().behind(&of_index)).map(|_| ());
    fails!(stale, Error::UnknownPosition { .. }, "nothing was read");
    drop(txn);
    let emptied = db.truncate_table(&table).expect("truncate");
    let txn = db.begin_read().expect("begin");
    let stale = txn.cursor(&emptied, Range::all().behind(&of_table)).map(|_| ());
    fails!(stale, Error::UnknownPosition { .. }, "nothing was read");
    // A page of an empty range has no position.
    assert_eq!(page(&db, None, &emptied, Range::all()), (Vec::new(), None));
}

/// After opening again, indexes and tables have other numbers.
#[test]
fn positions_of_before_are_of_the_same_index() {
    let mut home = Home::new(Bed::File(Durability::None));
    let def = |name: &str, column: &str| {
        let def =
            TableDef::new(name).column("id", Type::U64).column("a", Type::U64).column(column, Type::U64);
        def.primary_key(["id"]).index(IndexDef::new("by_a", ["a"])).index(IndexDef::new("by_last", [column]))
    };
    let db = home.open();
    let table = db.create_table(def("t", "b")).expect("create");
    db.run(|txn| txn.insert_many(&table, (0..20u64).map(|n| [n.into(), n.into(), (50 - n).into()])))
        .expect("insert");
    let position = |db: &Database, table: &Table, name: &str| {
        page(db, Some(&table.index(name).expect("index")), table, Range::all().limit(5))
            .1
            .expect("a position")
    };
    let [of_a, of_b] = ["by_a", "by_last"].map(|name| position(&db, &table, name));
    db.drop_index(&table, "by_a").expect("drop");
    drop(table);
    db.close().expect("close");

    let db = home.open();
    let table = db.table("t").expect("table");
    let by_last = table.index("by_last").expect("index");
    let left: Vec<u64> = (0..15).rev().collect();
    assert_eq!(page(&db, Some(&by_last), &table, Range::all().behind(&of_b)).0, left);
    let txn = db.begin_read().expect("begin");
    fails!(
        txn.count_index(&by_last, Range::all().behind(&of_a)),
        Error::UnknownPosition { .. },
        "nothing was read"
    );
    drop((txn, by_last, table));
    db.drop_table("t").expect("drop");
    db.close().expect("close");
    // What was left of the table is gone after the first opening.
    home.open().close().expect("close");

    let db = home.open();
    let other = db.create_table(def("u", "c")).expect("create");
    let txn = db.begin_read().expect("begin");
    for (name, stale) in [("by_a", &of_a), ("by_last", &of_b)] {
        let index = other.index(name).expect("index");
        let counted = txn.count_index(&index, Range::all().behind(stale));
        fails!(counted, Error::UnknownPosition { .. }, "nothing was read");
    }
}

/// What a cursor could not read now is what it comes to next.
#[test]
fn a_row_that_could_not_be_read_is_the_next_one() {
    for moves in [false, true] {
        let options = Options::new().medium(MediumKind::Dram).writers_move(moves);
        let db = options.open("unused").expect("open");
        let Goods { db, table, .. } = Goods::new(db, 10);
        let mut writer = db.begin().expect("begin");
        writer.update(&table, &[5u64.into()], &[("kind", 50u32.into())]).expect("update");
        let options = TransactionOptions::new().conflict(ConflictPolicy::Abort);
        let reader = db.begin_with(options).expect("begin");
        let mut cursor = reader.cursor(&table, Range::all()).expect("a cursor");
        let (mut ids, mut writer) = (Vec::new(), Some(writer));
        loop {
            match cursor.next(&reader) {
                Ok(Some(row)) => ids.push(row.get::<u64>("id").expect("its id")),
                Ok(None) => break,
                Err(Error::Conflict { conflict: Conflict::Locked, .. }) => {
                    writer.take().expect("one conflict").rollback();
                }
                Err(error) => panic!("{error}"),
            }
        }
        assert!(writer.is_none(), "the reader met the writer");
        assert_eq!(ids, (0..10).collect::<Vec<_>>());
    }
}

/// A bound without columns is before all keys.
#[test]
fn estimates_of_ranges_with_empty_bounds() {
    let Goods { db, table, by_kind } = Goods::new(in_memory(), 30);
    let txn = db.begin_read().expect("begin");
    for bound in [Bound::Included(&[][..]), Bound::Excluded(&[][..])] {
        for range in [Range::all().from(bound), Range::all().to(bound)] {
            let counted =
                [txn.count(&table, range), txn.count_index(&by_kind, range)].map(|n| n.expect("count"));
            let about = [txn.estimate(&table, range), txn.estimate_index(&by_kind, range)];
            let about = about.map(|n| n.expect("estimate"));
            assert_eq!(about.map(|n| n > 0), counted.map(|n| n > 0), "{range:?}");
        }
    }
}

/// What somebody sends back as a position is a position or none, and leads nowhere
/// else than into its index.
#[test]
fn positions_from_anybody() {
    let Goods { db, table, by_kind } = Goods::new(in_memory(), 30);
    let good = page(&db, Some(&by_kind), &table, Range::all().limit(3)).1.expect("a position").to_bytes();
    let mut random = Random::new(7, 0);
    for _ in 0..2_000 {
        let mut bytes = good.clone();
        match random.below(3) {
            0 => bytes.truncate(random.index(bytes.len())),
            1 => bytes.extend(vec![random.word() as u8; 8 * random.index(700)]),
            _ => bytes[8 + random.index(good.len() - 8)] = random.word() as u8,
        }
        let Some(position) = Position::from_bytes(&bytes) else { continue };
        for range in [Range::all().behind(&position), Range::all().behind(&position).reverse()] {
            let ids = page(&db, Some(&by_kind), &table, range).0;
            assert!(ids.len() <= 30 && ids.iter().all(|id| *id < 30));
        }
    }
    assert_eq!(Position::from_bytes(&[]), None);
    assert_eq!(Position::from_bytes(&good[..8]), None);
}
