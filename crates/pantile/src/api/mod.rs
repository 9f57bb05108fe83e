//! The database as callers hold it: opening, definitions, closing.

pub(crate) mod database;
pub(crate) mod ddl;
