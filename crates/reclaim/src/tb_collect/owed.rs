//! What transactions owe: bytes that they have superseded and not yet paid for by work.

use pantile_base::Padded;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Slot;

/// Number of counts. Slots that share one may lose some of it, which delays a bit of work.
const COUNTS: usize = 64;

/// Bytes by transaction slot, since the last work of the slot. One transaction at a time has a slot,
/// so nothing is shared.
#[derive(Debug)]
pub(super) struct Owed(Box<[Padded<AtomicU64>; COUNTS]>);

impl Default for Owed {
    fn default() -> Self {
        Self(Box::new([const { Padded(AtomicU64::new(0)) }; COUNTS]))
    }
}

impl Owed {
    /// Adds bytes that a transaction of the slot has superseded.
    #[inline]
    pub fn add(&self, slot: Slot, bytes: u64) {
        let count = self.count(slot);
        count.store(count.load(Ordering::Relaxed) + bytes, Ordering::Relaxed);
    }

    /// Takes what the slot owes, if that is as much as `least`.
    #[inline]
    pub fn take(&self, slot: Slot, least: u64) -> Option<u64> {
        let count = self.count(slot);
        let owed = count.load(Ordering::Relaxed);
        (owed >= least).then(|| {
            count.store(0, Ordering::Relaxed);
            owed
        })
    }

    #[inline]
    fn count(&self, slot: Slot) -> &AtomicU64 {
        &self.0[slot.index() % COUNTS]
    }
}
