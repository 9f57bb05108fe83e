//! Keys: byte strings whose order is the order of the values, packed into
//! big-endian words for the index.
//!
//! Integers are stored big-endian with the sign flipped, floats by IEEE total
//! order, strings with zero bytes escaped and ended by `00 01`, nullable
//! columns behind a byte that marks NULL (which sorts first). No key is the
//! prefix of another that continues with zero bytes, so padding to whole words
//! keeps keys distinct.

use smallvec::SmallVec;

use crate::types::encoding::{Encoded, Stored};
use crate::types::error::{Error, Result};
use crate::types::fit::{check, is_value_of};
use crate::types::layout::{ColumnLocation, Schema};
use crate::types::schema::Type;
use crate::types::stored_value::int_bits;
use crate::types::value::{Value, decimal, float};

/// A column of an index as it is when the index is made. The keys of the index are
/// made by that as long as it is maintained (I-30): once it has been dropped, the
/// column can change, and transactions that began before still enter their rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyColumn {
    pub id: usize,
    pub ty: Type,
    pub nullable: bool,
}

impl KeyColumn {
    /// The column with this id as it is now.
    pub fn new(schema: &Schema, id: usize) -> Self {
        let column = &schema.columns[id];
        Self { id, ty: column.ty, nullable: column.nullable }
    }
}

/// A key being built; reusable.
#[derive(Default, Clone, Debug)]
pub(crate) struct Key {
    words: SmallVec<[u64; 8]>,
    /// Bytes that the last word has room for.
    room: u32,
    pub has_null: bool,
}

/// The primary key of a row that is looked for. Most have one word, and need no [`Key`].
pub(crate) enum PointKey {
    Word([u64; 1]),
    Words(Key),
}

impl PointKey {
    #[inline]
    pub fn words(&self) -> &[u64] {
        match self {
            PointKey::Word(word) => word,
            PointKey::Words(key) => key.words(),
        }
    }
}

/// The word of a key of one value, for the types that most keys have. `None` for others, and for what the type does not take.
#[inline]
pub(crate) fn word_of(ty: Type, value: &Value<'_>) -> Option<u64> {
    match (ty, value) {
        (Type::U64, Value::UInt(v)) => Some(*v),
        (Type::I64, Value::Int(v)) => Some(order_64(*v)),
        (Type::U32, Value::UInt(v)) => u32::try_from(*v).ok().map(|v| u64::from(v) << 32),
        (Type::I32, Value::Int(v)) => i32::try_from(*v).ok().map(|v| u64::from(order_32(v)) << 32),
        _ => None,
    }
}

impl Key {
    #[inline]
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// Builds the key anew, of what `values` packs.
    #[inline]
    fn pack<R>(&mut self, values: impl FnOnce(&mut Packing<'_>) -> R) -> R {
        self.words.clear();
        let mut to = Packing { words: &mut self.words, word: 0, room: 64, has_null: false };
        let result = values(&mut to);
        if to.room < 64 {
            to.words.push(to.word);
        }
        let Packing { room, has_null, .. } = to;
        self.room = room % 64 / 8;
        self.has_null = has_null;
        result
    }

    /// Appends a tuple id as a word of its own.
    pub fn push_tuple(&mut self, tuple: u64) {
        self.words.push(tuple);
        self.room = 0;
    }

    /// Builds the key, or its first values, from values in the order of `columns`.
    #[inline]
    pub fn set_values(&mut self, schema: &Schema, columns: &[usize], values: &[Value<'_>]) -> Result<()> {
        if values.len() > columns.len() {
            return Err(Error::WrongArity {
                table: schema.name.clone(),
                expected: columns.len(),
                got: values.len(),
            });
        }
        self.pack(|to| {
            for (&n, value) in columns.iter().zip(values) {
                let column = &schema.columns[n];
                // Most keys.
                match (column.ty, value) {
                    (Type::U64, Value::UInt(v)) if !column.nullable => to.push(*v, 8),
                    (Type::I64, Value::Int(v)) if !column.nullable => to.push(order_64(*v), 8),
                    (Type::U32, Value::UInt(v)) if !column.nullable && *v <= 0xffff_ffff => to.push(*v, 4),
                    (Type::I32, Value::Int(v)) if !column.nullable && *v == i64::from(*v as i32) => {
                        to.push(order_32(*v as i32).into(), 4);
                    }
                    (Type::U16, Value::UInt(v)) if !column.nullable && *v <= 0xffff => to.push(*v, 2),
                    (Type::U8, Value::UInt(v)) if !column.nullable && *v <= 0xff => to.push(*v, 1),
                    _ => to.check_and_push(schema, n, value)?,
                }
            }
            Ok(())
        })
    }

    /// Builds the primary key of a stored row.
    pub fn set_primary(&mut self, row: &Encoded<'_>) {
        self.pack(|to| row.schema.primary_key.iter().for_each(|id| to.push_stored(row, *id)));
    }

    /// Builds the part of it that is a column's, by its id.
    pub fn set_primary_column(&mut self, row: &Encoded<'_>, id: usize) {
        self.pack(|to| to.push_stored(row, id));
    }

    /// Builds the key of a stored row in an index of these columns. Returns false if
    /// it has none, because it was written when a column was gone, or with a value
    /// that the column did not take before, or is damaged.
    #[must_use]
    pub fn set_indexed(&mut self, row: &Encoded<'_>, columns: &[KeyColumn]) -> bool {
        self.pack(|to| columns.iter().all(|column| to.push_indexed(row, column)))
    }

    /// The smallest key above every key that starts with this one, or `None`
    /// if there is none.
    pub fn prefix_end(&self) -> Option<SmallVec<[u64; 8]>> {
        let mut words = self.words.clone();
        let last = words.last_mut()?;
        // One more in the last byte written; a carry runs into earlier bytes.
        let unit = 1u64 << (8 * self.room);
        let (sum, overflow) = last.overflowing_add(unit);
        *last = sum;
        if !overflow {
            return Some(words);
        }
        words.pop();
        while let Some(last) = words.last_mut() {
            if let Some(sum) = last.checked_add(1) {
                *last = sum;
                return Some(words);
            }
            words.pop();
        }
        None
    }
}

/// A key whose values are packed into words, one behind the other.
struct Packing<'k> {
    words: &'k mut SmallVec<[u64; 8]>,
    /// The word after those, and the bits that it has room for, from 8 to 64.
    word: u64,
    room: u32,
    has_null: bool,
}

impl Packing<'_> {
    /// Appends the low `len` (1 to 8) bytes of `value`, most significant first.
    #[inline]
    fn push(&mut self, value: u64, len: u32) {
        let bits = 8 * len;
        let value = value & (u64::MAX >> (64 - bits));
        if bits < self.room {
            self.room -= bits;
            self.word |= value << self.room;
            return;
        }
        let left = bits - self.room;
        self.words.push(self.word | value >> left);
        self.room = 64 - left;
        // All bits are shifted out if none is left.
        self.word = value << 1 << (63 - left);
    }

    fn push_escaped(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            if !chunk.contains(&0) {
                self.push_bytes(chunk);
                continue;
            }
            for &byte in chunk {
                self.push(u64::from(byte), 1);
                if byte == 0 {
                    self.push(0xff, 1);
                }
            }
        }
        self.push(1, 2);
    }

    fn push_fixed(&mut self, bytes: &[u8], len: usize) {
        bytes.chunks(8).for_each(|chunk| self.push_bytes(chunk));
        for _ in bytes.len()..len {
            self.push(0, 1);
        }
    }

    /// Appends up to eight bytes.
    fn push_bytes(&mut self, bytes: &[u8]) {
        let word = bytes.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.push(word, bytes.len() as u32);
    }

    #[inline]
    fn push_value(&mut self, ty: Type, value: &Value<'_>) {
        match (ty, value) {
            (Type::Bool | Type::U8, v) => self.push(int_bits(v), 1),
            (Type::U16, v) => self.push(int_bits(v), 2),
            (Type::U32, v) => self.push(int_bits(v), 4),
            (Type::U64, v) => self.push(int_bits(v), 8),
            (Type::I8, v) => self.push(int_bits(v) ^ (1 << 7), 1),
            (Type::I16, v) => self.push(int_bits(v) ^ (1 << 15), 2),
            (Type::I32, v) => self.push(order_32(int_bits(v) as i32).into(), 4),
            (Type::I64 | Type::Timestamp, v) => self.push(order_64(int_bits(v) as i64), 8),
            (Type::F32, v) => self.push(u64::from(total_order_32(float(v) as f32)), 4),
            (Type::F64, v) => self.push(total_order_64(float(v)), 8),
            (Type::Decimal { scale, .. }, v) => {
                let units = decimal(v).rescale(scale).map_or(0, |d| d.units) as u128 ^ (1 << 127);
                self.push((units >> 64) as u64, 8);
                self.push(units as u64, 8);
            }
            (Type::FixedBytes(len), Value::Bytes(b)) => self.push_fixed(b, usize::from(len)),
            (Type::FixedString(len), Value::Str(s)) => self.push_fixed(s.as_bytes(), usize::from(len)),
            (Type::Bytes(_), Value::Bytes(b)) => self.push_escaped(b),
            (Type::String(_), Value::Str(s)) => self.push_escaped(s.as_bytes()),
            // `fit::check` rejects all other pairs.
            (ty, value) => unreachable!("{} in a {} column", value.kind(), ty),
        }
    }

    fn check_and_push(&mut self, schema: &Schema, n: usize, value: &Value<'_>) -> Result<()> {
        check(schema, n, value)?;
        self.push_column(schema.columns[n].ty, schema.columns[n].nullable, value);
        Ok(())
    }

    fn push_stored(&mut self, row: &Encoded<'_>, id: usize) {
        let column = &row.schema.columns[id];
        // Most keys. Columns of the primary key do not take NULL.
        if let ColumnLocation::Fixed(_) = column.place
            && column.ty == column.stored
        {
            match (column.ty, row.raw_of_any(column).unwrap_or_default()) {
                (Type::U64, &[a, b, c, d, e, f, g, h]) => {
                    return self.push(u64::from_le_bytes([a, b, c, d, e, f, g, h]), 8);
                }
                (Type::I64, &[a, b, c, d, e, f, g, h]) => {
                    return self.push(order_64(i64::from_le_bytes([a, b, c, d, e, f, g, h])), 8);
                }
                (Type::U32, &[a, b, c, d]) => {
                    return self.push(u32::from_le_bytes([a, b, c, d]).into(), 4);
                }
                (Type::I32, &[a, b, c, d]) => {
                    return self.push(order_32(i32::from_le_bytes([a, b, c, d])).into(), 4);
                }
                (Type::U16, &[a, b]) => return self.push(u16::from_le_bytes([a, b]).into(), 2),
                (Type::U8, &[a]) => return self.push(a.into(), 1),
                _ => {}
            }
        }
        let value = match row.stored_of_any(column) {
            Some(Stored::Value(value)) => value,
            // Columns of the primary key are too short to be stored out of line. That of a damaged row is
            // no key that anybody looks for.
            Some(Stored::Null | Stored::OutOfLine { .. }) | None => Value::Null,
        };
        self.push_column(column.ty, column.nullable, &value);
    }

    fn push_indexed(&mut self, row: &Encoded<'_>, of: &KeyColumn) -> bool {
        let column = &row.schema.columns[of.id];
        if matches!(column.place, ColumnLocation::Dropped) {
            return false;
        }
        let value = match row.stored_of_any(column) {
            Some(Stored::Value(value)) => value,
            Some(Stored::Null) => Value::Null,
            // Columns of an index are too short for that, before they get wider. A row that is damaged
            // may be read before anything verifies it.
            Some(Stored::OutOfLine { .. }) | None => return false,
        };
        let has_changed = (column.ty, column.nullable) != (of.ty, of.nullable);
        if has_changed && !is_value_of(of.ty, of.nullable, &value) {
            return false;
        }
        self.push_column(of.ty, of.nullable, &value);
        true
    }

    #[inline]
    fn push_column(&mut self, ty: Type, nullable: bool, value: &Value<'_>) {
        let is_null = matches!(value, Value::Null);
        if nullable {
            self.push(u64::from(!is_null), 1);
        }
        if is_null {
            self.has_null = true;
        } else {
            self.push_value(ty, value);
        }
    }
}

/// A signed number as the unsigned one that has its place in the order.
#[inline]
fn order_64(v: i64) -> u64 {
    v as u64 ^ 1 << 63
}

#[inline]
fn order_32(v: i32) -> u32 {
    v as u32 ^ 1 << 31
}

fn total_order_64(v: f64) -> u64 {
    let bits = v.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn total_order_32(v: f32) -> u32 {
    let bits = v.to_bits();
    if bits >> 31 == 1 { !bits } else { bits | (1 << 31) }
}

#[cfg(test)]
#[path = "key_test.rs"]
mod tests;
