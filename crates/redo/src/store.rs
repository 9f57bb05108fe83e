//! The store: transactions, and checkpoints.

use crate::format::{DATA_AT, PIECE_ROWS, ROOTS, Root, seal, words};
use crate::memory::Memory;
use crate::tuples::{Beyond, SHARDS, Tuples, shard_of};
use pantile_media::{Medium, MediumError};
use std::fmt;
use std::sync::Arc;

/// What can go wrong.
#[derive(Debug)]
pub enum RedoError {
    /// Another store has the medium.
    InUse,
    /// There is no store on the medium.
    NoStore,
    /// Something is lost that was durable: what it is.
    Damaged(&'static str),
    /// The medium said so.
    Medium(MediumError),
}

impl fmt::Display for RedoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InUse => f.write_str("another store uses the medium"),
            Self::NoStore => f.write_str("there is no store with a redo log on the medium"),
            Self::Damaged(what) => write!(f, "the store is damaged: {what}"),
            Self::Medium(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RedoError {}

impl From<MediumError> for RedoError {
    fn from(error: MediumError) -> Self {
        Self::Medium(error)
    }
}

/// What a transaction writes: a row under a key, or none.
pub type Change<'r> = (u64, Option<&'r [u8]>);

/// Rows of one length in DRAM, with a checkpoint and a redo log on a medium.
#[derive(Debug)]
pub struct RedoStore {
    pub(crate) memory: Memory,
    pub(crate) tuples: Tuples,
    pub(crate) root: Root,
    /// Where the log ends.
    pub(crate) log_end: u64,
    /// The record that is being made.
    pub(crate) record: Vec<u8>,
}

impl RedoStore {
    /// A new store on an empty medium, with rows of this length, and these to begin with. They are durable on return. All are in
    /// DRAM unless there is memory beyond it.
    ///
    /// # Errors
    /// [`RedoError::InUse`], [`RedoError::Medium`].
    pub fn create(
        medium: Arc<dyn Medium>,
        beyond: Option<Beyond>,
        row_bytes: u64,
        rows: impl IntoIterator<Item = (u64, Vec<u8>)>,
    ) -> Result<Self, RedoError> {
        let memory = Memory::claim(medium).ok_or(RedoError::InUse)?;
        let tuples = Tuples::new(row_bytes, beyond)?;
        for (key, row) in rows {
            tuples.shard(shard_of(key)).put(key, &row)?;
        }
        let root = Root { number: 0, checkpoint_at: DATA_AT, checkpoint_bytes: 0, row_bytes };
        let mut store = Self { memory, tuples, root, log_end: DATA_AT, record: Vec::new() };
        store.checkpoint()?;
        Ok(store)
    }

    /// The row with a key.
    pub fn get(&self, key: u64) -> Option<Vec<u8>> {
        self.tuples.get(key)
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        (0..SHARDS).map(|number| self.tuples.shard(number).len()).sum()
    }

    /// Bytes of the checkpoint and of the log behind it.
    pub fn durable_bytes(&self) -> u64 {
        self.log_end - self.root.checkpoint_at
    }

    /// Writes changes, all or none. They are durable on return.
    ///
    /// # Errors
    /// [`RedoError::Medium`]: after that the store is to be opened again.
    pub fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), RedoError> {
        if changes.is_empty() {
            return Ok(());
        }
        let record = &mut self.record;
        record.clear();
        record.extend((changes.len() as u64).to_le_bytes());
        for (key, row) in changes {
            record.extend(key.to_le_bytes());
            record.extend(u64::from(row.is_some()).to_le_bytes());
            match row {
                Some(row) => record.extend_from_slice(row),
                None => record.resize(record.len() + self.root.row_bytes as usize, 0),
            }
        }
        seal(record, self.root.seed(self.log_end));
        self.memory.write(self.log_end, record)?;
        self.memory.fence()?;
        self.log_end += record.len() as u64;
        for &(key, row) in changes {
            let mut shard = self.tuples.shard(shard_of(key));
            match row {
                Some(row) => shard.put(key, row)?,
                None => shard.remove(key),
            }
        }
        Ok(())
    }

    /// Writes all rows behind the log, and begins a new log behind them.
    ///
    /// # Errors
    /// As for [`RedoStore::commit`].
    pub fn checkpoint(&mut self) -> Result<(), RedoError> {
        let at = self.log_end;
        let mut root = Root { number: self.root.number + 1, checkpoint_at: at, ..self.root };
        let mut end = at + 16 * SHARDS as u64 + 8;
        let mut directory = Vec::new();
        for number in 0..SHARDS {
            let shard = self.tuples.shard(number);
            directory.extend([end, shard.len()]);
            let mut piece = Vec::new();
            let (mut rows, mut done) = (0, Ok(()));
            shard.each(|key, row| {
                piece.extend(key.to_le_bytes());
                piece.extend(row);
                rows += 1;
                if rows % PIECE_ROWS == 0 || rows == shard.len() {
                    seal(&mut piece, root.seed(end));
                    if done.is_ok() {
                        done = self.memory.write(end, &piece);
                    }
                    end += piece.len() as u64;
                    piece.clear();
                }
            });
            done?;
        }
        let mut directory = words(&directory);
        seal(&mut directory, root.seed(at));
        self.memory.write(at, &directory)?;
        // What is behind the checkpoint must not look like a log.
        self.memory.write(end, &[0; 8])?;
        self.memory.fence()?;
        root.checkpoint_bytes = end - at;
        self.memory.write(ROOTS[root.number as usize % 2], &root.encode())?;
        self.memory.fence()?;
        (self.root, self.log_end) = (root, end);
        Ok(())
    }
}

#[cfg(test)]
#[path = "store_test.rs"]
mod tests;
