//! Counters and gauges.

use std::sync::atomic::{AtomicU64, Ordering};

use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_cc::Slot;
use pantile_media::MediumStats;

/// What a database has done since it was opened, and what it holds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Transactions committed, read-only ones included.
    pub commits: u64,
    /// Transactions rolled back, for whatever reason.
    pub aborts: u64,
    /// Transactions running now.
    pub running: u64,
    /// Contents written by commits.
    pub contents_written: u64,
    /// Their bytes, headers included: the payload of write amplification.
    pub payload_bytes: u64,
    /// What the medium has done.
    pub medium: MediumStats,
    /// Bytes of the medium that are taken.
    pub medium_bytes: u64,
    /// DRAM for control data, in bytes: indexes, anchors, tiles, read marks.
    pub dram_bytes: u64,
    /// The part of `dram_bytes` in indexes.
    pub index_bytes: u64,
    /// The part of `dram_bytes` in anchors.
    pub anchor_bytes: u64,
    /// The part of `dram_bytes` in tiles.
    pub tile_bytes: u64,
    /// Bytes of the newest versions of all tuples, headers included.
    pub live_bytes: u64,
    /// Tuples that exist.
    pub tuples: u64,
    /// Index entries that wait to be cleaned up.
    pub stale_entries: u64,
}

/// What opening the database took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recovery {
    /// Time of the scan and of building the indexes, in seconds.
    pub seconds: f64,
    /// The part of `seconds` spent scanning the medium.
    pub scan_seconds: f64,
    /// Contents read.
    pub contents_scanned: u64,
    /// Their bytes, headers included.
    pub content_bytes: u64,
    /// Contents of transactions that had not committed.
    pub discarded: u64,
    /// Tuples found.
    pub tuples: u64,
    /// Whether the database had been closed.
    pub was_closed: bool,
}

/// Counters of one slot, on a line of their own.
#[repr(align(64))]
#[derive(Default)]
struct SlotCounters {
    commits: AtomicU64,
    aborts: AtomicU64,
    tuples: AtomicU64,
    live_bytes: AtomicU64,
}

/// Counters that a transaction adds to when it ends, by slot. Gauges are sums
/// of differences and wrap around on the way.
pub(crate) struct Counters {
    slots: Box<[SlotCounters]>,
}

impl Default for Counters {
    fn default() -> Self {
        Self { slots: (0..=TRANSACTION_SLOTS).map(|_| SlotCounters::default()).collect() }
    }
}

/// What a commit changes.
#[derive(Clone, Copy, Default)]
pub(crate) struct Change {
    pub tuples: i64,
    pub live_bytes: i64,
}

impl Counters {
    pub fn committed(&self, slot: Slot, change: Change) {
        let counters = &self.slots[slot.index()];
        // The slot's holder is the only writer.
        add(&counters.commits, 1);
        add(&counters.tuples, change.tuples as u64);
        add(&counters.live_bytes, change.live_bytes as u64);
    }

    /// What recovery has found, and what goes with a dropped table. One
    /// thread at a time: it has counters of its own behind the slots'.
    pub fn adjust(&self, change: Change) {
        let counters = &self.slots[TRANSACTION_SLOTS];
        add(&counters.tuples, change.tuples as u64);
        add(&counters.live_bytes, change.live_bytes as u64);
    }

    pub fn aborted(&self, slot: Slot) {
        add(&self.slots[slot.index()].aborts, 1);
    }

    pub fn add_to(&self, stats: &mut Stats) {
        for counters in &self.slots {
            stats.commits += counters.commits.load(Ordering::Relaxed);
            stats.aborts += counters.aborts.load(Ordering::Relaxed);
            stats.tuples = stats.tuples.wrapping_add(counters.tuples.load(Ordering::Relaxed));
            stats.live_bytes = stats.live_bytes.wrapping_add(counters.live_bytes.load(Ordering::Relaxed));
        }
    }
}

fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
