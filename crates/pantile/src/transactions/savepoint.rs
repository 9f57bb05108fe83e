//! Savepoints, and undoing writes.

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};

use crate::engine::anchor::Anchor;
use crate::engine::buffers::{Buffers, Undo};
use crate::engine::pieces::is_hidden;
use crate::engine::read_set::Full;
use crate::engine::stale::StaleEntry;
use crate::engine::table::TableInner;
use crate::engine::writes::Write;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};

/// A point in a transaction to which it can be rolled back.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
/// let mut txn = db.begin()?;
/// txn.insert(&t, &[1u64.into(), 0i64.into()])?;
/// let before = txn.savepoint();
/// txn.insert(&t, &[2u64.into(), 0i64.into()])?;
/// txn.rollback_to(before)?;
/// assert!(txn.get(&t, &[1u64.into()])?.is_some() && txn.get(&t, &[2u64.into()])?.is_none());
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Savepoint {
    transaction: Timestamp,
    number: u64,
}

impl Transaction {
    /// Sets a savepoint for [`Transaction::rollback_to`].
    pub fn savepoint(&mut self) -> Savepoint {
        self.savepoints_taken += 1;
        let number = self.savepoints_taken;
        self.buffers.set_savepoint(number);
        self.note_memory();
        Savepoint { transaction: self.began, number }
    }

    /// Forgets a savepoint and those that were set after it. What was written since stays. Does
    /// nothing if the transaction has no such savepoint.
    pub fn release(&mut self, savepoint: Savepoint) {
        if let Some(at) = self.place_of(savepoint) {
            let savepoints = &mut self.buffers.savepoints;
            let is_first = savepoints[at].first == savepoint.number;
            savepoints[at].last = savepoint.number - 1;
            savepoints.truncate(at + usize::from(!is_first));
            if savepoints.is_empty() {
                self.buffers.release_states();
            }
        }
    }

    /// Undoes every write since the savepoint, which stays valid. Locks taken since are released.
    /// Rows that were read since still count as read.
    ///
    /// # Errors
    /// [`Error::UnknownSavepoint`] if it is of another transaction, or was set
    /// after a savepoint to which the transaction has been rolled back.
    pub fn rollback_to(&mut self, savepoint: Savepoint) -> Result<()> {
        let at = self.place_of(savepoint).ok_or(Error::UnknownSavepoint)?;
        self.buffers.savepoints.truncate(at + 1);
        self.buffers.savepoints[at].last = savepoint.number;
        let mark = self.buffers.savepoints[at];
        self.undo_to(mark.undo);
        self.buffers.cut(mark);
        self.note_memory();
        Ok(())
    }

    /// Its place in the list of those that are valid.
    fn place_of(&self, savepoint: Savepoint) -> Option<usize> {
        let savepoints = &self.buffers.savepoints;
        let at = savepoints.partition_point(|mark| mark.last < savepoint.number);
        let is_valid = savepoints.get(at).is_some_and(|mark| mark.first <= savepoint.number);
        (is_valid && savepoint.transaction == self.began).then_some(at)
    }

    /// Undoes changes until `len` are left.
    pub(super) fn undo_to(&mut self, len: usize) {
        let mut unlocked = false;
        while self.buffers.undo.len() > len {
            match self.buffers.undo.pop() {
                Some(Undo::Unlock) => {
                    unlocked = true;
                    if let Some(write) = self.buffers.writes.pop() {
                        self.let_go(write);
                    }
                }
                Some(Undo::Restore { write, pending }) => {
                    self.buffers.writes[write as usize].pending = pending
                }
                Some(Undo::Entry(entry)) => self.undo_entry(entry),
                None => break,
            }
        }
        if unlocked {
            self.core.registry.wake(self.slot);
        }
    }

    /// Undoes an index entry. No transaction needs the entry of a tuple that
    /// never had a version, so it is removed at once, under the lock. The
    /// cleaner looks at all others.
    pub(super) fn undo_entry(&mut self, entry: StaleEntry) {
        // A cursor that has returned the row at this key does not return it at its old one.
        self.told.tell(&entry);
        // That nobody else has the number of a value tells nothing.
        if self.notes_ranges && !is_hidden(entry.table) {
            self.note_taken_back(&entry);
        }
        if self.under.is_some() && !is_hidden(entry.table) {
            self.keep_keys_as_read(entry.table, entry.index);
        }
        let at = self.buffers.newest_write_of(entry.table, entry.tuple);
        let table = self.core.tables.by_id(entry.table);
        match (at.map(|at| &mut self.buffers.writes[at as usize]), table) {
            (Some(write), Some(table)) if write.is_new || write.base.is_none() => {
                self.core.marks.raise(table.id, entry.tuple, self.ts);
                write.gone |= self.core.remove_entry(&table, &entry);
            }
            (_, table) => {
                if let Some(table) = table {
                    self.mark_gap(&table, &entry);
                }
                self.core.stale.push(self.slot, self.core.registry.now(), entry);
            }
        }
    }

    /// Notes what an entry that is taken back has told. There may be millions, and nothing can fail here. So
    /// if memory is short, the notes say less exactly what has been read.
    fn note_taken_back(&self, entry: &StaleEntry) {
        let reads = &self.buffers.reads;
        if !reads.has_room_for_range() && self.make_room_for_reads(Full::Ranges).is_err() {
            reads.widen();
        }
        reads.note_free(entry);
    }

    /// The transaction leaves a tuple with an entry and without a version of its key.
    /// A reader that has found the key absent has marked a gap of the index, and the
    /// next writer of the tuple finds the entry and looks at no gap. So it has to find
    /// that mark on the tuple (I-31), which is still locked.
    pub(super) fn mark_gap(&self, table: &TableInner, entry: &StaleEntry) {
        let mark = table.with_tree(entry.index, |tree| tree.mark(&entry.key)).unwrap_or(0);
        if !is_removed(Control::GapMarks) {
            self.core.marks.raise(table.id, entry.tuple, Timestamp::from_raw(mark));
        }
    }

    /// Unlocks a tuple and forgets that it was locked.
    pub(super) fn let_go(&mut self, write: Write) {
        if self.under.is_some() && !write.gone {
            let table = self.buffers.tables[write.table as usize].table.id;
            self.keep_as_read(table, write.tuple, write.base_ts);
        }
        let Buffers { tables, writes, by_tuple, reads, .. } = &mut *self.buffers;
        let table = &tables[write.table as usize].table;
        by_tuple.forget_newest((table.id, write.tuple), writes.len());
        // What was read under the lock counts as read.
        self.core.marks.raise(table.id, write.tuple, self.ts);
        if self.moves && !write.gone {
            reads.note(table.id, write.tuple);
        }
        if write.gone {
            Anchor::bury(table.anchor(write.tuple), write.base);
            self.core.counters.buried(self.slot, write.base);
            let id = table.id;
            self.free(id, write.tuple);
        } else {
            Anchor::publish(table.anchor(write.tuple), write.base);
        }
    }
}

#[cfg(test)]
#[path = "savepoint_test.rs"]
mod tests;
