//! Values of rows and keys.

use std::ffi::{CStr, c_char, c_int};

use pantile::{Decimal, Value};
use smallvec::SmallVec;

use crate::error::Failure;
use crate::pointer::array;

/// No value. Only nullable columns hold it.
pub const PANTILE_NULL: c_int = 0;
/// A truth value: `as.boolean`.
pub const PANTILE_BOOL: c_int = 1;
/// A signed integer, for integer columns of any width that holds it: `as.integer`.
pub const PANTILE_INT: c_int = 2;
/// An unsigned integer, for integer columns of any width that holds it: `as.natural`.
pub const PANTILE_UINT: c_int = 3;
/// A floating-point number: `as.real`.
pub const PANTILE_FLOAT: c_int = 4;
/// A decimal number: `as.decimal` units of 10 to the power of minus `scale`.
pub const PANTILE_DECIMAL: c_int = 5;
/// UTF-8 text: `as.bytes`, without a zero byte at its end.
pub const PANTILE_TEXT: c_int = 6;
/// Bytes: `as.bytes`.
pub const PANTILE_BYTES: c_int = 7;
/// Microseconds since 1970-01-01 00:00:00 UTC: `as.integer`.
pub const PANTILE_TIMESTAMP: c_int = 8;

/// A signed integer of 128 bits: `high` times 2 to the power of 64, plus `low`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_int128 {
    /// The upper half, with the sign.
    pub high: i64,
    /// The lower half.
    pub low: u64,
}

/// Bytes that lie elsewhere.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_span {
    /// The first one; may be NULL if there are none.
    pub data: *const u8,
    /// How many there are.
    pub len: usize,
}

/// What a value is, by its kind.
#[repr(C)]
#[derive(Clone, Copy)]
pub union pantile_value_as {
    /// Of `PANTILE_BOOL`.
    pub boolean: bool,
    /// Of `PANTILE_INT` and `PANTILE_TIMESTAMP`.
    pub integer: i64,
    /// Of `PANTILE_UINT`.
    pub natural: u64,
    /// Of `PANTILE_FLOAT`.
    pub real: f64,
    /// Of `PANTILE_DECIMAL`.
    pub decimal: pantile_int128,
    /// Of `PANTILE_TEXT` and `PANTILE_BYTES`.
    pub bytes: pantile_span,
}

/// One value of a row or a key. Those that go into a call need to last only as long as the call. Those that come from a
/// row point into it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct pantile_value {
    /// `PANTILE_NULL` to `PANTILE_TIMESTAMP`.
    pub kind: c_int,
    /// Digits after the point of a decimal number.
    pub scale: c_int,
    /// The value.
    pub r#as: pantile_value_as,
}

impl pantile_value {
    fn new(kind: c_int, r#as: pantile_value_as) -> Self {
        Self { kind, scale: 0, r#as }
    }

    /// Text or bytes, by its kind.
    pub(crate) fn of_bytes(kind: c_int, bytes: &[u8]) -> Self {
        let bytes = pantile_span { data: bytes.as_ptr(), len: bytes.len() };
        Self::new(kind, pantile_value_as { bytes })
    }

    /// As C sees a value. It points to where the value's bytes are.
    pub(crate) fn from_value(value: &Value<'_>) -> Self {
        match *value {
            Value::Null => pantile_null(),
            Value::Bool(boolean) => pantile_bool(boolean),
            Value::Int(integer) => pantile_int(integer),
            Value::UInt(natural) => pantile_uint(natural),
            Value::Float(real) => pantile_float(real),
            Value::Decimal(Decimal { units, scale }) => {
                pantile_decimal((units >> 64) as i64, units as u64, c_int::from(scale))
            }
            Value::Str(text) => Self::of_bytes(PANTILE_TEXT, text.as_bytes()),
            Value::Bytes(bytes) => Self::of_bytes(PANTILE_BYTES, bytes),
            Value::Timestamp(micros) => pantile_timestamp(micros),
            ref other => unreachable!("{} has no kind in C", other.kind()),
        }
    }

    /// As the engine sees it.
    pub(crate) fn to_value<'v>(self) -> Result<Value<'v>, Failure> {
        // SAFETY: the kind says which field was set, and all bits are valid in each
        // but a truth value, which is read as a byte.
        unsafe {
            Ok(match self.kind {
                PANTILE_NULL => Value::Null,
                PANTILE_BOOL => Value::Bool(*(&raw const self.r#as).cast::<u8>() != 0),
                PANTILE_INT => Value::Int(self.r#as.integer),
                PANTILE_UINT => Value::UInt(self.r#as.natural),
                PANTILE_FLOAT => Value::Float(self.r#as.real),
                PANTILE_TIMESTAMP => Value::Timestamp(self.r#as.integer),
                PANTILE_DECIMAL => {
                    let pantile_int128 { high, low } = self.r#as.decimal;
                    let scale = u8::try_from(self.scale).ok().filter(|scale| *scale <= 38);
                    let scale = scale.ok_or_else(|| {
                        Failure::misuse("a decimal number has 0 to 38 digits behind the point")
                    })?;
                    Value::Decimal(Decimal::new(i128::from(high) << 64 | i128::from(low), scale))
                }
                PANTILE_TEXT => {
                    let text = std::str::from_utf8(bytes_of(self.r#as.bytes)?);
                    Value::Str(text.map_err(|_| Failure::misuse("a text is not UTF-8"))?)
                }
                PANTILE_BYTES => Value::Bytes(bytes_of(self.r#as.bytes)?),
                kind => return Err(Failure::misuse(format!("there is no kind {kind} of values"))),
            })
        }
    }
}

fn bytes_of<'b>(bytes: pantile_span) -> Result<&'b [u8], Failure> {
    array(bytes.data, bytes.len, "the bytes of a value")
}

/// Values that a caller has lent for the time of the call. Keys, and rows of few columns, need no memory of their own.
pub(crate) type Values<'v> = SmallVec<[Value<'v>; 8]>;

pub(crate) fn values<'v>(pointer: *const pantile_value, len: usize) -> Result<Values<'v>, Failure> {
    array(pointer, len, "the array of values")?.iter().map(|value| value.to_value()).collect()
}

/// NULL.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_null() -> pantile_value {
    pantile_value::new(PANTILE_NULL, pantile_value_as { natural: 0 })
}

/// A truth value.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_bool(boolean: bool) -> pantile_value {
    pantile_value::new(PANTILE_BOOL, pantile_value_as { boolean })
}

/// A signed integer.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_int(integer: i64) -> pantile_value {
    pantile_value::new(PANTILE_INT, pantile_value_as { integer })
}

/// An unsigned integer.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_uint(natural: u64) -> pantile_value {
    pantile_value::new(PANTILE_UINT, pantile_value_as { natural })
}

/// A floating-point number.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_float(real: f64) -> pantile_value {
    pantile_value::new(PANTILE_FLOAT, pantile_value_as { real })
}

/// A decimal number: `high` times 2 to the power of 64, plus `low`, units of 10 to the power of minus `scale`.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_decimal(high: i64, low: u64, scale: c_int) -> pantile_value {
    let decimal = pantile_int128 { high, low };
    pantile_value { scale, ..pantile_value::new(PANTILE_DECIMAL, pantile_value_as { decimal }) }
}

/// A text that ends with a zero byte; NULL if the pointer is.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_text(text: *const c_char) -> pantile_value {
    if text.is_null() {
        return pantile_null();
    }
    // SAFETY: callers hand over a text that ends with a zero byte.
    pantile_value::of_bytes(PANTILE_TEXT, unsafe { CStr::from_ptr(text) }.to_bytes())
}

/// A text of `len` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_text_of(text: *const c_char, len: usize) -> pantile_value {
    let bytes = pantile_span { data: text.cast(), len };
    pantile_value::new(PANTILE_TEXT, pantile_value_as { bytes })
}

/// `len` bytes.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_bytes(data: *const u8, len: usize) -> pantile_value {
    let bytes = pantile_span { data, len };
    pantile_value::new(PANTILE_BYTES, pantile_value_as { bytes })
}

/// A point in time, in microseconds since 1970-01-01 00:00:00 UTC.
#[unsafe(no_mangle)]
pub extern "C" fn pantile_timestamp(micros: i64) -> pantile_value {
    pantile_value::new(PANTILE_TIMESTAMP, pantile_value_as { integer: micros })
}
