//! The definitions and values that structs become.

use pantile::{
    ColumnDef, Database, Decimal, Field, FromValue, IndexDef, MediumKind, Micros, Misfit, Options, Range,
    Record, TableDef, Type, Value,
};

#[derive(Record, Clone, PartialEq, Debug, Default)]
#[record(table = "all", primary_key(small, name), index(by_both(text, flag)), unique(once(amount)))]
struct All {
    flag: bool,
    small: i8,
    n16: i16,
    n32: i32,
    n64: i64,
    u8: u8,
    #[record(index)]
    u16: u16,
    #[record(unique)]
    u32: u32,
    u64: u64,
    f32: f32,
    f64: f64,
    #[record(decimal(12, 2))]
    amount: Decimal,
    at: Micros,
    #[record(max = 40)]
    name: String,
    #[record(fixed = 8)]
    code: String,
    #[record(max = 90)]
    text: Option<String>,
    long: String,
    #[record(fixed = 3, name = "colour")]
    rgb: Vec<u8>,
    #[record(default = 7u64)]
    added: u64,
    blob: Option<Vec<u8>>,
    hash: [u8; 16],
    cents: Cents,
    r#type: u8,
    #[record(skip)]
    cached: Option<std::time::Duration>,
}

/// A type of the caller.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Cents(i64);

impl FromValue<'_> for Cents {
    fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
        i64::from_value(value).map(Cents)
    }
}

impl Field for Cents {
    const TYPE: Type = Type::I64;
    type Lent<'v> = i64;
    fn lend(&self) -> i64 {
        self.0
    }
}

fn row() -> All {
    All {
        flag: true,
        small: i8::MIN,
        n16: i16::MAX,
        n32: -3,
        n64: i64::MIN,
        u8: 5,
        u16: 6,
        u32: 7,
        u64: u64::MAX,
        f32: 0.1,
        f64: -0.5,
        amount: Decimal::new(-1_999, 2),
        at: Micros(1_700_000_000_000_000),
        name: "größe".into(),
        code: "ab".into(),
        text: None,
        long: "x".repeat(100_000),
        rgb: vec![1, 2, 3],
        added: 8,
        blob: Some(vec![9; 70_000]),
        hash: [4; 16],
        cents: Cents(-250),
        r#type: 3,
        cached: None,
    }
}

#[test]
fn the_definition_is_what_the_attributes_say() {
    let expected = TableDef::new("all")
        .column("flag", Type::Bool)
        .column("small", Type::I8)
        .column("n16", Type::I16)
        .column("n32", Type::I32)
        .column("n64", Type::I64)
        .column("u8", Type::U8)
        .column("u16", Type::U16)
        .column("u32", Type::U32)
        .column("u64", Type::U64)
        .column("f32", Type::F32)
        .column("f64", Type::F64)
        .column("amount", Type::Decimal { precision: 12, scale: 2 })
        .column("at", Type::Timestamp)
        .column("name", Type::String(40))
        .column("code", Type::FixedString(8))
        .nullable("text", Type::String(90))
        .column("long", Type::String(u32::MAX))
        .column("colour", Type::FixedBytes(3))
        .with(ColumnDef::new("added", Type::U64).default(7u64))
        .nullable("blob", Type::Bytes(u32::MAX))
        .column("hash", Type::FixedBytes(16))
        .column("cents", Type::I64)
        .column("type", Type::U8)
        .primary_key(["small", "name"])
        .index(IndexDef::new("by_both", ["text", "flag"]))
        .index(IndexDef::unique("once", ["amount"]))
        .index(IndexDef::new("by_u16", ["u16"]))
        .index(IndexDef::unique("by_u32", ["u32"]));
    assert_eq!(All::table_def(), expected);
    let names: Vec<_> = expected.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(All::COLUMNS, names);
}

#[test]
fn what_is_written_is_read() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = db.open_typed::<All>().expect("the table");
    db.run(|txn| table.insert(txn, &row())).expect("insert");
    let txn = db.begin_read().expect("begin");
    let key = row();
    assert_eq!(table.get(&txn, key.key()).expect("get"), Some(row()));
    assert_eq!(table.get(&txn, (i8::MIN, "größe")).expect("get"), Some(row()));
    assert_eq!(table.get(&txn, (i8::MIN, "none")).expect("get"), None);
    // What is skipped is not stored.
    let cached = All { cached: Some(std::time::Duration::ZERO), ..row() };
    assert_eq!(cached.values(), row().values());
}

#[test]
fn a_struct_of_defaults_is_a_row() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = db.open_typed::<All>().expect("the table");
    db.run(|txn| table.insert(txn, &All::default())).expect("insert");
    let read = table.get(&db.begin_read().expect("begin"), (0, "")).expect("get").expect("a row");
    // What is fixed has its length.
    assert_eq!(read, All { rgb: vec![0; 3], ..All::default() });
    assert_eq!((read.amount.to_string(), read.at), ("0.00".into(), Micros(0)));
}

#[derive(Record, PartialEq, Debug)]
struct HttpRequest {
    #[record(primary_key)]
    id: u32,
}

#[test]
fn a_table_is_named_after_its_struct() {
    assert_eq!(
        HttpRequest::table_def(),
        TableDef::new("http_request").column("id", Type::U32).primary_key(["id"])
    );
    assert_eq!(HttpRequest { id: 5 }.key(), 5);
}

/// Some columns of [`All`], in another order and as other types.
#[derive(Record, PartialEq, Debug)]
struct Part {
    #[record(primary_key, name = "u32")]
    number: u64,
    small: i64,
    #[record(max = 90)]
    text: Option<String>,
}

#[test]
fn any_row_is_read_as_a_struct_by_names() {
    let db: Database = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = db.open_typed::<All>().expect("the table");
    db.run(|txn| table.insert(txn, &row())).expect("insert");
    let txn = db.begin_read().expect("begin");
    let found = txn.scan(table.table(), Range::all()).expect("scan").next().expect("a row").expect("it");
    assert_eq!(found.to::<Part>().expect("a part"), Part { number: 7, small: -128, text: None });
    assert_eq!(found.to::<All>().expect("all"), row());
    let error = found.to::<HttpRequest>().expect_err("it has no id");
    assert_eq!(error.to_string(), "table \"all\" has no column \"id\"; nothing was changed");
}
