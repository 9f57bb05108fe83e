//! Values as text, the same in CSV and in JSON.

use std::fmt::Write as _;
use std::io::Write;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use pantile::{Decimal, Type, Value};

use crate::batch::{Batch, Cell};
use crate::timestamp;

/// Writes padding, and reads with or without it.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The NaN that arithmetic makes. Others are written with their bits.
const PLAIN_NAN: u64 = 0x7ff8_0000_0000_0000;
const NAN_BITS: &str = "NaN:";

/// Appends the text of a value other than NULL.
pub fn write(ty: Type, value: &Value<'_>, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    let _ = match *value {
        Value::Bool(value) => write!(out, "{value}"),
        Value::Int(value) => write!(out, "{value}"),
        Value::UInt(value) => write!(out, "{value}"),
        Value::Float(value) if value.is_nan() && value.to_bits() == PLAIN_NAN => write!(out, "NaN"),
        Value::Float(value) if value.is_nan() => write!(out, "{NAN_BITS}{:016x}", value.to_bits()),
        Value::Float(value) if ty == Type::F32 => write!(out, "{:?}", value as f32),
        Value::Float(value) => write!(out, "{value:?}"),
        Value::Decimal(value) => write!(out, "{value}"),
        Value::Str(value) => out.write_all(value.as_bytes()),
        Value::Bytes(value) => {
            let start = out.len();
            out.resize(start + value.len().div_ceil(3) * 4, 0);
            BASE64.encode_slice(value, &mut out[start..]).map_or(Ok(()), |len| {
                out.truncate(start + len);
                Ok(())
            })
        }
        Value::Timestamp(value) => {
            timestamp::write(value, out);
            Ok(())
        }
        _ => Ok(()),
    };
}

/// Reads a value other than NULL for a column of this type. `None` if it does not fit.
pub fn parse(ty: Type, text: &str, into: &mut Batch) -> Option<Cell> {
    match ty {
        Type::Bool => match text {
            "true" | "1" => Some(Cell::Bool(true)),
            "false" | "0" => Some(Cell::Bool(false)),
            _ => None,
        },
        Type::F32 | Type::F64 => parse_float(ty, text).map(Cell::Float),
        Type::Decimal { precision, scale } => {
            let decimal = text.parse::<Decimal>().ok()?.rescale(scale)?;
            if decimal.units.unsigned_abs() >= 10u128.checked_pow(precision.into())? {
                return None;
            }
            into.decimals.push(decimal);
            Some(Cell::Decimal(into.decimals.len() - 1))
        }
        Type::Timestamp => timestamp::parse(text).map(Cell::Timestamp),
        Type::FixedString(max) if !text.ends_with('\0') => parse_string(text, max.into(), into),
        Type::String(max) => parse_string(text, max, into),
        Type::FixedBytes(max) => parse_bytes(text, max.into(), into),
        Type::Bytes(max) => parse_bytes(text, max, into),
        _ => parse_integer(ty, text),
    }
}

fn parse_integer(ty: Type, text: &str) -> Option<Cell> {
    let (low, high) = range(ty)?;
    if low == 0 {
        return text.parse().ok().filter(|value| *value <= high).map(Cell::UInt);
    }
    text.parse()
        .ok()
        .filter(|value: &i64| *value >= low && (*value < 0 || *value as u64 <= high))
        .map(Cell::Int)
}

/// The least and the greatest integer of a type.
fn range(ty: Type) -> Option<(i64, u64)> {
    Some(match ty {
        Type::I8 => (i8::MIN.into(), i8::MAX as u64),
        Type::I16 => (i16::MIN.into(), i16::MAX as u64),
        Type::I32 => (i32::MIN.into(), i32::MAX as u64),
        Type::I64 => (i64::MIN, i64::MAX as u64),
        Type::U8 => (0, u8::MAX.into()),
        Type::U16 => (0, u16::MAX.into()),
        Type::U32 => (0, u32::MAX.into()),
        Type::U64 => (0, u64::MAX),
        _ => return None,
    })
}

fn parse_float(ty: Type, text: &str) -> Option<f64> {
    if let Some(bits) = text.strip_prefix(NAN_BITS) {
        return u64::from_str_radix(bits, 16).ok().map(f64::from_bits).filter(|value| value.is_nan());
    }
    // Read as `f64` a number for `f32` would be rounded twice. One beyond the largest is read as infinity.
    let number = if ty == Type::F32 { text.parse().map(f32::into) } else { text.parse::<f64>() };
    number.ok().filter(|value| value.is_finite()).or_else(|| match text {
        "NaN" | "nan" => Some(f64::from_bits(PLAIN_NAN)),
        "inf" | "Infinity" | "infinity" => Some(f64::INFINITY),
        "-inf" | "-Infinity" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    })
}

/// Keeps a string of at most `max` bytes.
pub fn parse_string(text: &str, max: u32, into: &mut Batch) -> Option<Cell> {
    let len = u32::try_from(text.len()).ok().filter(|len| *len <= max)?;
    let at = into.text.len();
    into.text.push_str(text);
    Some(Cell::Text { at, len })
}

fn parse_bytes(text: &str, max: u32, into: &mut Batch) -> Option<Cell> {
    let at = into.bytes.len();
    if BASE64.decode_vec(text, &mut into.bytes).is_err() {
        // Programs break long lines, as SQLite's `base64` does, which ends each of them.
        into.bytes.truncate(at);
        let one_line: String = text.split_ascii_whitespace().collect();
        BASE64.decode_vec(one_line, &mut into.bytes).ok()?;
    }
    let len = u32::try_from(into.bytes.len() - at).ok().filter(|len| *len <= max)?;
    Some(Cell::Bytes { at, len })
}

/// What a column takes, for messages.
pub fn expected(ty: Type, nullable: bool) -> String {
    let mut text = ty.to_string();
    let _ = match ty {
        Type::Bool => write!(text, " (true or false)"),
        Type::F32 | Type::F64 => write!(text, " (a number, NaN, inf or -inf)"),
        Type::Decimal { scale, .. } => write!(text, " (a decimal number, {scale} digits after the point)"),
        Type::Timestamp => write!(text, " (a time like 2026-01-31T12:00:00.5Z, or microseconds since 1970)"),
        Type::FixedString(max) => write!(text, " (at most {max} bytes, the last not zero)"),
        Type::String(max) => write!(text, " (at most {max} bytes)"),
        Type::FixedBytes(max) => write!(text, " (at most {max} bytes, in base64)"),
        Type::Bytes(max) => write!(text, " (at most {max} bytes, in base64)"),
        _ => {
            let (low, high) = range(ty).unwrap_or_default();
            write!(text, " (a whole number from {low} to {high})")
        }
    };
    if nullable {
        text += " or NULL";
    }
    text
}

/// The beginning of a text, for messages.
pub fn excerpt(text: &[u8]) -> String {
    const MOST: usize = 60;
    let text = String::from_utf8_lossy(&text[..text.len().min(4 * MOST)]);
    let mut excerpt: String = text.chars().take(MOST).collect();
    if excerpt.len() < text.len() {
        excerpt.push('…');
    }
    excerpt
}
