//! The hidden table that holds values out of line, in pieces.

use pantile_base::TableId;

use crate::types::schema::{TableDef, Type};

/// The table that holds the pieces.
pub(crate) const LARGE: TableId = TableId(1);

/// Bytes of a piece; the last of a value may be shorter.
pub(crate) const PIECE: usize = 60_000;

pub(crate) fn definition() -> TableDef {
    TableDef::new("values out of line")
        .column("id", Type::U64)
        .column("piece", Type::U32)
        .column("bytes", Type::Bytes(PIECE as u32))
        .primary_key(["id", "piece"])
}
