//! The hidden tables that hold values out of line, in pieces: one beside each
//! table whose rows can have such values. The pieces of a row commit and go
//! with the row, and those of a table with the table (I-18).

use pantile_base::TableId;

use crate::engine::catalog;
use crate::types::schema::{TableDef, Type};

/// Bytes of a piece; the last of a value may be shorter.
pub(crate) const PIECE: usize = 60_000;

/// The table with the pieces of a table's values.
pub(crate) fn of(table: TableId) -> TableId {
    debug_assert!(catalog::is_of_user(table));
    TableId(table.0 + 1)
}

/// Whether a table holds the pieces of another's values.
pub(crate) fn is_hidden(table: TableId) -> bool {
    table.0 >= catalog::FIRST_USER_TABLE && !catalog::is_of_user(table)
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
