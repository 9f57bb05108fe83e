//! Transactions: reading, writing, scanning, the commit path, trying again.

pub(crate) mod commit;
pub(crate) mod large;
pub(crate) mod retry;
pub(crate) mod row_edit;
pub(crate) mod scan;
pub(crate) mod transaction;
pub(crate) mod write;
