//! Transactions: reading, writing, scanning, committing, trying again.

mod commit;
mod entries;
mod fetch;
mod hold;
mod large;
mod moving;
mod read;
pub(crate) mod retry;
pub(crate) mod row_edit;
pub(crate) mod savepoint;
pub(crate) mod scan;
pub(crate) mod transaction;
mod write;
