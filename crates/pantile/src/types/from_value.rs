//! Rust types that values are read as, and which values they take.

use std::borrow::Cow;

use crate::types::owned_value::OwnedValue;
use crate::types::value::{Decimal, Micros, Value};

/// Why a value cannot be read as a type.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Misfit {
    /// The type takes no values of this kind, or no NULL.
    Kind,
    /// The type takes values of this kind, but not this one. The text names those that it takes.
    Range(Cow<'static, str>),
}

/// A Rust type that a column can be read as.
///
/// A number converts if the type's range holds it, whatever the width of the column. An `f32`
/// rounds as a column of [`Type::F32`](crate::Type::F32) does. Floats take integers that they hold
/// exactly, and a [`Decimal`] takes every integer. Integers take neither floats nor decimals.
/// [`Micros`] take no integers, because an integer does not say in which unit it is. Bytes take
/// strings, as UTF-8.
///
/// ```
/// use pantile::{FromValue, Misfit, Value};
///
/// struct Cents(i64);
///
/// impl FromValue<'_> for Cents {
///     fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
///         i64::from_value(value).map(Cents)
///     }
/// }
///
/// assert!(matches!(Cents::from_value(Value::UInt(250)), Ok(Cents(250))));
/// assert!(matches!(Cents::from_value(Value::UInt(u64::MAX)), Err(Misfit::Range(_))));
/// assert!(matches!(Cents::from_value(Value::Null), Err(Misfit::Kind)));
/// ```
pub trait FromValue<'t>: Sized {
    /// Converts a copy of a value that is stored out of line. `None` for types that only borrow.
    const FROM_OWNED: Option<fn(OwnedValue) -> Result<Self, Misfit>> = None;

    /// Converts the value, or returns why it does not fit.
    fn from_value(value: Value<'t>) -> Result<Self, Misfit>;
}

macro_rules! from_integer {
    ($($target:ty),*) => {
        $(impl<'t> FromValue<'t> for $target {
            #[inline]
            fn from_value(value: Value<'t>) -> Result<Self, Misfit> {
                match value {
                    Value::Int(v) => v.try_into().map_err(|_| between(<$target>::MIN, <$target>::MAX)),
                    Value::UInt(v) => v.try_into().map_err(|_| between(<$target>::MIN, <$target>::MAX)),
                    _ => Err(Misfit::Kind),
                }
            }
        })*
    };
}

from_integer!(i8, i16, i32, i64, u8, u16, u32, u64);

#[cold]
fn between(min: impl std::fmt::Display, max: impl std::fmt::Display) -> Misfit {
    Misfit::Range(format!("{min} to {max}").into())
}

impl FromValue<'_> for f64 {
    #[inline]
    fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::Float(v) => Ok(v),
            Value::Int(v) => exact(v.into(), v as f64, v as f64 as i128),
            Value::UInt(v) => exact(v.into(), v as f64, v as f64 as i128),
            _ => Err(Misfit::Kind),
        }
    }
}

impl FromValue<'_> for f32 {
    #[inline]
    fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
        match value {
            Value::Float(v) if (v as f32).is_finite() || !v.is_finite() => Ok(v as f32),
            Value::Float(_) => Err(Misfit::Range(format!("{:?} to {:?}", f32::MIN, f32::MAX).into())),
            Value::Int(v) => exact(v.into(), v as f32, v as f32 as i128),
            Value::UInt(v) => exact(v.into(), v as f32, v as f32 as i128),
            _ => Err(Misfit::Kind),
        }
    }
}

/// `float` if it is the number that was given, `given`.
fn exact<T>(given: i128, float: T, is: i128) -> Result<T, Misfit> {
    if given == is { Ok(float) } else { Err(Misfit::Range("integers that it holds exactly".into())) }
}

macro_rules! from_value {
    ($($target:ty: $($pattern:pat => $result:expr),+;)*) => {
        $(impl<'t> FromValue<'t> for $target {
            #[inline]
            fn from_value(value: Value<'t>) -> Result<Self, Misfit> {
                match value {
                    $($pattern => Ok($result),)+
                    _ => Err(Misfit::Kind),
                }
            }
        })*
    };
}

from_value! {
    bool: Value::Bool(v) => v;
    Decimal: Value::Decimal(v) => v, Value::Int(v) => Decimal::new(v.into(), 0), Value::UInt(v) => Decimal::new(v.into(), 0);
    Micros: Value::Timestamp(v) => Micros(v);
    &'t str: Value::Str(v) => v;
    &'t [u8]: Value::Bytes(v) => v, Value::Str(v) => v.as_bytes();
}

macro_rules! from_owned {
    ($($target:ty: $($kind:ident($v:ident) => $borrowed:expr, $owned:expr),+;)*) => {
        $(impl<'t> FromValue<'t> for $target {
            const FROM_OWNED: Option<fn(OwnedValue) -> Result<Self, Misfit>> = Some(|value| match value {
                $(OwnedValue::$kind($v) => Ok($owned),)+
                _ => Err(Misfit::Kind),
            });

            #[inline]
            fn from_value(value: Value<'t>) -> Result<Self, Misfit> {
                match value {
                    $(Value::$kind($v) => Ok($borrowed),)+
                    _ => Err(Misfit::Kind),
                }
            }
        })*
    };
}

from_owned! {
    String: Str(v) => v.to_owned(), v;
    Vec<u8>: Bytes(v) => v.to_owned(), v, Str(v) => v.as_bytes().to_owned(), v.into_bytes();
    Cow<'t, str>: Str(v) => v.into(), v.into();
    Cow<'t, [u8]>: Bytes(v) => v.into(), v.into(), Str(v) => v.as_bytes().into(), v.into_bytes().into();
}

impl<const N: usize> FromValue<'_> for [u8; N] {
    fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
        let Value::Bytes(bytes) = value else { return Err(Misfit::Kind) };
        bytes.try_into().map_err(|_| Misfit::Range(format!("{N} bytes").into()))
    }
}

impl<'t, T: FromValue<'t>> FromValue<'t> for Option<T> {
    const FROM_OWNED: Option<fn(OwnedValue) -> Result<Self, Misfit>> = match T::FROM_OWNED {
        // NULL is never out of line.
        Some(_) => Some(|value| T::FROM_OWNED.map_or(Err(Misfit::Kind), |from| from(value).map(Some))),
        None => None,
    };

    #[inline]
    fn from_value(value: Value<'t>) -> Result<Self, Misfit> {
        match value {
            Value::Null => Ok(None),
            other => T::from_value(other).map(Some),
        }
    }
}

impl<'t> FromValue<'t> for Value<'t> {
    #[inline]
    fn from_value(value: Value<'t>) -> Result<Self, Misfit> {
        Ok(value)
    }
}

impl FromValue<'_> for OwnedValue {
    const FROM_OWNED: Option<fn(OwnedValue) -> Result<Self, Misfit>> = Some(Ok);

    fn from_value(value: Value<'_>) -> Result<Self, Misfit> {
        Ok(value.into())
    }
}
