//! SQL on Pantile: a storage of [GlueSQL](gluesql_core), an SQL engine in Rust.
//!
//! ```
//! use gluesql_core::prelude::{Glue, Payload, Value};
//! use pantile::Database;
//! use pantile_gluesql::PantileStorage;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let mut sql = Glue::new(PantileStorage::new(Database::open(dir.path())?)?);
//! sql.execute("CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT)")?;
//! // Durable when it returns.
//! sql.execute("INSERT INTO pets VALUES (1, 'Ida'), (2, 'Otto')")?;
//!
//! sql.execute("BEGIN")?;
//! sql.execute("DELETE FROM pets")?;
//! sql.execute("ROLLBACK")?;
//!
//! let found = sql.execute("SELECT name FROM pets WHERE id = 2")?;
//! let [Payload::Select { rows, .. }] = &found[..] else { panic!("{found:?}") };
//! assert_eq!(rows[..], [vec![Value::Str("Otto".into())]]);
//! # Ok(())
//! # }
//! ```
//!
//! # Transactions
//!
//! A [`PantileStorage`] is a session. Each statement is a transaction of Pantile's, or part of the one that `BEGIN`
//! began; definitions of tables, indexes and functions are part of it as rows are. Any number of sessions use a
//! database, from any threads, and are isolated as the [`TransactionOptions`] of each say: serializable by default.
//!
//! ```
//! # use gluesql_core::prelude::Glue;
//! # use pantile::{Database, MediumKind, Options};
//! # use pantile_gluesql::PantileStorage;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
//! let mut one = Glue::new(PantileStorage::new(db.clone())?);
//! let mut other = Glue::new(PantileStorage::new(db)?);
//! one.execute("CREATE TABLE visits (page TEXT PRIMARY KEY, n INTEGER)")?;
//! other.execute("INSERT INTO visits VALUES ('index', 0)")?;
//!
//! // A statement that met another session's transaction runs again.
//! while let Err(error) = one.execute("UPDATE visits SET n = n + 1 WHERE page = 'index'") {
//!     if !one.storage.met_conflict() {
//!         return Err(error.into());
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A statement outside of `BEGIN` that fails has changed nothing. In a transaction, what a call of the storage wrote is
//! undone if the call fails, and the transaction goes on; a statement of several calls, `CREATE TABLE … AS` or
//! `DROP TABLE a, b`, can have made some of them. After a conflict, roll the transaction back and run all of it again.

mod alter;
mod expression;
mod failed;
mod functions;
mod indexes;
mod order;
mod rows;
mod store;
mod tables;
mod transactions;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Range;

use gluesql_core::data::CustomFunction;
use gluesql_core::error::Result;
use pantile::{Database, Isolation, Transaction, TransactionOptions};

use crate::failed::Outcome;
use crate::rows::Reading;
use crate::tables::Tables;

/// Numbers that a session reserves at a time, for rows without a primary key.
const RESERVED: u64 = 256;

/// A session of SQL on a database, for [`Glue::new`](gluesql_core::prelude::Glue::new). Dropping it rolls its
/// transaction back.
#[derive(Debug)]
pub struct PantileStorage {
    db: Database,
    options: TransactionOptions,
    tables: Tables,
    txn: Option<Transaction>,
    numbers: Range<u64>,
    functions: BTreeMap<String, CustomFunction>,
    met_conflict: Cell<bool>,
}

impl PantileStorage {
    /// A session on a database. What SQL stores is in tables of the database whose names begin with `gluesql_`; they
    /// are created if they are not there, and others are left alone.
    ///
    /// # Errors
    /// Those of Pantile, as [`Error::StorageMsg`](gluesql_core::error::Error::StorageMsg): among them, that the database
    /// is open only to be read and has no such tables.
    pub fn new(db: Database) -> Result<Self> {
        Self::with_options(db, TransactionOptions::new())
    }

    /// Like [`PantileStorage::new`], with options of its transactions. These are serializable, whatever the options
    /// say: GlueSQL reads to see whether a key is free, and relies on what it has read.
    ///
    /// # Errors
    /// As [`PantileStorage::new`].
    pub fn with_options(db: Database, options: TransactionOptions) -> Result<Self> {
        let tables = Tables::open(&db).map_err(failed::Failed::Pantile)?;
        Ok(Self {
            db,
            options: options.isolation(Isolation::Serializable),
            tables,
            txn: None,
            numbers: 0..0,
            functions: BTreeMap::new(),
            met_conflict: Cell::new(false),
        })
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Whether the last call of the storage failed because of another transaction, so that the whole transaction can
    /// succeed when it runs again. GlueSQL's errors have only the message.
    pub fn met_conflict(&self) -> bool {
        self.met_conflict.get()
    }

    fn noted<T>(&self, outcome: Outcome<T>) -> Result<T> {
        self.met_conflict.set(outcome.as_ref().is_err_and(failed::Failed::is_retryable));
        Ok(outcome?)
    }

    fn reading(&self) -> Outcome<Reading<'_>> {
        Ok(match &self.txn {
            Some(txn) => Reading::Running(txn),
            None => Reading::Own(Box::new(self.db.begin_read()?)),
        })
    }

    /// Reads in the transaction that runs, or in one of its own.
    fn read<T>(&self, body: impl FnOnce(&Tables, &Transaction) -> Outcome<T>) -> Result<T> {
        let outcome = self.reading().and_then(|txn| body(&self.tables, &txn));
        self.noted(outcome)
    }

    /// Writes in the transaction that runs, or in one of its own: everything, or nothing if it fails.
    fn write<T>(&mut self, body: impl FnOnce(&Tables, &mut Transaction) -> Outcome<T>) -> Result<T> {
        let outcome = match &mut self.txn {
            Some(txn) => whole(txn, |txn| body(&self.tables, txn)),
            None => alone(&self.db, self.options, |txn| body(&self.tables, txn)),
        };
        self.noted(outcome)
    }

    /// The first of so many numbers that no table, index or row has. They are reserved by a transaction of their own,
    /// so that sessions that add rows do not meet; some are lost when a session ends.
    fn take_numbers(&mut self, count: u64) -> Result<u64> {
        if self.numbers.end - self.numbers.start < count {
            let more = count.max(RESERVED);
            let numbers = &self.tables.numbers;
            let reserved = self.db.run(|txn| {
                let next = txn.get(numbers, &[0u8.into()])?.map_or(Ok(0), |row| row.get::<u64>("next"))?;
                txn.upsert(numbers, &[0u8.into(), (next + more).into()])?;
                Ok::<_, pantile::Error>(next)
            });
            let next = self.noted(reserved.map_err(Into::into))?;
            self.numbers = next..next + more;
        }
        let first = self.numbers.start;
        self.numbers.start += count;
        Ok(first)
    }
}

fn whole<T>(txn: &mut Transaction, body: impl FnOnce(&mut Transaction) -> Outcome<T>) -> Outcome<T> {
    let before = txn.savepoint();
    match body(txn) {
        Ok(value) => {
            txn.release(before);
            Ok(value)
        }
        Err(failed) => {
            txn.rollback_to(before)?;
            Err(failed)
        }
    }
}

fn alone<T>(
    db: &Database,
    options: TransactionOptions,
    body: impl FnOnce(&mut Transaction) -> Outcome<T>,
) -> Outcome<T> {
    let mut txn = db.begin_with(options)?;
    let value = body(&mut txn)?;
    txn.commit()?;
    Ok(value)
}
