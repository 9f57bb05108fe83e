//! How many rows a table has, and their bytes.

use std::sync::OnceLock;

use pantile_base::Padded;
use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::engine::counters::Change;

/// Places in which the rows of a large table are counted.
const SHARDS: usize = 8;
/// A table that has had as many rows counts them in several places.
const FEW_ROWS: u64 = 1024;

/// How many rows there are, and their bytes. Apart from what readers look at, which
/// commits that insert and delete would take from their caches; and, once there are many,
/// those of several slots apart from each other.
#[repr(align(128))]
#[derive(Default)]
pub(crate) struct RowCount {
    of_few: OneCount,
    of_many: OnceLock<Box<[Padded<OneCount>; SHARDS]>>,
}

/// A part of it. One is below zero where more has gone than come.
#[derive(Default)]
struct OneCount {
    rows: AtomicU64,
    bytes: AtomicU64,
}

impl OneCount {
    /// Returns how many rows it counts then.
    #[inline]
    fn add(&self, change: Change) -> i64 {
        if change.live_bytes != 0 {
            self.bytes.fetch_add(change.live_bytes as u64, Ordering::Relaxed);
        }
        let by = change.tuples as u64;
        if by == 0 { 0 } else { self.rows.fetch_add(by, Ordering::Relaxed).wrapping_add(by) as i64 }
    }
}

impl RowCount {
    /// Notes that there are more. `hint` is the slot of the transaction.
    #[inline]
    pub fn change(&self, hint: usize, by: Change) {
        if let Some(counts) = self.of_many.get() {
            counts[hint % SHARDS].add(by);
        } else if self.of_few.add(by) >= FEW_ROWS as i64 {
            self.of_many.get_or_init(Box::default);
        }
    }

    /// How many there are. For a moment a deletion may have been noted before its
    /// insertion.
    pub fn get(&self) -> u64 {
        self.sum(|count| &count.rows)
    }

    /// Bytes of the rows, with the headers of their contents.
    pub fn bytes(&self) -> u64 {
        self.sum(|count| &count.bytes)
    }

    /// Takes away all that has been counted.
    pub fn take(&self) -> Change {
        let take = |of: &AtomicU64| of.swap(0, Ordering::Relaxed) as i64;
        let mut all = Change::default();
        self.parts().for_each(|one| all += Change { tuples: take(&one.rows), live_bytes: take(&one.bytes) });
        all
    }

    fn parts(&self) -> impl Iterator<Item = &OneCount> {
        let many = self.of_many.get().into_iter().flat_map(|counts| counts.iter());
        std::iter::once(&self.of_few).chain(many.map(|count| &**count))
    }

    fn sum(&self, of: impl Fn(&OneCount) -> &AtomicU64) -> u64 {
        let parts = self.parts().map(|one| of(one).load(Ordering::Relaxed));
        (parts.fold(0, u64::wrapping_add) as i64).max(0) as u64
    }
}
