//! Writing: locking tuples, and what becomes of them in the private buffer.
//!
//! A write locks its tuple when it is made (so that conflicts show in the
//! statement that has them) and enters new keys into the indexes, where
//! readers find a locked tuple without a version. Rows stay private until
//! the commit appends them.

use std::sync::Arc;

use pantile_base::sync::hint;
use pantile_base::{Address, Timestamp, TupleId};
use pantile_index::Insert;
use smallvec::SmallVec;

use crate::engine::anchor::{Anchor, Owner};
use crate::engine::cleanup::StaleEntry;
use crate::engine::table::{IndexInner, PRIMARY, Table, TableInner};
use crate::transactions::row_edit::RowEdit;
use crate::transactions::transaction::{
    Buffers, Pending, Seen, TableUse, Transaction, Undo, Write, conflict,
};
use crate::types::error::{Conflict, Error, Result};
use crate::types::key::Key;
use crate::types::options::Isolation;
use crate::types::row::{self, Encoded, Row};
use crate::types::schema::Place;
use crate::types::value::Value;

/// A tuple that the transaction holds.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    write: u32,
    /// The lock was taken by this call.
    fresh: bool,
}

impl Transaction {
    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] if its primary key or a unique key exists;
    /// [`Error::Conflict`]; [`Error::ReadOnly`]; [`Error::WrongType`] and the
    /// like for values that do not fit. The call has changed nothing then.
    pub fn insert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.put(&table.0, values, false).map(|_| ())
    }

    /// Adds a row or replaces the one with its primary key; tells whether
    /// there was one.
    ///
    /// # Errors
    /// As [`Transaction::insert`], but a primary key that exists is none.
    pub fn upsert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<bool> {
        self.put(&table.0, values, true)
    }

    fn put(&mut self, table: &TableInner, values: &[Value<'_>], replace: bool) -> Result<bool> {
        self.check_write(table)?;
        let mut key = Key::default();
        let mut large = Vec::new();
        let start = self.buffers.rows.len();
        let at = self.statement();
        let encoded = {
            let (core, slot) = (&self.core, self.slot);
            row::encode(&table.schema, values, &mut self.buffers.rows, |bytes| {
                let id = core.registry.draw(slot).get();
                large.push((id, bytes));
                id
            })
        };
        if let Err(error) = encoded {
            self.buffers.rows.truncate(start);
            return Err(error);
        }
        let len = self.buffers.rows.len() - start;
        let row = Encoded { schema: &table.schema, bytes: &self.buffers.rows[start..] };
        key.set_row(&row, &table.schema.primary_key);
        let undo = self.buffers.undo.len();
        let outcome =
            self.put_row(table, &key, at, replace, Pending::Row { start, len }).and_then(|existed| {
                large.iter().try_for_each(|(id, b)| self.put_large(*id, b)).map(|()| existed)
            });
        if outcome.is_err() {
            self.undo_to(undo);
        }
        outcome
    }

    fn put_row(
        &mut self,
        table: &TableInner,
        key: &Key,
        at: Timestamp,
        replace: bool,
        pending: Pending,
    ) -> Result<bool> {
        let held = self.hold_key(table, key, at, replace)?;
        let Some(held) = held else {
            return Err(duplicate(table, "primary"));
        };
        let existed = matches!(self.current(table, held), Seen::Row(_));
        if existed && !replace {
            return Err(duplicate(table, "primary"));
        }
        self.set_pending(table, held, pending)?;
        Ok(existed)
    }

    /// Changes columns of the row with this primary key; tells whether there is one.
    ///
    /// # Errors
    /// As [`Transaction::modify`].
    pub fn update(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        changes: &[(usize, Value<'_>)],
    ) -> Result<bool> {
        self.modify(table, key, |row| {
            for &(column, value) in changes {
                row.set(column, value)?;
            }
            Ok(true)
        })
    }

    /// Reads the row with this primary key as nobody else can change it, and
    /// lets `edit` change it; tells whether there is a row and it was changed.
    /// `edit` returns whether the changes are to be kept.
    ///
    /// # Errors
    /// What `edit` returns; [`Error::PrimaryKeyChanged`]; [`Error::DuplicateKey`]
    /// of a unique index; [`Error::Conflict`]; [`Error::ReadOnly`]. The row is
    /// as before then.
    pub fn modify(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        edit: impl FnOnce(&mut RowEdit<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let table = &*table.0;
        self.check_write(table)?;
        let key = self.point_key(table, key)?;
        let undo = self.buffers.undo.len();
        let outcome = self.modify_held(table, &key, edit);
        if !matches!(outcome, Ok(true)) {
            self.undo_to(undo);
        }
        outcome
    }

    fn modify_held(
        &mut self,
        table: &TableInner,
        key: &Key,
        edit: impl FnOnce(&mut RowEdit<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let Some(held) = self.hold_existing(table, key)? else {
            return Ok(false);
        };
        let mut bytes = std::mem::take(&mut self.buffers.scratch);
        bytes.clear();
        match self.current(table, held) {
            Seen::Row(row) => bytes.extend_from_slice(row),
            Seen::Absent | Seen::Gone => {
                self.buffers.scratch = bytes;
                return Ok(false);
            }
        }
        let mut row = RowEdit::new(self, table, bytes);
        let keep = edit(&mut row);
        let (bytes, large) = row.into_parts();
        let outcome = match keep {
            Ok(true) => self.replace_row(table, held, &bytes, large),
            other => other,
        };
        self.buffers.scratch = bytes;
        outcome
    }

    fn replace_row(
        &mut self,
        table: &TableInner,
        held: Held,
        bytes: &[u8],
        large: Vec<(u64, Vec<u8>)>,
    ) -> Result<bool> {
        let start = self.buffers.rows.len();
        self.buffers.rows.extend_from_slice(bytes);
        self.set_pending(table, held, Pending::Row { start, len: bytes.len() })?;
        for (id, value) in large {
            self.put_large(id, &value)?;
        }
        Ok(true)
    }

    /// Reads the row with this primary key and keeps everybody else from
    /// changing it until the transaction ends.
    ///
    /// # Errors
    /// As [`Transaction::modify`].
    pub fn get_for_update<'t>(&'t mut self, table: &'t Table, key: &[Value<'_>]) -> Result<Option<Row<'t>>> {
        let table = &*table.0;
        self.check_write(table)?;
        let key = self.point_key(table, key)?;
        let Some(held) = self.hold_existing(table, &key)? else {
            return Ok(None);
        };
        match self.current(table, held) {
            Seen::Row(bytes) => Ok(Some(self.row(table, bytes, Timestamp::MAX))),
            Seen::Absent | Seen::Gone => Ok(None),
        }
    }

    /// Deletes the row with this primary key; tells whether there was one.
    ///
    /// # Errors
    /// [`Error::Conflict`], [`Error::ReadOnly`], and errors of the key.
    pub fn delete(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        let table = &*table.0;
        self.check_write(table)?;
        let key = self.point_key(table, key)?;
        let undo = self.buffers.undo.len();
        let outcome = self.delete_held(table, &key);
        if !matches!(outcome, Ok(true)) {
            self.undo_to(undo);
        }
        outcome
    }

    fn delete_held(&mut self, table: &TableInner, key: &Key) -> Result<bool> {
        let Some(held) = self.hold_existing(table, key)? else {
            return Ok(false);
        };
        if !matches!(self.current(table, held), Seen::Row(_)) {
            return Ok(false);
        }
        self.set_pending(table, held, Pending::Tombstone)?;
        Ok(true)
    }

    fn check_write(&self, table: &TableInner) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.core.check_open()?;
        self.check_table(table)
    }

    /// Locks the tuple of a key, which is entered into the index if need be.
    /// `None` if a row with the key is visible and is not to be replaced.
    fn hold_key(
        &mut self,
        table: &TableInner,
        key: &Key,
        at: Timestamp,
        replace: bool,
    ) -> Result<Option<Held>> {
        loop {
            if let Some(tuple) = table.primary.get(key.words(), None) {
                let tuple = TupleId(tuple);
                // Refusing a duplicate tells that the row is there: a read.
                if !replace && matches!(self.read_tuple(table, tuple, at)?, Seen::Row(_)) {
                    return Ok(None);
                }
                match self.hold(table, tuple)? {
                    Some(held) => return Ok(Some(held)),
                    None => continue,
                }
            }
            if let Some(held) = self.hold_new(table, key)? {
                return Ok(Some(held));
            }
        }
    }

    /// Makes a tuple for a key that has none; `None` if it has one by now.
    fn hold_new(&mut self, table: &TableInner, key: &Key) -> Result<Option<Held>> {
        let tuple = table.take_tuple(self.slot.index());
        let buried = self.create_locked(table, tuple);
        match table.primary.insert(key.words(), tuple.0, self.insert_ts()) {
            Insert::Inserted => {
                let held = self.add_write(table, tuple, buried);
                // An entry of another life of the tuple id can outlive it, and
                // then the mark of a reader is on the tuple and not in the gap
                // (T8). Who comes from here on finds the lock.
                let write = &mut self.buffers.writes[held.write as usize];
                write.is_new = true;
                write.found_by_later = self.isolation == Isolation::Serializable
                    && self.core.marks.highest(table.id, tuple) > self.ts;
                self.entry_inserted(stale(table, PRIMARY, tuple, key));
                Ok(Some(held))
            }
            other => {
                Anchor::bury(table.anchor(tuple), buried);
                self.core.counters.buried(self.slot, buried);
                table.return_tuple(self.slot.index(), tuple);
                match other {
                    Insert::Forbidden(_) => Err(conflict(table, Conflict::ReadByLater)),
                    _ => Ok(None),
                }
            }
        }
    }

    /// Locks a new tuple; gives the tombstone that is remembered under its id.
    fn create_locked(&self, table: &TableInner, tuple: TupleId) -> Address {
        let cell = table.anchor(tuple);
        let mut anchor = Anchor::load(cell);
        while !anchor.try_create(cell, self.slot) {
            anchor = Anchor::load(cell);
        }
        let buried = anchor.newest();
        self.core.counters.exhumed(self.slot, buried);
        buried
    }

    /// The timestamp against which the marks of gaps are checked. Late
    /// writers publish above every mark there can be.
    pub(crate) fn insert_ts(&self) -> u64 {
        if self.isolation == Isolation::Serializable { self.ts.get() } else { u64::MAX }
    }

    /// Locks the tuple of a key that exists in the index.
    fn hold_existing(&mut self, table: &TableInner, key: &Key) -> Result<Option<Held>> {
        loop {
            let at = self.statement();
            let Some(tuple) = table.primary.get(key.words(), self.mark(at)) else {
                return Ok(None);
            };
            if let Some(held) = self.hold(table, TupleId(tuple))? {
                return Ok(Some(held));
            }
        }
    }

    /// Locks a tuple, or finds it locked by us; `None` if it is gone from the
    /// index. **This is where writes are validated.**
    fn hold(&mut self, table: &TableInner, tuple: TupleId) -> Result<Option<Held>> {
        let cell = table.anchor(tuple);
        self.core.marks.prefetch(table.id, tuple);
        loop {
            let anchor = Anchor::load(cell);
            self.core.store.prefetch(anchor.newest());
            if anchor.is_owned_by(self.slot) {
                let write = self.buffers.by_tuple[&(table.id, tuple)];
                return Ok(Some(Held { write, fresh: false }));
            }
            if anchor.is_dead() {
                return Ok(None);
            }
            match anchor.owner() {
                Owner::Nobody if anchor.try_lock(cell, self.slot) => {
                    if let Err(why) = self.validate(table, tuple, anchor.newest()) {
                        Anchor::publish(cell, anchor.newest());
                        self.core.registry.wake(self.slot);
                        return Err(conflict(table, why));
                    }
                    return Ok(Some(self.add_write(table, tuple, anchor.newest())));
                }
                Owner::Transaction(holder) => {
                    let bound = self.core.registry.pending(holder);
                    if Anchor::load(cell) == anchor {
                        if self.isolation == Isolation::Serializable && bound > self.ts {
                            // It will publish above us; waiting cannot help.
                            return Err(conflict(table, Conflict::Locked));
                        }
                        self.wait_for(table, holder, bound, || Anchor::load(cell) != anchor)?;
                    }
                }
                Owner::Nobody | Owner::Cleaner => hint::spin_loop(),
            }
        }
    }

    /// Timestamp ordering: nobody later has written or read the tuple. For
    /// snapshots: nobody has committed it since.
    fn validate(&self, table: &TableInner, tuple: TupleId, newest: Address) -> Result<(), Conflict> {
        if self.isolation == Isolation::ReadCommitted {
            return Ok(());
        }
        let serializable = self.isolation == Isolation::Serializable;
        if !newest.is_none() && self.core.store.content(newest).txn_id() > self.ts {
            return Err(if serializable { Conflict::WrittenByLater } else { Conflict::ChangedSinceSnapshot });
        }
        if serializable && self.core.marks.highest(table.id, tuple) > self.ts {
            return Err(Conflict::ReadByLater);
        }
        Ok(())
    }

    fn add_write(&mut self, table: &TableInner, tuple: TupleId, base: Address) -> Held {
        let used = self.use_table(table);
        let write = self.buffers.writes.len() as u32;
        self.buffers.writes.push(Write {
            table: used,
            tuple,
            base,
            is_new: false,
            pending: Pending::Nothing,
            gone: false,
            found_by_later: false,
        });
        self.buffers.by_tuple.insert((table.id, tuple), write);
        self.buffers.undo.push(Undo::Unlock);
        Held { write, fresh: true }
    }

    /// The table's place in the buffers, with its present list of indexes.
    fn use_table(&mut self, table: &TableInner) -> u32 {
        let version = table.indexes_version();
        let Buffers { tables, writes, .. } = &mut *self.buffers;
        if let Some(at) = tables.iter().position(|used| used.table.id == table.id) {
            // What it had written before is seen to at commit.
            if tables[at].indexes_version != version && !writes.iter().any(|w| w.table as usize == at) {
                tables[at].indexes_version = version;
                tables[at].indexes = table.indexes();
            }
            return at as u32;
        }
        let table = self.core.table_in_use(table.id).expect("a table stays while a transaction uses it");
        tables.push(TableUse { indexes: table.indexes(), indexes_version: version, table });
        tables.len() as u32 - 1
    }

    /// The row as it is now: ours, or the newest committed, which validation
    /// has found to be the visible one.
    pub(crate) fn current<'t>(&'t self, table: &'t TableInner, held: Held) -> Seen<'t> {
        let write = &self.buffers.writes[held.write as usize];
        debug_assert!(write.tuple.0 < table.tuples_end());
        match write.pending {
            Pending::Nothing => self.version_at(write.base, Timestamp::MAX),
            Pending::Row { start, len } => Seen::Row(&self.buffers.rows[start..start + len]),
            Pending::Tombstone => Seen::Absent,
        }
    }

    fn set_pending(&mut self, table: &TableInner, held: Held, pending: Pending) -> Result<()> {
        self.change_entries(table, held, pending)?;
        self.delete_large_of(table, held, pending)?;
        let Buffers { writes, undo, .. } = &mut *self.buffers;
        let write = &mut writes[held.write as usize];
        if !held.fresh || write.pending != Pending::Nothing {
            undo.push(Undo::Restore { write: held.write, pending: write.pending });
        }
        write.pending = pending;
        Ok(())
    }

    /// Enters the keys of a new row into the secondary indexes, and notes
    /// those of the old one to be cleaned up.
    fn change_entries(&mut self, table: &TableInner, held: Held, pending: Pending) -> Result<()> {
        let write = self.buffers.writes[held.write as usize];
        let indexes = &self.buffers.tables[write.table as usize].indexes;
        if indexes.is_empty() && !matches!(pending, Pending::Tombstone) {
            return Ok(());
        }
        let indexes = Arc::clone(indexes);
        let (mut old, mut new) = (Key::default(), Key::default());
        for index in indexes.iter() {
            let had = match self.current(table, held) {
                Seen::Row(bytes) => {
                    old.set_row(&Encoded { schema: &table.schema, bytes }, &index.columns);
                    old.push_tuple(write.tuple.0);
                    true
                }
                Seen::Absent | Seen::Gone => false,
            };
            let has = if let Pending::Row { start, len } = pending {
                let bytes = &self.buffers.rows[start..start + len];
                new.set_row(&Encoded { schema: &table.schema, bytes }, &index.columns);
                true
            } else {
                false
            };
            let mut entry = new.clone();
            entry.push_tuple(write.tuple.0);
            if had && has && old.words() == entry.words() {
                continue;
            }
            if had {
                self.buffers.stale.push(stale(table, index.number, write.tuple, &old));
            }
            if has {
                self.enter(table, index, write.tuple, &new, &entry)?;
            }
        }
        if let (Pending::Tombstone, Seen::Row(bytes)) = (pending, self.current(table, held)) {
            old.set_row(&Encoded { schema: &table.schema, bytes }, &table.schema.primary_key);
            let entry = stale(table, PRIMARY, write.tuple, &old);
            self.buffers.stale.push(entry);
        }
        Ok(())
    }

    /// Enters a key into a secondary index. Entering comes before looking for
    /// others with the key: of two who do so at once, one sees the other (T10).
    pub(crate) fn enter(
        &mut self,
        table: &TableInner,
        index: &IndexInner,
        tuple: TupleId,
        key: &Key,
        entry: &Key,
    ) -> Result<()> {
        match index.tree.insert(entry.words(), tuple.0, self.insert_ts()) {
            Insert::Inserted => self.entry_inserted(stale(table, index.number, tuple, entry)),
            Insert::Exists(_) if self.is_found_by_later(table, tuple) => {
                return Err(conflict(table, Conflict::ReadByLater));
            }
            Insert::Exists(_) => {}
            Insert::Forbidden(_) => return Err(conflict(table, Conflict::ReadByLater)),
        }
        if index.checks_unique && !key.has_null {
            self.check_unique(table, index, tuple, key)?;
        }
        Ok(())
    }

    /// Whether a later transaction had found a new tuple, and nothing in it,
    /// before it was made.
    fn is_found_by_later(&self, table: &TableInner, tuple: TupleId) -> bool {
        let write = self.buffers.by_tuple.get(&(table.id, tuple));
        write.is_some_and(|write| self.buffers.writes[*write as usize].found_by_later)
    }

    fn entry_inserted(&mut self, entry: StaleEntry) {
        self.buffers.undo.push(Undo::Entry(entry));
    }
}

pub(crate) fn stale(table: &TableInner, index: u32, tuple: TupleId, key: &Key) -> StaleEntry {
    StaleEntry { table: table.id, index, tuple, key: SmallVec::from_slice(key.words()) }
}

pub(crate) fn duplicate(table: &TableInner, index: &str) -> Error {
    Error::DuplicateKey { table: table.schema.name.clone(), index: index.to_owned() }
}

/// Whether a column can hold values out of line.
pub(crate) fn may_be_large(schema: &crate::types::schema::Schema, n: usize) -> bool {
    matches!(schema.columns[n].place, Place::Variable { large: Some(_), .. })
}
