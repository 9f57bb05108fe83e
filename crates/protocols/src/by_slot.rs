//! What a protocol keeps for each running transaction.

use pantile_base::Padded;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::{Mutex, MutexGuard};
use pantile_cc::Txn;

/// A value for each slot. Only the slot's transaction takes it, so nobody waits.
pub(crate) struct BySlot<T>(Box<[Padded<Mutex<T>>]>);

impl<T: Default> Default for BySlot<T> {
    fn default() -> Self {
        Self((0..TRANSACTION_SLOTS).map(|_| Padded::default()).collect())
    }
}

impl<T> BySlot<T> {
    pub fn of(&self, txn: Txn) -> MutexGuard<'_, T> {
        self.0[txn.slot.index()].lock()
    }
}
