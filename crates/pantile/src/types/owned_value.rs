//! Values that own their strings and bytes.

use crate::types::value::{Decimal, Value};

/// A value that borrows nothing, to be kept and compared.
///
/// ```
/// use pantile::{OwnedValue, Value};
/// let kept = OwnedValue::from(Value::Str("seven"));
/// assert_eq!(kept, OwnedValue::Str("seven".into()));
/// assert_eq!(kept.as_value(), Value::Str("seven"));
/// // Floats are compared by their bits.
/// assert_eq!(OwnedValue::from(f64::NAN), OwnedValue::from(f64::NAN));
/// ```
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum OwnedValue {
    /// No value.
    #[default]
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number.
    Float(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// A string.
    Str(String),
    /// A string of bytes.
    Bytes(Vec<u8>),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
}

impl OwnedValue {
    /// The value, borrowed.
    pub fn as_value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::Bool(v) => Value::Bool(*v),
            Self::Int(v) => Value::Int(*v),
            Self::UInt(v) => Value::UInt(*v),
            Self::Float(v) => Value::Float(*v),
            Self::Decimal(v) => Value::Decimal(*v),
            Self::Str(v) => Value::Str(v),
            Self::Bytes(v) => Value::Bytes(v),
            Self::Timestamp(v) => Value::Timestamp(*v),
        }
    }

    /// Values of a row or a key, borrowed.
    pub fn as_values(values: &[OwnedValue]) -> Vec<Value<'_>> {
        values.iter().map(Self::as_value).collect()
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

impl PartialEq for OwnedValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            _ => self.as_value() == other.as_value(),
        }
    }
}

impl Eq for OwnedValue {}

impl From<String> for OwnedValue {
    fn from(text: String) -> Self {
        Self::Str(text)
    }
}

impl From<Vec<u8>> for OwnedValue {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'a, T: Into<Value<'a>>> From<T> for OwnedValue {
    fn from(value: T) -> Self {
        match value.into() {
            Value::Null => Self::Null,
            Value::Bool(v) => Self::Bool(v),
            Value::Int(v) => Self::Int(v),
            Value::UInt(v) => Self::UInt(v),
            Value::Float(v) => Self::Float(v),
            Value::Decimal(v) => Self::Decimal(v),
            Value::Str(v) => Self::Str(v.to_owned()),
            Value::Bytes(v) => Self::Bytes(v.to_owned()),
            Value::Timestamp(v) => Self::Timestamp(v),
        }
    }
}
