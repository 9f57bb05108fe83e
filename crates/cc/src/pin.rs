//! Pins: a thread announces that it looks at something that its timestamp does
//! not protect.
//!
//! A version that a transaction may see stays, because the transaction's
//! timestamp is in the registry. But on the way to it the thread looks at more:
//! the newest version of a tuple, which may be too new; headers of versions
//! whose contents are gone; tiles. For these few instructions it pins its slot,
//! with one store to its own cache line. Before memory is freed, every slot
//! must have been seen unpinned once since the memory could last be found (T6).

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicU64, Ordering, fence};
use smallvec::SmallVec;

use crate::registry::{Registry, Slot};

/// Until it is dropped, nothing that was reachable when it was created is
/// freed.
#[derive(Debug)]
pub struct Pin<'r> {
    cell: &'r AtomicU64,
    odd: u64,
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.cell.store(self.odd.wrapping_add(1), Ordering::Release);
    }
}

impl Registry {
    /// Pins the slot, which must be the caller's and not be pinned. Keep the
    /// pin short and wait for nothing meanwhile, because reclamation waits for
    /// it.
    #[inline]
    pub fn pin(&self, slot: Slot) -> Pin<'_> {
        let cell = &self.slots[slot.index()].pin;
        let odd = cell.load(Ordering::Relaxed).wrapping_add(1);
        debug_assert!(odd % 2 == 1, "a slot has at most one pin");
        // Ordered before the loads that it protects: either they find the
        // replacement of what is freed, or the freeing thread finds the pin.
        cell.store(odd, Ordering::SeqCst);
        Pin { cell, odd }
    }

    /// Starts to wait for the pins of this moment.
    pub fn grace(&self) -> Grace {
        fence(Ordering::SeqCst);
        let pinned = self.slots_used().iter().enumerate().filter_map(|(n, state)| {
            let pin = state.pin.load(Ordering::SeqCst);
            (pin % 2 == 1).then_some((n as u32, pin))
        });
        Grace { waiting: pinned.collect() }
    }
}

/// The pins of one moment that have not been dropped yet.
#[derive(Clone, Debug, Default)]
pub struct Grace {
    waiting: SmallVec<[(u32, u64); 4]>,
}

impl Grace {
    /// Whether all of them have been dropped. Never blocks.
    pub fn is_over(&mut self, registry: &Registry) -> bool {
        self.waiting.retain(|(n, pin)| registry.slots[*n as usize].pin.load(Ordering::SeqCst) == *pin);
        self.waiting.is_empty() || is_removed(Control::Pins)
    }
}
