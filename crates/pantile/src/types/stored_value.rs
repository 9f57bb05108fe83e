//! How single values are stored in a row.

use pantile_base::control::{Control, is_removed};

use crate::types::owned_value::OwnedValue;
use crate::types::schema::Type;
use crate::types::value::{Decimal, Value};

#[inline]
pub(crate) fn variable_bytes<'a>(value: &Value<'a>) -> &'a [u8] {
    match *value {
        Value::Str(text) => text.as_bytes(),
        Value::Bytes(bytes) => bytes,
        _ => &[],
    }
}

/// The low bytes of an integer value that [`check`] has accepted.
#[inline]
pub(crate) fn int_bits(value: &Value<'_>) -> u64 {
    match *value {
        Value::Int(v) => v as u64,
        Value::UInt(v) => v,
        Value::Bool(v) => u64::from(v),
        Value::Timestamp(v) => v as u64,
        _ => 0,
    }
}

/// A number that [`check`] has accepted for a column of floats.
#[inline]
pub(crate) fn float(value: &Value<'_>) -> f64 {
    match *value {
        Value::Float(v) => v,
        Value::Int(v) => v as f64,
        Value::UInt(v) => v as f64,
        _ => 0.0,
    }
}

/// A number for a column of decimals.
#[inline]
pub(crate) fn decimal(value: &Value<'_>) -> Decimal {
    match *value {
        Value::Decimal(v) => v,
        Value::Int(v) => Decimal::new(v.into(), 0),
        Value::UInt(v) => Decimal::new(v.into(), 0),
        _ => Decimal::new(0, 0),
    }
}

#[inline]
pub(crate) fn put_fixed(ty: Type, value: &Value<'_>, out: &mut [u8]) {
    match (ty, value) {
        (_, Value::Null) if is_removed(Control::NullsAreZero) => {}
        (ty, Value::Null) => out[..ty.fixed_len().unwrap_or(0)].fill(0),
        (Type::F32, value) => out[..4].copy_from_slice(&(float(value) as f32).to_le_bytes()),
        (Type::F64, value) => out[..8].copy_from_slice(&float(value).to_le_bytes()),
        (Type::Decimal { scale, .. }, value) => {
            let units = decimal(value).rescale(scale).map_or(0, |d| d.units);
            out[..16].copy_from_slice(&units.to_le_bytes());
        }
        (Type::FixedBytes(len) | Type::FixedString(len), value) => {
            let bytes = variable_bytes(value);
            out[..bytes.len()].copy_from_slice(bytes);
            if bytes.len() < usize::from(len) {
                out[bytes.len()..usize::from(len)].fill(0);
            }
        }
        // Copies of known lengths are stores, and not calls.
        (ty, value) => {
            let bits = int_bits(value);
            match ty.fixed_len() {
                Some(8) => out[..8].copy_from_slice(&bits.to_le_bytes()),
                Some(4) => out[..4].copy_from_slice(&(bits as u32).to_le_bytes()),
                Some(2) => out[..2].copy_from_slice(&(bits as u16).to_le_bytes()),
                _ => out[0] = bits as u8,
            }
        }
    }
}

/// Appends the bytes of a default as they would be in a row.
pub(crate) fn put_default(ty: Type, value: &OwnedValue, out: &mut Vec<u8>) {
    let value = value.as_value();
    match ty.fixed_len() {
        Some(len) => {
            out.resize(len, 0);
            put_fixed(ty, &value, out);
        }
        None => out.extend_from_slice(variable_bytes(&value)),
    }
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
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

// Where a type is read, only what it takes of this is left.
#[inline(always)]
pub(crate) fn decode<'a>(ty: Type, raw: &'a [u8]) -> Value<'a> {
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
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("a stored string is UTF-8")
}
