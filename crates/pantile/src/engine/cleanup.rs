//! Cleaning indexes: removing entries that no visible version has any more (T9).
//!
//! This is separate from the collection of space, so that a range scan over
//! deleted keys stays fast even if no collector reclaims blocks. Committing
//! threads do it in bounded steps.

use std::cell::Cell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::hint;
use pantile_base::{Address, TableId, Timestamp};
use pantile_cc::{Clock, Pin, RunningSet, Slot};
use smallvec::SmallVec;

use crate::engine::anchor::{Anchor, CleanerLock};
use crate::engine::core::Core;
use crate::engine::index::IndexInner;
use crate::engine::stale::{DueBefore, SHARDS, StaleEntry, Task};
use crate::engine::table::{PRIMARY, TableInner};
use crate::types::key::Key;

/// How often the watermark is computed, at most.
const WATERMARK_AGE: Duration = Duration::from_millis(1);

/// Calls of [`Core::clean`] by one thread between two that look at all shards.
const OFTEN: u32 = 64;

pantile_base::sync::thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

// Versions at which tests have had a thread look.
#[cfg(test)]
pantile_base::sync::thread_local!(static LOOKED_AT: Cell<usize> = const { Cell::new(0) });

/// An entry is tried after this many epochs. Transactions that ran when it
/// became stale have then ended, unless they are long.
const EPOCHS: u64 = 2;

/// Of calls that add next to nothing, one in this many cleans, beside a worker that cleans as well: looking who runs costs
/// more than what follows from it for one task.
const SELDOM: u32 = 8;

/// Tasks of one call, for a short queue and for a long one.
const LEAST_TASKS: usize = LOOKS;
const MOST_TASKS: usize = 128;
/// Tasks of a transaction for each that it has added, if the queue is long. So
/// those who add faster than the worker cleans pay for it themselves.
const TASKS_EACH: usize = 2;
/// Tasks of a shard in one round. The next follows at once if more are due.
const ROUND_TASKS: usize = 1 << 14;

/// Versions of a tuple that are looked at for one entry.
const MOST_VERSIONS: usize = if cfg!(test) { 2 } else { 64 };
/// Entries of tuples with more are looked at together, at the latest after this time.
const TOGETHER_AFTER: Duration = Duration::from_secs(1);
/// A committing thread does so if as many times of what is worth it wait.
const TIMES_OF_A_COMMIT: usize = 4;
/// Attempts to lock a tuple for entries that have been looked at together.
const ATTEMPTS: usize = 1000;

/// What waits to be cleaned after a round.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Waiting {
    Nothing,
    /// Something that will be due soon.
    Soon,
    /// More than the round has done.
    Due,
}

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
    /// The tuple has more versions than are looked at for one entry.
    ManyVersions,
}

/// Entries that are looked at with one look at all slots: after a time of many connections that is
/// most of the work. The pin is held as long, so there are not many.
const LOOKS: usize = 16;

/// What is needed to look at entries, for several of them (T6). First the slot is pinned, and then it
/// is asked which transactions run: what they can see stays as long as the pin. Those that begin later
/// read above, however much later the look comes.
struct Looks<'c> {
    core: &'c Core,
    slot: Slot,
    current: Option<(RunningSet, Pin<'c>)>,
    left: usize,
    /// The last table: tasks of one follow each other, and its count of users is shared by all threads.
    table: Option<Arc<TableInner>>,
}

impl<'c> Looks<'c> {
    fn new(core: &'c Core, slot: Slot) -> Self {
        Self { core, slot, current: None, left: 0, table: None }
    }

    /// Takes the table of this id out, to be put back.
    fn table(&mut self, id: TableId) -> Option<Arc<TableInner>> {
        let last = self.table.take();
        last.filter(|table| table.id == id).or_else(|| self.core.tables.by_id(id))
    }

    /// The transactions that may see something old. `None` if one is just beginning.
    fn running(&mut self) -> Option<&RunningSet> {
        if self.left == 0 {
            // A slot has at most one pin.
            self.current = None;
            let pin = self.core.registry.pin(self.slot);
            let running = self.core.registry.running_set()?;
            self.current = Some((running, pin));
            self.left = LOOKS;
        }
        self.left -= 1;
        self.current.as_ref().map(|(running, _)| running)
    }
}

/// Older versions of a tuple.
#[derive(Default)]
struct Older {
    /// Those that a transaction may see, from the newest on.
    needed: SmallVec<[Address; 8]>,
    /// How many were looked at.
    passed: usize,
}

/// True after one in many calls of [`Core::clean`] by this thread; for work
/// that is seldom due.
pub(crate) fn is_tick() -> bool {
    CALLS.get() % OFTEN == OFTEN / 2
}

impl Core {
    /// Does some cleaning that is due: from the slot's own shard, and now and
    /// then from the others. It does more where more waits, and the more the caller
    /// has `added`, so that no queue grows for ever and no call takes long.
    pub fn clean(&self, slot: Slot, added: usize) {
        CALLS.set(CALLS.get().wrapping_add(1));
        let adds_little = added <= LEAST_TASKS / SELDOM as usize;
        if adds_little && !CALLS.get().is_multiple_of(SELDOM) && self.rounds.has_worker() {
            return;
        }
        let due = self.due_after(WATERMARK_AGE);
        let owed = if is_removed(Control::StaleInProportion) { 0 } else { added * TASKS_EACH };
        let most = MOST_TASKS.max(owed);
        self.clean_shard(slot.index(), slot, due, most);
        if CALLS.get().is_multiple_of(OFTEN) {
            for shard in 0..SHARDS {
                self.clean_shard(shard, slot, due, MOST_TASKS);
            }
            // It takes time, so it is the worker's if there is one that keeps up.
            match self.rounds.has_worker() {
                true => self.clean_together(slot, Timestamp::ZERO, TIMES_OF_A_COMMIT),
                false => self.clean_together(slot, self.late_together(), 1),
            }
        }
    }

    /// Cleans what is due in all shards, up to a limit.
    pub fn clean_all(&self, slot: Slot) -> Waiting {
        let due = self.due_after(Duration::ZERO);
        let mut is_more = false;
        for shard in 0..SHARDS {
            let mut looks = Looks::new(self, slot);
            let mut tasks = 0;
            while tasks < ROUND_TASKS
                && let Some(task) = self.stale.pop(shard, due)
            {
                self.perform(&mut looks, task);
                tasks += 1;
            }
            is_more |= tasks == ROUND_TASKS;
        }
        self.clean_together(slot, self.late_together(), 1);
        match self.stale.is_any_due(due) {
            _ if is_more => Waiting::Due,
            true => Waiting::Soon,
            false => Waiting::Nothing,
        }
    }

    /// What waits together for longer than that is cleaned however little it is.
    fn late_together(&self) -> Timestamp {
        let delay = Clock::ticks(TOGETHER_AFTER);
        Timestamp::new(self.registry.now().tick().saturating_sub(delay), 0)
    }

    /// What is due, by watermarks of this age at most.
    fn due_after(&self, age: Duration) -> DueBefore {
        let late = self.registry.refresh_watermark(age);
        let delay = Clock::ticks(self.options.gc.epoch) * EPOCHS;
        let soon = Timestamp::new(self.registry.now().tick().saturating_sub(delay), 0);
        DueBefore { fresh: soon.max(late), late, ids: self.registry.writers_watermark() }
    }

    fn clean_shard(&self, shard: usize, slot: Slot, due: DueBefore, limit: usize) {
        let mut looks = Looks::new(self, slot);
        let mut most = LEAST_TASKS;
        let mut done = 0;
        while done < most {
            let Some((task, waiting)) = self.stale.try_pop(shard, due) else { return };
            most = (waiting / 64).clamp(LEAST_TASKS, limit);
            self.perform(&mut looks, task);
            done += 1;
        }
    }

    /// Cleans all entries that wait. No transaction runs that needs one.
    pub fn clean_to_the_end(&self, slot: Slot) {
        let due = DueBefore { fresh: Timestamp::MAX, late: Timestamp::MAX, ids: Timestamp::ZERO };
        self.clean_together(slot, Timestamp::MAX, 1);
        let mut looks = Looks::new(self, slot);
        // Each entry once: one that stays is put back.
        for _ in 0..self.stale.len() {
            let next = (0..SHARDS).find_map(|shard| self.stale.pop(shard, due));
            let Some(task) = next else { return };
            self.perform(&mut looks, task);
        }
    }

    fn perform(&self, looks: &mut Looks<'_>, task: Task) {
        let slot = looks.slot;
        match task {
            Task::Entry(entry) => {
                let Some(table) = looks.table(entry.table) else { return };
                let now = || self.registry.now();
                // Above the clocks of all who may have found the id.
                let after_all = || self.registry.after_all();
                match self.try_clean(looks, &table, &entry) {
                    Outcome::Done => {}
                    Outcome::Buried => self.stale.bury(slot, after_all(), entry.table, entry.tuple),
                    Outcome::Needed => self.stale.push_late(slot, now(), entry),
                    Outcome::Busy => self.stale.push(slot, now(), entry),
                    Outcome::ManyVersions => self.stale.push_together(entry),
                }
                looks.table = Some(table);
            }
            Task::Tuple(table, tuple) => {
                if let Some(table) = looks.table(table) {
                    table.return_tuple(slot.index(), tuple);
                    looks.table = Some(table);
                }
            }
        }
    }

    /// Removes the entry unless a transaction may see a version that has its
    /// key. The tuple is locked meanwhile, so that no writer comes to rely on
    /// the entry.
    fn try_clean(&self, looks: &mut Looks<'_>, table: &TableInner, entry: &StaleEntry) -> Outcome {
        let slot = looks.slot;
        let Some(running) = looks.running() else { return Outcome::Busy };
        let cell = table.anchor(entry.tuple);
        let anchor = Anchor::load(cell);
        let Some(lock) = anchor.try_lock_for_cleaning(cell) else { return Outcome::Busy };
        let newest = anchor.newest();
        let indexes = (entry.index != PRIMARY).then(|| table.indexes());
        let indexes = indexes.as_deref().map_or(&[][..], |indexes| indexes);
        let has = |address: &Address| {
            // What a damaged version had is not known, so its entries stay.
            if entry.index != PRIMARY && self.is_damaged(*address) {
                return true;
            }
            let key = self.entry_of(table, indexes, entry, *address);
            key.is_some_and(|key| key == entry.key)
        };
        if !newest.is_none() && has(&newest) {
            return Outcome::Done;
        }
        let mut older = Older::default();
        if !self.add_needed(&mut older, newest, running, Timestamp::ZERO, MOST_VERSIONS) {
            return Outcome::ManyVersions;
        }
        if older.needed.iter().any(has) {
            return Outcome::Needed;
        }
        if self.remove_entry(table, entry) {
            self.bury_locked(slot, lock, newest, running.min());
            return Outcome::Buried;
        }
        Outcome::Done
    }

    /// No index leads to the tuple any more, which the caller has locked.
    fn bury_locked(&self, slot: Slot, lock: CleanerLock<'_>, newest: Address, oldest: Timestamp) {
        if !newest.is_none() {
            self.store.forget_chain(newest, oldest);
        }
        lock.bury();
        self.counters.buried(slot, newest);
    }

    /// Cleans entries of tuples with many versions, if enough of them wait, or some
    /// since before `late`. So an entry costs a few versions, however many its tuple
    /// has.
    fn clean_together(&self, slot: Slot, late: Timestamp, times: usize) {
        let entries = self.stale.take_together(self.registry.now(), late, times);
        if entries.is_empty() {
            return;
        }
        let mut versions = 0;
        for entries in entries.chunk_by(|a, b| (a.table, a.tuple) == (b.table, b.tuple)) {
            if let Some(table) = self.tables.by_id(entries[0].table) {
                versions += self.clean_tuple(slot, &table, entries);
            }
        }
        self.stale.looked_at(versions);
    }

    /// Does for entries of one tuple what [`Core::try_clean`] does for one. They are in
    /// order, so the primary ones come first. Returns the number of versions that had to
    /// be looked at.
    fn clean_tuple(&self, slot: Slot, table: &TableInner, entries: &[StaleEntry]) -> usize {
        let again = |entries: &[StaleEntry]| {
            entries.iter().for_each(|entry| self.stale.push(slot, self.registry.now(), entry.clone()));
        };
        let tuple = entries[0].tuple;
        let _pin = self.registry.pin(slot);
        let Some(running) = self.registry.running_set() else {
            again(entries);
            return 0;
        };
        let cell = table.anchor(tuple);
        // Most versions are looked at before the tuple is locked. Which of them are
        // needed does not change, and what is added meanwhile is looked at afterwards.
        let before = Anchor::load(cell).newest();
        let mut older = Older::default();
        self.add_needed(&mut older, before, &running, Timestamp::ZERO, usize::MAX);
        let until = match before.is_none() {
            true => Timestamp::ZERO,
            false => self.store.content_header(before).timestamp(),
        };
        let lock = |_| {
            let anchor = Anchor::load(cell);
            hint::spin_loop();
            anchor.try_lock_for_cleaning(cell).map(|lock| (anchor, lock))
        };
        let Some((anchor, lock)) = (0..ATTEMPTS).find_map(lock) else {
            again(entries);
            return older.passed;
        };
        let newest = anchor.newest();
        self.add_needed(&mut older, newest, &running, until, usize::MAX);
        let indexes = table.indexes();
        // A row has its primary key as long as it is there.
        let is_alike = |a: &StaleEntry, b: &StaleEntry| a.index == b.index && a.index != PRIMARY;
        let (primary, secondary) = entries.split_at(entries.partition_point(|e| e.index == PRIMARY));
        let mut known = entries;
        // What a damaged version had in secondary indexes is not known, so its entries stay.
        if !secondary.is_empty() {
            if !newest.is_none() && self.is_damaged(newest) {
                known = primary;
            } else if older.needed.iter().any(|version| self.is_damaged(*version)) {
                let now = self.registry.now();
                secondary.iter().for_each(|entry| self.stale.push_late(slot, now, entry.clone()));
                known = primary;
            }
        }
        for of_index in known.chunk_by(is_alike).rev() {
            let key = |address: &Address| self.entry_of(table, &indexes, &of_index[0], *address);
            let keys: HashSet<_, FixedState> = older.needed.iter().filter_map(key).collect();
            let newest = (!newest.is_none()).then(|| key(&newest)).flatten();
            for entry in of_index {
                if newest.as_ref().is_some_and(|key| *key == entry.key) {
                    continue;
                }
                if keys.contains(&entry.key) {
                    self.stale.push_late(slot, self.registry.now(), entry.clone());
                } else if self.remove_entry(table, entry) {
                    // Entries that are left are primary ones of earlier lives, and gone.
                    self.bury_locked(slot, lock, anchor.newest(), running.min());
                    self.stale.bury(slot, self.registry.after_all(), table.id, tuple);
                    return older.passed;
                }
            }
        }
        older.passed
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
        let is_primary = entry.index == PRIMARY;
        if is_primary {
            // Before the entry goes: an older snapshot that misses it must know.
            table.note_cleaned(written);
        }
        // Read when nobody finds the entry any more: a reader that still finds it has raised the
        // mark before (I-5).
        let floor = || self.marks.highest(table.id, entry.tuple).max(written).get();
        let was_there = table.with_tree(entry.index, |tree| tree.remove(&entry.key, entry.tuple.0, floor));
        self.stale.note(table.id, entry.tuple);
        is_primary && was_there == Some(true)
    }

    fn is_damaged(&self, version: Address) -> bool {
        self.store.verify_mapped(version).is_err()
    }

    /// The key of a version in the index of a stale entry; that of the primary index
    /// never changes. `None` if the version has no entry.
    fn entry_of(
        &self,
        table: &TableInner,
        indexes: &[Arc<IndexInner>],
        entry: &StaleEntry,
        version: Address,
    ) -> Option<SmallVec<[u64; 4]>> {
        let content = self.store.content(version);
        if content.flags().is_tombstone() {
            return None;
        }
        if entry.index == PRIMARY {
            return Some(entry.key.clone());
        }
        let index = indexes.iter().find(|index| index.number == entry.index)?;
        let mut key = Key::default();
        if !index.set_key(&table.row_of(content), &mut key) {
            return None;
        }
        key.push_tuple(entry.tuple.0);
        Some(SmallVec::from_slice(key.words()))
    }

    /// The versions that a transaction may see, from the newest on. The caller
    /// has pinned a slot before it asked which transactions run.
    pub fn needed_versions(&self, newest: Address, running: &RunningSet) -> SmallVec<[Address; 8]> {
        let mut versions = Older::default();
        if !newest.is_none() {
            versions.needed.push(newest);
        }
        self.add_needed(&mut versions, newest, running, Timestamp::ZERO, usize::MAX);
        versions.needed
    }

    /// Adds the versions before `version` that a transaction may see; not those that
    /// another one had replaced at `until`. Returns false, and has not added all, if more
    /// than `most` would have to be looked at.
    fn add_needed(
        &self,
        older: &mut Older,
        version: Address,
        running: &RunningSet,
        until: Timestamp,
        most: usize,
    ) -> bool {
        if version.is_none() {
            return true;
        }
        let begin = self.store.content_header(version).timestamp();
        let from = running.min().max(until);
        if begin <= from {
            // Not even the first link needs to be looked at.
            return true;
        }
        let links = self.store.links(version, begin);
        for (link, end) in links.take_while(|&(_, end)| from < end) {
            if older.passed == most {
                return false;
            }
            #[cfg(test)]
            LOOKED_AT.set(LOOKED_AT.get() + 1);
            older.passed += 1;
            if running.may_see(link.begin_ts, end) {
                older.needed.push(link.address);
            }
        }
        true
    }
}

#[cfg(test)]
#[path = "cleanup_test.rs"]
mod tests;
