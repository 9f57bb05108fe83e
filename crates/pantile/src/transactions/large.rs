//! Values out of line, stored as pieces in a hidden table beside their own.
//! They commit, roll back, recover and are reclaimed like all rows (the idea is
//! PostgreSQL's TOAST).

use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};

use crate::engine::anchor::Anchor;
use crate::engine::pieces;
use crate::engine::table::{Table, TableInner};
use crate::engine::writes::Pending;
use crate::transactions::hold::Held;
use crate::transactions::hold::Which;
use crate::transactions::read::Seen;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::isolation::Isolation;
use crate::types::key::Key;
use crate::types::pieces::{OutOfLine, PIECE};
use crate::types::value::Value;

fn key(id: u64, piece: usize) -> [Value<'static>; 2] {
    [Value::UInt(id), Value::UInt(piece as u64)]
}

impl Transaction {
    /// A new id for a value.
    pub(super) fn new_large_id(&self) -> u64 {
        self.core.registry.draw_unread(self.slot).get()
    }

    pub(super) fn put_large(&mut self, of: &TableInner, id: u64, bytes: &[u8]) -> Result<()> {
        let table = Table::of(self.core.tables.pieces_of(of.id));
        for (piece, bytes) in bytes.chunks(PIECE).enumerate() {
            let [id, piece] = key(id, piece);
            self.put(&table, &[id, piece, Value::Bytes(bytes)], None, false)?;
        }
        Ok(())
    }

    fn delete_large(&mut self, of: &TableInner, id: u64, len: u64) -> Result<()> {
        let table = Table::of(self.core.tables.pieces_of(of.id));
        for piece in 0..(len as usize).div_ceil(PIECE) {
            let key = self.point_key(&table.inner, &key(id, piece))?;
            self.or_undo(|txn| txn.delete_held(&table.inner, Which::Key(key.words(), None)))?;
        }
        Ok(())
    }

    /// Deletes the values out of line to which a tuple's new row no longer refers.
    pub(super) fn delete_large_of(&mut self, table: &TableInner, held: Held, pending: Pending) -> Result<()> {
        if !pieces::can_be_of(table) || is_removed(Control::PiecesOfRows) {
            return Ok(());
        }
        // Where a damaged row leads to may belong to another one, and stays.
        if self.verify_held(held).is_err() {
            return Ok(());
        }
        let old = match self.current(table, held) {
            Seen::Row(row) => row.values_out_of_line(),
            Seen::Absent | Seen::Gone => return Ok(()),
        };
        let new = match pending {
            Pending::Row { start, len, layout } => {
                table.row_in(layout, &self.buffers.rows[start..start + len as usize]).values_out_of_line()
            }
            Pending::Nothing | Pending::Tombstone => Vec::new(),
        };
        old.into_iter()
            .filter(|v| !new.contains(v))
            .try_for_each(|(id, len)| self.delete_large(table, id, len))
    }
}

impl OutOfLine for Transaction {
    fn piece(&self, of: TableId, id: u64, piece: usize, at: Timestamp) -> Result<&[u8]> {
        // Its statement may have ended: the row is locked then, but not what lies out of line.
        self.go_on_reading();
        let table = self.tables_of_pieces.get(pieces::of(of), || self.core.tables.pieces_of(of));
        let mut words = Key::default();
        // A length that is damaged may have pieces that no value has.
        let key = key(id, piece);
        words
            .set_values(table.schema(), &table.schema().primary_key, &key)
            .map_err(|_| missing(id, piece))?;
        let found = match self.find(table, words.words(), at)? {
            // At read committed, and up to the end of a statement that has taken a snapshot, a row that this transaction has
            // changed may have a value that is newer than what it reads. No other value has its number.
            None if self.isolation == Isolation::ReadCommitted || self.reads_wider => {
                self.find(table, words.words(), Timestamp::MAX)?
            }
            found => found,
        };
        let (tuple, row) = found.ok_or_else(|| missing(id, piece))?;
        // A row that is read to be changed is verified, with all that belongs to it.
        if at == Timestamp::MAX {
            self.verify_newest(Anchor::load(table.anchor(tuple)).newest())?;
        }
        let bytes = if row.has_body() { row.raw_of_any(&row.schema.columns[2]) } else { None };
        bytes.ok_or_else(|| damaged(id, piece, "is damaged"))
    }
}

#[cold]
fn missing(id: u64, piece: usize) -> Error {
    damaged(id, piece, "is missing")
}

#[cold]
fn damaged(id: u64, piece: usize, what: &str) -> Error {
    Error::Damaged { place: format!("value {id} out of line"), detail: format!("its piece {piece} {what}") }
}

#[cfg(test)]
#[path = "large_test.rs"]
mod tests;
