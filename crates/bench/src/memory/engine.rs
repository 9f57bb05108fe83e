//! What a store must do to be measured.

use std::path::Path;

/// Most bytes of a row's value.
pub const VALUE_BYTES: u16 = 1024;

/// What an engine may fail with.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// A store that can be measured.
pub trait Engine {
    /// Its name in tables and on the command line.
    fn name(&self) -> &'static str;

    /// Opens the database in the directory, or makes an empty one. The process
    /// may use `memory` bytes, the cached pages of its files included. Commits
    /// do not wait for the device.
    ///
    /// # Errors
    /// Those of the store.
    fn open(&self, dir: &Path, memory: u64) -> Result<Box<dyn Rows>, Failure>;
}

/// Rows of at most [`VALUE_BYTES`], all of one length, under keys of 8 bytes.
pub trait Rows {
    /// Writes rows that are not there yet, in one transaction.
    ///
    /// # Errors
    /// Those of the store.
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure>;

    /// Reads rows by key in one transaction, as the store does it best.
    /// Returns the sum of their last bytes.
    ///
    /// # Errors
    /// Those of the store, and a row that is not there.
    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure>;

    /// Reads rows, lets `edit` change them, and writes them, in one transaction.
    ///
    /// # Errors
    /// Those of the store, and a row that is not there.
    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure>;

    /// Reads this many rows in the order of their keys, from this one on.
    /// Returns the sum of their last bytes.
    ///
    /// # Errors
    /// Those of the store.
    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure>;
}

/// What is read of a row, so that no read is left out.
pub fn last_byte(value: &[u8]) -> u64 {
    u64::from(*value.last().unwrap_or(&0))
}

/// A row that should be there is not.
pub fn missing(key: u64) -> Failure {
    format!("row {key} is not there").into()
}
