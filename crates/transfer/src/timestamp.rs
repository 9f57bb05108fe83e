//! Timestamps as text: RFC 3339 in UTC where its four digits of the year suffice, else microseconds.

use std::io::Write;

const MICROS: i64 = 1_000_000;
const DAY: i64 = 86_400;

/// Days from 0000-03-01 to 1970-01-01. Years that begin in March end with the leap day.
const DAYS_TO_1970: i64 = 719_468;
/// Days of 400 years.
const ERA: i64 = 146_097;

/// Microseconds of 0000-01-01 and of the first moment of the year 10000.
const FIRST: i64 = -62_167_219_200 * MICROS;
const END: i64 = 253_402_300_800 * MICROS;

/// Whether the timestamp is written as a date.
pub fn is_date(micros: i64) -> bool {
    (FIRST..END).contains(&micros)
}

/// Appends a timestamp.
pub fn write(micros: i64, out: &mut Vec<u8>) {
    // Writing to a vector does not fail.
    if !is_date(micros) {
        let _ = write!(out, "{micros}");
        return;
    }
    let (seconds, part) = (micros.div_euclid(MICROS), micros.rem_euclid(MICROS));
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let _ = write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if part != 0 {
        let _ = write!(out, ".{part:06}");
    }
    out.push(b'Z');
}

/// Reads microseconds, or a date and time as in RFC 3339 with at most six digits of a second.
pub fn parse(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| parse_date(text.as_bytes()))
}

fn parse_date(text: &[u8]) -> Option<i64> {
    let (head, rest) = text.split_at_checked(19)?;
    let is_separated = [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|&(at, c)| head[at] == c);
    if !is_separated || !matches!(head[10], b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) = (digits(&head[..4])?, digits(&head[5..7])?, digits(&head[8..10])?);
    let (hour, minute, second) = (digits(&head[11..13])?, digits(&head[14..16])?, digits(&head[17..])?);
    if !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let days = days(year, month, day);
    if day < 1 || date(days) != (year, month, day) {
        return None;
    }
    let (part, zone) = match rest.strip_prefix(b".") {
        Some(rest) => fraction(rest)?,
        None => (0, rest),
    };
    let seconds = days * DAY + hour * 3600 + minute * 60 + second - offset(zone)?;
    Some(seconds * MICROS + part)
}

/// The digits of a second as microseconds, and what follows.
fn fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let len = text.iter().take_while(|c| c.is_ascii_digit()).count();
    let (part, rest) = text.split_at(len);
    let (kept, lost) = part.split_at(len.min(6));
    if kept.is_empty() || lost.iter().any(|&c| c != b'0') {
        return None;
    }
    Some((digits(kept)? * 10i64.pow(6 - kept.len() as u32), rest))
}

/// Seconds by which local time is ahead of UTC.
fn offset(zone: &[u8]) -> Option<i64> {
    let (sign, hour, minute) = match zone {
        b"Z" | b"z" => return Some(0),
        [sign, h1, h2, b':', m1, m2] => (sign, digits(&[*h1, *h2])?, digits(&[*m1, *m2])?),
        _ => return None,
    };
    let seconds = hour * 3600 + minute * 60;
    match sign {
        _ if hour > 23 || minute > 59 => None,
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn digits(text: &[u8]) -> Option<i64> {
    let mut number = 0;
    for c in text {
        number = number * 10 + i64::from(c.is_ascii_digit().then(|| c - b'0')?);
    }
    Some(number)
}

/// Year, month and day of the day that is this many days after 1970-01-01.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + DAYS_TO_1970;
    let (era, day) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // Months from March on have 153 days in each five.
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

/// Days from 1970-01-01.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = if month > 2 { month - 3 } else { month + 9 };
    let day = (153 * month + 2) / 5 + day - 1;
    era * ERA + year * 365 + year / 4 - year / 100 + day - DAYS_TO_1970
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(micros: i64) -> String {
        let mut out = Vec::new();
        write(micros, &mut out);
        String::from_utf8(out).expect("ASCII")
    }

    #[test]
    fn dates_are_read_as_written() {
        for (micros, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59.999999Z"),
            (951_782_400_000_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_000_010, "2023-11-14T22:13:20.000010Z"),
            (FIRST, "0000-01-01T00:00:00Z"),
            (END - 1, "9999-12-31T23:59:59.999999Z"),
            (END, "253402300800000000"),
            (i64::MIN, "-9223372036854775808"),
            (i64::MAX, "9223372036854775807"),
        ] {
            assert_eq!(text(micros), date);
            assert_eq!(parse(date), Some(micros), "{date}");
        }
        let step = 86_399_123_457 * 31;
        for micros in (FIRST..END).step_by(step) {
            assert_eq!(parse(&text(micros)), Some(micros));
        }
    }

    #[test]
    fn dates_of_others_are_read() {
        for (date, micros) in [
            ("1970-01-01T02:00:00+02:00", 0),
            ("1969-12-31 19:30:00.5-04:30", 500_000),
            ("1970-01-01t00:00:00.1234560000z", 123_456),
        ] {
            assert_eq!(parse(date), Some(micros), "{date}");
        }
    }

    #[test]
    fn what_is_no_date_is_refused() {
        for wrong in [
            "",
            "1970-01-01",
            "1970-01-01T00:00:00",
            "1970-13-01T00:00:00Z",
            "1970-02-30T00:00:00Z",
            "1900-02-29T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1970-01-01T24:00:00Z",
            "1970-01-01T00:60:00Z",
            "1970-01-01T00:00:60Z",
            "1970-01-01T00:00:00.Z",
            "1970-01-01T00:00:00.1234567Z",
            "1970-01-01T00:00:00+0200",
            "1970-01-01T00:00:00+24:00",
            "1970-01-01T00:00:00*01:00",
            "1970-01-01T00:00:00ZZ",
            "1970/01/01T00:00:00Z",
            "19x0-01-01T00:00:00Z",
            "größe-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
