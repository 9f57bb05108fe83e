//! T14: reclaiming needs room to make room.

use pantile::{Database, Error, GcOptions, MediumKind, Options, Result, Table, TableDef, Type, Value};

use super::filled::{fill_and_make_room, ids};
use super::rows::gc;
use pantile_testkit::Patience;

const CHUNK: u64 = 2 << 20;

fn limited(chunks: u64) -> Options {
    let gc = GcOptions { theta: 0.9, queue_share: 0.15, pacing: pantile::Pacing::Adaptive, ..gc() };
    Options::new().medium(MediumKind::Dram).gc(gc).streams(1).max_bytes(chunks * CHUNK)
}

/// Large enough for a reserve that deletes may also use.
fn prepared(chunks: u64) -> Database {
    limited(chunks).open("unused").expect("open")
}

fn table(db: &Database, name: &str) -> Table {
    let def = TableDef::new(name).column("id", Type::U64).column("data", Type::Bytes(4000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn put(db: &Database, table: &Table, id: u64, n: u64) -> Result<()> {
    let data = vec![n as u8; 1000];
    db.run(|txn| txn.upsert(table, &[id.into(), Value::Bytes(&data)]).map(|_| ()))
}

/// Writes four times the capacity of the medium to rows that take a third of
/// it.
#[test]
fn t14_updates_never_fill_a_medium_with_room() {
    for (chunks, theta) in [(12, 0.9), (16, 0.5), (24, 1.0)] {
        let options = limited(chunks).gc(GcOptions { theta, ..gc() });
        let db = options.open("unused").expect("open");
        let table = table(&db, "t");
        let rows = chunks * CHUNK / 3 / 1100;
        let mut random = pantile_testkit::Random::new(14, 0);
        for n in 0..rows {
            put(&db, &table, n, 0).unwrap_or_else(|e| panic!("row {n} of {rows}: {e}"));
        }
        let writes = 4 * chunks * CHUNK / 1100;
        for n in 0..writes {
            put(&db, &table, random.below(rows), n)
                .unwrap_or_else(|e| panic!("update {n} of {writes}, theta {theta}: {e}\n{:#?}", db.stats()));
        }
        assert_eq!(ids(&db, &table), (0..rows).collect::<Vec<_>>());
        assert!(db.stats().medium_bytes <= chunks * CHUNK);
    }
}

/// Writers are refused when the data itself fills the medium.
#[test]
fn t14_a_full_medium_refuses_writers_and_takes_deletes() {
    let db = prepared(24);
    let table = table(&db, "t");
    let end = fill_and_make_room(&db, &table, |id, n| put(&db, &table, id, n));
    assert!(end > 24 * CHUNK / 1100 / 2, "only {end} rows fit");
}

/// A transaction on its own is refused once. By the time it is tried again, the
/// collector has done its work. `Database::run` retries by itself.
#[test]
fn t14_run_finds_room_that_the_collector_makes() {
    let lazy = GcOptions { theta: 0.9, queue_share: 1.0, bypass: false, ..gc() };
    let db = limited(12).gc(lazy).open("unused").expect("open");
    let table = table(&db, "t");
    let rows = 3000;
    let mut written = 0;
    for refused in 1..=5 {
        // Nothing is reclaimed that is newer than a running reader, so updates
        // fill the medium, however fast the collector is.
        let reader = db.begin_read().expect("begin");
        loop {
            let data = vec![written as u8; 1000];
            let attempt = db.begin().and_then(|mut txn| {
                txn.upsert(&table, &[(written % rows).into(), Value::Bytes(&data)])?;
                txn.commit().map(|_| ())
            });
            match attempt {
                Ok(()) => written += 1,
                Err(Error::StorageFull { .. }) => break,
                Err(error) => panic!("{error}"),
            }
        }
        drop(reader);
        put(&db, &table, written % rows, written)
            .unwrap_or_else(|e| panic!("update {written}, refused {refused} times: {e}\n{:#?}", db.stats()));
        written += 1;
    }
    assert!(written > 20_000, "only {written} updates: {:#?}", db.stats());
    assert_eq!(ids(&db, &table), (0..rows).collect::<Vec<_>>());
}

/// The reserve lets the collector move survivors when no writer has room.
#[test]
fn t14_survivors_move_on_a_full_medium() {
    let db = prepared(24);
    let table = table(&db, "t");
    let full = (0..).find_map(|id| put(&db, &table, id, 0).err().map(|_| id));
    let end = full.expect("full at last");
    // Every block keeps one row of twenty.
    for id in (0..end).filter(|id| id % 20 != 0) {
        db.run(|txn| txn.delete(&table, &[id.into()])).unwrap_or_else(|e| panic!("delete {id}: {e}"));
    }
    let patience = Patience::new();
    while db.stats().collector.survivors_relocated < end / 40 {
        patience.check(|| format!("{:#?}", db.stats()));
        db.run(|txn| txn.get_for_update(&table, &[0u64.into()]).map(|_| ())).expect("a commit");
    }
    assert_eq!(ids(&db, &table), (0..end).filter(|id| id % 20 == 0).collect::<Vec<_>>());
    // A table with rows of another size now has room.
    let other = TableDef::new("other").column("id", Type::U64).primary_key(["id"]);
    let other = loop {
        match db.create_table(other.clone()) {
            Ok(table) => break table,
            Err(error) => {
                patience.check(|| format!("{error}: {:#?}", db.stats()));
                db.run(|txn| txn.get_for_update(&table, &[0u64.into()]).map(|_| ())).expect("a commit");
            }
        }
    };
    db.run(|txn| txn.insert(&other, &[1u64.into()])).expect("room");
}
