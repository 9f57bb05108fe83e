//! Transactions of SQL are transactions of the database.

use gluesql_core::error::{Error, Result};
use gluesql_core::store::Transaction;

use crate::PantileStorage;
use crate::functions;

impl Transaction for PantileStorage {
    fn begin(&mut self, autocommit: bool) -> Result<bool> {
        if self.txn.is_some() {
            return if autocommit {
                Ok(false)
            } else {
                Err(message("a transaction runs, and goes on; end it first"))
            };
        }
        let begun = self.db.begin_with(self.options).map_err(Into::into);
        let begun = begun.and_then(|txn| Ok((functions::load(&self.tables, &txn)?, txn)));
        let (functions, txn) = self.noted(begun)?;
        self.functions = functions;
        self.txn = Some(txn);
        Ok(autocommit)
    }

    fn rollback(&mut self) -> Result<()> {
        self.txn.take().ok_or_else(none)?.rollback();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let txn = self.txn.take().ok_or_else(none)?;
        let committed = txn.commit().map_err(Into::into);
        self.noted(committed)?;
        Ok(())
    }
}

fn none() -> Error {
    message("no transaction runs; nothing was changed")
}

fn message(text: &str) -> Error {
    Error::StorageMsg(text.to_owned())
}
