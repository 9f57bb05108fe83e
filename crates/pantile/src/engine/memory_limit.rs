//! The limit on what the database takes of DRAM.
//!
//! Adding up what it takes visits every table and every block, so it is done
//! now and then: after fewer writes the less is left. Each transaction slot
//! counts its own writes.

use pantile_base::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use pantile_media::available_memory;

/// The part of the memory of the process that the database takes at most,
/// unless it is told otherwise. The rest is for the program and for the
/// system's copies of the data file.
const SHARE: (u64, u64) = (3, 4);

/// Most bytes that a write is expected to take beside its row: entries of
/// indexes, an anchor, a link, its places in lists.
const WRITE_BYTES: u64 = 512;

/// Transaction slots that are expected to write at once.
const WRITERS: u64 = 64;

/// Fewest and most writes of a slot between two checks.
const WRITES: (u64, u64) = (64, 1 << 20);

/// New rows are refused when less than this part of the limit is left. The
/// rest is for changes of rows that exist.
const RESERVE: u64 = 16;

/// What a statement adds to the database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub(crate) enum Adds {
    /// A version of a row that exists.
    Version = 1,
    /// Perhaps a row.
    Row = 2,
}

/// When to add up what is taken.
#[derive(Debug)]
pub(crate) struct MemoryLimit {
    bytes: u64,
    /// Writes of a slot from one check to the next.
    writes: AtomicU32,
    /// What was refused at the last check: this, and what adds more.
    refused: AtomicU8,
}

/// Nothing was refused.
const NOTHING: u8 = u8::MAX;

impl MemoryLimit {
    /// Of this many bytes, or of what suits the machine.
    pub fn new(bytes: Option<u64>) -> Self {
        let default = || available_memory().map_or(u64::MAX, |memory| memory / SHARE.1 * SHARE.0);
        Self {
            bytes: bytes.unwrap_or_else(default),
            writes: AtomicU32::new(0),
            refused: AtomicU8::new(NOTHING),
        }
    }

    /// The limit.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a slot that has not been checked for this many writes is to be
    /// checked before it adds this.
    #[inline]
    pub fn is_due(&self, unchecked: u32, adds: Adds) -> bool {
        unchecked >= self.writes.load(Ordering::Relaxed) || adds as u8 >= self.refused.load(Ordering::Relaxed)
    }

    /// The bytes that are left for this.
    pub fn left(&self, taken: u64, adds: Adds) -> u64 {
        let reserve = if adds == Adds::Row { self.bytes / RESERVE } else { 0 };
        (self.bytes - reserve).saturating_sub(taken)
    }

    /// Notes what is taken, which decides when to look again.
    pub fn note(&self, taken: u64) {
        let refused = [Adds::Version, Adds::Row].into_iter().find(|&adds| self.left(taken, adds) == 0);
        self.refused.store(refused.map_or(NOTHING, |adds| adds as u8), Ordering::Relaxed);
        let writes = (self.left(taken, Adds::Row) / (WRITE_BYTES * WRITERS)).clamp(WRITES.0, WRITES.1);
        self.writes.store(writes as u32, Ordering::Relaxed);
    }
}
