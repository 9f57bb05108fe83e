//! Live insight: who holds garbage, ending transactions, limits.

mod ending;
mod figures;
mod holders;
mod limits;
mod page;
mod parts;

use pantile::{Database, MediumKind, Options, Table, TableDef, Type, Value};

/// Rows of about 200 bytes in memory.
pub fn open(options: Options) -> (Database, Table) {
    let db = options.medium(MediumKind::Dram).block_slots(16).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(400));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    (db, table)
}

/// Writes rows `0..rows` anew, `times` times.
pub fn rewrite(db: &Database, table: &Table, rows: u64, times: u64) {
    for n in 0..rows * times {
        let row = [Value::UInt(n % rows), Value::Bytes(&[7; 200])];
        db.run(|txn| txn.upsert(table, &row)).expect("upsert");
    }
}
