//! The gate: what may touch the medium, and until when (I-20).

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicU32, Ordering};
use pantile_cc::Slot;

/// Nothing may enter: recovery is not done, or the database is closed.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;
/// Only the thread that closes the database may enter.
const CLOSING: u32 = 2;

/// Whether the database is open. It begins closed, until recovery is done.
pub(crate) struct Gate(AtomicU32);

impl Default for Gate {
    fn default() -> Self {
        Self(AtomicU32::new(CLOSED))
    }
}

/// A transaction slot that was taken while the database was open. Whatever may
/// write to the medium asks for one. Closing waits until every permit has been
/// given back and gives out no others, so nothing is written after the record
/// that says closed.
#[must_use = "closing waits until the permit is given back"]
pub(crate) struct Permit(Slot);

impl Permit {
    #[inline]
    pub fn slot(&self) -> Slot {
        self.0
    }
}

/// What enters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    Usual,
    /// The thread that closes the database.
    Closing,
}

impl Gate {
    pub fn open(&self) {
        self.0.store(OPEN, Ordering::SeqCst);
    }

    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::SeqCst);
    }

    /// Stops giving out permits. Returns false if that was done before.
    pub fn begin_closing(&self) -> bool {
        self.0.compare_exchange(OPEN, CLOSING, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    pub fn is_open(&self) -> bool {
        self.0.load(Ordering::SeqCst) == OPEN
    }

    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::SeqCst) == CLOSED
    }

    /// A permit for the holder of a slot. The slot comes first: a thread that
    /// closes the database changes the state and then looks at the slots, so
    /// one of the two sees the other.
    pub fn admit(&self, slot: Slot, visit: Visit) -> Option<Permit> {
        let required = if visit == Visit::Closing { CLOSING } else { OPEN };
        (self.0.load(Ordering::SeqCst) == required || is_removed(Control::Gate)).then_some(Permit(slot))
    }
}
