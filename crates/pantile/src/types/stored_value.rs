//! How single values are stored in a row.

use pantile_base::control::{Control, is_removed};

use crate::types::owned_value::OwnedValue;
use crate::types::schema::Type;
use crate::types::value::{Decimal, Value, decimal, float};

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

/// Checks and stores a value in one step, as most can be. Otherwise returns false, and does nothing.
#[inline]
pub(crate) fn put_plain(ty: Type, value: &Value<'_>, out: &mut [u8]) -> bool {
    match (ty, value) {
        (Type::U64, Value::UInt(v)) => put(out, v.to_le_bytes()),
        (Type::U32, Value::UInt(v)) if *v <= u32::MAX.into() => put(out, (*v as u32).to_le_bytes()),
        (Type::U16, Value::UInt(v)) if *v <= u16::MAX.into() => put(out, (*v as u16).to_le_bytes()),
        (Type::U8, Value::UInt(v)) if *v <= u8::MAX.into() => put(out, [*v as u8]),
        (Type::I64, Value::Int(v)) | (Type::Timestamp, Value::Timestamp(v)) => put(out, v.to_le_bytes()),
        (Type::I32, Value::Int(v)) if i32::try_from(*v).is_ok() => put(out, (*v as i32).to_le_bytes()),
        (Type::F64, Value::Float(v)) => put(out, v.to_le_bytes()),
        // Without padding.
        (Type::FixedBytes(len), Value::Bytes(v)) if v.len() == usize::from(len) => {
            out[..v.len()].copy_from_slice(v);
        }
        (Type::FixedString(len), Value::Str(v)) if v.len() == usize::from(len) && !v.ends_with('\0') => {
            out[..v.len()].copy_from_slice(v.as_bytes());
        }
        _ => return false,
    }
    true
}

// A copy of a known length is a store, and not a call.
#[inline(always)]
fn put<const N: usize>(out: &mut [u8], bytes: [u8; N]) {
    out[..N].copy_from_slice(&bytes);
}

/// Stores a value that [`check`](crate::types::fit::check) has accepted.
pub(crate) fn put_fixed(ty: Type, value: &Value<'_>, out: &mut [u8]) {
    match (ty, value) {
        (_, Value::Null) if is_removed(Control::NullsAreZero) => {}
        (ty, Value::Null) => out[..ty.fixed_len().unwrap_or(0)].fill(0),
        (Type::F32, value) => put(out, (float(value) as f32).to_le_bytes()),
        (Type::F64, value) => put(out, float(value).to_le_bytes()),
        (Type::Decimal { scale, .. }, value) => {
            let units = decimal(value).rescale(scale).map_or(0, |d| d.units);
            put(out, units.to_le_bytes());
        }
        (Type::FixedBytes(len) | Type::FixedString(len), value) => {
            let bytes = variable_bytes(value);
            out[..bytes.len()].copy_from_slice(bytes);
            if bytes.len() < usize::from(len) {
                out[bytes.len()..usize::from(len)].fill(0);
            }
        }
        (ty, value) => {
            let bits = int_bits(value);
            match ty.fixed_len() {
                Some(8) => put(out, bits.to_le_bytes()),
                Some(4) => put(out, (bits as u32).to_le_bytes()),
                Some(2) => put(out, (bits as u16).to_le_bytes()),
                _ => put(out, [bits as u8]),
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

/// The value that these bytes are, of the length that the type has. `None` for a text that is not
/// UTF-8: rows are checked when they are written, so such bytes have been damaged since.
// Where a type is read, only what it takes of this is left.
#[inline(always)]
pub(crate) fn decode<'a>(ty: Type, raw: &'a [u8]) -> Option<Value<'a>> {
    Some(match ty {
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
        Type::FixedString(_) => Value::Str(str::from_utf8(&raw[..unpadded(raw)]).ok()?),
        Type::String(_) => Value::Str(str::from_utf8(raw).ok()?),
        Type::FixedBytes(_) | Type::Bytes(_) => Value::Bytes(raw),
    })
}

fn unpadded(raw: &[u8]) -> usize {
    raw.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1)
}
