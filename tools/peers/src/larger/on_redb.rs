//! The rows in redb.

use std::path::Path;
use std::time::{Duration, Instant};

use pantile_bench::memory::{Engine, Failure, Rows, last_byte, missing};
use redb::{Builder, Database, Durability, ReadableDatabase, ReadableTable, TableDefinition};

/// redb with a cache that leaves half of the memory to the system's.
pub struct OnRedb;

struct Opened {
    db: Database,
    durable: Instant,
}

const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");

/// The time between commits that are made durable: redb frees no page without
/// them. Pantile writes its state record as often.
const DURABLE_EVERY: Duration = Duration::from_millis(500);

impl Engine for OnRedb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn open(&self, dir: &Path, memory: u64) -> Result<Box<dyn Rows>, Failure> {
        let db = Builder::new().set_cache_size((memory / 2) as usize).create(dir.join("rows.redb"))?;
        let txn = db.begin_write()?;
        txn.open_table(ROWS)?;
        txn.commit()?;
        Ok(Box::new(Opened { db, durable: Instant::now() }))
    }
}

impl Opened {
    fn write(
        &mut self,
        write: impl FnOnce(&mut redb::Table<'_, u64, &'static [u8]>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut txn = self.db.begin_write()?;
        if self.durable.elapsed() < DURABLE_EVERY {
            txn.set_durability(Durability::None)?;
        } else {
            self.durable = Instant::now();
        }
        write(&mut txn.open_table(ROWS)?)?;
        Ok(txn.commit()?)
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure> {
        self.write(|table| {
            for &key in keys {
                table.insert(key, &value(key)[..])?;
            }
            Ok(())
        })
    }

    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure> {
        let table = self.db.begin_read()?.open_table(ROWS)?;
        keys.iter().try_fold(0, |sum, &key| {
            let value = table.get(key)?.ok_or_else(|| missing(key))?;
            Ok(sum + last_byte(value.value()))
        })
    }

    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure> {
        self.write(|table| {
            for &key in keys {
                let mut value = table.get(key)?.ok_or_else(|| missing(key))?.value().to_vec();
                edit(&mut value);
                table.insert(key, &value[..])?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure> {
        let table = self.db.begin_read()?.open_table(ROWS)?;
        let mut found = table.range(from..)?.take(rows);
        found.try_fold(0, |sum, row| Ok(sum + last_byte(row?.1.value())))
    }
}
