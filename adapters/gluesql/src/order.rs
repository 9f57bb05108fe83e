//! Keys as bytes whose order is that of the keys.
//!
//! GlueSQL's own bytes of keys know no floats, give 0.5 and 0.05 the same bytes, and put negative intervals and dates
//! before our era behind the others. So the adapter has bytes of its own: a class, and what orders the keys of it.
//! Integers of all widths are one class, as SQL compares them with each other.

use std::net::IpAddr;

use gluesql_core::chrono::{Datelike, Timelike};
use gluesql_core::data::{Interval, Key};

/// The class of NULL, which is greater than every value.
pub const NULL: u8 = 0xff;

/// The class of NaN, whatever its bits. SQL finds it by no comparison, so it is not in the order of the numbers; sorted, it
/// follows them.
pub const NAN: u8 = 0xfe;

const BOOL: u8 = 1;
const INTEGER: u8 = 2;
const F32: u8 = 3;
const F64: u8 = 4;
const DECIMAL: u8 = 5;
const TEXT: u8 = 6;
const BYTES: u8 = 7;
const INET_V4: u8 = 8;
const INET_V6: u8 = 9;
const DATE: u8 = 10;
const TIMESTAMP: u8 = 11;
const TIME: u8 = 12;
const MICROSECONDS: u8 = 13;
const MONTHS: u8 = 14;
const UUID: u8 = 15;

/// Digits after the point to which decimals are scaled, all that they have.
const DECIMAL_SCALE: u32 = 28;

/// The bytes of a key.
pub fn bytes_of(key: &Key) -> Vec<u8> {
    match key {
        Key::Bool(v) => of(BOOL, &[&[u8::from(*v)]]),
        Key::I8(v) => integer(i128::from(*v)),
        Key::I16(v) => integer(i128::from(*v)),
        Key::I32(v) => integer(i128::from(*v)),
        Key::I64(v) => integer(i128::from(*v)),
        Key::I128(v) => integer(*v),
        Key::U8(v) => unsigned(u128::from(*v)),
        Key::U16(v) => unsigned(u128::from(*v)),
        Key::U32(v) => unsigned(u128::from(*v)),
        Key::U64(v) => unsigned(u128::from(*v)),
        Key::U128(v) => unsigned(*v),
        Key::F32(v) if v.0.is_nan() => vec![NAN],
        Key::F64(v) if v.0.is_nan() => vec![NAN],
        Key::F32(v) => of(F32, &[&f32_bits(v.0).to_be_bytes()]),
        Key::F64(v) => of(F64, &[&f64_bits(v.0).to_be_bytes()]),
        Key::Decimal(v) => decimal(v.mantissa(), v.scale()),
        Key::Str(v) => of(TEXT, &[v.as_bytes()]),
        Key::Bytea(v) => of(BYTES, &[v]),
        Key::Inet(IpAddr::V4(v)) => of(INET_V4, &[&v.octets()]),
        Key::Inet(IpAddr::V6(v)) => of(INET_V6, &[&v.octets()]),
        Key::Date(v) => of(DATE, &[&signed(v.num_days_from_ce().into())]),
        Key::Timestamp(v) => of(
            TIMESTAMP,
            &[&signed(v.and_utc().timestamp()), &v.and_utc().timestamp_subsec_nanos().to_be_bytes()],
        ),
        Key::Time(v) => {
            of(TIME, &[&v.num_seconds_from_midnight().to_be_bytes(), &v.nanosecond().to_be_bytes()])
        }
        Key::Interval(Interval::Microsecond(v)) => of(MICROSECONDS, &[&signed(*v)]),
        Key::Interval(Interval::Month(v)) => of(MONTHS, &[&signed((*v).into())]),
        Key::Uuid(v) => of(UUID, &[&v.to_be_bytes()]),
        Key::None => vec![NULL],
    }
}

fn of(class: u8, parts: &[&[u8]]) -> Vec<u8> {
    [&[class], parts.concat().as_slice()].concat()
}

fn signed(v: i64) -> [u8; 8] {
    (v ^ i64::MIN).to_be_bytes()
}

/// Numbers beyond `i128` follow all that are not.
fn integer(v: i128) -> Vec<u8> {
    of(INTEGER, &[&[u8::from(v >= 0)], &v.to_be_bytes()])
}

fn unsigned(v: u128) -> Vec<u8> {
    of(INTEGER, &[&[1], &v.to_be_bytes()])
}

/// Both zeros have the same bits.
fn f32_bits(v: f32) -> u32 {
    let bits = (v + 0.0).to_bits();
    if bits >> 31 == 0 { bits ^ (1 << 31) } else { !bits }
}

fn f64_bits(v: f64) -> u64 {
    let bits = (v + 0.0).to_bits();
    if bits >> 63 == 0 { bits ^ (1 << 63) } else { !bits }
}

/// The whole part, which rounds towards zero, and the rest, which has the same sign.
fn decimal(mantissa: i128, scale: u32) -> Vec<u8> {
    let unit = 10i128.pow(scale);
    let rest = (mantissa % unit) * 10i128.pow(DECIMAL_SCALE - scale);
    let part = |v: i128| (v ^ i128::MIN).to_be_bytes();
    of(DECIMAL, &[&part(mantissa / unit), &part(rest)])
}

#[cfg(test)]
#[path = "order_test.rs"]
mod tests;
