//! The gate: what may touch the medium, and until when (I-15).

use pantile_base::Timestamp;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicU32, Ordering};
use pantile_cc::{Begin, Slot};

use crate::engine::core::Core;
use crate::types::error::{Error, Result};

/// Nobody may enter: recovery is not done, or the database is closed.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;
/// Only the thread that closes the database may enter.
const CLOSING: u32 = 2;

/// Whether the database is open. It begins closed, until recovery is done.
#[derive(Default)]
pub(crate) struct Gate(AtomicU32);

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
        self.is(OPEN)
    }

    #[inline]
    fn is(&self, state: u32) -> bool {
        self.0.load(Ordering::SeqCst) == state
    }
}

impl Core {
    pub fn check_open(&self) -> Result<()> {
        if self.gate.is_open() { Ok(()) } else { Err(Error::Closed) }
    }

    /// Takes a slot and a timestamp.
    pub fn enter(&self, how: Begin) -> Result<(Permit, Timestamp)> {
        self.enter_in(OPEN, how)
    }

    /// The same for the thread that closes the database.
    pub fn enter_closing(&self, how: Begin) -> Result<(Permit, Timestamp)> {
        self.enter_in(CLOSING, how)
    }

    fn enter_in(&self, state: u32, how: Begin) -> Result<(Permit, Timestamp)> {
        let begun = self.registry.begin(how);
        let (slot, ts) = begun.map_err(|_| Error::TooManyTransactions { limit: TRANSACTION_SLOTS })?;
        // The slot comes first. A thread that closes the database changes the
        // state and then looks at the slots, so one of the two sees the other.
        if self.gate.is(state) {
            return Ok((Permit(slot), ts));
        }
        self.registry.release(slot);
        Err(Error::Closed)
    }

    /// Gives a permit back. Its holder touches the medium no more.
    pub fn leave(&self, permit: Permit) {
        self.registry.release(permit.0);
    }
}
