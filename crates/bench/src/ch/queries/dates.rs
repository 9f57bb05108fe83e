//! The dates that queries ask for, and the year of a date.

use pantile::Micros;

/// 1999-01-01, before everything: the earliest delivery that Q6 counts.
pub const YEAR_1999: Micros = Micros(915_148_800_000_000);

/// 2007-01-02, before everything: the earliest date of the other queries.
pub const EARLIEST: Micros = Micros(1_167_696_000_000_000);

/// 2100-01-01, after everything.
pub const LATEST: Micros = Micros(4_102_444_800_000_000);

/// The year of a time, in UTC.
pub fn year(time: Micros) -> i64 {
    // Years that begin in March, so that the leap day is their last, counted
    // from the year 0: 400 of them have 146,097 days.
    let days = time.0.div_euclid(86_400_000_000) + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * of_era + of_era / 4 - of_era / 100);
    // January and February are its last 59 or 60 days.
    era * 400 + of_era + i64::from(day >= 306)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_begin_in_january() {
        let (mut first, mut days) = (1970, 0);
        for expected in 1970..2500 {
            let leap = expected % 4 == 0 && (expected % 100 != 0 || expected % 400 == 0);
            let length = if leap { 366 } else { 365 };
            for day in [days, days + 58, days + 59, days + 60, days + length - 1] {
                assert_eq!(year(Micros(day * 86_400_000_000)), expected);
                assert_eq!(year(Micros(day * 86_400_000_000 + 86_399_999_999)), expected);
            }
            days += length;
            first += 1;
        }
        assert_eq!(first, 2500);
        assert_eq!(year(Micros(-1)), 1969);
        assert_eq!((year(EARLIEST), year(Micros(EARLIEST.0 - 2 * 86_400_000_000))), (2007, 2006));
        assert_eq!((year(LATEST), year(Micros(LATEST.0 - 1))), (2100, 2099));
        assert_eq!((year(YEAR_1999), year(Micros(YEAR_1999.0 - 1))), (1999, 1998));
    }
}
