//! Values of rows and keys.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

/// A decimal number: `units` divided by ten to the power of `scale`.
///
/// Numbers are compared and hashed by their value, whatever their scales. The scale says how many digits are
/// shown after the point.
///
/// ```
/// use pantile::{Decimal, Value};
/// let price = Decimal::new(1999, 2);
/// assert_eq!(price.to_string(), "19.99");
/// assert_eq!(price.rescale(3), Some(Decimal::new(19990, 3)));
/// assert_eq!(Value::from(price), Value::Decimal(price));
/// let (short, long) = (Decimal::new(199, 1), Decimal::new(1990, 2));
/// assert_eq!(short, long);
/// assert_eq!((short.to_string(), long.to_string()), ("19.9".into(), "19.90".into()));
/// assert!(price > short);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Decimal {
    /// The digits, as a whole number of `10^-scale`.
    pub units: i128,
    /// Digits after the decimal point, at most 38.
    pub scale: u8,
}

impl Decimal {
    /// The number `units` times `10^-scale`.
    ///
    /// ```
    /// assert_eq!(pantile::Decimal::new(-105, 2).to_string(), "-1.05");
    /// ```
    pub const fn new(units: i128, scale: u8) -> Self {
        Self { units, scale }
    }

    /// The same number with `scale` digits after the point, or `None` if it
    /// would lose digits or overflow.
    pub fn rescale(self, scale: u8) -> Option<Self> {
        let factor = 10i128.checked_pow(u32::from(scale.abs_diff(self.scale)))?;
        let units = if scale >= self.scale {
            self.units.checked_mul(factor)?
        } else if self.units % factor == 0 {
            self.units / factor
        } else {
            return None;
        };
        Some(Self { units, scale })
    }

    /// The same number with the fewest digits after the point, which equal numbers share.
    fn shortest(self) -> Self {
        let Self { mut units, mut scale } = self;
        if units == 0 {
            return Self::default();
        }
        while scale > 0 && units % 10 == 0 {
            (units, scale) = (units / 10, scale - 1);
        }
        Self { units, scale }
    }

    /// Compares with a number that has as many digits after the point or more.
    fn cmp_longer(self, longer: Self) -> Ordering {
        let factor = 10i128.checked_pow(u32::from(longer.scale - self.scale));
        match factor.and_then(|factor| self.units.checked_mul(factor)) {
            Some(units) => units.cmp(&longer.units),
            // No units are as far from zero as the product would be.
            None if self.units != 0 => self.units.cmp(&0),
            None => 0.cmp(&longer.units),
        }
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match self.scale <= other.scale {
            true => self.cmp_longer(*other),
            false => other.cmp_longer(*self).reverse(),
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Decimal {}

impl Hash for Decimal {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Self { units, scale } = self.shortest();
        (units, scale).hash(state);
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:0>1$}", self.units.unsigned_abs(), usize::from(self.scale) + 1);
        let (whole, part) = digits.split_at(digits.len() - usize::from(self.scale));
        let sign = if self.units < 0 { "-" } else { "" };
        if part.is_empty() { write!(f, "{sign}{whole}") } else { write!(f, "{sign}{whole}.{part}") }
    }
}

/// The text is not a decimal number that [`Decimal`] holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParseDecimalError;

impl fmt::Display for ParseDecimalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a decimal number like -12.50 was expected, with at most 38 digits")
    }
}

impl std::error::Error for ParseDecimalError {}

/// Reads the text that `Display` writes. Zeros at the end of the fraction are dropped.
///
/// ```
/// use pantile::Decimal;
/// assert_eq!("-12.50".parse(), Ok(Decimal::new(-125, 1)));
/// assert!("1e3".parse::<Decimal>().is_err());
/// ```
impl FromStr for Decimal {
    type Err = ParseDecimalError;

    fn from_str(text: &str) -> Result<Self, ParseDecimalError> {
        parse_decimal(text).ok_or(ParseDecimalError)
    }
}

fn parse_decimal(text: &str) -> Option<Decimal> {
    let (is_negative, digits) = match text.as_bytes() {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let point = digits.iter().position(|c| *c == b'.').unwrap_or(digits.len());
    let (whole, part) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    // Zeros at the end may be more than a decimal has room for.
    let kept = part.iter().rposition(|c| *c != b'0').map_or(0, |last| last + 1);
    if whole.is_empty() && part.is_empty() || !part.iter().all(u8::is_ascii_digit) || kept > 38 {
        return None;
    }
    let mut units = 0i128;
    for c in whole.iter().chain(&part[..kept]) {
        let digit = i128::from(c.is_ascii_digit().then(|| c - b'0')?);
        units = units.checked_mul(10)?.checked_add(digit)?;
    }
    Some(Decimal::new(if is_negative { -units } else { units }, kept as u8))
}

/// One value of a row or a key.
///
/// Integers of any width convert with `into()`; whether they fit the column
/// is checked when the row is written.
///
/// ```
/// use pantile::Value;
/// let row: [Value; 3] = [7u64.into(), "seven".into(), Value::Null];
/// assert_eq!(row[0], Value::UInt(7));
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value<'a> {
    /// No value. Only nullable columns hold it.
    Null,
    /// A truth value.
    Bool(bool),
    /// A signed integer, for integer columns of any width that holds it.
    Int(i64),
    /// An unsigned integer, for integer columns of any width that holds it.
    UInt(u64),
    /// A floating-point number, for `F32` and `F64` columns.
    Float(f64),
    /// A decimal number.
    Decimal(Decimal),
    /// A string.
    Str(&'a str),
    /// A string of bytes.
    Bytes(&'a [u8]),
    /// Microseconds since 1970-01-01 00:00:00 UTC.
    Timestamp(i64),
}

impl Value<'_> {
    /// The kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "NULL",
            Value::Bool(_) => "a bool",
            Value::Int(_) => "a signed integer",
            Value::UInt(_) => "an unsigned integer",
            Value::Float(_) => "a float",
            Value::Decimal(_) => "a decimal",
            Value::Str(_) => "a string",
            Value::Bytes(_) => "bytes",
            Value::Timestamp(_) => "a timestamp",
        }
    }
}

/// As messages show it: strings in quotes, bytes in hexadecimal, a timestamp by
/// its microseconds.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Bool(v) => v.fmt(f),
            Value::Int(v) | Value::Timestamp(v) => v.fmt(f),
            Value::UInt(v) => v.fmt(f),
            Value::Float(v) => fmt::Debug::fmt(v, f),
            Value::Decimal(v) => v.fmt(f),
            Value::Str(v) => fmt::Debug::fmt(v, f),
            Value::Bytes(v) => v.iter().try_for_each(|byte| write!(f, "{byte:02x}")),
        }
    }
}

macro_rules! value_from {
    ($($source:ty => $variant:ident as $target:ty),* $(,)?) => {
        $(impl From<$source> for Value<'_> {
            #[inline]
            fn from(value: $source) -> Self {
                Value::$variant(<$target>::from(value))
            }
        })*
    };
}

value_from! {
    bool => Bool as bool,
    i8 => Int as i64, i16 => Int as i64, i32 => Int as i64, i64 => Int as i64,
    u8 => UInt as u64, u16 => UInt as u64, u32 => UInt as u64, u64 => UInt as u64,
    f32 => Float as f64, f64 => Float as f64,
    Decimal => Decimal as Decimal,
}

impl<'a> From<&'a str> for Value<'a> {
    #[inline]
    fn from(value: &'a str) -> Self {
        Value::Str(value)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    #[inline]
    fn from(value: &'a String) -> Self {
        Value::Str(value)
    }
}

impl<'a> From<&'a Vec<u8>> for Value<'a> {
    #[inline]
    fn from(value: &'a Vec<u8>) -> Self {
        Value::Bytes(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    #[inline]
    fn from(value: &'a [u8]) -> Self {
        Value::Bytes(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Microseconds since 1970-01-01 UTC: the value of a column of [`Type::Timestamp`](crate::Type::Timestamp).
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
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Micros(pub i64);

impl From<Micros> for Value<'_> {
    fn from(value: Micros) -> Self {
        Value::Timestamp(value.0)
    }
}

/// A number as a column of floats takes it.
#[inline]
pub(crate) fn float(value: &Value<'_>) -> f64 {
    match *value {
        Value::Float(v) => v,
        Value::Int(v) => v as f64,
        Value::UInt(v) => v as f64,
        _ => 0.0,
    }
}

/// A number as a column of decimals takes it.
#[inline]
pub(crate) fn decimal(value: &Value<'_>) -> Decimal {
    match *value {
        Value::Decimal(v) => v,
        Value::Int(v) => Decimal::new(v.into(), 0),
        Value::UInt(v) => Decimal::new(v.into(), 0),
        _ => Decimal::new(0, 0),
    }
}
