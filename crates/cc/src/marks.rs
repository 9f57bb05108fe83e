//! Read marks (`read_ts`), kept apart from the tuples.
//!
//! A table of fixed size replaces the `read_ts` of every tuple. A tuple hashes to a cell, and the
//! cell holds the highest timestamp that has read any of its tuples. A mark never falls, so a read
//! is remembered even after the version's header is gone (trap T7). If two tuples share a cell, the
//! worst result is an unnecessary abort. The idea of one cache of read timestamps beside the data
//! is CockroachDB's timestamp cache.

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{TableId, Timestamp, TupleId, prefetch};

/// Number of cells: 2 MB, about the size of a core's own cache. A model has
/// few, because it creates them anew in each execution.
const CELLS: usize = 1 << CELLS_BITS;
const CELLS_BITS: u32 = if cfg!(any(pantile_shuttle, miri)) { 8 } else { 18 };

/// The highest reading timestamp of each tuple.
#[derive(Debug)]
pub struct ReadMarks {
    cells: Box<[AtomicU64]>,
}

impl Default for ReadMarks {
    fn default() -> Self {
        Self { cells: (0..CELLS).map(|_| AtomicU64::new(0)).collect() }
    }
}

impl ReadMarks {
    /// Eight tuples created in sequence share a cache line, so that scans touch
    /// few lines. These groups are spread by a multiplicative hash, so that no
    /// two tables overlap in whole ranges.
    #[inline]
    fn cell(&self, table: TableId, tuple: TupleId) -> &AtomicU64 {
        const LINE: u64 = 8;
        let group = (tuple.0 / LINE) ^ (u64::from(table.0) << TupleId::BITS);
        let hash = group.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let line = (hash >> (u64::BITS - CELLS_BITS)) & !(LINE - 1);
        &self.cells[(line | (tuple.0 % LINE)) as usize]
    }

    /// Prefetches a tuple's cell.
    #[inline]
    pub fn prefetch(&self, table: TableId, tuple: TupleId) {
        prefetch(self.cell(table, tuple));
    }

    /// Marks a read at `ts`. The reader must load the tuple's anchor only after
    /// this call. So a writer that locks the tuple afterwards finds the mark,
    /// and the reader finds the lock of a writer that locked it before (I-5).
    #[inline]
    pub fn raise(&self, table: TableId, tuple: TupleId, ts: Timestamp) {
        let cell = self.cell(table, tuple);
        let mut seen = cell.load(Ordering::Acquire);
        while seen < ts.get() && !is_removed(Control::Marks) {
            match cell.compare_exchange_weak(seen, ts.get(), Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// The highest timestamp that may have read the tuple. For writers; the
    /// caller must hold the tuple's lock.
    #[inline]
    pub fn highest(&self, table: TableId, tuple: TupleId) -> Timestamp {
        Timestamp::from_raw(self.cell(table, tuple).load(Ordering::SeqCst))
    }

    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        (CELLS * size_of::<AtomicU64>()) as u64
    }
}
