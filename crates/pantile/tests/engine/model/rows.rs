//! The tables of the model test and the random rows in them.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;

use super::tape::Decisions;

use pantile::{Decimal, Error, IndexDef, Row, TableDef, Type, Value};

/// An owned value that is ordered as keys are: NULL first.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Val {
    Null,
    Bool(bool),
    Int(i64),
    UInt(u64),
    /// A float, by its place in the total order.
    Float(u64),
    /// Hundredths.
    Decimal(i128),
    Str(String),
    Bytes(Vec<u8>),
    Time(i64),
}

impl std::fmt::Debug for Val {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Val::Bytes(v) if v.len() > 20 => write!(f, "<{} bytes {:02x}>", v.len(), v[0]),
            Val::Str(v) if v.len() > 40 => write!(f, "<{} characters>", v.len()),
            other => write!(f, "{:?}", other.value()),
        }
    }
}

pub type Key = Vec<Val>;
pub type RowVal = Arc<Vec<Val>>;

const SCALE: u8 = 2;

fn place_of(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn float_at(place: u64) -> f64 {
    f64::from_bits(if place >> 63 == 1 { place & !(1 << 63) } else { !place })
}

impl Val {
    pub fn value(&self) -> Value<'_> {
        match self {
            Val::Null => Value::Null,
            Val::Bool(v) => Value::Bool(*v),
            Val::Int(v) => Value::Int(*v),
            Val::UInt(v) => Value::UInt(*v),
            Val::Float(place) => Value::Float(float_at(*place)),
            Val::Decimal(units) => Value::Decimal(Decimal::new(*units, SCALE)),
            Val::Str(v) => Value::Str(v),
            Val::Bytes(v) => Value::Bytes(v),
            Val::Time(v) => Value::Timestamp(*v),
        }
    }

    fn of(value: Value<'_>) -> Self {
        match value {
            Value::Null => Val::Null,
            Value::Bool(v) => Val::Bool(v),
            Value::Int(v) => Val::Int(v),
            Value::UInt(v) => Val::UInt(v),
            Value::Float(v) => Val::Float(place_of(v)),
            Value::Decimal(d) => Val::Decimal(d.rescale(SCALE).expect("two digits").units),
            Value::Str(v) => Val::Str(v.to_owned()),
            Value::Bytes(v) => Val::Bytes(v.to_vec()),
            Value::Timestamp(v) => Val::Time(v),
            other => panic!("no column of the model holds {other:?}"),
        }
    }
}

pub fn values(of: &[Val]) -> Vec<Value<'_>> {
    of.iter().map(Val::value).collect()
}

/// An index of the model: its columns and whether it is unique.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub name: &'static str,
    pub columns: &'static [usize],
    pub unique: bool,
}

/// A table of the model.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    pub name: &'static str,
    pub key: &'static [usize],
    pub indexes: &'static [Shape],
    columns: usize,
}

/// The index that is created and dropped while transactions run.
pub const EXTRA: Shape = Shape { name: "extra", columns: &[4, 2], unique: false };

pub const LAYOUTS: [Layout; 3] = [
    Layout {
        name: "narrow",
        key: &[0, 1],
        indexes: &[
            Shape { name: "by_number", columns: &[2], unique: false },
            Shape { name: "by_name", columns: &[3], unique: true },
        ],
        columns: 5,
    },
    Layout {
        name: "wide",
        key: &[0, 1, 2],
        indexes: &[
            Shape { name: "by_float", columns: &[3, 5], unique: false },
            Shape { name: "by_time", columns: &[5, 6], unique: true },
        ],
        columns: 7,
    },
    Layout {
        name: "large",
        key: &[0],
        indexes: &[Shape { name: "by_count", columns: &[3], unique: false }],
        columns: 4,
    },
];

/// The table with long rows.
pub const LARGE: usize = 2;

pub fn definitions() -> [TableDef; 3] {
    let narrow = TableDef::new("narrow")
        .column("a", Type::U32)
        .column("b", Type::U16)
        .column("number", Type::I64)
        .nullable("name", Type::String(60))
        .nullable("tag", Type::U8)
        .primary_key(["a", "b"])
        .index(IndexDef::new("by_number", ["number"]))
        .index(IndexDef::unique("by_name", ["name"]));
    let wide = TableDef::new("wide")
        .column("s", Type::String(20))
        .column("n", Type::I64)
        .column("f4", Type::FixedBytes(4))
        .column("float", Type::F64)
        .nullable("price", Type::Decimal { precision: 12, scale: SCALE })
        .column("time", Type::Timestamp)
        .nullable("flag", Type::Bool)
        .primary_key(["s", "n", "f4"])
        .index(IndexDef::new("by_float", ["float", "time"]))
        .index(IndexDef::unique("by_time", ["time", "flag"]));
    let large = TableDef::new("large")
        .column("id", Type::U8)
        .column("body", Type::Bytes(300_000))
        .nullable("text", Type::String(5_000))
        .column("count", Type::I32)
        .primary_key(["id"])
        .index(IndexDef::new("by_count", ["count"]));
    [narrow, wide, large]
}

impl Layout {
    pub fn columns(&self) -> std::ops::Range<usize> {
        0..self.columns
    }

    pub fn key_of(&self, row: &[Val]) -> Key {
        pick(row, self.key)
    }

    /// A random value for a column; there are only a few, so that keys collide.
    pub fn random(&self, column: usize, rng: &mut Decisions) -> Val {
        match (self.name, column) {
            ("narrow", 0) => Val::UInt(*rng.pick(&[0, 1, 2, 7, u64::from(u32::MAX)])),
            ("narrow", 1) => Val::UInt(*rng.pick(&[0, 1, 2, 255, 256, 65535])),
            ("narrow", 2) => Val::Int(*rng.pick(&[i64::MIN, -1, 0, 1, 5, i64::MAX])),
            ("narrow", 3) if rng.percent(30) => Val::Null,
            ("narrow", 3) => Val::Str(short(rng, 12)),
            ("narrow", _) => rng.percent(70).then(|| rng.below(4)).map_or(Val::Null, Val::UInt),
            ("wide", 0) => Val::Str((*rng.pick(&["", "a", "a\0", "ab", "b\u{ff}", "bb"])).to_owned()),
            ("wide", 1) => Val::Int(*rng.pick(&[-5, 0, 5])),
            ("wide", 2) => Val::Bytes(rng.pick(&[*b"aaaa", *b"\0\0\0\0", *b"\xff\xff\xff\xff"]).to_vec()),
            ("wide", 3) => Val::Float(place_of(*rng.pick(&[-1.5, -0.0, 0.0, 2.25, f64::INFINITY]))),
            ("wide", 4) if rng.percent(30) => Val::Null,
            ("wide", 4) => Val::Decimal(i128::from(rng.below(2_000_000)) - 1_000_000),
            ("wide", 5) => Val::Time(rng.below(14) as i64 - 7),
            ("wide", _) if rng.percent(20) => Val::Null,
            ("wide", _) => Val::Bool(rng.percent(50)),
            (_, 0) => Val::UInt(rng.below(5)),
            (_, 1) => {
                // Either surely in line or surely out of line.
                let len = *rng.pick(&[0, 10, 2_000, 45_000, 70_000, 120_000, 180_001, 300_000]);
                Val::Bytes(vec![rng.below(256) as u8; len])
            }
            (_, 2) if rng.percent(30) => Val::Null,
            (_, 2) => Val::Str("x".repeat(rng.index(5_000))),
            _ => Val::Int(rng.below(4) as i64 - 2),
        }
    }

    pub fn random_row(&self, rng: &mut Decisions) -> RowVal {
        Arc::new((0..self.columns).map(|c| self.random(c, rng)).collect())
    }

    pub fn random_key(&self, rng: &mut Decisions) -> Key {
        self.key.iter().map(|&c| self.random(c, rng)).collect()
    }

    /// The first part of a key of these columns: all of it, some of it, or
    /// nothing.
    pub fn random_prefix(&self, columns: &[usize], rng: &mut Decisions) -> Key {
        let len = if rng.percent(5) { 0 } else { 1 + rng.index(columns.len()) };
        columns[..len].iter().map(|&c| self.random(c, rng)).collect()
    }

    pub fn random_bound(&self, columns: &[usize], rng: &mut Decisions) -> Bound<Key> {
        match rng.below(3) {
            0 => Bound::Unbounded,
            1 => Bound::Included(self.random_prefix(columns, rng)),
            _ => Bound::Excluded(self.random_prefix(columns, rng)),
        }
    }

    /// The number of rows that the row takes in the hidden table of out-of-line
    /// values.
    pub fn pieces(&self, row: &[Val]) -> u64 {
        match (&row[1], self.name) {
            (Val::Bytes(body), "large") if body.len() > 60_000 => body.len().div_ceil(60_000) as u64,
            _ => 0,
        }
    }

    /// The row of the model that equals a row of the database.
    pub fn read(&self, row: &Row<'_>) -> Result<Vec<Val>, Error> {
        assert_eq!(row.len(), self.columns);
        (0..self.columns).map(|column| self.read_column(row, column)).collect()
    }

    fn read_column(&self, row: &Row<'_>, column: usize) -> Result<Val, Error> {
        if (self.name, column) != ("large", 1) {
            return row.get::<Value<'_>>(column).map(Val::of);
        }
        let body = row.get::<Cow<'_, [u8]>>(column)?;
        match row.get::<&[u8]>(column) {
            Ok(_) => assert!(matches!(body, Cow::Borrowed(_)) && body.len() <= 60_000),
            Err(Error::OutOfLine { .. }) => assert!(body.len() > 60_000),
            Err(error) => return Err(error),
        }
        Ok(Val::Bytes(body.into_owned()))
    }
}

pub fn pick(row: &[Val], columns: &[usize]) -> Key {
    columns.iter().map(|&c| row[c].clone()).collect()
}

fn short(rng: &mut Decisions, kinds: u64) -> String {
    let n = rng.below(kinds);
    // Names that share their beginnings, of several lengths.
    "name".repeat(1 + n as usize % 3) + &n.to_string()
}
