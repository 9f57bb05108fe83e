//! Rows that cannot be read, and are left out of a dump.

use pantile::{Error as DatabaseError, OwnedValue, Row, TableDef};

use crate::error::Error;
use crate::field;

/// A row that a dump of a damaged database has left out.
#[derive(Debug)]
#[non_exhaustive]
pub struct LeftOut {
    /// The table.
    pub table: String,
    /// The values of the primary key as in CSV, `?` for one that cannot be read.
    pub key: Vec<String>,
    /// What is damaged, and where.
    pub why: String,
}

/// What is called with each such row.
pub type Call<'c> = &'c dyn Fn(LeftOut);

/// Hands a row over that could not be written because it is damaged. Other errors stay.
pub fn hand_over(call: Option<Call<'_>>, def: &TableDef, row: &Row<'_>, error: Error) -> Result<(), Error> {
    match (call, error) {
        (Some(call), Error::Database(DatabaseError::Damaged { place, detail })) => {
            let why = format!("{place}: {detail}");
            call(LeftOut { table: def.name.clone(), key: key(def, row), why });
            Ok(())
        }
        (_, error) => Err(error),
    }
}

fn key(def: &TableDef, row: &Row<'_>) -> Vec<String> {
    let names = def.primary_key.iter();
    let columns = names.filter_map(|name| def.columns.iter().find(|column| column.name == *name));
    columns
        .map(|column| match row.get::<OwnedValue>(column.name.as_str()) {
            Ok(value) => field::text(column.ty, &value.as_value()),
            Err(_) => "?".into(),
        })
        .collect()
}
