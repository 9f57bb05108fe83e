//! Work that is owed in proportion to what has been done is done in proportion to it.

use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::{Database, IndexDef, Options, Table, TableDef, Transaction, Type, Value};
use pantile_media::{DramMedium, MapOptions};

const EPOCH: Duration = Duration::from_millis(40);

fn open() -> (Database, SimulatedTime) {
    let time = SimulatedTime::default();
    let medium = DramMedium::small(MapOptions::default()).expect("memory");
    let options = Options::new().on_medium(medium).simulated_time(time.clone());
    (options.open("unused").expect("open"), time)
}

fn table(db: &Database, indexes: &[&str]) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    let def = ["a", "b", "c"].into_iter().fold(def, |def, name| def.column(name, Type::U64));
    let def = def.column("data", Type::Bytes(200));
    let def = indexes.iter().fold(def, |def, name| def.index(IndexDef::new(*name, [*name])));
    db.create_table(def).expect("create")
}

fn put(txn: &mut Transaction, table: &Table, id: u64, number: u64) -> pantile::Result<()> {
    let number = number.into();
    txn.upsert(table, &[id.into(), number, number, number, Value::Bytes(&[7; 90])]).map(|_| ())
}

/// Commits that change many rows with several indexes pay for the entries that they leave
/// behind, also if no worker helps. So what waits is what a few epochs bring, however long
/// that goes on.
#[test]
fn index_entries_are_cleaned_as_fast_as_they_come() {
    const ROWS: u64 = 100;
    let (db, time) = open();
    let table = table(&db, &["a", "b", "c"]);
    let pause = Duration::from_millis(1);
    let in_an_epoch = 3 * ROWS * (EPOCH.as_millis() / pause.as_millis()) as u64;
    let (mut most, mut memory) = (0, [0; 2]);
    for round in 0..600 {
        db.run(|txn| (0..ROWS).try_for_each(|id| put(txn, &table, id, round * ROWS + id))).expect("a commit");
        time.advance(pause);
        most = most.max(db.stats().stale_entries);
        memory[round as usize / 300] = db.stats().dram_bytes.max(memory[round as usize / 300]);
    }
    assert!(most <= 4 * in_an_epoch, "{most} entries wait, {in_an_epoch} come in an epoch");
    assert!(memory[1] <= memory[0] * 3 / 2, "{memory:?} bytes of memory");
}

/// The ids of deleted rows serve again, also if another thread cleans after them.
#[test]
fn ids_of_deleted_rows_come_back() {
    const ROWS: u64 = 2000;
    let (db, time) = open();
    let table = table(&db, &[]);
    // The thread that writes has another slot than the one that cleans.
    let reader = db.begin_read().expect("begin");
    db.run(|txn| put(txn, &table, 0, 0)).expect("a commit");
    drop(reader);
    let mut bytes = Vec::new();
    for _ in 0..20 {
        db.run(|txn| (0..ROWS).try_for_each(|id| put(txn, &table, id, id))).expect("a commit");
        db.run(|txn| (0..ROWS).try_for_each(|id| txn.delete(&table, &[id.into()]).map(|_| ())))
            .expect("a commit");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..8 {
                    time.advance(EPOCH);
                    db.upkeep();
                }
            });
        });
        bytes.push(db.stats().anchor_bytes);
    }
    assert!(bytes[19] <= 3 * bytes[0], "{bytes:?}");
}

/// Closing gives back what a table took that was dropped just before, whenever the
/// collector has looked last.
#[test]
fn closing_gives_back_what_a_dropped_table_took() {
    const MB: u64 = 1 << 20;
    for wait in [Duration::ZERO, EPOCH / 2, EPOCH * 2] {
        let (db, time) = open();
        let table = table(&db, &["a"]);
        for first in (0..200_000).step_by(10_000) {
            db.run(|txn| (first..first + 10_000).try_for_each(|id| put(txn, &table, id, id)))
                .expect("a commit");
            time.advance(EPOCH);
            db.upkeep();
        }
        let medium = medium_of(&db);
        assert!(medium.len() > 20 * MB);
        db.drop_table("t").expect("drop");
        time.advance(wait);
        if !wait.is_zero() {
            db.upkeep();
        }
        drop(table);
        db.close().expect("close");
        assert!(medium.len() <= MB, "{} bytes, closed {wait:?} after the drop", medium.len());
    }
}

/// A transaction that begins right after a large change keeps nothing of what the change has superseded,
/// also if both are within one epoch.
#[test]
fn a_change_just_before_a_transaction_is_not_kept_for_it() {
    const ROWS: u64 = 20_000;
    let (db, time) = open();
    let table = table(&db, &[]);
    let pass = |epochs: u32| {
        (0..epochs).for_each(|_| {
            time.advance(EPOCH);
            db.upkeep();
        });
    };
    let put_all = |number| db.run(|txn| (0..ROWS).try_for_each(|id| put(txn, &table, id, number)));
    put_all(1).expect("a commit");
    pass(4);
    put_all(2).expect("a commit");
    let reader = db.begin_read().expect("begin");
    pass(60);
    let (stats, held) = (db.stats(), db.transactions()[0].held_bytes);
    assert!(stats.obsolete_bytes < stats.live_bytes / 4, "{stats:#?}, {held} of them held");
    drop(reader);
}
