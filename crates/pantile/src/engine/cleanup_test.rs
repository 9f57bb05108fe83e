//! Index entries of tuples with many versions, which are cleaned together.

use std::collections::BTreeMap;
use std::time::Duration;

use pantile_base::TupleId;
use pantile_cc::SimulatedTime;
use pantile_media::unshared::Unshared;
use pantile_testkit::{Random, SeedNote, seeds};

use super::*;
use crate::{Database, IndexDef, Isolation, MediumKind, Options, Range, Table, TableDef};
use crate::{Transaction, TransactionOptions, Type};

fn open(time: &SimulatedTime) -> (Database, Table) {
    let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    let db = options.open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("size", Type::U64).column("name", Type::U64);
    let def = def.primary_key(["id"]).index(IndexDef::new("by_size", ["size"]));
    let table = db.create_table(def.index(IndexDef::unique("by_name", ["name"]))).expect("create");
    (db, table)
}

fn put(db: &Database, table: &Table, id: u64, size: u64, name: u64) {
    db.run(|txn| txn.upsert(table, &[id.into(), size.into(), name.into()])).expect("a commit");
}

/// Lets the cleaner do everything that is due.
fn clean(db: &Database, time: &SimulatedTime) {
    let def = TableDef::new("pulse").column("n", Type::U64).column("value", Type::U64).primary_key(["n"]);
    let pulse = db.create_table_if_absent(def).expect("create");
    for n in 0..4000u64 {
        time.advance(Duration::from_millis(50));
        db.run(|txn| txn.upsert(&pulse, &[0u64.into(), n.into()])).expect("a commit");
    }
}

/// A reader may keep a version below many that nobody needs. What cleaning an entry
/// costs does not grow with them, and their entries go all the same.
#[test]
fn a_row_with_many_versions_is_cleaned_beside_a_reader() {
    const UPDATES: u64 = 20_000;
    for isolation in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let time = SimulatedTime::default();
        let (db, table) = open(&time);
        put(&db, &table, 1, 0, 0);
        let reader = db.begin_with(TransactionOptions::new().isolation(isolation)).expect("begin");
        LOOKED_AT.set(0);
        for n in 1..=UPDATES {
            time.advance(Duration::from_millis(1));
            put(&db, &table, 1, n, n % 2);
        }
        let most = (MOST_VERSIONS + 1 + 3 * crate::engine::stale::VERSIONS_EACH) as u64 * 2 * UPDATES;
        assert!(LOOKED_AT.get() as u64 <= most, "{} versions were looked at", LOOKED_AT.get());
        clean(&db, &time);
        let by_size = table.index("by_size").expect("an index");
        if isolation == Isolation::Snapshot {
            assert!(by_size.inner.tree().len() <= 4, "{} entries", by_size.inner.tree().len());
            let old = reader.get_by_index(&by_size, &[0u64.into()]).expect("get");
            assert!(old.is_some());
        }
        drop(reader);
        clean(&db, &time);
        assert_eq!(db.stats().stale_entries, 0);
        assert_eq!(by_size.inner.tree().len(), 1);
    }
}

/// The version rots while the entries of its tuple wait for each other. Nothing is known of its
/// secondary keys then, but the primary one.
#[test]
fn the_primary_entry_of_a_damaged_tombstone_goes() {
    let time = SimulatedTime::default();
    let (db, table) = open(&time);
    put(&db, &table, 1, 0, 0);
    assert!(db.run(|txn| txn.delete(&table, &[1u64.into()])).expect("a commit"));
    let all = DueBefore { fresh: Timestamp::MAX, late: Timestamp::MAX, ids: Timestamp::ZERO };
    for shard in 0..SHARDS {
        while let Some(Task::Entry(entry)) = db.core.stale.pop(shard, all) {
            db.core.stale.push_together(entry);
        }
    }
    assert_eq!(db.stats().stale_entries, 3);
    let tuple = table.inner.tree().get(&[1], None).expect("an entry");
    let tombstone = Anchor::load(table.inner.anchor(TupleId(tuple))).newest();
    // The last byte of the header is of the checksum.
    let (medium, at) = (db.core.store.medium(), tombstone.offset() + pantile_store::HEADER_BYTES as u64 - 1);
    let mut byte = [0];
    medium.get(at, &mut byte).expect("read");
    medium.put(at, &[!byte[0]]).expect("write");
    assert!(db.core.is_damaged(tombstone));
    clean(&db, &time);
    assert_eq!((table.inner.tree().len(), db.stats().stale_entries), (0, 0));
    let by_size = table.index("by_size").expect("an index");
    assert_eq!(by_size.inner.tree().len(), 1);
}

type Rows = BTreeMap<u64, (u64, u64)>;

/// What a transaction sees, by the primary key and by the indexes, is what was there
/// when it began.
fn check(txn: &Transaction, table: &Table, rows: &Rows) {
    let by = |name: &str| {
        let index = table.index(name).expect("an index");
        let found = txn.scan_index(&index, Range::all()).expect("scan").map(|row| {
            let row = row.expect("a row");
            let number = |n: usize| row.get::<u64>(n).expect("a number");
            (number(0), (number(1), number(2)))
        });
        found.collect::<Rows>()
    };
    assert_eq!((&by("by_size"), &by("by_name")), (rows, rows));
    for (id, row) in rows {
        let found = txn.get(table, &[(*id).into()]).expect("get").expect("a row");
        assert_eq!((found.get::<u64>(1).expect("size"), found.get::<u64>(2).expect("name")), *row);
    }
}

/// Rows with many versions come, go and change their keys beside transactions of all
/// ages.
#[test]
fn every_transaction_finds_its_entries() {
    for seed in seeds(1, 20) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let time = SimulatedTime::default();
        let (db, table) = open(&time);
        let (mut rows, mut open): (Rows, Vec<(Transaction, Rows)>) = (Rows::new(), Vec::new());
        for _ in 0..1500 {
            time.advance(Duration::from_millis(random.below(30)));
            let id = random.below(3);
            let (size, name) = (random.below(4), 10 * id + random.below(4));
            match random.below(20) {
                0 => {
                    let begun = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot));
                    open.push((begun.expect("begin"), rows.clone()));
                }
                1 if !open.is_empty() => drop(open.swap_remove(random.index(open.len()))),
                2 => time.advance(Duration::from_secs(2)),
                3 | 4 => {
                    let had = db.run(|txn| txn.delete(&table, &[id.into()])).expect("a commit");
                    assert_eq!(had, rows.remove(&id).is_some());
                }
                5 => {
                    let mut txn = db.begin().expect("begin");
                    txn.upsert(&table, &[id.into(), size.into(), name.into()]).expect("upsert");
                    txn.rollback();
                }
                _ => {
                    put(&db, &table, id, size, name);
                    rows.insert(id, (size, name));
                }
            }
            if let Some((txn, rows)) = open.get(random.index(open.len().max(1))) {
                check(txn, &table, rows);
            }
        }
        open.iter().for_each(|(txn, rows)| check(txn, &table, rows));
        drop(open);
        clean(&db, &time);
        let by_size = table.index("by_size").expect("an index");
        assert_eq!(db.stats().stale_entries, 0);
        assert_eq!(by_size.inner.tree().len(), rows.len());
    }
}

/// The same beside threads that write while the cleaner looks.
#[test]
fn snapshots_find_their_entries_beside_writers() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("size", Type::U64).column("name", Type::U64);
    let def = def.primary_key(["id"]).index(IndexDef::new("by_size", ["size"]));
    let table = db.create_table(def.index(IndexDef::unique("by_name", ["name"]))).expect("create");
    let old = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot)).expect("begin");
    std::thread::scope(|scope| {
        let (db, table) = (&db, &table);
        for writer in 0..2 {
            scope.spawn(move || {
                let mut random = Random::new(1, writer);
                for _ in 0..8000 {
                    let id = random.below(3);
                    let (size, name) = (random.below(4), 10 * id + random.below(4));
                    db.run(|txn| match random.one_in(20) {
                        true => txn.delete(table, &[id.into()]).map(drop),
                        false => txn.upsert(table, &[id.into(), size.into(), name.into()]).map(drop),
                    })
                    .expect("a commit");
                }
            });
        }
        scope.spawn(move || {
            for _ in 0..2000 {
                let txn = db.begin_with(TransactionOptions::new().isolation(Isolation::Snapshot));
                let txn = txn.expect("begin");
                let number = |row: &crate::Row<'_>, n: usize| row.get::<u64>(n).expect("a number");
                let rows = txn.scan(table, Range::all()).expect("scan").map(|row| {
                    let row = row.expect("a row");
                    (number(&row, 0), (number(&row, 1), number(&row, 2)))
                });
                let rows = rows.collect();
                std::thread::yield_now();
                check(&txn, table, &rows);
            }
        });
    });
    check(&old, &table, &Rows::new());
}
