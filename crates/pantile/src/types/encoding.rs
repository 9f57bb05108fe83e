//! How rows are encoded, and what is read from their bytes.
//!
//! The layout is described in `docs/format.md`, "Rows": null bitmap, fixed
//! part, out-of-line bitmap, end offsets, variable part; all little-endian.

use pantile_base::control::{Control, is_removed};

use crate::types::columns::Columns;
use crate::types::error::{Error, Result};
use crate::types::fit::check;
use crate::types::layout::{ALWAYS_NULL, Column, ColumnLocation, Schema};
use crate::types::schema::Type;
use crate::types::stored_value::{decode, put_fixed, put_plain, variable_bytes, word};
use crate::types::value::Value;

/// Most bytes of a row, without values out of line.
pub(crate) const MAX_ROW: usize = 65_535;

/// What damage cannot have changed.
const VERIFIED: &str = "the checksum of the row has been verified";

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
    if schema.variable == 0 {
        return encode_fixed(schema, (0..schema.columns.len()).map(|id| (id, value(id))), out);
    }
    for id in (0..schema.columns.len()).filter(|id| schema.columns[*id].is_stored()) {
        check(schema, id, &value(id))?;
    }
    encode_stored(schema, |id| Stored::of(value(id)), out, move_out)
}

/// Appends a row of a layout in which all columns are of fixed length. Each column that is stored has one of
/// the values, which go by ids.
pub(crate) fn encode_fixed<'a>(
    schema: &Schema,
    values: impl Iterator<Item = (usize, Value<'a>)>,
    out: &mut Vec<u8>,
) -> Result<()> {
    debug_assert!(schema.variable == 0);
    let start = out.len();
    out.resize(start + schema.heap_at, 0);
    let row = &mut out[start..];
    for (id, value) in values {
        let column = &schema.columns[id];
        let ColumnLocation::Fixed(at) = column.place else { continue };
        let to = &mut row[at as usize..];
        if put_plain(column.ty, &value, to) {
            continue;
        }
        check(schema, id, &value)?;
        match value {
            Value::Null => put_bit(row, 0, column.null_bit, true),
            value => put_fixed(column.ty, &value, to),
        }
    }
    Ok(())
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
        let is_null = match column.place {
            ColumnLocation::Dropped | ColumnLocation::Later(_) => continue,
            ColumnLocation::Fixed(at) => match value(id) {
                Stored::Value(value) => {
                    put_fixed(column.ty, &value, &mut out[start + at as usize..]);
                    false
                }
                other => matches!(other, Stored::Null),
            },
            ColumnLocation::Variable { nth, large } => {
                let mut value = value(id);
                if let Stored::Value(long) = value
                    && moved.contains(&id)
                {
                    let bytes = variable_bytes(&long);
                    value = Stored::OutOfLine { id: move_out(bytes), len: bytes.len() as u64 };
                }
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
                matches!(value, Stored::Null)
            }
        };
        if is_null {
            put_bit(&mut out[start..], 0, column.null_bit, true);
        }
    }
    Ok(())
}

/// Most bytes that a row of the layout can take when all has moved out of line that can.
pub(crate) fn longest(schema: &Schema) -> usize {
    let variable = schema.columns.iter().filter(|column| column.is_variable());
    let most = |column: &Column| match column.ty {
        _ if column.can_move_out() => OUT_OF_LINE_BYTES,
        Type::Bytes(max) | Type::String(max) => max as usize,
        _ => 0,
    };
    schema.heap_at + variable.map(most).sum::<usize>()
}

/// Fails if a row would be too large in another layout.
pub(crate) fn check_length(row: &Encoded<'_>, to: &Schema) -> Result<()> {
    choose_out_of_line(to, |id| row.stored(id)).map(drop)
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

    /// The bytes of a column, without NULL and out-of-line taken into account. The row has been
    /// verified.
    #[inline(always)]
    pub fn raw(&self, column: &Column) -> &'a [u8] {
        self.raw_of_any(column).expect(VERIFIED)
    }

    /// The same of a row that may be damaged, and then may not have the column. It has a body.
    #[inline(always)]
    pub fn raw_of_any(&self, column: &Column) -> Option<&'a [u8]> {
        match column.place {
            ColumnLocation::Fixed(at) => {
                let at = at as usize;
                self.bytes.get(at..at + column.stored.fixed_len().unwrap_or(0))
            }
            ColumnLocation::Variable { nth, .. } => {
                let start = if nth == 0 { self.schema.heap_at } else { self.end(nth - 1) };
                self.bytes.get(start..self.end(nth))
            }
            ColumnLocation::Later(n) => Some(&self.schema.later[usize::from(n)]),
            ColumnLocation::Dropped => Some(&[]),
        }
    }

    /// Whether all that does not depend on values lies within the row. Otherwise it is damaged.
    #[inline]
    pub fn has_body(&self) -> bool {
        self.bytes.len() >= self.schema.heap_at
    }

    /// A value that is neither NULL nor out of line. `None` if it is damaged. The row has a body.
    #[inline(always)]
    pub fn value(&self, column: &Column) -> Option<Value<'a>> {
        decode(column.stored, self.raw_of_any(column)?)
    }

    #[inline]
    fn end(&self, nth: u16) -> usize {
        let at = self.schema.ends_at + usize::from(nth) * 2;
        usize::from(u16::from_le_bytes([self.bytes[at], self.bytes[at + 1]]))
    }

    #[inline]
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

    /// The value of a column, by id. The row has been verified.
    #[inline]
    pub fn stored(&self, id: usize) -> Stored<'a> {
        self.stored_in(&self.schema.columns[id])
    }

    /// The value of a column. The row has been verified.
    #[inline]
    pub fn stored_in(&self, column: &Column) -> Stored<'a> {
        self.stored_of_any(column).expect(VERIFIED)
    }

    /// The value of a column of a row that may be damaged. `None` if it is.
    #[inline]
    pub fn stored_of_any(&self, column: &Column) -> Option<Stored<'a>> {
        if !self.has_body() {
            return None;
        }
        if self.is_null(column) {
            return Some(Stored::Null);
        }
        if self.is_out_of_line(column) {
            return self.reference(column).map(|(id, len)| Stored::OutOfLine { id, len });
        }
        self.value(column).map(Stored::Value)
    }

    /// The id and the length of a value that is out of line. `None` if they are damaged. The row has
    /// a body.
    pub fn reference(&self, column: &Column) -> Option<(u64, u64)> {
        let raw = self.raw_of_any(column).filter(|raw| raw.len() == OUT_OF_LINE_BYTES)?;
        Some((word(raw, 0), word(raw, 8)))
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

/// The same for a value that has not been checked. Returns false, and does nothing, if that takes more than one
/// look at it, too.
#[inline]
pub(crate) fn overwrite_plain(bytes: &mut [u8], column: &Column, value: &Value<'_>) -> bool {
    let ColumnLocation::Fixed(at) = column.place else {
        return false;
    };
    let is_done = put_plain(column.ty, value, &mut bytes[at as usize..]);
    if is_done {
        put_bit(bytes, 0, column.null_bit, false);
    }
    is_done
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
