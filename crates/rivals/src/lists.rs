use std::collections::VecDeque;

use pantile_base::TableId;
use pantile_base::sync::Mutex;
use pantile_cc::Slot;
use pantile_reclaim::OldVersion;

const LISTS: usize = 64;

/// Superseded versions, in one list for each transaction slot, so that threads
/// do not contend (Steam 4.2). Each version carries the time after which it can
/// be removed: the timestamp at which it was superseded, or the number of the
/// epoch.
pub(crate) struct Lists(Box<[Mutex<List>]>);

type List = VecDeque<(u64, OldVersion)>;

impl Default for Lists {
    fn default() -> Self {
        Self((0..LISTS).map(|_| Mutex::default()).collect())
    }
}

impl Lists {
    /// Adds a version. `time` is called under the list's lock, so that the list
    /// stays in order.
    pub fn push(&self, slot: Slot, old: OldVersion, time: impl FnOnce() -> u64) {
        let mut list = self.0[slot.index() % LISTS].lock();
        list.push_back((time(), old));
    }

    /// Passes to `each` at most `most` versions of the slot's list with times
    /// below `end`. Versions that `each` refuses go to the end of the list.
    pub fn drain(&self, slot: Slot, end: u64, most: usize, each: impl FnMut(&OldVersion) -> bool) {
        drain(&self.0[slot.index() % LISTS], end, most, each);
    }

    /// The same for every list: threads that stop leave their lists behind
    /// (T18).
    pub fn drain_all(&self, end: u64, most: usize, mut each: impl FnMut(&OldVersion) -> bool) {
        for list in &self.0 {
            drain(list, end, most, &mut each);
        }
    }

    pub fn forget(&self, table: TableId) {
        for list in &self.0 {
            list.lock().retain(|(_, old)| old.table != table);
        }
    }

    pub fn len(&self) -> usize {
        self.0.iter().map(|list| list.lock().len()).sum()
    }
}

fn drain(list: &Mutex<List>, end: u64, most: usize, mut each: impl FnMut(&OldVersion) -> bool) {
    let Some(mut list) = list.try_lock() else { return };
    for _ in 0..most.min(list.len()) {
        let Some((time, old)) = list.pop_front_if(|(time, _)| *time < end) else { return };
        if !each(&old) {
            list.push_back((time, old));
        }
    }
}
