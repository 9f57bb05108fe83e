//! Cleaning indexes: removing entries that no visible version has any more (T9).
//!
//! This is separate from the collection of space, so that a range scan over
//! deleted keys stays fast even if no collector reclaims blocks. Committing
//! threads do it in bounded steps.

use std::cell::Cell;
use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, Timestamp};
use pantile_cc::{Clock, RunningSet, Slot};
use smallvec::SmallVec;

use crate::engine::anchor::Anchor;
use crate::engine::core::Core;
use crate::engine::stale::{DueBefore, SHARDS, StaleEntry, Task};
use crate::engine::table::{PRIMARY, TableInner};
use crate::types::key::Key;

/// How often the watermark is computed, at most.
const WATERMARK_AGE: Duration = Duration::from_millis(1);

/// Calls of [`Core::clean`] by one thread between two that look at all shards.
const OFTEN: u32 = 64;

pantile_base::sync::thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

/// An entry is tried after this many epochs. Transactions that ran when it
/// became stale have then ended, unless they are long.
const EPOCHS: u64 = 2;

/// Tasks of one call, for a short queue and for a long one.
const LEAST_TASKS: usize = 8;
const MOST_TASKS: usize = 128;
/// Tasks of a shard in one round.
const ROUND_TASKS: usize = 1 << 16;

/// What became of an entry.
enum Outcome {
    Done,
    /// The tuple id is free once all transactions have ended that run now and
    /// may write.
    Buried,
    /// A transaction has locked the tuple.
    Busy,
    /// A running transaction may see an older version with this entry.
    Needed,
}

/// True after one in many calls of [`Core::clean`] by this thread; for work
/// that is seldom due.
pub(crate) fn is_tick() -> bool {
    CALLS.get() % OFTEN == OFTEN / 2
}

impl Core {
    /// Does some cleaning that is due: from the slot's own shard, and now and
    /// then from the others. It does more where more waits, so that no queue
    /// grows for ever and no call takes long.
    pub fn clean(&self, slot: Slot) {
        let due = self.due_after(WATERMARK_AGE);
        self.clean_shard(slot.index(), slot, due);
        CALLS.set(CALLS.get().wrapping_add(1));
        if CALLS.get().is_multiple_of(OFTEN) {
            for shard in 0..SHARDS {
                self.clean_shard(shard, slot, due);
            }
        }
    }

    /// Cleans what is due in all shards, up to a limit. Returns whether more
    /// waits that can be cleaned soon.
    pub fn clean_all(&self, slot: Slot) -> bool {
        let due = self.due_after(Duration::ZERO);
        for shard in 0..SHARDS {
            for _ in 0..ROUND_TASKS {
                let Some((task, _)) = self.stale.try_pop(shard, due) else { break };
                self.perform(slot, task);
            }
        }
        self.stale.is_any_due(due)
    }

    /// What is due, by watermarks of this age at most.
    fn due_after(&self, age: Duration) -> DueBefore {
        let late = self.registry.refresh_watermark(age);
        let delay = Clock::ticks(self.options.gc.epoch) * EPOCHS;
        let soon = Timestamp::new(self.registry.now().tick().saturating_sub(delay), 0);
        DueBefore { fresh: soon.max(late), late, ids: self.registry.writers_watermark() }
    }

    fn clean_shard(&self, shard: usize, slot: Slot, due: DueBefore) {
        let mut most = LEAST_TASKS;
        let mut done = 0;
        while done < most {
            let Some((task, waiting)) = self.stale.try_pop(shard, due) else { return };
            most = (waiting / 64).clamp(LEAST_TASKS, MOST_TASKS);
            self.perform(slot, task);
            done += 1;
        }
    }

    /// Cleans all entries that wait. No transaction runs that needs one.
    pub fn clean_to_the_end(&self, slot: Slot) {
        let due = DueBefore { fresh: Timestamp::MAX, late: Timestamp::MAX, ids: Timestamp::ZERO };
        // Each entry once: one that stays is put back.
        for _ in 0..self.stale.len() {
            let next = (0..SHARDS).find_map(|shard| self.stale.try_pop(shard, due));
            let Some((task, _)) = next else { return };
            self.perform(slot, task);
        }
    }

    fn perform(&self, slot: Slot, task: Task) {
        match task {
            Task::Entry(entry) => {
                let Some(table) = self.tables.by_id(entry.table) else { return };
                let now = || self.registry.now();
                match self.try_clean(slot, &table, &entry) {
                    Outcome::Done => {}
                    Outcome::Buried => self.stale.bury(slot, now(), entry.table, entry.tuple),
                    Outcome::Needed => self.stale.push_late(slot, now(), entry),
                    Outcome::Busy => self.stale.push(slot, now(), entry),
                }
            }
            Task::Tuple(table, tuple) => {
                if let Some(table) = self.tables.by_id(table) {
                    table.return_tuple(slot.index(), tuple);
                }
            }
        }
    }

    /// Removes the entry unless a transaction may see a version that has its
    /// key. The tuple is locked meanwhile, so that no writer comes to rely on
    /// the entry.
    fn try_clean(&self, slot: Slot, table: &TableInner, entry: &StaleEntry) -> Outcome {
        // The cleaner reads versions that its own timestamp does not protect
        // (T6). It pins its slot first and asks afterwards which transactions
        // run: what they can see then stays while it looks.
        let _pin = self.registry.pin(slot);
        let Some(running) = self.registry.running_set() else { return Outcome::Busy };
        let cell = table.anchor(entry.tuple);
        let anchor = Anchor::load(cell);
        if !anchor.try_lock_for_cleaning(cell) {
            return Outcome::Busy;
        }
        let needed = self.version_needing(table, entry, anchor, &running);
        if needed.is_none() && self.remove_entry(table, entry) {
            if !anchor.newest().is_none() {
                self.store.forget_chain(anchor.newest(), running.min());
            }
            Anchor::bury(cell, anchor.newest());
            self.counters.buried(slot, anchor.newest());
            return Outcome::Buried;
        }
        anchor.unlock_as_it_was(cell);
        if needed.is_none_or(|version| version == anchor.newest()) { Outcome::Done } else { Outcome::Needed }
    }

    /// Removes an entry of a tuple that the caller has locked (I-15). Returns
    /// whether it was the primary one: then no index leads to the tuple any
    /// more.
    pub fn remove_entry(&self, table: &TableInner, entry: &StaleEntry) -> bool {
        let anchor = Anchor::load(table.anchor(entry.tuple));
        assert!(
            !anchor.is_at_rest() || is_removed(Control::CleanerLocks),
            "an entry goes under its tuple's lock (I-15)"
        );
        // A transaction that read the tuple as absent relies on the gap from
        // now on (T8). So does the one that deleted the tuple or changed its
        // key: an older writer that finds no entry could otherwise still
        // insert the key.
        let newest = anchor.newest();
        let written =
            if newest.is_none() { Timestamp::ZERO } else { self.store.content_header(newest).timestamp() };
        let floor = self.marks.highest(table.id, entry.tuple).max(written).get();
        let mut was_primary = false;
        if entry.index == PRIMARY {
            // Before the entry goes: an older snapshot that misses it must know.
            table.note_cleaned(written);
            was_primary = table.tree().remove(&entry.key, entry.tuple.0, floor);
        } else if let Some(index) = table.indexes().iter().find(|i| i.number == entry.index) {
            index.tree().remove(&entry.key, entry.tuple.0, floor);
        }
        self.stale.note(table.id, entry.tuple);
        was_primary
    }

    /// The newest version with the entry's key that a transaction may see.
    fn version_needing(
        &self,
        table: &TableInner,
        entry: &StaleEntry,
        anchor: Anchor,
        running: &RunningSet,
    ) -> Option<Address> {
        let is_primary = entry.index == PRIMARY;
        let indexes = (!is_primary).then(|| table.indexes());
        let index = indexes.as_ref().and_then(|list| list.iter().find(|i| i.number == entry.index));
        self.needed_versions(anchor.newest(), running).into_iter().find(|&address| {
            let content = self.store.content(address);
            if content.flags().is_tombstone() {
                return false;
            }
            let Some(index) = index else { return is_primary };
            let mut key = Key::default();
            key.set_row(&table.row_of(content), &index.columns);
            key.push_tuple(entry.tuple.0);
            key.words() == &entry.key[..]
        })
    }

    /// The versions that a transaction may see, from the newest on. The caller
    /// has pinned a slot before it asked which transactions run.
    pub fn needed_versions(&self, newest: Address, running: &RunningSet) -> SmallVec<[Address; 8]> {
        let mut versions = SmallVec::new();
        if newest.is_none() {
            return versions;
        }
        versions.push(newest);
        let mut end = self.store.content(newest).timestamp();
        let mut next = self.store.link(newest);
        while let Some(link) = next.filter(|_| running.min() < end) {
            if running.may_see(link.begin_ts, end) {
                versions.push(link.address);
            }
            end = link.begin_ts;
            next = self.store.older(link);
        }
        versions
    }
}
