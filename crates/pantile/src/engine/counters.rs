//! Counters and gauges of transactions.

use std::ops::{AddAssign, Sub};
use std::time::Duration;

use pantile_base::Address;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Slot;
use pantile_store::HEADER_BYTES;

use crate::types::options::TimesCommits;
use crate::types::running::OnPinned;
use crate::types::stats::Stats;

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
    times: TimesCommits,
    pin_warnings: AtomicU64,
    pin_ends: AtomicU64,
    /// When the holders of garbage were last looked at, in microseconds.
    watched: AtomicU64,
}

/// One commit in this many is timed where a commit takes no longer than reading a
/// clock a few times.
const ONE_IN: u64 = 16;

/// What a commit changes: rows, and their bytes with the headers of their contents.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub tuples: i64,
    pub live_bytes: i64,
}

impl Change {
    /// A row of this many bytes more.
    #[inline]
    pub fn of_row(bytes: usize) -> Self {
        Self { tuples: 1, live_bytes: (bytes + HEADER_BYTES) as i64 }
    }
}

impl AddAssign for Change {
    fn add_assign(&mut self, other: Self) {
        self.tuples += other.tuples;
        self.live_bytes += other.live_bytes;
    }
}

impl Sub for Change {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { tuples: self.tuples - other.tuples, live_bytes: self.live_bytes - other.live_bytes }
    }
}

impl Counters {
    pub fn new(times: TimesCommits) -> Self {
        Self {
            slots: (0..=TRANSACTION_SLOTS).map(|_| SlotCounters::default()).collect(),
            times,
            pin_warnings: AtomicU64::new(0),
            pin_ends: AtomicU64::new(0),
            watched: AtomicU64::new(0),
        }
    }

    /// Whether the slot's next commit is timed.
    #[inline]
    pub fn is_timed(&self, slot: Slot) -> bool {
        match self.times {
            TimesCommits::All => true,
            TimesCommits::Some => {
                self.slots[slot.index()].commits.load(Ordering::Relaxed).is_multiple_of(ONE_IN)
            }
            TimesCommits::None => false,
        }
    }

    /// Commits and aborts so far.
    pub fn ended(&self) -> (u64, u64) {
        (self.sum(|c| &c.commits), self.sum(|c| &c.aborts))
    }

    pub fn committed(&self, slot: Slot, change: Change) {
        let counters = &self.slots[slot.index()];
        // The slot's holder is the only writer.
        add(&counters.commits, 1);
        add(&counters.tuples, change.tuples as u64);
        add(&counters.live_bytes, change.live_bytes as u64);
    }

    /// Counts what recovery has found, and what goes with a dropped table, behind the
    /// counters of the slots.
    pub fn adjust(&self, change: Change) {
        let counters = &self.slots[TRANSACTION_SLOTS];
        counters.tuples.fetch_add(change.tuples as u64, Ordering::Relaxed);
        counters.live_bytes.fetch_add(change.live_bytes as u64, Ordering::Relaxed);
    }

    pub fn read(&self, slot: Slot, versions: u64) {
        add(&self.slots[slot.index()].versions_read, versions);
    }

    /// A tuple id has been given back. Its anchor keeps this tombstone, if any.
    pub fn buried(&self, slot: Slot, tombstone: Address) {
        add(&self.slots[slot.index()].buried, u64::from(!tombstone.is_none()));
    }

    /// The opposite of [`Counters::buried`].
    pub fn exhumed(&self, slot: Slot, tombstone: Address) {
        add(&self.slots[slot.index()].buried, u64::from(!tombstone.is_none()).wrapping_neg());
    }

    /// Recovery has found this many tombstones of free ids.
    pub fn found_buried(&self, tombstones: u64) {
        add(&self.slots[TRANSACTION_SLOTS].buried, tombstones);
    }

    pub fn waiting_tombstones(&self) -> u64 {
        self.sum(|c| &c.buried)
    }

    pub fn tuples(&self) -> u64 {
        self.sum(|c| &c.tuples)
    }

    pub fn live_bytes(&self) -> u64 {
        self.sum(|c| &c.live_bytes)
    }

    /// Slots are read one after the other, so a decrease may be seen before the
    /// increase that came first, and the sum may be below zero for a moment.
    fn sum(&self, of: impl Fn(&SlotCounters) -> &AtomicU64) -> u64 {
        let sum = self.slots.iter().fold(0, |sum: u64, c| sum.wrapping_add(of(c).load(Ordering::Relaxed)));
        sum.cast_signed().max(0).cast_unsigned()
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        size_of_val(&*self.slots) as u64
    }

    pub fn aborted(&self, slot: Slot) {
        add(&self.slots[slot.index()].aborts, 1);
    }

    /// A transaction has held back too much, and this was done about it.
    pub fn pinned_too_much(&self, then: OnPinned) {
        let counter = if then == OnPinned::End { &self.pin_ends } else { &self.pin_warnings };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the holders of garbage are to be looked at, once in `every`.
    pub fn is_time_to_watch(&self, now: Duration, every: Duration) -> bool {
        let (now, every) = (now.as_micros() as u64, every.as_micros() as u64);
        let last = self.watched.load(Ordering::Relaxed);
        let is_time = last == 0 || now.saturating_sub(last) >= every;
        is_time
            && self.watched.compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    pub fn add_to(&self, stats: &mut Stats) {
        for counters in &self.slots {
            stats.commits += counters.commits.load(Ordering::Relaxed);
            stats.aborts += counters.aborts.load(Ordering::Relaxed);
            stats.tuples = stats.tuples.wrapping_add(counters.tuples.load(Ordering::Relaxed));
            stats.versions_read += counters.versions_read.load(Ordering::Relaxed);
            stats.live_bytes = stats.live_bytes.wrapping_add(counters.live_bytes.load(Ordering::Relaxed));
        }
        stats.pin_warnings = self.pin_warnings.load(Ordering::Relaxed);
        stats.pin_ends = self.pin_ends.load(Ordering::Relaxed);
        stats.collector.waiting_tombstones = self.waiting_tombstones();
    }
}

fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}
