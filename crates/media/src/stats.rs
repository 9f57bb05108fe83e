//! Counters of what a medium has done so far. Counting touches no shared cache line.

use std::ops::Sub;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use pantile_base::Padded;

use crate::shard::{self, ShardIndex};

/// Defines the statistics once: a field for readers, and the counter behind it.
macro_rules! statistics {
    ($($(#[doc = $doc:literal])+ $(#[serde($($serde:tt)+)])? $field:ident: $count:ident,)+) => {
        /// Totals since the medium was opened. They only grow. Subtract an earlier reading to get
        /// what happened in between.
        #[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize))]
        #[non_exhaustive]
        pub struct MediumStats {
            $($(#[doc = $doc])+ $(#[cfg_attr(feature = "serde", serde($($serde)+))])? pub $field: u64,)+
        }

        impl Sub for MediumStats {
            type Output = Self;

            /// What happened after `earlier` was read.
            fn sub(self, earlier: Self) -> Self {
                Self { $($field: self.$field - earlier.$field,)+ }
            }
        }

        /// Names one of the counters.
        #[derive(Debug, Clone, Copy)]
        pub enum Count {
            $($(#[doc = $doc])+ $count,)+
        }

        const COUNTS: usize = [$(Count::$count),+].len();

        impl Counters {
            /// The totals over all threads. Not an atomic snapshot.
            pub fn snapshot(&self) -> MediumStats {
                MediumStats { $($field: self.total(Count::$count),)+ }
            }
        }
    };
}

statistics! {
    /// Bytes given to `write`.
    bytes_written: BytesWritten,
    /// Units written: on a file, the 4 KiB pages touched; on an emulated medium, the units of the
    /// emulated device; 0 otherwise.
    units_written: UnitsWritten,
    /// 64-byte lines handed to `flush` (persistent memory only).
    flushes: Flushes,
    /// Calls of `fence`.
    fences: Fences,
    /// Syncs that reached the device (`fdatasync`), shared or not.
    syncs: Syncs,
    /// Bytes written to the journal instead of pages of the data file.
    #[serde(skip_serializing_if = "is_zero")]
    bytes_journaled: BytesJournaled,
    /// Bytes that readers were charged for. This and the next four are counted on emulated media
    /// only.
    #[serde(skip_serializing_if = "is_zero")]
    bytes_read: BytesRead,
    /// Units that missed the estimated CPU cache.
    #[serde(skip_serializing_if = "is_zero")]
    units_read: UnitsRead,
    /// Picoseconds that the emulated device took for the units written.
    #[serde(rename = "device_write_seconds", serialize_with = "as_seconds", skip_serializing_if = "is_zero")]
    device_write_ps: DeviceWrite,
    /// Picoseconds that threads waited busily in fences for the emulated device.
    #[serde(rename = "write_wait_seconds", serialize_with = "as_seconds", skip_serializing_if = "is_zero")]
    write_wait_ps: WriteWait,
    /// Picoseconds that threads waited busily in reads for the emulated device.
    #[serde(rename = "read_wait_seconds", serialize_with = "as_seconds", skip_serializing_if = "is_zero")]
    read_wait_ps: ReadWait,
    /// Bytes given to `discard`.
    bytes_discarded: BytesDiscarded,
    /// Bytes given to `restore`.
    bytes_restored: BytesRestored,
}

#[cfg(feature = "serde")]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

#[cfg(feature = "serde")]
fn as_seconds<S: serde::Serializer>(picoseconds: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(*picoseconds as f64 / 1e12)
}

type Shard = Padded<[AtomicU64; COUNTS]>;

/// Counters for each thread: counting touches no line that others write. A
/// clone is another handle on the same counters.
#[derive(Debug, Clone)]
pub struct Counters {
    /// One for each place of a thread, and the last for all other threads.
    shards: Arc<[Shard]>,
}

impl Counters {
    /// All zero.
    pub(crate) fn new() -> Self {
        Self { shards: (0..=shard::OWN_PLACES).map(|_| Shard::default()).collect() }
    }

    /// Adds `n` to a counter of the calling thread.
    #[inline]
    pub fn add(&self, count: Count, n: u64) {
        match shard::place() {
            ShardIndex::Own(index) => {
                // No other thread stores here, so a load and a store are enough.
                let counter = &self.shards[index].0[count as usize];
                counter.store(counter.load(Ordering::Relaxed) + n, Ordering::Relaxed);
            }
            ShardIndex::Shared => {
                self.shards[shard::OWN_PLACES].0[count as usize].fetch_add(n, Ordering::Relaxed);
            }
        }
    }

    /// One of the totals.
    pub(crate) fn total(&self, count: Count) -> u64 {
        self.shards.iter().map(|shard| shard.0[count as usize].load(Ordering::Relaxed)).sum()
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
