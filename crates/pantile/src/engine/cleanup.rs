//! Cleaning indexes: entries that no visible version has any more (T9).
//!
//! This is apart from the collection of space: a range scan over deleted keys
//! must not slow down because nobody reclaims blocks. Committing threads do
//! it in bounded steps, any thread for any other (T18).

use std::cell::Cell;
use std::collections::VecDeque;

use pantile_base::sync::Mutex;
use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_cc::{Clock, RunningSet, Slot};
use smallvec::SmallVec;

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::core::Core;
use crate::engine::table::{PRIMARY, TableInner};
use crate::types::key::Key;
use crate::types::row::Encoded;

const SHARDS: usize = 8;

/// Calls of [`Cleanup::run`] by a thread between two that look at all shards.
const OFTEN: u32 = 64;

pantile_base::sync::thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

/// Epochs after which an entry is tried: who ran when it became stale has
/// ended by then, unless it runs for long.
const EPOCHS: u64 = 2;

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

/// Something to do once nobody can have seen what was before a time.
enum Task {
    Entry(StaleEntry),
    /// Nothing refers to the tuple id but transactions that run now.
    Tuple(TableId, TupleId),
}

/// What waits to be cleaned up.
#[derive(Default)]
pub(crate) struct Cleanup {
    shards: [Mutex<Tasks>; SHARDS],
}

#[derive(Default)]
struct Tasks {
    /// Tried once, soon: whether an entry is needed is known exactly, and a
    /// long transaction seldom needs one that was made while it ran. Scans
    /// over what has been deleted must not slow down because one runs.
    fresh: VecDeque<(Timestamp, StaleEntry)>,
    /// Done when the watermark has passed their time.
    late: VecDeque<(Timestamp, Task)>,
}

impl Tasks {
    fn len(&self) -> usize {
        self.fresh.len() + self.late.len()
    }

    fn pop(&mut self, soon: Timestamp, watermark: Timestamp) -> Option<Task> {
        if self.late.front().is_some_and(|(at, _)| *at < watermark) {
            return self.late.pop_front().map(|(_, task)| task);
        }
        let is_due = self.fresh.front().is_some_and(|(at, _)| *at < soon);
        is_due.then(|| self.fresh.pop_front().map(|(_, entry)| Task::Entry(entry)))?
    }
}

/// What became of a task.
enum Outcome {
    Done,
    /// The tuple id is free once all transactions that run now have ended.
    Buried,
    /// A transaction holds the tuple.
    Busy,
    /// A version that is not the newest is seen by somebody.
    Needed,
}

impl Cleanup {
    pub fn push(&self, slot: Slot, at: Timestamp, entry: StaleEntry) {
        self.shard(slot.index()).lock().fresh.push_back((at, entry));
    }

    fn shard(&self, of: usize) -> &Mutex<Tasks> {
        &self.shards[of % SHARDS]
    }

    /// The tuple can be used again once all transactions that run now have ended.
    pub fn bury(&self, slot: Slot, at: Timestamp, table: TableId, tuple: TupleId) {
        self.put_late(slot, at, Task::Tuple(table, tuple));
    }

    pub fn push_all(&self, slot: Slot, at: Timestamp, entries: impl ExactSizeIterator<Item = StaleEntry>) {
        if entries.len() > 0 {
            let mut shard = self.shard(slot.index()).lock();
            shard.fresh.extend(entries.map(|entry| (at, entry)));
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

    /// Does some tasks whose time has come: from the slot's own shard, and now
    /// and then from the others. The more wait the more it does, so that no
    /// queue grows for ever and no call takes long.
    pub fn run(&self, core: &Core, slot: Slot, watermark: Timestamp) {
        let delay = Clock::ticks(core.options.gc.epoch) * EPOCHS;
        let soon = Timestamp::new(core.registry.now().tick().saturating_sub(delay), 0);
        let soon = soon.max(watermark);
        self.run_shard(core, slot.index(), slot, soon, watermark);
        CALLS.set(CALLS.get().wrapping_add(1));
        if CALLS.get().is_multiple_of(OFTEN) {
            for shard in 0..SHARDS {
                self.run_shard(core, shard, slot, soon, watermark);
            }
        }
    }

    fn run_shard(&self, core: &Core, shard: usize, slot: Slot, soon: Timestamp, watermark: Timestamp) {
        let mut most = LEAST_TASKS;
        let mut done = 0;
        while done < most {
            let Some(mut tasks) = self.shard(shard).try_lock() else { return };
            most = (tasks.len() / 64).clamp(LEAST_TASKS, MOST_TASKS);
            let Some(task) = tasks.pop(soon, watermark) else { return };
            drop(tasks);
            self.perform(core, slot, task);
            done += 1;
        }
    }

    fn perform(&self, core: &Core, slot: Slot, task: Task) {
        match task {
            Task::Entry(entry) => {
                let Some(table) = core.table_by_id(entry.table) else { return };
                match clean(core, slot, &table, &entry) {
                    Outcome::Done => {}
                    Outcome::Buried => self.later(core, slot, Task::Tuple(entry.table, entry.tuple)),
                    Outcome::Needed => self.later(core, slot, Task::Entry(entry)),
                    Outcome::Busy => self.push(slot, core.registry.now(), entry),
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
        self.put_late(slot, core.registry.now(), task);
    }

    fn put_late(&self, slot: Slot, at: Timestamp, task: Task) {
        self.shard(slot.index()).lock().late.push_back((at, task));
    }
}

/// Removes the entry unless a version that somebody may see has its key.
/// The tuple is locked meanwhile, so that no writer can come to rely on it.
fn clean(core: &Core, slot: Slot, table: &TableInner, entry: &StaleEntry) -> Outcome {
    // It looks at versions that its own timestamp does not protect (T6). Who
    // runs is asked afterwards: what they see stays while we look.
    let _pin = core.registry.pin(slot);
    let Some(running) = core.registry.running_set() else { return Outcome::Busy };
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
    let needed = needed_by(core, table, entry, anchor, &running);
    if let Some(version) = needed {
        Anchor::publish(cell, anchor.newest());
        return if version == anchor.newest() { Outcome::Done } else { Outcome::Needed };
    }
    if remove_entry(core, table, entry) {
        Anchor::bury(cell, anchor.newest());
        core.counters.buried(slot, anchor.newest());
        return Outcome::Buried;
    }
    Anchor::publish(cell, anchor.newest());
    Outcome::Done
}

/// Removes an entry; the caller has locked the tuple. Tells whether it was the
/// primary one, so that nothing finds the tuple any more.
pub(crate) fn remove_entry(core: &Core, table: &TableInner, entry: &StaleEntry) -> bool {
    // Who read the tuple as absent relies on the gap from now on (T8), and so
    // does who deleted it or changed its key: an older writer that found no
    // entry any more would come after them.
    let newest = Anchor::load(table.anchor(entry.tuple)).newest();
    let written = if newest.is_none() { Timestamp::ZERO } else { core.store.content_header(newest).txn_id() };
    let floor = core.marks.highest(table.id, entry.tuple).max(written).get();
    if entry.index == PRIMARY {
        return table.primary.remove(&entry.key, entry.tuple.0, floor);
    }
    if let Some(index) = table.indexes().iter().find(|i| i.number == entry.index) {
        index.tree.remove(&entry.key, entry.tuple.0, floor);
    }
    false
}

/// The newest version with the entry's key that somebody may see.
fn needed_by(
    core: &Core,
    table: &TableInner,
    entry: &StaleEntry,
    anchor: Anchor,
    running: &RunningSet,
) -> Option<Address> {
    let indexes = table.indexes();
    let index = indexes.iter().find(|i| i.number == entry.index);
    core.needed_versions(anchor.newest(), running).into_iter().find(|&address| {
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
