//! What a store is asked to do.

use std::path::Path;

use pantile_bench::memory::Failure;

pub const VALUE_BYTES: usize = 100;

/// A row. Stores without columns keep the key and a value of both other parts.
#[derive(Clone)]
pub struct Row {
    pub key: u64,
    /// What a second index is about.
    pub owner: u64,
    pub value: [u8; VALUE_BYTES],
}

/// What stores without columns keep for a key.
pub fn value(row: &Row) -> Vec<u8> {
    [&row.owner.to_be_bytes()[..], &row.value].concat()
}

/// How a store is opened.
#[derive(Clone, Copy)]
pub struct How {
    /// Whether each commit is durable when it returns.
    pub durable: bool,
    /// Whether rows are found by their owner as well.
    pub indexed: bool,
}

/// A product that keeps rows.
pub trait Peer: Sync {
    fn name(&self) -> &'static str;
    /// Whether it keeps rows in files.
    fn keeps(&self) -> bool {
        true
    }
    /// Opens the store in this directory, and makes it if there is none.
    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure>;
}

/// An open store. Transactions are serializable, and run again when they conflict.
/// Dropping it closes it.
pub trait Store: Sync {
    /// Adds rows in one transaction. If they come in order, each has the highest key so far.
    fn load(&self, rows: &[Row], in_order: bool) -> Result<(), Failure>;
    /// One transaction: reads some rows, then gives others a new value. Returns
    /// something of what it has read.
    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure>;
    /// Reads rows in the order of their keys.
    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure>;
    /// One transaction: adds a row and takes another one away.
    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure>;
    /// Adds values, of any size, in one transaction. They are a table of their own.
    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure>;
    /// Reads such a value, all of it.
    fn get_large(&self, key: u64) -> Result<u64, Failure>;
    /// Brings to the files what has been committed and can be brought there.
    fn settle(&self) -> Result<(), Failure>;
}

pub fn missing(key: u64) -> Failure {
    format!("row {key} is missing").into()
}

/// Reads a whole value.
pub fn read_all(value: &[u8]) -> u64 {
    let words = value.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
    words.fold(value.len() as u64, u64::wrapping_add)
}

/// Something of a value, so that no read is left out.
pub fn taste(value: &[u8]) -> u64 {
    value.iter().step_by(50).map(|byte| u64::from(*byte)).sum()
}
