//! Medians, intervals of confidence, and what they decide.

use std::sync::Arc;

use pantile_bench::baseline::median;
use serde::{Deserialize, Serialize};

/// Fewest repetitions that decide anything.
pub const FEWEST: usize = 3;

/// Most repetitions of a run. What these would not decide is not repeated.
pub const MOST: usize = 9;

/// A difference that is known to be less than one percent is none.
const SAME: f64 = 0.01;

/// Quantiles of Student's distribution at 0.975, from two degrees of freedom on.
const QUANTILES: [f64; 9] = [4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];

/// The true deviation is at least this share of the one found, with 95 %
/// confidence: `sqrt(n / c)`, where `c` is the quantile of the chi-squared
/// distribution at 0.95 for `n` degrees of freedom, from two on.
const LEAST_DEVIATION: [f64; 9] = [0.578, 0.620, 0.649, 0.672, 0.690, 0.705, 0.718, 0.729, 0.739];

/// The median of some repetitions, their spread, and what they say about the true
/// value.
#[derive(Clone, PartialEq, Debug)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// The interval that contains the true value with 95 % confidence; `None` if there
    /// are fewer than [`FEWEST`] repetitions.
    pub interval: Option<(f64, f64)>,
    /// The number of repetitions.
    pub count: usize,
    /// The keys of the runs that it follows from.
    pub runs: Arc<[String]>,
}

/// What measurements say of a condition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The whole interval meets it.
    Held,
    /// No value in the interval meets it.
    Refuted,
    /// Some values in the interval meet it, or there are too few repetitions.
    Undecided,
}

impl Outcome {
    /// The outcome in words.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Held => "held",
            Outcome::Refuted => "refuted",
            Outcome::Undecided => "undecided",
        }
    }
}

impl Spread {
    /// The spread of these values; `None` if there are none or if one is not a
    /// number.
    pub fn of(figures: &[f64]) -> Option<Self> {
        if figures.iter().any(|figure| !figure.is_finite()) {
            return None;
        }
        let interval = (figures.len() >= FEWEST).then(|| interval(figures));
        Some(Self { median: median(figures)?, interval, count: figures.len(), runs: Arc::new([]) })
    }

    /// The same, with the runs that it follows from.
    pub fn of_runs(figures: &[f64], runs: impl IntoIterator<Item = String>) -> Option<Self> {
        Some(Self { runs: runs.into_iter().collect(), ..Self::of(figures)? })
    }

    /// The same as it may be at best after this many repetitions: the interval as
    /// narrow as the values found allow, around the same middle.
    pub fn at_best(&self, repetitions: usize) -> Self {
        let now = self.count.max(FEWEST);
        let share = |count: usize| quantile(count) / (count as f64).sqrt();
        let least = LEAST_DEVIATION[(now - FEWEST).min(LEAST_DEVIATION.len() - 1)];
        let by = least * share(repetitions.max(now)) / share(now);
        let narrow = |(low, high): (f64, f64)| {
            if low > 0.0 {
                let (middle, reach) = ((low * high).sqrt(), (high / low).powf(by / 2.0));
                (middle / reach, middle * reach)
            } else {
                let (middle, reach) = (f64::midpoint(low, high), (high - low) * by / 2.0);
                (middle - reach, middle + reach)
            }
        };
        Self { interval: self.interval.map(narrow), ..self.clone() }
    }

    /// Whether the true value is above this one.
    pub fn is_above(&self, value: f64) -> Outcome {
        self.decide(|low, _| low > value, |_, high| high < value)
    }

    /// Whether it is below.
    pub fn is_below(&self, value: f64) -> Outcome {
        self.decide(|_, high| high < value, |low, _| low > value)
    }

    /// Whether it is a quotient that is known to be one, within one percent.
    pub fn is_tie(&self) -> bool {
        self.is_above(1.0) == Outcome::Undecided && self.is_between(1.0 - SAME, 1.0 + SAME) == Outcome::Held
    }

    /// Whether it is between these two.
    pub fn is_between(&self, least: f64, most: f64) -> Outcome {
        self.decide(|low, high| low >= least && high <= most, |low, high| high < least || low > most)
    }

    fn decide(&self, holds: impl Fn(f64, f64) -> bool, fails: impl Fn(f64, f64) -> bool) -> Outcome {
        match self.interval {
            Some((low, high)) if holds(low, high) => Outcome::Held,
            Some((low, high)) if fails(low, high) => Outcome::Refuted,
            _ => Outcome::Undecided,
        }
    }

    /// The median and the interval, written like this, or how often it was
    /// measured.
    pub fn told(&self, write: impl Fn(f64) -> String) -> String {
        let about = match (self.interval, self.count) {
            (Some((low, high)), _) => format!("{} to {}", write(low), write(high)),
            (None, 1) => "measured once".to_owned(),
            (None, _) => "measured twice".to_owned(),
        };
        format!("{} ({about})", write(self.median))
    }
}

/// Student's interval, of the logarithms if all values are positive: measured
/// ratios and rates vary by factors.
fn interval(figures: &[f64]) -> (f64, f64) {
    if figures.iter().all(|&figure| figure > 0.0) {
        let logarithms: Vec<_> = figures.iter().map(|figure| figure.ln()).collect();
        let (low, high) = around_mean(&logarithms);
        (low.exp(), high.exp())
    } else {
        around_mean(figures)
    }
}

fn around_mean(figures: &[f64]) -> (f64, f64) {
    let count = figures.len() as f64;
    let mean = figures.iter().sum::<f64>() / count;
    let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
    let reach = quantile(figures.len()) * (squares / (count - 1.0) / count).sqrt();
    (mean - reach, mean + reach)
}

/// Student's, for this many repetitions. The last one is a little too careful for
/// more.
fn quantile(repetitions: usize) -> f64 {
    QUANTILES[(repetitions - FEWEST).min(QUANTILES.len() - 1)]
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

/// A factor, with two significant digits at least.
pub fn times(factor: f64) -> String {
    match factor.abs() {
        size if size >= 10.0 => format!("{factor:.0}x"),
        size if size >= 0.1 || size == 0.0 => format!("{factor:.2}x"),
        size if size >= 0.01 => format!("{factor:.3}x"),
        size if size >= 0.001 => format!("{factor:.4}x"),
        _ => format!("{factor:.1e}x"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_at_best_is_narrower_and_around_the_same() {
        let found = Spread::of(&[1.0, 1.1, 1.25]).unwrap();
        let (low, high) = found.interval.unwrap();
        let (best_low, best_high) = found.at_best(9).interval.unwrap();
        // By hand: 0.578 of the deviation, 2.306 / 3 of it instead of 4.303 / sqrt(3).
        let by = (best_high / best_low).ln() / (high / low).ln();
        assert!((by - 0.1789).abs() < 1e-3, "{by}");
        assert!((low * high - best_low * best_high).abs() < 1e-9);
        let (low, high) = Spread::of(&[-1.0, 0.0, 1.0]).unwrap().at_best(9).interval.unwrap();
        assert!((low + high).abs() < 1e-9 && (high - 0.4444).abs() < 1e-3, "{high}");
        assert_eq!(Spread::of(&[1.0]).unwrap().at_best(9).interval, None);
    }

    #[test]
    fn intervals_decide() {
        // By hand: mean 0.3 of the logarithms, deviation 0.1, 4.303 / sqrt(3) of it.
        let spread = Spread::of(&[0.2f64.exp(), 0.3f64.exp(), 0.4f64.exp()]).unwrap();
        let (low, high) = spread.interval.unwrap();
        assert!((low.ln() - 0.0516).abs() < 1e-3 && (high.ln() - 0.5484).abs() < 1e-3, "{low} {high}");
        assert_eq!(spread.median, 0.3f64.exp());
        assert_eq!(
            (spread.is_above(1.0), spread.is_above(1.2), spread.is_above(1.8)),
            (Outcome::Held, Outcome::Undecided, Outcome::Refuted)
        );
        assert_eq!(
            (spread.is_below(1.0), spread.is_below(1.2), spread.is_below(1.8)),
            (Outcome::Refuted, Outcome::Undecided, Outcome::Held)
        );
        assert_eq!(spread.is_between(1.0, 1.8), Outcome::Held);
        assert_eq!(spread.is_between(1.2, 1.8), Outcome::Undecided);
        assert_eq!(spread.is_between(1.8, 2.0), Outcome::Refuted);
    }

    #[test]
    fn a_tie_is_known_by_its_interval() {
        assert!(Spread::of(&[1.002, 0.999, 1.001]).unwrap().is_tie());
        for other in [&[0.95, 1.0, 1.08][..], &[1.0, 1.0], &[1.005, 1.006, 1.007], &[0.9; 3]] {
            assert!(!Spread::of(other).unwrap().is_tie(), "{other:?}");
        }
        // What excludes one is a difference, however small it is.
        assert_eq!(Spread::of(&[1.005, 1.006, 1.007]).unwrap().is_above(1.0), Outcome::Held);
    }

    #[test]
    fn more_repetitions_decide_more() {
        let some = [1.04, 1.0, 1.09];
        assert_eq!(Spread::of(&some).unwrap().is_above(1.0), Outcome::Undecided);
        let many: Vec<_> = some.iter().chain(&some).chain(&some).copied().collect();
        assert_eq!(Spread::of(&many).unwrap().is_above(1.0), Outcome::Held);
        for few in [&[5.0][..], &[5.0, 5.1]] {
            let spread = Spread::of(few).unwrap();
            assert_eq!((spread.is_above(1.0), spread.interval), (Outcome::Undecided, None));
        }
        // Degrees of freedom beyond the table.
        assert!(Spread::of(&[2.0; 40]).unwrap().is_between(1.99, 2.01) == Outcome::Held);
    }

    #[test]
    fn what_may_be_negative_has_an_interval_too() {
        let (low, high) = Spread::of(&[-1.0, 0.0, 1.0]).unwrap().interval.unwrap();
        assert!((low + 2.484).abs() < 1e-3 && (high - 2.484).abs() < 1e-3, "{low} {high}");
    }

    #[test]
    fn intervals_are_told() {
        let told = |figures: &[f64]| Spread::of(figures).unwrap().told(times);
        assert_eq!(told(&[1.25]), "1.25x (measured once)");
        assert_eq!(told(&[1.25, 1.25]), "1.25x (measured twice)");
        assert_eq!(told(&[1.25; 3]), "1.25x (1.25x to 1.25x)");
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

    #[test]
    fn small_factors_have_two_digits() {
        for (factor, text) in [
            (0.0, "0.00x"),
            (0.25, "0.25x"),
            (0.0512, "0.051x"),
            (-0.0512, "-0.051x"),
            (0.004_56, "0.0046x"),
            (0.000_123, "1.2e-4x"),
        ] {
            assert_eq!(times(factor), text);
        }
    }
}
