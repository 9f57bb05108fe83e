//! The rows in RocksDB, with optimistic transactions. What a transaction that writes has read is
//! validated when it commits (`get_for_update`), which makes them serializable.

use std::path::Path;
use std::sync::Arc;

use pantile_bench::memory::Failure;
use rocksdb::{
    BlockBasedOptions, BoundColumnFamily, Cache, Direction, ErrorKind, IteratorMode, MultiThreaded,
    OptimisticTransactionDB, OptimisticTransactionOptions, Options, Transaction, WriteOptions,
};

use super::store::{How, Peer, Row, Store, missing, read_all, taste, value};

pub struct OnRocksdb;

type Db = OptimisticTransactionDB<MultiThreaded>;

struct Opened {
    db: Db,
    how: How,
}

/// Bytes of blocks that it keeps, as many as SQLite may keep of pages.
const CACHE: usize = 256 << 20;

impl Peer for OnRocksdb {
    fn name(&self) -> &'static str {
        "RocksDB"
    }

    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure> {
        let mut blocks = BlockBasedOptions::default();
        blocks.set_block_cache(&Cache::new_lru_cache(CACHE)?);
        let mut options = Options::default();
        options.create_if_missing(true);
        options.create_missing_column_families(true);
        options.set_block_based_table_factory(&blocks);
        let db = Db::open_cf(&options, dir.join("rocksdb"), ["rows", "owners", "large"])?;
        Ok(Box::new(Opened { db, how }))
    }
}

impl Opened {
    fn family(&self, name: &str) -> Arc<BoundColumnFamily<'_>> {
        self.db.cf_handle(name).expect("made when it was opened")
    }

    fn write<T>(&self, body: impl Fn(&Transaction<'_, Db>) -> Result<T, Failure>) -> Result<T, Failure> {
        let (mut options, mut kind) = (WriteOptions::default(), OptimisticTransactionOptions::default());
        options.set_sync(self.how.durable);
        kind.set_snapshot(true);
        loop {
            let txn = self.db.transaction_opt(&options, &kind);
            let value = body(&txn)?;
            match txn.commit() {
                Ok(()) => return Ok(value),
                Err(error) if matches!(error.kind(), ErrorKind::Busy | ErrorKind::TryAgain) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Store for Opened {
    fn load(&self, rows: &[Row], _: bool) -> Result<(), Failure> {
        let (table, owners) = (self.family("rows"), self.family("owners"));
        self.write(|txn| {
            for row in rows {
                txn.put_cf(&table, row.key.to_be_bytes(), value(row))?;
                if self.how.indexed {
                    txn.put_cf(&owners, [row.owner.to_be_bytes(), row.key.to_be_bytes()].concat(), [])?;
                }
            }
            Ok(())
        })
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        let table = self.family("rows");
        if writes.is_empty() {
            let snapshot = self.db.snapshot();
            return reads.iter().try_fold(0, |sum, &key| {
                let found = snapshot.get_cf(&table, key.to_be_bytes())?.ok_or_else(|| missing(key))?;
                Ok(sum + taste(&found[8..]))
            });
        }
        self.write(|txn| {
            let sum = reads.iter().try_fold(0, |sum, &key| {
                let found = txn.get_for_update_cf(&table, key.to_be_bytes(), false)?;
                Ok::<_, Failure>(sum + taste(&found.ok_or_else(|| missing(key))?[8..]))
            })?;
            for row in writes {
                txn.put_cf(&table, row.key.to_be_bytes(), value(row))?;
            }
            Ok(sum)
        })
    }

    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        let (table, from) = (self.family("rows"), from.to_be_bytes());
        let snapshot = self.db.snapshot();
        let mut found =
            snapshot.iterator_cf(&table, IteratorMode::From(&from, Direction::Forward)).take(rows);
        found.try_fold(0, |sum, row| Ok(sum + taste(&row?.1[8..])))
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        let table = self.family("rows");
        self.write(|txn| {
            txn.put_cf(&table, add.key.to_be_bytes(), value(add))?;
            txn.get_for_update_cf(&table, take.to_be_bytes(), true)?.ok_or_else(|| missing(take))?;
            Ok(txn.delete_cf(&table, take.to_be_bytes())?)
        })
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        let table = self.family("large");
        self.write(|txn| {
            let mut put = |(key, value): &(u64, Vec<u8>)| txn.put_cf(&table, key.to_be_bytes(), value);
            Ok(values.iter().try_for_each(&mut put)?)
        })
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        let found = self.db.get_pinned_cf(&self.family("large"), key.to_be_bytes())?;
        Ok(read_all(&found.ok_or_else(|| missing(key))?))
    }

    fn settle(&self) -> Result<(), Failure> {
        ["rows", "owners", "large"]
            .into_iter()
            .try_for_each(|name| Ok(self.db.flush_cf(&self.family(name))?))
    }
}
