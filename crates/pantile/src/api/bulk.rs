//! Loading any number of rows.

use std::collections::VecDeque;
use std::fmt;

use smallvec::SmallVec;

use crate::api::database::Database;
use crate::engine::table::Table;
use crate::transactions::in_flight::InFlight;
use crate::types::error::{Error, Result};
use crate::types::owned_value::OwnedValue;
use crate::types::transaction_options::TransactionOptions;
use crate::types::value::Value;

/// A transaction has as many rows and bytes at most, or one row.
const ROWS: usize = 1024;
const BYTES: usize = 1 << 20;
/// Transactions that are published and not yet known to be durable.
const IN_FLIGHT: usize = 8;

/// Why a load has ended early.
#[derive(Debug)]
#[non_exhaustive]
pub struct BulkError {
    /// The number of rows that are durable and stay: the first ones.
    pub inserted: u64,
    /// The row that was refused, counted from 0. `None` if the error was not about a row.
    pub row: Option<u64>,
    /// The error of the database.
    pub error: Box<Error>,
}

impl fmt::Display for BulkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { inserted, row, error } = self;
        row.map_or(Ok(()), |row| write!(f, "row {row}, counted from 0: "))?;
        write!(f, "{error}; the first {inserted} rows are inserted and stay")
    }
}

impl std::error::Error for BulkError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.error)
    }
}

impl Database {
    /// Adds any number of rows, in transactions of about a thousand rows.
    ///
    /// The rows can be in any order. No transaction waits until the one before it is durable, but
    /// all rows are durable when the call returns, except with [`Durability::None`](crate::Durability::None);
    /// there call [`Database::sync`]. Other transactions see the rows as they are added. To add all rows or none, use
    /// [`Transaction::insert_many`](crate::Transaction::insert_many).
    ///
    /// Loading is fastest in the order of the primary key. Several threads can load into one table.
    ///
    /// # Errors
    /// [`BulkError`] with an error of [`Transaction::insert`](crate::Transaction::insert), and with
    /// the number of rows that stay.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// let rows = (0..10_000u64).map(|id| [id.into()]);
    /// assert_eq!(db.bulk_insert(&t, rows).map_err(|stopped| *stopped.error)?, 10_000);
    /// let stopped = db.bulk_insert(&t, (9_999..20_000u64).map(|id| [id.into()])).unwrap_err();
    /// assert_eq!((stopped.inserted, stopped.row), (0, Some(0)));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn bulk_insert<R: AsRef<[OwnedValue]>>(
        &self,
        table: &Table,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<u64, BulkError> {
        load(self, table, rows.into_iter().map(Plain))
    }
}

/// A row that owns its values.
pub trait Loaded {
    fn with_values<T>(&self, act: impl FnOnce(&[Value<'_>]) -> T) -> T;
}

struct Plain<R>(R);

impl<R: AsRef<[OwnedValue]>> Loaded for Plain<R> {
    fn with_values<T>(&self, act: impl FnOnce(&[Value<'_>]) -> T) -> T {
        let values: SmallVec<[Value<'_>; 16]> = self.0.as_ref().iter().map(OwnedValue::as_value).collect();
        act(&values)
    }
}

/// Loads rows into a table. Returns how many they are.
pub fn load<R: Loaded>(
    db: &Database,
    table: &Table,
    mut rows: impl Iterator<Item = R>,
) -> Result<u64, BulkError> {
    let mut load = Load { db, table, inserted: 0, published: 0, in_flight: VecDeque::new() };
    loop {
        let batch = batch(&mut rows);
        if batch.is_empty() {
            load.wait(0)?;
            return Ok(load.inserted);
        }
        load.publish(&batch)?;
        load.wait(IN_FLIGHT)?;
    }
}

/// The rows of one transaction.
fn batch<R: Loaded>(rows: &mut impl Iterator<Item = R>) -> Vec<R> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while batch.len() < ROWS && bytes < BYTES {
        let Some(row) = rows.next() else { break };
        bytes += row.with_values(|values| values.iter().map(bytes_of).sum::<usize>());
        batch.push(row);
    }
    batch
}

fn bytes_of(value: &Value<'_>) -> usize {
    match value {
        Value::Str(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => size_of::<u64>(),
    }
}

struct Load<'d> {
    db: &'d Database,
    table: &'d Table,
    /// Rows that are durable, as far as commits are.
    inserted: u64,
    /// Rows that are visible.
    published: u64,
    /// With the number of rows.
    in_flight: VecDeque<(InFlight, u64)>,
}

impl Load<'_> {
    fn publish(&mut self, rows: &[impl Loaded]) -> Result<(), BulkError> {
        let mut refused = None;
        let outcome: Result<_> = self.db.run_and_publish(TransactionOptions::new(), |txn| {
            refused = None;
            rows.iter().zip(self.published..).try_for_each(|(row, number)| {
                row.with_values(|values| txn.insert(self.table, values))
                    .inspect_err(|_| refused = Some(number))
            })
        });
        match outcome {
            Ok(((), commit)) => {
                self.published += rows.len() as u64;
                self.in_flight.push_back((commit, rows.len() as u64));
                Ok(())
            }
            Err(error) => {
                // What was published before it stays.
                self.wait(0)?;
                Err(BulkError { inserted: self.inserted, row: refused, error: error.into() })
            }
        }
    }

    /// Waits until no more than this many transactions are in flight.
    fn wait(&mut self, most: usize) -> Result<(), BulkError> {
        while self.in_flight.len() > most {
            let Some((commit, rows)) = self.in_flight.pop_front() else { break };
            let inserted = self.inserted;
            commit.wait().map_err(|error| BulkError { inserted, row: None, error: error.into() })?;
            self.inserted += rows;
        }
        Ok(())
    }
}
