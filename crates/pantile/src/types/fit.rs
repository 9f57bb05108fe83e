//! Whether values fit their columns.

use pantile_base::control::{Control, is_removed};

use crate::types::error::{Error, Result};
use crate::types::from_value::FromValue;
use crate::types::layout::Schema;
use crate::types::schema::Type;
use crate::types::value::{Decimal, Value, decimal};

pub(crate) fn wrong_type(schema: &Schema, id: usize, got: &str) -> Error {
    Error::WrongType {
        table: schema.name.clone(),
        column: schema.names[id].clone(),
        expected: schema.columns[id].ty.to_string(),
        got: got.to_owned(),
    }
}

/// Checks that the value fits the column.
#[inline]
pub(crate) fn check(schema: &Schema, id: usize, value: &Value<'_>) -> Result<()> {
    // Most values.
    let fits = match (schema.columns[id].ty, value) {
        (Type::U64, Value::UInt(_))
        | (Type::I64, Value::Int(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::F64, Value::Float(_))
        | (Type::Timestamp, Value::Timestamp(_)) => true,
        (Type::U32, Value::UInt(v)) => u32::try_from(*v).is_ok(),
        (Type::U16, Value::UInt(v)) => u16::try_from(*v).is_ok(),
        (Type::U8, Value::UInt(v)) => u8::try_from(*v).is_ok(),
        (Type::I32, Value::Int(v)) => i32::try_from(*v).is_ok(),
        (Type::Bytes(max), Value::Bytes(b)) => b.len() as u64 <= u64::from(max),
        (Type::String(max), Value::Str(s)) => s.len() as u64 <= u64::from(max),
        (Type::FixedBytes(max), Value::Bytes(b)) => b.len() <= usize::from(max),
        _ => false,
    };
    if fits { Ok(()) } else { check_any(schema, id, value) }
}

/// The same for other values, and what is wrong.
fn check_any(schema: &Schema, id: usize, value: &Value<'_>) -> Result<()> {
    let column = &schema.columns[id];
    let fits = match (column.ty, value) {
        (_, Value::Null) if column.nullable => true,
        (_, Value::Null) => {
            return Err(Error::NotNull { table: schema.name.clone(), column: schema.names[id].clone() });
        }
        (ty, Value::Int(v)) if int_range(ty).is_some() => {
            int_range(ty).is_some_and(|r| r.contains(&i128::from(*v)))
        }
        (ty, Value::UInt(v)) if int_range(ty).is_some() => {
            int_range(ty).is_some_and(|r| r.contains(&i128::from(*v)))
        }
        (Type::F32, Value::Float(v)) => {
            (*v as f32).is_finite() || !v.is_finite() || is_removed(Control::FloatRange)
        }
        (Type::Decimal { precision, scale }, Value::Decimal(_) | Value::Int(_) | Value::UInt(_)) => {
            let fits = |d: Decimal| d.units.unsigned_abs() < 10u128.pow(u32::from(precision));
            decimal(value).rescale(scale).is_some_and(fits)
        }
        (Type::F64, Value::Int(_) | Value::UInt(_)) => f64::from_value(*value).is_ok(),
        (Type::F32, Value::Int(_) | Value::UInt(_)) => f32::from_value(*value).is_ok(),
        (Type::String(max), Value::Str(s)) => return check_len(schema, id, s.len(), max),
        (Type::FixedString(_), Value::Str(s)) if s.ends_with('\0') && !is_removed(Control::FixedPadding) => {
            return Err(out_of_range(schema, id, value));
        }
        (Type::FixedString(max), Value::Str(s)) => return check_len(schema, id, s.len(), max.into()),
        (Type::Bytes(max), Value::Bytes(b)) => return check_len(schema, id, b.len(), max),
        (Type::FixedBytes(max), Value::Bytes(b)) => return check_len(schema, id, b.len(), max.into()),
        (_, other) => return Err(wrong_type(schema, id, other.kind())),
    };
    if fits { Ok(()) } else { Err(out_of_range(schema, id, value)) }
}

/// Whether a value of a column is one of what the column was before it got a wider
/// type or began to take NULL.
#[cold]
pub(crate) fn is_value_of(ty: Type, nullable: bool, value: &Value<'_>) -> bool {
    match (ty, value) {
        (_, Value::Null) => nullable,
        (ty, Value::Int(v)) => int_range(ty).is_some_and(|range| range.contains(&i128::from(*v))),
        (ty, Value::UInt(v)) => int_range(ty).is_some_and(|range| range.contains(&i128::from(*v))),
        (Type::F32, Value::Float(v)) => f64::from(*v as f32).to_bits() == v.to_bits(),
        (Type::Decimal { precision, .. }, Value::Decimal(v)) => {
            v.units.unsigned_abs() < 10u128.pow(u32::from(precision))
        }
        (Type::FixedString(max), Value::Str(s)) => s.len() <= usize::from(max) && !s.ends_with('\0'),
        (Type::String(max), Value::Str(s)) => s.len() as u64 <= u64::from(max),
        (Type::Bytes(max), Value::Bytes(b)) => b.len() as u64 <= u64::from(max),
        // The others do not get wider.
        _ => true,
    }
}

#[cold]
fn out_of_range(schema: &Schema, id: usize, value: &Value<'_>) -> Error {
    Error::OutOfRange {
        table: schema.name.clone(),
        column: schema.names[id].clone(),
        value: value.to_string(),
        takes: range_text(schema.columns[id].ty, value),
    }
}

/// Which values of its kind, or of another that converts, a type takes.
fn range_text(ty: Type, value: &Value<'_>) -> String {
    match ty {
        Type::F32 | Type::F64 if !matches!(value, Value::Float(_)) => {
            "of integers only those that it holds exactly".into()
        }
        Type::F32 => format!("{:?} to {:?}", f32::MIN, f32::MAX),
        Type::Decimal { precision, scale } => {
            format!("{} digits before the point and {scale} after it", precision - scale)
        }
        Type::FixedString(_) => "no string that ends with a zero byte, as padding does".into(),
        ty => int_range(ty).map_or_else(String::new, |range| format!("{} to {}", range.start(), range.end())),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the values of a wider column those are in, and these are not.
    #[test]
    fn values_of_a_column_before_it_was_wider() {
        let decimal = |units| Value::Decimal(Decimal::new(units, 2));
        let cases = [
            (Type::I8, Value::Int(-128), Value::Int(128)),
            (Type::U16, Value::UInt(65_535), Value::UInt(65_536)),
            (Type::F32, Value::Float(0.5), Value::Float(0.1)),
            (Type::F32, Value::Float(f64::NEG_INFINITY), Value::Float(1e300)),
            (Type::Decimal { precision: 4, scale: 2 }, decimal(-9_999), decimal(10_000)),
            (Type::String(2), Value::Str("é"), Value::Str("éa")),
            (Type::Bytes(2), Value::Bytes(&[0, 0]), Value::Bytes(&[0, 0, 0])),
            (Type::FixedString(2), Value::Str("ab"), Value::Str("abc")),
            (Type::FixedString(2), Value::Str("a"), Value::Str("a\0")),
        ];
        for (ty, is_one, is_none) in cases {
            assert!(is_value_of(ty, false, &is_one), "{is_one:?} of {ty}");
            assert!(!is_value_of(ty, true, &is_none), "{is_none:?} of {ty}");
            assert!(is_value_of(ty, true, &Value::Null) && !is_value_of(ty, false, &Value::Null));
        }
    }
}
