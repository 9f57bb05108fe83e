//! The rows in SQLite.

use std::path::Path;

use pantile_bench::memory::{Engine, Failure, Rows, last_byte, missing};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};

/// SQLite with a log that is written ahead, and a cache of a quarter of the memory.
pub struct OnSqlite;

struct Opened {
    db: Connection,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS rows (key INTEGER PRIMARY KEY, value BLOB)";

impl Engine for OnSqlite {
    fn name(&self) -> &'static str {
        "sqlite"
    }

    fn open(&self, dir: &Path, memory: u64) -> Result<Box<dyn Rows>, Failure> {
        let db = Connection::open(dir.join("rows.sqlite"))?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", "off")?;
        // A negative number is KiB.
        db.pragma_update(None, "cache_size", -((memory / 4 / 1024) as i64))?;
        db.execute(TABLE, [])?;
        Ok(Box::new(Opened { db }))
    }
}

impl Opened {
    fn write(&mut self, body: impl FnOnce(&Transaction<'_>) -> Result<(), Failure>) -> Result<(), Failure> {
        let txn = self.db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        body(&txn)?;
        Ok(txn.commit()?)
    }
}

impl Rows for Opened {
    fn load(&mut self, keys: &[u64], value: &mut dyn FnMut(u64) -> Vec<u8>) -> Result<(), Failure> {
        self.write(|txn| {
            let mut insert = txn.prepare_cached("INSERT INTO rows VALUES (?1, ?2)")?;
            for &key in keys {
                insert.execute(params![key as i64, value(key)])?;
            }
            Ok(())
        })
    }

    fn read(&mut self, keys: &[u64]) -> Result<u64, Failure> {
        let txn = self.db.transaction()?;
        let mut select = txn.prepare_cached("SELECT value FROM rows WHERE key = ?1")?;
        keys.iter().try_fold(0, |sum, &key| {
            let value = select.query_row([key as i64], |row| Ok(last_byte(row.get_ref(0)?.as_blob()?)));
            Ok(sum + value.optional()?.ok_or_else(|| missing(key))?)
        })
    }

    fn update(&mut self, keys: &[u64], edit: &mut dyn FnMut(&mut [u8])) -> Result<(), Failure> {
        self.write(|txn| {
            let mut select = txn.prepare_cached("SELECT value FROM rows WHERE key = ?1")?;
            let mut update = txn.prepare_cached("UPDATE rows SET value = ?2 WHERE key = ?1")?;
            for &key in keys {
                let found = select.query_row([key as i64], |row| row.get::<_, Vec<u8>>(0)).optional()?;
                let mut value = found.ok_or_else(|| missing(key))?;
                edit(&mut value);
                update.execute(params![key as i64, value])?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, from: u64, rows: usize) -> Result<u64, Failure> {
        let mut select =
            self.db.prepare_cached("SELECT value FROM rows WHERE key >= ?1 ORDER BY key LIMIT ?2")?;
        let mut found = select.query([from as i64, rows as i64])?;
        let mut sum = 0;
        while let Some(row) = found.next()? {
            sum += last_byte(row.get_ref(0)?.as_blob()?);
        }
        Ok(sum)
    }
}
