use std::collections::VecDeque;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_cc::Slot;

use crate::OldVersion;

const LISTS: usize = 64;

/// Superseded versions in the order of the commits that superseded them, a
/// list for each transaction slot: threads meet nowhere (Steam 4.2).
pub(crate) struct CommitLists {
    lists: Box<[Mutex<VecDeque<OldVersion>>]>,
}

impl Default for CommitLists {
    fn default() -> Self {
        Self { lists: (0..LISTS).map(|_| Mutex::default()).collect() }
    }
}

impl CommitLists {
    pub fn push(&self, slot: Slot, old: OldVersion) {
        self.lists[slot.index() % LISTS].lock().push_back(old);
    }

    /// Hands over versions of the slot's list whose end lies below the
    /// watermark, at most so many. Those that are refused come last.
    pub fn drain(
        &self,
        slot: Slot,
        watermark: Timestamp,
        most: usize,
        each: impl FnMut(&OldVersion) -> bool,
    ) {
        drain(&self.lists[slot.index() % LISTS], watermark, most, each);
    }

    /// The same of all lists: threads that stop leave theirs behind (T18).
    pub fn drain_all(&self, watermark: Timestamp, most: usize, mut each: impl FnMut(&OldVersion) -> bool) {
        for list in &self.lists {
            drain(list, watermark, most, &mut each);
        }
    }

    pub fn forget(&self, table: TableId) {
        for list in &self.lists {
            list.lock().retain(|old| old.table != table);
        }
    }

    pub fn len(&self) -> usize {
        self.lists.iter().map(|list| list.lock().len()).sum()
    }
}

fn drain(
    list: &Mutex<VecDeque<OldVersion>>,
    watermark: Timestamp,
    most: usize,
    mut each: impl FnMut(&OldVersion) -> bool,
) {
    let Some(mut list) = list.try_lock() else { return };
    for _ in 0..most.min(list.len()) {
        let Some(old) = list.pop_front_if(|old| old.end_ts < watermark) else { return };
        if !each(&old) {
            list.push_back(old);
        }
    }
}
