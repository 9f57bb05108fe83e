//! Rows of which nothing is left when a transaction goes on: those that it has taken
//! back by a savepoint, and pieces of values out of line that it has deleted again.

use pantile_base::{TableId, TupleId};

use crate::engine::buffers::Undo;
use crate::engine::pieces::is_hidden;
use crate::engine::writes::Pending;
use crate::transactions::transaction::Transaction;

/// Ids of rows that are gone from which on it pays to look for those that can be used
/// again. Unit tests look for each.
const FREED_FROM: usize = if cfg!(test) { 1 } else { 64 };

/// Ids that it keeps to itself at most. Others wait with the cleaner.
const FREED_MOST: usize = 1 << 16;

impl Transaction {
    /// Takes out of the buffers what nobody will ask for any more.
    #[cold]
    pub(super) fn squeeze(&mut self) {
        self.buffers.drop_states();
        self.forget_pieces();
        self.buffers.squeeze();
    }

    /// Lets go of pieces that it has inserted and deleted again, unless a savepoint
    /// brings them back. Others find a piece by the row that it belongs to, and none of
    /// them has seen that one.
    fn forget_pieces(&mut self) {
        let tables = &self.buffers.tables;
        let is_hidden: Vec<_> = tables.iter().map(|used| is_hidden(used.table.id)).collect();
        let writes = self.buffers.writes.iter();
        let mut goes: Vec<_> = writes
            .map(|write| {
                is_hidden[write.table as usize] && write.is_new && write.pending == Pending::Tombstone
            })
            .collect();
        for undo in &self.buffers.undo {
            if let Undo::Restore { write, .. } = undo {
                goes[*write as usize] = false;
            }
        }
        if goes.contains(&true) {
            self.forget_writes(&goes);
            self.core.registry.wake(self.slot);
        }
    }

    fn forget_writes(&mut self, goes: &[bool]) {
        let mut places = Vec::with_capacity(goes.len());
        let mut kept = 0;
        for goes in goes {
            places.push(kept);
            kept += u32::from(!goes);
        }
        let entries_of = self.buffers.undo.iter().filter_map(|undo| match undo {
            Undo::Entry(entry) => Some(self.buffers.write_of(entry.table, entry.tuple)),
            Undo::Unlock | Undo::Restore { .. } => None,
        });
        let mut entries_of =
            entries_of.map(|write| write.expect("an entry is of a write")).collect::<Vec<_>>().into_iter();
        let (mut locked, mut entries) = (0, Vec::new());
        self.buffers.retain_undo(|undo, _| match undo {
            Undo::Unlock => {
                locked += 1;
                !goes[locked - 1]
            }
            Undo::Restore { .. } => true,
            Undo::Entry(entry) => {
                let goes = goes[entries_of.next().expect("one for each entry") as usize];
                if goes {
                    entries.push(entry.clone());
                }
                !goes
            }
        });
        entries.into_iter().for_each(|entry| self.undo_entry(entry));
        self.buffers.by_tuple.clear(goes.len());
        for (n, write) in std::mem::take(&mut self.buffers.writes).into_iter().enumerate() {
            match goes[n] {
                true => self.let_go(write),
                false => self.buffers.writes.push(write),
            }
        }
        let place = |n: u32| places[n as usize];
        for undo in &mut self.buffers.undo {
            if let Undo::Restore { write, .. } = undo {
                *write = place(*write);
            }
        }
    }

    /// No index leads to the id of a row any more that it has taken back.
    pub(super) fn free(&mut self, table: TableId, tuple: TupleId) {
        let registry = &self.core.registry;
        // Above the clocks of all who may have found the id.
        let at = registry.after_all();
        match self.buffers.freed.len() < FREED_MOST {
            true => self.buffers.freed.push((at, table, tuple)),
            false => self.core.stale.bury(self.slot, at, table, tuple),
        }
    }

    /// Lets ids be used again of which no other transaction can know. One that began
    /// when no index led to them any more has not found them, and this one finds rows by
    /// their keys unless it has cursors.
    #[inline]
    pub(super) fn return_freed(&mut self) {
        if self.buffers.freed.len() < self.buffers.worth_freeing.max(FREED_FROM) {
            return;
        }
        let has_cursors = self.has_cursors.get();
        let before = self.core.registry.watermark_of_others(self.slot);
        let (core, slot) = (&self.core, self.slot.index());
        self.buffers.freed.retain(|(at, table, tuple)| {
            let is_free = *at < before && (!has_cursors || is_hidden(*table));
            if is_free && let Some(table) = core.tables.by_id(*table) {
                table.return_tuple(slot, *tuple);
            }
            !is_free
        });
        self.buffers.worth_freeing = 2 * self.buffers.freed.len();
    }

    /// Hands the ids that are left to the cleaner, which waits for those who may know them.
    pub(super) fn bury_freed(&mut self) {
        for (_, table, tuple) in std::mem::take(&mut self.buffers.freed) {
            self.core.stale.bury(self.slot, self.core.registry.after_all(), table, tuple);
        }
    }
}

#[cfg(test)]
#[path = "forgetting_test.rs"]
mod tests;
