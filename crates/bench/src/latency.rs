//! Latencies: one histogram per kind of transaction and client.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Longest latency that is told apart, in nanoseconds; longer ones count as this.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// Latencies of one kind of transaction, to three digits.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

/// What a record says of latencies, in microseconds.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct LatencySummary {
    /// Transactions.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stddev: f64,
    /// Half took at most this long.
    pub p50: f64,
    /// 95 of 100 took at most this long.
    pub p95: f64,
    /// 99 of 100 took at most this long.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl Default for Latencies {
    fn default() -> Self {
        let histogram = Histogram::new_with_max(LONGEST_NS, 3);
        Self(histogram.expect("the bounds of the histogram are constants that it accepts"))
    }
}

impl Latencies {
    /// Adds one.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.0.saturating_record(nanos);
    }

    /// Adds all of another's.
    pub fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }

    /// Number of latencies recorded.
    pub fn count(&self) -> u64 {
        self.0.len()
    }

    /// The figures of a record, or `None` when nothing was recorded.
    pub fn summary(&self) -> Option<LatencySummary> {
        let micros = |nanos: u64| round(nanos as f64 / 1e3);
        (self.count() > 0).then(|| LatencySummary {
            count: self.count(),
            mean: round(self.0.mean() / 1e3),
            stddev: round(self.0.stdev() / 1e3),
            p50: micros(self.0.value_at_quantile(0.50)),
            p95: micros(self.0.value_at_quantile(0.95)),
            p99: micros(self.0.value_at_quantile(0.99)),
            max: micros(self.0.max()),
        })
    }
}

/// To nanoseconds: more digits are not there.
fn round(micros: f64) -> f64 {
    (micros * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_in_microseconds() {
        let mut latencies = Latencies::default();
        for micros in 1..=1000 {
            latencies.record(Duration::from_micros(micros));
        }
        let mut all = Latencies::default();
        all.merge(&latencies);
        let s = all.summary().unwrap();
        assert_eq!(s.count, 1000);
        for (got, want) in [(s.mean, 500.5), (s.p50, 500.0), (s.p95, 950.0), (s.p99, 990.0), (s.max, 1000.0)]
        {
            assert!((got / want - 1.0).abs() < 0.002, "{got} for {want}");
        }
        assert!((s.stddev - 288.7).abs() < 1.0);
    }

    #[test]
    fn nothing_recorded_gives_no_figures() {
        assert_eq!(Latencies::default().summary(), None);
    }

    #[test]
    fn a_latency_beyond_the_range_is_kept_as_the_longest() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::from_secs(1 << 40));
        assert!(latencies.summary().unwrap().max >= 3.59e9);
    }
}
