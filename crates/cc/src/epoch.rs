//! Epochs: the coarse clock of collectors (TB-Collect 4.2).
//!
//! An epoch is a fixed number of ticks of the clock that timestamps come from. So nothing counts
//! epochs, and no transaction writes anything to join one. A transaction's local epoch is the epoch
//! of the timestamp at which it reads, and its registry slot shows that timestamp anyway.

use std::time::Duration;

use pantile_base::Timestamp;
use smallvec::SmallVec;

use crate::clock::Clock;

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// Maps timestamps to epochs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochManager {
    ticks: u64,
}

impl EpochManager {
    /// Epochs of this length.
    pub fn new(length: Duration) -> Self {
        Self { ticks: Clock::ticks(length).max(1) }
    }

    /// The epoch of a timestamp.
    #[inline]
    pub fn of(self, ts: Timestamp) -> Epoch {
        Epoch(ts.tick() / self.ticks)
    }

    /// The first timestamp of the epoch that comes `epochs` before that of `ts`.
    pub fn start_before(self, ts: Timestamp, epochs: u64) -> Timestamp {
        Timestamp::new(self.of(ts).0.saturating_sub(epochs) * self.ticks, 0)
    }

    /// The first timestamp of the epoch of `ts`.
    pub fn start(self, ts: Timestamp) -> Timestamp {
        self.start_before(ts, 0)
    }

    /// The first timestamp of the epoch after the one of `ts`.
    pub fn end(self, ts: Timestamp) -> Timestamp {
        Timestamp::new((self.of(ts).0 + 1) * self.ticks, 0)
    }
}

/// The timestamps at which running transactions read, taken by scanning the
/// slots. The scan stops no transaction, and no transaction writes anything for
/// it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningSet {
    /// Ascending and distinct.
    pub(crate) points: SmallVec<[Timestamp; 16]>,
    /// Where transactions began that read elsewhere, or nothing for now. They may use tables of that time.
    pub(crate) began: SmallVec<[Timestamp; 4]>,
    /// From here on a transaction may read at any timestamp, because it reads
    /// at a new one in each statement. MAX if there is none.
    pub(crate) open_from: Timestamp,
    /// From here on a transaction may use tables that were created after it began.
    /// MAX if there is none.
    pub(crate) newer_from: Timestamp,
    /// Transactions that the scan did not see read here or later.
    pub(crate) horizon: Timestamp,
}

impl RunningSet {
    /// Whether some running or future transaction may see a version that is
    /// visible from `begin` until just before `end`.
    pub fn may_see(&self, begin: Timestamp, end: Timestamp) -> bool {
        self.reads_within(begin, end) || self.open_from < end
    }

    /// Whether some transaction that runs may use, or some future one may see, a table that
    /// existed from `from` at the earliest until `until` at the latest, and has been marked
    /// as dropped (I-37).
    pub fn may_use_table(&self, from: Timestamp, until: Timestamp) -> bool {
        let end = Timestamp::from_raw(until.get().saturating_add(1));
        let is_of_it = |began: &Timestamp| (from..end).contains(began);
        self.reads_within(from, end) || self.began.iter().any(is_of_it) || self.newer_from < end
    }

    /// Whether some transaction reads at one moment from `begin` until just before `end`, or a
    /// future one may.
    fn reads_within(&self, begin: Timestamp, end: Timestamp) -> bool {
        let first = self.points.partition_point(|&p| p < begin);
        let inside = self.points.get(first).is_some_and(|&p| p < end);
        inside || self.horizon < end
    }

    /// Where transactions read below `ts` now, in order.
    pub fn below(&self, ts: Timestamp) -> &[Timestamp] {
        &self.points[..self.points.partition_point(|&point| point < ts)]
    }

    /// Whether a transaction reads below `ts` now.
    pub fn is_any_below(&self, ts: Timestamp) -> bool {
        !self.below(ts).is_empty()
    }

    /// Which transactions can see a version of a block whose versions were
    /// visible from `min` to `max` at most.
    pub fn sight(&self, min: Timestamp, max: Timestamp) -> Sight {
        if max < self.min() {
            Sight::Obsolete
        } else if !self.may_see(min, Timestamp::from_raw(max.get() + 1)) {
            Sight::Bypassed
        } else {
            Sight::InUse
        }
    }

    /// The number of distinct timestamps at which transactions read now.
    pub fn readers(&self) -> usize {
        self.points.len()
    }

    /// No running or future transaction reads at an earlier timestamp.
    pub fn min(&self) -> Timestamp {
        let first = self.points.first().copied().unwrap_or(self.horizon);
        first.min(self.open_from).min(self.horizon)
    }

    /// Future transactions read here or later.
    pub fn future(&self) -> Timestamp {
        self.horizon
    }

    /// The same set as epochs.
    pub fn epochs(&self, manager: EpochManager) -> RunningEpochs {
        let mut sorted: SmallVec<[Epoch; 16]> = self.points.iter().map(|&p| manager.of(p)).collect();
        sorted.dedup();
        let open_from = (self.open_from < Timestamp::MAX).then(|| manager.of(self.open_from));
        RunningEpochs { sorted, open_from, future: manager.of(self.horizon) }
    }
}

/// The epochs in which running transactions read, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningEpochs {
    sorted: SmallVec<[Epoch; 16]>,
    open_from: Option<Epoch>,
    future: Epoch,
}

/// Which transactions can see into a block (the three cases of TB-Collect 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// Nobody, now or ever. Every running transaction began after it.
    Obsolete,
    /// Nobody. But transactions that began before it still run, and their
    /// chains may pass through it.
    Bypassed,
    /// Perhaps some transaction.
    InUse,
}

impl RunningEpochs {
    /// `local_epoch_min`: no transaction reads in an earlier epoch.
    pub fn min(&self) -> Epoch {
        let first = self.sorted.first().copied().unwrap_or(self.future);
        first.min(self.open_from.unwrap_or(self.future)).min(self.future)
    }

    /// Future transactions read in this epoch or later.
    pub fn future(&self) -> Epoch {
        self.future
    }

    /// The smallest epoch at or above `from` in which a transaction reads:
    /// `local_epoch_sec_min`, the third smallest, and so on as far up as
    /// necessary.
    pub fn next(&self, from: Epoch) -> Epoch {
        let next = self.sorted.partition_point(|&e| e < from);
        let next = self.sorted.get(next).copied().unwrap_or(self.future).min(self.future);
        // A transaction that reads by statement may read in every epoch from
        // its first on.
        self.open_from.map_or(next, |open| next.min(open.max(from)))
    }

    /// Which transactions can see a version of a block whose versions were
    /// visible between `min` and `max` at most.
    pub fn sight(&self, min: Epoch, max: Epoch) -> Sight {
        if max < self.min() {
            Sight::Obsolete
        } else if max < self.next(min) {
            Sight::Bypassed
        } else {
            Sight::InUse
        }
    }
}

#[cfg(test)]
#[path = "epoch_test.rs"]
mod tests;
