//! Entries of secondary indexes: entering keys, and unique keys (T10).

use std::ops::Bound;
use std::sync::Arc;

use pantile_base::{Timestamp, TupleId};
use pantile_index::{Batch, Direction, Finger, Insert, Scan as Cursor};
use smallvec::SmallVec;

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::buffers::{Buffers, Undo};
use crate::engine::index::{IndexInner, Indexes};
use crate::engine::stale::StaleEntry;
use crate::engine::table::TableInner;
use crate::engine::writes::{Pending, Write};
use crate::transactions::fetch::{Keys, TOGETHER};
use crate::transactions::hold::Held;
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::encoding::Encoded;
use crate::types::error::{Conflict, Result};
use crate::types::isolation::Isolation;
use crate::types::key::Key;

/// The list of indexes of a table that the transaction writes to. It goes back whatever happens: a wait may panic in code
/// of the program's.
struct Lent<'t> {
    txn: &'t mut Transaction,
    used: usize,
    indexes: Option<Indexes>,
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        self.txn.buffers.tables[self.used].indexes = self.indexes.take();
    }
}

impl Transaction {
    /// Enters the keys of a new row into the secondary indexes, and notes the
    /// entries of the old row there for the cleaner.
    pub(super) fn change_entries(&mut self, table: &TableInner, held: Held, pending: Pending) -> Result<()> {
        let write = &self.buffers.writes[held.write as usize];
        let used = write.table as usize;
        if self.buffers.tables[used].indexes().is_empty() {
            return Ok(());
        }
        if let Some(gathered) = &mut self.gathered
            && held.fresh
            && write.is_new
        {
            gathered.push(held.write);
            return Ok(());
        }
        let indexes = self.buffers.tables[used].indexes.take();
        let lent = Lent { txn: self, used, indexes };
        match &lent.indexes {
            Some(indexes) => lent.txn.change_entries_in(indexes, table, held, pending),
            None => Ok(()),
        }
    }

    fn change_entries_in(
        &mut self,
        indexes: &[Arc<IndexInner>],
        table: &TableInner,
        held: Held,
        pending: Pending,
    ) -> Result<()> {
        let write = self.buffers.writes[held.write as usize];
        let (mut old, mut new) = (Key::default(), Key::default());
        let ts = self.ts;
        // A damaged row does not tell which entries it has: the new one enters all of its own (I-31).
        let is_whole = self.verify_held(held).is_ok();
        for index in indexes.iter().filter(|i| i.is_of(ts)) {
            let before = match self.current(table, held) {
                Seen::Row(row) if is_whole => Some(row),
                Seen::Row(_) | Seen::Absent | Seen::Gone => None,
            };
            let after = match pending {
                Pending::Row { start, len, layout } => {
                    Some(table.row_in(layout, &self.buffers.rows[start..start + len as usize]))
                }
                Pending::Tombstone | Pending::Nothing => None,
            };
            if let (Some(before), Some(after)) = (&before, &after)
                && index.is_same_key(before, after)
            {
                continue;
            }
            let had = before.is_some_and(|row| index.set_key(&row, &mut old));
            let has = after.is_some_and(|row| index.set_key(&row, &mut new));
            if had {
                old.push_tuple(write.tuple.0);
            }
            let mut entry = new.clone();
            entry.push_tuple(write.tuple.0);
            if had && has && old.words() == entry.words() {
                continue;
            }
            if had {
                if self.under.is_some() {
                    self.ask_to_change_keys(table, index.number)?;
                }
                let entry = StaleEntry::new(table, index.number, write.tuple, old.words());
                // Nobody else had a key that this transaction has entered and gives up. The tuple
                // alone does not tell that once the entry goes.
                if self.notes_ranges
                    && index.checks_unique
                    && !old.has_null
                    && matches!(write.pending, Pending::Row { .. })
                {
                    self.buffers.reads.note_free(&entry);
                }
                self.told.tell(&entry);
                self.buffers.stale.push(entry);
            }
            if has {
                self.enter(table, index, write.tuple, (&new, entry.words()), &Finger::default())?;
            }
        }
        Ok(())
    }

    /// Enters the keys of new rows into the secondary indexes, with the cache misses of their descents
    /// side by side.
    pub(super) fn enter_gathered(&mut self, table: &TableInner, gathered: &[u32]) -> Result<()> {
        let Some(&first) = gathered.first() else { return Ok(()) };
        let used = self.buffers.writes[first as usize].table;
        let Some(indexes) = self.buffers.tables[used as usize].indexes.clone() else { return Ok(()) };
        let (ts, mut key) = (self.ts, Key::default());
        for index in indexes.iter().filter(|i| i.is_of(ts)) {
            let (mut entries, mut entered) = (Keys::default(), SmallVec::<[u32; TOGETHER]>::new());
            for &n in gathered {
                if self.set_new_key(table, index, n, &mut key) {
                    key.push_tuple(self.buffers.writes[n as usize].tuple.0);
                    entries.push(key.words());
                    entered.push(n);
                }
            }
            let (fingers, mut last) = (entries.fingers_in(index.tree()), &Finger::default());
            for ((entry, &n), finger) in entries.iter().zip(&entered).zip(&fingers) {
                if !index.tree().is_near(last, entry) {
                    last = finger;
                }
                if index.checks_unique {
                    self.set_new_key(table, index, n, &mut key);
                }
                let tuple = self.buffers.writes[n as usize].tuple;
                self.enter(table, index, tuple, (&key, entry), last)?;
            }
        }
        Ok(())
    }

    /// Builds the key of a row that it writes; false if it has none.
    fn set_new_key(&self, table: &TableInner, index: &IndexInner, write: u32, key: &mut Key) -> bool {
        let Pending::Row { start, len, layout } = self.buffers.writes[write as usize].pending else {
            return false;
        };
        index.set_key(&table.row_in(layout, &self.buffers.rows[start..start + len as usize]), key)
    }

    /// Enters a key into a secondary index, and only then looks for other rows
    /// that have it: of two transactions that do so at once, one sees the other
    /// (T10).
    fn enter(
        &mut self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        (key, entry): (&Key, &[u64]),
        finger: &Finger,
    ) -> Result<()> {
        if self.under.is_some() {
            self.ask_to_change_keys(table, index.number)?;
        }
        match self.insert_at(index.tree(), finger, entry, tuple, self.insert_ts()) {
            Insert::Inserted => self.entry_inserted(StaleEntry::new(table, index.number, tuple, entry)),
            Insert::Exists(_) if self.is_found_by_later(table, tuple) => {
                return Err(table.conflict(Conflict::ReadByLater));
            }
            // As with a primary key, that nobody else has it is told even if the write is taken back.
            Insert::Exists(_) if index.checks_unique && !key.has_null && self.notes_ranges => {
                self.buffers.reads.note_free(&StaleEntry::new(table, index.number, tuple, entry));
            }
            Insert::Exists(_) => {}
            Insert::Forbidden(_) => return Err(table.conflict(Conflict::ReadByLater)),
        }
        if index.checks_unique && !key.has_null {
            self.check_unique(table, index, tuple, key)?;
        }
        Ok(())
    }

    /// Whether a later transaction had found a new tuple's id, without a
    /// version, before the tuple was made.
    fn is_found_by_later(&self, table: &TableInner, tuple: TupleId) -> bool {
        let write = self.buffers.write_of(table.id, tuple);
        write.is_some_and(|write| self.buffers.writes[write as usize].found_by_later)
    }

    pub(super) fn entry_inserted(&mut self, entry: StaleEntry) {
        self.buffers.undo.push(Undo::Entry(entry));
    }

    /// Enters a row into indexes that were made after the row was written, and
    /// notes their entries of the old row for the cleaner.
    #[cold]
    pub(super) fn enter_new_indexes(&mut self, write: Write) -> Result<()> {
        let used = &self.buffers.tables[write.table as usize];
        let (table, known) = (used.table.clone(), used.indexes().to_vec());
        let ts = self.ts;
        for index in table.indexes().iter().filter(|i| i.is_of(ts)) {
            let is_new = known.iter().all(|k| k.number != index.number);
            if is_new {
                self.note_old_entry(&table, index, write);
            }
            // A unique index may have been incomplete when the write was made.
            if let Pending::Row { start, len, layout } = write.pending
                && (is_new || index.unique)
            {
                let (mut key, mut entry) = (Key::default(), Key::default());
                let row = table.row_in(layout, &self.buffers.rows[start..start + len as usize]);
                if !index.set_key(&row, &mut key) {
                    continue;
                }
                entry.clone_from(&key);
                entry.push_tuple(write.tuple.0);
                self.enter(&table, index, write.tuple, (&key, entry.words()), &Finger::default())?;
            }
        }
        Ok(())
    }

    /// Notes the entry that the building of an index has made, or will make, of
    /// the row that a write replaces.
    fn note_old_entry(&mut self, table: &TableInner, index: &IndexInner, write: Write) {
        if !write.has_chain() || write.pending == Pending::Nothing {
            return;
        }
        if self.core.store.verify_mapped(write.base).is_err() {
            return;
        }
        let old = self.rows_in_use.content(&self.core, write.base);
        let mut entry = Key::default();
        if !old.flags().is_tombstone() && index.set_key(&table.row_of(old), &mut entry) {
            entry.push_tuple(write.tuple.0);
            self.buffers.stale.push(StaleEntry::new(table, index.number, write.tuple, entry.words()));
        }
    }

    /// Enters rows of this transaction into an index that is newer than they
    /// are. The transaction must find them before its commit enters them.
    pub(super) fn enter_own_rows(&self, table: &TableInner, index: &IndexInner) -> Result<()> {
        let Buffers { tables, writes, rows, .. } = &*self.buffers;
        let Some(at) = tables.iter().position(|used| used.table.id == table.id) else { return Ok(()) };
        if tables[at].indexes().iter().any(|known| known.number == index.number) {
            return Ok(());
        }
        for write in writes.iter().filter(|w| w.table as usize == at) {
            let Pending::Row { start, len, layout } = write.pending else { continue };
            let mut entry = Key::default();
            let row = table.row_in(layout, &rows[start..start + len as usize]);
            if !index.set_key(&row, &mut entry) {
                continue;
            }
            entry.push_tuple(write.tuple.0);
            match self.insert_entry(index.tree(), entry.words(), write.tuple) {
                // Kept if the row commits with this key. If it does not, the next writer of
                // the tuple finds the entry, and the gap's mark on the tuple (I-31).
                Insert::Inserted => {
                    let entry = StaleEntry::new(table, index.number, write.tuple, entry.words());
                    self.mark_gap(table, &entry);
                    self.core.stale.push(self.slot, self.core.registry.now(), entry);
                }
                Insert::Exists(_) => {}
                Insert::Forbidden(_) => return Err(table.conflict(Conflict::ReadByLater)),
            }
        }
        Ok(())
    }

    /// Fails if another tuple has the key in a unique index, or may get it from
    /// a transaction that this one cannot see yet.
    pub(super) fn check_unique(
        &self,
        table: &TableInner,
        index: &IndexInner,
        own: TupleId,
        key: &Key,
    ) -> Result<()> {
        // A late writer commits after this moment. A transaction that enters
        // the key from here on is later still or is refused.
        let at = if self.writes_late() { self.core.registry.now().max(self.ts) } else { self.ts };
        let upper = key.prefix_end();
        let upper = upper.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut cursor = Cursor::new(Bound::Included(key.words()), upper, Direction::Forward);
        let mut batch = Batch::new();
        while cursor.next_batch(index.tree(), Some(at.get()), &mut batch) {
            for (_, tuple) in batch.iter().filter(|(_, tuple)| *tuple != own.0) {
                if self.holds_key(table, index, TupleId(tuple), key, at)? {
                    self.note_read(table.id, TupleId(tuple))?;
                    return Err(table.duplicate(&index.name()));
                }
            }
        }
        Ok(())
    }

    /// Whether a tuple has a key that this transaction wants for another tuple.
    /// The mark keeps writers below `at` from giving it the key afterwards.
    fn holds_key(
        &self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        key: &Key,
        at: Timestamp,
    ) -> Result<bool> {
        let serializable = self.isolation == Isolation::Serializable;
        let cell = table.anchor(tuple);
        let mut asked = None;
        self.core.marks.raise(table.id, tuple, at);
        loop {
            if self.under.is_some() {
                asked = Some(self.ask_row(table, tuple)?);
            }
            // The newest version may be too new for our timestamp to protect it.
            let pin = self.core.registry.pin(self.slot);
            let anchor = Anchor::load(cell);
            if anchor.is_dead() {
                return Ok(false);
            }
            if anchor.is_owned_by(self.slot) {
                let own = self.own_version(table, tuple);
                let own = own.unwrap_or_else(|| self.version_at(table, anchor.newest(), Timestamp::MAX).0);
                return Ok(matches!(own, Seen::Row(row) if has_key(index, &row, key)));
            }
            match anchor.owner() {
                Owner::Transaction(holder) if holder != self.slot => {
                    let bound = self.core.registry.pending(holder);
                    let late = self.core.registry.writes_late(holder);
                    if Anchor::load(cell) != anchor {
                        continue;
                    }
                    // A later serializable writer finds the entry of this
                    // transaction. A late writer may have looked before the entry
                    // was there, so this transaction must wait for it, as for an
                    // older one.
                    if self.writes_late() || bound < self.ts || late {
                        drop(pin);
                        self.wait_for(table, holder, bound, || Anchor::load(cell) != anchor)?;
                        continue;
                    }
                }
                Owner::Cleaner => continue,
                Owner::Transaction(_) => return Ok(false),
                Owner::Nobody => {}
            }
            let newest = anchor.newest();
            if self.core.options.verify_reads {
                self.verify_version(newest, Timestamp::MAX)?;
            }
            if serializable && self.begin_of(newest) > self.ts {
                return Err(table.conflict(Conflict::WrittenByLater));
            }
            let has = |seen| matches!(seen, Seen::Row(row) if has_key(index, &row, key));
            let (seen, version) = self.version_at(table, newest, Timestamp::MAX);
            self.meet_newest(version);
            if asked.is_some_and(|ticket| !self.has_read(table.id, tuple, version, ticket)) {
                continue;
            }
            let holds = has(seen);
            if !holds {
                // Its entry is stale, or the row is damaged.
                self.verify_newest(newest)?;
            }
            if !holds
                && self.isolation == Isolation::Snapshot
                && has(self.version_at(table, newest, self.ts).0)
            {
                // The snapshot would show two rows with the key.
                return Err(table.conflict(Conflict::ChangedSinceSnapshot));
            }
            return Ok(holds);
        }
    }
}

fn has_key(index: &IndexInner, row: &Encoded<'_>, key: &Key) -> bool {
    let mut has = Key::default();
    index.set_key(row, &mut has) && has.words() == key.words()
}
