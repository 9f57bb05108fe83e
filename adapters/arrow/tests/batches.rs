//! Every type, and where batches end.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Decimal128Type, Int8Type, TimestampMicrosecondType, UInt32Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use pantile::{Database, Decimal, MediumKind, Options, Range, Table, TableDef, Type, Value};
use pantile_arrow::{Batches, data_type};

fn database() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("open")
}

fn batches(db: &Database, table: &Table, columns: Vec<usize>, rows: usize) -> Vec<RecordBatch> {
    let txn = db.begin_read().expect("begin");
    let mut cursor = txn.cursor(table, Range::all()).expect("cursor");
    let mut batches = Batches::new(table, columns).expect("types of Arrow");
    let mut all = Vec::new();
    while batches.fill(&txn, &mut cursor, rows).expect("read") > 0 {
        all.push(batches.finish().expect("a batch"));
    }
    all
}

#[test]
fn every_type() {
    let db = database();
    let def = TableDef::new("t")
        .column("id", Type::U32)
        .nullable("small", Type::I8)
        .nullable("price", Type::Decimal { precision: 20, scale: 3 })
        .nullable("at", Type::Timestamp)
        .nullable("fixed", Type::FixedBytes(3))
        .nullable("code", Type::FixedString(4))
        .nullable("data", Type::Bytes(100_000))
        .nullable("x", Type::F32)
        .primary_key(["id"]);
    let t = db.create_table(def).expect("create");
    let data = vec![7; 90_000];
    let full = [
        1u32.into(),
        Value::Int(-5),
        Value::Decimal(Decimal { units: -12_345, scale: 3 }),
        Value::Timestamp(99),
        Value::Bytes(b"ab"),
        Value::Str("xy"),
        Value::Bytes(&data),
        Value::Float(0.5),
    ];
    let mut empty = [Value::Null; 8];
    empty[0] = 2u32.into();
    db.run(|txn| txn.insert_many(&t, [full, empty])).expect("fill");
    let [batch] = &batches(&db, &t, (0..8).collect(), 10)[..] else { panic!("one batch") };
    let types: Vec<_> = batch.schema().fields().iter().map(|field| field.data_type().clone()).collect();
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    let fixed = DataType::FixedSizeBinary(3);
    let decimal = DataType::Decimal128(20, 3);
    let expected = [
        DataType::UInt32,
        DataType::Int8,
        decimal,
        utc,
        fixed,
        DataType::Utf8,
        DataType::Binary,
        DataType::Float32,
    ];
    assert_eq!(types, expected);
    assert_eq!(batch.column(0).as_primitive::<UInt32Type>().values(), &[1, 2]);
    assert_eq!(batch.column(1).as_primitive::<Int8Type>().value(0), -5);
    assert_eq!(batch.column(2).as_primitive::<Decimal128Type>().value(0), -12_345);
    assert_eq!(batch.column(3).as_primitive::<TimestampMicrosecondType>().value(0), 99);
    assert_eq!(batch.column(4).as_fixed_size_binary().value(0), b"ab\0");
    assert_eq!(batch.column(5).as_string::<i32>().value(0), "xy");
    assert_eq!(batch.column(6).as_binary::<i32>().value(0), data);
    assert!((1..8).all(|column| batch.column(column).is_null(1) && !batch.column(column).is_null(0)));
    assert_eq!(data_type(Type::String(u32::MAX)), Some(DataType::LargeUtf8));
    assert_eq!(data_type(Type::Bytes(u32::MAX)), Some(DataType::LargeBinary));
}

#[test]
fn batches_end_by_rows_and_by_bytes() {
    let db = database();
    let def = TableDef::new("t").column("id", Type::U32).column("data", Type::Bytes(30 << 20));
    let t = db.create_table(def.primary_key(["id"])).expect("create");
    let data = vec![1; 30 << 20];
    for id in 0..5u32 {
        db.run(|txn| txn.insert(&t, &[id.into(), Value::Bytes(&data)])).expect("insert");
    }
    let rows = |columns: Vec<usize>, rows: usize| -> Vec<usize> {
        batches(&db, &t, columns, rows).iter().map(RecordBatch::num_rows).collect()
    };
    assert_eq!(rows(vec![0], 2), [2, 2, 1]);
    assert_eq!(rows(vec![1], 100), [3, 2]);
    // A count needs no column.
    assert_eq!(rows(vec![], 4), [4, 1]);
}
