//! Taking slots and giving them back.

use std::cell::Cell;
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{TRANSACTION_SLOTS, WRITER_SLOTS};
use pantile_cc::Begin;

use crate::engine::core::Core;
use crate::engine::gate::{Permit, Visit};
use crate::types::error::{Error, Result};

/// What one who enters gets.
pub(crate) type Entered = (Permit, Timestamp);

impl Core {
    /// Fails once the database is closed. While it is being closed, what runs goes
    /// on.
    pub fn check_open(&self) -> Result<()> {
        let is_over = self.gate.is_closed() || is_removed(Control::ClosingWaits) && !self.gate.is_open();
        if is_over { Err(Error::Closed) } else { Ok(()) }
    }

    /// Takes a slot and a timestamp for work of the database, and waits for a slot if need be.
    pub fn enter(&self, how: Begin) -> Result<Entered> {
        self.enter_for_work(Visit::Usual, how, self.time_to_enter())
    }

    /// The same for a user's transaction. Those that may write leave some slots to
    /// others. The worker makes room for it if it has the last slot; it has waited for
    /// its time by then, and the worker is not to wait for it.
    pub fn enter_apart(&self, how: Begin, takes_any: bool) -> Result<Entered> {
        let takes_any = takes_any || is_removed(Control::ReaderSlots);
        let slots = if takes_any { TRANSACTION_SLOTS } else { WRITER_SLOTS };
        let enter = |waited| self.enter_for(Visit::Usual, how, slots, waited);
        let full = match enter(self.time_to_enter()) {
            Err(full @ Error::TooManyTransactions { .. }) => full,
            entered => return entered,
        };
        match self.rounds.apart(|| enter(Duration::ZERO)) {
            Err(Error::TooManyTransactions { .. }) => Err(full),
            entered => entered,
        }
    }

    /// Takes a slot if one is free.
    fn enter_at_once(&self, how: Begin) -> Result<Entered> {
        self.enter_for_work(Visit::Usual, how, Duration::ZERO)
    }

    /// The same for the thread that closes the database.
    pub fn enter_closing(&self, how: Begin) -> Result<Entered> {
        self.enter_for_work(Visit::Closing, how, self.time_to_enter())
    }

    /// Does `work` as a round of the worker, with a function that takes slots for late
    /// writers. If all are taken it waits for one, and not within the round: users'
    /// transactions that have waited for their time look for a slot between rounds.
    /// Begins anew then, so `work` must be such that some of it may be done twice.
    pub fn apart_with_slots<T>(
        &self,
        mut work: impl FnMut(&dyn Fn() -> Result<Entered>) -> Result<T>,
    ) -> Result<T> {
        let at_once = || self.enter_at_once(Begin::LateWriter);
        match self.rounds.apart(|| work(&at_once)) {
            Err(Error::TooManyTransactions { .. }) => {}
            done => return done,
        }
        let waited_for = Waited { core: self, entered: Cell::new(Some(self.enter(Begin::LateWriter)?)) };
        self.rounds.apart(|| work(&|| waited_for.entered.take().map_or_else(at_once, Ok)))
    }

    fn time_to_enter(&self) -> Duration {
        if is_removed(Control::SlotsAwaited) { Duration::ZERO } else { self.options.wait_to_begin() }
    }

    /// Work may come to any table, whenever that was created.
    fn enter_for_work(&self, visit: Visit, how: Begin, waited: Duration) -> Result<Entered> {
        let entered = self.enter_for(visit, how, TRANSACTION_SLOTS, waited);
        entered.inspect(|(permit, _)| self.registry.use_newer_tables(permit.slot()))
    }

    fn enter_for(&self, visit: Visit, how: Begin, slots: usize, waited: Duration) -> Result<Entered> {
        #[cfg(test)]
        tests::note(self, waited);
        let begun = self.registry.begin_within(how, slots, waited);
        let (slot, ts) = begun.map_err(|_| Error::TooManyTransactions { limit: slots, waited })?;
        match self.gate.admit(slot, visit) {
            Some(permit) => Ok((permit, ts)),
            None => {
                self.registry.release(slot);
                Err(Error::Closed)
            }
        }
    }

    /// Does `work` with a permit that is given back afterwards, also if the work panics: a slot that nobody gives
    /// back would hold back every state record, and closing.
    pub fn within<T>(&self, permit: Permit, work: impl FnOnce(&Permit) -> T) -> T {
        struct Inside<'c>(&'c Core, Permit);
        impl Drop for Inside<'_> {
            fn drop(&mut self) {
                self.0.registry.release(self.1.slot());
            }
        }
        let inside = Inside(self, permit);
        work(&inside.1)
    }

    /// Gives a permit back. Its holder touches the medium no more.
    pub fn leave(&self, permit: Permit) {
        self.registry.release(permit.slot());
    }
}

/// A slot that was waited for, which goes back unless it is taken.
struct Waited<'c> {
    core: &'c Core,
    entered: Cell<Option<Entered>>,
}

impl Drop for Waited<'_> {
    fn drop(&mut self) {
        if let Some((permit, _)) = self.entered.take() {
            self.core.leave(permit);
        }
    }
}

#[cfg(test)]
#[path = "entering_test.rs"]
mod tests;
