//! Index entries and tuple ids that wait to be cleaned up.

use std::collections::VecDeque;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp, TupleId};
use pantile_cc::Slot;
use smallvec::SmallVec;

use crate::engine::table::TableInner;
use crate::types::key::Key;

pub(crate) const SHARDS: usize = 8;

/// Tasks for which a queue keeps room.
const ROOM_KEPT: usize = 1024;

/// An index entry of a version that is no longer the newest.
#[derive(Clone, Debug)]
pub(crate) struct StaleEntry {
    pub table: TableId,
    /// [`PRIMARY`](crate::engine::table::PRIMARY) or an index's number.
    pub index: u32,
    pub tuple: TupleId,
    pub key: SmallVec<[u64; 4]>,
}

impl StaleEntry {
    pub fn new(table: &TableInner, index: u32, tuple: TupleId, key: &Key) -> Self {
        Self { table: table.id, index, tuple, key: SmallVec::from_slice(key.words()) }
    }
}

impl StaleEntry {
    /// Bytes of the key, if it lies apart from the entry.
    pub fn key_bytes(&self) -> u64 {
        if self.key.spilled() { (self.key.capacity() * size_of::<u64>()) as u64 } else { 0 }
    }
}

/// Something to do once no transaction can have seen what was before a time.
pub(crate) enum Task {
    Entry(StaleEntry),
    /// Only transactions that run now can still refer to the tuple id.
    Tuple(TableId, TupleId),
}

/// Tasks by slot, so that committing threads seldom meet. Any thread works
/// off any shard (T18).
#[derive(Default)]
pub(crate) struct StaleQueue {
    shards: [Mutex<Tasks>; SHARDS],
}

#[derive(Default)]
struct Tasks {
    /// Each entry is tried once, soon. The cleaner can tell exactly whether a
    /// transaction needs an entry, and a long one seldom needs an entry that
    /// was made while it ran. Otherwise scans over deleted keys would slow
    /// down for as long as one long transaction runs.
    fresh: VecDeque<(Timestamp, StaleEntry)>,
    /// Done once the watermark has passed their time.
    late: VecDeque<(Timestamp, Task)>,
}

impl Tasks {
    fn len(&self) -> usize {
        self.fresh.len() + self.late.len()
    }

    fn bytes(&self) -> u64 {
        let late = self.late.iter().filter_map(|(_, task)| match task {
            Task::Entry(entry) => Some(entry),
            Task::Tuple(..) => None,
        });
        let keys = late.chain(self.fresh.iter().map(|(_, entry)| entry)).map(StaleEntry::key_bytes);
        let fresh = self.fresh.capacity() * size_of::<(Timestamp, StaleEntry)>();
        let late = self.late.capacity() * size_of::<(Timestamp, Task)>();
        keys.sum::<u64>() + (fresh + late) as u64
    }

    fn pop(&mut self, soon: Timestamp, watermark: Timestamp) -> Option<Task> {
        if self.late.front().is_some_and(|(at, _)| *at < watermark) {
            return pop_and_shrink(&mut self.late).map(|(_, task)| task);
        }
        let is_due = self.fresh.front().is_some_and(|(at, _)| *at < soon);
        is_due.then(|| pop_and_shrink(&mut self.fresh).map(|(_, entry)| Task::Entry(entry)))?
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
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }

    pub fn push(&self, slot: Slot, at: Timestamp, entry: StaleEntry) {
        self.shard(slot.index()).lock().fresh.push_back((at, entry));
    }

    #[inline]
    pub fn push_all(&self, slot: Slot, at: Timestamp, entries: impl ExactSizeIterator<Item = StaleEntry>) {
        if entries.len() > 0 {
            let mut shard = self.shard(slot.index()).lock();
            shard.fresh.extend(entries.map(|entry| (at, entry)));
        }
    }

    /// The tuple id can be used again once all transactions that run now have ended.
    pub fn bury(&self, slot: Slot, at: Timestamp, table: TableId, tuple: TupleId) {
        self.push_late(slot, at, Task::Tuple(table, tuple));
    }

    #[inline]
    pub fn push_late(&self, slot: Slot, at: Timestamp, task: Task) {
        self.shard(slot.index()).lock().late.push_back((at, task));
    }

    /// The next task of a shard that is due, and how many waited with it.
    /// `None` also while another thread has the shard.
    #[inline]
    pub fn try_pop(&self, shard: usize, soon: Timestamp, watermark: Timestamp) -> Option<(Task, usize)> {
        let mut tasks = self.shard(shard).try_lock()?;
        let waiting = tasks.len();
        tasks.pop(soon, watermark).map(|task| (task, waiting))
    }

    /// Whether tasks wait that do not wait for a transaction to end.
    pub fn is_any_fresh(&self, watermark: Timestamp) -> bool {
        let is_fresh = |tasks: &Tasks| {
            !tasks.fresh.is_empty() || tasks.late.front().is_some_and(|(at, _)| *at < watermark)
        };
        self.shards.iter().any(|shard| is_fresh(&shard.lock()))
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    fn shard(&self, of: usize) -> &Mutex<Tasks> {
        &self.shards[of % SHARDS]
    }
}
