//! Which values a column takes, and that it gives back what it took.

use std::collections::HashSet;

use pantile::{Database, Decimal, Error, MediumKind, Micros, Options, Table, TableDef, Type, Value};

const NAN: Value<'static> = Value::Float(f64::NAN);
const LARGEST: f64 = f32::MAX as f64;

/// The values that `ty` takes, each with what is read back.
fn taken(ty: Type) -> Vec<(Value<'static>, Value<'static>)> {
    use Value::{Bool, Bytes, Float, Int, Str, UInt};
    let same = |values: &[Value<'static>]| values.iter().map(|&v| (v, v)).collect();
    let signed = |bits: u32| {
        let (min, max) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
        vec![
            (Int(min), Int(min)),
            (Int(-1), Int(-1)),
            (UInt(0), Int(0)),
            (Int(max), Int(max)),
            (UInt(max as u64), Int(max)),
        ]
    };
    let unsigned = |bits: u32| {
        let max = u64::MAX >> (64 - bits);
        let int = Int((max >> 1) as i64);
        vec![(Int(0), UInt(0)), (int, UInt(max >> 1)), (UInt(max), UInt(max))]
    };
    let decimal = |units, scale| Value::Decimal(Decimal::new(units, scale));
    match ty {
        Type::Bool => same(&[Bool(true), Bool(false)]),
        Type::I8 => signed(8),
        Type::I16 => signed(16),
        Type::I32 => signed(32),
        Type::I64 => signed(64),
        Type::U8 => unsigned(8),
        Type::U16 => unsigned(16),
        Type::U32 => unsigned(32),
        Type::U64 => unsigned(64),
        Type::F32 => {
            let rounded = |v: f64| (Float(v), Float(f64::from(v as f32)));
            let infinities = [f64::INFINITY, f64::NEG_INFINITY].map(|v| (Float(v), Float(v)));
            let exact = [LARGEST, -LARGEST, 0.0, 1.5].map(|v| (Float(v), Float(v)));
            let rounds = [0.1, 1e-300, LARGEST * (1.0 + 1e-9), f64::MIN_POSITIVE].map(rounded);
            let whole = [(Int(-(1 << 24)), Float(-16_777_216.0)), (UInt(1 << 63), Float(2f64.powi(63)))];
            [&infinities[..], &exact, &rounds, &whole, &[(NAN, NAN)]].concat()
        }
        Type::F64 => {
            let mut all: Vec<_> =
                same(&[Float(f64::MAX), Float(-1e300), Float(f64::INFINITY), Float(5e-324)]);
            all.push((NAN, NAN));
            all.push((Int(-(1 << 53)), Float(-(2f64.powi(53)))));
            all.push((UInt(1 << 63), Float(2f64.powi(63))));
            all
        }
        Type::Decimal { .. } => vec![
            (decimal(9999, 2), decimal(9999, 2)),
            (decimal(-9999, 2), decimal(-9999, 2)),
            (decimal(5, 0), decimal(500, 2)),
            (decimal(1_200, 4), Value::Decimal(Decimal::new(12, 2))),
            (Int(-99), decimal(-9900, 2)),
            (UInt(7), decimal(700, 2)),
        ],
        Type::Timestamp => same(&[Value::Timestamp(i64::MIN), Value::Timestamp(i64::MAX), Micros(-1).into()]),
        Type::FixedBytes(_) => vec![
            (Bytes(b"abcd"), Bytes(b"abcd")),
            (Bytes(b"a"), Bytes(b"a\0\0\0")),
            (Bytes(b""), Bytes(b"\0\0\0\0")),
        ],
        Type::FixedString(_) => {
            same(&[Str(""), Str("a"), Str("\0b"), Str("a\0b"), Str("abcd"), Str("\u{10ffff}")])
        }
        Type::Bytes(_) => same(&[Bytes(b""), Bytes(b"\0"), Bytes(b"a\0"), Bytes(b"\xff\0\xff\0")]),
        _ => same(&[Str(""), Str("\0"), Str("a\0"), Str("abcd"), Str("\u{10ffff}")]),
    }
}

/// The values of the right kind that `ty` refuses.
fn refused(ty: Type) -> Vec<Value<'static>> {
    use Value::{Bytes, Float, Int, Str, UInt};
    let signed = |bits: u32| {
        let (min, max) = (i64::MIN >> (64 - bits), i64::MAX >> (64 - bits));
        let beyond = [min.checked_sub(1), max.checked_add(1)];
        let wide = [UInt(max as u64 + 1), UInt(u64::MAX)];
        beyond.into_iter().flatten().map(Int).chain(wide).collect::<Vec<_>>()
    };
    let unsigned = |bits: u32| {
        let beyond = (u64::MAX >> (64 - bits)).checked_add(1);
        let negative = [Int(-1), Int(i64::MIN)];
        beyond.into_iter().map(UInt).chain(negative).collect::<Vec<_>>()
    };
    let decimal = |units, scale| Value::Decimal(Decimal::new(units, scale));
    match ty {
        Type::I8 => signed(8),
        Type::I16 => signed(16),
        Type::I32 => signed(32),
        Type::I64 => signed(64),
        Type::U8 => unsigned(8),
        Type::U16 => unsigned(16),
        Type::U32 => unsigned(32),
        Type::U64 => unsigned(64),
        Type::F32 => vec![
            Float(1e300),
            Float(-1e300),
            Float(f64::MAX),
            Float(LARGEST * (1.0 + 1e-7)),
            Int((1 << 24) + 1),
            UInt(u64::MAX),
        ],
        Type::F64 => vec![Int(i64::MAX), Int(-(1 << 53) - 1), UInt(u64::MAX)],
        Type::Decimal { .. } => vec![
            decimal(10_000, 2),
            decimal(-10_000, 2),
            decimal(100, 0),
            Int(100),
            UInt(u64::MAX),
            decimal(1, 3),
            decimal(1_230, 4),
            decimal(i128::MAX, 0),
            decimal(i128::MIN, 2),
            decimal(1, u8::MAX),
        ],
        Type::FixedBytes(_) => vec![Bytes(b"abcde")],
        Type::FixedString(_) => vec![Str("abcde"), Str("a\0"), Str("\0"), Str("\u{10ffff}a")],
        Type::Bytes(_) => vec![Bytes(b"abcde")],
        Type::String(_) => vec![Str("abcde"), Str("\u{10ffff}a")],
        _ => Vec::new(),
    }
}

const SIZED: [Type; 5] = [
    Type::Decimal { precision: 4, scale: 2 },
    Type::FixedBytes(4),
    Type::FixedString(4),
    Type::Bytes(4),
    Type::String(4),
];

/// One value of each kind.
const KINDS: [Value<'_>; 8] = [
    Value::Bool(true),
    Value::Int(1),
    Value::UInt(1),
    Value::Float(1.0),
    Value::Decimal(Decimal::new(1, 0)),
    Value::Str("a"),
    Value::Bytes(b"a"),
    Value::Timestamp(1),
];

fn kinds_of(ty: Type) -> &'static [&'static str] {
    match ty {
        Type::Bool => &["a bool"],
        Type::F32 | Type::F64 => &["a float", "a signed integer", "an unsigned integer"],
        Type::Decimal { .. } => &["a decimal", "a signed integer", "an unsigned integer"],
        Type::Timestamp => &["a timestamp"],
        Type::FixedBytes(_) | Type::Bytes(_) => &["bytes"],
        Type::FixedString(_) | Type::String(_) => &["a string"],
        _ => &["a signed integer", "an unsigned integer"],
    }
}

/// A table whose key is a column of this type, and which has another one.
fn table_of(db: &Database, ty: Type) -> Table {
    let def = TableDef::new(ty.to_string()).column("key", ty).column("other", ty).nullable("null", ty);
    db.create_table(def.primary_key(["key"])).expect("create")
}

fn is_same(a: Value<'_>, b: Value<'_>) -> bool {
    match (a, b) {
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
        // Equal numbers may have other scales.
        (Value::Decimal(a), Value::Decimal(b)) => (a.units, a.scale) == (b.units, b.scale),
        _ => a == b,
    }
}

fn assert_refused<T: std::fmt::Debug>(outcome: Result<T, Error>, column: &str, value: Value<'_>) {
    let error = outcome.expect_err("it does not fit");
    let named = match &error {
        Error::OutOfRange { column, .. }
        | Error::TooLong { column, .. }
        | Error::WrongType { column, .. } => column,
        other => panic!("{value:?}: {other}"),
    };
    assert_eq!(named, column, "{value:?}: {error}");
    if matches!(value, Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Decimal(_))
        && let Error::OutOfRange { .. } = error
    {
        assert!(error.to_string().contains(&value.to_string()), "{error}");
    }
}

#[test]
fn a_column_gives_back_what_it_took() {
    for ty in Type::PLAIN.into_iter().chain(SIZED) {
        let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
        let table = table_of(&db, ty);
        for (given, read) in taken(ty) {
            let mut txn = db.begin().expect("begin");
            txn.insert(&table, &[given, given, Value::Null])
                .unwrap_or_else(|e| panic!("{ty:?}, {given:?}: {e}"));
            assert!(txn.update(&table, &[given], &[(2, given)]).expect("update"), "{ty:?}, {given:?}");
            txn.commit().expect("commit");
            let mut txn = db.begin().expect("begin");
            for key in [given, read] {
                let row =
                    txn.get(&table, &[key]).expect("get").unwrap_or_else(|| panic!("{ty:?}: no {key:?}"));
                let values = row.values().expect("in line");
                assert!(values.iter().all(|&v| is_same(v, read)), "{ty:?}: {given:?} became {values:?}");
            }
            assert!(txn.delete(&table, &[read]).expect("delete"));
            txn.commit().expect("commit");
        }
    }
}

/// Whatever the scale that a column gives it, a decimal equals what was written.
#[test]
fn a_decimal_equals_itself_after_a_round_trip() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = table_of(&db, Type::Decimal { precision: 12, scale: 2 });
    let written: Decimal = "19.90".parse().expect("a decimal");
    db.run(|txn| txn.insert(&table, &[written.into(), written.into(), Value::Null])).expect("insert");
    let txn = db.begin_read().expect("begin");
    let row = txn.get(&table, &[written.into()]).expect("get").expect("a row");
    let read: Decimal = row.get("other").expect("a decimal");
    assert_eq!((written.to_string(), read.to_string()), ("19.9".into(), "19.90".into()));
    assert_eq!(read, written);
    assert_eq!(Value::from(read), Value::from(written));
    assert_eq!(HashSet::from([read, written]).len(), 1);
}

/// The whole part and the fraction, as digits that compare as the number does.
fn comparable(number: Decimal) -> (bool, String) {
    let text = number.to_string();
    let (sign, digits) = text.strip_prefix('-').map_or((1, text.as_str()), |digits| (-1, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let digits = format!("{whole:0>40}{part:0<255}");
    if sign > 0 || digits.bytes().all(|c| c == b'0') {
        return (true, digits);
    }
    (false, digits.bytes().map(|c| char::from(b'0' + b'9' - c)).collect())
}

#[test]
fn decimals_are_compared_by_their_values() {
    let powers = (0..39).map(|n| 10i128.pow(n));
    let units: Vec<i128> = powers
        .flat_map(|power| [power, power - 1, power.saturating_mul(5), power / 3])
        .flat_map(|units| [units, -units])
        .chain([i128::MIN, i128::MIN + 1, i128::MAX, i128::MAX - 1])
        .collect();
    let scales = [0, 1, 2, 19, 37, 38, 39, 77, 216, 254, 255];
    let numbers = units.iter().flat_map(|units| scales.map(|scale| Decimal::new(*units, scale)));
    let mut numbers: Vec<_> = numbers.map(|number| (number, comparable(number))).collect();
    // Each with the others near it, and with some of all.
    numbers.sort_by(|(_, a), (_, b)| a.cmp(b));
    for (n, (a, wanted)) in numbers.iter().enumerate() {
        let near = &numbers[n..numbers.len().min(n + 40)];
        for (b, other) in near.iter().chain(numbers.iter().step_by(23)) {
            assert_eq!(a.cmp(b), wanted.cmp(other), "{a:?} and {b:?}");
            assert_eq!(a.partial_cmp(b), Some(wanted.cmp(other)), "{a:?} and {b:?}");
            assert_eq!(a == b, wanted == other, "{a:?} and {b:?}");
        }
    }
    let hashed: HashSet<Decimal> = numbers.iter().map(|(number, _)| *number).collect();
    let distinct: HashSet<_> = numbers.iter().map(|(_, digits)| digits).collect();
    assert_eq!(hashed.len(), distinct.len());
    assert_eq!(Decimal::default(), Decimal::new(0, 7));
}

#[test]
fn a_column_refuses_what_it_cannot_give_back() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    for ty in Type::PLAIN.into_iter().chain(SIZED) {
        let table = table_of(&db, ty);
        let good = taken(ty)[0].0;
        let mut txn = db.begin().expect("begin");
        txn.insert(&table, &[good, good, Value::Null]).expect("insert");
        let kinds = KINDS.into_iter().filter(|v| !kinds_of(ty).contains(&v.kind()));
        for value in refused(ty).into_iter().chain(kinds) {
            assert_refused(txn.insert(&table, &[value, good, good]), "key", value);
            assert_refused(txn.insert(&table, &[good, value, good]), "other", value);
            assert_refused(txn.update(&table, &[good], &[(2, value)]), "null", value);
            assert_refused(txn.get(&table, &[value]), "key", value);
        }
        let row = txn.get(&table, &[good]).expect("get").expect("a row");
        assert!(row.values().expect("in line")[2] == Value::Null, "{ty:?}");
    }
}

/// The order of keys is that of the values, and distinct strings have distinct
/// keys.
#[test]
fn fixed_strings_with_zero_bytes_are_in_order() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = table_of(&db, Type::FixedString(4));
    let mut strings = ["", "a", "a\0b", "a\0\0b", "\0b", "ab", "\u{1}", "\u{10ffff}"];
    let mut txn = db.begin().expect("begin");
    for text in strings {
        txn.insert(&table, &[text.into(), text.into(), Value::Null]).expect("insert");
    }
    strings.sort_unstable();
    let found = txn.scan(&table, pantile::Range::all()).expect("scan");
    let found: Vec<String> =
        found.map(|row| row.expect("row").get::<&str>(0).expect("text").to_owned()).collect();
    assert_eq!(found, strings);
}
