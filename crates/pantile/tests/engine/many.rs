//! Calls that are about many rows.

use std::collections::HashMap;
use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pantile::{
    Conflict, ConflictPolicy, Database, Durability, Error, IndexDef, Isolation, MediumKind, Options,
    OwnedValue, Range, Row, RowEdit, Table, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_testkit::{Bed, Home, Random};

use crate::support::{LEVELS, in_memory};

fn numbers(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def.index(IndexDef::new("by_n", ["n"]))).expect("a table");
    let rows = (0..1_000u64).map(|id| [Value::UInt(id), Value::UInt(id % 10)]);
    assert_eq!(db.run(|txn| txn.insert_many(&table, rows.clone())).expect("rows"), 1_000);
    table
}

fn between<'v>(from: &'v [Value<'v>], to: &'v [Value<'v>]) -> Range<'v> {
    Range::all().from(Bound::Included(from)).to(Bound::Excluded(to))
}

#[test]
fn counts_are_those_of_the_transaction() {
    let db = in_memory();
    let table = numbers(&db);
    let by_n = table.index("by_n").expect("the index");
    let three = [Value::UInt(3)];
    let before = db.begin_read().expect("a transaction");
    for level in LEVELS {
        let mut txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("a transaction");
        let (from, to) = ([Value::UInt(100)], [Value::UInt(200)]);
        assert_eq!(txn.count(&table, between(&from, &to)).expect("a count"), 100);
        assert_eq!(txn.count(&table, Range::all().limit(7)).expect("a count"), 7);
        assert_eq!(txn.count_index(&by_n, Range::prefix(&three)).expect("a count"), 100);
        assert_eq!(txn.delete_range(&table, between(&from, &to)).expect("rows"), 100);
        assert!(txn.is_empty(&table, between(&from, &to)).expect("a look"));
        assert!(txn.is_empty(&table, Range::all().limit(0)).expect("a look"));
        assert_eq!(txn.count(&table, Range::all()).expect("a count"), 900);
        assert_eq!(txn.count_index(&by_n, Range::prefix(&three)).expect("a count"), 90);
        // Another one sees nothing of it.
        assert_eq!(before.count(&table, Range::all()).expect("a count"), 1_000);
    }
}

/// Another transaction has a row in the middle of it.
#[test]
fn a_range_is_deleted_whole_or_not_at_all() {
    let home = in_memory();
    let (db, table) = (&home, numbers(&home));
    for level in LEVELS {
        let mut other = db.begin().expect("a transaction");
        assert!(other.get_for_update(&table, &[500u64.into()]).expect("the row").is_some());
        let at_once = TransactionOptions::new().isolation(level).conflict(ConflictPolicy::Abort);
        let mut txn = db.begin_with(at_once).expect("a transaction");
        assert!(txn.update(&table, &[1u64.into()], &[(1, 77u64.into())]).expect("the row is free"));
        let error = txn.delete_range(&table, Range::all()).expect_err("a row is locked");
        assert!(matches!(error, Error::Conflict { conflict: Conflict::Locked, .. }), "{error}");
        other.rollback();
        assert_eq!(txn.count(&table, Range::all()).expect("a count"), 1_000);
        let row = txn.get(&table, &[1u64.into()]).expect("a read").expect("the row");
        assert_eq!(row.get::<u64>(1).expect("a number"), 77);
        txn.rollback();
    }
}

/// More keys than are looked up side by side, keys that have no row, keys given twice, rows
/// that the transaction has added and deleted, at each level.
#[test]
fn rows_are_changed_together_as_one_by_one() {
    let home = in_memory();
    let (db, table) = (&home, numbers(&home));
    for level in LEVELS {
        let mut random = Random::new(11, level as u64);
        for count in [0, 1, 2, 16, 17, 100] {
            let mut txn = db.begin_with(TransactionOptions::new().isolation(level)).expect("a transaction");
            txn.insert_many(&table, (2_000..2_010u64).map(|id| [id.into(), 0u64.into()])).expect("rows");
            txn.delete_range(&table, between(&[Value::UInt(0)], &[Value::UInt(10)])).expect("rows");
            let keys: Vec<u64> = (0..count).map(|_| random.below(30) * 91).collect();
            let named: Vec<[Value<'_>; 1]> = keys.iter().map(|key| [(*key).into()]).collect();
            let mut model: HashMap<u64, u64> = HashMap::new();
            let row = |row: Row<'_>| Ok::<(u64, u64), Error>((row.get(0)?, row.get(1)?));
            model.extend(
                txn.scan(&table, Range::all()).expect("a scan").map(|r| r.and_then(row).expect("a row")),
            );
            let mut is_right = true;
            let changed = txn.modify_many(&table, &named, |n, row| {
                is_right &= row.get::<u64>(0)? == keys[n];
                let next: u64 = row.get::<u64>(1)? + 1;
                row.set(1, next.into()).map(|()| true)
            });
            assert!(is_right, "the number of the key is the row's");
            let found = keys.iter().filter(|key| model.get_mut(key).map(|n| *n += 1).is_some()).count();
            assert_eq!(changed.expect("no conflict"), found as u64);
            for (key, row) in keys.iter().zip(txn.get_many(&table, &named).expect("rows")) {
                let row = row.map(|row| row.get(1).expect("a number"));
                assert_eq!(row, model.get(key).copied(), "{key} at {level:?}");
            }
            let changes: Vec<_> = named.iter().map(|key| (key, [("n", Value::UInt(5))])).collect();
            assert_eq!(txn.update_many(&table, &changes).expect("no conflict"), found as u64);
            let rows = txn.get_many(&table, &named).expect("rows");
            assert!(rows.iter().flatten().all(|row| row.get::<u64>(1).expect("a number") == 5));
            drop(rows);
            txn.rollback();
        }
    }
}

/// Rows are taken up to the first `None`, whatever the iterator would give after it.
#[test]
fn an_iterator_is_not_asked_again() {
    let db = in_memory();
    let table = numbers(&db);
    let mut txn = db.begin().expect("a transaction");
    let lines = ["2001", "2002", "no number", "2003"].into_iter().map_while(|line| line.parse().ok());
    let rows = lines.map(|id: u64| [id.into(), 0u64.into()]);
    assert_eq!(txn.insert_many(&table, rows).expect("rows"), 2);
    assert!(txn.get(&table, &[2003u64.into()]).expect("a read").is_none());
}

/// A call that fails changes nothing, whichever row is to blame.
#[test]
fn rows_are_changed_together_or_not_at_all() {
    let db = in_memory();
    let table = numbers(&db);
    let keys: Vec<[Value<'_>; 1]> = (0..40u64).map(|id| [id.into()]).collect();
    for blamed in [0, 1, 15, 16, 39] {
        let mut txn = db.begin().expect("a transaction");
        assert!(txn.update(&table, &keys[3], &[("n", 77u64.into())]).expect("a row"));
        let refused = txn.modify_many(&table, &keys, |n, row| match n == blamed {
            true => row.set("n", "text".into()).map(|()| true),
            false => row.set("n", 99u64.into()).map(|()| true),
        });
        assert!(matches!(refused, Err(Error::WrongType { .. })), "{refused:?}");
        let mut wrong = keys.clone();
        wrong[blamed] = ["text".into()];
        assert!(matches!(txn.modify_many(&table, &wrong, |_, _| Ok(true)), Err(Error::WrongType { .. })));
        let rows = txn.get_many(&table, &keys).expect("rows");
        for (id, row) in rows.iter().enumerate() {
            let n = row.as_ref().expect("a row").get::<u64>("n").expect("a number");
            assert_eq!(n, if id == 3 { 77 } else { id as u64 % 10 });
        }
        drop(rows);
        // Nor does it keep others from them.
        let mut other = db.begin().expect("a transaction");
        let free: Vec<_> = keys
            .iter()
            .filter(|key| **key != [Value::UInt(3)])
            .map(|key| (key, [("n", Value::UInt(1))]))
            .collect();
        assert_eq!(other.update_many(&table, &free).expect("they are free"), 39);
        other.rollback();
        txn.rollback();
    }
}

/// The same if the program's own code panics and the program goes on.
#[test]
fn a_call_that_panics_changes_nothing() {
    let db = in_memory();
    let table = numbers(&db);
    let by_n = table.index("by_n").expect("the index");
    let keys: Vec<[Value<'_>; 1]> = (0..40u64).map(|id| [id.into()]).collect();
    for blamed in [0, 1, 15, 16, 39] {
        let mut txn = db.begin().expect("a transaction");
        assert!(txn.update(&table, &keys[3], &[("n", 77u64.into())]).expect("a row"));
        let new = (0..=blamed).map(|n| {
            assert!(n < blamed, "the program fails");
            [(5_000 + n as u64).into(), 99u64.into()]
        });
        catch_unwind(AssertUnwindSafe(|| txn.insert_many(&table, new))).expect_err("it panics");
        let edit = |n: usize, row: &mut RowEdit<'_>| {
            row.set("n", 99u64.into())?;
            assert!(n < blamed, "the program fails");
            Ok(true)
        };
        catch_unwind(AssertUnwindSafe(|| txn.modify_many(&table, &keys, edit))).expect_err("it panics");
        assert_eq!(txn.count(&table, Range::all()).expect("a count"), 1_000);
        assert_eq!(txn.count_index(&by_n, Range::prefix(&[99u64.into()])).expect("a count"), 0);
        let mut other = db.begin().expect("a transaction");
        let free: Vec<_> = keys.iter().filter(|key| **key != [Value::UInt(3)]).copied().collect();
        assert_eq!(other.modify_many(&table, &free, |_, _| Ok(true)).expect("they are free"), 39);
        other.rollback();
        txn.commit().expect("it goes on");
        let reader = db.begin_read().expect("a transaction");
        let row = reader.get(&table, &keys[3]).expect("a read").expect("a row");
        assert_eq!(row.get::<u64>("n").expect("a number"), 77);
        db.run(|txn| txn.update(&table, &keys[3], &[("n", 3u64.into())])).expect("as before");
    }
}

/// The same if that is what decides how long a call waits.
#[test]
fn a_call_whose_wait_panics_changes_nothing() {
    let db = in_memory();
    let table = numbers(&db);
    let by_n = table.index("by_n").expect("the index");
    let mut other = db.begin().expect("a transaction");
    other.insert(&table, &[5_003u64.into(), 99u64.into()]).expect("a row");
    assert!(other.get_for_update(&table, &[500u64.into()]).expect("the row").is_some());
    let mut txn = db.begin().expect("a transaction");
    txn.interrupt_when(|_| panic!("the program fails"));
    let new = |id: u64| [Value::UInt(id), Value::UInt(99)];
    type Call<'c> = &'c dyn Fn(&mut Transaction) -> Result<(), Error>;
    let calls: [Call<'_>; 5] = [
        &|txn| txn.insert_many(&table, (5_000..5_006).map(new)).map(drop),
        &|txn| txn.insert(&table, &new(5_003)),
        &|txn| txn.upsert(&table, &new(5_003)).map(drop),
        &|txn| txn.modify(&table, &[500u64.into()], |_| Ok(true)).map(drop),
        &|txn| txn.delete_range(&table, Range::all()).map(drop),
    ];
    for call in calls {
        catch_unwind(AssertUnwindSafe(|| call(&mut txn))).expect_err("it panics");
    }
    let edited = || txn.modify(&table, &[7u64.into()], |_| panic!("the program fails"));
    catch_unwind(AssertUnwindSafe(edited)).expect_err("it panics");
    assert_eq!(txn.count(&table, between(&[0u64.into()], &[500u64.into()])).expect("a count"), 500);
    // None of the rows is kept from others.
    let at_once = TransactionOptions::new().conflict(ConflictPolicy::Abort);
    let mut third = db.begin_with(at_once).expect("a transaction");
    let keys: Vec<[Value<'_>; 1]> = (0..500u64).map(|id| [id.into()]).collect();
    assert_eq!(third.modify_many(&table, &keys, |_, _| Ok(true)).expect("they are free"), 500);
    third.rollback();
    // And it goes on.
    txn.insert(&table, &new(6_000)).expect("a row");
    other.rollback();
    txn.commit().expect("a commit");
    let reader = db.begin_read().expect("a transaction");
    assert_eq!(reader.count(&table, Range::all()).expect("a count"), 1_001);
    assert_eq!(reader.count_index(&by_n, Range::all()).expect("a count"), 1_001);
    assert_eq!(reader.count_index(&by_n, Range::prefix(&[99u64.into()])).expect("a count"), 1);
}

/// A wait for a unique key panics in the program's code. The transaction goes on, and so does the next one in its slot:
/// each row that they write is in every index.
#[test]
fn a_panic_beside_a_unique_key_leaves_no_row_out_of_an_index() {
    let db = in_memory();
    let def = TableDef::new("t").column("id", Type::U64).column("u", Type::U64).primary_key(["id"]);
    let table = db.create_table(def.index(IndexDef::unique("by_u", ["u"]))).expect("a table");
    let by_u = table.index("by_u").expect("the index");
    let mut other = db.begin().expect("a transaction");
    other.insert(&table, &[1u64.into(), 5u64.into()]).expect("a row");
    let mut txn = db.begin().expect("a transaction");
    txn.interrupt_when(|_| panic!("the program fails"));
    let meets = || txn.insert(&table, &[2u64.into(), 5u64.into()]);
    catch_unwind(AssertUnwindSafe(meets)).expect_err("it panics");
    other.rollback();
    txn.insert(&table, &[7u64.into(), 9u64.into()]).expect("a row");
    txn.commit().expect("a commit");
    db.run(|txn| txn.insert(&table, &[8u64.into(), 10u64.into()])).expect("a row");
    let reader = db.begin_read().expect("a transaction");
    assert_eq!(reader.count(&table, Range::all()).expect("a count"), 2);
    assert_eq!(reader.count_index(&by_u, Range::all()).expect("a count"), 2);
}

/// In order or not, into a table with rows, of any length.
#[test]
fn any_number_is_loaded() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let db = home.open();
    let table = numbers(&db);
    let scattered = (0..5_000u64).map(|n| [(1_000 + n * 7_919 % 5_000).into(), n.into()]);
    assert_eq!(db.bulk_insert(&table, scattered).expect("a load"), 5_000);
    assert_eq!(db.bulk_insert(&table, std::iter::empty::<[OwnedValue; 2]>()).expect("a load"), 0);
    let def = TableDef::new("long").column("id", Type::U64).column("text", Type::Bytes(1 << 20));
    let long = db.create_table(def.primary_key(["id"])).expect("a table");
    let text = vec![7; 300_000];
    assert_eq!(
        db.bulk_insert(&long, (0..20u64).map(|id| [id.into(), text.clone().into()])).expect("a load"),
        20
    );
    drop((table, long));
    home.kill(db, Vec::new());
    let db = home.open();
    let (txn, table, long) = (db.begin_read().expect("begin"), db.table("t"), db.table("long"));
    assert_eq!(txn.count(&table.expect("the table"), Range::all()).expect("a count"), 6_000);
    assert_eq!(txn.count(&long.expect("the table"), Range::all()).expect("a count"), 20);
}

/// What a load says that stays is there, and nothing else.
#[test]
fn a_load_that_stops_says_what_stays() {
    let db = in_memory();
    let table = numbers(&db);
    for (from, refused) in [(10_000u64, 0), (20_000, 1), (30_000, 1_023), (40_000, 1_024), (50_000, 9_999)] {
        let before = db.begin_read().and_then(|txn| txn.count(&table, Range::all())).expect("a count");
        let row = |n: u64| [if n == refused { 7 } else { from + n }.into(), 0u64.into()];
        let stopped = db.bulk_insert(&table, (0..10_000).map(row)).expect_err("row 7 is there");
        assert!(matches!(*stopped.error, Error::DuplicateKey { .. }), "{stopped}");
        assert_eq!((stopped.row, stopped.inserted), (Some(refused), refused / 1_024 * 1_024));
        let after = db.begin_read().and_then(|txn| txn.count(&table, Range::all())).expect("a count");
        assert_eq!(after, before + stopped.inserted);
    }
}

#[test]
fn many_are_inserted_or_none() {
    let db = in_memory();
    let table = numbers(&db);
    let mut txn = db.begin().expect("a transaction");
    txn.insert(&table, &[2_000u64.into(), 1u64.into()]).expect("a row");
    let rows = (1_990..2_010u64).map(|id| [Value::UInt(id), Value::UInt(0)]);
    let error = txn.insert_many(&table, rows).expect_err("one is there");
    assert!(matches!(error, Error::DuplicateKey { .. }), "{error}");
    assert_eq!(txn.count(&table, Range::all()).expect("a count"), 1_001);
    let wrong = [vec![Value::UInt(5_000), Value::UInt(0)], vec![Value::UInt(5_001)]];
    assert!(matches!(txn.insert_many(&table, wrong), Err(Error::WrongArity { .. })));
    txn.commit().expect("a commit");
    let txn = db.begin_read().expect("a transaction");
    assert_eq!(txn.count(&table, Range::all()).expect("a count"), 1_001);
    let by_n = table.index("by_n").expect("the index");
    assert_eq!(txn.count_index(&by_n, Range::all()).expect("a count"), 1_001);
}

#[test]
fn what_is_replaced_is_returned_whatever_its_length() {
    let db = in_memory();
    let def = TableDef::new("t")
        .column("id", Type::U64)
        .nullable("text", Type::String(1 << 20))
        .primary_key(["id"]);
    let table = db.create_table(def).expect("a table");
    let long = "ö".repeat(100_000);
    let mut txn = db.begin().expect("a transaction");
    assert_eq!(txn.replace(&table, &[1u64.into(), long.as_str().into()]).expect("a row"), None);
    let before = txn.replace(&table, &[1u64.into(), Value::Null]).expect("a row").expect("it was there");
    assert_eq!(before, [OwnedValue::from(1u64), OwnedValue::Str(long)]);
    assert!(matches!(txn.replace(&table, &[1u64.into()]), Err(Error::WrongArity { .. })));
    assert!(matches!(txn.replace(&table, &["one".into(), Value::Null]), Err(Error::WrongType { .. })));
    let row = txn.get(&table, &[1u64.into()]).expect("a read").expect("a row");
    assert_eq!(row.to_values().expect("values"), [OwnedValue::from(1u64), OwnedValue::Null]);
}

#[test]
fn a_table_is_emptied_at_once() {
    let mut home = Home::new(Bed::File(Durability::Sync));
    let mut db = home.open();
    let old = numbers(&db);
    let reader = db.begin_read().expect("a transaction");
    let mut writer = db.begin().expect("a transaction");
    writer.insert(&old, &[5_000u64.into(), 1u64.into()]).expect("a row");
    let new = db.truncate_table(&old).expect("an empty table");
    assert!(matches!(writer.commit(), Err(Error::TableDropped(_))));
    assert!(matches!(reader.count(&old, Range::all()), Err(Error::TableDropped(_))));
    assert!(matches!(db.truncate_table(&old), Err(Error::TableDropped(_))));
    db.run(|txn| txn.insert(&new, &[1u64.into(), 1u64.into()])).expect("a row");
    drop(reader);
    home.kill(db, vec![]);
    db = home.open();
    let table = db.table("t").expect("the table");
    assert_eq!(table.definition().indexes.len(), 1);
    let count = |isolation| {
        let txn = db.begin_with(TransactionOptions::new().isolation(isolation)).expect("a transaction");
        txn.count(&table, Range::all()).expect("a count")
    };
    assert_eq!(count(Isolation::Serializable), 1);
    assert_eq!(db.tables(), ["t"]);
}

/// Rows that are skipped count in no limit, are not locked, and neither are those
/// counted that the transaction does not see.
#[test]
fn skipped_rows_are_left_out_everywhere() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let table = db.create_table(def.index(IndexDef::new("by_n", ["n"]))).expect("create");
    let by_n = table.index("by_n").expect("the index");
    db.run(|txn| txn.insert_many(&table, (0..1000u64).map(|id| [id.into(), (id / 10).into()])))
        .expect("rows");
    db.run(|txn| txn.delete(&table, &[3u64.into()])).expect("delete");
    let txn = db.begin_read().expect("begin");
    let ids = |range| -> Vec<u64> {
        let rows = txn.scan(&table, range).expect("scan");
        rows.map(|row| row.expect("a row").get(0).expect("an id")).collect()
    };
    let all = ids(Range::all());
    for skip in [0, 1, 3, 7, 8, 9, 256, 998, 999, 1000, usize::MAX] {
        for limit in [0, 1, 5, 300, usize::MAX] {
            let range = Range::all().skip(skip).limit(limit);
            let expected: Vec<u64> = all.iter().copied().skip(skip).take(limit).collect();
            assert_eq!(ids(range), expected, "{skip}, {limit}");
            assert_eq!(
                ids(range.reverse()),
                all.iter().rev().copied().skip(skip).take(limit).collect::<Vec<_>>()
            );
            assert_eq!(txn.count(&table, range).expect("count"), expected.len() as u64);
            assert_eq!(txn.count_index(&by_n, range).expect("count"), expected.len() as u64);
            assert_eq!(txn.is_empty(&table, range).expect("look"), expected.is_empty());
            assert_eq!(txn.estimate(&table, range).expect("estimate"), expected.len() as u64);
            let (mut cursor, mut found) = (txn.cursor(&table, range).expect("a cursor"), Vec::new());
            while let Some(row) = cursor.next(&txn).expect("a row") {
                found.push(row.get::<u64>(0).expect("an id"));
            }
            assert_eq!(found, expected);
        }
    }
    for level in [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable] {
        let mut locking = db.begin_with(TransactionOptions::new().isolation(level)).expect("begin");
        let mut cursor = locking.cursor(&table, Range::all().skip(5).limit(1)).expect("a cursor");
        let row = cursor.next_for_update(&mut locking, false).expect("a row").expect("it");
        assert_eq!(row.get::<u64>(0).expect("an id"), 6);
        let mut other =
            db.begin_with(TransactionOptions::new().conflict(ConflictPolicy::Abort)).expect("begin");
        other.update(&table, &[5u64.into()], &[("n", 0u64.into())]).expect("5 was only skipped");
        other.update(&table, &[6u64.into()], &[("n", 0u64.into())]).expect_err("6 is locked");
    }
}
