//! The limit on what the database takes of DRAM.
//!
//! Adding up what it takes visits every table and every block, so it is done
//! now and then: after fewer writes the less is left. Each transaction slot
//! counts its own writes.
//!
//! Free nodes serve only trees whose nodes have their size. Once new rows have
//! no other memory left, what a table may still add is its own, so each table
//! has an allowance, which all slots share.

use pantile_base::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, Ordering};
use pantile_media::available_memory;

use crate::types::memory::MemoryUse;

/// The part of the memory of the process that the database takes at most,
/// unless it is told otherwise. The rest is for the program and for the
/// system's copies of the data file.
const SHARE: (u64, u64) = (3, 4);

/// Most bytes that a write is expected to take beside its row: entries of
/// indexes, an anchor, a link, its places in lists.
const WRITE_BYTES: u64 = 512;

/// Transaction slots that are expected to write at once.
const WRITERS: u64 = 64;

/// Fewest and most writes of a slot between two checks, or of all slots to a
/// table with an allowance.
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
    /// Writes of a slot from one check to the next. Zero while allowances count.
    writes: AtomicU32,
    /// Rises when allowances begin to count.
    era: AtomicU32,
    /// Tables that have had an allowance in this era.
    allowances: AtomicU32,
}

/// What may be added to a table when no memory is left for new rows but free nodes.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// Writes until the next check. Below zero while that is being made.
    writes: AtomicI64,
    /// The era of that number: what was left in an earlier one may be gone.
    era: AtomicU32,
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
            era: AtomicU32::new(0),
            allowances: AtomicU32::new(0),
        }
    }

    /// The limit.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a slot that has not been checked for this many writes must ask
    /// for more before the next one.
    #[inline]
    pub fn is_due(&self, unchecked: u32) -> bool {
        unchecked >= self.writes.load(Ordering::Relaxed)
    }

    /// Takes one write from an allowance if those count, and if this one has any for
    /// what is added.
    pub fn take(&self, allowance: &Allowance, adds: Adds) -> bool {
        self.writes.load(Ordering::Relaxed) == 0
            && self.era.load(Ordering::Relaxed) == allowance.era.load(Ordering::Relaxed)
            && (adds as u8) < allowance.refused.load(Ordering::Relaxed)
            && allowance.writes.fetch_sub(1, Ordering::Relaxed) > 0
    }

    /// The bytes that are left for this.
    pub fn left(&self, taken: u64, adds: Adds) -> u64 {
        let reserve = if adds == Adds::Row { self.bytes / RESERVE } else { 0 };
        (self.bytes - reserve).saturating_sub(taken)
    }

    /// Notes what is taken, which decides when to look again.
    pub fn note(&self, taken: &MemoryUse) {
        let writes = match self.left(taken.all(), Adds::Row) {
            0 => 0,
            left => (left / (WRITE_BYTES * WRITERS)).clamp(WRITES.0, WRITES.1),
        };
        if writes == 0 && self.writes.load(Ordering::Relaxed) > 0 {
            self.era.fetch_add(1, Ordering::Relaxed);
            self.allowances.store(0, Ordering::Relaxed);
        }
        self.writes.store(writes as u32, Ordering::Relaxed);
    }

    /// Notes what is taken for a table, which has this allowance. Others may have one, out of the same bytes.
    pub fn allow(&self, allowance: &Allowance, taken: &MemoryUse) {
        let era = self.era.load(Ordering::Relaxed);
        let is_new = allowance.era.load(Ordering::Relaxed) != era;
        let tables = self.allowances.fetch_add(u32::from(is_new), Ordering::Relaxed) + u32::from(is_new);
        let left = |&adds: &Adds| self.left(taken.counted(), adds);
        let refused = [Adds::Version, Adds::Row].into_iter().find(|adds| left(adds) == 0);
        let most = [Adds::Row, Adds::Version].iter().map(left).find(|&left| left > 0);
        let writes = most
            .map_or(0, |left| (left / (WRITE_BYTES * u64::from(tables.max(1)))).clamp(WRITES.0, WRITES.1));
        allowance.refused.store(refused.map_or(NOTHING, |adds| adds as u8), Ordering::Relaxed);
        allowance.writes.store(writes as i64, Ordering::Relaxed);
        allowance.era.store(era, Ordering::Relaxed);
    }
}

impl Default for Allowance {
    /// None: the first write is checked.
    fn default() -> Self {
        Self { writes: AtomicI64::new(0), era: AtomicU32::new(u32::MAX), refused: AtomicU8::new(NOTHING) }
    }
}
