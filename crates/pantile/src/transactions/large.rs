//! Values out of line: pieces in a hidden table, so that they commit, roll
//! back, recover and are reclaimed like every other row (the idea is
//! PostgreSQL's TOAST).

use pantile_base::{TableId, Timestamp};

use crate::engine::table::{Table, TableInner};
use crate::transactions::row_edit::large_values;
use crate::transactions::transaction::{Pending, Seen, Transaction};
use crate::transactions::write::Held;
use crate::types::error::{Error, Result};
use crate::types::key::Key;
use crate::types::row::{Encoded, OutOfLine};
use crate::types::schema::{TableDef, Type};
use crate::types::value::Value;

/// The table that holds the pieces.
pub(crate) const LARGE: TableId = TableId(1);

/// Bytes of a piece; the last of a value may be shorter.
pub(crate) const PIECE: usize = 60_000;

/// Bytes taken for a value before any of it has been seen.
const MOST_AT_ONCE: u64 = 1 << 20;

pub(crate) fn definition() -> TableDef {
    TableDef::new("values out of line")
        .column("id", Type::U64)
        .column("piece", Type::U32)
        .column("bytes", Type::Bytes(PIECE as u32))
        .primary_key(["id", "piece"])
}

fn key(id: u64, piece: usize) -> [Value<'static>; 2] {
    [Value::UInt(id), Value::UInt(piece as u64)]
}

impl Transaction {
    /// An id that no value has had.
    pub(crate) fn new_large_id(&self) -> u64 {
        self.core.registry.draw(self.slot).get()
    }

    fn large_table(&self) -> Table {
        Table(self.core.table_by_id(LARGE).expect("the table of large values always exists"))
    }

    pub(crate) fn put_large(&mut self, id: u64, bytes: &[u8]) -> Result<()> {
        let table = self.large_table();
        for (piece, bytes) in bytes.chunks(PIECE).enumerate() {
            let [id, piece] = key(id, piece);
            self.insert(&table, &[id, piece, Value::Bytes(bytes)])?;
        }
        Ok(())
    }

    fn delete_large(&mut self, id: u64, len: u64) -> Result<()> {
        let table = self.large_table();
        for piece in 0..(len as usize).div_ceil(PIECE) {
            self.delete(&table, &key(id, piece))?;
        }
        Ok(())
    }

    /// Deletes the values out of line that a tuple's new row no longer has.
    pub(crate) fn delete_large_of(&mut self, table: &TableInner, held: Held, pending: Pending) -> Result<()> {
        if table.schema.large_at == table.schema.ends_at {
            return Ok(());
        }
        let of = |bytes| large_values(&Encoded { schema: &table.schema, bytes });
        let old = match self.current(table, held) {
            Seen::Row(bytes) => of(bytes),
            Seen::Absent | Seen::Gone => return Ok(()),
        };
        let new = match pending {
            Pending::Row { start, len } => of(&self.buffers.rows[start..start + len]),
            Pending::Nothing | Pending::Tombstone => Vec::new(),
        };
        old.into_iter().filter(|v| !new.contains(v)).try_for_each(|(id, len)| self.delete_large(id, len))
    }
}

impl OutOfLine for Transaction {
    fn read_out_of_line(&self, id: u64, len: u64, at: Timestamp) -> Result<Vec<u8>> {
        let table = self.large_table();
        let table = &*table.0;
        let mut value = Vec::with_capacity(len.min(MOST_AT_ONCE) as usize);
        for piece in 0..(len as usize).div_ceil(PIECE) {
            let mut words = Key::default();
            words.set_values(&table.schema, &table.schema.primary_key, &key(id, piece))?;
            let (_, bytes) = self.find(table, words.words(), at)?.ok_or_else(|| missing(id, piece))?;
            let row = Encoded { schema: &table.schema, bytes };
            value.extend_from_slice(row.raw(&table.schema.columns[2]));
        }
        if value.len() as u64 != len {
            return Err(wrong_length(id, len, value.len()));
        }
        Ok(value)
    }
}

#[cold]
fn wrong_length(id: u64, len: u64, found: usize) -> Error {
    Error::Damaged {
        place: format!("value {id} out of line"),
        detail: format!("it has {found} of {len} bytes"),
    }
}

#[cold]
fn missing(id: u64, piece: usize) -> Error {
    Error::Damaged {
        place: format!("value {id} out of line"),
        detail: format!("its piece {piece} is not there"),
    }
}
