//! Columns of an index that was dropped change while transactions are open that
//! began before, and maintain it (I-30).

use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    ColumnDef, Cursor, Database, Durability, Error, IndexDef, Isolation, MediumKind, Options, Range, Result,
    Table, TableChange, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::{Bed, Home, await_that};

use crate::support::{LEVELS, in_memory};

const ROWS: u64 = 20;

fn definition(name: &str) -> TableDef {
    let def = TableDef::new(name).column("id", Type::U64).column("x", Type::I32).column("y", Type::I64);
    def.column("s", Type::String(9)).primary_key(["id"]).index(IndexDef::new("ix", ["x", "s"]))
}

fn filled(db: &Database) -> Table {
    let table = db.create_table(definition("t")).expect("a table");
    db.run(|txn| txn.insert_many(&table, (0..ROWS).map(row))).expect("rows");
    table
}

fn row(id: u64) -> [Value<'static>; 4] {
    [id.into(), (id as i32).into(), 0i64.into(), "s".into()]
}

/// What may become of `x` once it is in no index, and of the table besides.
fn changes() -> Vec<TableChange> {
    let change = TableChange::new;
    vec![
        change().drop_column("x"),
        change().widen_column("x", Type::I64),
        change().make_nullable("x"),
        change().widen_column("x", Type::I64).make_nullable("x").make_nullable("s"),
        change().widen_column("s", Type::String(4000)),
        change().drop_column("x").drop_column("s").rename_table("u"),
        change().rename_column("x", "s2").rename_column("s", "x").rename_column("s2", "s"),
        change().drop_column("x").add_column(ColumnDef::new("x", Type::String(40)).default("new")),
        change().add_column_before("id", ColumnDef::new("z", Type::I64).default(5i64)),
        change().set_default("x", 7i32).rename_table("u"),
    ]
}

fn begin(db: &Database, level: Isolation) -> Transaction {
    db.begin_with(TransactionOptions::new().isolation(level)).expect("a transaction")
}

fn change(db: &Database, table: &Table, change: &TableChange) -> Table {
    db.drop_index(table, "ix").expect("the index goes");
    db.alter_table(table, change).expect("its columns are in no index")
}

/// How many rows there are, and the sum of `y`.
fn sums(txn: &Transaction, table: &Table) -> Result<(usize, i64)> {
    let mut sum = (0, 0);
    for row in txn.scan(table, Range::all())? {
        sum = (sum.0 + 1, sum.1 + row?.get::<i64>("y")?);
    }
    Ok(sum)
}

/// Whatever becomes of the columns, a transaction that began before the drop writes
/// through handles from before it, undoes what it has written, and commits.
#[test]
fn an_older_transaction_goes_on_writing() {
    for level in LEVELS {
        for change_of_it in changes() {
            for wrote_before in [false, true] {
                let db = in_memory();
                let table = filled(&db);
                let mut txn = begin(&db, level);
                if wrote_before {
                    txn.update(&table, &[1u64.into()], &[("x", 50i32.into())]).expect("an update");
                    txn.insert(&table, &row(100)).expect("a row");
                }
                let newest = change(&db, &table, &change_of_it);
                let update = |txn: &mut Transaction, id: u64| {
                    txn.update(&table, &[id.into()], &[("y", 5i64.into())]).expect("an update")
                };
                assert!(update(&mut txn, 1) && update(&mut txn, 2));
                let savepoint = txn.savepoint();
                assert!(update(&mut txn, 3));
                assert!(txn.delete(&table, &[4u64.into()]).expect("a deletion"));
                txn.rollback_to(savepoint).expect("a savepoint of it");
                assert!(txn.delete(&table, &[5u64.into()]).expect("a deletion"));
                assert_eq!(update(&mut txn, 100), wrote_before);
                let count = ROWS as usize - 1 + usize::from(wrote_before);
                let sum = 10 + 5 * i64::from(wrote_before);
                assert_eq!(sums(&txn, &table).expect("a scan"), (count, sum));
                txn.commit().expect("nobody else writes");
                db.run(|txn| {
                    assert_eq!(sums(txn, &newest)?, (count, sum));
                    txn.update(&newest, &[1u64.into()], &[("y", 0i64.into())])?;
                    txn.delete(&newest, &[2u64.into()])
                })
                .expect("later transactions have nothing to do with it");
                drop((table, newest));
                db.close().expect("it closes");
            }
        }
    }
}

/// The cleaner looks at entries of the index that older writers have left, beside rows
/// of later layouts. What an older reader needs stays, and the rest goes.
#[test]
fn the_cleaner_meets_rows_of_later_layouts() {
    for level in LEVELS {
        for change_of_it in changes() {
            let time = SimulatedTime::default();
            let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
            let db = options.open("unused").expect("open");
            let (table, pulse) = (filled(&db), db.create_table(definition("pulse")).expect("a table"));
            let reader = begin(&db, Isolation::Snapshot);
            let mut cursor =
                reader.index_cursor(&table.index("ix").expect("the index"), Range::all()).expect("a cursor");
            let mut txn = begin(&db, level);
            for id in 0..6u64 {
                txn.update(&table, &[id.into()], &[("x", 70i32.into())]).expect("an update");
            }
            let newest = change(&db, &table, &change_of_it);
            for id in 3..9u64 {
                txn.update(&table, &[id.into()], &[("y", 7i64.into())]).expect("an update");
            }
            txn.commit().expect("nobody else writes");
            let pass = |n: i64| {
                for id in 0..100u64 {
                    time.advance(Duration::from_millis(50));
                    db.run(|txn| txn.upsert(&pulse, &[id.into(), 0i32.into(), n.into(), "".into()]))
                        .expect("a row");
                }
            };
            for n in 0..3i64 {
                for id in 0..ROWS {
                    db.run(|txn| txn.update(&newest, &[id.into()], &[("y", n.into())])).expect("an update");
                }
                pass(n);
            }
            db.run(|txn| (0..ROWS / 2).try_for_each(|id| txn.delete(&newest, &[id.into()]).map(drop)))
                .expect("deletions");
            pass(4);
            // In the order of an index whose columns are others by now.
            for id in 0..ROWS {
                let found = cursor.next(&reader).expect("a read").expect("a row");
                assert_eq!(found.get::<u64>("id").expect("its id"), id);
                assert_eq!(found.get::<i64>("y").expect("what it was"), 0);
            }
            assert!(cursor.next(&reader).expect("a read").is_none());
            drop((cursor, reader));
            (0..4).for_each(pass);
            assert_eq!(db.stats().stale_entries, 0);
            let left = db.begin_read().expect("a transaction");
            assert_eq!(sums(&left, &newest).expect("a scan"), (ROWS as usize / 2, ROWS as i64));
            drop((left, table, newest, pulse));
            db.close().expect("it closes");
        }
    }
}

fn ids(cursor: &mut Cursor, txn: &Transaction) -> Vec<u64> {
    std::iter::from_fn(|| cursor.next(txn).expect("a read").map(|row| row.get("id").expect("its id")))
        .collect()
}

/// A cursor that has begun comes to rows that its transaction has written since, as
/// long as they have the columns and values that the index was made for.
#[test]
fn a_cursor_finds_the_rows_of_its_transaction() {
    let change_to = TableChange::new;
    for (change_of_it, is_there, takes) in [
        (change_to().widen_column("x", Type::I64).widen_column("s", Type::String(4000)), true, true),
        (change_to().make_nullable("x"), true, true),
        (change_to().add_column(ColumnDef::new("z", Type::I64).nullable()), true, true),
        (change_to().drop_column("x"), false, false),
    ] {
        for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
            let db = in_memory();
            let table = filled(&db);
            let mut txn = begin(&db, level);
            let ix = table.index("ix").expect("the index");
            let mut cursor = txn.index_cursor(&ix, Range::all()).expect("a cursor");
            assert!(cursor.next(&txn).expect("a read").is_some(), "the first row");
            let newest = change(&db, &table, &change_of_it);
            for id in 12..15u64 {
                txn.update(&table, &[id.into()], &[("y", 1i64.into())]).expect("an update");
            }
            if takes {
                // Out of what the index can hold, or away to another key.
                let nullable = newest.columns()[1].nullable;
                let other = if nullable { Value::Null } else { Value::Int(-5) };
                txn.update(&newest, &[15u64.into()], &[("x", other)]).expect("an update");
            }
            let expected: Vec<u64> = match is_there {
                true => (1..ROWS).filter(|id| *id != 15).collect(),
                false => (1..ROWS).filter(|id| !(12..15).contains(id)).collect(),
            };
            assert_eq!(ids(&mut cursor, &txn), expected, "{change_of_it:?}");
            let again = txn.index_cursor(&ix, Range::all()).map(drop);
            assert!(matches!(again, Err(Error::UnknownIndex { .. })), "{again:?}");
            txn.commit().expect("nobody else writes");
        }
    }
}

/// A value that the column did not take when the index was made is in no order with
/// those that it holds.
#[test]
fn wider_values_are_not_entered() {
    let db = in_memory();
    let table = filled(&db);
    let mut txn = begin(&db, Isolation::Snapshot);
    let ix = table.index("ix").expect("the index");
    let mut cursor = txn.index_cursor(&ix, Range::all()).expect("a cursor");
    cursor.next(&txn).expect("a read").expect("the first row");
    let change_of_it = TableChange::new().widen_column("x", Type::I64).widen_column("s", Type::String(4000));
    let newest = change(&db, &table, &change_of_it);
    let long = "l".repeat(4000);
    // The low half of the first is 19.
    for (id, x, s) in [(12u64, (1i64 << 40) + 19, "s"), (13, i64::MIN, "s"), (14, 14, &long)] {
        txn.update(&newest, &[id.into()], &[("x", x.into()), ("s", s.into())]).expect("an update");
    }
    let expected: Vec<u64> = (1..ROWS).filter(|id| !(12..15).contains(id)).collect();
    assert_eq!(ids(&mut cursor, &txn), expected);
    txn.update(&newest, &[13u64.into()], &[("x", 3i64.into())]).expect("an update");
    txn.commit().expect("nobody else writes");
    let read = db.begin_read().expect("a transaction");
    let row = read.get(&newest, &[12u64.into()]).expect("a read").expect("a row");
    assert_eq!(row.get::<i64>("x").expect("its value"), (1 << 40) + 19);
}

/// A unique index binds those who began before it was dropped, also if its column has
/// become wider.
#[test]
fn a_unique_index_of_a_wider_column_binds_those_who_began_before() {
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("x", Type::I32).primary_key(["id"]);
    let table = db.create_table(def.index(IndexDef::unique("ix", ["x"]))).expect("a table");
    let (mut first, mut second) = (begin(&db, Isolation::Snapshot), begin(&db, Isolation::Snapshot));
    first.insert(&table, &[1u64.into(), 5i32.into()]).expect("a row");
    let newest = change(&db, &table, &TableChange::new().widen_column("x", Type::I64));
    first.update(&newest, &[1u64.into()], &[("x", 6i64.into())]).expect("an update");
    first.commit().expect("nobody has the key");
    let taken = second.insert(&newest, &[2u64.into(), 6i64.into()]);
    assert!(matches!(taken, Err(Error::DuplicateKey { .. })), "{taken:?}");
    second.insert(&newest, &[3u64.into(), (1i64 << 40).into()]).expect("the index does not hold it");
    second.insert(&newest, &[4u64.into(), (1i64 << 40).into()]).expect("the index does not hold it");
    second.commit().expect("nobody has the keys");
    db.run(|txn| txn.insert(&newest, &[5u64.into(), 6i64.into()])).expect("later ones are not bound");
}

/// A position names the columns as they were where the cursor has been.
#[test]
fn positions_are_of_the_columns_of_then() {
    for change_of_it in [
        TableChange::new().make_nullable("x"),
        TableChange::new().make_nullable("s"),
        TableChange::new().widen_column("x", Type::I64),
    ] {
        let db = in_memory();
        let table = filled(&db);
        let txn = begin(&db, Isolation::Snapshot);
        let ix = table.index("ix").expect("the index");
        let mut cursor = txn.index_cursor(&ix, Range::all()).expect("a cursor");
        cursor.next(&txn).expect("a read").expect("a row");
        let before = cursor.position().expect("it has come to a row");
        let newest = change(&db, &table, &change_of_it);
        assert_eq!(cursor.position().as_ref(), Some(&before), "the entries are what they were");
        cursor.next(&txn).expect("a read").expect("a row");
        let after = cursor.position().expect("it has come to a row");
        drop((cursor, txn));
        let ix = db.create_index(&newest, IndexDef::new("ix", ["x", "s"])).expect("an index");
        let txn = db.begin_read().expect("a transaction");
        for position in [before, after] {
            let stale = txn.count_index(&ix, Range::all().behind(&position));
            assert!(matches!(stale, Err(Error::UnknownPosition { .. })), "{stale:?}");
        }
        assert_eq!(txn.count_index(&ix, Range::all()).expect("a scan"), ROWS);
    }
}

/// The index made again with other columns beside those who still maintain the
/// first, and the database opened again after a clean end and after a kill, with an
/// image from before.
#[test]
fn reopening_finds_the_index_of_now() {
    for kill in [false, true] {
        for change_of_it in changes() {
            let mut home = Home::new(Bed::File(Durability::Sync));
            let db = home.open();
            drop(filled(&db));
            home.close(db);
            let db = home.open();
            let table = db.table("t").expect("the table");
            let mut txn = begin(&db, Isolation::Snapshot);
            txn.update(&table, &[1u64.into()], &[("x", 9i32.into())]).expect("an update");
            let newest = change(&db, &table, &change_of_it);
            db.create_index(&newest, IndexDef::new("ix", ["y"])).expect("an index");
            txn.update(&table, &[1u64.into()], &[("y", 9i64.into())]).expect("an update");
            txn.insert(&table, &row(ROWS)).map_or_else(
                |error| assert!(matches!(error, Error::ColumnDropped { .. }), "{error:?}"),
                |()| assert!(txn.delete(&table, &[ROWS.into()]).expect("a deletion")),
            );
            txn.commit().expect("nobody else writes");
            let name = newest.name().to_owned();
            drop((table, newest));
            match kill {
                false => home.close(db),
                true => home.kill(db, vec![]),
            }
            let db = home.open();
            let table = db.table(&name).expect("the table");
            let txn = db.begin_read().expect("a transaction");
            assert_eq!(sums(&txn, &table).expect("a scan"), (ROWS as usize, 9));
            let ix = table.index("ix").expect("the index");
            assert_eq!(txn.count_index(&ix, Range::prefix(&[9i64.into()])).expect("a scan"), 1);
            assert_eq!(txn.count_index(&ix, Range::all()).expect("a scan"), ROWS);
            drop((txn, ix, table));
            home.close(db);
            let report = pantile::check(home.path(), &Default::default()).expect("a database");
            assert!(report.findings.is_empty(), "{report:?}");
        }
    }
}

/// A serializable transaction that has read through the index stays in order with
/// those that write rows of a later layout.
#[test]
fn what_was_read_through_the_index_stays_protected() {
    for change_of_it in changes() {
        let db = in_memory();
        let table = filled(&db);
        let mut writer = begin(&db, Isolation::Serializable);
        let mut reader = begin(&db, Isolation::Serializable);
        let ix = table.index("ix").expect("the index");
        assert_eq!(sums(&writer, &table).expect("a scan").0, ROWS as usize);
        assert_eq!(reader.count_index(&ix, Range::prefix(&[77i32.into()])).expect("a scan"), 0);
        reader.update(&table, &[1u64.into()], &[("y", 1i64.into())]).expect("an update");
        change(&db, &table, &change_of_it);
        // Each has missed what the other writes.
        let written = writer.update(&table, &[2u64.into()], &[("x", 77i32.into())]).map(drop);
        let written = written.and_then(|()| writer.commit().map(drop));
        let read = reader.commit().map(drop);
        let is_conflict = |ended: &Result<()>| matches!(ended, Err(Error::Conflict { .. }));
        assert!(is_conflict(&written) || is_conflict(&read), "{written:?} {read:?}");
    }
}

/// Only those who may write maintain an index. One who reads for long keeps the tree that it reads, and no other.
#[test]
fn a_reader_keeps_no_index_that_it_does_not_read() {
    let db = in_memory();
    let table = db.create_table(definition("t")).expect("a table");
    db.run(|txn| txn.insert_many(&table, (0..5_000).map(row))).expect("rows");
    let ix = table.index("ix").expect("the index");
    let reader = db.begin_read().expect("a reader");
    let rows = reader.scan_index(&ix, Range::all()).expect("a scan");
    let mut rows = rows.map(|row| row.expect("a row").get::<u64>("id").expect("an id"));
    assert!(rows.by_ref().take(100).eq(0..100));
    let mut sizes = Vec::new();
    for n in 0..6u64 {
        db.create_index(&table, IndexDef::new("other", ["y", "x"])).expect("an index");
        let change = |id: u64| (id, [("x", Value::Int(100_000 + n as i64))]);
        db.run(|txn| {
            (0..5_000).step_by(7).map(change).try_for_each(|(id, to)| {
                txn.update(&table, &[id.into()], &to).map(|is_there| assert!(is_there))
            })
        })
        .expect("updates");
        db.drop_index(&table, "other").expect("it goes");
        sizes.push(db.stats().index_bytes);
    }
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0] + pair[0] / 2), "{sizes:?}");
    assert!(sizes[5] < 2 * sizes[0], "dropped indexes stay beside a reader: {sizes:?}");
    // What it reads by stays as long as it reads.
    db.drop_index(&table, "ix").expect("it goes");
    db.run(|txn| txn.delete_range(&table, Range::all()).map(drop)).expect("the rows go");
    db.run(|txn| txn.insert_many(&table, (0..5_000).map(row))).expect("others come");
    assert!(rows.eq(100..5_000));
}

#[test]
fn a_dropped_index_has_no_estimate() {
    let db = in_memory();
    let table = filled(&db);
    let index = table.index("ix").expect("an index");
    db.drop_index(&table, "ix").expect("the index goes");
    let txn = db.begin_read().expect("a transaction");
    let error = txn.estimate_index(&index, Range::all()).expect_err("there is none");
    assert!(matches!(error, Error::UnknownIndex { .. }), "{error:?}");
}

/// An index that a writer may still maintain goes when that one ends, although nothing is written then.
#[test]
fn an_index_goes_with_the_last_writer_that_maintains_it() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = filled(&db);
    db.run(|txn| txn.insert_many(&table, (ROWS..20_000).map(row))).expect("rows");
    let writer = db.begin().expect("a writer");
    let with = db.stats().index_bytes;
    db.drop_index(&table, "ix").expect("it goes");
    assert!(db.stats().index_bytes >= with, "the writer may enter rows");
    writer.rollback();
    await_that("the index has gone", || db.stats().index_bytes < with / 4 * 3);
}
