//! Two-phase commit (I-32).

use pantile::{Error, IndexDef, Isolation, Range, Result, Table, TableDef, Transaction, Type};
use pantile_base::sync::model::explore;
use pantile_interleavings::Model;

use crate::support::{Small, all, at, change, get, join, put, unless_conflict};

pub const MODELS: &[Model] = &[
    Model { name: "prepared_have_no_write_skew", rounds: 500, scale: 9, run: prepared_have_no_write_skew },
    Model { name: "prepared_lose_no_update", rounds: 500, scale: 9, run: prepared_lose_no_update },
    Model { name: "prepare_against_indexes", rounds: 500, scale: 9, run: || prepare_against(Change::Index) },
    Model { name: "prepare_against_unique", rounds: 500, scale: 9, run: || prepare_against(Change::Unique) },
    Model { name: "prepare_against_drops", rounds: 500, scale: 9, run: || prepare_against(Change::Drop) },
    Model { name: "prepared_against_closing", rounds: 300, scale: 9, run: prepared_against_closing },
];

/// The table of records is made by the first transaction that is prepared.
fn new() -> Small {
    let small = Small::new(4);
    let mut txn = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
    put(&mut txn, &small.table, 100, 1).expect("a row");
    small.db.prepare(txn, b"first").expect("it is alone").rollback().expect("it is alone");
    small
}

fn prepare_and_commit(small: &Small, txn: Transaction, name: &[u8]) -> Result<()> {
    // What is prepared commits.
    small.db.prepare(txn, name)?.commit().expect("nothing is in its way");
    Ok(())
}

/// I-22: if each of two transactions reads what the other writes, one fails, also if
/// they are prepared.
fn prepared_have_no_write_skew() {
    let small = new();
    small.put(&[1, 2], 1);
    let clear = |small: &Small, mine: u64, other: u64, prepares: bool| {
        let once = || {
            let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
            if get(&txn, &small.table, other)?.expect("a row") == 1 {
                put(&mut txn, &small.table, mine, 0)?;
            }
            match prepares {
                true => prepare_and_commit(small, txn, &[mine as u8]),
                false => txn.commit().map(drop),
            }
        };
        unless_conflict(once());
    };
    explore(|| {
        let other = small.spawn(move |small| clear(&small, 1, 2, true));
        let third = small.spawn(move |small| {
            let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
            assert!(rows.iter().any(|&(_, n)| n == 1), "{rows:?}");
        });
        clear(&small, 2, 1, false);
        join([other, third]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.iter().any(|&(_, n)| n == 1), "{rows:?}");
    small.check(&rows);
}

/// No update is lost of transactions that are prepared, at all levels, and those that
/// are rolled back change nothing.
fn prepared_lose_no_update() {
    let small = new();
    small.put(&[1], 0);
    let add = |small: &Small, level: Isolation, name: u8, commits: bool| {
        let once = || {
            let mut txn = small.db.begin_with(at(level)).expect("begin");
            change(&mut txn, &small.table, 1, |n| n + 1)?;
            let prepared = small.db.prepare(txn, &[name])?;
            match commits {
                true => drop(prepared.commit().expect("nothing is in its way")),
                false => prepared.rollback().expect("nothing is in its way"),
            }
            Ok(commits)
        };
        matches!(unless_conflict(once()), Some(true))
    };
    let added = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    explore(|| {
        let levels = [
            (Isolation::ReadCommitted, true),
            (Isolation::Snapshot, true),
            (Isolation::ReadCommitted, false),
        ];
        let others = [0, 1, 2].map(|n: usize| {
            let added = std::sync::Arc::clone(&added);
            small.spawn(move |small| {
                let was = add(&small, levels[n].0, n as u8, levels[n].1);
                added.fetch_add(u64::from(was), std::sync::atomic::Ordering::Relaxed);
            })
        });
        join(others);
    });
    let expected = added.load(std::sync::atomic::Ordering::Relaxed);
    let txn = small.db.begin_read().expect("begin");
    let row = txn.get(&small.table, &[1u64.into()]).expect("a look-up").expect("a row");
    assert_eq!(row.get::<u64>(1).expect("n"), expected);
    drop(txn);
    small.db.close().expect("nothing runs");
}

fn definition() -> TableDef {
    let def = TableDef::new("values").column("id", Type::U64).column("value", Type::U64);
    def.primary_key(["id"])
}

#[derive(Clone, Copy, PartialEq)]
enum Change {
    Index,
    /// There is a row with the key that is to be unique.
    Unique,
    Drop,
}

/// A definition changes before a transaction is prepared that has changed rows of its
/// table, or not at all before it has ended. What is prepared commits, and an index
/// has its rows, and no two with a key that is to be unique.
fn prepare_against(change: Change) {
    let small = new();
    let table = small.db.create_table(definition()).expect("create");
    small.db.run(|txn| txn.insert(&table, &[2u64.into(), 7u64.into()])).expect("a commit");
    explore(|| {
        let writer = {
            let table: Table = table.clone();
            small.spawn(move |small| {
                let once = || {
                    let mut txn = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
                    txn.insert(&table, &[1u64.into(), 7u64.into()])?;
                    prepare_and_commit(&small, txn, b"w")
                };
                match once() {
                    Err(Error::TableDropped(_)) if change == Change::Drop => {}
                    Err(Error::DuplicateKey { .. }) if change == Change::Unique => {}
                    other => drop(unless_conflict(other)),
                }
            })
        };
        let index = match change {
            Change::Unique => IndexDef::unique("by_value", ["value"]),
            Change::Index | Change::Drop => IndexDef::new("by_value", ["value"]),
        };
        let changed = match change {
            Change::Drop => small.db.drop_table("values"),
            Change::Index | Change::Unique => small.db.create_index(&table, index).map(drop),
        };
        match changed {
            Ok(()) | Err(Error::PreparedChanges { .. }) => {}
            Err(Error::DuplicateKey { .. }) if change == Change::Unique => {}
            Err(error) => panic!("{error}"),
        }
        join([writer]);
    });
    if let Ok(index) = table.index("by_value") {
        let txn = small.db.begin_read().expect("begin");
        let rows = txn.scan(&table, Range::all()).expect("a scan").count();
        assert_eq!(txn.scan_index(&index, Range::all()).expect("a scan").count(), rows);
        assert!(rows == 1 || change == Change::Index, "{rows} rows have one key");
    }
    small.db.close().expect("nothing runs");
}

/// Closing lets go of what waits, and of nothing that somebody has in hand; and no other
/// transaction changes the rows.
fn prepared_against_closing() {
    let small = new();
    small.put(&[1], 0);
    let mut txn = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
    put(&mut txn, &small.table, 1, 5).expect("a row");
    drop(small.db.prepare(txn, b"p").expect("it is alone"));
    let committed = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    explore(|| {
        let decider = {
            let committed = std::sync::Arc::clone(&committed);
            small.spawn(move |small| {
                if let Ok(prepared) = small.db.take_prepared(b"p") {
                    match prepared.commit() {
                        Ok(_) => committed.store(true, std::sync::atomic::Ordering::Relaxed),
                        Err(error) => assert!(matches!(error, Error::Closed), "{error}"),
                    }
                }
            })
        };
        let writer = small.spawn(move |small| {
            let Ok(mut txn) = small.db.begin_with(at(Isolation::ReadCommitted)) else { return };
            // It waits for the lock, or finds the database closed.
            let _ = put(&mut txn, &small.table, 2, 6).and_then(|()| txn.commit());
        });
        let _ = small.db.clone().close();
        join([decider, writer]);
    });
    let _ = small.db.clone().close();
    let small = small.again();
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    let n = rows.iter().find(|(key, _)| *key == 1).expect("a row").1;
    match committed.load(std::sync::atomic::Ordering::Relaxed) {
        true => assert!(n == 5 && small.db.prepared().is_empty(), "{rows:?}"),
        false => {
            assert!(n == 0, "{rows:?}");
            small.db.take_prepared(b"p").expect("it waits").commit().expect("nothing is in its way");
        }
    }
    small.db.close().expect("nothing runs");
}
