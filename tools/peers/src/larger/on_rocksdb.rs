//! The rows in RocksDB.

use std::path::Path;

use pantile_bench::memory::{Engine, Failure, Rows, last_byte, missing};
use rocksdb::{
    BlockBasedOptions, Cache, Direction, IteratorMode, OptimisticTransactionDB, OptimisticTransactionOptions,
    Options, SingleThreaded, Transaction, WriteOptions,
};

/// RocksDB with optimistic transactions and a cache of a quarter of the memory.
pub struct OnRocksdb;

type Db = OptimisticTransactionDB<SingleThreaded>;

struct Opened {
    db: Db,
}

impl Engine for OnRocksdb {
    fn name(&self) -> &'static str {
        "rocksdb"
    }

    fn open(&self, dir: &Path, memory: u64) -> Result<Box<dyn Rows>, Failure> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache((memory / 4) as usize)?);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&blocks);
        Ok(Box::new(Opened { db: Db::open(&options, dir.join("rocksdb"))? }))
    }
}

impl Opened {
    /// There is one client, so no commit fails.
    fn write(&self, body: impl FnOnce(&Transaction<'_, Db>) -> Result<(), Failure>) -> Result<(), Failure> {
        let mut kind = OptimisticTransactionOptions::default();
        kind.set_snapshot(true);
        let txn = self.db.transaction_opt(&WriteOptions::default(), &kind);
        body(&txn)?;
        Ok(txn.commit()?)
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure> {
        self.write(|txn| {
            for &key in keys {
                txn.put(key.to_be_bytes(), value(key))?;
            }
            Ok(())
        })
    }

    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure> {
        let snapshot = self.db.snapshot();
        if let [key] = keys {
            let value = snapshot.get(key.to_be_bytes())?.ok_or_else(|| missing(*key))?;
            return Ok(last_byte(&value));
        }
        let values = snapshot.multi_get(keys.iter().map(|key| key.to_be_bytes()));
        keys.iter()
            .zip(values)
            .try_fold(0, |sum, (&key, value)| Ok(sum + last_byte(&value?.ok_or_else(|| missing(key))?)))
    }

    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure> {
        self.write(|txn| {
            for &key in keys {
                let found = txn.get_for_update(key.to_be_bytes(), true)?;
                let mut value = found.ok_or_else(|| missing(key))?;
                edit(&mut value);
                txn.put(key.to_be_bytes(), &value)?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure> {
        let snapshot = self.db.snapshot();
        let from = from.to_be_bytes();
        let mut found = snapshot.iterator(IteratorMode::From(&from, Direction::Forward)).take(rows);
        found.try_fold(0, |sum, row| Ok(sum + last_byte(&row?.1)))
    }
}
