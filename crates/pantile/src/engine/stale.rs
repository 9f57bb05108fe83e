//! Index entries and tuple ids that wait to be cleaned up.

use std::collections::VecDeque;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pantile_base::{Padded, TableId, Timestamp, TupleId};
use pantile_cc::Slot;
use smallvec::SmallVec;

use crate::engine::table::TableInner;

pub(crate) const SHARDS: usize = 8;

/// Entries of tuples with many versions that are worth a look at those versions.
const LEAST_TOGETHER: usize = if cfg!(test) { 4 } else { 1024 };
/// Versions that are looked at for each of them.
pub(crate) const VERSIONS_EACH: usize = 16;

/// Tasks for which a queue keeps room.
const ROOM_KEPT: usize = 1024;

/// An index entry of a version that is no longer the newest. Those of a tuple are
/// neighbours in their order.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StaleEntry {
    pub table: TableId,
    pub tuple: TupleId,
    /// [`PRIMARY`](crate::engine::table::PRIMARY) or an index's number.
    pub index: u32,
    pub key: SmallVec<[u64; 4]>,
}

impl StaleEntry {
    pub fn new(table: &TableInner, index: u32, tuple: TupleId, key: &[u64]) -> Self {
        Self { table: table.id, index, tuple, key: SmallVec::from_slice(key) }
    }
}

impl StaleEntry {
    /// Bytes of the key, if it lies apart from the entry.
    pub fn key_bytes(&self) -> u64 {
        if self.key.spilled() { (self.key.capacity() * size_of::<u64>()) as u64 } else { 0 }
    }
}

/// Something that is due.
pub(crate) enum Task {
    Entry(StaleEntry),
    /// Nothing refers to the tuple id any more that could do harm.
    Tuple(TableId, TupleId),
}

/// What is due: the times before which each kind was put into its queue.
#[derive(Clone, Copy)]
pub(crate) struct DueBefore {
    /// Entries that have not been tried.
    pub fresh: Timestamp,
    /// Entries that a transaction needed: none can have seen what was before.
    pub late: Timestamp,
    /// Tuple ids: no transaction that may write was running then.
    pub ids: Timestamp,
}

/// Tasks by slot, so that committing threads seldom meet. Any thread works
/// off any shard (T18).
#[derive(Default)]
pub(crate) struct StaleQueue {
    shards: [Padded<Mutex<Tasks>>; SHARDS],
    together: Mutex<Together>,
    notes: Notes,
}

/// Entries of tuples with many versions. Each of them needs a look at all versions of
/// its tuple, so they wait until there are many of them (I-17).
struct Together {
    entries: Vec<StaleEntry>,
    /// Bytes of their keys.
    key_bytes: u64,
    /// As many are worth it.
    worth: usize,
    /// When they were last taken.
    taken: Timestamp,
}

impl Default for Together {
    fn default() -> Self {
        Self { entries: Vec::new(), key_bytes: 0, worth: LEAST_TOGETHER, taken: Timestamp::ZERO }
    }
}

/// The tuples with stale entries, as long as an index image is being made: what
/// that has found in a tree may have been stale.
#[derive(Default)]
struct Notes {
    are_taken: AtomicBool,
    tuples: Mutex<Vec<(TableId, TupleId)>>,
    /// Bytes of those that have been ended and are still in use.
    ended_bytes: AtomicUsize,
}

impl Notes {
    fn bytes(&self) -> usize {
        bytes_of(&self.tuples.lock()) + self.ended_bytes.load(Ordering::Relaxed)
    }

    /// The notes so far, of which none are left.
    fn take(&self) -> Vec<(TableId, TupleId)> {
        let mut tuples = self.tuples.lock();
        self.ended_bytes.store(bytes_of(&tuples), Ordering::Relaxed);
        std::mem::take(&mut tuples)
    }
}

fn bytes_of(notes: &Vec<(TableId, TupleId)>) -> usize {
    notes.capacity() * size_of::<(TableId, TupleId)>()
}

/// More notes than these are not worth their memory.
const MOST_NOTES: usize = 1 << 20;

#[derive(Default)]
struct Tasks {
    /// Each entry is tried once, soon. The cleaner can tell exactly whether a
    /// transaction needs an entry, and a long one seldom needs an entry that
    /// was made while it ran. Otherwise scans over deleted keys would slow
    /// down for as long as one long transaction runs.
    fresh: VecDeque<(Timestamp, StaleEntry)>,
    /// Done once the watermark has passed their time.
    late: VecDeque<(Timestamp, StaleEntry)>,
    /// Ids of deleted tuples. A transaction that was running when the last entry
    /// went may have found the id before. If it only reads, whatever uses the id
    /// next is too new for it. So only those count that may write.
    ids: VecDeque<(Timestamp, TableId, TupleId)>,
    /// Bytes of the keys of entries: there may be millions.
    key_bytes: u64,
}

impl Tasks {
    fn len(&self) -> usize {
        self.fresh.len() + self.late.len() + self.ids.len()
    }

    fn bytes(&self) -> u64 {
        let entries = || self.late.iter().chain(&self.fresh);
        debug_assert_eq!(self.key_bytes, entries().map(|(_, entry)| entry.key_bytes()).sum::<u64>());
        let capacity = self.fresh.capacity() + self.late.capacity();
        let ids = self.ids.capacity() * size_of::<(Timestamp, TableId, TupleId)>();
        self.key_bytes + (capacity * size_of::<(Timestamp, StaleEntry)>() + ids) as u64
    }

    fn pop(&mut self, due: DueBefore) -> Option<Task> {
        let is_due = |queue: &VecDeque<(Timestamp, StaleEntry)>, before| {
            queue.front().is_some_and(|(at, _)| *at < before)
        };
        if self.ids.front().is_some_and(|(at, ..)| *at < due.ids) {
            return pop_and_shrink(&mut self.ids).map(|(_, table, tuple)| Task::Tuple(table, tuple));
        }
        let queue = match is_due(&self.late, due.late) {
            true => &mut self.late,
            false if is_due(&self.fresh, due.fresh) => &mut self.fresh,
            false => return None,
        };
        let (_, entry) = pop_and_shrink(queue)?;
        self.key_bytes -= entry.key_bytes();
        Some(Task::Entry(entry))
    }

    /// Whether anything is due, now or soon.
    fn is_any_due(&self, due: DueBefore) -> bool {
        !self.fresh.is_empty()
            || self.late.front().is_some_and(|(at, _)| *at < due.late)
            || self.ids.front().is_some_and(|(at, ..)| *at < due.ids)
    }
}

/// Takes the first one out, and gives memory back that the queue no longer needs.
fn pop_and_shrink<T>(queue: &mut VecDeque<T>) -> Option<T> {
    if queue.capacity() > ROOM_KEPT && queue.len() < queue.capacity() / 4 {
        queue.shrink_to((queue.len() * 2).max(ROOM_KEPT));
    }
    queue.pop_front()
}

impl StaleQueue {
    /// DRAM used, in bytes.
    pub fn bytes(&self) -> u64 {
        let notes = self.notes.bytes();
        let together = {
            let together = self.together.lock();
            together.key_bytes + (together.entries.capacity() * size_of::<StaleEntry>()) as u64
        };
        self.shards.iter().map(|shard| shard.lock().bytes()).sum::<u64>() + together + notes as u64
    }

    pub fn push(&self, slot: Slot, at: Timestamp, entry: StaleEntry) {
        let mut tasks = self.shard(slot.index()).lock();
        self.note(entry.table, entry.tuple);
        tasks.key_bytes += entry.key_bytes();
        tasks.fresh.push_back((at, entry));
    }

    #[inline]
    pub fn push_all(&self, slot: Slot, at: Timestamp, entries: impl ExactSizeIterator<Item = StaleEntry>) {
        if entries.len() > 0 {
            let mut shard = self.shard(slot.index()).lock();
            let Tasks { fresh, key_bytes, .. } = &mut *shard;
            fresh.extend(entries.map(|entry| {
                self.note(entry.table, entry.tuple);
                *key_bytes += entry.key_bytes();
                (at, entry)
            }));
        }
    }

    /// Begins to note the tuples of entries that wait, come or go. Entries come under the
    /// lock of their queue, and are noted under it: what is not yet there when this looks
    /// sees the flag.
    pub fn begin_notes(&self) {
        self.notes.are_taken.store(true, Ordering::SeqCst);
        for shard in &self.shards {
            let tasks = shard.lock();
            tasks.fresh.iter().chain(&tasks.late).for_each(|(_, entry)| self.note(entry.table, entry.tuple));
        }
        let together = self.together.lock();
        together.entries.iter().for_each(|entry| self.note(entry.table, entry.tuple));
    }

    /// Ends that. Calls `take` with the notes in order, or with none if there were
    /// too many. Holds no lock meanwhile: `take` may wait for a file.
    pub fn end_notes<R>(&self, take: impl FnOnce(Option<&[(TableId, TupleId)]>) -> R) -> R {
        self.notes.are_taken.store(false, Ordering::SeqCst);
        let mut tuples = self.notes.take();
        // Others may be missing in a full list, however often it has the same ones.
        let is_complete = tuples.len() < MOST_NOTES;
        tuples.sort_unstable();
        tuples.dedup();
        let result = take(is_complete.then_some(&tuples));
        drop(tuples);
        self.notes.ended_bytes.store(0, Ordering::Relaxed);
        result
    }

    /// Notes a tuple if notes are being taken. A caller that removes an entry does
    /// so first: if the image has seen the entry, the caller sees the flag.
    #[inline]
    pub fn note(&self, table: TableId, tuple: TupleId) {
        if self.notes.are_taken.load(Ordering::SeqCst) && !is_removed(Control::ImageNotes) {
            let mut tuples = self.notes.tuples.lock();
            if tuples.len() < MOST_NOTES {
                tuples.push((table, tuple));
            }
        }
    }

    /// The tuple id can be used again once all transactions have ended that run
    /// now and may write.
    pub fn bury(&self, slot: Slot, at: Timestamp, table: TableId, tuple: TupleId) {
        self.shard(slot.index()).lock().ids.push_back((at, table, tuple));
    }

    #[inline]
    pub fn push_late(&self, slot: Slot, at: Timestamp, entry: StaleEntry) {
        let mut tasks = self.shard(slot.index()).lock();
        self.note(entry.table, entry.tuple);
        tasks.key_bytes += entry.key_bytes();
        tasks.late.push_back((at, entry));
    }

    /// Puts an entry of a tuple with many versions to others of its kind.
    pub fn push_together(&self, entry: StaleEntry) {
        let mut together = self.together.lock();
        self.note(entry.table, entry.tuple);
        together.key_bytes += entry.key_bytes();
        together.entries.push(entry);
    }

    /// Takes all entries of tuples with many versions, in order of the tuples, if there
    /// are `times` as many as they are worth, or if they were last taken before `late`.
    pub fn take_together(&self, now: Timestamp, late: Timestamp, times: usize) -> Vec<StaleEntry> {
        let Some(mut together) = self.together.try_lock() else { return Vec::new() };
        let is_due = together.entries.len() >= times * together.worth || together.taken < late;
        if !is_due || together.entries.is_empty() {
            return Vec::new();
        }
        together.taken = now;
        together.key_bytes = 0;
        let mut entries = std::mem::take(&mut together.entries);
        drop(together);
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    /// Says how many versions had to be looked at for what was last taken.
    pub fn looked_at(&self, versions: usize) {
        self.together.lock().worth = (versions / VERSIONS_EACH).max(LEAST_TOGETHER);
    }

    /// The next task of a shard that is due, and how many waited with it.
    /// `None` also while another thread has the shard.
    #[inline]
    pub fn try_pop(&self, shard: usize, due: DueBefore) -> Option<(Task, usize)> {
        let mut tasks = self.shard(shard).try_lock()?;
        let waiting = tasks.len();
        tasks.pop(due).map(|task| (task, waiting))
    }

    /// The next task of a shard that is due.
    pub fn pop(&self, shard: usize, due: DueBefore) -> Option<Task> {
        self.shard(shard).lock().pop(due)
    }

    /// Whether tasks wait that do not wait for a transaction to end.
    pub fn is_any_due(&self, due: DueBefore) -> bool {
        self.shards.iter().any(|shard| shard.lock().is_any_due(due))
            || !self.together.lock().entries.is_empty()
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum::<usize>() + self.together.lock().entries.len()
    }

    fn shard(&self, of: usize) -> &Mutex<Tasks> {
        &self.shards[of % SHARDS]
    }
}

#[cfg(test)]
#[path = "stale_test.rs"]
mod tests;
