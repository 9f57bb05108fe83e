//! The rows in redb.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pantile_bench::memory::Failure;
use redb::{Database, Durability, ReadableDatabase, ReadableTable, TableDefinition, WriteTransaction};

use super::store::{How, Peer, Row, Store, VALUE_BYTES, missing, read_all, taste};

pub struct OnRedb;

struct Opened {
    db: Database,
    how: How,
    durable: Mutex<Instant>,
}

/// The time between commits that are made durable: redb frees no page without
/// them. Pantile writes its state record as often.
const DURABLE_EVERY: Duration = Duration::from_millis(500);

const ROWS: TableDefinition<u64, (u64, &[u8; VALUE_BYTES])> = TableDefinition::new("rows");
const OWNERS: TableDefinition<(u64, u64), ()> = TableDefinition::new("owners");
const LARGE: TableDefinition<u64, &[u8]> = TableDefinition::new("large");

impl Peer for OnRedb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure> {
        let db = Database::create(dir.join("rows.redb"))?;
        let txn = db.begin_write()?;
        txn.open_table(ROWS)?;
        txn.open_table(OWNERS)?;
        txn.commit()?;
        Ok(Box::new(Opened { db, how, durable: Mutex::new(Instant::now()) }))
    }
}

impl Opened {
    /// Whether it is time for a commit that is durable.
    fn is_due(&self) -> bool {
        let mut last = self.durable.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.elapsed() >= DURABLE_EVERY;
        if is_due {
            *last = Instant::now();
        }
        is_due
    }

    fn write<T>(&self, body: impl FnOnce(&WriteTransaction) -> Result<T, Failure>) -> Result<T, Failure> {
        let mut txn = self.db.begin_write()?;
        if !self.how.durable && !self.is_due() {
            txn.set_durability(Durability::None)?;
        }
        let value = body(&txn)?;
        txn.commit()?;
        Ok(value)
    }
}

fn read(
    rows: &impl ReadableTable<u64, (u64, &'static [u8; VALUE_BYTES])>,
    keys: &[u64],
) -> Result<u64, Failure> {
    keys.iter().try_fold(0, |sum, &key| {
        let found = rows.get(key)?.ok_or_else(|| missing(key))?;
        Ok(sum + taste(found.value().1))
    })
}

impl Store for Opened {
    fn load(&self, rows: &[Row], _: bool) -> Result<(), Failure> {
        self.write(|txn| {
            let (mut table, mut owners) = (txn.open_table(ROWS)?, txn.open_table(OWNERS)?);
            for row in rows {
                table.insert(row.key, (row.owner, &row.value))?;
                if self.how.indexed {
                    owners.insert((row.owner, row.key), ())?;
                }
            }
            Ok(())
        })
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        if writes.is_empty() {
            return read(&self.db.begin_read()?.open_table(ROWS)?, reads);
        }
        self.write(|txn| {
            let mut table = txn.open_table(ROWS)?;
            let sum = read(&table, reads)?;
            for row in writes {
                table.insert(row.key, (row.owner, &row.value))?;
            }
            Ok(sum)
        })
    }

    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        let table = self.db.begin_read()?.open_table(ROWS)?;
        let mut found = table.range(from..)?.take(rows);
        found.try_fold(0, |sum, row| Ok(sum + taste(row?.1.value().1)))
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        self.write(|txn| {
            let mut table = txn.open_table(ROWS)?;
            table.insert(add.key, (add.owner, &add.value))?;
            table.remove(take)?.ok_or_else(|| missing(take))?;
            Ok(())
        })
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        self.write(|txn| {
            let mut table = txn.open_table(LARGE)?;
            for (key, value) in values {
                table.insert(key, &value[..])?;
            }
            Ok(())
        })
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        let table = self.db.begin_read()?.open_table(LARGE)?;
        Ok(read_all(table.get(key)?.ok_or_else(|| missing(key))?.value()))
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(self.db.begin_write()?.commit()?)
    }
}
