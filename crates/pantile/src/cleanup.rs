//! Cleaning indexes: entries that no visible version has any more (T9).
//!
//! This is apart from the collection of space: a range scan over deleted keys
//! must not slow down because nobody reclaims blocks. Committing threads do
//! it in bounded steps, any thread for any other (T18).

use std::cell::Cell;
use std::collections::VecDeque;

use pantile_base::{TableId, Timestamp, TupleId};
use pantile_cc::Slot;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::anchor::{Anchor, Owner};
use crate::core::Core;
use crate::key::Key;
use crate::row::Encoded;
use crate::table::{PRIMARY, TableInner};

const SHARDS: usize = 8;

/// Calls of [`Cleanup::run`] by a thread between two that look at all shards.
const OFTEN: u32 = 64;

thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

/// Tasks that one call does, from a short queue and from a long one.
const LEAST_TASKS: usize = 8;
const MOST_TASKS: usize = 128;

/// An index entry that a version had which is no longer the newest.
#[derive(Clone, Debug)]
pub(crate) struct StaleEntry {
    pub table: TableId,
    /// [`PRIMARY`] or an index's number.
    pub index: u32,
    pub tuple: TupleId,
    pub key: SmallVec<[u64; 4]>,
}

/// Something to do once the watermark has passed a time.
enum Task {
    Entry(StaleEntry),
    /// Nothing refers to the tuple id but transactions that run now.
    Tuple(TableId, TupleId),
}

/// What waits to be cleaned up.
#[derive(Default)]
pub(crate) struct Cleanup {
    shards: [Mutex<VecDeque<(Timestamp, Task)>>; SHARDS],
}

/// What became of a task.
enum Outcome {
    Done,
    /// The tuple id is free once all transactions that run now have ended.
    Buried,
    /// A transaction holds the tuple.
    Busy,
}

impl Cleanup {
    pub fn push(&self, slot: Slot, at: Timestamp, entry: StaleEntry) {
        self.put(slot, at, Task::Entry(entry));
    }

    /// The tuple can be used again once all transactions that run now have ended.
    pub fn bury(&self, slot: Slot, at: Timestamp, table: TableId, tuple: TupleId) {
        self.put(slot, at, Task::Tuple(table, tuple));
    }

    pub fn push_all(&self, slot: Slot, at: Timestamp, entries: impl ExactSizeIterator<Item = StaleEntry>) {
        if entries.len() > 0 {
            let mut shard = self.shards[slot.index() % SHARDS].lock();
            shard.extend(entries.map(|entry| (at, Task::Entry(entry))));
        }
    }

    pub fn len(&self) -> usize {
        self.shards.iter().map(|s| s.lock().len()).sum()
    }

    /// True after one in many calls of [`Cleanup::run`] by a thread; for
    /// things that are seldom due.
    pub fn is_tick(&self) -> bool {
        CALLS.get() % OFTEN == OFTEN / 2
    }

    /// Does some tasks whose time is below the watermark: from the slot's own
    /// shard, and now and then from the others. The more wait the more it
    /// does, so that no queue grows for ever and no call takes long.
    pub fn run(&self, core: &Core, slot: Slot, watermark: Timestamp) {
        self.run_shard(core, slot.index(), slot, watermark);
        CALLS.set(CALLS.get().wrapping_add(1));
        if CALLS.get().is_multiple_of(OFTEN) {
            for shard in 0..SHARDS {
                self.run_shard(core, shard, slot, watermark);
            }
        }
    }

    fn run_shard(&self, core: &Core, shard: usize, slot: Slot, watermark: Timestamp) {
        let mut most = LEAST_TASKS;
        let mut done = 0;
        while done < most {
            let Some(mut queue) = self.shards[shard % SHARDS].try_lock() else { return };
            if queue.front().is_none_or(|(at, _)| *at >= watermark) {
                return;
            }
            most = (queue.len() / 64).clamp(LEAST_TASKS, MOST_TASKS);
            let Some((_, task)) = queue.pop_front() else { return };
            drop(queue);
            self.perform(core, slot, watermark, task);
            done += 1;
        }
    }

    fn perform(&self, core: &Core, slot: Slot, watermark: Timestamp, task: Task) {
        match task {
            Task::Entry(entry) => {
                let Some(table) = core.table_by_id(entry.table) else { return };
                match clean(core, &table, &entry, watermark) {
                    Outcome::Done => {}
                    Outcome::Buried => self.later(core, slot, Task::Tuple(entry.table, entry.tuple)),
                    Outcome::Busy => self.later(core, slot, Task::Entry(entry)),
                }
            }
            Task::Tuple(table, tuple) => {
                if let Some(table) = core.table_by_id(table) {
                    table.return_tuple(slot.index(), tuple);
                }
            }
        }
    }

    fn later(&self, core: &Core, slot: Slot, task: Task) {
        self.put(slot, core.registry.now(), task);
    }

    fn put(&self, slot: Slot, at: Timestamp, task: Task) {
        self.shards[slot.index() % SHARDS].lock().push_back((at, task));
    }
}

/// Removes the entry unless a version that somebody may see has its key.
/// The tuple is locked meanwhile, so that no writer can come to rely on it.
fn clean(core: &Core, table: &TableInner, entry: &StaleEntry, watermark: Timestamp) -> Outcome {
    let cell = table.anchor(entry.tuple);
    let anchor = Anchor::load(cell);
    if anchor.is_dead() {
        if entry.index != PRIMARY {
            remove_entry(core, table, entry);
        }
        return Outcome::Done;
    }
    if anchor.owner() != Owner::Nobody || !anchor.try_lock_for_cleaning(cell) {
        return Outcome::Busy;
    }
    if is_needed(core, table, entry, anchor, watermark) {
        Anchor::publish(cell, anchor.newest());
        return Outcome::Done;
    }
    if remove_entry(core, table, entry) {
        Anchor::bury(cell);
        return Outcome::Buried;
    }
    Anchor::publish(cell, anchor.newest());
    Outcome::Done
}

/// Removes an entry; the caller has locked the tuple. Tells whether it was the
/// primary one, so that nothing finds the tuple any more.
pub(crate) fn remove_entry(core: &Core, table: &TableInner, entry: &StaleEntry) -> bool {
    // Who read the tuple as absent relies on the gap from now on (T8).
    let floor = core.marks.highest(table.id, entry.tuple).get();
    if entry.index == PRIMARY {
        return table.primary.remove(&entry.key, entry.tuple.0, floor);
    }
    if let Some(index) = table.indexes().iter().find(|i| i.number == entry.index) {
        index.tree.remove(&entry.key, entry.tuple.0, floor);
    }
    false
}

fn is_needed(
    core: &Core,
    table: &TableInner,
    entry: &StaleEntry,
    anchor: Anchor,
    watermark: Timestamp,
) -> bool {
    let indexes = table.indexes();
    let index = indexes.iter().find(|i| i.number == entry.index);
    core.reachable_versions(anchor.newest(), watermark).into_iter().any(|address| {
        let content = core.store.content(address);
        if content.flags().is_tombstone() {
            return false;
        }
        let Some(index) = index else { return entry.index == PRIMARY };
        let mut key = Key::default();
        key.set_row(&Encoded { schema: &table.schema, bytes: content.row() }, &index.columns);
        key.push_tuple(entry.tuple.0);
        key.words() == &entry.key[..]
    })
}
