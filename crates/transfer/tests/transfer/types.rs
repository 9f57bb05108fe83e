//! Every type, with the values at its ends.

use pantile::{Database, Decimal, IndexDef, Range, TableDef, Type, Value};
use pantile_testkit::Random;
use pantile_transfer::Load;

use crate::home;

const TEXTS: [&str; 14] = [
    "",
    " ",
    "plain",
    "größe 表 😀",
    "\"",
    "a,b;c\td",
    "line\nline\r\nline\r",
    "\\N",
    "\\\\N",
    "\\n",
    "NULL",
    "\u{0}\u{1}\u{7f}\u{2028}",
    "'\"\"'",
    "null",
];

/// Values that are easily written wrongly.
fn extremes(ty: Type) -> Vec<Value<'static>> {
    let ints = |low: i64, high: u64| vec![Value::Int(low), Value::Int(0), Value::UInt(high)];
    let decimal = |units, scale| Value::Decimal(Decimal::new(units, scale));
    match ty {
        Type::Bool => vec![true.into(), false.into()],
        Type::I8 => ints(i8::MIN.into(), 127),
        Type::I16 => ints(i16::MIN.into(), 32_767),
        Type::I32 => ints(i32::MIN.into(), 2_147_483_647),
        Type::I64 => ints(i64::MIN, i64::MAX as u64),
        Type::U8 => ints(0, 255),
        Type::U16 => ints(0, 65_535),
        Type::U32 => ints(0, u32::MAX.into()),
        Type::U64 => ints(1, u64::MAX),
        Type::F32 => [0.0, -0.0, 0.1, f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45, 16_777_217.0, 1e30]
            .into_iter()
            .chain([f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::from_bits(0x7fc0_1234)])
            .map(Value::from)
            .collect(),
        Type::F64 => [0.0, -0.0, 0.1, 1e21, 1e16, 123_456_789.123_456_79, 5e-324, f64::MAX, f64::MIN]
            .into_iter()
            .chain([f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
            .chain([
                f64::MIN_POSITIVE,
                f64::from_bits(0x7ff8_0000_0000_0abc),
                f64::from_bits(0x7ff0_0000_0000_0001),
            ])
            .map(Value::from)
            .collect(),
        Type::Decimal { precision, scale } => {
            let most = 10i128.pow(precision.into()) - 1;
            vec![decimal(most, scale), decimal(-most, scale), decimal(0, scale), decimal(-5, scale)]
        }
        Type::Timestamp => {
            let ends = [i64::MIN, i64::MAX, -62_167_219_200_000_000, -62_167_219_200_000_001];
            let moments = [253_402_300_799_999_999, 253_402_300_800_000_000, 0, -1, 951_782_400_500_000];
            ends.into_iter().chain(moments).map(Value::Timestamp).collect()
        }
        Type::FixedBytes(_) => vec![Value::Bytes(b""), Value::Bytes(b"\0\xff"), Value::Bytes(&[255; 5])],
        Type::Bytes(_) => {
            vec![Value::Bytes(b""), Value::Bytes(b"\n\0"), Value::Bytes(b"abc"), Value::Bytes(&[200; 99])]
        }
        Type::FixedString(_) => {
            TEXTS.into_iter().filter(|text| !text.ends_with('\0')).map(Value::Str).collect()
        }
        _ => TEXTS.into_iter().map(Value::Str).collect(),
    }
}

fn types() -> impl Iterator<Item = Type> {
    let sized = [
        Type::Decimal { precision: 1, scale: 1 },
        Type::Decimal { precision: 18, scale: 0 },
        Type::Decimal { precision: 38, scale: 38 },
        Type::Decimal { precision: 38, scale: 2 },
        Type::FixedBytes(5),
        Type::FixedString(40),
        Type::Bytes(100),
        Type::String(60),
    ];
    Type::PLAIN.into_iter().chain(sized)
}

#[test]
fn every_value_of_every_type_comes_back() {
    let db = home::new();
    let mut def = TableDef::new("all").column("id", Type::U32).primary_key(["id"]);
    for (n, ty) in types().enumerate() {
        def = def.column(format!("c{n}"), ty).nullable(format!("n{n}"), ty);
    }
    let all = db.create_table(def).expect("a table");
    let values: Vec<_> = types().map(extremes).collect();
    for id in 0..40u32 {
        let mut row: Vec<Value<'_>> = vec![id.into()];
        for values in &values {
            let value = values[id as usize % values.len()];
            row.extend([value, if id % 3 == 0 { Value::Null } else { value }]);
        }
        db.run(|txn| txn.insert(&all, &row)).expect("a row");
    }
    assert_eq!(home::rows(&db, "all").len(), 40);
    home::is_the_same_after_all_ways(&db);
}

/// Keys are what they were, NaNs with other bits among them.
#[test]
fn every_type_can_be_the_key() {
    let db = home::new();
    for (n, ty) in types().enumerate() {
        let def = TableDef::new(format!("key {n}/{}", ty)).column("key", ty).primary_key(["key"]);
        let table = db.create_table(def).expect("a table");
        for value in extremes(ty) {
            db.run(|txn| txn.upsert(&table, &[value])).expect("a row");
        }
    }
    home::is_the_same_after_all_ways(&db);
}

#[test]
fn empty_tables_several_tables_and_indexes() {
    let db = home::pets();
    let def = TableDef::new("a \"b\",\n../c")
        .column("größe \"1\",\n", Type::I64)
        .column("n", Type::U8)
        .nullable("s", Type::String(20))
        .primary_key(["n", "größe \"1\",\n"])
        .index(IndexDef::new("by s", ["s", "n"]))
        .index(IndexDef::unique("u", ["größe \"1\",\n"]));
    let odd = db.create_table(def).expect("a table");
    db.create_table(TableDef::new("empty").column("id", Type::U64).primary_key(["id"])).expect("a table");
    db.create_table(TableDef::new("schema").column("s", Type::String(9)).primary_key(["s"]))
        .expect("a table");
    for id in 0..100i64 {
        let s = format!("s{}", id % 7);
        db.run(|txn| txn.insert(&odd, &[id.into(), 3u8.into(), s.as_str().into()])).expect("a row");
    }
    home::is_the_same_after_all_ways(&db);
    let copy = home::new();
    Load::new(&copy).dump(home::dump(&db).as_bytes()).expect("a dump");
    let odd = copy.table("a \"b\",\n../c").expect("the table");
    let index = odd.index("by s").expect("the index");
    let txn = copy.begin_read().expect("a transaction");
    assert_eq!(txn.scan_index(&index, Range::prefix(&["s3".into()])).expect("a scan").count(), 14);
    let twice = copy.run(|txn| txn.insert(&odd, &[5i64.into(), 4u8.into(), Value::Null]));
    assert!(matches!(twice, Err(pantile::Error::DuplicateKey { index, .. }) if index == "u"));
}

#[test]
fn long_values_come_back() {
    let db = home::new();
    let def = TableDef::new("films")
        .column("id", Type::U8)
        .nullable("film", Type::Bytes(1 << 30))
        .nullable("text", Type::String(1 << 30))
        .primary_key(["id"]);
    let films = db.create_table(def).expect("a table");
    let mut random = Random::new(1, 0);
    for (id, len) in [(0u8, 0usize), (1, 100), (2, 70_000), (3, 3_000_001), (4, 9 << 20)] {
        let film: Vec<u8> = (0..len).map(|_| random.word() as u8).collect();
        let text: String = (0..len / 2).map(|n| if n % 5 == 0 { '"' } else { 'ö' }).collect();
        let row: [Value<'_>; 3] = [id.into(), film.as_slice().into(), text.as_str().into()];
        db.run(|txn| txn.insert(&films, &row)).expect("a row");
    }
    home::is_the_same_after_all_ways(&db);
}

/// Tables with random columns, keys, indexes and rows.
#[test]
fn random_tables_come_back() {
    for seed in 0..12 {
        let mut random = Random::new(seed, 0);
        let db = home::new();
        for table in 0..random.between(1, 4) {
            fill(&db, &format!("t{table}"), &mut random);
        }
        home::is_the_same_after_all_ways(&db);
    }
}

fn fill(db: &Database, name: &str, random: &mut Random) {
    let all: Vec<Type> = types().collect();
    let mut def = TableDef::new(name).column("id", Type::U64).primary_key(["id"]);
    for n in 0..random.between(0, 9) {
        let (column, ty) = (format!("c{n}"), *random.pick(&all));
        def =
            if random.one_in(2) { def.nullable(column.clone(), ty) } else { def.column(column.clone(), ty) };
        if random.one_in(4) {
            def = def.index(IndexDef::new(format!("by {column}"), [column, "id".into()]));
        }
    }
    let columns = def.columns.clone();
    let table = db.create_table(def).expect("a table");
    let values: Vec<_> = columns.iter().map(|column| extremes(column.ty)).collect();
    let mut txn = db.begin().expect("a transaction");
    for _ in 0..random.between(0, 3000) {
        let mut row = vec![Value::UInt(random.word())];
        for (column, values) in columns.iter().zip(&values).skip(1) {
            let is_null = column.nullable && random.one_in(4);
            row.push(if is_null { Value::Null } else { *random.pick(values) });
        }
        txn.insert(&table, &row).expect("a row");
    }
    txn.commit().expect("a commit");
}
