//! Savepoints.

use pyo3::prelude::*;

use crate::transaction::Transaction;

/// A point in a transaction. As a context manager, it undoes what was written since
/// if the block raises; the transaction goes on.
#[pyclass(frozen, module = "pantile")]
pub struct Savepoint {
    transaction: Py<Transaction>,
    point: pantile::Savepoint,
}

impl Savepoint {
    pub fn new(transaction: Bound<'_, Transaction>) -> PyResult<Self> {
        let point = transaction.get().with(transaction.py(), |txn| Ok(txn.savepoint()))?;
        Ok(Self { transaction: transaction.unbind(), point })
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
        let ended = self.transaction.get().with(py, |txn| {
            if has_raised {
                txn.rollback_to(self.point)?;
            }
            txn.release(self.point);
            Ok(())
        });
        // What the block has raised says more than that the transaction is over.
        if has_raised { Ok(()) } else { ended }
    }

    /// Undoes what was written since. The savepoint stays.
    fn rollback(&self, py: Python<'_>) -> PyResult<()> {
        self.transaction.get().with(py, |txn| txn.rollback_to(self.point))
    }
}
