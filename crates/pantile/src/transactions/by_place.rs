//! Rows by the places that cursors find them at.

use pantile_base::TupleId;

use crate::engine::buffers::Undo;
use crate::engine::memory_limit::Adds;
use crate::engine::table::{Table, TableInner};
use crate::engine::writes::Pending;
use crate::transactions::hold::{Held, Which};
use crate::transactions::read::Seen;
use crate::transactions::row_edit::RowEdit;
use crate::transactions::transaction::Transaction;
use crate::types::columns::ColumnRef;
use crate::types::error::Result;
use crate::types::isolation::Isolation;
use crate::types::row::Row;
use crate::types::row_id::RowId;
use crate::types::value::Value;

impl Transaction {
    /// The row at this place, or `None` if the transaction sees none there.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn get_row<'t>(&'t self, table: &'t Table, id: RowId) -> Result<Option<Row<'t>>> {
        let inner = &*table.inner;
        self.check_table(inner)?;
        self.is_known.set(true);
        if id.0 >= inner.tuples_end() {
            return Ok(None);
        }
        let at = self.statement();
        Ok(match self.read_tuple(inner, TupleId(id.0), at)? {
            Seen::Row(row) => {
                self.note_read(inner.id, TupleId(id.0))?;
                Some(self.row(table, row, at))
            }
            Seen::Absent | Seen::Gone => {
                // It may come back there.
                self.note_read(inner.id, TupleId(id.0))?;
                None
            }
        })
    }

    /// The row with this primary key and its place, or `None`. Takes less than a cursor for one row.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn find_row<'t>(&'t self, table: &'t Table, key: &[Value<'_>]) -> Result<Option<(RowId, Row<'t>)>> {
        let key = self.point_key(&table.inner, key)?;
        // A caller that knows the place may come back there, as from a cursor.
        self.has_cursors.set(true);
        let at = self.statement();
        let found = self.find(&table.inner, key.words(), at)?;
        Ok(found.map(|(tuple, row)| (RowId(tuple.0), self.row(table, row, at))))
    }

    /// Reads the row at this place and locks it, so that no other transaction changes it before
    /// this one ends. Returns `None` if there is no row.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`].
    pub fn get_row_for_update<'t>(&'t mut self, table: &'t Table, id: RowId) -> Result<Option<Row<'t>>> {
        self.check_lock(&table.inner)?;
        self.get_held(table, Which::Row(id))
    }

    /// Reads the row with this primary key, locks it, and returns it with its place, or `None`. Takes less
    /// than a cursor for one row.
    ///
    /// # Errors
    /// As [`Transaction::get_for_update`]. Like a cursor, and unlike that, it neither waits for a row that
    /// a snapshot does not show nor fails because of it.
    pub fn find_row_for_update<'t>(
        &'t mut self,
        table: &'t Table,
        key: &[Value<'_>],
    ) -> Result<Option<(RowId, Row<'t>)>> {
        let inner = &*table.inner;
        self.check_lock(inner)?;
        let key = self.point_key(inner, key)?;
        self.has_cursors.set(true);
        let which = match self.isolation {
            Isolation::ReadCommitted => Which::Key(key.words(), None),
            Isolation::Snapshot | Isolation::Serializable => {
                match self.find(inner, key.words(), self.statement())? {
                    Some((tuple, _)) => Which::Row(RowId(tuple.0)),
                    None => return Ok(None),
                }
            }
        };
        let Some(held) = self.hold_to_read(inner, which)? else { return Ok(None) };
        let place = RowId(self.buffers.writes[held.write as usize].tuple.0);
        Ok(self.held_row(table, held).map(|row| (place, row)))
    }

    /// Changes columns of the row at this place. Returns whether there is one.
    ///
    /// # Errors
    /// As [`Transaction::modify`].
    pub fn update_row<C: ColumnRef>(
        &mut self,
        table: &Table,
        id: RowId,
        changes: &[(C, Value<'_>)],
    ) -> Result<bool> {
        self.begin_write();
        self.check_write(&table.inner)?;
        self.check_memory(&table.inner, Adds::Version)?;
        self.or_undo(|txn| {
            txn.modify_held(table, Which::Row(id), |row: &mut RowEdit<'_>| {
                row.set_all(changes).map(|()| true)
            })
        })
    }

    /// Deletes the row at this place. Returns whether there was one.
    ///
    /// # Errors
    /// As [`Transaction::delete`].
    pub fn delete_row(&mut self, table: &Table, id: RowId) -> Result<bool> {
        self.begin_write();
        self.check_write(&table.inner)?;
        self.or_undo(|txn| txn.delete_held(&table.inner, Which::Row(id)))
    }

    /// The number of rows that this transaction has locked, written ones included.
    pub fn locked_rows(&self) -> usize {
        self.buffers.writes.len()
    }

    /// Unlocks a row, if it is the one that this transaction has locked last and not written.
    /// Returns whether it did.
    ///
    /// Use it for a row that turned out not to be needed, so that others can have it. A lock that
    /// is older than the last savepoint stays.
    pub fn unlock_row(&mut self, table: &Table, id: RowId) -> bool {
        let is_last = self.buffers.writes.last().is_some_and(|write| {
            let of = &self.buffers.tables[write.table as usize].table;
            write.tuple.0 == id.0
                && of.id == table.inner.id
                && write.pending == Pending::Nothing
                && !write.is_new
        });
        let undo = &self.buffers.undo;
        let is_known = self.buffers.savepoints.last().is_some_and(|mark| mark.undo == undo.len());
        let may = is_last && !is_known && matches!(undo.last(), Some(Undo::Unlock));
        if may {
            self.undo_to(self.buffers.undo.len() - 1);
        }
        may
    }

    pub(super) fn hold_row(&mut self, table: &TableInner, id: RowId) -> Result<Option<Held>> {
        self.is_known.set(true);
        self.core.ready(table)?;
        if id.0 >= table.tuples_end() {
            return Ok(None);
        }
        self.hold(table, TupleId(id.0))
    }
}
