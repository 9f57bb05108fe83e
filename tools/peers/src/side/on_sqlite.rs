//! The rows in SQLite, with a log that is written ahead and a connection for each
//! thread.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use pantile_bench::memory::Failure;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::store::{How, Peer, Row, Store, missing, read_all, taste};

pub struct OnSqlite;

struct Opened {
    path: PathBuf,
    how: How,
    idle: Mutex<Vec<Connection>>,
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS rows (key INTEGER PRIMARY KEY, owner INTEGER, value BLOB)";
const LARGE: &str = "CREATE TABLE IF NOT EXISTS large (key INTEGER PRIMARY KEY, value BLOB)";
const INDEX: &str = "CREATE INDEX IF NOT EXISTS owner ON rows (owner)";
/// Pages that a connection keeps, in KiB.
const CACHE: i64 = 256 << 10;

impl Peer for OnSqlite {
    fn name(&self) -> &'static str {
        "SQLite"
    }

    fn open(&self, dir: &Path, how: How) -> Result<Box<dyn Store>, Failure> {
        let store = Opened { path: dir.join("rows.sqlite"), how, idle: Mutex::default() };
        store.with(|db| {
            db.execute(TABLE, [])?;
            db.execute(LARGE, [])?;
            if how.indexed {
                db.execute(INDEX, [])?;
            }
            Ok(())
        })?;
        Ok(Box::new(store))
    }
}

impl Opened {
    fn connect(&self) -> Result<Connection, Failure> {
        let db = Connection::open(&self.path)?;
        db.busy_timeout(Duration::from_secs(60))?;
        db.pragma_update(None, "journal_mode", "wal")?;
        db.pragma_update(None, "synchronous", if self.how.durable { "full" } else { "off" })?;
        db.pragma_update(None, "cache_size", -CACHE)?;
        Ok(db)
    }

    /// Lends a connection that no other thread has.
    fn with<T>(&self, body: impl FnOnce(&mut Connection) -> Result<T, Failure>) -> Result<T, Failure> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop();
        let mut db = kept.map_or_else(|| self.connect(), Ok)?;
        let outcome = body(&mut db);
        idle().push(db);
        outcome
    }

    fn write<T>(&self, body: impl FnOnce(&Transaction<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
        self.with(|db| {
            let txn = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let value = body(&txn)?;
            txn.commit()?;
            Ok(value)
        })
    }
}

fn read(db: &Connection, keys: &[u64]) -> Result<u64, Failure> {
    let mut select = db.prepare_cached("SELECT value FROM rows WHERE key = ?1")?;
    keys.iter().try_fold(0, |sum, &key| {
        let value = select.query_row([key as i64], |row| Ok(taste(row.get_ref(0)?.as_blob()?)));
        value.map(|tasted| sum + tasted).map_err(|error| match error {
            rusqlite::Error::QueryReturnedNoRows => missing(key),
            error => error.into(),
        })
    })
}

fn insert(db: &Connection, row: &Row) -> Result<(), Failure> {
    let mut insert = db.prepare_cached("INSERT INTO rows VALUES (?1, ?2, ?3)")?;
    insert.execute(params![row.key as i64, row.owner as i64, row.value])?;
    Ok(())
}

impl Store for Opened {
    fn load(&self, rows: &[Row], _: bool) -> Result<(), Failure> {
        self.write(|txn| rows.iter().try_for_each(|row| insert(txn, row)))
    }

    fn work(&self, reads: &[u64], writes: &[Row]) -> Result<u64, Failure> {
        if writes.is_empty() {
            return self.with(|db| {
                let txn = db.transaction()?;
                read(&txn, reads)
            });
        }
        self.write(|txn| {
            let sum = read(txn, reads)?;
            let mut update = txn.prepare_cached("UPDATE rows SET value = ?2 WHERE key = ?1")?;
            for row in writes {
                update.execute(params![row.key as i64, row.value])?;
            }
            Ok(sum)
        })
    }

    fn scan(&self, from: u64, rows: usize) -> Result<u64, Failure> {
        self.with(|db| {
            let mut select =
                db.prepare_cached("SELECT value FROM rows WHERE key >= ?1 ORDER BY key LIMIT ?2")?;
            let mut found = select.query([from as i64, rows as i64])?;
            let mut sum = 0;
            while let Some(row) = found.next()? {
                sum += taste(row.get_ref(0)?.as_blob()?);
            }
            Ok(sum)
        })
    }

    fn turn(&self, add: &Row, take: u64) -> Result<(), Failure> {
        self.write(|txn| {
            insert(txn, add)?;
            let deleted = txn.prepare_cached("DELETE FROM rows WHERE key = ?1")?.execute([take as i64])?;
            if deleted == 1 { Ok(()) } else { Err(missing(take)) }
        })
    }

    fn put_large(&self, values: &[(u64, Vec<u8>)]) -> Result<(), Failure> {
        self.write(|txn| {
            let mut insert = txn.prepare_cached("INSERT INTO large VALUES (?1, ?2)")?;
            for (key, value) in values {
                insert.execute(params![*key as i64, value])?;
            }
            Ok(())
        })
    }

    fn get_large(&self, key: u64) -> Result<u64, Failure> {
        self.with(|db| {
            let mut select = db.prepare_cached("SELECT value FROM large WHERE key = ?1")?;
            Ok(select.query_row([key as i64], |row| Ok(read_all(row.get_ref(0)?.as_blob()?)))?)
        })
    }

    fn settle(&self) -> Result<(), Failure> {
        self.with(|db| Ok(db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?))
    }
}
