//! What measuring the price of space needs of a load.

use pantile::Database;

use super::optimum::Optimum;
use crate::error::Result;

/// A database whose rows are updated.
pub(super) trait Updating {
    /// The database.
    fn db(&self) -> &Database;
    /// Bytes that a transaction writes, roughly.
    fn transaction_bytes(&self) -> u64;
    /// Runs one transaction.
    fn update(&mut self) -> Result<()>;
    /// Measuring begins.
    fn begin_window(&mut self) {}
    /// The least that what was updated since then can cost.
    fn optimum(&self) -> Optimum;
}
