//! Pantile as a key-value store with the interface of Parity's [`kvdb`].
//!
//! ```
//! use kvdb::KeyValueDB;
//! use pantile::Database;
//! use pantile_kvdb::PantileKv;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let store = PantileKv::new(Database::open(dir.path())?, 2)?;
//! let mut batch = store.transaction();
//! batch.put(0, b"block 1", b"some bytes");
//! batch.put(1, b"head", b"block 1");
//! // Both or neither, and durable when it returns.
//! store.write(batch)?;
//! assert_eq!(store.get(1, b"head")?.as_deref(), Some(&b"block 1"[..]));
//! assert_eq!(store.iter_with_prefix(0, b"block").count(), 1);
//! # Ok(())
//! # }
//! ```
//!
//! A column is a table of the database, `kvdb_0`, `kvdb_1` and so on. A batch is one transaction, which starts again by
//! itself if it met another. An iterator reads one state of the store, from when it was made, while others write; it
//! keeps what it may read from being freed until it is dropped.
//!
//! A key has at most [`MAX_KEY`] bytes, where other stores of `kvdb` take any; a batch with a longer one fails, and
//! changes nothing.

mod counts;

use std::borrow::Cow;
use std::io;
use std::ops::Bound;

use kvdb::{DBKeyValue, DBOp, DBTransaction, DBValue, IoStats, IoStatsKind, KeyValueDB, end_prefix};
use pantile::{Cursor, Database, Error, Range, Row, Table, TableDef, Transaction, Type};

use crate::counts::Counts;

/// The longest key, in bytes.
pub const MAX_KEY: u32 = 1531;

/// A store of keys and values on a database.
#[derive(Debug)]
pub struct PantileKv {
    db: Database,
    columns: Vec<Table>,
    counts: Counts,
}

impl PantileKv {
    /// A store with so many columns. Those that the database does not have are created; if it has more, they stay as
    /// they are.
    ///
    /// # Errors
    /// Those of Pantile, as the source of an [`io::Error`].
    pub fn new(db: Database, columns: u32) -> io::Result<Self> {
        let columns = (0..columns).map(|column| db.open_or_create(definition(column)));
        let columns = columns.collect::<Result<_, _>>().map_err(io::Error::other)?;
        Ok(Self { db, columns, counts: Counts::default() })
    }

    /// The database.
    pub fn database(&self) -> &Database {
        &self.db
    }

    fn column(&self, column: u32) -> io::Result<&Table> {
        let there = self.columns.len();
        let missing =
            || format!("there is no column {column}: the store was opened with {there}; nothing was changed");
        let table = self.columns.get(column as usize);
        table.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, missing()))
    }

    fn begin(&self) -> io::Result<Transaction> {
        self.db.begin_read().map_err(io::Error::other)
    }

    fn pairs(&self, column: u32, prefix: &[u8]) -> io::Result<Pairs<'_>> {
        let txn = self.begin()?;
        let table = self.column(column)?;
        let cursor = within(prefix, |range| txn.cursor(table, range)).map_err(io::Error::other)?;
        Ok(Pairs { counts: &self.counts, txn, cursor, failed: false })
    }

    fn iterate(&self, column: u32, prefix: &[u8]) -> Box<dyn Iterator<Item = io::Result<DBKeyValue>> + '_> {
        match self.pairs(column, prefix) {
            Ok(pairs) => Box::new(pairs),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    fn apply(&self, txn: &mut Transaction, op: &DBOp) -> Result<(), Error> {
        let table = &self.columns[op.col() as usize];
        match op {
            DBOp::Insert { key, value, .. } => {
                txn.upsert(table, &[key.as_slice().into(), value.as_slice().into()])?;
            }
            DBOp::Delete { key, .. } if !fits(key) => {}
            DBOp::Delete { key, .. } => {
                txn.delete(table, &[key.as_slice().into()])?;
            }
            DBOp::DeletePrefix { prefix, .. } => {
                within(prefix, |range| txn.delete_range(table, range))?;
            }
        }
        Ok(())
    }
}

fn definition(column: u32) -> TableDef {
    TableDef::new(format!("kvdb_{column}"))
        .column("key", Type::Bytes(MAX_KEY))
        .column("value", Type::Bytes(u32::MAX))
        .primary_key(["key"])
}

fn value_of(row: &Row<'_>) -> Result<DBValue, Error> {
    row.get("value")
}

impl KeyValueDB for PantileKv {
    fn get(&self, col: u32, key: &[u8]) -> io::Result<Option<DBValue>> {
        let table = self.column(col)?;
        let txn = self.begin()?;
        let row = if fits(key) { txn.get(table, &[key.into()]) } else { Ok(None) };
        let value = row.and_then(|row| row.map(|row| value_of(&row)).transpose());
        let value = value.map_err(io::Error::other)?;
        self.counts.read(key.len() + value.as_ref().map_or(0, Vec::len));
        Ok(value)
    }

    fn get_by_prefix(&self, col: u32, prefix: &[u8]) -> io::Result<Option<DBValue>> {
        let first = self.pairs(col, prefix)?.next().transpose()?;
        Ok(first.map(|(_, value)| value))
    }

    fn write(&self, transaction: DBTransaction) -> io::Result<()> {
        for op in &transaction.ops {
            self.column(op.col())?;
        }
        self.db
            .run(|txn| transaction.ops.iter().try_for_each(|op| self.apply(txn, op)))
            .map_err(io::Error::other)?;
        self.counts.written(&transaction);
        Ok(())
    }

    /// An error is the last item, and the only one if the column is not there.
    fn iter<'a>(&'a self, col: u32) -> Box<dyn Iterator<Item = io::Result<DBKeyValue>> + 'a> {
        self.iterate(col, &[])
    }

    /// As [`PantileKv::iter`].
    fn iter_with_prefix<'a>(
        &'a self,
        col: u32,
        prefix: &'a [u8],
    ) -> Box<dyn Iterator<Item = io::Result<DBKeyValue>> + 'a> {
        self.iterate(col, prefix)
    }

    /// What went through the store. The store opens its database without a cache of rows, so nothing is counted as read from one.
    fn io_stats(&self, kind: IoStatsKind) -> IoStats {
        self.counts.take(kind)
    }
}

/// Whether a key or prefix can be there. Pantile rejects what cannot.
fn fits(key: &[u8]) -> bool {
    key.len() <= MAX_KEY as usize
}

/// Calls `body` with the range of the keys that begin with a prefix.
fn within<T>(prefix: &[u8], body: impl FnOnce(Range<'_>) -> T) -> T {
    if !fits(prefix) {
        return body(Range::all().limit(0));
    }
    let end = end_prefix(prefix);
    let (first, end) = ([prefix.into()], end.as_deref().map(|end| [end.into()]));
    let range = Range::all().from(Bound::Included(&first));
    body(match &end {
        Some(end) => range.to(Bound::Excluded(end)),
        None => range,
    })
}

/// Pairs in the order of their keys, in a transaction of their own.
struct Pairs<'s> {
    counts: &'s Counts,
    txn: Transaction,
    cursor: Cursor,
    failed: bool,
}

impl Pairs<'_> {
    fn advance(&mut self) -> Result<Option<DBKeyValue>, Error> {
        let Some(row) = self.cursor.next(&self.txn)? else { return Ok(None) };
        let (key, value) = (row.get::<Cow<'_, [u8]>>("key")?, value_of(&row)?);
        self.counts.read(key.len() + value.len());
        Ok(Some((key.as_ref().into(), value)))
    }
}

impl Iterator for Pairs<'_> {
    type Item = io::Result<DBKeyValue>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let advanced = self.advance();
        self.failed = advanced.is_err();
        advanced.map_err(io::Error::other).transpose()
    }
}
