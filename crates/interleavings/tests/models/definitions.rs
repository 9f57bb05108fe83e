//! Definitions change, and databases are closed, beside transactions.

use pantile::{Error, Index, IndexDef, Isolation, Range, Result, Table, TableDef, Transaction, Type};
use pantile_base::sync::model::explore;
use pantile_interleavings::Model;

use crate::support::{Small, at, join, put, unless_conflict};

pub const MODELS: &[Model] = &[
    Model { name: "drop_index_against_readers", rounds: 1_000, scale: 9, run: drop_index_against_readers },
    Model { name: "create_index_against_writers", rounds: 500, scale: 9, run: create_index_against_writers },
    Model { name: "drop_table_against_writers", rounds: 500, scale: 9, run: drop_table_against_writers },
    Model { name: "definitions_against_readers", rounds: 400, scale: 12, run: definitions_against_readers },
    Model { name: "close_against_making_room", rounds: 300, scale: 10, run: close_against_making_room },
];

const SEVEN: u64 = 7;
const BY_VALUE: &str = "by_value";

fn definition(name: &str) -> TableDef {
    TableDef::new(name).column("id", Type::U64).column("value", Type::U64).primary_key(["id"])
}

fn set(txn: &mut Transaction, table: &Table, id: u64, value: u64) -> Result<()> {
    txn.upsert(table, &[id.into(), value.into()]).map(|_| ())
}

fn is_set(txn: &Transaction, flags: &Table) -> Result<bool> {
    txn.get(flags, &[1u64.into()])?.map_or(Ok(false), |row| Ok(row.get::<u64>(1)? == 1))
}

fn values(txn: &Transaction, table: &Table) -> Vec<(u64, u64)> {
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| Ok((row.get(0)?, row.get(1)?))).expect("a row")).collect()
}

fn values_by(txn: &Transaction, index: &Index) -> Vec<(u64, u64)> {
    let rows = txn.scan_index(index, Range::all()).expect("scan");
    let mut rows: Vec<(u64, u64)> =
        rows.map(|row| row.and_then(|row| Ok((row.get(0)?, row.get(1)?))).expect("a row")).collect();
    rows.sort_unstable();
    rows
}

/// I-16: the flag is set only where no row has the value, which is looked up in
/// an index, and such a row is added only where the flag is not set. The index
/// is dropped meanwhile.
fn drop_index_against_readers() {
    let small = Small::new(4);
    let table = small.db.create_table(definition("rows_by_value").index(IndexDef::new(BY_VALUE, ["value"])));
    let table = table.expect("create");
    let flags = small.db.create_table(definition("flags")).expect("create");
    small.db.run(|txn| set(txn, &table, 1, 1)).expect("a commit");
    small.db.run(|txn| set(txn, &flags, 1, 0)).expect("a commit");
    let index = table.index(BY_VALUE).expect("index");
    explore(|| {
        let reader = small.spawn({
            let flags = flags.clone();
            move |small| {
                let once = || {
                    let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
                    if txn.get_by_index(&index, &[SEVEN.into()])?.is_none() {
                        set(&mut txn, &flags, 1, 1)?;
                    }
                    txn.commit()
                };
                match once() {
                    Err(Error::UnknownIndex { .. }) => {}
                    other => drop(unless_conflict(other)),
                }
            }
        });
        let writer = small.spawn({
            let (table, flags) = (table.clone(), flags.clone());
            move |small| {
                let once = || {
                    let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
                    if !is_set(&txn, &flags)? {
                        set(&mut txn, &table, 2, SEVEN)?;
                    }
                    txn.commit()
                };
                unless_conflict(once());
            }
        });
        small.db.drop_index(&table, BY_VALUE).expect("drop");
        join([reader, writer]);
    });
    let txn = small.db.begin_read().expect("begin");
    let rows = values(&txn, &table);
    let both = is_set(&txn, &flags).expect("get") && rows.iter().any(|(_, value)| *value == SEVEN);
    assert!(!both, "no order of the transactions leads here: {rows:?}");
    drop(txn);
    small.check(&[]);
}

/// An index that is built beside writers has the rows of its table.
fn create_index_against_writers() {
    let small = Small::new(4);
    let table = small.db.create_table(definition("rows_by_value")).expect("create");
    small.db.run(|txn| (1..4).try_for_each(|id| set(txn, &table, id, id))).expect("a commit");
    explore(|| {
        let writers = [Isolation::Serializable, Isolation::Snapshot].map(|level| {
            let table = table.clone();
            small.spawn(move |small| {
                let once = || {
                    let mut txn = small.db.begin_with(at(level)).expect("begin");
                    let id = if level == Isolation::Snapshot { 1 } else { 2 };
                    set(&mut txn, &table, id, 9)?;
                    set(&mut txn, &table, id + 8, 8)?;
                    txn.commit()
                };
                unless_conflict(once());
            })
        });
        small.db.create_index(&table, IndexDef::new(BY_VALUE, ["value"])).expect("create");
        join(writers);
    });
    let index = table.index(BY_VALUE).expect("index");
    let txn = small.db.begin_read().expect("begin");
    assert_eq!(values_by(&txn, &index), values(&txn, &table));
    drop(txn);
    small.check(&[]);
}

/// A commit to a table that is being dropped is refused or is over before. A
/// table of the same name, made afterwards, has nothing of it.
fn drop_table_against_writers() {
    let small = Small::new(4);
    let table = small.db.create_table(definition("fleeting")).expect("create");
    explore(|| {
        let writers = [1, 2].map(|id| {
            let table = table.clone();
            small.spawn(move |small| {
                let once = || {
                    let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
                    set(&mut txn, &table, id, id)?;
                    txn.commit()
                };
                match once() {
                    Err(Error::TableDropped(_)) => {}
                    other => drop(unless_conflict(other)),
                }
            })
        });
        small.db.drop_table("fleeting").expect("drop");
        let again = small.db.create_table(definition("fleeting")).expect("create");
        let txn = small.db.begin_read().expect("begin");
        assert_eq!(values(&txn, &again), []);
        drop(txn);
        join(writers);
    });
    let again = small.db.table("fleeting").expect("the table");
    assert_eq!(values(&small.db.begin_read().expect("begin"), &again), []);
    small.check(&[]);
}

/// Tuples in as many cells of read marks as a model has.
const MARKED: u64 = 512;

/// Whatever is read, and whatever shares a read mark with the catalog: a change of
/// a definition conflicts with nobody. Writers that move would get past the marks.
fn definitions_against_readers() {
    let small = Small::unmoved(4);
    let table = small.db.create_table(definition("read")).expect("create");
    small.db.run(|txn| (0..MARKED).try_for_each(|id| set(txn, &table, id, id))).expect("a commit");
    let other = small.db.create_table(definition("changed")).expect("create a table");
    explore(|| {
        let reader = small.spawn(move |small| {
            for _ in 0..3 {
                let txn = small.db.begin_read().expect("begin");
                assert_eq!(values(&txn, &table).len() as u64, MARKED);
            }
        });
        for _ in 0..3 {
            small.db.create_index(&other, IndexDef::new(BY_VALUE, ["value"])).expect("create an index");
            small.db.drop_index(&other, BY_VALUE).expect("drop the index");
        }
        small.db.create_table(definition("more")).expect("create a table");
        small.db.drop_table("more").expect("drop the table");
        join([reader]);
    });
    small.check(&[]);
}

/// I-20: a commit that finds no space makes room after it has ended, and others
/// commit, while the database is closed. The database then opens as closed, and
/// has what was acknowledged.
fn close_against_making_room() {
    let small = Small::limited(4, 11 << 18);
    let rows = (0..).take_while(|&key| {
        let mut txn = small.db.begin().expect("begin");
        put(&mut txn, &small.table, key, 1).expect("put");
        match txn.commit() {
            Ok(_) => true,
            Err(Error::StorageFull { .. }) => false,
            Err(error) => panic!("{error}"),
        }
    });
    let rows = rows.count() as u64;
    assert!(rows > 0);
    let closed = explore(|| {
        let writing = small.spawn(move |small| {
            for key in rows..rows + 2 {
                let Ok(mut txn) = small.db.begin() else { return };
                put(&mut txn, &small.table, key, 1).expect("put");
                match txn.commit() {
                    Err(Error::StorageFull { .. } | Error::Closed) => {}
                    other => panic!("there is no space: {other:?}"),
                }
            }
        });
        let closed = small.db.clone().close();
        join([writing]);
        closed
    });
    closed.expect("transactions end");
    small.check_closed(&(0..rows).map(|key| (key, 1)).collect::<Vec<_>>());
}
