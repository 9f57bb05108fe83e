//! Anchors: one word of DRAM per tuple, the head of its chain of versions.
//!
//! The word holds the address of the newest committed version and the slot
//! of the transaction that has locked the tuple. Storing it is the moment at
//! which a version becomes visible.

use pantile_base::Address;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Slot;

const OWNER_SHIFT: u32 = Address::BITS;
const ADDRESS_MASK: u64 = (1 << OWNER_SHIFT) - 1;
/// Owner of a tuple whose index entries are being cleaned up.
const CLEANER: u64 = 0xffff;
/// Owner of a tuple whose primary entry is gone. Its id will be used again.
const DEAD: u64 = 0xfffe;

/// What has locked a tuple.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Nobody,
    /// The cleaner, for a moment. It never waits while it holds the lock.
    Cleaner,
    Transaction(Slot),
}

/// An anchor as it was when it was loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Anchor(u64);

impl Anchor {
    #[inline]
    pub fn load(cell: &AtomicU64) -> Self {
        // Ordered after the reader's mark (I-5).
        Self(cell.load(Ordering::SeqCst))
    }

    #[inline]
    pub fn owner(self) -> Owner {
        match self.0 >> OWNER_SHIFT {
            0 => Owner::Nobody,
            CLEANER | DEAD => Owner::Cleaner,
            owner => Owner::Transaction(Slot::from_index(owner as usize - 1)),
        }
    }

    /// The newest committed version; none for a tuple that never had one.
    #[inline]
    pub fn newest(self) -> Address {
        Address::from_word(self.0 & ADDRESS_MASK)
    }

    #[inline]
    pub fn is_dead(self) -> bool {
        self.0 >> OWNER_SHIFT == DEAD
    }

    /// Whether it names a row, if every deleted tuple is gone for good and none
    /// is locked.
    #[inline]
    pub fn is_row(self) -> bool {
        self.0 >> OWNER_SHIFT == 0 && self.0 != 0
    }

    /// What an image says of it, locked or not: where the newest version is, and in
    /// the lowest bit whether the tuple is no row.
    pub fn to_store(self) -> u64 {
        let newest = self.0 & ADDRESS_MASK;
        newest << 1 | u64::from(newest == 0 || self.is_dead())
    }

    /// An anchor that was stored; `None` if the word is none.
    pub fn stored(word: u64) -> Option<Self> {
        let dead = if word & 1 == 0 { 0 } else { DEAD << OWNER_SHIFT };
        let anchor = Self(word >> 1 | dead);
        (word >> 1 <= ADDRESS_MASK && (anchor.is_row() || anchor.is_dead())).then_some(anchor)
    }

    /// Puts it into its cell, before anybody looks there.
    pub fn put(self, cell: &AtomicU64) {
        cell.store(self.0, Ordering::Relaxed);
    }

    /// Whether no lock keeps the version from being moved.
    #[inline]
    pub fn is_at_rest(self) -> bool {
        matches!(self.0 >> OWNER_SHIFT, 0 | DEAD)
    }

    /// Makes every later reader find the version at `to`, if nothing has changed
    /// since `self` was loaded. This is the only change to an anchor that does
    /// not take its lock.
    pub fn try_move(self, cell: &AtomicU64, to: Address) -> bool {
        let moved = (self.0 & !ADDRESS_MASK) | to.word();
        cell.compare_exchange(self.0, moved, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    #[inline]
    pub fn is_owned_by(self, slot: Slot) -> bool {
        self.0 >> OWNER_SHIFT == slot.index() as u64 + 1
    }

    /// Locks the tuple if nothing has changed since `self` was loaded.
    #[inline]
    pub fn try_lock(self, cell: &AtomicU64, slot: Slot) -> bool {
        self.try_own(cell, slot.index() as u64 + 1)
    }

    /// Locks the tuple for a moment, even one that is gone for good, if nobody
    /// has locked it and nothing has changed since `self` was loaded.
    pub fn try_lock_for_cleaning(self, cell: &AtomicU64) -> Option<CleanerLock<'_>> {
        let is_locked = self.is_at_rest()
            && (self.is_dead() && is_removed(Control::CleanerLocks) || self.try_own(cell, CLEANER));
        // Made only if it is: the end of a lock unlocks.
        is_locked.then(|| CleanerLock { cell, before: self })
    }

    #[inline]
    fn try_own(self, cell: &AtomicU64, owner: u64) -> bool {
        let locked = (self.0 & ADDRESS_MASK) | (owner << OWNER_SHIFT);
        cell.compare_exchange(self.0, locked, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Makes a new tuple without a version, locked by its inserter. No other
    /// transaction has its id, but a collector may be moving its tombstone, or
    /// the cleaner removing an entry of its last life.
    pub fn try_create(self, cell: &AtomicU64, slot: Slot) -> bool {
        let locked = (slot.index() as u64 + 1) << OWNER_SHIFT;
        self.is_at_rest()
            && cell.compare_exchange(self.0, locked, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Unlocks the tuple and makes `newest` its newest version: **this is
    /// where a version becomes visible**. Only the lock's owner may call it.
    #[inline]
    pub fn publish(cell: &AtomicU64, newest: Address) {
        cell.store(newest.word(), Ordering::Release);
    }

    /// Unlocks a tuple that is gone for good. The anchor keeps its last version,
    /// a tombstone, until the id is used again.
    pub fn bury(cell: &AtomicU64, tombstone: Address) {
        cell.store(tombstone.word() | (DEAD << OWNER_SHIFT), Ordering::Release);
    }
}

/// The cleaner's lock of a tuple. However it ends, the tuple is then as it was
/// before: a panic must not leave it locked for ever.
#[must_use]
pub(crate) struct CleanerLock<'c> {
    cell: &'c AtomicU64,
    before: Anchor,
}

impl CleanerLock<'_> {
    /// Ends it: the tuple is gone for good.
    pub fn bury(self) {
        Anchor::bury(self.cell, self.before.newest());
        std::mem::forget(self);
    }
}

impl Drop for CleanerLock<'_> {
    fn drop(&mut self) {
        self.cell.store(self.before.0, Ordering::Release);
    }
}

const _: () = assert!(TRANSACTION_SLOTS < DEAD as usize, "a slot's owner number is none of the two names");

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// A cleaner that panics with its lock leaves the tuple as it was, and one that did
    /// not get the lock leaves it to the owner.
    #[test]
    fn the_cleaners_lock_ends_with_its_holder() {
        let cell = AtomicU64::new(1 << 12);
        let before = Anchor::load(&cell);
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let _lock = before.try_lock_for_cleaning(&cell).expect("nobody has locked it");
            assert_eq!(Anchor::load(&cell).owner(), Owner::Cleaner);
            assert!(Anchor::load(&cell).try_lock_for_cleaning(&cell).is_none());
            assert!(before.try_lock_for_cleaning(&cell).is_none());
            assert_eq!(Anchor::load(&cell).owner(), Owner::Cleaner);
            panic!("a damaged row");
        }));
        assert!(outcome.is_err());
        assert_eq!(Anchor::load(&cell), before);
        before.try_lock_for_cleaning(&cell).expect("nobody has locked it").bury();
        assert!(Anchor::load(&cell).is_dead());
    }
}
