//! Blocks that other processes may be reading (I-27).
//!
//! A process that reads the medium by itself knows nothing of the transactions of this process, and
//! nothing of the copies that its collector makes. So as long as it reads, no block that was in use
//! when it began is released. The exception is dead blocks, in which everything had been superseded
//! or moved by then. The reading process is told which blocks are dead, and looks into none of
//! them. Without this exception, each reader would hold what was only held for the reader before
//! it, and a series of readers would keep it for ever.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::{RwLock, RwLockReadGuard};

use crate::block::BlockRef;
use crate::stream::Urgency;

/// When a table existed, which has been dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Period {
    /// Below every timestamp at which its definition may be seen, and below the opening of
    /// all its blocks.
    pub from: Timestamp,
    /// Above every timestamp at which its definition may be seen.
    pub until: Timestamp,
}

impl Period {
    /// Whether a table may have existed at this timestamp.
    pub fn has(self, ts: Timestamp) -> bool {
        self.from <= ts && ts <= self.until
    }
}

/// What is held for one process; the store gives it a number.
#[derive(Debug)]
struct Hold {
    number: u64,
    /// Blocks that were opened by then.
    opened_by: Timestamp,
    /// The moment that it reads; zero until that is known.
    reads_at: Timestamp,
    /// Those of the blocks into which it does not look.
    dead: HashSet<BlockRef, FixedState>,
    /// It may still look at any part of the medium.
    is_scanning: bool,
    /// Blocks that were opened by then, and held for the process before it in the list, which has ended since.
    passed_on: Timestamp,
}

impl Hold {
    fn covers(&self, block: BlockRef) -> bool {
        let was_there = block.opened_at <= self.opened_by.get();
        was_there && (self.is_scanning || !self.dead.contains(&block))
    }

    /// Whether the process may read blocks of a table. It has found what it reads in blocks that
    /// were opened before the table was dropped, or it may yet look at them.
    fn covers_table(&self, table: Period) -> bool {
        table.from <= self.opened_by && (self.is_scanning || self.reads_at <= table.until)
    }
}

/// What is held for other processes.
#[derive(Debug, Default)]
pub struct Holds(RwLock<Held>);

#[derive(Debug, Default)]
pub(crate) struct Held {
    holds: Vec<Hold>,
    last: u64,
}

impl Held {
    /// Whether a block is held for a process that began before this time.
    fn covers_since(&self, block: BlockRef, before: Timestamp) -> bool {
        self.holds.iter().any(|hold| hold.opened_by < before && hold.covers(block))
    }

    /// Whether a block is held, and if so, whether the process that has held it for longest has taken it over from one
    /// that has ended.
    fn taken_over(&self, block: BlockRef) -> Option<bool> {
        let first = self.holds.iter().find(|hold| hold.covers(block))?;
        Some(block.opened_at <= first.passed_on.get())
    }

    /// What copies of what is alive in a block may take of the reserve. They bring no space as long as the block is held,
    /// and a full database can delete all the same.
    pub fn urgency_of_copies(&self, block: BlockRef) -> Urgency {
        if self.covers(block) { Urgency::Write } else { Urgency::Collect }
    }

    /// Whether the generation of a block may not end.
    pub fn covers(&self, block: BlockRef) -> bool {
        self.holds.iter().any(|hold| hold.covers(block)) && !is_removed(Control::HeldForReaders)
    }

    /// Whether the blocks of a dropped table may not be released.
    pub fn covers_table(&self, table: Period) -> bool {
        self.holds.iter().any(|hold| hold.covers_table(table))
    }

    /// Whether the hold of this number is one of those that cover a block.
    pub fn holds_for(&self, number: u64, block: BlockRef) -> bool {
        self.holds.iter().any(|hold| hold.number == number && hold.covers(block))
    }

    /// Whether some process may be looking at any part of the medium.
    pub fn is_scanned(&self) -> bool {
        self.holds.iter().any(|hold| hold.is_scanning)
    }
}

impl Holds {
    /// What is held. Nothing more is, as long as the guard is there.
    ///
    /// Some take the allocator's lock under the guard and some look while they have that lock, so
    /// nobody who looks may wait for one who only waits to change it.
    pub(crate) fn look(&self) -> RwLockReadGuard<'_, Held> {
        self.0.read_recursive()
    }

    /// Holds every block for a process that is about to scan the medium, and keeps
    /// the medium from becoming shorter. No block is on its way to be released
    /// when this returns. Returns the hold's number.
    pub fn begin(&self) -> u64 {
        let mut held = self.0.write();
        held.last += 1;
        let number = held.last;
        held.holds.push(Hold {
            number,
            opened_by: Timestamp::MAX,
            reads_at: Timestamp::ZERO,
            dead: HashSet::default(),
            is_scanning: true,
            passed_on: Timestamp::ZERO,
        });
        number
    }

    /// Holds only the blocks that were opened by this time.
    pub fn narrow(&self, number: u64, opened_by: Timestamp) {
        self.change(number, |hold| hold.opened_by = opened_by);
    }

    /// Once the process has found what it reads, holds nothing that only readers of
    /// an earlier moment need: neither these blocks, nor tables that had been
    /// dropped by then.
    pub fn leave_out(&self, number: u64, reads_at: Timestamp, dead: &[BlockRef]) {
        self.change(number, |hold| {
            hold.reads_at = reads_at;
            hold.dead.extend(dead);
        });
    }

    /// The process has found what it reads.
    pub fn scan_is_over(&self, number: u64) {
        self.change(number, |hold| hold.is_scanning = false);
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut Hold)) {
        if let Some(hold) = self.0.write().holds.iter_mut().find(|hold| hold.number == number) {
            change(hold);
        }
    }

    /// Whether some process may be looking at any part of the medium.
    pub fn are_scanned(&self) -> bool {
        self.look().is_scanned()
    }

    /// Ends a hold.
    pub fn end(&self, number: u64) {
        let holds = &mut self.0.write().holds;
        let Some(at) = holds.iter().position(|hold| hold.number == number) else { return };
        let ended = holds.remove(at);
        if let Some(next) = holds.get_mut(at) {
            // One that has not been admitted yet has none of its own.
            let own = if ended.opened_by < Timestamp::MAX { ended.opened_by } else { Timestamp::ZERO };
            next.passed_on = next.passed_on.max(ended.passed_on).max(own);
        }
    }

    /// Whether a block is held for a process that began before this time.
    pub fn cover_since(&self, block: BlockRef, before: Timestamp) -> bool {
        self.look().covers_since(block, before)
    }

    /// Whether a block that is held so would take space beside the copies of what is alive in it. But it
    /// is copied once if one process after the other holds it: the next does not look into a dead block.
    pub fn keep_since(&self, block: BlockRef, before: Timestamp) -> bool {
        let held = self.look();
        held.covers_since(block, before) && held.taken_over(block) == Some(false)
    }

    /// The numbers of the holds for processes that began before this time.
    pub fn of_before(&self, before: Timestamp) -> Vec<u64> {
        let held = self.look();
        held.holds.iter().filter(|hold| hold.opened_by < before).map(|hold| hold.number).collect()
    }

    /// Whether nothing is held for other processes.
    pub fn is_empty(&self) -> bool {
        self.look().holds.is_empty()
    }

    /// Whether another process may read blocks of a dropped table.
    pub fn cover_table(&self, table: Period) -> bool {
        self.look().covers_table(table)
    }
}

#[cfg(test)]
#[path = "hold_test.rs"]
mod tests;
