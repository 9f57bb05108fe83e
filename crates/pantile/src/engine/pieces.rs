//! The hidden tables that hold values out of line, in pieces: one beside each
//! table whose rows can have such values. The pieces of a row commit and go
//! with the row, and those of a table with the table (I-18).

use std::cell::OnceCell;
use std::sync::Arc;

use pantile_base::TableId;

use crate::engine::catalog;
use crate::engine::table::TableInner;
use crate::types::pieces::PIECE;
use crate::types::schema::{TableDef, Type};

/// The table with the pieces of a table's values.
pub(crate) fn of(table: TableId) -> TableId {
    debug_assert!(catalog::is_of_user(table));
    TableId(table.0 + 1)
}

/// The table to which one with pieces belongs; any other by itself.
pub(crate) fn owner(table: TableId) -> TableId {
    if is_hidden(table) { TableId(table.0 - 1) } else { table }
}

/// Whether a table holds the pieces of another's values.
pub(crate) fn is_hidden(table: TableId) -> bool {
    table.0 >= catalog::FIRST_USER_TABLE && !catalog::is_of_user(table)
}

/// Whether rows of a table can have values out of line. The pieces of such values have none themselves.
pub(crate) fn can_be_of(table: &TableInner) -> bool {
    table.layouts().can_move_out && !is_hidden(table.id)
}

/// The tables of pieces that a transaction has read. What it reads of them it lends for as long as
/// it lives, so it keeps them, one behind the other.
#[derive(Default)]
pub(crate) struct TablesOfPieces(OnceCell<Box<Known>>);

struct Known {
    table: Arc<TableInner>,
    others: TablesOfPieces,
}

impl TablesOfPieces {
    /// The table with this id, which `find` finds if it is not known.
    pub fn get(&self, id: TableId, find: impl Fn() -> Arc<TableInner>) -> &TableInner {
        let mut known = self;
        loop {
            let new = || Box::new(Known { table: find(), others: Self::default() });
            let Known { table, others } = &**known.0.get_or_init(new);
            if table.id == id {
                return table;
            }
            known = others;
        }
    }
}

// One after the other, however many there are.
impl Drop for TablesOfPieces {
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut known) = next {
            next = known.others.0.take();
        }
    }
}

/// It has the name of the table that it belongs to, for messages.
pub(crate) fn definition(name: &str) -> TableDef {
    TableDef::new(name)
        .column("id", Type::U64)
        .column("piece", Type::U32)
        .column("bytes", Type::Bytes(PIECE as u32))
        .primary_key(["id", "piece"])
}

/// The same with a name that differs from that table's, for lists of tables.
pub(crate) fn listed_name(name: &str) -> String {
    format!("{name}: values out of line")
}
