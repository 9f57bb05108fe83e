//! What changes of definitions do inside the engine.

use std::sync::Arc;
use std::time::Duration;

use pantile_base::{Timestamp, TupleId};
use pantile_cc::SimulatedTime;
use pantile_testkit::Patience;

use crate::engine::catalog;
use crate::engine::index::IndexInner;
use crate::types::value::Value;
use crate::{
    Database, IndexDef, Isolation, MediumKind, Options, Range, Table, TableChange, TableDef,
    TransactionOptions, Type,
};

fn open(time: &SimulatedTime) -> Database {
    let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    options.open("unused").expect("open")
}

fn definition(name: &str) -> TableDef {
    TableDef::new(name).column("id", Type::U64).column("value", Type::U64).primary_key(["id"])
}

fn put(db: &Database, table: &Table, id: u64, value: u64) {
    db.run(|txn| txn.upsert(table, &[id.into(), value.into()])).expect("a commit");
}

/// Marks of tuples that share a cell with the catalog's, and marks that
/// removed entries have left in the catalog's index, are no conflicts.
#[test]
fn a_change_heeds_no_read_marks() {
    let db = open(&SimulatedTime::default());
    let table = db.create_table(definition("t")).expect("create");
    let later = Timestamp::new(db.core.registry.now().tick() + (1 << 40), 0);
    let catalog = db.core.tables.catalog().expect("open");
    for tuple in (0..catalog.inner.tuples_end()).map(TupleId) {
        db.core.marks.raise(catalog::CATALOG, tuple, later);
    }
    let mut key = crate::types::key::Key::default();
    key.set_values(catalog.inner.schema(), &catalog.inner.schema().primary_key, &[Value::UInt(99)])
        .expect("a key");
    assert_eq!(catalog.inner.tree().get(key.words(), Some(later.get())), None);
    db.create_index(&table, IndexDef::new("by_value", ["value"])).expect("create an index");
    db.drop_index(&table, "by_value").expect("drop the index");
    db.create_table(definition("u")).expect("create a table");
    db.drop_table("t").expect("drop the table");
}

/// Lets the cleaner do everything that is due.
fn clean(db: &Database, pulse: &Table, time: &SimulatedTime) {
    for n in 0..400 {
        time.advance(Duration::from_millis(50));
        put(db, pulse, 1, n);
    }
    assert_eq!(db.stats().stale_entries, 0);
}

/// I-17: an index that was built beside readers and writers holds nothing but
/// its rows, once nobody needs anything else.
#[test]
fn an_index_built_beside_writers_keeps_no_old_entries() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted] {
        let time = SimulatedTime::default();
        let db = open(&time);
        let [table, pulse] = ["t", "pulse"].map(|name| db.create_table(definition(name)).expect("create"));
        (0..20).for_each(|id| put(&db, &table, id, id));
        // The reader needs versions that are no longer the newest.
        let reader = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
        (0..5).for_each(|id| put(&db, &table, id, 100 + id));
        db.run(|txn| txn.delete(&table, &[5u64.into()])).expect("delete");
        let mut writer = db.begin_with(TransactionOptions::new().isolation(isolation)).expect("begin");
        for id in 10..15u64 {
            writer.update(&table, &[id.into()], &[(1, (200 + id).into())]).expect("update");
        }
        writer.delete(&table, &[15u64.into()]).expect("delete");
        writer.insert(&table, &[30u64.into(), 30u64.into()]).expect("insert");
        let index = db.create_index(&table, IndexDef::new("by_value", ["value"])).expect("create an index");
        assert!(writer.get_by_index(&index, &[210u64.into()]).expect("get").is_some(), "its own row");
        writer.update(&table, &[10u64.into()], &[(1, 300u64.into())]).expect("update");
        writer.commit().expect("commit");
        let old = reader.get_by_index(&index, &[3u64.into()]).expect("get");
        assert_eq!(old.map(|row| row.get::<u64>(0).expect("an id")), Some(3));
        drop(reader);
        clean(&db, &pulse, &time);
        assert_eq!(index.inner.tree().len(), 19, "{isolation:?}");
    }
}

/// A dropped index goes when the last transaction ends that began before.
#[test]
fn a_dropped_index_goes_with_the_last_that_knew_it() {
    let time = SimulatedTime::default();
    let db = open(&time);
    let [table, pulse] = ["t", "pulse"].map(|name| db.create_table(definition(name)).expect("create"));
    let drop_one = || {
        db.create_index(&table, IndexDef::new("by_value", ["value"])).expect("create an index");
        db.drop_index(&table, "by_value").expect("drop it");
        table.inner.indexes().len()
    };
    let older = db.begin().expect("begin");
    assert_eq!((drop_one(), drop_one()), (1, 2));
    older.rollback();
    clean(&db, &pulse, &time);
    assert_eq!(table.inner.indexes().len(), 0);
}

/// While the definition of a table is being changed, which takes long where an index is made, those of others can change.
#[test]
fn one_table_holds_up_no_other() {
    let db = open(&SimulatedTime::default());
    let [long, other] = ["long", "other"].map(|name| db.create_table(definition(name)).expect("create"));
    let changing = long.inner.change();
    db.create_table(definition("third")).expect("create");
    db.create_index(&other, IndexDef::new("by_value", ["value"])).expect("an index");
    db.drop_index(&other, "by_value").expect("drop it");
    db.truncate_table(&other).expect("truncate");
    db.drop_table("other").expect("drop");
    std::thread::scope(|scope| {
        let index = scope.spawn(|| db.create_index(&long, IndexDef::new("by_value", ["value"])).map(drop));
        let dropped = scope.spawn(|| db.drop_table("third"));
        dropped.join().expect("no panic").expect("it waits for no other table");
        assert!(!index.is_finished(), "two change one table");
        drop(changing);
        index.join().expect("no panic").expect("it is its turn");
    });
}

/// A transaction that has met an index whose creation then failed goes on maintaining
/// it. The column of the index may change meanwhile.
#[test]
fn an_index_that_was_not_made_does_not_keep_its_column() {
    let change = TableChange::new;
    for change in [change().drop_column("value"), change().make_nullable("value")] {
        for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
            let db = open(&SimulatedTime::default());
            let table = db.create_table(definition("t")).expect("create");
            (0..20).for_each(|id| put(&db, &table, id, id));
            let inner = &table.inner;
            // What `create_index` does up to a failure, with a writer beside it.
            let def = IndexDef::unique("by_value", ["value"]);
            let number = inner.next_index_number();
            let index = Arc::new(IndexInner::new(&def, number, inner.schema()).expect("an index"));
            index.set_empty(inner.schema(), &db.core.tables.arena);
            inner.change_indexes(|list| list.push(Arc::clone(&index)));
            let mut writer = db.begin_with(TransactionOptions::new().isolation(isolation)).expect("begin");
            writer.update(&table, &[1u64.into()], &[(1, 100u64.into())]).expect("update");
            assert_eq!(index.tree().len(), 1, "it knows the index");
            inner.change_indexes(|list| list.retain(|index| index.number != number));
            let newest = db.alter_table(&table, &change).expect("no index has the column");
            for id in 1..4u64 {
                assert!(writer.delete(&newest, &[(id + 10).into()]).expect("delete"));
                let row = [(30 + id).into(), Value::Null];
                writer.insert(&newest, &row[..newest.columns().len()]).expect("insert");
            }
            writer.commit().expect("commit");
            let reader = db.begin_read().expect("begin");
            assert_eq!(reader.count(&newest, Range::all()).expect("count"), 20);
        }
    }
}

/// However many tables have been dropped, one commit gives back a few of them.
#[test]
fn dropped_tables_go_a_few_at_a_time() {
    let time = SimulatedTime::default();
    let db = open(&time);
    let pulse = db.create_table(definition("pulse")).expect("create");
    put(&db, &pulse, 1, 0);
    let before = db.core.store.used_bytes();
    let reader = db.begin_read().expect("begin");
    for n in 0..100 {
        let name = format!("t{n}");
        put(&db, &db.create_table(definition(&name)).expect("create"), 1, 1);
        db.drop_table(&name).expect("drop");
    }
    let mut used = db.core.store.used_bytes();
    let one = (used - before) / 100;
    assert!(one > 0);
    drop(reader);
    for n in 0.. {
        time.advance(Duration::from_millis(50));
        put(&db, &pulse, 1, n);
        let now = db.core.store.used_bytes();
        assert!(used.saturating_sub(now) <= 16 * one, "{used} bytes, then {now}; a table has {one}");
        used = now;
        // The catalog has grown, too.
        if used < before + 10 * one {
            break;
        }
        assert!(n < 100_000, "{used} bytes are left");
    }
}

/// A transaction that writes while an index is built has a list of indexes with it,
/// and its slot keeps the list. Neither an idle slot nor one that is in use meanwhile
/// keeps an index that could not be made.
#[test]
fn an_index_that_fails_is_kept_by_nobody() {
    let db = Options::new().medium(MediumKind::Dram).worker(false).open("unused").expect("open");
    let table = db.create_table(definition("t")).expect("create");
    // The build takes a while, and finds at its end that two rows have one value.
    let rows = (0..100_000u64).map(|id| [id.into(), (id / 2).into()]);
    db.run(|txn| txn.insert_many(&table, rows.clone())).expect("insert");
    // Whether an index was seen that could not be made, beside a slot of either kind.
    let (mut seen, patience) = ([false; 2], Patience::new());
    for id in 200_000.. {
        if id >= 200_006 && seen == [true; 2] {
            break;
        }
        patience.check(|| "no index is seen while it is built".into());
        let (made, index, second) = std::thread::scope(|scope| {
            let building = scope.spawn(|| db.create_index(&table, IndexDef::unique("by_value", ["value"])));
            let mut index = None;
            while index.is_none() && !building.is_finished() {
                index = table.inner.indexes().first().map(Arc::downgrade);
            }
            put(&db, &table, id, id);
            let second = (id % 2 == 0).then(|| db.begin().expect("begin"));
            (building.join().expect("no panic"), index, second)
        });
        assert!(matches!(made, Err(crate::Error::DuplicateKey { .. })), "{made:?}");
        drop(second);
        seen[(id % 2) as usize] |= index.is_some();
        assert!(index.is_none_or(|index| index.strong_count() == 0), "its tree takes memory");
    }
}

/// Makes tables with a row each and drops them.
fn drop_tables(db: &Database, count: u64) {
    for n in 0..count {
        let name = format!("t{n}");
        put(db, &db.create_table(definition(&name)).expect("create"), 1, 1);
        db.drop_table(&name).expect("drop");
    }
}

/// Both wait for all that can go, however much it is.
#[test]
fn compacting_and_closing_give_all_dropped_tables_back() {
    let db = open(&SimulatedTime::default());
    drop_tables(&db, 1000);
    assert!(db.core.has_dropped_tables());
    assert!(db.compact().expect("compact").is_done());
    assert!(!db.core.has_dropped_tables());
    drop_tables(&db, 1000);
    assert!(db.core.has_dropped_tables());
    let core = Arc::clone(&db.core);
    db.close().expect("close");
    assert!(!core.has_dropped_tables());
}
