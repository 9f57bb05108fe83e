//! Cursors, and rows by place.

mod locking;
mod positions;

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
