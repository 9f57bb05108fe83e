//! What the engine tells of itself while a run is measured.

use std::time::Instant;

use pantile::Database;
use pantile::stats::{Stats, TableSpace};

use crate::cpu::{Cpu, CpuTime};
use crate::load::Observer;
use crate::record::{Chains, Second};
use crate::runner;

/// Tuples of each table whose chains are measured every second: few, as that takes time.
const CHAINS_OF_A_SECOND: u64 = 500;

/// The same when measuring ends.
const CHAINS_OF_A_RUN: u64 = 10_000;

/// Measuring chains takes at most one part in this many of the time: those that nobody shortens
/// take longer every second.
const PARTS: u32 = 200;

/// Below this many seconds a trend is noise.
const SHORTEST_TREND: f64 = 10.0;

/// What was sampled.
#[derive(Default)]
pub struct Samples {
    /// When measuring began.
    pub before: Stats,
    /// When it ended.
    pub after: Stats,
    /// Processor time taken between.
    pub cpu: Cpu,
    /// When it ended.
    pub chains: Chains,
    /// When it ended, by table.
    pub tables: Vec<TableSpace>,
    /// Between.
    pub seconds: Vec<Second>,
}

/// Takes samples on the thread that measures, which has nothing else to do.
pub struct Sampler<'a> {
    db: &'a Database,
    observer: &'a dyn Observer,
    last: Stats,
    began: CpuTime,
    /// The chains of some tuples, and when they are looked at again.
    chains: (pantile::stats::Chains, Instant),
    /// The longest chain so far.
    longest: u64,
    taken: Samples,
}

impl<'a> Sampler<'a> {
    pub fn new(db: &'a Database, observer: &'a dyn Observer) -> Self {
        let (last, began) = (Stats::default(), CpuTime::default());
        let chains = (pantile::stats::Chains::default(), Instant::now());
        Self { db, observer, last, began, chains, longest: 0, taken: Samples::default() }
    }

    /// The chains of some tuples, as they are or were some seconds ago.
    fn chains(&mut self) -> pantile::stats::Chains {
        let began = Instant::now();
        if began >= self.chains.1 {
            let sampled = self.db.chains(CHAINS_OF_A_SECOND);
            self.longest = self.longest.max(sampled.max);
            self.chains = (sampled, began + began.elapsed() * PARTS);
        }
        self.chains.0
    }

    pub fn begin(&mut self) {
        self.taken.before = self.db.stats();
        self.last = self.taken.before;
        self.began = CpuTime::now();
    }

    pub fn second(&mut self, second: runner::Second) {
        let stats = self.db.stats();
        let collector = stats.collector.since(&self.last.collector);
        let chains = self.chains();
        let sample = Second {
            second: second.number,
            seconds: second.seconds,
            transactions: second.transactions,
            queries: second.queries,
            medium_bytes: stats.medium_bytes,
            used_bytes: used_bytes(&stats),
            live_bytes: stats.live_bytes,
            dram_bytes: stats.dram_bytes,
            tile_bytes: stats.tile_bytes,
            blocks_reclaimed: collector.blocks_reclaimed,
            survivors_relocated: collector.survivors_relocated,
            pending_blocks: collector.pending_blocks,
            queued_blocks: collector.queued_blocks,
            frozen_blocks: collector.frozen_blocks,
            long_tx_blocks: collector.long_tx_blocks,
            kept_tiles: collector.kept_tiles,
            queue_capacity: collector.queue_capacity,
            chain_mean: chains.mean,
            stored_mean: chains.stored_mean,
            accesses_per_tuple: accesses_per_tuple(&self.last, &stats),
        };
        self.last = stats;
        self.observer.second(&sample);
        self.taken.seconds.push(sample);
    }

    pub fn end(&mut self) {
        self.taken.cpu = CpuTime::now().since(&self.began);
        // The totals are of the same time as the seconds.
        let after = if self.taken.seconds.is_empty() { self.db.stats() } else { self.last };
        let mut sampled = self.db.chains(CHAINS_OF_A_RUN);
        sampled.max = sampled.max.max(self.longest);
        let accesses_per_tuple = accesses_per_tuple(&self.taken.before, &after);
        self.taken.chains = Chains { sampled, accesses_per_tuple };
        self.taken.after = after;
        self.taken.tables = self.db.space_by_table();
    }

    pub fn into_samples(self) -> Samples {
        self.taken
    }
}

/// Versions that transactions and the collector looked at between two moments, per tuple.
fn accesses_per_tuple(before: &Stats, after: &Stats) -> f64 {
    let accesses = |stats: &Stats| stats.versions_read + stats.collector.versions_traversed;
    accesses(after).saturating_sub(accesses(before)) as f64 / after.tuples.max(1) as f64
}

/// What blocks in use take.
pub fn used_bytes(stats: &Stats) -> u64 {
    stats.medium_bytes.saturating_sub(stats.free_bytes)
}

/// How fast the medium grows against the live data in the last half of the
/// seconds, by least squares, in percent of the mean per minute; `None` where
/// they are too few.
pub fn ratio_trend(seconds: &[Second]) -> Option<f64> {
    let mut at = 0.0;
    let points: Vec<_> = seconds
        .iter()
        .map(|second| {
            at += second.seconds;
            second.ratio().map(|ratio| (at / 60.0, ratio))
        })
        .collect();
    if at < SHORTEST_TREND {
        return None;
    }
    let points: Vec<_> = points[points.len() / 2..].iter().flatten().copied().collect();
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / points.len() as f64;
    let (minute, ratio) = (mean(|point| point.0), mean(|point| point.1));
    let sum =
        |of: &dyn Fn(f64, f64) -> f64| points.iter().map(|p| of(p.0 - minute, p.1 - ratio)).sum::<f64>();
    let spread = sum(&|x, _| x * x);
    (spread > 0.0).then(|| sum(&|x, y| x * y) / spread / ratio * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run whose medium holds as many times 1,000 live bytes as `ratio` says.
    fn run(seconds: usize, ratio: impl Fn(f64) -> f64) -> Vec<Second> {
        let second = |n: usize| Second {
            second: n,
            seconds: 1.0,
            used_bytes: (ratio(n as f64) * 1e6) as u64,
            live_bytes: 1_000_000,
            ..Second::default()
        };
        (1..=seconds).map(second).collect()
    }

    #[test]
    fn a_trend_is_that_of_the_last_half() {
        let grown = run(60, |second| 1.5 + (second - 30.0).min(0.0));
        assert!(ratio_trend(&grown).unwrap().abs() < 1e-6);
        // From 2.25 on average, by 0.01 a second.
        let grows = run(100, |second| 1.5 + second * 0.01);
        let trend = ratio_trend(&grows).unwrap();
        assert!((trend - 100.0 * 0.6 / 2.255).abs() < 0.01, "{trend}");
        let shrinks = run(10, |second| 2.0 - second * 0.01);
        assert!(ratio_trend(&shrinks).unwrap() < 0.0);
    }

    #[test]
    fn a_short_run_or_one_without_data_has_no_trend() {
        assert_eq!(ratio_trend(&run(9, |second| second)), None);
        let empty = vec![Second { seconds: 1.0, ..Second::default() }; 20];
        assert_eq!(ratio_trend(&empty), None);
        assert_eq!(ratio_trend(&[]), None);
    }
}
