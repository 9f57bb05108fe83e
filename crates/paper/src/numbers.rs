//! Medians and spreads, and when two values differ.

use pantile_bench::baseline::median;

/// The margin added at both ends of a spread, by the number of repetitions, for
/// noise that they have not shown. Three or more repetitions have shown most of
/// it, but even then a difference of less than one percent does not count.
fn unseen_noise(count: usize) -> f64 {
    match count {
        0 | 1 => 0.10,
        2 => 0.05,
        _ => 0.01,
    }
}

/// The median of some repetitions, and their spread.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Smallest.
    pub low: f64,
    /// Largest.
    pub high: f64,
    /// The number of repetitions.
    pub count: usize,
}

/// On which side of a value a measurement lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Entirely above.
    Above,
    /// Entirely below.
    Below,
    /// The value lies within the spread: noise.
    Within,
}

impl Spread {
    /// The spread of these values; `None` if there are none or if one is not a
    /// number.
    pub fn of(figures: &[f64]) -> Option<Self> {
        if figures.iter().any(|figure| !figure.is_finite()) {
            return None;
        }
        let low = figures.iter().copied().reduce(f64::min)?;
        let high = figures.iter().copied().reduce(f64::max)?;
        Some(Self { median: median(figures)?, low, high, count: figures.len() })
    }

    /// The range in which the true value may lie: the spread and a margin,
    /// which is larger for few repetitions.
    pub fn range(&self) -> (f64, f64) {
        let noise = unseen_noise(self.count);
        (self.low - self.low.abs() * noise, self.high + self.high.abs() * noise)
    }

    /// On which side of `value` it lies.
    pub fn side_of(&self, value: f64) -> Side {
        let (low, high) = self.range();
        match () {
            () if low > value => Side::Above,
            () if high < value => Side::Below,
            () => Side::Within,
        }
    }
}

/// A number with as many digits as a reader wants to see.
pub fn figure(number: f64) -> String {
    match number.abs() {
        size if size >= 1000.0 => grouped(number),
        size if size >= 100.0 => format!("{number:.0}"),
        size if size >= 10.0 => trimmed(&format!("{number:.1}")),
        size if size >= 0.1 || size == 0.0 => trimmed(&format!("{number:.2}")),
        size if size >= 0.0005 => trimmed(&format!("{number:.3}")),
        _ => format!("{number:.2e}"),
    }
}

/// Removes trailing zeros.
fn trimmed(decimals: &str) -> String {
    decimals.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A whole number with digits in groups of three.
fn grouped(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let mut text = String::from(if number < 0.0 { "-" } else { "" });
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A share in percent. The sign does not wrap away from the number.
pub fn percent(share: f64) -> String {
    format!("{:.0}\u{a0}%", share * 100.0)
}

/// A factor.
pub fn times(factor: f64) -> String {
    if factor.abs() >= 10.0 { format!("{factor:.0}x") } else { format!("{factor:.2}x") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_repetitions_speak_for_themselves() {
        let spread = Spread::of(&[1.2, 1.05, 1.1]).unwrap();
        assert_eq!((spread.median, spread.low, spread.high), (1.1, 1.05, 1.2));
        assert_eq!(spread.side_of(1.0), Side::Above);
        assert_eq!(spread.side_of(1.06), Side::Within);
        // A difference of less than one percent does not count, however often
        // it is seen.
        assert_eq!(Spread::of(&[1.005, 1.006, 1.007]).unwrap().side_of(1.0), Side::Within);
        assert_eq!(spread.side_of(1.22), Side::Below);
    }

    #[test]
    fn few_repetitions_are_trusted_less() {
        let one = Spread::of(&[1.04]).unwrap();
        assert_eq!(one.side_of(1.0), Side::Within);
        assert_eq!(Spread::of(&[1.12]).unwrap().side_of(1.0), Side::Above);
        assert_eq!(Spread::of(&[0.9, 0.94]).unwrap().side_of(1.0), Side::Below);
        assert_eq!(Spread::of(&[-1.0]).unwrap().range(), (-1.1, -0.9));
    }

    #[test]
    fn what_is_not_a_number_has_no_spread() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn figures_are_short() {
        for (number, text) in [
            (0.0, "0"),
            (0.5, "0.5"),
            (1.254, "1.25"),
            (12.34, "12.3"),
            (50.0, "50"),
            (123.4, "123"),
            (1234.0, "1,234"),
            (-1_234_567.0, "-1,234,567"),
            (0.0123, "0.012"),
            (0.0001234, "1.23e-4"),
        ] {
            assert_eq!(figure(number), text);
        }
        assert_eq!(
            (percent(0.914), times(1.5), times(285.4)),
            ("91\u{a0}%".into(), "1.50x".into(), "285x".into())
        );
    }
}
