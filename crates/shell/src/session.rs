//! What commands work with: the database, the open transaction, and how rows are printed.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use pantile::{Database, Transaction};

use crate::error::Error;
use crate::print::Mode;

/// A database, and what commands have set.
pub struct Session<'s> {
    pub db: &'s Database,
    pub txn: Option<Transaction>,
    pub mode: Mode,
    pub stop: &'s AtomicBool,
}

impl Session<'_> {
    /// Reads in the open transaction, or in one of its own.
    pub fn reading<T>(&self, action: impl FnOnce(&Transaction) -> Result<T, Error>) -> Result<T, Error> {
        match &self.txn {
            Some(txn) => action(txn),
            None => action(&self.db.begin_read()?),
        }
    }

    /// Writes in the open transaction, or in one of its own that is committed.
    pub fn writing<T>(
        &mut self,
        mut action: impl FnMut(&mut Transaction) -> pantile::Result<T>,
    ) -> Result<T, Error> {
        match &mut self.txn {
            Some(txn) => Ok(action(txn)?),
            None => Ok(self.db.run(action)?),
        }
    }

    /// What long work is told that asks whether to go on.
    pub fn go_on(&self) -> ControlFlow<()> {
        match self.check_stop() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }

    /// Fails if the caller has asked to stop, once.
    pub fn check_stop(&self) -> Result<(), Error> {
        // Read first: a write for each row would be felt.
        if self.stop.load(Ordering::Relaxed) && self.stop.swap(false, Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}
