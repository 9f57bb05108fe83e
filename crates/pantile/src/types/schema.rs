//! Table definitions, and the layout of rows that follows from them.

use pantile_base::TableId;

use crate::types::error::{Error, Result};

/// The type of a column.
///
/// ```
/// use pantile::{TableDef, Type};
/// let goods = TableDef::new("goods")
///     .column("code", Type::FixedString(8))
///     .column("price", Type::Decimal { precision: 12, scale: 2 })
///     .nullable("picture", Type::Bytes(1 << 24))
///     .primary_key(["code"]);
/// assert_eq!(goods.columns[1].ty.name(), "decimal(12,2)");
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
    /// An IEEE 754 number of 4 bytes. Values are rounded to the nearest one; a
    /// number beyond the largest is refused, infinities and NaN are stored. Keys
    /// are in its total order, -0 below 0.
    F32,
    /// An IEEE 754 number of 8 bytes. Keys are in its total order, -0 below 0.
    F64,
    /// A decimal number with `scale` of its `precision` (at most 38) digits
    /// after the point, 16 bytes.
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
    /// Bytes in the fixed part of a row, or `None` for types of variable length.
    pub(crate) fn fixed_len(self) -> Option<usize> {
        Some(match self {
            Type::Bool | Type::I8 | Type::U8 => 1,
            Type::I16 | Type::U16 => 2,
            Type::I32 | Type::U32 | Type::F32 => 4,
            Type::I64 | Type::U64 | Type::F64 | Type::Timestamp => 8,
            Type::Decimal { .. } => 16,
            Type::FixedBytes(len) | Type::FixedString(len) => usize::from(len),
            Type::Bytes(_) | Type::String(_) => return None,
        })
    }

    /// Most bytes of the type in a key, without the byte that marks NULL.
    pub(crate) fn max_key_len(self) -> usize {
        match self {
            // Each byte may need an escape; two bytes end the value.
            Type::Bytes(max) | Type::String(max) => (max as usize).saturating_mul(2).saturating_add(2),
            fixed => fixed.fixed_len().unwrap_or(0),
        }
    }

    /// The type's name in messages and in inspections.
    pub fn name(self) -> String {
        match self {
            Type::Decimal { precision, scale } => format!("decimal({precision},{scale})"),
            Type::FixedBytes(len) => format!("fixed bytes({len})"),
            Type::FixedString(len) => format!("fixed string({len})"),
            Type::Bytes(max) => format!("bytes({max})"),
            Type::String(max) => format!("string({max})"),
            simple => format!("{simple:?}").to_lowercase(),
        }
    }
}

/// A column of a table.
///
/// ```
/// use pantile::{ColumnDef, TableDef, Type};
/// let pets = TableDef::new("pets").column("id", Type::U32).nullable("name", Type::String(40)).primary_key(["id"]);
/// let name = ColumnDef { name: "name".into(), ty: Type::String(40), nullable: true };
/// assert_eq!(pets.columns[1], name);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnDef {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Whether it takes NULL.
    pub nullable: bool,
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
        self.with_column(name.into(), ty, false)
    }

    /// Adds a column that takes NULL.
    #[must_use]
    pub fn nullable(self, name: impl Into<String>, ty: Type) -> Self {
        self.with_column(name.into(), ty, true)
    }

    fn with_column(mut self, name: String, ty: Type, nullable: bool) -> Self {
        self.columns.push(ColumnDef { name, ty, nullable });
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

/// Most bytes of an encoded index key.
pub(crate) const MAX_KEY_BYTES: usize = 3072 - 8;

/// Columns longer than this may have their values moved out of line.
const OUT_OF_LINE_FROM: u32 = 1536;

/// A column with its place in the row.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub name: String,
    pub ty: Type,
    /// Bit in the null bitmap.
    pub null_bit: Option<u16>,
    pub place: ColumnLocation,
}

impl Column {
    /// Whether its values lie behind the fixed part of the row.
    pub fn is_variable(&self) -> bool {
        matches!(self.place, ColumnLocation::Variable { .. })
    }

    /// Whether its values can be stored out of line.
    pub fn can_move_out(&self) -> bool {
        matches!(self.place, ColumnLocation::Variable { large: Some(_), .. })
    }
}

/// Where a column's bytes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnLocation {
    /// At this offset from the start of the row.
    Fixed(u32),
    /// The n-th value of variable length; `large` its bit in the out-of-line bitmap.
    Variable { nth: u16, large: Option<u16> },
}

/// A checked table definition with the row layout (docs/format.md, "Rows").
#[derive(Clone, Debug)]
pub(crate) struct Schema {
    pub name: String,
    /// The table, once it has an id.
    pub table: TableId,
    pub columns: Vec<Column>,
    pub primary_key: Vec<usize>,
    /// First byte of the out-of-line bitmap.
    pub large_at: usize,
    /// First byte of the table of end offsets.
    pub ends_at: usize,
    /// Number of columns of variable length.
    pub variable: usize,
    /// First byte of the variable part.
    pub heap_at: usize,
}

impl Schema {
    pub fn new(def: &TableDef) -> Result<Self> {
        check_names(def)?;
        let mut columns = Vec::with_capacity(def.columns.len());
        let nullable = def.columns.iter().filter(|c| c.nullable).count();
        let (mut fixed_at, mut null_bit, mut variable, mut large) = (nullable.div_ceil(8), 0u16, 0u16, 0u16);
        for column in &def.columns {
            check_type(column)?;
            let place = if let Some(len) = column.ty.fixed_len() {
                let at = u32::try_from(fixed_at).map_err(|_| too_wide(def))?;
                fixed_at += len;
                ColumnLocation::Fixed(at)
            } else {
                let bit = next_bit(may_be_large(column.ty), &mut large);
                variable += 1;
                ColumnLocation::Variable { nth: variable - 1, large: bit }
            };
            let null_bit = next_bit(column.nullable, &mut null_bit);
            columns.push(Column { name: column.name.clone(), ty: column.ty, null_bit, place });
        }
        let ends_at = fixed_at + usize::from(large).div_ceil(8);
        let heap_at = ends_at + usize::from(variable) * 2;
        if heap_at > usize::from(u16::MAX) {
            return Err(too_wide(def));
        }
        let mut schema = Self {
            name: def.name.clone(),
            table: TableId(0),
            columns,
            primary_key: Vec::new(),
            large_at: fixed_at,
            ends_at,
            variable: usize::from(variable),
            heap_at,
        };
        schema.primary_key = schema.key_columns("primary", &def.primary_key)?;
        if schema.primary_key.iter().any(|&c| schema.columns[c].null_bit.is_some()) {
            return Err(invalid(&def.name, "a column of the primary key takes NULL"));
        }
        Ok(schema)
    }

    /// Whether any column can have its values stored out of line.
    pub fn can_move_out(&self) -> bool {
        self.large_at != self.ends_at
    }

    /// The numbers of an index's columns, checked.
    pub fn key_columns(&self, index: &str, names: &[String]) -> Result<Vec<usize>> {
        if names.is_empty() {
            return Err(invalid(&self.name, &format!("index {index:?} has no columns")));
        }
        let mut columns = Vec::with_capacity(names.len());
        for name in names {
            let column = self.column(name)?;
            if columns.contains(&column) {
                return Err(invalid(&self.name, &format!("index {index:?} names column {name:?} twice")));
            }
            columns.push(column);
        }
        if self.max_key_bytes(&columns) > MAX_KEY_BYTES {
            return Err(invalid(
                &self.name,
                &format!("a key of index {index:?} could take more than {MAX_KEY_BYTES} bytes"),
            ));
        }
        Ok(columns)
    }

    /// Most bytes that a key of these columns takes.
    pub fn max_key_bytes(&self, columns: &[usize]) -> usize {
        columns
            .iter()
            .map(|&c| {
                self.columns[c]
                    .ty
                    .max_key_len()
                    .saturating_add(usize::from(self.columns[c].null_bit.is_some()))
            })
            .fold(0, usize::saturating_add)
    }

    /// The number of a column by name.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.columns
            .iter()
            .position(|c| c.name == name)
            .ok_or_else(|| Error::UnknownColumn { table: self.name.clone(), column: format!("{name:?}") })
    }
}

fn next_bit(wanted: bool, counter: &mut u16) -> Option<u16> {
    wanted.then(|| {
        *counter += 1;
        *counter - 1
    })
}

fn may_be_large(ty: Type) -> bool {
    matches!(ty, Type::Bytes(max) | Type::String(max) if max > OUT_OF_LINE_FROM)
}

fn check_names(def: &TableDef) -> Result<()> {
    if def.name.is_empty() || def.name.len() > 255 {
        return Err(invalid(&def.name, "a table's name takes 1 to 255 bytes"));
    }
    if def.columns.is_empty() || def.columns.len() > 4096 {
        return Err(invalid(&def.name, "a table has 1 to 4096 columns"));
    }
    for (n, column) in def.columns.iter().enumerate() {
        if column.name.is_empty() || column.name.len() > 255 {
            return Err(invalid(&def.name, "a column's name takes 1 to 255 bytes"));
        }
        if def.columns[..n].iter().any(|other| other.name == column.name) {
            return Err(invalid(&def.name, &format!("column {:?} is named twice", column.name)));
        }
    }
    if def.primary_key.is_empty() {
        return Err(invalid(&def.name, "a table needs a primary key"));
    }
    for (n, index) in def.indexes.iter().enumerate() {
        if index.name.is_empty() || index.name == "primary" || index.name.len() > 255 {
            return Err(invalid(&def.name, "an index's name takes 1 to 255 bytes and is not \"primary\""));
        }
        if def.indexes[..n].iter().any(|other| other.name == index.name) {
            return Err(invalid(&def.name, &format!("index {:?} is named twice", index.name)));
        }
    }
    Ok(())
}

fn check_type(column: &ColumnDef) -> Result<()> {
    let reason = match column.ty {
        Type::Decimal { precision, .. } if precision == 0 || precision > 38 => "a decimal has 1 to 38 digits",
        Type::Decimal { precision, scale } if scale > precision => {
            "a decimal's scale is at most its precision"
        }
        Type::FixedBytes(0) | Type::FixedString(0) => "a fixed length is at least 1",
        _ => return Ok(()),
    };
    Err(invalid(&column.name, reason))
}

fn too_wide(def: &TableDef) -> Error {
    invalid(&def.name, "the fixed part of a row takes more than 65535 bytes")
}

fn invalid(of: &str, reason: &str) -> Error {
    Error::InvalidDefinition(format!("{of:?}: {reason}"))
}
