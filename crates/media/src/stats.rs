//! What a medium has done so far, counted without a shared cache line.

use crate::shard::{self, Padded, ShardIndex};
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// Totals since the medium was opened. They only grow; subtract an earlier
/// reading to get what happened in between.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct MediumStats {
    /// Bytes given to `write`.
    pub bytes_written: u64,
    /// Write units: emulated units on nvm, 4 KiB pages touched on file, 0 on dram.
    pub units_written: u64,
    /// 64-byte lines handed to `flush` (nvm only).
    pub flushes: u64,
    /// Calls of `fence`.
    pub fences: u64,
    /// Syncs that reached the device (`fdatasync`), shared or not.
    pub syncs: u64,
    /// Bytes given to `charge_read` (nvm only).
    pub bytes_read: u64,
    /// Units that missed the estimated CPU cache (nvm only).
    pub units_read: u64,
    /// Picoseconds that the emulated device took for the units written (nvm only).
    pub device_write_ps: u64,
    /// Picoseconds that threads waited for it in fences, busily (nvm only).
    pub write_wait_ps: u64,
    /// Picoseconds that threads waited for it because of reads, busily (nvm only).
    pub read_wait_ps: u64,
    /// Bytes given to `discard`.
    pub bytes_discarded: u64,
    /// Bytes given to `restore`.
    pub bytes_restored: u64,
}

impl Sub for MediumStats {
    type Output = Self;

    /// What happened after `earlier` was read.
    fn sub(self, earlier: Self) -> Self {
        Self {
            bytes_written: self.bytes_written - earlier.bytes_written,
            units_written: self.units_written - earlier.units_written,
            flushes: self.flushes - earlier.flushes,
            fences: self.fences - earlier.fences,
            syncs: self.syncs - earlier.syncs,
            bytes_read: self.bytes_read - earlier.bytes_read,
            units_read: self.units_read - earlier.units_read,
            device_write_ps: self.device_write_ps - earlier.device_write_ps,
            write_wait_ps: self.write_wait_ps - earlier.write_wait_ps,
            read_wait_ps: self.read_wait_ps - earlier.read_wait_ps,
            bytes_discarded: self.bytes_discarded - earlier.bytes_discarded,
            bytes_restored: self.bytes_restored - earlier.bytes_restored,
        }
    }
}

/// Names one of the counters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Count {
    BytesWritten,
    UnitsWritten,
    Flushes,
    Fences,
    Syncs,
    BytesRead,
    UnitsRead,
    WriteWait,
    ReadWait,
    BytesDiscarded,
    BytesRestored,
}

const COUNTS: usize = Count::BytesRestored as usize + 1;

type Shard = Padded<[AtomicU64; COUNTS]>;

/// Counters for each thread: counting touches no line that others write.
#[derive(Debug)]
pub(crate) struct Counters {
    own: Box<[Shard]>,
    shared: Shard,
}

impl Counters {
    pub(crate) fn new() -> Self {
        Self { own: (0..shard::OWN_PLACES).map(|_| Shard::default()).collect(), shared: Shard::default() }
    }

    /// Adds `n` to a counter of the calling thread.
    #[inline]
    pub(crate) fn add(&self, count: Count, n: u64) {
        match shard::place() {
            ShardIndex::Own(index) => {
                // Nobody else stores here, so a load and a store are enough.
                let counter = &self.own[index].0[count as usize];
                counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
            }
            ShardIndex::Shared => {
                self.shared.0[count as usize].fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    fn total(&self, count: Count) -> u64 {
        let of = |shard: &Shard| shard.0[count as usize].load(Ordering::Relaxed);
        self.own.iter().map(of).sum::<u64>() + of(&self.shared)
    }

    /// The totals over all shards. Not an atomic snapshot.
    pub(crate) fn snapshot(&self) -> MediumStats {
        MediumStats {
            bytes_written: self.total(Count::BytesWritten),
            units_written: self.total(Count::UnitsWritten),
            flushes: self.total(Count::Flushes),
            fences: self.total(Count::Fences),
            syncs: self.total(Count::Syncs),
            bytes_read: self.total(Count::BytesRead),
            units_read: self.total(Count::UnitsRead),
            device_write_ps: 0,
            write_wait_ps: self.total(Count::WriteWait),
            read_wait_ps: self.total(Count::ReadWait),
            bytes_discarded: self.total(Count::BytesDiscarded),
            bytes_restored: self.total(Count::BytesRestored),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_threads_add_up() {
        let counters = Counters::new();
        let before = counters.snapshot();
        std::thread::scope(|scope| {
            for _ in 0..80 {
                scope.spawn(|| counters.add(Count::BytesWritten, 3));
            }
        });
        counters.add(Count::Syncs, 1);
        let delta = counters.snapshot() - before;
        assert_eq!((delta.bytes_written, delta.syncs), (240, 1));
        assert_eq!(delta.fences, 0);
    }
}
