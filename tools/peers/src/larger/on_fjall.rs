//! The rows in fjall.

use std::path::Path;

use fjall::{KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, Readable};
use pantile_bench::memory::{Engine, Failure, Rows, last_byte, missing};

/// fjall with a cache of a quarter of the memory.
pub struct OnFjall;

struct Opened {
    db: OptimisticTxDatabase,
    rows: OptimisticTxKeyspace,
}

impl Engine for OnFjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn open(&self, dir: &Path, memory: u64) -> Result<Box<dyn Rows>, Failure> {
        let db = OptimisticTxDatabase::builder(dir).cache_size(memory / 4).open()?;
        let rows = db.keyspace("rows", KeyspaceCreateOptions::default)?;
        Ok(Box::new(Opened { db, rows }))
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure> {
        let mut txn = self.db.write_tx()?;
        for &key in keys {
            txn.insert(&self.rows, key.to_be_bytes(), value(key));
        }
        Ok(txn.commit()??)
    }

    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure> {
        let txn = self.db.read_tx();
        keys.iter().try_fold(0, |sum, &key| {
            let value = txn.get(&self.rows, key.to_be_bytes())?.ok_or_else(|| missing(key))?;
            Ok(sum + last_byte(&value))
        })
    }

    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure> {
        let mut txn = self.db.write_tx()?;
        for &key in keys {
            let mut value = txn.get(&self.rows, key.to_be_bytes())?.ok_or_else(|| missing(key))?.to_vec();
            edit(&mut value);
            txn.insert(&self.rows, key.to_be_bytes(), value);
        }
        Ok(txn.commit()??)
    }

    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure> {
        let mut found = self.db.read_tx().range(&self.rows, from.to_be_bytes()..).take(rows);
        found.try_fold(0, |sum, row| Ok(sum + last_byte(&row.value()?)))
    }
}
