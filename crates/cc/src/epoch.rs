//! Epochs: the coarse clock of collectors (TB-Collect 4.2).
//!
//! An epoch is a number of ticks of the clock that timestamps come from, so
//! nothing counts epochs and no transaction writes anything to be in one: the
//! local epoch of a transaction is that of the timestamp it reads at, which
//! its slot in the registry shows anyway.

use std::time::Duration;

use pantile_base::Timestamp;
use smallvec::SmallVec;

use crate::clock::Clock;

/// A stretch of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Epoch(pub u64);

/// Says in which epoch a timestamp lies.
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

    /// The first timestamp of the epoch after the one of `ts`.
    pub fn end(self, ts: Timestamp) -> Timestamp {
        Timestamp::new((self.of(ts).0 + 1) * self.ticks, 0)
    }
}

/// Where the transactions read that run, taken by looking at each slot once.
/// Nobody is stopped for it and no transaction writes anything for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningSet {
    /// Each ascending and once.
    pub(crate) points: SmallVec<[Timestamp; 16]>,
    /// From here on a transaction may read anywhere: it reads at a new
    /// timestamp in each statement. MAX if there is none.
    pub(crate) open_from: Timestamp,
    /// Transactions that were not seen read here or later.
    pub(crate) horizon: Timestamp,
}

impl RunningSet {
    /// Whether some transaction, now or later, may see a version that is
    /// visible from `begin` until just before `end`.
    pub fn may_see(&self, begin: Timestamp, end: Timestamp) -> bool {
        let first = self.points.partition_point(|&p| p < begin);
        let inside = self.points.get(first).is_some_and(|&p| p < end);
        inside || self.open_from < end || self.horizon < end
    }

    /// How many timestamps transactions read at now.
    pub fn readers(&self) -> usize {
        self.points.len()
    }

    /// Nobody reads at an earlier timestamp, now or later.
    pub fn min(&self) -> Timestamp {
        let first = self.points.first().copied().unwrap_or(self.horizon);
        first.min(self.open_from).min(self.horizon)
    }

    /// The same by epochs, in which blocks are judged.
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

/// Which transactions can see into a block (TB-Collect 4.4, the three cases).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// None, now or ever: all that run began after it.
    Obsolete,
    /// None, but transactions that began before it still run, and their chains
    /// may pass through it.
    Bypassed,
    /// Perhaps some.
    InUse,
}

impl RunningEpochs {
    /// `local_epoch_min`: nobody reads in an earlier epoch.
    pub fn min(&self) -> Epoch {
        let first = self.sorted.first().copied().unwrap_or(self.future);
        first.min(self.open_from.unwrap_or(self.future)).min(self.future)
    }

    /// Transactions that are yet to begin read in this epoch or later.
    pub fn future(&self) -> Epoch {
        self.future
    }

    /// The smallest epoch in which a transaction reads that is not below
    /// `from`: `local_epoch_sec_min`, the third smallest and so on, as far up as it takes.
    pub fn next(&self, from: Epoch) -> Epoch {
        let next = self.sorted.partition_point(|&e| e < from);
        let next = self.sorted.get(next).copied().unwrap_or(self.future).min(self.future);
        // A transaction that reads by statement reads in every epoch from its
        // first on.
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
