//! Space is handed back to the system.

use pantile::{Database, Options, Range, Table, TableDef, Type, Value};
use pantile_testkit::{ScratchDir, SpaceGauge};

use super::rows::{collect_until, gc, prepare};

const CHUNK: u64 = 2 << 20;

fn options() -> Options {
    Options::new().durability(pantile::Durability::None).gc(gc()).streams(1)
}

fn table(db: &Database, name: &str) -> Table {
    let def = TableDef::new(name).column("id", Type::U64).column("data", Type::Bytes(60_000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn fill(db: &Database, table: &Table, ids: std::ops::Range<u64>) {
    for id in ids {
        let data = vec![id as u8 | 1; 30_000];
        db.run(|txn| txn.insert(table, &[id.into(), Value::Bytes(&data)])).expect("insert");
    }
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| {
        let row = row.expect("row");
        let id = row.get::<u64>(0).expect("id");
        assert!(row.get::<&[u8]>(1).expect("data").iter().all(|&b| b == id as u8 | 1));
        id
    })
    .collect()
}

/// Fills a table, empties it in one way or the other, and examines the file.
fn hand_back(empty: impl Fn(&Database, Table)) {
    let place = ScratchDir::new();
    let path = place.path();
    let db = options().open(path).expect("open");
    prepare(&db);
    let kept = table(&db, "kept");
    fill(&db, &kept, 0..20);
    let filled = table(&db, "filled");
    fill(&db, &filled, 0..2000);
    let (gauge, data) = (SpaceGauge::of(place.path()), path.join("pantile.data"));
    let (taken, on_disk) = (db.stats().medium_bytes, gauge.chunks(&data));
    assert!(taken > 28 * CHUNK && on_disk.is_none_or(|chunks| chunks > 28), "{taken} {on_disk:?}");
    empty(&db, filled);
    collect_until(&db, "space is handed back", |s| {
        s.medium_bytes < taken / 2 && gauge.chunks(&data) <= on_disk.map(|chunks| chunks / 2)
    });
    assert_eq!(ids(&db, &kept), (0..20).collect::<Vec<_>>());
    // The space can be taken again.
    let again = table(&db, "again");
    fill(&db, &again, 0..800);
    assert_eq!(ids(&db, &again), (0..800).collect::<Vec<_>>());
    // Killed or closed, the database is found in the same state.
    db.close().expect("close");
    drop((kept, again));
    let db = options().open(path).expect("open");
    assert_eq!(ids(&db, &db.table("kept").expect("table")), (0..20).collect::<Vec<_>>());
    let again = db.table("again").expect("table");
    assert_eq!(ids(&db, &again), (0..800).collect::<Vec<_>>());
    fill(&db, &again, 800..1200);
    assert_eq!(ids(&db, &again), (0..1200).collect::<Vec<_>>());
}

#[test]
fn space_of_a_dropped_table_is_handed_back() {
    hand_back(|db, filled| {
        drop(filled);
        db.drop_table("filled").expect("drop");
    });
}

#[test]
fn space_of_deleted_rows_is_handed_back() {
    hand_back(|db, filled| {
        for first in (0..2000u64).step_by(20) {
            db.run(|txn| {
                (first..first + 20).try_for_each(|id| txn.delete(&filled, &[id.into()]).map(|_| ()))
            })
            .expect("delete");
        }
    });
}
