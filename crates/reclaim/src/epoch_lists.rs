use std::collections::VecDeque;

use pantile_base::TableId;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Slot;

use crate::OldVersion;

const LISTS: usize = 64;

/// Versions with the epoch in which each was superseded, in this order.
type List = Mutex<VecDeque<(u64, OldVersion)>>;

/// Superseded versions with the number of the epoch in which they were, a
/// list for each transaction slot.
pub(crate) struct EpochLists {
    /// The epoch that has begun last.
    current: AtomicU64,
    lists: Box<[List]>,
}

impl Default for EpochLists {
    fn default() -> Self {
        // So that there are epochs before the first.
        Self { current: AtomicU64::new(8), lists: (0..LISTS).map(|_| Mutex::default()).collect() }
    }
}

impl EpochLists {
    pub fn current(&self) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    /// Begins the epoch after this one. One thread at a time.
    pub fn advance(&self) {
        self.current.fetch_add(1, Ordering::AcqRel);
    }

    pub fn push(&self, slot: Slot, old: OldVersion) {
        let mut list = self.lists[slot.index() % LISTS].lock();
        // Under the lock, so that the list is in order.
        list.push_back((self.current(), old));
    }

    /// Hands over versions of the slot's list that were superseded in an epoch
    /// up to `last`, at most so many. Those that are refused come last.
    pub fn drain(&self, slot: Slot, last: u64, most: usize, each: impl FnMut(&OldVersion) -> bool) {
        self.drain_list(slot.index() % LISTS, last, most, each);
    }

    /// The same of all lists: threads that stop leave theirs behind (T18).
    pub fn drain_all(&self, last: u64, most: usize, mut each: impl FnMut(&OldVersion) -> bool) {
        for list in 0..LISTS {
            self.drain_list(list, last, most, &mut each);
        }
    }

    fn drain_list(&self, list: usize, last: u64, most: usize, mut each: impl FnMut(&OldVersion) -> bool) {
        let Some(mut list) = self.lists[list].try_lock() else { return };
        for _ in 0..most.min(list.len()) {
            let Some((_, old)) = list.pop_front_if(|(epoch, _)| *epoch <= last) else { return };
            if !each(&old) {
                list.push_back((self.current(), old));
            }
        }
    }

    pub fn forget(&self, table: TableId) {
        for list in &self.lists {
            list.lock().retain(|(_, old)| old.table != table);
        }
    }

    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.lock().len()).sum()
    }
}
