//! The catalog: a table of table definitions, stored like any other.

use pantile_base::TableId;

use crate::types::definition;
use crate::types::encoding::Encoded;
use crate::types::error::{Error, Result};
use crate::types::history::Definition;
use crate::types::layout::Schema;
use crate::types::layouts::Layouts;
use crate::types::schema::{TableDef, Type};
use crate::types::value::Value;

/// The catalog's own id.
pub(crate) const CATALOG: TableId = TableId(0);

/// The name of the table of dependencies, for lists of tables. It has no
/// definition.
pub(crate) const OF_DEPENDENCIES: &str = "dependencies";

/// The first id of a user's table. Such tables have even ids. The one that
/// follows belongs to the table's values out of line.
pub(crate) const FIRST_USER_TABLE: u32 = 16;

pub(crate) fn is_of_user(id: TableId) -> bool {
    id.0 >= FIRST_USER_TABLE && id.0.is_multiple_of(2)
}

/// Most bytes of a stored definition.
const MAX_DEFINITION: u32 = 60_000;

pub(crate) fn definition() -> TableDef {
    TableDef::new("catalog")
        .column("id", Type::U32)
        .column("definition", Type::Bytes(MAX_DEFINITION))
        .primary_key(["id"])
}

/// The layout of its rows.
pub(crate) fn schema() -> Schema {
    Schema::new(&definition().into(), 0).expect("the definition is sound")
}

/// A definition as stored.
pub(crate) fn encode(definition: &Definition) -> Result<Vec<u8>> {
    let text = definition::encode(definition);
    if text.len() > MAX_DEFINITION as usize {
        return Err(Error::InvalidDefinition(format!(
            "{:?}: the definition takes {} bytes, at most {MAX_DEFINITION} can be stored",
            definition.def.name,
            text.len()
        )));
    }
    Ok(text.into_bytes())
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Definition> {
    definition::decode(bytes).map_err(|at| Error::Damaged {
        place: "the catalog".into(),
        detail: format!("a definition cannot be read from byte {at} on"),
    })
}

/// The table that a row of the catalog defines.
pub(crate) fn table_of(row: &Encoded<'_>) -> TableId {
    let raw = row.raw(&row.schema.columns[0]);
    TableId(raw.iter().rev().fold(0, |id, &byte| id << 8 | u32::from(byte)))
}

/// Checks that a stored definition is one that could have been stored.
pub(crate) fn check(id: TableId, definition: &Definition) -> Result<()> {
    let damaged = |detail: String| Error::Damaged { place: format!("the catalog, table {}", id.0), detail };
    if !is_of_user(id) {
        return Err(damaged("no table of a user has this id".into()));
    }
    let layouts = Layouts::new(definition.clone(), id).map_err(|e| damaged(e.to_string()))?;
    for index in &definition.def.indexes {
        layouts.latest.key_columns(&index.name, &index.columns).map_err(|e| damaged(e.to_string()))?;
    }
    Ok(())
}

pub(crate) fn key(id: TableId) -> [Value<'static>; 1] {
    [Value::UInt(id.0.into())]
}
