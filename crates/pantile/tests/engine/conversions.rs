//! Columns by name and number, and what they are read and written as.

use std::borrow::Cow;
use std::ops::Bound;

use pantile::{
    Database, Decimal, Error, IndexDef, MediumKind, Options, OwnedValue, Range, Row, Table, TableDef, Type,
    Value,
};

use pantile_testkit::fails;

fn database() -> (Database, Table) {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = TableDef::new("t")
        .column("id", Type::U32)
        .column("n", Type::I64)
        .column("f", Type::F64)
        .column("d", Type::Decimal { precision: 6, scale: 2 })
        .nullable("text", Type::String(200_000))
        .nullable("bytes", Type::Bytes(200_000))
        .primary_key(["id"])
        .index(IndexDef::new("by_d", ["d"]));
    (db.clone(), db.create_table(table).expect("create"))
}

fn with_row<T>(db: &Database, table: &Table, id: u32, read: impl Fn(Row<'_>) -> T) -> T {
    let txn = db.begin_read().expect("begin");
    read(txn.get(table, &[id.into()]).expect("get").expect("a row"))
}

#[test]
fn numbers_convert_by_range() {
    let (db, table) = database();
    let row = [Value::Int(300), Value::UInt(7), Value::Int(-5), Value::UInt(12), Value::Null, Value::Null];
    db.run(|txn| txn.insert(&table, &row)).expect("insert");
    with_row(&db, &table, 300, |row| {
        assert_eq!((row.get::<u64>("id").ok(), row.get::<i16>("id").ok()), (Some(300), Some(300)));
        assert_eq!((row.get::<u8>("n").ok(), row.get::<f64>("n").ok()), (Some(7), Some(7.0)));
        assert_eq!((row.get::<f32>("f").ok(), row.get::<f64>("f").ok()), (Some(-5.0), Some(-5.0)));
        assert_eq!(row.get::<Decimal>("d").expect("it"), Decimal::new(1200, 2));
        assert_eq!(row.get::<Decimal>("n").expect("it"), Decimal::new(7, 0));
        assert_eq!(row.get::<Option<u128_of_a_kind>>("n").expect("it").map(|n| n.0), Some(7));
        fails!(row.get::<u8>("id"), Error::ReadOutOfRange { .. }, "\"id\"", "300", "u8 takes 0 to 255");
        fails!(row.get::<Option<i8>>("id"), Error::ReadOutOfRange { .. }, "-128 to 127");
        fails!(row.get::<i64>("f"), Error::WrongType { .. }, "f64", "i64");
        fails!(row.get::<i64>("d"), Error::WrongType { .. }, "decimal", "i64");
        fails!(row.get::<pantile::Micros>("n"), Error::WrongType { .. }, "Micros");
        fails!(row.get::<bool>("n"), Error::WrongType { .. }, "bool");
    });
}

/// A type of the caller.
#[allow(non_camel_case_types)]
struct u128_of_a_kind(u128);

impl pantile::FromValue<'_> for u128_of_a_kind {
    fn from_value(value: Value<'_>) -> Result<Self, pantile::Misfit> {
        u64::from_value(value).map(|n| Self(n.into()))
    }
}

#[test]
fn floats_round_to_the_nearest_and_integers_do_not() {
    let (db, table) = database();
    let row = |id: u32, n: i64, f: f64| [id.into(), n.into(), f.into(), 0.into(), Value::Null, Value::Null];
    db.run(|txn| {
        txn.insert(&table, &row(1, (1 << 53) + 1, 0.1))?;
        txn.insert(&table, &row(2, 1 << 60, 1e300))?;
        txn.insert(&table, &row(3, 0, f64::NAN))
    })
    .expect("insert");
    with_row(&db, &table, 1, |row| {
        assert_eq!(row.get::<f32>("f").expect("rounded"), 0.1);
        fails!(row.get::<f64>("n"), Error::ReadOutOfRange { .. }, "9007199254740993", "exactly");
    });
    with_row(&db, &table, 2, |row| {
        fails!(row.get::<f32>("f"), Error::ReadOutOfRange { .. }, "1e300", "3.4028235");
        assert_eq!(row.get::<f32>("n").expect("exact"), 2f32.powi(60));
    });
    with_row(&db, &table, 3, |row| assert!(row.get::<f32>("f").expect("NaN").is_nan()));
}

#[test]
fn keys_and_ranges_convert_like_values() {
    let (db, table) = database();
    let by_d = table.index("by_d").expect("the index");
    db.run(|txn| {
        (0..10u32).try_for_each(|id| {
            let d = Decimal::new(i128::from(id) * 50, 2);
            txn.insert(&table, &[id.into(), 0.into(), 0.into(), d.into(), Value::Null, Value::Null])
        })
    })
    .expect("insert");
    let txn = db.begin_read().expect("begin");
    for key in [Value::Int(7), Value::UInt(7)] {
        assert!(txn.get(&table, &[key]).expect("get").is_some());
    }
    let (two, three) = ([Value::Int(2)], [Value::UInt(3)]);
    let found = txn.scan_index(&by_d, Range::all().from(Bound::Included(&two)).to(Bound::Excluded(&three)));
    let found: Vec<u32> = found.expect("scan").map(|row| row.expect("row").get(0).expect("id")).collect();
    assert_eq!(found, [4, 5]);
    fails!(txn.get(&table, &[Value::Int(-1)]), Error::OutOfRange { .. }, "-1", "\"id\"", "0 to 4294967295");
    fails!(txn.count_index(&by_d, Range::prefix(&[Value::Int(10_000)])), Error::OutOfRange { .. }, "\"d\"");
}

#[test]
fn columns_are_changed_by_name_and_number() {
    let (db, table) = database();
    let row = [1.into(), 1.into(), 1.into(), 1.into(), Value::Null, Value::Null];
    db.run(|txn| txn.insert(&table, &row)).expect("insert");
    let name = String::from("f");
    db.run(|txn| {
        txn.update(&table, &[1.into()], &[("n", 2.into()), ("text", "two".into())])?;
        txn.update(&table, &[1.into()], &[(&name, 2.into())])?;
        txn.update(&table, &[1.into()], &[(3, 2.into())])?;
        txn.modify(&table, &[1.into()], |row| {
            let both = row.get::<i64>("n")? + row.get::<i64>(1)?;
            row.set("n", both.into())?;
            row.set(5, Value::Bytes(b"x")).map(|()| true)
        })
    })
    .expect("updates");
    let expected = [
        Value::UInt(1),
        Value::Int(4),
        Value::Float(2.0),
        Decimal::new(200, 2).into(),
        "two".into(),
        Value::Bytes(b"x"),
    ];
    with_row(&db, &table, 1, |row| assert_eq!(row.values().expect("in line"), expected));
    let mut txn = db.begin().expect("begin");
    let none = txn.update(&table, &[1.into()], &[("n", 9.into()), ("none", 0.into())]);
    fails!(none, Error::UnknownColumn { .. }, "\"none\"");
    fails!(txn.modify(&table, &[1.into()], |row| row.get("x")), Error::UnknownColumn { .. }, "\"x\"");
    txn.commit().expect("commit");
    with_row(&db, &table, 1, |row| assert_eq!(row.get::<i64>("n").expect("unchanged"), 4));
}

/// By names, too, the columns that leave room come first.
#[test]
fn named_changes_that_fit_together_are_made_in_any_order() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let mut def = TableDef::new("wide").column("id", Type::U8);
    for n in 0..44 {
        def = def.column(format!("c{n}"), Type::Bytes(1536));
    }
    let wide = db.create_table(def.primary_key(["id"])).expect("create");
    let full = vec![7; 1536];
    let mut row = vec![Value::Bytes(&full); 45];
    (row[0], row[1], row[2]) = (1.into(), Value::Bytes(&[]), Value::Bytes(&[]));
    let changes = [("c0", Value::Bytes(&full)), ("c5", Value::Bytes(&[]))];
    db.run(|txn| {
        txn.insert(&wide, &row)?;
        txn.update(&wide, &[1.into()], &changes)
    })
    .expect("it fits in the end");
}

#[test]
fn long_values_are_read_by_what_owns_them() {
    let (db, table) = database();
    let long = "ä".repeat(50_000);
    let row = [1.into(), 1.into(), 1.into(), 1.into(), long.as_str().into(), long.as_bytes().into()];
    let short = [2.into(), 1.into(), 1.into(), 1.into(), "kurz".into(), b"kurz"[..].into()];
    db.run(|txn| txn.insert_many(&table, [row, short])).expect("insert");
    with_row(&db, &table, 1, |row| {
        assert_eq!(row.get::<String>("text").expect("owned"), long);
        assert_eq!(row.get::<Option<String>>("text").expect("owned").as_deref(), Some(&*long));
        assert_eq!(row.get::<Vec<u8>>("bytes").expect("owned"), long.as_bytes());
        assert_eq!(row.get::<Vec<u8>>("text").expect("owned"), long.as_bytes());
        assert_eq!(row.get::<OwnedValue>("text").expect("owned"), long.as_str().into());
        assert!(matches!(row.get::<Cow<'_, str>>("text"), Ok(Cow::Owned(text)) if text == long));
        assert!(matches!(row.get::<Cow<'_, [u8]>>("bytes"), Ok(Cow::Owned(_))));
        fails!(row.get::<&str>("text"), Error::OutOfLine { .. }, "\"text\"", "Cow");
        fails!(row.get::<Value<'_>>("bytes"), Error::OutOfLine { .. }, "\"bytes\"");
        fails!(row.get::<String>("bytes"), Error::WrongType { .. }, "bytes read as String");
        assert_eq!(row.to_values().expect("owned").len(), 6);
    });
    with_row(&db, &table, 2, |row| {
        assert!(matches!(row.get::<Cow<'_, str>>("text"), Ok(Cow::Borrowed("kurz"))));
        assert!(matches!(row.get::<Cow<'_, [u8]>>("bytes"), Ok(Cow::Borrowed(b"kurz"))));
        assert_eq!(row.get::<[u8; 4]>("bytes").expect("4 bytes"), *b"kurz");
        fails!(row.get::<[u8; 5]>("bytes"), Error::ReadOutOfRange { .. }, "6b75727a", "5 bytes");
        assert_eq!(row.get::<&[u8]>("text").expect("in line"), b"kurz");
        fails!(row.get::<&str>("bytes"), Error::WrongType { .. }, "str");
    });
    db.run(|txn| {
        txn.modify(&table, &[1.into()], |row| {
            assert_eq!(row.get::<String>("text")?, long);
            row.set("text", "short".into())?;
            assert_eq!(row.get::<&str>("text")?, "short");
            Ok(true)
        })
    })
    .expect("modify");
}

/// Every integer at the ends of a type, in every column that takes it, read as every
/// type: it is there if and only if the type holds it.
#[test]
fn integers_are_read_wherever_they_fit() {
    const ENDS: [i128; 17] = [
        -(1 << 63),
        -(1 << 31) - 1,
        -(1 << 31),
        -(1 << 15) - 1,
        -129,
        -128,
        -1,
        0,
        127,
        128,
        255,
        256,
        1 << 16,
        1 << 31,
        1 << 32,
        (1 << 63) - 1,
        (1 << 64) - 1,
    ];
    let integers = Type::PLAIN
        .into_iter()
        .filter(|ty| !matches!(ty, Type::Bool | Type::F32 | Type::F64 | Type::Timestamp));
    let (mut fit, mut read) = (0, 0);
    for ty in integers {
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
        let table = TableDef::new("t").column("n", ty).primary_key(["n"]);
        let table = db.create_table(table).expect("create");
        for n in ENDS {
            let value = match i64::try_from(n) {
                Ok(n) => Value::Int(n),
                Err(_) => Value::UInt(u64::try_from(n).expect("no larger one")),
            };
            if db.run(|txn| txn.insert(&table, &[value])).is_err() {
                continue;
            }
            fit += 1;
            let txn = db.begin_read().expect("begin");
            let row = txn.get(&table, &[value]).expect("get").expect("a row");
            macro_rules! check {
                ($($target:ty)*) => {
                    $(
                        let expected = <$target>::try_from(n).ok();
                        let found = row.get::<$target>("n");
                        assert_eq!(found.as_ref().ok().copied(), expected, "{n} of {ty} as {}", stringify!($target));
                        assert!(matches!(found, Ok(_) | Err(Error::ReadOutOfRange { .. })));
                        read += usize::from(expected.is_some());
                    )*
                };
            }
            check!(i8 i16 i32 i64 u8 u16 u32 u64);
        }
    }
    assert!(fit > 40 && read > 150, "{fit} fit, {read} were read");
}
