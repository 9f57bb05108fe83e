//! Rows: encoding, decoding, and typed access without copying.
//!
//! The layout is described in `docs/format.md`, "Rows": null bitmap, fixed
//! part, out-of-line bitmap, end offsets, variable part; all little-endian.

use std::borrow::Cow;

use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};

use crate::types::error::{Error, Result};
use crate::types::schema::{Column, ColumnLocation, Schema, Type};
use crate::types::value::{Decimal, Value};

/// Most bytes of a row, without values out of line.
pub(crate) const MAX_ROW: usize = 65_535;

/// Bytes that a value stored out of line takes in its row: its id and length.
pub(crate) const OUT_OF_LINE_BYTES: usize = 16;

/// Appends the encoded row to `out`.
///
/// `move_out` stores a value out of line and returns its id. It is called for
/// the longest values of a row that is too large.
pub(crate) fn encode<'a>(
    schema: &Schema,
    values: &[Value<'a>],
    out: &mut Vec<u8>,
    mut move_out: impl FnMut(&'a [u8]) -> u64,
) -> Result<()> {
    if values.len() != schema.columns.len() {
        return Err(Error::WrongArity {
            table: schema.name.clone(),
            expected: schema.columns.len(),
            got: values.len(),
        });
    }
    for (column, value) in schema.columns.iter().zip(values) {
        check(schema, column, value)?;
    }
    let moved = choose_out_of_line(schema, values)?;
    let start = out.len();
    out.resize(start + schema.heap_at, 0);
    for (n, (column, value)) in schema.columns.iter().zip(values).enumerate() {
        if matches!(value, Value::Null) {
            put_bit(&mut out[start..], 0, column.null_bit, true);
        }
        match column.place {
            ColumnLocation::Fixed(at) => put_fixed(column.ty, value, &mut out[start + at as usize..]),
            ColumnLocation::Variable { nth, large } => {
                let bytes = variable_bytes(value);
                if moved.contains(&n) {
                    let id = move_out(bytes);
                    put_bit(&mut out[start..], schema.large_at, large, true);
                    out.extend_from_slice(&reference(id, bytes.len() as u64));
                } else {
                    out.extend_from_slice(bytes);
                }
                let end = (out.len() - start) as u16;
                let at = start + schema.ends_at + usize::from(nth) * 2;
                out[at..at + 2].copy_from_slice(&end.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// The columns whose values must leave the row for it to fit.
fn choose_out_of_line(schema: &Schema, values: &[Value<'_>]) -> Result<Vec<usize>> {
    if schema.variable == 0 {
        return Ok(Vec::new());
    }
    // The fixed part lies below `heap_at`.
    let variable = schema
        .columns
        .iter()
        .zip(values)
        .filter(|(column, _)| column.is_variable() || is_removed(Control::RowLength));
    let mut len = schema.heap_at + variable.map(|(_, value)| variable_bytes(value).len()).sum::<usize>();
    let mut moved = Vec::new();
    while len > MAX_ROW {
        let longest = (0..values.len())
            .filter(|n| !moved.contains(n) && schema.columns[*n].can_move_out())
            .max_by_key(|&n| variable_bytes(&values[n]).len())
            .filter(|&n| variable_bytes(&values[n]).len() > OUT_OF_LINE_BYTES);
        let Some(longest) = longest else {
            return Err(Error::RowTooLarge { table: schema.name.clone(), len });
        };
        len = len - variable_bytes(&values[longest]).len() + OUT_OF_LINE_BYTES;
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

fn variable_bytes<'a>(value: &Value<'a>) -> &'a [u8] {
    match *value {
        Value::Str(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => &[],
    }
}

fn bit(bytes: &[u8], at: usize, bit: u16) -> bool {
    bytes[at + usize::from(bit / 8)] & (1 << (bit % 8)) != 0
}

fn wrong_type(schema: &Schema, column: &Column, got: &str) -> Error {
    Error::WrongType {
        table: schema.name.clone(),
        column: column.name.clone(),
        expected: column.ty.name(),
        got: got.to_owned(),
    }
}

/// Checks that the value fits the column.
pub(crate) fn check(schema: &Schema, column: &Column, value: &Value<'_>) -> Result<()> {
    let fits = match (column.ty, value) {
        (_, Value::Null) if column.null_bit.is_some() => true,
        (_, Value::Null) => {
            return Err(Error::NotNull { table: schema.name.clone(), column: column.name.clone() });
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
        (Type::String(max), Value::Str(s)) => return check_len(schema, column, s.len(), max),
        (Type::FixedString(_), Value::Str(s)) if s.ends_with('\0') && !is_removed(Control::FixedPadding) => {
            return Err(out_of_range(
                schema,
                column,
                "a string that ends with a zero byte, as padding does,",
            ));
        }
        (Type::FixedString(max), Value::Str(s)) => return check_len(schema, column, s.len(), max.into()),
        (Type::Bytes(max), Value::Bytes(b)) => return check_len(schema, column, b.len(), max),
        (Type::FixedBytes(max), Value::Bytes(b)) => return check_len(schema, column, b.len(), max.into()),
        (_, other) => return Err(wrong_type(schema, column, other.kind())),
    };
    if fits { Ok(()) } else { Err(out_of_range(schema, column, &format!("{value:?}"))) }
}

fn out_of_range(schema: &Schema, column: &Column, value: &str) -> Error {
    Error::OutOfRange { table: schema.name.clone(), column: column.name.clone(), value: value.to_owned() }
}

fn check_len(schema: &Schema, column: &Column, len: usize, max: u32) -> Result<()> {
    if len as u64 <= u64::from(max) {
        return Ok(());
    }
    Err(Error::TooLong {
        table: schema.name.clone(),
        column: column.name.clone(),
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

/// The low bytes of an integer value that [`check`] has accepted.
pub(crate) fn int_bits(value: &Value<'_>) -> u64 {
    match *value {
        Value::Int(v) => v as u64,
        Value::UInt(v) => v,
        Value::Bool(v) => u64::from(v),
        Value::Timestamp(v) => v as u64,
        _ => 0,
    }
}

fn put_fixed(ty: Type, value: &Value<'_>, out: &mut [u8]) {
    match (ty, value) {
        (_, Value::Null) => {}
        (Type::F32, Value::Float(v)) => out[..4].copy_from_slice(&(*v as f32).to_le_bytes()),
        (Type::F64, Value::Float(v)) => out[..8].copy_from_slice(&v.to_le_bytes()),
        (Type::Decimal { scale, .. }, Value::Decimal(d)) => {
            let units = d.rescale(scale).map_or(0, |d| d.units);
            out[..16].copy_from_slice(&units.to_le_bytes());
        }
        (Type::FixedBytes(len) | Type::FixedString(len), value) => {
            let bytes = variable_bytes(value);
            out[..bytes.len()].copy_from_slice(bytes);
            out[bytes.len()..usize::from(len)].fill(0);
        }
        (ty, value) => {
            let len = ty.fixed_len().unwrap_or(0);
            out[..len].copy_from_slice(&int_bits(value).to_le_bytes()[..len]);
        }
    }
}

/// What an encoded column holds.
pub(crate) enum Stored<'a> {
    Null,
    Value(Value<'a>),
    OutOfLine { id: u64, len: u64 },
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
        column.null_bit.is_some_and(|b| bit(self.bytes, 0, b))
    }

    /// The bytes of a column, without NULL and out-of-line taken into account.
    #[inline]
    pub fn raw(&self, column: &Column) -> &'a [u8] {
        match column.place {
            ColumnLocation::Fixed(at) => {
                let at = at as usize;
                &self.bytes[at..at + column.ty.fixed_len().unwrap_or(0)]
            }
            ColumnLocation::Variable { nth, .. } => {
                let start = if nth == 0 { self.schema.heap_at } else { self.end(nth - 1) };
                &self.bytes[start..self.end(nth)]
            }
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

    pub fn stored(&self, n: usize) -> Stored<'a> {
        self.stored_in(&self.schema.columns[n])
    }

    pub fn stored_in(&self, column: &Column) -> Stored<'a> {
        if self.is_null(column) {
            return Stored::Null;
        }
        let raw = self.raw(column);
        if self.is_out_of_line(column) {
            return Stored::OutOfLine { id: word(raw, 0), len: word(raw, 8) };
        }
        Stored::Value(decode(column.ty, raw))
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
/// (with `large`) by the reference to one out of line.
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

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Little-endian, zero-extended.
#[inline]
fn small(bytes: &[u8]) -> u64 {
    match *bytes {
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        _ => word(bytes, 0),
    }
}

#[inline]
fn decode<'a>(ty: Type, raw: &'a [u8]) -> Value<'a> {
    match ty {
        Type::Bool => Value::Bool(raw[0] != 0),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => Value::UInt(small(raw)),
        Type::I8 => Value::Int(i64::from(raw[0] as i8)),
        Type::I16 => Value::Int(i64::from(small(raw) as i16)),
        Type::I32 => Value::Int(i64::from(small(raw) as i32)),
        Type::I64 => Value::Int(small(raw) as i64),
        Type::F32 => Value::Float(f64::from(f32::from_bits(small(raw) as u32))),
        Type::F64 => Value::Float(f64::from_bits(small(raw))),
        Type::Timestamp => Value::Timestamp(small(raw) as i64),
        Type::Decimal { scale, .. } => {
            let units = i128::from(word(raw, 0)) | (i128::from(word(raw, 8)) << 64);
            Value::Decimal(Decimal { units, scale })
        }
        Type::FixedString(_) => Value::Str(text(&raw[..unpadded(raw)])),
        Type::String(_) => Value::Str(text(raw)),
        Type::FixedBytes(_) | Type::Bytes(_) => Value::Bytes(raw),
    }
}

fn unpadded(raw: &[u8]) -> usize {
    raw.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1)
}

/// Rows are checked when they are written, and a checksum covers them, so bytes
/// that are not UTF-8 are a bug. An empty string would hide it.
fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a stored string is UTF-8")
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
    /// The number of the column in the table.
    #[doc(hidden)]
    fn resolve(&self, row: &Row<'_>) -> Result<usize>;
}

impl ColumnRef for usize {
    #[inline]
    fn resolve(&self, row: &Row<'_>) -> Result<usize> {
        if *self < row.encoded.schema.columns.len() {
            return Ok(*self);
        }
        Err(Error::UnknownColumn { table: row.encoded.schema.name.clone(), column: self.to_string() })
    }
}

impl ColumnRef for &str {
    fn resolve(&self, row: &Row<'_>) -> Result<usize> {
        row.encoded.schema.column(self)
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
    /// NULL, does not convert to `T`; [`Error::OutOfLine`].
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
        let n = column.resolve(self)?;
        let value = match self.encoded.stored(n) {
            Stored::Null => Value::Null,
            Stored::Value(value) => value,
            Stored::OutOfLine { .. } => {
                return Err(Error::OutOfLine { column: self.encoded.schema.columns[n].name.clone() });
            }
        };
        T::from_value(value).ok_or_else(|| self.mismatch(n, &value, std::any::type_name::<T>()))
    }

    #[cold]
    fn mismatch(&self, n: usize, value: &Value<'_>, wanted: &str) -> Error {
        let column = &self.encoded.schema.columns[n];
        let got =
            if matches!(value, Value::Null) { format!("NULL read as {wanted}") } else { wanted.to_owned() };
        wrong_type(self.encoded.schema, column, &got)
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
        match self.encoded.stored(n) {
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
        self.encoded.schema.columns.len()
    }

    /// Whether there are no columns; never true.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
        for (n, column) in self.encoded.schema.columns.iter().enumerate() {
            match self.encoded.stored(n) {
                Stored::Null => map.entry(&column.name, &Value::Null),
                Stored::Value(value) => map.entry(&column.name, &value),
                Stored::OutOfLine { len, .. } => {
                    map.entry(&column.name, &format_args!("<{len} bytes out of line>"))
                }
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
