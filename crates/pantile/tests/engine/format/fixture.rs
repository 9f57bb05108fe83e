//! The database that is stored as an example of the format: how it is made, and
//! which rows must be read from it.

use pantile::{Collector, Database, Decimal, IndexDef, Options, Range, Result, TableDef, Type, Value};

/// Bytes of the value that is stored out of line.
pub const LONG: usize = 70_000;

pub fn long() -> &'static [u8] {
    &[b'x'; LONG]
}

fn everything() -> TableDef {
    TableDef::new("everything")
        .column("id", Type::U64)
        .nullable("bool", Type::Bool)
        .nullable("i8", Type::I8)
        .nullable("i16", Type::I16)
        .nullable("i32", Type::I32)
        .nullable("i64", Type::I64)
        .nullable("u8", Type::U8)
        .nullable("u16", Type::U16)
        .nullable("u32", Type::U32)
        .nullable("u64", Type::U64)
        .nullable("f32", Type::F32)
        .nullable("f64", Type::F64)
        .nullable("decimal", Type::Decimal { precision: 38, scale: 4 })
        .nullable("timestamp", Type::Timestamp)
        .nullable("fixed bytes", Type::FixedBytes(5))
        .nullable("fixed string", Type::FixedString(9))
        .nullable("bytes", Type::Bytes(100_000))
        .nullable("string", Type::String(60))
        .primary_key(["id"])
        .index(IndexDef::unique("by_string", ["string"]))
        .index(IndexDef::new("by_numbers", ["i16", "f64", "decimal"]))
}

fn counters() -> TableDef {
    let def = TableDef::new("counters").column("name", Type::String(20)).column("n", Type::I64);
    def.primary_key(["name"]).index(IndexDef::new("by_n", ["n"]))
}

/// The rows of "everything".
pub fn rows() -> Vec<Vec<Value<'static>>> {
    use Value::{Bool, Bytes, Float, Int, Null, Str, Timestamp, UInt};
    let decimal = |units| Value::Decimal(Decimal::new(units, 4));
    let mut low = vec![UInt(1), Bool(false), Int(-128), Int(-32_768), Int(-2_147_483_648), Int(i64::MIN)];
    low.extend([UInt(0), UInt(0), UInt(0), UInt(0), Float(-0.5), Float(f64::MIN), decimal(-1)]);
    low.extend([Timestamp(i64::MIN), Bytes(&[0; 5]), Str(""), Bytes(&[]), Str("")]);
    let mut high = vec![UInt(u64::MAX), Bool(true), Int(127), Int(32_767), Int(2_147_483_647), Int(i64::MAX)];
    high.extend([UInt(255), UInt(65_535), UInt(4_294_967_295), UInt(u64::MAX), Float(0.25), Float(f64::MAX)]);
    high.extend([decimal(10i128.pow(38) - 1), Timestamp(i64::MAX), Bytes(&[255; 5]), Str("grüße!")]);
    high.extend([Bytes(&[7; 300]), Str("the last of all strings, with ümlauts and 数字")]);
    let mut null = vec![UInt(2)];
    null.resize(18, Null);
    let mut out_of_line = vec![UInt(3)];
    out_of_line.resize(16, Null);
    out_of_line.extend([Bytes(long()), Str("out of line")]);
    vec![low, null, out_of_line, high]
}

/// The rows of "counters".
pub fn counts() -> [(&'static str, i64); 3] {
    [("changed", 40), ("deleted and back", 2), ("steady", 1)]
}

/// Makes the database. It is opened three times, so that blocks are resumed.
pub fn make(path: &std::path::Path) -> Result<()> {
    // Which lines are written must not depend on when the collector works.
    let open = || Options::new().streams(1).collector(Collector::NONE).worker(false).open(path);
    let db = open()?;
    let (all, counters) = (db.create_table(everything())?, db.create_table(counters())?);
    let dropped = db.create_table(TableDef::new("dropped").column("id", Type::U8).primary_key(["id"]))?;
    db.run(|txn| {
        for row in rows().iter().take(3) {
            txn.insert(&all, row)?;
        }
        txn.insert(&dropped, &[1u8.into()])?;
        txn.insert(&counters, &["changed".into(), 0i64.into()])?;
        txn.insert(&counters, &["deleted and back".into(), 1i64.into()])?;
        txn.insert(&counters, &["deleted".into(), 1i64.into()])
    })?;
    db.close()?;
    drop((all, counters, dropped));

    let db = open()?;
    let (all, counters) = (db.table("everything")?, db.table("counters")?);
    for n in 1..=40i64 {
        db.run(|txn| txn.update(&counters, &["changed".into()], &[(1, n.into())]))?;
    }
    db.run(|txn| {
        // Moves every key of the secondary indexes; it is moved back below.
        txn.update(&all, &[1u8.into()], &[(17, "for a while".into()), (3, 5u8.into())])?;
        txn.delete(&counters, &["deleted and back".into()])?;
        txn.delete(&counters, &["deleted".into()])
    })?;
    db.drop_table("dropped")?;
    db.close()?;
    drop((all, counters));

    let db = open()?;
    let (all, counters) = (db.table("everything")?, db.table("counters")?);
    db.run(|txn| {
        txn.upsert(&all, &rows()[0])?;
        txn.insert(&all, &rows()[3])?;
        txn.insert(&counters, &["deleted and back".into(), 2i64.into()])?;
        txn.insert(&counters, &["steady".into(), 1i64.into()])
    })?;
    db.close()
}

/// Checks that exactly the expected rows are there, by every index; otherwise
/// returns what is wrong.
pub fn compare(db: &Database) -> Result<Option<&'static str>> {
    if db.tables() != ["counters", "everything"] {
        return Ok(Some("the tables"));
    }
    let (all, counters) = (db.table("everything")?, db.table("counters")?);
    if all.definition() != everything() {
        return Ok(Some("the definition"));
    }
    let txn = db.begin_read()?;
    let expected = rows();
    let value = |row: &pantile::Row<'_>, n: usize, wanted: &Value<'_>| {
        row.get::<pantile::OwnedValue>(n).map(|value| value.as_value() == *wanted)
    };
    let mut found = 0;
    for row in txn.scan(&all, Range::all())? {
        let (row, wanted) = (row?, expected.get(found));
        let Some(wanted) = wanted else { return Ok(Some("too many rows")) };
        for (n, wanted) in wanted.iter().enumerate() {
            if !value(&row, n, wanted)? {
                return Ok(Some("a value"));
            }
        }
        found += 1;
    }
    let ids = |index: &str| -> Result<Vec<u64>> {
        let index = all.index(index)?;
        txn.scan_index(&index, Range::all())?.map(|row| row?.get(0)).collect()
    };
    if found != expected.len()
        || ids("by_string")? != [2, 1, 3, u64::MAX]
        || ids("by_numbers")? != [2, 3, 1, u64::MAX]
    {
        return Ok(Some("the rows of an index"));
    }
    let counts_of = |rows: pantile::Scan<'_>| -> Result<Vec<(String, i64)>> {
        rows.map(|row| row.and_then(|row| Ok((row.get::<&str>(0)?.to_owned(), row.get(1)?)))).collect()
    };
    let mut wanted = counts().map(|(name, n)| (name.to_owned(), n)).to_vec();
    if counts_of(txn.scan(&counters, Range::all())?)? != wanted {
        return Ok(Some("the counters"));
    }
    wanted.sort_by_key(|(_, n)| *n);
    let index = counters.index("by_n")?;
    let by_n = counts_of(txn.scan_index(&index, Range::all())?)?;
    Ok((by_n != wanted).then_some("the order of the counters"))
}
