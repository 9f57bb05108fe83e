//! Calls that are made wholly or not at all.

use pantile_base::sync::thread;

use crate::transactions::transaction::Transaction;

/// Dropping it undoes what the transaction has done since it began: where a call fails, and where the program's own code
/// panics within it and the program catches that.
pub(super) struct Whole<'t> {
    pub txn: &'t mut Transaction,
    undo: usize,
}

impl<'t> Whole<'t> {
    #[inline]
    pub fn begin(txn: &'t mut Transaction) -> Self {
        let undo = txn.buffers.undo.len();
        Self { txn, undo }
    }

    /// Keeps what has been done.
    #[inline]
    pub fn end(self) {
        std::mem::forget(self);
    }
}

impl Drop for Whole<'_> {
    #[cold]
    fn drop(&mut self) {
        if thread::panicking() {
            // Nobody will enter their keys.
            self.txn.gathered = None;
        }
        self.txn.undo_to(self.undo);
    }
}
