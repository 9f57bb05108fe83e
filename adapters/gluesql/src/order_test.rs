use std::net::IpAddr;

use gluesql_core::chrono::{NaiveDate, NaiveTime};
use gluesql_core::data::{Interval, Key};

use super::{NAN, bytes_of};

fn ascend(keys: Vec<Key>) {
    for pair in keys.windows(2) {
        assert!(bytes_of(&pair[0]) < bytes_of(&pair[1]), "{pair:?}");
    }
}

fn decimal(text: &str) -> Key {
    Key::Decimal(text.parse().expect("a decimal"))
}

fn date(year: i32) -> NaiveDate {
    NaiveDate::from_ymd_opt(year, 2, 3).expect("a date")
}

#[test]
fn integers_of_all_widths_ascend_together() {
    ascend(vec![
        Key::I128(i128::MIN),
        Key::I64(i64::MIN),
        Key::I16(-300),
        Key::I8(-1),
        Key::U8(0),
        Key::I32(7),
        Key::U64(u64::MAX),
        Key::I128(i128::MAX),
        Key::U128(u128::MAX),
        Key::None,
    ]);
    assert_eq!(bytes_of(&Key::I8(5)), bytes_of(&Key::U128(5)));
}

#[test]
fn floats_ascend() {
    let floats = [f64::NEG_INFINITY, -1e300, -1.5, -1e-310, 0.0, 1e-310, 1.5, f64::INFINITY];
    ascend(floats.map(|v| Key::F64(v.into())).to_vec());
    let floats = [f32::NEG_INFINITY, -1.5, 0.0, 1e-40, 1.5, f32::INFINITY];
    ascend(floats.map(|v| Key::F32(v.into())).to_vec());
    assert_eq!(bytes_of(&Key::F64((-0.0).into())), bytes_of(&Key::F64(0.0.into())));
    assert_eq!(bytes_of(&Key::F32((-0.0).into())), bytes_of(&Key::F32(0.0.into())));
}

/// An index with one has values of two classes, so comparisons look at the rows.
#[test]
fn all_nans_are_one_value_behind_the_numbers() {
    let nans = [f64::NAN, -f64::NAN, f64::from_bits(f64::NAN.to_bits() | 1)];
    for nan in nans {
        assert_eq!(bytes_of(&Key::F64(nan.into())), [NAN]);
        assert_eq!(bytes_of(&Key::F32((nan as f32).into())), [NAN]);
    }
    ascend(vec![Key::F64(f64::INFINITY.into()), Key::F64(f64::NAN.into()), Key::None]);
}

#[test]
fn decimals_ascend_whatever_their_scale() {
    let least = "-79228162514264337593543950335";
    ascend(
        [least, "-2", "-1.5", "-1.25", "-0.5", "-0.05", "0", "0.05", "0.5", "1.05", "1.5", "10", &least[1..]]
            .map(decimal)
            .to_vec(),
    );
    assert_eq!(bytes_of(&decimal("1.50")), bytes_of(&decimal("1.5")));
    assert_eq!(bytes_of(&decimal("-0.0")), bytes_of(&decimal("0")));
    // Why the adapter does not use GlueSQL's bytes.
    let theirs = |text| decimal(text).to_cmp_be_bytes().expect("bytes");
    assert_eq!(theirs("0.5"), theirs("0.05"));
}

#[test]
fn times_ascend() {
    ascend([-4000, -1, 0, 1, 1969, 1970, 2026].map(|year| Key::Date(date(year))).to_vec());
    let time = |nanos| NaiveTime::from_num_seconds_from_midnight_opt(1, nanos).expect("a time");
    ascend([0, 1, 999_999_999].map(|nanos| Key::Time(time(nanos))).to_vec());
    let moments = [date(-4).and_time(time(1)), date(1969).and_time(time(2)), date(1969).and_time(time(3))];
    ascend(moments.map(Key::Timestamp).to_vec());
    ascend(vec![
        Key::Interval(Interval::Microsecond(-5)),
        Key::Interval(Interval::Microsecond(5)),
        Key::Interval(Interval::Month(-1)),
        Key::Interval(Interval::Month(1)),
    ]);
}

#[test]
fn texts_and_others_ascend() {
    ascend(["", "\0", "a", "a\0", "aa", "b", "ä"].map(|text| Key::Str(text.into())).to_vec());
    ascend([&[][..], &[0], &[0, 0], &[1], &[255]].map(|bytes| Key::Bytea(bytes.to_vec())).to_vec());
    ascend(
        ["9.0.0.1", "127.0.0.1", "::1", "fe80::1"]
            .map(|ip| Key::Inet(ip.parse::<IpAddr>().expect("ip")))
            .to_vec(),
    );
    ascend(vec![Key::Uuid(1), Key::Uuid(1 << 90), Key::None]);
    ascend(vec![Key::Bool(false), Key::Bool(true), Key::None]);
}
