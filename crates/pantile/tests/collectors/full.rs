//! T14: a full medium refuses writers, takes deletes, and has room again.

use std::time::{Duration, Instant};

use pantile::{Collector, Database, Error, MediumKind, Options, Range, Result, Table, TableDef, Type, Value};

use crate::beside::collectors;
use crate::rows::gc;

const CHUNKS: u64 = 24;
const ROW: usize = 4_000;

fn options(collector: Collector) -> Options {
    let options = Options::new().medium(MediumKind::Dram).gc(gc()).streams(1);
    options.collector(collector).max_bytes(CHUNKS * (2 << 20))
}

fn put(db: &Database, table: &Table, id: u64, n: u64) -> Result<()> {
    let data = vec![n as u8; ROW];
    db.run(|txn| txn.upsert(table, &[id.into(), Value::Bytes(&data)]).map(|_| ()))
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

#[test]
fn a_full_medium_takes_deletes_and_has_room_again() {
    for collector in collectors() {
        let db = options(collector).open("unused").expect("open");
        let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(ROW as u32));
        let table = db.create_table(def.primary_key(["id"])).expect("create");
        let full = (0..).find_map(|id| put(&db, &table, id, 0).err().map(|error| (id, error)));
        let (end, error) = full.expect("full at last");
        assert!(matches!(error, Error::StorageFull { .. }), "{error}");
        assert_eq!(ids(&db, &table), (0..end).collect::<Vec<_>>(), "readers go on");
        for id in (0..end).filter(|id| id % 4 != 0) {
            let gone = db.run(|txn| txn.delete(&table, &[id.into()]));
            assert!(gone.unwrap_or_else(|e| panic!("delete {id} of {end}: {e}\n{:#?}", db.stats())));
        }
        let kept: Vec<u64> = (0..end).filter(|id| id % 4 == 0).collect();
        assert_eq!(ids(&db, &table), kept);
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut written = 0;
        while written < end / 2 {
            match put(&db, &table, 1_000_000 + written, 1) {
                Ok(()) => written += 1,
                Err(Error::StorageFull { .. }) => {
                    assert!(Instant::now() < deadline, "{written} of {}: {:#?}", end / 2, db.stats());
                }
                Err(error) => panic!("{error}"),
            }
        }
        let all: Vec<u64> = kept.into_iter().chain((0..written).map(|n| 1_000_000 + n)).collect();
        assert_eq!(ids(&db, &table), all);
    }
}
