//! Values out of line that are not what was written.

use super::*;
use crate::{Database, MediumKind, Options, OwnedValue, Range, TableDef, Type};

fn with_a_long_text() -> (Database, Table) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U8).column("s", Type::String(200_000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    let long = "a".repeat(100_000);
    db.run(|txn| txn.insert(&table, &[1u8.into(), long.as_str().into()])).expect("insert");
    (db, table)
}

/// Forges a byte of the value out of line.
fn forge(db: &Database, table: &Table, byte: u8) {
    let pieces = Table::of(db.core.tables.pieces_of(table.inner.id));
    let mut txn = db.begin().expect("begin");
    let (key, mut piece) = {
        let row = txn.scan(&pieces, Range::all()).expect("scan").next().expect("a piece").expect("read");
        let key: [OwnedValue; 2] = [row.get(0).expect("id"), row.get(1).expect("piece")];
        (key, row.get::<Vec<u8>>(2).expect("bytes"))
    };
    piece[17] = byte;
    let key = [key[0].as_value(), key[1].as_value()];
    assert!(txn.update(&pieces, &key, &[(2, Value::Bytes(&piece))]).expect("update"));
    txn.commit().expect("commit");
}

#[test]
fn a_long_text_that_is_not_utf8_is_damaged() {
    let (db, table) = with_a_long_text();
    forge(&db, &table, b'b');
    let text = |db: &Database| {
        let txn = db.begin_read()?;
        txn.get(&table, &[1u8.into()])?.expect("a row").get::<String>("s")
    };
    assert_eq!(text(&db).expect("text").as_bytes()[17], b'b');
    forge(&db, &table, 0xff);
    let error = text(&db).expect_err("it is no text");
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("column \"s\" of table \"t\""), "{error}");
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&table, &[1u8.into()]).expect("get").expect("a row");
    assert!(matches!(row.to_values(), Err(Error::Damaged { .. })));
}
