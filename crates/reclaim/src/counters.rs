use std::time::Duration;

use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::stats::CollectorStats;

/// Counts what a collector has done. Written once per step or block, so shared
/// cache lines do not matter.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the fields of `CollectorStats`")]
pub struct Counters {
    pub blocks_reclaimed: AtomicU64,
    pub blocks_bypassed: AtomicU64,
    pub blocks_compacted: AtomicU64,
    pub versions_reclaimed: AtomicU64,
    pub survivors_relocated: AtomicU64,
    pub versions_traversed: AtomicU64,
    pub tombstones_dropped: AtomicU64,
    pub tiles_dropped: AtomicU64,
    headers_written: AtomicU64,
    steps: AtomicU64,
    pause_us_max: AtomicU64,
}

/// Adds to one of the counters.
pub fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl Counters {
    /// Adds block headers that were written to the medium.
    pub fn headers_written(&self, by: u64) {
        add(&self.headers_written, by);
    }

    /// Adds a step that took this long.
    pub fn step(&self, took: Duration) {
        add(&self.steps, 1);
        self.pause_us_max.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
    }

    /// The counters as statistics; what waits is left at zero.
    pub fn snapshot(&self) -> CollectorStats {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CollectorStats {
            blocks_reclaimed: get(&self.blocks_reclaimed),
            blocks_bypassed: get(&self.blocks_bypassed),
            blocks_compacted: get(&self.blocks_compacted),
            versions_reclaimed: get(&self.versions_reclaimed),
            survivors_relocated: get(&self.survivors_relocated),
            versions_traversed: get(&self.versions_traversed),
            tombstones_dropped: get(&self.tombstones_dropped),
            tiles_dropped: get(&self.tiles_dropped),
            headers_written: get(&self.headers_written),
            steps: get(&self.steps),
            pause_us_max: get(&self.pause_us_max),
            ..CollectorStats::default()
        }
    }
}
