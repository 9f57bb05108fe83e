//! Taking slots and giving them back.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_cc::Begin;

use crate::engine::core::Core;
use crate::engine::gate::{Permit, Visit};
use crate::types::error::{Error, Result};

impl Core {
    /// Fails once the database is closed. While it is being closed, what runs goes
    /// on.
    pub fn check_open(&self) -> Result<()> {
        let is_over = self.gate.is_closed() || is_removed(Control::ClosingWaits) && !self.gate.is_open();
        if is_over { Err(Error::Closed) } else { Ok(()) }
    }

    /// Takes a slot and a timestamp, and waits for a slot if need be.
    pub fn enter(&self, how: Begin) -> Result<(Permit, Timestamp)> {
        self.enter_for(Visit::Usual, how)
    }

    /// The same for a user's transaction, for which the worker makes room if it
    /// has the last slot.
    pub fn enter_apart(&self, how: Begin) -> Result<(Permit, Timestamp)> {
        match self.enter(how) {
            Err(Error::TooManyTransactions { .. }) => self.rounds.apart(|| self.enter(how)),
            entered => entered,
        }
    }

    /// The same for the thread that closes the database.
    pub fn enter_closing(&self, how: Begin) -> Result<(Permit, Timestamp)> {
        self.enter_for(Visit::Closing, how)
    }

    fn enter_for(&self, visit: Visit, how: Begin) -> Result<(Permit, Timestamp)> {
        let waited = self.options.wait_to_begin();
        let waited = if is_removed(Control::SlotsAwaited) { Duration::ZERO } else { waited };
        let begun = self.registry.begin_within(how, waited);
        let (slot, ts) =
            begun.map_err(|_| Error::TooManyTransactions { limit: TRANSACTION_SLOTS, waited })?;
        match self.gate.admit(slot, visit) {
            Some(permit) => Ok((permit, ts)),
            None => {
                self.registry.release(slot);
                Err(Error::Closed)
            }
        }
    }

    /// Gives a permit back. Its holder touches the medium no more.
    pub fn leave(&self, permit: Permit) {
        self.registry.release(permit.slot());
    }
}
