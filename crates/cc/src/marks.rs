//! The marks that reads leave (`read_ts`), kept apart from the tuples.
//!
//! A fixed table of cells stands in for the `read_ts` of every tuple: a tuple
//! hashes to a cell, and the cell holds the highest timestamp that has read
//! any of its tuples. It never forgets, so no read is forgotten when a
//! version's header goes (trap T7); two tuples that share a cell can only
//! cause an abort too many. The idea of one cache of read timestamps beside
//! the data is CockroachDB's timestamp cache.

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{TableId, Timestamp, TupleId, prefetch};

/// Cells: 2 MB, about the size of a core's own cache; few for a model, which
/// makes them anew in each execution.
const CELLS: usize = 1 << CELLS_BITS;
const CELLS_BITS: u32 = if cfg!(any(pantile_shuttle, miri)) { 8 } else { 18 };

/// Highest reading timestamp by tuple.
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
    /// Eight tuples created one after the other share a cache line, so scans
    /// touch few; beyond that tuples are spread by a multiplicative hash, so
    /// that no two tables overlap in whole ranges.
    #[inline]
    fn cell(&self, table: TableId, tuple: TupleId) -> &AtomicU64 {
        const LINE: u64 = 8;
        let group = (tuple.0 / LINE) ^ (u64::from(table.0) << TupleId::BITS);
        let hash = group.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let line = (hash >> (u64::BITS - CELLS_BITS)) & !(LINE - 1);
        &self.cells[(line | (tuple.0 % LINE)) as usize]
    }

    /// Asks the CPU to fetch a tuple's cell.
    #[inline]
    pub fn prefetch(&self, table: TableId, tuple: TupleId) {
        prefetch(self.cell(table, tuple));
    }

    /// Marks a read at `ts`. A writer that locks the tuple afterwards finds
    /// the mark; one that locked it before is found by the reader, who must
    /// load the tuple's anchor only after this call (I-5).
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

    /// The highest timestamp that may have read the tuple; for a writer, who
    /// must hold the tuple's lock.
    #[inline]
    pub fn highest(&self, table: TableId, tuple: TupleId) -> Timestamp {
        Timestamp::from_raw(self.cell(table, tuple).load(Ordering::SeqCst))
    }

    /// DRAM held, in bytes.
    pub fn bytes(&self) -> u64 {
        (CELLS * size_of::<AtomicU64>()) as u64
    }
}
