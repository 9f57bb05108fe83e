//! Table definitions as callers write them.

use std::fmt;
use std::str::FromStr;

use crate::types::error::{Error, Result};
use crate::types::owned_value::OwnedValue;
use crate::types::value::{Value, decimal, float};

/// The type of a column.
///
/// ```
/// use pantile::{TableDef, Type};
/// let goods = TableDef::new("goods")
///     .column("code", Type::FixedString(8))
///     .column("price", Type::Decimal { precision: 12, scale: 2 })
///     .nullable("picture", Type::Bytes(1 << 24))
///     .primary_key(["code"]);
/// assert_eq!(goods.columns[1].ty.to_string(), "decimal(12,2)");
/// assert_eq!("decimal(12,2)".parse::<Type>()?, goods.columns[1].ty);
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Type {
    /// A truth value, 1 byte.
    Bool,
    /// A signed integer of 1 byte.
    I8,
    /// A signed integer of 2 bytes.
    I16,
    /// A signed integer of 4 bytes.
    I32,
    /// A signed integer of 8 bytes.
    I64,
    /// An unsigned integer of 1 byte.
    U8,
    /// An unsigned integer of 2 bytes.
    U16,
    /// An unsigned integer of 4 bytes.
    U32,
    /// An unsigned integer of 8 bytes.
    U64,
    /// An IEEE 754 number of 4 bytes. Values are rounded to the nearest such number. A number
    /// beyond the largest is refused; infinities and NaN are stored. Keys are in IEEE 754 total
    /// order, -0 below 0.
    F32,
    /// An IEEE 754 number of 8 bytes. Keys are in IEEE 754 total order, -0 below 0.
    F64,
    /// A decimal number of 16 bytes. It has `precision` digits in all, at most 38, of which `scale`
    /// are after the point.
    Decimal {
        /// Digits in all.
        precision: u8,
        /// Digits after the point.
        scale: u8,
    },
    /// Microseconds since 1970-01-01 UTC, 8 bytes.
    Timestamp,
    /// Exactly this many bytes; shorter values are padded with zero bytes.
    FixedBytes(u16),
    /// A UTF-8 string stored in exactly this many bytes, padded with zero
    /// bytes. Reading removes the padding, so a string that ends with a zero
    /// byte is refused.
    FixedString(u16),
    /// Up to this many bytes. Long values may be stored out of line.
    Bytes(u32),
    /// A UTF-8 string of up to this many bytes. Long values may be stored out of line.
    String(u32),
}

impl Type {
    /// The types without a length or a number of digits.
    pub const PLAIN: [Type; 12] = [
        Type::Bool,
        Type::I8,
        Type::I16,
        Type::I32,
        Type::I64,
        Type::U8,
        Type::U16,
        Type::U32,
        Type::U64,
        Type::F32,
        Type::F64,
        Type::Timestamp,
    ];

    /// Bytes in the fixed part of a row, or `None` for types of variable length.
    pub(crate) const fn fixed_len(self) -> Option<usize> {
        Some(match self {
            Type::Bool | Type::I8 | Type::U8 => 1,
            Type::I16 | Type::U16 => 2,
            Type::I32 | Type::U32 | Type::F32 => 4,
            Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => 8,
            Type::Decimal { .. } => 16,
            Type::FixedBytes(len) | Type::FixedString(len) => len as usize,
            Type::Bytes(_) | Type::String(_) => return None,
        })
    }

    /// Most bytes of the type in a key, without the byte that marks NULL.
    pub(crate) const fn max_key_len(self) -> usize {
        match self {
            // Each byte may need an escape; two bytes end the value.
            Type::Bytes(max) | Type::String(max) => (max as usize).saturating_mul(2).saturating_add(2),
            fixed => match fixed.fixed_len() {
                Some(len) => len,
                None => 0,
            },
        }
    }
}

/// The name in messages, dumps and inspections, which [`Type::from_str`] reads.
impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Decimal { precision, scale } => write!(f, "decimal({precision},{scale})"),
            Type::FixedBytes(len) => write!(f, "fixed bytes({len})"),
            Type::FixedString(len) => write!(f, "fixed string({len})"),
            Type::Bytes(max) => write!(f, "bytes({max})"),
            Type::String(max) => write!(f, "string({max})"),
            plain => f.write_str(&format!("{plain:?}").to_lowercase()),
        }
    }
}

/// Fails with [`Error::InvalidDefinition`] if the text is not the name of a type.
impl FromStr for Type {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        named(name).ok_or_else(|| invalid(name, "there is no type of this name"))
    }
}

fn named(name: &str) -> Option<Type> {
    let Some((kind, arguments)) = name.split_once('(') else {
        return Type::PLAIN.into_iter().find(|ty| ty.to_string() == name);
    };
    let arguments = arguments.strip_suffix(')')?;
    Some(match kind {
        "decimal" => {
            let (precision, scale) = arguments.split_once(',')?;
            Type::Decimal { precision: precision.parse().ok()?, scale: scale.trim().parse().ok()? }
        }
        "fixed bytes" => Type::FixedBytes(arguments.parse().ok()?),
        "fixed string" => Type::FixedString(arguments.parse().ok()?),
        "bytes" => Type::Bytes(arguments.parse().ok()?),
        "string" => Type::String(arguments.parse().ok()?),
        _ => return None,
    })
}

/// A column of a table.
///
/// ```
/// use pantile::{ColumnDef, TableDef, Type};
/// let pets = TableDef::new("pets").column("id", Type::U32).nullable("name", Type::String(40)).primary_key(["id"]);
/// assert_eq!(pets.columns[1], ColumnDef::new("name", Type::String(40)).nullable());
/// // Defaults are the same if the column's values are.
/// let age = || ColumnDef::new("age", Type::U8);
/// assert_eq!(age().default(4i64), age().default(4u8));
/// ```
#[derive(Clone, Debug)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it takes NULL.
    pub nullable: bool,
    /// Its value in rows that were written without it: before it was added, or
    /// through a handle that does not know it. NULL if there is none.
    pub default: OwnedValue,
}

impl ColumnDef {
    /// A column that rejects NULL and has no default.
    pub fn new(name: impl Into<String>, ty: Type) -> Self {
        Self { name: name.into(), ty, nullable: false, default: OwnedValue::Null }
    }

    /// The same column, and it takes NULL.
    #[must_use]
    pub fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// The same column with a default.
    #[must_use]
    pub fn default(self, value: impl Into<OwnedValue>) -> Self {
        Self { default: value.into(), ..self }
    }
}

impl PartialEq for ColumnDef {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, self.ty, self.nullable) == (&other.name, other.ty, other.nullable)
            && is_same_default(self.ty, &self.default, &other.default)
    }
}

impl Eq for ColumnDef {}

/// Whether a column has the same value by both defaults. What was written to a text and read again is a
/// number of another kind.
fn is_same_default(ty: Type, a: &OwnedValue, b: &OwnedValue) -> bool {
    if a == b {
        return true;
    }
    let (a, b) = (a.as_value(), b.as_value());
    let are = |kind: fn(&Value<'_>) -> bool| kind(&a) && kind(&b);
    match ty {
        Type::F32 | Type::F64 if are(|v| matches!(v, Value::Int(_) | Value::UInt(_) | Value::Float(_))) => {
            let (a, b) = (float(&a), float(&b));
            match ty {
                Type::F32 => (a as f32).to_bits() == (b as f32).to_bits(),
                _ => a.to_bits() == b.to_bits(),
            }
        }
        Type::F32 | Type::F64 => false,
        _ => {
            are(|v| matches!(v, Value::Int(_) | Value::UInt(_) | Value::Decimal(_)))
                && decimal(&a) == decimal(&b)
        }
    }
}

/// A secondary index of a table.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// let by_n = db.create_index(&t, IndexDef::new("by_n", ["n"]))?;
/// db.create_index(&t, IndexDef::unique("once", ["n", "id"]))?;
/// assert_eq!(t.definition().indexes.len(), 2);
/// db.drop_index(&t, by_n.name())?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexDef {
    /// Its name.
    pub name: String,
    /// The columns of its key, most significant first.
    pub columns: Vec<String>,
    /// Whether every row must have a key of its own. Keys with a NULL are exempt.
    pub unique: bool,
}

impl IndexDef {
    /// An index in which several rows may have the same key.
    pub fn new<S: Into<String>>(name: impl Into<String>, columns: impl IntoIterator<Item = S>) -> Self {
        Self { name: name.into(), columns: columns.into_iter().map(Into::into).collect(), unique: false }
    }

    /// An index that rejects a second row with the same key.
    pub fn unique<S: Into<String>>(name: impl Into<String>, columns: impl IntoIterator<Item = S>) -> Self {
        Self { unique: true, ..Self::new(name, columns) }
    }
}

/// The definition of a table.
///
/// ```
/// use pantile::{IndexDef, TableDef, Type};
/// let accounts = TableDef::new("accounts")
///     .column("id", Type::U64)
///     .column("owner", Type::String(40))
///     .nullable("note", Type::String(200))
///     .primary_key(["id"])
///     .index(IndexDef::new("by_owner", ["owner"]));
/// assert_eq!(accounts.columns.len(), 3);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableDef {
    /// Its name.
    pub name: String,
    /// Its columns, in the order of a row's values.
    pub columns: Vec<ColumnDef>,
    /// The columns of the primary key, most significant first.
    pub primary_key: Vec<String>,
    /// The secondary indexes.
    pub indexes: Vec<IndexDef>,
}

impl TableDef {
    /// A table that has no columns yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), columns: Vec::new(), primary_key: Vec::new(), indexes: Vec::new() }
    }

    /// Adds a column that rejects NULL.
    #[must_use]
    pub fn column(self, name: impl Into<String>, ty: Type) -> Self {
        self.with(ColumnDef::new(name, ty))
    }

    /// Adds a column that takes NULL.
    #[must_use]
    pub fn nullable(self, name: impl Into<String>, ty: Type) -> Self {
        self.with(ColumnDef::new(name, ty).nullable())
    }

    /// Adds a column.
    #[must_use]
    pub fn with(mut self, column: ColumnDef) -> Self {
        self.columns.push(column);
        self
    }

    /// Names the columns of the primary key.
    #[must_use]
    pub fn primary_key<S: Into<String>>(mut self, columns: impl IntoIterator<Item = S>) -> Self {
        self.primary_key = columns.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a secondary index.
    #[must_use]
    pub fn index(mut self, index: IndexDef) -> Self {
        self.indexes.push(index);
        self
    }
}

impl TableDef {
    /// How another definition of the same table differs from this one, if it does.
    /// The order of indexes makes no difference.
    ///
    /// ```
    /// use pantile::{TableDef, Type};
    /// let wanted = TableDef::new("pets").column("id", Type::U64).primary_key(["id"]);
    /// let found = TableDef::new("pets").column("id", Type::U32).column("age", Type::U8).primary_key(["id"]);
    /// let differences = wanted.differences(&found).expect("they differ");
    /// assert_eq!(differences, "column \"id\" is u32, not u64; column \"age\" is one too many");
    /// ```
    pub fn differences(&self, found: &TableDef) -> Option<String> {
        let mut all = Vec::new();
        for column in &self.columns {
            match found.columns.iter().find(|other| other.name == column.name) {
                None => all.push(format!("column {:?} is missing", column.name)),
                Some(other) if other != column => {
                    let (is, not) = (described(other, column), described(column, other));
                    all.push(format!("column {:?} is {is}, not {not}", column.name));
                }
                Some(_) => {}
            }
        }
        let is_known = |column: &&ColumnDef| self.columns.iter().any(|known| known.name == column.name);
        let extra = found.columns.iter().filter(|column| !is_known(column));
        all.extend(extra.map(|column| format!("column {:?} is one too many", column.name)));
        let names = |def: &TableDef| def.columns.iter().map(|column| column.name.clone()).collect::<Vec<_>>();
        if all.is_empty() && names(self) != names(found) {
            all.push(format!("the columns are in the order {:?}", names(found)));
        }
        if self.primary_key != found.primary_key {
            all.push(format!("the primary key is {:?}, not {:?}", found.primary_key, self.primary_key));
        }
        for index in &self.indexes {
            match found.indexes.iter().find(|other| other.name == index.name) {
                None => all.push(format!("index {:?} is missing", index.name)),
                Some(other) if other != index => {
                    let show = |index: &IndexDef| {
                        format!("{}on {:?}", if index.unique { "unique " } else { "" }, index.columns)
                    };
                    all.push(format!("index {:?} is {}, not {}", index.name, show(other), show(index)));
                }
                Some(_) => {}
            }
        }
        let is_known = |index: &&IndexDef| self.indexes.iter().any(|known| known.name == index.name);
        let extra = found.indexes.iter().filter(|index| !is_known(index));
        all.extend(extra.map(|index| format!("index {:?} is one too many", index.name)));
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// A column, as far as it differs from another.
fn described(column: &ColumnDef, other: &ColumnDef) -> String {
    let mut parts = Vec::new();
    if column.ty != other.ty {
        parts.push(column.ty.to_string());
    }
    if column.nullable != other.nullable {
        parts.push(if column.nullable { "nullable" } else { "not nullable" }.to_owned());
    }
    if !is_same_default(column.ty, &column.default, &other.default) {
        parts.push(match &column.default {
            OwnedValue::Null => "without a default".to_owned(),
            value => format!("with the default {:?}", value.as_value()),
        });
    }
    parts.join(" and ")
}

/// The place of a column among those of a table, by its name. Those that have been
/// dropped are listed without one.
pub(crate) fn find_column<'n>(
    mut names: impl Iterator<Item = &'n str>,
    name: &str,
    table: &str,
) -> Result<usize> {
    names
        .position(|known| known == name && !name.is_empty())
        .ok_or_else(|| Error::UnknownColumn { table: table.to_owned(), column: format!("{name:?}") })
}

/// The error about a definition that cannot be one.
pub(crate) fn invalid(of: &str, reason: &str) -> Error {
    Error::InvalidDefinition(format!("{of:?}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::value::Decimal;

    #[test]
    fn defaults_are_the_same_if_the_values_are() {
        let of = |ty, default: OwnedValue| ColumnDef::new("n", ty).default(default);
        let money = Type::Decimal { precision: 9, scale: 2 };
        let same: [(Type, OwnedValue, OwnedValue); 6] = [
            (Type::U64, 4i64.into(), 4u64.into()),
            (Type::F32, 0.1f64.into(), f64::from(0.1f32).into()),
            (Type::F64, 2u8.into(), 2.0f64.into()),
            (Type::F64, f64::NAN.into(), f64::NAN.into()),
            (money, 3u8.into(), Decimal::new(300, 2).into()),
            (Type::U8, OwnedValue::Null, OwnedValue::Null),
        ];
        for (ty, a, b) in same {
            assert_eq!(of(ty, a), of(ty, b));
        }
        let others: [(Type, OwnedValue, OwnedValue); 7] = [
            (Type::U64, 4i64.into(), 5u64.into()),
            (Type::U8, 300i64.into(), 44u8.into()),
            (Type::U8, OwnedValue::Null, 0u8.into()),
            (Type::F64, 0.1f64.into(), f64::from(0.1f32).into()),
            (Type::F64, 0.0f64.into(), (-0.0f64).into()),
            (Type::U64, 0.0f64.into(), 0u8.into()),
            (Type::String(9), "4".into(), 4u8.into()),
        ];
        for (ty, a, b) in others {
            assert_ne!(of(ty, a.clone()), of(ty, b.clone()));
            assert!(!described(&of(ty, a.clone()), &of(ty, b)).is_empty(), "{a:?}");
        }
    }

    #[test]
    fn every_type_is_read_as_written() {
        let sized = [
            Type::Decimal { precision: 38, scale: 0 },
            Type::FixedBytes(u16::MAX),
            Type::FixedString(1),
            Type::Bytes(u32::MAX),
            Type::String(0),
        ];
        for ty in Type::PLAIN.into_iter().chain(sized) {
            assert_eq!(ty.to_string().parse::<Type>().expect("a name"), ty);
        }
        for wrong in
            ["", "u65", "u64()", "decimal(4)", "decimal(4,2", "string(-1)", "bytes(4294967296)", "x(1)"]
        {
            let error = wrong.parse::<Type>().expect_err(wrong).to_string();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
    }
}
