//! The rows in fjall, with optimistic transactions.

use std::path::Path;

use fjall::{
    KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, OptimisticWriteTx, PersistMode,
    Readable,
};
use pantile_bench::memory::Failure;

use super::store::{How, Peer, Row, Store, missing, read_all, taste, value};

pub struct OnFjall;

struct Opened {
    db: OptimisticTxDatabase,
    rows: OptimisticTxKeyspace,
    owners: OptimisticTxKeyspace,
    large: OptimisticTxKeyspace,
    how: How,
}

impl Peer for OnFjall {
    fn name(&self) -> &'static str {
        "fjall"
    }

    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure> {
        let db = OptimisticTxDatabase::builder(dir).open()?;
        let rows = db.keyspace("rows", KeyspaceCreateOptions::default)?;
        let owners = db.keyspace("owners", KeyspaceCreateOptions::default)?;
        let large = db.keyspace("large", KeyspaceCreateOptions::default)?;
        Ok(Box::new(Opened { db, rows, owners, large, how }))
    }
}

impl Opened {
    fn write<T>(
        &self,
        mut body: impl FnMut(&mut OptimisticWriteTx) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mode = self.how.durable.then_some(PersistMode::SyncAll);
        loop {
            let mut txn = self.db.write_tx()?.durability(mode);
            let value = body(&mut txn)?;
            // The inner error is a conflict.
            if txn.commit()?.is_ok() {
                return Ok(value);
            }
        }
    }

    fn read(&self, txn: &impl Readable, keys: &[u64]) -> Result<u64, Failure> {
        keys.iter().try_fold(0, |sum, &key| {
            let value = txn.get(&self.rows, key.to_be_bytes())?.ok_or_else(|| missing(key))?;
            Ok(sum + taste(&value[8..]))
        })
    }
}

impl Store for Opened {
    fn load(&self, rows: &[Row], _: bool) -> Result<(), Failure> {
        self.write(|txn| {
            for row in rows {
                txn.insert(&self.rows, row.key.to_be_bytes(), value(row));
                if self.how.indexed {
                    let entry = [row.owner.to_be_bytes(), row.key.to_be_bytes()].concat();
                    txn.insert(&self.owners, entry, []);
                }
            }
            Ok(())
        })
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        if writes.is_empty() {
            return self.read(&self.db.read_tx(), reads);
        }
        self.write(|txn| {
            let sum = self.read(txn, reads)?;
            for row in writes {
                txn.insert(&self.rows, row.key.to_be_bytes(), value(row));
            }
            Ok(sum)
        })
    }

    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        let mut found = self.db.read_tx().range(&self.rows, from.to_be_bytes()..).take(rows);
        found.try_fold(0, |sum, row| Ok(sum + taste(&row.value()?[8..])))
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        self.write(|txn| {
            txn.insert(&self.rows, add.key.to_be_bytes(), value(add));
            txn.take(&self.rows, take.to_be_bytes())?.ok_or_else(|| missing(take))?;
            Ok(())
        })
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        self.write(|txn| {
            values.iter().for_each(|(key, value)| txn.insert(&self.large, key.to_be_bytes(), &value[..]));
            Ok(())
        })
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        let value = self.db.read_tx().get(&self.large, key.to_be_bytes())?;
        Ok(read_all(&value.ok_or_else(|| missing(key))?))
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.db.persist(PersistMode::SyncAll)?)
    }
}
