//! Savepoints.

use std::collections::BTreeMap;

use pantile::{Error, Result};
use pyo3::prelude::*;

use crate::error::Closed;
use crate::transaction::Transaction;

/// A point in a transaction. As a context manager, it undoes what was written since
/// if the block raises; the transaction goes on.
#[pyclass(frozen, module = "pantile")]
pub struct Savepoint {
    transaction: Py<Transaction>,
    number: u64,
}

impl Savepoint {
    pub fn new(transaction: Bound<'_, Transaction>) -> PyResult<Self> {
        let running = transaction.get();
        let number = running.with(transaction.py(), |txn| Ok(running.points().set(txn)))?;
        Ok(Self { transaction: transaction.unbind(), number })
    }
}

#[pymethods]
impl Savepoint {
    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*raised))]
    fn __exit__(&self, py: Python<'_>, raised: &Bound<'_, pyo3::types::PyTuple>) -> PyResult<()> {
        let has_raised = raised.get_item(0).is_ok_and(|kind| !kind.is_none());
        let running = self.transaction.get();
        let ended = running.with(py, |txn| {
            if has_raised {
                running.points().roll_back(txn, self.number)?;
            }
            running.points().release(txn, self.number);
            Ok(())
        });
        match ended {
            // What the block has raised says more than that the transaction is over.
            Err(error) if has_raised && error.is_instance_of::<Closed>(py) => Ok(()),
            ended => ended,
        }
    }

    /// Undoes what was written since. The savepoint stays. A block that was begun since goes on: if it
    /// raises, what it has written after this is undone, too.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        let running = self.transaction.get();
        running.with(py, |txn| running.points().roll_back(txn, self.number))
    }
}

impl Drop for Savepoint {
    fn drop(&mut self) {
        self.transaction.get().points().engine.remove(&self.number);
    }
}

/// The savepoints of a transaction that have not ended, as the engine has them, in the order in which they were set.
#[derive(Default)]
pub struct Points {
    last: u64,
    engine: BTreeMap<u64, pantile::Savepoint>,
}

impl Points {
    fn set(&mut self, txn: &mut pantile::Transaction) -> u64 {
        self.last += 1;
        self.engine.insert(self.last, txn.savepoint());
        self.last
    }

    /// The engine forgets the later ones. Their blocks go on, with what is here now.
    fn roll_back(&mut self, txn: &mut pantile::Transaction, number: u64) -> Result<()> {
        txn.rollback_to(*self.engine.get(&number).ok_or(Error::UnknownSavepoint)?)?;
        for (_, later) in self.engine.range_mut(number + 1..) {
            *later = txn.savepoint();
        }
        Ok(())
    }

    fn release(&mut self, txn: &mut pantile::Transaction, number: u64) {
        if let Some(point) = self.engine.remove(&number) {
            txn.release(point);
        }
    }
}
