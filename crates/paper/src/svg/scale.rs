//! Maps values to positions in a drawing, and finds round numbers for the axes.

/// One axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
    logarithmic: bool,
}

impl Scale {
    /// Maps `low..=high` to `from..=to` linearly.
    pub fn even((low, high): (f64, f64), (from, to): (f64, f64)) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { low, high, from, to, logarithmic: false }
    }

    /// Maps logarithmically, to base 2. All values must be above 0.
    pub fn doubling((low, high): (f64, f64), range: (f64, f64)) -> Self {
        Self { logarithmic: true, ..Self::even((low, if high > low { high } else { low * 2.0 }), range) }
    }

    /// The position of a value.
    pub fn place(&self, value: f64) -> f64 {
        let of = |value: f64| if self.logarithmic { value.log2() } else { value };
        let share = (of(value) - of(self.low)) / (of(self.high) - of(self.low));
        self.from + share * (self.to - self.from)
    }
}

/// About five round numbers, from 0 or from below the smallest value, to the
/// first that is not below `high`.
pub fn ticks(low: f64, high: f64) -> Vec<f64> {
    let (low, high) = (low.min(0.0), high.max(0.0));
    let span = if high > low { high - low } else { 1.0 };
    let step = round_step(span / 5.0);
    let (first, last) = ((low / step).floor() as i64, (high / step - 1e-9).ceil().max(1.0) as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// Round numbers between two others, five or more of them, both ends included
/// if they are round.
pub fn round_between(low: f64, high: f64) -> Vec<f64> {
    let step = round_step((high - low).max(1e-9) / 8.0);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|n| n as f64 * step).collect()
}

/// The next of 1, 2, 2.5, 5 and 10 times a power of ten.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(|factor| factor * power >= step * (1.0 - 1e-9));
    factor.unwrap_or(10.0) * power
}

/// The label of a number on an axis.
pub fn label(value: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value.abs() {
        size if size >= 1e9 => short(value / 1e9) + " G",
        size if size >= 1e6 => short(value / 1e6) + " M",
        size if size >= 1e4 => short(value / 1e3) + " k",
        _ => short(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_figures() {
        let even = Scale::even((0.0, 10.0), (100.0, 0.0));
        assert_eq!((even.place(0.0), even.place(5.0), even.place(10.0)), (100.0, 50.0, 0.0));
        let doubling = Scale::doubling((1.0, 4.0), (0.0, 10.0));
        assert_eq!((doubling.place(1.0), doubling.place(2.0), doubling.place(4.0)), (0.0, 5.0, 10.0));
        for flat in [Scale::even((2.0, 2.0), (0.0, 1.0)), Scale::doubling((2.0, 2.0), (0.0, 1.0))] {
            assert!(flat.place(2.0).is_finite());
        }
    }

    #[test]
    fn ticks_are_round_and_cover_all() {
        assert_eq!(ticks(0.0, 1.0), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0]);
        assert_eq!(ticks(10.0, 47.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]);
        assert_eq!(ticks(0.0, 0.0), [0.0, 0.2]);
        assert_eq!(ticks(-3.0, 7.0).first(), Some(&-4.0));
        for high in [0.37, 1.01, 93.0, 61_234.0, 3.3e9] {
            let ticks = ticks(0.0, high);
            assert!(*ticks.last().unwrap() >= high && (3..=8).contains(&ticks.len()), "{ticks:?}");
        }
    }

    #[test]
    fn round_numbers_stay_within_their_ends() {
        assert_eq!(round_between(1.13, 3.08), [1.25, 1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0]);
        assert_eq!(round_between(0.0, 40.0), [0.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0, 40.0]);
    }

    #[test]
    fn labels_are_short() {
        for (value, text) in
            [(0.0, "0"), (0.25, "0.25"), (1000.0, "1000"), (25_000.0, "25 k"), (2.5e6, "2.5 M"), (1e9, "1 G")]
        {
            assert_eq!(label(value), text);
        }
    }
}
