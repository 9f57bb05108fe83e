//! How long commits take: a histogram with four buckets to an octave.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Slot;

/// Threads with different slots seldom write the same line.
const SHARDS: usize = 8;
/// The first bucket ends at this power of two of nanoseconds,
const LOWEST: u32 = 8;
/// and the last begins two minutes above it.
pub(crate) const BUCKETS: usize = 116;

#[repr(align(128))]
struct Shard([AtomicU64; BUCKETS]);

/// Commits by the time that they took.
pub(crate) struct Latencies {
    shards: Box<[Shard]>,
}

/// Commits in each bucket.
pub(crate) type Counts = [u64; BUCKETS];

impl Default for Latencies {
    fn default() -> Self {
        let shard = || Shard(std::array::from_fn(|_| AtomicU64::new(0)));
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }
}

fn bucket(nanos: u64) -> usize {
    let Some(octave) = nanos.max(1).ilog2().checked_sub(LOWEST) else { return 0 };
    let quarter = nanos >> (octave + LOWEST - 2) & 3;
    (octave as usize * 4 + quarter as usize).min(BUCKETS - 1)
}

/// The first time in nanoseconds that is too long for the bucket.
pub(crate) fn end_of(bucket: usize) -> u64 {
    (5 + bucket as u64 % 4) << (bucket as u32 / 4 + LOWEST - 2)
}

impl Latencies {
    pub fn note(&self, slot: Slot, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.shards[slot.index() % SHARDS].0[bucket(nanos)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn counts(&self) -> Counts {
        std::array::from_fn(|n| self.shards.iter().map(|shard| shard.0[n].load(Ordering::Relaxed)).sum())
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.shards) as u64
    }
}

/// The time that this share of the commits between two counts took at most, in
/// nanoseconds; 0 if there were none.
pub(crate) fn percentile(counts: &Counts, earlier: &Counts, share: f64) -> u64 {
    let between: Vec<u64> = counts.iter().zip(earlier).map(|(now, then)| now.saturating_sub(*then)).collect();
    let all = between.iter().sum::<u64>();
    let wanted = ((all as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    let reached = between.iter().position(|count| {
        seen += count;
        seen >= wanted
    });
    reached.map_or(0, end_of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_below_the_end_of_its_bucket_and_not_far() {
        for bits in 0..36 {
            for nanos in [1u64 << bits, (1 << bits) + (1 << bits) / 3, (2 << bits) - 1] {
                let end = end_of(bucket(nanos));
                assert!(nanos < end, "{nanos} {end}");
                assert!(end <= nanos + nanos / 4 + 1 || nanos < 1 << LOWEST, "{nanos} {end}");
            }
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert!((1..BUCKETS).all(|n| end_of(n - 1) < end_of(n)));
    }

    #[test]
    fn percentiles_are_of_what_happened_in_between() {
        let latencies = Latencies::default();
        let note = |micros, times| {
            (0..times).for_each(|n| latencies.note(Slot::from_index(n), Duration::from_micros(micros)))
        };
        note(5_000, 50);
        let earlier = latencies.counts();
        assert_eq!(percentile(&earlier, &earlier, 0.5), 0);
        note(10, 98);
        note(1_000, 2);
        let counts = latencies.counts();
        let of = |share| percentile(&counts, &earlier, share) / 1000;
        assert!((10..=12).contains(&of(0.5)), "{}", of(0.5));
        assert!((10..=12).contains(&of(0.98)));
        assert!((1_000..=1_250).contains(&of(0.99)));
        assert!((1_000..=1_250).contains(&of(1.0)));
    }
}
