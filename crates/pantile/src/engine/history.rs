//! The rings of samples.

use std::collections::VecDeque;
use std::time::Duration;

use crate::engine::latencies::{BUCKETS, Counts};
use crate::types::figures::{History, Sample};

/// Samples kept of seconds: 10 minutes.
const SECONDS: usize = 600;
/// Samples kept of minutes: a day.
const MINUTES: usize = 1440;
const MINUTE_MILLIS: u64 = 60_000;

/// The growth of the last minute, or what there is of it, counts. A shorter time
/// than this says nothing.
const GROWTH_MILLIS: u64 = 60_000;
const LEAST_GROWTH_MILLIS: u64 = 3_000;

/// What is known of the past, and what the next sample is compared with.
pub(crate) struct Rings {
    seconds: VecDeque<Sample>,
    minutes: VecDeque<Sample>,
    /// Commits by their time, at the last sample.
    pub counted: Counts,
    /// Beginnings and ends of transactions at the last sample.
    pub activity: u64,
    /// Nothing had happened for a second at the last sample.
    pub is_quiet: bool,
    /// When the last sample was taken, since the database was opened.
    pub taken: Option<Duration>,
    /// How long it took to take it.
    pub cost: Duration,
}

impl Default for Rings {
    fn default() -> Self {
        Self {
            seconds: VecDeque::new(),
            minutes: VecDeque::new(),
            counted: [0; BUCKETS],
            activity: u64::MAX,
            is_quiet: false,
            taken: None,
            cost: Duration::ZERO,
        }
    }
}

fn push(ring: &mut VecDeque<Sample>, limit: usize, sample: Sample) {
    if ring.len() == limit {
        ring.pop_front();
    }
    ring.push_back(sample);
}

impl Rings {
    pub fn add(&mut self, sample: Sample) {
        push(&mut self.seconds, SECONDS, sample);
        let last = self.minutes.back();
        if last.is_none_or(|last| sample.at_millis.saturating_sub(last.at_millis) >= MINUTE_MILLIS) {
            push(&mut self.minutes, MINUTES, sample);
        }
    }

    pub fn history(&self) -> History {
        self.newest(usize::MAX, usize::MAX)
    }

    /// The newest samples, at most this many.
    pub fn newest(&self, seconds: usize, minutes: usize) -> History {
        let last = |ring: &VecDeque<Sample>, most: usize| {
            ring.iter().skip(ring.len().saturating_sub(most)).copied().collect()
        };
        History { seconds: last(&self.seconds, seconds), minutes: last(&self.minutes, minutes) }
    }

    /// Bytes per second by which the used part of the medium has grown of late, if
    /// it has.
    pub fn growth(&self) -> Option<f64> {
        let last = self.seconds.back()?;
        let since = last.at_millis.saturating_sub(GROWTH_MILLIS);
        let first = self.seconds.iter().find(|sample| sample.at_millis >= since)?;
        let millis = last.at_millis - first.at_millis;
        let bytes = last.used_bytes.checked_sub(first.used_bytes)?;
        (millis >= LEAST_GROWTH_MILLIS && bytes > 0).then(|| bytes as f64 * 1000.0 / millis as f64)
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        ((self.seconds.capacity() + self.minutes.capacity()) * size_of::<Sample>() + size_of::<Self>()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64, used_bytes: u64) -> Sample {
        Sample { at_millis: second * 1000, used_bytes, ..Sample::default() }
    }

    #[test]
    fn the_rings_are_bounded_and_keep_the_newest() {
        let mut rings = Rings::default();
        let day = 24 * 3600;
        (0..day + 7200).for_each(|second| rings.add(sample(second, 0)));
        let history = rings.history();
        assert_eq!((history.seconds.len(), history.minutes.len()), (SECONDS, MINUTES));
        assert_eq!(history.seconds.last(), Some(&sample(day + 7199, 0)));
        assert_eq!(history.seconds[0], sample(day + 7200 - SECONDS as u64, 0));
        assert_eq!(history.minutes[0], sample(7200, 0));
        assert!(rings.bytes() < 400_000, "{}", rings.bytes());
        assert_eq!(rings.newest(3, 2).seconds.len(), 3);
    }

    #[test]
    fn growth_is_that_of_the_last_minute() {
        let mut rings = Rings::default();
        assert_eq!(rings.growth(), None);
        (0..100).for_each(|second| rings.add(sample(second, 1_000_000)));
        assert_eq!(rings.growth(), None, "nothing grows");
        (100..161).for_each(|second| rings.add(sample(second, 1_000_000 + (second - 100) * 500)));
        assert_eq!(rings.growth(), Some(500.0));
        rings.add(sample(161, 10));
        assert_eq!(rings.growth(), None, "it shrinks");
    }
}
