//! Rows from and to structs by serde.

use std::borrow::Cow;
use std::collections::BTreeMap;

use pantile::{
    ColumnDef, Database, Decimal, Error, MediumKind, Micros, Options, OwnedValue, Table, TableDef, Type,
    Value,
};
use pantile_testkit::fails;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
enum State {
    Open,
    Paid,
}

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Number(u64);

#[derive(Serialize, Deserialize, Clone, PartialEq, Debug)]
struct Order {
    id: Number,
    #[serde(rename = "customerName")]
    customer: String,
    paid: bool,
    small: i8,
    rate: f32,
    exact: f64,
    total: Decimal,
    at: Micros,
    state: State,
    letter: char,
    note: Option<String>,
    picture: Vec<u8>,
    hash: [u8; 4],
}

fn definition() -> TableDef {
    TableDef::new("orders")
        .column("id", Type::U64)
        .column("customerName", Type::String(200_000))
        .column("paid", Type::Bool)
        .column("small", Type::I8)
        .column("rate", Type::F32)
        .column("exact", Type::F64)
        .column("total", Type::Decimal { precision: 20, scale: 3 })
        .column("at", Type::Timestamp)
        .column("state", Type::String(10))
        .column("letter", Type::FixedString(4))
        .nullable("note", Type::String(20))
        .column("picture", Type::Bytes(200_000))
        .column("hash", Type::FixedBytes(4))
        .nullable("unknown", Type::U8)
        .with(ColumnDef::new("vat", Type::U8).default(19u8))
        .primary_key(["id"])
}

fn order() -> Order {
    Order {
        id: Number(7),
        customer: "Größe".into(),
        paid: true,
        small: -128,
        rate: 0.1,
        exact: -0.1,
        total: Decimal::new(-12_345, 3),
        at: Micros(-1),
        state: State::Paid,
        letter: 'ß',
        note: None,
        picture: vec![0, 255, 7],
        hash: [1, 2, 3, 4],
    }
}

fn database() -> (Database, Table) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    (db.clone(), db.create_table(definition()).expect("create"))
}

fn store(db: &Database, table: &Table, order: &Order) {
    let values = table.serialize(order).expect("a row");
    db.run(|txn| txn.upsert(table, &OwnedValue::as_values(&values))).expect("upsert");
}

fn load<T: DeserializeOwned>(db: &Database, table: &Table) -> pantile::Result<T> {
    let txn = db.begin_read()?;
    txn.get(table, &[7u64.into()])?.expect("a row").deserialize()
}

#[test]
fn what_is_serialized_is_deserialized() {
    let (db, table) = database();
    let long = Order { customer: "a".repeat(100_000), picture: vec![5; 100_000], ..order() };
    let noted = Order { note: Some("gift".into()), state: State::Open, ..order() };
    for order in [order(), long, noted] {
        store(&db, &table, &order);
        assert_eq!(load::<Order>(&db, &table).expect("an order"), order);
    }
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&table, &[7u64.into()]).expect("get").expect("a row");
    assert_eq!(row.get::<Value<'_>>("total").expect("it"), Decimal::new(-12_345, 3).into());
    assert_eq!(row.get::<Value<'_>>("at").expect("it"), Micros(-1).into());
    assert_eq!(
        (row.get::<u8>("vat").expect("the default"), row.get::<Option<u8>>("unknown").ok()),
        (19, Some(None))
    );
}

#[test]
fn a_timestamp_is_any_integer_of_microseconds() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("at", Type::Timestamp).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    // JSON has unsigned integers wherever a number is not negative.
    for row in [
        BTreeMap::from([("id", 1), ("at", 1_700_000_000_000_000_u64)]),
        BTreeMap::from([("id", 2), ("at", 0)]),
    ] {
        let values = table.serialize(&row).expect("a row");
        db.run(|txn| txn.insert(&table, &OwnedValue::as_values(&values))).expect("insert");
        let txn = db.begin_read().expect("begin");
        let found = txn.get(&table, &[row["id"].into()]).expect("get").expect("a row");
        assert_eq!(found.deserialize::<BTreeMap<String, u64>>().expect("a map")["at"], row["at"]);
    }
    let beyond = table.serialize(&BTreeMap::from([("id", 3), ("at", u64::MAX)])).expect("a row");
    db.run(|txn| txn.insert(&table, &OwnedValue::as_values(&beyond))).expect_err("beyond the range");
}

#[test]
fn maps_are_rows_and_some_columns_are_enough() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Part<'r> {
        #[serde(borrow)]
        note: Option<Cow<'r, str>>,
        id: u16,
    }

    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).nullable("note", Type::U8).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    let row = BTreeMap::from([("id", 7u8)]);
    let values = table.serialize(&row).expect("a map is a row");
    assert_eq!(values, [OwnedValue::UInt(7), OwnedValue::Null]);
    db.run(|txn| txn.insert(&table, &OwnedValue::as_values(&values))).expect("insert");
    let all: BTreeMap<String, Option<u32>> = load(&db, &table).expect("a row is a map");
    assert_eq!(all, BTreeMap::from([("id".into(), Some(7)), ("note".into(), None)]));
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&table, &[7.into()]).expect("get").expect("a row");
    assert_eq!(row.deserialize::<Part<'_>>().expect("a part"), Part { note: None, id: 7 });
}

/// A float takes what it can hold, and rounds only floats.
#[test]
fn floats_do_not_change_numbers() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Floats {
        whole: f64,
        real: Option<f32>,
    }
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("whole", Type::I64).nullable("real", Type::F64);
    let table = db.create_table(def.primary_key(["whole"])).expect("create");
    let read = |whole: i64, real: Option<f64>| {
        db.run(|txn| txn.upsert(&table, &[whole.into(), real.into()])).expect("store");
        let txn = db.begin_read().expect("begin");
        let row = txn.get(&table, &[whole.into()]).expect("get").expect("a row");
        row.deserialize::<Floats>()
    };
    let most = 1i64 << 53;
    assert_eq!(read(most, Some(0.1)).expect("fits"), Floats { whole: 2f64.powi(53), real: Some(0.1) });
    assert_eq!(read(-5, None).expect("fits"), Floats { whole: -5.0, real: None });
    fails!(read(most + 1, None), Error::Serde { .. }, "field \"whole\"", "9007199254740993");
    fails!(read(1, Some(1e300)), Error::Serde { .. }, "field \"real\"", "f32");
}

#[test]
fn errors_name_the_field() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Narrow {
        small: u8,
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Missing {
        price: u64,
    }
    #[derive(Serialize)]
    struct Extra {
        id: u64,
        price: u64,
    }
    #[derive(Serialize)]
    struct Nested {
        id: BTreeMap<u8, u8>,
    }

    let (db, table) = database();
    store(&db, &table, &order());
    fails!(load::<Narrow>(&db, &table), Error::Serde { .. }, "field \"small\"", "-128", "u8", "\"orders\"");
    fails!(load::<Missing>(&db, &table), Error::Serde { .. }, "missing field `price`");
    fails!(load::<u64>(&db, &table), Error::Serde { .. }, "map");
    fails!(table.serialize(&Extra { id: 1, price: 2 }), Error::Serde { .. }, "field \"price\" has no column");
    fails!(
        table.serialize(&BTreeMap::from([("id", 1)])),
        Error::Serde { .. },
        "no field for column \"customerName\""
    );
    fails!(
        table.serialize(&Nested { id: BTreeMap::new() }),
        Error::Serde { .. },
        "field \"id\"",
        "structure"
    );
    fails!(table.serialize(&5), Error::Serde { .. }, "a struct or a map");
    fails!(
        table.serialize(&BTreeMap::from([("total", "x")])),
        Error::Serde { .. },
        "field \"total\"",
        "decimal"
    );
    fails!(
        table.serialize(&BTreeMap::from([("picture", [300])])),
        Error::Serde { .. },
        "\"picture\"",
        "bytes"
    );
}
