//! Writing: inserting, changing and deleting rows.
//!
//! A write locks its tuple at once, so the statement that conflicts is the one that fails. It also
//! enters new keys into the indexes. A reader that finds such a key finds a locked tuple without a
//! version. Rows stay private until the commit appends them.

use pantile_base::control::{Control, is_removed};
use pantile_base::{Timestamp, TupleId};

use crate::engine::buffers::{Buffers, Undo};
use crate::engine::memory_limit::Adds;
use crate::engine::pieces;
use crate::engine::stale::StaleEntry;
use crate::engine::table::{PRIMARY, Table, TableInner};
use crate::engine::writes::Pending;
use crate::transactions::hold::{Held, Which};
use crate::transactions::read::Seen;
use crate::transactions::row_edit::{Edited, RowEdit};
use crate::transactions::transaction::Transaction;
use crate::transactions::whole::Whole;
use crate::types::columns::{ColumnRef, Columns};
use crate::types::encoding::{self, Encoded};
use crate::types::error::{Conflict, Error, Result};
use crate::types::isolation::Isolation;
use crate::types::key::Key;
use crate::types::layout::Schema;
use crate::types::row::Row;
use crate::types::value::Value;

/// As many rows may be locked where there is no memory for more: who deletes locks first.
const LOCKS_AT_LIMIT: usize = 4096;

impl Transaction {
    /// Adds a row.
    ///
    /// # Errors
    /// [`Error::DuplicateKey`] if another row has its primary key or a unique key;
    /// [`Error::Conflict`]; [`Error::ReadOnly`]; [`Error::WrongType`] and similar if a value does
    /// not fit its column. If the call fails, it has changed nothing.
    pub fn insert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<()> {
        self.begin_write();
        self.put(table, values, None, false).map(|_| ())
    }

    /// Adds a row or replaces the one with its primary key. Returns whether
    /// there was one.
    ///
    /// # Errors
    /// As [`Transaction::insert`], except that the primary key may exist.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// let mut txn = db.begin()?;
    /// assert!(!txn.upsert(&t, &[1u64.into(), 5i64.into()])?);
    /// assert!(txn.upsert(&t, &[1u64.into(), 6i64.into()])?);
    /// assert!(txn.update(&t, &[1u64.into()], &[("n", 7i64.into())])?);
    /// assert!(txn.delete(&t, &[1u64.into()])?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn upsert(&mut self, table: &Table, values: &[Value<'_>]) -> Result<bool> {
        self.begin_write();
        self.put(table, values, None, true)
    }

    /// `looked_up` is as in [`Transaction::hold_key`].
    pub(super) fn put(
        &mut self,
        table: &Table,
        values: &[Value<'_>],
        looked_up: Option<Option<TupleId>>,
        replace: bool,
    ) -> Result<bool> {
        let (table, columns) = (&*table.inner, &*table.columns);
        self.check_write(table)?;
        self.check_columns(table, columns)?;
        self.check_memory(table, Adds::Row)?;
        let mut key = Key::default();
        let mut large = Vec::new();
        let start = self.buffers.rows.len();
        let at = self.statement();
        let schema = &table.layouts_at(self.writes_at()).latest;
        let encoded = {
            let (core, slot) = (&self.core, self.slot);
            encoding::encode(schema, columns, values, &mut self.buffers.rows, |bytes| {
                let id = core.registry.draw_unread(slot).get();
                large.push((id, bytes));
                id
            })
        };
        if let Err(error) = encoded {
            self.buffers.rows.truncate(start);
            return Err(error);
        }
        let len = self.buffers.rows.len() - start;
        key.set_primary(&Encoded { schema, bytes: &self.buffers.rows[start..] });
        let pending = Pending::Row { start, len: len as u32, layout: schema.layout };
        let whole = Whole::begin(self);
        let outcome = whole.txn.put_row(table, (&key, looked_up), at, replace, pending).and_then(|existed| {
            large.iter().try_for_each(|(id, b)| whole.txn.put_large(table, *id, b)).map(|()| existed)
        });
        // Not handed on as it is: to copy a result takes longer than to make it.
        match outcome {
            Ok(existed) => {
                whole.end();
                Ok(existed)
            }
            Err(error) => Err(error),
        }
    }

    fn put_row(
        &mut self,
        table: &TableInner,
        (key, looked_up): (&Key, Option<Option<TupleId>>),
        at: Timestamp,
        replace: bool,
        pending: Pending,
    ) -> Result<bool> {
        let held = self.hold_key(table, key, looked_up, at, replace)?;
        let Some(held) = held else {
            return Err(table.duplicate("primary"));
        };
        let write = &self.buffers.writes[held.write as usize];
        let is_first = held.fresh && write.is_new;
        let existed = !is_first && self.is_row(held);
        if existed && !replace {
            return Err(table.duplicate("primary"));
        }
        if held.fresh && !write.is_new && !existed {
            self.note_free_key(table, key)?;
        }
        self.set_pending(table, held, pending)?;
        Ok(existed)
    }

    /// A new row takes the tuple of a deleted one, whose entry is still there. That tells that the key is
    /// free, also if the write is taken back. The tuple alone would not tell it then: the entry goes, and another tuple
    /// may get the key.
    #[cold]
    fn note_free_key(&self, table: &TableInner, key: &Key) -> Result<()> {
        if self.under.is_some() {
            self.ask_keys(table, PRIMARY, self.statement())?;
        }
        self.note_absent(table, key.words())
    }

    /// Changes columns of the row with this primary key. Returns whether there is such a row.
    ///
    /// `changes` gives columns by their names or their numbers.
    ///
    /// # Errors
    /// As [`Transaction::modify`].
    pub fn update<C: ColumnRef>(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        changes: &[(C, Value<'_>)],
    ) -> Result<bool> {
        self.begin_write();
        self.check_write(&table.inner)?;
        self.check_memory(&table.inner, Adds::Version)?;
        let words = self.point_key(&table.inner, key)?;
        self.or_undo(|txn| txn.update_held(table, Which::Key(words.words(), None), key, changes))
    }

    /// Changes columns of the row with this key. `which` says the same as `key`. If they are all
    /// columns beside the key, nothing of the old row is read but its header.
    pub(super) fn update_held<C: ColumnRef>(
        &mut self,
        table: &Table,
        which: Which<'_>,
        key: &[Value<'_>],
        changes: &[(C, Value<'_>)],
    ) -> Result<bool> {
        let inner = &*table.inner;
        self.check_columns(inner, &table.columns)?;
        let Some(held) = self.hold_present(inner, which)? else {
            return Ok(false);
        };
        // Only now: the layout may have changed while it waited for the lock.
        let schema = &inner.layouts_at(self.writes_at()).latest;
        if key.len() + changes.len() != table.columns.len() || !are_all(table, schema, changes) {
            return self.edit_held(table, held, |row| row.set_all(changes).map(|()| true));
        }
        let start = self.buffers.rows.len();
        let changed = changes
            .iter()
            .filter_map(|(column, value)| Some((column.resolve(&table.columns, &schema.name).ok()?, *value)));
        let values = schema.primary_key.iter().copied().zip(key.iter().copied()).chain(changed);
        if let Err(error) = encoding::encode_fixed(schema, values, &mut self.buffers.rows) {
            self.buffers.rows.truncate(start);
            return Err(error);
        }
        let len = (self.buffers.rows.len() - start) as u32;
        self.set_pending(inner, held, Pending::Row { start, len, layout: schema.layout })?;
        Ok(true)
    }

    /// Locks the row with this primary key and lets `edit` read and change it.
    ///
    /// `edit` returns whether to keep its changes. The call returns whether there is such a row and
    /// its changes were kept. If they were not, a lock that this call took is released: below
    /// serializable, others may change the row at once. To keep it locked, use
    /// [`Transaction::get_for_update`].
    ///
    /// # Errors
    /// What `edit` returns; [`Error::PrimaryKeyChanged`]; [`Error::DuplicateKey`] of a unique
    /// index; [`Error::Conflict`]; [`Error::ReadOnly`]. If the call fails, the row is unchanged.
    pub fn modify(
        &mut self,
        table: &Table,
        key: &[Value<'_>],
        edit: impl FnOnce(&mut RowEdit<'_>) -> Result<bool>,
    ) -> Result<bool> {
        self.begin_write();
        self.check_write(&table.inner)?;
        self.check_memory(&table.inner, Adds::Version)?;
        let key = self.point_key(&table.inner, key)?;
        self.or_undo(|txn| txn.modify_held(table, Which::Key(key.words(), None), edit))
    }

    /// Undoes what `write` has done unless it has found its row.
    pub(super) fn or_undo(&mut self, write: impl FnOnce(&mut Self) -> Result<bool>) -> Result<bool> {
        let whole = Whole::begin(self);
        let outcome = write(whole.txn);
        if let Ok(true) = outcome {
            whole.end();
        }
        outcome
    }

    /// Locks a row if it is there.
    pub(super) fn hold_present(&mut self, table: &TableInner, which: Which<'_>) -> Result<Option<Held>> {
        let held = match which {
            Which::Key(key, looked_up) => self.hold_existing(table, key, looked_up)?,
            Which::Row(id) => self.hold_row(table, id)?,
        };
        let Some(held) = held else { return Ok(None) };
        if self.is_row(held) {
            return Ok(Some(held));
        }
        if let Which::Key(key, _) = which {
            if self.under.is_some() {
                self.ask_keys(table, PRIMARY, self.statement())?;
            }
            self.note_absent(table, key)?;
        }
        Ok(None)
    }

    /// The same for a row that is read, with its checksum verified.
    fn hold_whole(&mut self, table: &TableInner, which: Which<'_>) -> Result<Option<Held>> {
        let held = self.hold_present(table, which)?;
        held.map_or(Ok(()), |held| self.verify_held(held))?;
        Ok(held)
    }

    pub(super) fn modify_held(
        &mut self,
        table: &Table,
        which: Which<'_>,
        edit: impl FnOnce(&mut RowEdit<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let inner = &*table.inner;
        self.check_columns(inner, &table.columns)?;
        match self.hold_present(inner, which)? {
            Some(held) => self.edit_held(table, held, edit),
            None => Ok(false),
        }
    }

    fn edit_held(
        &mut self,
        table: &Table,
        held: Held,
        edit: impl FnOnce(&mut RowEdit<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let inner = &*table.inner;
        self.verify_held(held)?;
        let mut bytes = std::mem::take(&mut self.buffers.scratch);
        bytes.clear();
        let mut row = match self.current(inner, held) {
            Seen::Row(row) => RowEdit::new(self, table, row, bytes)?,
            Seen::Absent | Seen::Gone => unreachable!("a row that is locked stays"),
        };
        let keep = edit(&mut row);
        let edited = row.into_parts();
        let outcome = match keep {
            Ok(true) => self.replace_row(inner, held, &edited),
            other => other,
        };
        self.buffers.scratch = edited.bytes;
        outcome
    }

    fn replace_row(&mut self, table: &TableInner, held: Held, edited: &Edited) -> Result<bool> {
        let Edited { layout, bytes, large } = edited;
        let start = self.buffers.rows.len();
        self.buffers.rows.extend_from_slice(bytes);
        self.set_pending(table, held, Pending::Row { start, len: bytes.len() as u32, layout: *layout })?;
        for (id, value) in large {
            self.put_large(table, *id, value)?;
        }
        Ok(true)
    }

    /// Reads the row with this primary key and locks it, so that no other
    /// transaction changes it before this one ends.
    ///
    /// # Errors
    /// As [`Transaction::modify`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// # db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
    /// db.run(|txn| {
    ///     let n: i64 = txn.get_for_update(&t, &[1u64.into()])?.expect("a row").get("n")?;
    ///     txn.update(&t, &[1u64.into()], &[("n", (n + 1).into())])
    /// })?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn get_for_update<'t>(&'t mut self, table: &'t Table, key: &[Value<'_>]) -> Result<Option<Row<'t>>> {
        self.check_lock(&table.inner)?;
        let key = self.point_key(&table.inner, key)?;
        self.get_held(table, Which::Key(key.words(), None))
    }

    /// Fails if the table cannot be written to, or if there is no memory for one more lock.
    pub(super) fn check_lock(&mut self, table: &TableInner) -> Result<()> {
        self.check_write(table)?;
        match self.buffers.writes.len() < LOCKS_AT_LIMIT {
            true => Ok(()),
            false => self.check_memory(table, Adds::Version),
        }
    }

    /// Locks a row and reads it, if it is there.
    pub(super) fn get_held<'t>(&'t mut self, table: &'t Table, which: Which<'_>) -> Result<Option<Row<'t>>> {
        let held = self.hold_to_read(&table.inner, which)?;
        Ok(held.and_then(|held| self.held_row(table, held)))
    }

    /// Locks a row that is to be read, if it is there.
    pub(super) fn hold_to_read(&mut self, table: &TableInner, which: Which<'_>) -> Result<Option<Held>> {
        let mut held = None;
        self.or_undo(|txn| {
            held = txn.hold_whole(table, which)?;
            Ok(held.is_some())
        })?;
        Ok(held)
    }

    /// The row of a tuple that the transaction has locked, as it is now.
    pub(super) fn held_row<'t>(&'t mut self, table: &'t Table, held: Held) -> Option<Row<'t>> {
        self.note_memory();
        match self.current(&table.inner, held) {
            Seen::Row(row) => Some(self.row(table, row, Timestamp::MAX)),
            Seen::Absent | Seen::Gone => None,
        }
    }

    /// Deletes the row with this primary key. Returns whether there was one.
    ///
    /// # Errors
    /// [`Error::Conflict`], [`Error::ReadOnly`], and errors of the key.
    pub fn delete(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        self.begin_write();
        self.delete_key(table, key)
    }

    pub(super) fn delete_key(&mut self, table: &Table, key: &[Value<'_>]) -> Result<bool> {
        self.check_write(&table.inner)?;
        let key = self.point_key(&table.inner, key)?;
        self.or_undo(|txn| txn.delete_held(&table.inner, Which::Key(key.words(), None)))
    }

    pub(super) fn delete_held(&mut self, table: &TableInner, which: Which<'_>) -> Result<bool> {
        let Some(held) = self.hold_present(table, which)? else { return Ok(false) };
        let write = self.buffers.writes[held.write as usize];
        let goes_alone =
            self.buffers.tables[write.table as usize].indexes().is_empty() && !pieces::can_be_of(table);
        let entry = match which {
            // Nothing of it needs to be read, and so none of the many pieces of a large value.
            Which::Key(key, _) if goes_alone => StaleEntry::new(table, PRIMARY, write.tuple, key),
            // What goes with the row is found in it.
            Which::Key(..) | Which::Row(_) => {
                self.verify_held(held)?;
                let Seen::Row(row) = self.current(table, held) else {
                    unreachable!("a row that is locked stays");
                };
                let mut key = Key::default();
                key.set_primary(&row);
                StaleEntry::new(table, PRIMARY, write.tuple, key.words())
            }
        };
        if self.under.is_some() {
            self.ask_to_change_keys(table, PRIMARY)?;
        }
        self.set_pending(table, held, Pending::Tombstone)?;
        self.buffers.stale.push(entry);
        Ok(true)
    }

    #[inline]
    pub(super) fn check_write(&self, table: &TableInner) -> Result<()> {
        if self.read_only {
            return Err(Error::ReadOnly);
        }
        self.core.check_open()?;
        self.check_table(table)
    }

    /// When it writes, as far as layouts go: those who draw their timestamp at the
    /// commit are later than any change that they see.
    pub(super) fn writes_at(&self) -> Timestamp {
        let is_early = self.isolation == Isolation::Serializable && !is_removed(Control::LayoutsOfTheirTime);
        if is_early { self.ts } else { Timestamp::MAX }
    }

    /// Checks that the handle's columns are not from a change that comes after this
    /// transaction.
    fn check_columns(&self, table: &TableInner, columns: &Columns) -> Result<()> {
        match columns.since <= self.writes_at() {
            true => Ok(()),
            false => Err(table.conflict(Conflict::TableIsNewer)),
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
        self.note_memory();
        self.claim_stage();
        Ok(())
    }
}

/// Whether as many changes as there are columns beside the key leave nothing of the old row. Only
/// rows whose columns are all of fixed length are looked at.
fn are_all<C: ColumnRef>(table: &Table, schema: &Schema, changes: &[(C, Value<'_>)]) -> bool {
    let mut seen = 0u64;
    let mut is_new = |id: usize| {
        let bit = 1u64.checked_shl(id as u32).unwrap_or_default();
        let is_new = bit != 0 && seen & bit == 0 && !schema.primary_key.contains(&id);
        seen |= bit;
        is_new
    };
    let is_other = |(column, _): &(C, _)| column.resolve(&table.columns, "").is_ok_and(&mut is_new);
    schema.variable == 0 && table.columns.are_those_of(schema) && changes.iter().all(is_other)
}
