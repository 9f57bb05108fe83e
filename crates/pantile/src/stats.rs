//! Counters and gauges.

use pantile_base::Address;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Slot;
use pantile_media::MediumStats;
use pantile_reclaim::CollectorStats;

/// What a database has done since it was opened, and what it holds.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
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
    /// The part of `medium_bytes` in slots of superseded versions.
    pub obsolete_bytes: u64,
    /// The part of `medium_bytes` in slots not written yet of blocks in use.
    pub unfilled_bytes: u64,
    /// The part of `medium_bytes` in blocks and chunks that nothing is in, the
    /// reserve included.
    pub free_bytes: u64,
    /// DRAM for control data, in bytes: indexes, anchors, tiles, read marks,
    /// what waits for the collector.
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
    /// Versions looked at by transactions, those passed on the way included.
    pub versions_read: u64,
    /// What the collector has done.
    pub collector: CollectorStats,
}

/// What a table takes on the medium.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct TableSpace {
    /// Its name.
    pub table: String,
    /// Blocks of it.
    pub blocks: u64,
    /// Those that are not full yet.
    pub open_blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Contents in them, superseded ones included.
    pub contents: u64,
    /// Superseded contents, and void slots.
    pub obsolete: u64,
    /// Bytes of these.
    pub obsolete_bytes: u64,
}

/// How long the chains of versions are, measured on some tuples.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Chains {
    /// Tuples looked at.
    pub tuples: u64,
    /// Mean number of versions that a walk from the newest can reach.
    pub mean: f64,
    /// The most.
    pub max: u64,
    /// Versions of a tuple that take space on the medium, on average over all tuples.
    pub stored_mean: f64,
}

/// What opening the database took.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Recovery {
    /// Time of the scan and of building the indexes, in seconds.
    pub seconds: f64,
    /// The part of `seconds` spent scanning the medium.
    pub scan_seconds: f64,
    /// Contents read.
    pub contents_scanned: u64,
    /// Their bytes, headers included.
    pub bytes_scanned: u64,
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
    versions_read: AtomicU64,
    /// Tombstones of tuples whose ids are free.
    buried: AtomicU64,
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

    pub fn read(&self, slot: Slot, versions: u64) {
        add(&self.slots[slot.index()].versions_read, versions);
    }

    /// A tuple id has been given back and remembers this tombstone, if any.
    pub fn buried(&self, slot: Slot, tombstone: Address) {
        add(&self.slots[slot.index()].buried, u64::from(!tombstone.is_none()));
    }

    /// The opposite of [`Counters::buried`].
    pub fn exhumed(&self, slot: Slot, tombstone: Address) {
        add(&self.slots[slot.index()].buried, u64::from(!tombstone.is_none()).wrapping_neg());
    }

    /// Recovery has found this many.
    pub fn found_buried(&self, tombstones: u64) {
        add(&self.slots[TRANSACTION_SLOTS].buried, tombstones);
    }

    pub fn waiting_tombstones(&self) -> u64 {
        self.sum(|c| &c.buried)
    }

    pub fn live_bytes(&self) -> u64 {
        self.sum(|c| &c.live_bytes)
    }

    /// Slots are looked at one after the other, so a sum may be seen before
    /// what it is the difference of, and be below zero for a moment.
    fn sum(&self, of: impl Fn(&SlotCounters) -> &AtomicU64) -> u64 {
        let sum = self.slots.iter().fold(0, |sum: u64, c| sum.wrapping_add(of(c).load(Ordering::Relaxed)));
        sum.cast_signed().max(0).cast_unsigned()
    }

    pub fn aborted(&self, slot: Slot) {
        add(&self.slots[slot.index()].aborts, 1);
    }

    pub fn add_to(&self, stats: &mut Stats) {
        for counters in &self.slots {
            stats.commits += counters.commits.load(Ordering::Relaxed);
            stats.aborts += counters.aborts.load(Ordering::Relaxed);
            stats.tuples = stats.tuples.wrapping_add(counters.tuples.load(Ordering::Relaxed));
            stats.versions_read += counters.versions_read.load(Ordering::Relaxed);
            stats.live_bytes = stats.live_bytes.wrapping_add(counters.live_bytes.load(Ordering::Relaxed));
        }
        stats.collector.waiting_tombstones = self.waiting_tombstones();
    }
}

fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
