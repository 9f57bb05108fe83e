//! Transactions: reading, writing, scanning, committing, and running again after a conflict.

mod by_place;
pub(crate) mod commit;
mod copied;
pub(crate) mod cursor;
mod depends;
mod entries;
mod fetch;
mod forgetting;
mod hold;
pub(crate) mod in_flight;
mod large;
mod many;
mod moved;
mod moving;
pub(crate) mod prepare;
mod protocol;
mod read;
pub(crate) mod retry;
pub(crate) mod row_edit;
mod rows_in_use;
pub(crate) mod savepoint;
pub(crate) mod scan;
pub(crate) mod statement;
mod steps;
pub(crate) mod transaction;
mod whole;
mod write;
