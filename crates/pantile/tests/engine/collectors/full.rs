//! T14: a full medium refuses writers, accepts deletes, and has room again.

use pantile::{Collector, Database, MediumKind, Options, Result, Table, TableDef, Type, Value};

use super::beside::collectors;
use crate::collector::filled::fill_and_make_room;
use crate::collector::rows::gc;

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

#[test]
fn a_full_medium_takes_deletes_and_has_room_again() {
    for collector in collectors() {
        let db = options(collector).open("unused").expect("open");
        let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(ROW as u32));
        let table = db.create_table(def.primary_key(["id"])).expect("create");
        fill_and_make_room(&db, &table, |id, n| put(&db, &table, id, n));
    }
}
