//! Rows: encoding, decoding, and typed access without copying.
//!
//! The layout is described in `docs/format.md`, "Rows": null bitmap, fixed
//! part, out-of-line bitmap, end offsets, variable part; all little-endian.

use std::borrow::Cow;

use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};

use crate::types::columns::Columns;
use crate::types::error::{Error, Result};
use crate::types::layout::{ALWAYS_NULL, Column, ColumnLocation, Schema};
use crate::types::owned_value::OwnedValue;
use crate::types::schema::Type;
use crate::types::stored_value::{decode, put_fixed, text, variable_bytes, word};
use crate::types::value::{Decimal, Value};

/// Most bytes of a row, without values out of line.
pub(crate) const MAX_ROW: usize = 65_535;

/// Bytes that a value stored out of line takes in its row: its id and length.
pub(crate) const OUT_OF_LINE_BYTES: usize = 16;

/// Appends the encoded row to `out`. The values are those of `columns`; others
/// get their defaults.
///
/// `move_out` stores a value out of line and returns its id. It is called for
/// the longest values of a row that is too large.
pub(crate) fn encode<'a>(
    schema: &'a Schema,
    columns: &Columns,
    values: &[Value<'a>],
    out: &mut Vec<u8>,
    move_out: impl FnMut(&'a [u8]) -> u64,
) -> Result<()> {
    if values.len() != columns.len() {
        return Err(Error::WrongArity {
            table: schema.name.clone(),
            expected: columns.len(),
            got: values.len(),
        });
    }
    if columns.are_those_of(schema) {
        return encode_values(schema, |id| values[id], out, move_out);
    }
    columns.check_stored(schema)?;
    encode_values(schema, |id| columns.value(values, schema, id), out, move_out)
}

/// Appends the row with these values of columns, by id.
fn encode_values<'a>(
    schema: &Schema,
    value: impl Fn(usize) -> Value<'a>,
    out: &mut Vec<u8>,
    move_out: impl FnMut(&'a [u8]) -> u64,
) -> Result<()> {
    for id in (0..schema.columns.len()).filter(|id| schema.columns[*id].is_stored()) {
        check(schema, id, &value(id))?;
    }
    encode_stored(schema, |id| Stored::of(value(id)), out, move_out)
}

/// Appends a row in another layout, with the defaults of columns that it lacks.
pub(crate) fn convert<'a>(
    row: &Encoded<'a>,
    to: &Schema,
    out: &mut Vec<u8>,
    move_out: impl FnMut(&'a [u8]) -> u64,
) -> Result<()> {
    encode_stored(to, |id| row.stored(id), out, move_out)
}

/// Appends the row with these values of columns, by id.
fn encode_stored<'a>(
    schema: &Schema,
    value: impl Fn(usize) -> Stored<'a>,
    out: &mut Vec<u8>,
    mut move_out: impl FnMut(&'a [u8]) -> u64,
) -> Result<()> {
    let moved = choose_out_of_line(schema, &value)?;
    let start = out.len();
    out.resize(start + schema.heap_at, 0);
    for (id, column) in schema.columns.iter().enumerate() {
        let mut value = match column.is_stored() {
            true => value(id),
            false => continue,
        };
        if let Stored::Value(long) = value
            && moved.contains(&id)
        {
            let bytes = variable_bytes(&long);
            value = Stored::OutOfLine { id: move_out(bytes), len: bytes.len() as u64 };
        }
        put_bit(&mut out[start..], 0, column.null_bit.filter(|_| matches!(value, Stored::Null)), true);
        match (column.place, value) {
            (ColumnLocation::Fixed(at), Stored::Value(value)) => {
                put_fixed(column.ty, &value, &mut out[start + at as usize..]);
            }
            (ColumnLocation::Variable { nth, large }, value) => {
                match value {
                    Stored::Null => {}
                    Stored::Value(value) => out.extend_from_slice(variable_bytes(&value)),
                    Stored::OutOfLine { id, len } => {
                        put_bit(&mut out[start..], schema.large_at, large, true);
                        out.extend_from_slice(&reference(id, len));
                    }
                }
                let end = (out.len() - start) as u16;
                let at = start + schema.ends_at + usize::from(nth) * 2;
                out[at..at + 2].copy_from_slice(&end.to_le_bytes());
            }
            _ => {}
        }
    }
    Ok(())
}

/// The columns whose values must leave the row for it to fit.
fn choose_out_of_line<'a>(schema: &Schema, value: impl Fn(usize) -> Stored<'a>) -> Result<Vec<usize>> {
    if schema.variable == 0 {
        return Ok(Vec::new());
    }
    let columns = || schema.columns.iter().enumerate().filter(|(_, column)| column.is_stored());
    let bytes = |id| match value(id) {
        Stored::Null => 0,
        Stored::Value(value) => variable_bytes(&value).len(),
        Stored::OutOfLine { .. } => OUT_OF_LINE_BYTES,
    };
    // The fixed part lies below `heap_at`.
    let variable = columns().filter(|(_, column)| column.is_variable() || is_removed(Control::RowLength));
    let mut len = schema.heap_at + variable.map(|(id, _)| bytes(id)).sum::<usize>();
    let mut moved = Vec::new();
    while len > MAX_ROW {
        let longest = columns()
            .filter(|(id, column)| column.can_move_out() && !moved.contains(id))
            .map(|(id, _)| (bytes(id), id))
            .max_by_key(|(bytes, _)| *bytes)
            .filter(|(bytes, _)| *bytes > OUT_OF_LINE_BYTES);
        let Some((bytes, longest)) = longest else {
            return Err(Error::RowTooLarge { table: schema.name.clone(), len });
        };
        len = len - bytes + OUT_OF_LINE_BYTES;
        moved.push(longest);
    }
    Ok(moved)
}

/// What a row holds in place of a value out of line.
pub(crate) fn reference(id: u64, len: u64) -> [u8; OUT_OF_LINE_BYTES] {
    let mut reference = [0; OUT_OF_LINE_BYTES];
    reference[..8].copy_from_slice(&id.to_le_bytes());
    reference[8..].copy_from_slice(&len.to_le_bytes());
    reference
}

fn bit(bytes: &[u8], at: usize, bit: u16) -> bool {
    bytes[at + usize::from(bit / 8)] & (1 << (bit % 8)) != 0
}

fn wrong_type(schema: &Schema, id: usize, got: &str) -> Error {
    Error::WrongType {
        table: schema.name.clone(),
        column: schema.names[id].clone(),
        expected: schema.columns[id].ty.name(),
        got: got.to_owned(),
    }
}

/// Checks that the value fits the column.
pub(crate) fn check(schema: &Schema, id: usize, value: &Value<'_>) -> Result<()> {
    let column = &schema.columns[id];
    let fits = match (column.ty, value) {
        (_, Value::Null) if column.nullable => true,
        (_, Value::Null) => {
            return Err(Error::NotNull { table: schema.name.clone(), column: schema.names[id].clone() });
        }
        (Type::U64, Value::UInt(_)) | (Type::I64, Value::Int(_)) => true,
        (ty, Value::Int(v)) if int_range(ty).is_some() => {
            int_range(ty).is_some_and(|r| r.contains(&i128::from(*v)))
        }
        (ty, Value::UInt(v)) if int_range(ty).is_some() => {
            int_range(ty).is_some_and(|r| r.contains(&i128::from(*v)))
        }
        (Type::Bool, Value::Bool(_))
        | (Type::F64, Value::Float(_))
        | (Type::Timestamp, Value::Timestamp(_)) => true,
        (Type::F32, Value::Float(v)) => {
            (*v as f32).is_finite() || !v.is_finite() || is_removed(Control::FloatRange)
        }
        (Type::Decimal { precision, scale }, Value::Decimal(d)) => {
            d.rescale(scale).is_some_and(|d| d.units.unsigned_abs() < 10u128.pow(u32::from(precision)))
        }
        (Type::String(max), Value::Str(s)) => return check_len(schema, id, s.len(), max),
        (Type::FixedString(_), Value::Str(s)) if s.ends_with('\0') && !is_removed(Control::FixedPadding) => {
            return Err(out_of_range(schema, id, "a string that ends with a zero byte, as padding does,"));
        }
        (Type::FixedString(max), Value::Str(s)) => return check_len(schema, id, s.len(), max.into()),
        (Type::Bytes(max), Value::Bytes(b)) => return check_len(schema, id, b.len(), max),
        (Type::FixedBytes(max), Value::Bytes(b)) => return check_len(schema, id, b.len(), max.into()),
        (_, other) => return Err(wrong_type(schema, id, other.kind())),
    };
    if fits { Ok(()) } else { Err(out_of_range(schema, id, &format!("{value:?}"))) }
}

fn out_of_range(schema: &Schema, id: usize, value: &str) -> Error {
    Error::OutOfRange {
        table: schema.name.clone(),
        column: schema.names[id].clone(),
        value: value.to_owned(),
    }
}

fn check_len(schema: &Schema, id: usize, len: usize, max: u32) -> Result<()> {
    if len as u64 <= u64::from(max) {
        return Ok(());
    }
    Err(Error::TooLong {
        table: schema.name.clone(),
        column: schema.names[id].clone(),
        max: max.into(),
        len: len as u64,
    })
}

fn int_range(ty: Type) -> Option<std::ops::RangeInclusive<i128>> {
    let range = match ty {
        Type::I8 => i128::from(i8::MIN)..=i128::from(i8::MAX),
        Type::I16 => i128::from(i16::MIN)..=i128::from(i16::MAX),
        Type::I32 => i128::from(i32::MIN)..=i128::from(i32::MAX),
        Type::I64 => i128::from(i64::MIN)..=i128::from(i64::MAX),
        Type::U8 => 0..=i128::from(u8::MAX),
        Type::U16 => 0..=i128::from(u16::MAX),
        Type::U32 => 0..=i128::from(u32::MAX),
        Type::U64 => 0..=i128::from(u64::MAX),
        _ => return None,
    };
    Some(range)
}

/// What an encoded column holds.
#[derive(Clone, Copy)]
pub(crate) enum Stored<'a> {
    Null,
    Value(Value<'a>),
    OutOfLine { id: u64, len: u64 },
}

impl<'a> Stored<'a> {
    #[inline]
    fn of(value: Value<'a>) -> Self {
        if matches!(value, Value::Null) { Stored::Null } else { Stored::Value(value) }
    }
}

/// The encoded bytes of a row, with their layout.
#[derive(Clone, Copy)]
pub(crate) struct Encoded<'a> {
    pub schema: &'a Schema,
    pub bytes: &'a [u8],
}

impl<'a> Encoded<'a> {
    #[inline]
    pub fn is_null(&self, column: &Column) -> bool {
        column.null_bit.is_some_and(|b| b == ALWAYS_NULL || bit(self.bytes, 0, b))
    }

    /// The bytes of a column, without NULL and out-of-line taken into account.
    #[inline]
    pub fn raw(&self, column: &Column) -> &'a [u8] {
        match column.place {
            ColumnLocation::Fixed(at) => {
                let at = at as usize;
                &self.bytes[at..at + column.stored.fixed_len().unwrap_or(0)]
            }
            ColumnLocation::Variable { nth, .. } => {
                let start = if nth == 0 { self.schema.heap_at } else { self.end(nth - 1) };
                &self.bytes[start..self.end(nth)]
            }
            ColumnLocation::Later(n) => &self.schema.later[usize::from(n)],
            ColumnLocation::Dropped => &[],
        }
    }

    #[inline]
    fn end(&self, nth: u16) -> usize {
        let at = self.schema.ends_at + usize::from(nth) * 2;
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    pub fn is_out_of_line(&self, column: &Column) -> bool {
        match column.place {
            ColumnLocation::Variable { large: Some(b), .. } => bit(self.bytes, self.schema.large_at, b),
            _ => false,
        }
    }

    /// The ids and lengths of the values stored out of line.
    pub fn values_out_of_line(&self) -> Vec<(u64, u64)> {
        let columns = self.schema.columns.iter().filter(|column| column.can_move_out());
        columns
            .filter_map(|column| match self.stored_in(column) {
                Stored::OutOfLine { id, len } => Some((id, len)),
                Stored::Null | Stored::Value(_) => None,
            })
            .collect()
    }

    /// The value of a column, by id.
    #[inline]
    pub fn stored(&self, id: usize) -> Stored<'a> {
        self.stored_in(&self.schema.columns[id])
    }

    pub fn stored_in(&self, column: &Column) -> Stored<'a> {
        if self.is_null(column) {
            return Stored::Null;
        }
        let raw = self.raw(column);
        if self.is_out_of_line(column) {
            return Stored::OutOfLine { id: word(raw, 0), len: word(raw, 8) };
        }
        Stored::Value(decode(column.stored, raw))
    }
}

/// Overwrites a value in the fixed part of an encoded row. Returns false if the
/// column is of variable length.
pub(crate) fn overwrite_fixed(bytes: &mut [u8], column: &Column, value: &Value<'_>) -> bool {
    let ColumnLocation::Fixed(at) = column.place else {
        return false;
    };
    put_bit(bytes, 0, column.null_bit, matches!(value, Value::Null));
    put_fixed(column.ty, value, &mut bytes[at as usize..]);
    true
}

/// Replaces the value of a column of variable length, by a value in line or
/// (with `large`) by the reference to one out of line. Columns go by id.
pub(crate) fn splice(
    schema: &Schema,
    row: &mut Vec<u8>,
    n: usize,
    value: Option<&[u8]>,
    large: bool,
) -> Result<()> {
    let column = &schema.columns[n];
    let ColumnLocation::Variable { nth, large: large_bit } = column.place else {
        return Ok(());
    };
    let old = Encoded { schema, bytes: row };
    let start = if nth == 0 { schema.heap_at } else { old.end(nth - 1) };
    let end = old.end(nth);
    let bytes = value.unwrap_or_default();
    let len = row.len() - (end - start) + bytes.len();
    if len > MAX_ROW {
        return Err(Error::RowTooLarge { table: schema.name.clone(), len });
    }
    row.splice(start..end, bytes.iter().copied());
    for later in usize::from(nth)..schema.variable {
        let at = schema.ends_at + later * 2;
        let moved = usize::from(u16::from_le_bytes([row[at], row[at + 1]])) + bytes.len() - (end - start);
        row[at..at + 2].copy_from_slice(&(moved as u16).to_le_bytes());
    }
    put_bit(row, 0, column.null_bit, value.is_none());
    put_bit(row, schema.large_at, large_bit, large);
    Ok(())
}

fn put_bit(bytes: &mut [u8], at: usize, bit: Option<u16>, on: bool) {
    if let Some(bit) = bit {
        let byte = &mut bytes[at + usize::from(bit / 8)];
        let mask = 1 << (bit % 8);
        if on { *byte |= mask } else { *byte &= !mask }
    }
}

/// The column, other than `except`, with the longest value in line that can
/// move out, and the value's length, if the move saves space.
pub(crate) fn longest_movable(row: &Encoded<'_>, except: usize) -> Option<(usize, usize)> {
    let columns = row.schema.columns.iter().enumerate();
    columns
        .filter(|(n, column)| *n != except && column.can_move_out() && !row.is_out_of_line(column))
        .map(|(n, column)| (n, row.raw(column).len()))
        .max_by_key(|&(_, len)| len)
        .filter(|&(_, len)| len > OUT_OF_LINE_BYTES)
}

/// Reads values stored out of line.
pub(crate) trait OutOfLine {
    fn read_out_of_line(&self, of: TableId, id: u64, len: u64, at: Timestamp) -> Result<Vec<u8>>;
}

/// A row of a table as one transaction sees it.
///
/// It borrows the stored bytes. Reading a value copies it, except for strings
/// and bytes, which are borrowed too.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// let txn = db.begin_read()?;
/// let row = txn.get(&t, &[1u64.into()])?.expect("a row");
/// assert_eq!(row.values()?, [Value::UInt(1), Value::Int(5)]);
/// assert_eq!(format!("{row:?}"), r#"{"id": UInt(1), "n": Int(5)}"#);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Row<'t> {
    pub(crate) encoded: Encoded<'t>,
    /// Those of the handle through which it was read.
    pub(crate) columns: &'t Columns,
    pub(crate) out_of_line: &'t dyn OutOfLine,
    /// The timestamp at which the statement read the row.
    pub(crate) at: Timestamp,
}

/// Names a column: by its number, which is fast, or by its name.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// # db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
/// let n = t.column("n")?; // once, outside a loop
/// let txn = db.begin_read()?;
/// let row = txn.get(&t, &[1u64.into()])?.expect("a row");
/// assert_eq!(row.get::<i64>(n)?, row.get::<i64>("n")?);
/// # Ok::<(), Error>(())
/// ```
pub trait ColumnRef {
    /// The column's id in the table.
    #[doc(hidden)]
    fn resolve(&self, row: &Row<'_>) -> Result<usize>;
}

impl ColumnRef for usize {
    #[inline]
    fn resolve(&self, row: &Row<'_>) -> Result<usize> {
        row.columns.id(*self, &row.encoded.schema.name)
    }
}

impl ColumnRef for &str {
    fn resolve(&self, row: &Row<'_>) -> Result<usize> {
        let number = row.columns.number(self, &row.encoded.schema.name)?;
        number.resolve(row)
    }
}

/// A Rust type that a column can be read as.
///
/// ```
/// use pantile::{FromValue, Value};
///
/// struct Cents(i64);
///
/// impl FromValue<'_> for Cents {
///     fn from_value(value: Value<'_>) -> Option<Self> {
///         i64::from_value(value).map(Cents)
///     }
/// }
///
/// assert!(matches!(Cents::from_value(Value::Int(250)), Some(Cents(250))));
/// assert!(Cents::from_value(Value::Null).is_none());
/// ```
pub trait FromValue<'t>: Sized {
    /// The value, or `None` if the types do not match.
    fn from_value(value: Value<'t>) -> Option<Self>;
}

impl<'t> Row<'t> {
    /// The value of a column.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`]; [`Error::WrongType`] if the column's type, or
    /// NULL, does not convert to `T`; [`Error::OutOfLine`];
    /// [`Error::ColumnDropped`] if the row is newer than the column's end.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).nullable("name", Type::String(9)).primary_key(["id"]))?;
    /// # let mut txn = db.begin()?;
    /// txn.insert(&t, &[7u64.into(), "seven".into()])?;
    /// let row = txn.get(&t, &[7u64.into()])?.unwrap();
    /// assert_eq!(row.get::<u64>(0)?, 7);
    /// assert_eq!(row.get::<Option<&str>>("name")?, Some("seven"));
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn get<T: FromValue<'t>>(&self, column: impl ColumnRef) -> Result<T> {
        let id = column.resolve(self)?;
        let value = match self.stored(id)? {
            Stored::Null => Value::Null,
            Stored::Value(value) => value,
            Stored::OutOfLine { .. } => {
                return Err(Error::OutOfLine { column: self.encoded.schema.names[id].clone() });
            }
        };
        T::from_value(value).ok_or_else(|| self.mismatch(id, &value, std::any::type_name::<T>()))
    }

    #[inline]
    fn stored(&self, id: usize) -> Result<Stored<'t>> {
        let column = &self.encoded.schema.columns[id];
        if matches!(column.place, ColumnLocation::Dropped) {
            self.columns.check_not_dropped(self.encoded.schema, id)?;
        }
        Ok(self.encoded.stored_in(column))
    }

    #[cold]
    fn mismatch(&self, id: usize, value: &Value<'_>, wanted: &str) -> Error {
        let got =
            if matches!(value, Value::Null) { format!("NULL read as {wanted}") } else { wanted.to_owned() };
        wrong_type(self.encoded.schema, id, &got)
    }

    /// The bytes of a string or bytes column, in line or not; `None` for NULL.
    /// Values in line are borrowed, others are copied.
    ///
    /// # Errors
    /// [`Error::UnknownColumn`], [`Error::WrongType`] for other types.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let films = db.create_table(
    ///     TableDef::new("films").column("id", Type::U64).column("film", Type::Bytes(1 << 30)).primary_key(["id"]),
    /// )?;
    /// let film = vec![7; 1 << 20];
    /// db.run(|txn| txn.insert(&films, &[1u64.into(), film.as_slice().into()]))?;
    /// let txn = db.begin_read()?;
    /// let row = txn.get(&films, &[1u64.into()])?.expect("a film");
    /// assert!(matches!(row.get::<&[u8]>("film"), Err(Error::OutOfLine { .. })));
    /// assert_eq!(row.read("film")?.expect("not NULL").len(), 1 << 20);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn read(&self, column: impl ColumnRef) -> Result<Option<Cow<'t, [u8]>>> {
        let n = column.resolve(self)?;
        match self.stored(n)? {
            Stored::Null => Ok(None),
            Stored::Value(Value::Str(text)) => Ok(Some(Cow::Borrowed(text.as_bytes()))),
            Stored::Value(Value::Bytes(bytes)) => Ok(Some(Cow::Borrowed(bytes))),
            Stored::Value(value) => Err(self.mismatch(n, &value, "bytes")),
            Stored::OutOfLine { id, len } => {
                let of = self.encoded.schema.table;
                self.out_of_line.read_out_of_line(of, id, len, self.at).map(|v| Some(Cow::Owned(v)))
            }
        }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether there are no columns; never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a column, whatever its length.
    ///
    /// # Errors
    /// As [`Row::get`], without [`Error::OutOfLine`].
    pub fn value(&self, column: impl ColumnRef) -> Result<OwnedValue> {
        let id = column.resolve(self)?;
        Ok(match self.stored(id)? {
            Stored::Null => OwnedValue::Null,
            Stored::Value(value) => value.into(),
            Stored::OutOfLine { id: value, len } => {
                let of = self.encoded.schema.table;
                let bytes = self.out_of_line.read_out_of_line(of, value, len, self.at)?;
                match self.encoded.schema.columns[id].stored {
                    Type::String(_) => OwnedValue::Str(text(&bytes).to_owned()),
                    _ => OwnedValue::Bytes(bytes),
                }
            }
        })
    }

    /// All values in order, whatever their length, apart from the transaction.
    ///
    /// # Errors
    /// As [`Row::value`].
    pub fn to_values(&self) -> Result<Vec<OwnedValue>> {
        (0..self.len()).map(|n| self.value(n)).collect()
    }

    /// All values in order.
    ///
    /// # Errors
    /// [`Error::OutOfLine`] if one is stored out of line.
    pub fn values(&self) -> Result<Vec<Value<'t>>> {
        (0..self.len()).map(|n| self.get(n)).collect()
    }
}

impl std::fmt::Debug for Row<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        for (name, id) in self.columns.names_and_ids() {
            match self.encoded.stored(id) {
                Stored::Null => map.entry(&name, &Value::Null),
                Stored::Value(value) => map.entry(&name, &value),
                Stored::OutOfLine { len, .. } => map.entry(&name, &format_args!("<{len} bytes out of line>")),
            };
        }
        map.finish()
    }
}

macro_rules! from_value {
    ($($target:ty: $pattern:pat => $result:expr),* $(,)?) => {
        $(impl<'t> FromValue<'t> for $target {
            #[inline]
            fn from_value(value: Value<'t>) -> Option<Self> {
                match value {
                    $pattern => $result,
                    _ => None,
                }
            }
        })*
    };
}

macro_rules! from_integer {
    ($($target:ty),*) => {
        $(impl<'t> FromValue<'t> for $target {
            #[inline]
            fn from_value(value: Value<'t>) -> Option<Self> {
                match value {
                    Value::Int(v) => v.try_into().ok(),
                    Value::UInt(v) => v.try_into().ok(),
                    _ => None,
                }
            }
        })*
    };
}

from_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

from_value! {
    bool: Value::Bool(v) => Some(v),
    f64: Value::Float(v) => Some(v),
    Decimal: Value::Decimal(v) => Some(v),
    &'t str: Value::Str(v) => Some(v),
    &'t [u8]: Value::Bytes(v) => Some(v),
}

/// Microseconds since 1970-01-01 UTC, as a column of [`Type::Timestamp`] reads.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let log = db.create_table(TableDef::new("log").column("at", Type::Timestamp).primary_key(["at"]))?;
/// let mut txn = db.begin()?;
/// txn.insert(&log, &[Micros(1_700_000_000_000_000).into()])?;
/// let row = txn.get(&log, &[Micros(1_700_000_000_000_000).into()])?.expect("a row");
/// assert_eq!(row.get::<Micros>("at")?.0, 1_700_000_000_000_000);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Micros(pub i64);

impl FromValue<'_> for Micros {
    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Timestamp(v) => Some(Micros(v)),
            _ => None,
        }
    }
}

impl From<Micros> for Value<'_> {
    fn from(value: Micros) -> Self {
        Value::Timestamp(value.0)
    }
}

impl<'t, T: FromValue<'t>> FromValue<'t> for Option<T> {
    #[inline]
    fn from_value(value: Value<'t>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl<'t> FromValue<'t> for Value<'t> {
    #[inline]
    fn from_value(value: Value<'t>) -> Option<Self> {
        Some(value)
    }
}
