//! The tables, and handles of them.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pantile::{Database, Range, Table};

use crate::error::Result;

pub(super) const TABLE: &str = "ycsb";
pub(super) const LOADED: &str = "ycsb_loaded";

/// Columns of the table.
pub(super) const KEY: usize = 0;
pub(super) const FIELD: usize = 1;

/// Handles of the data.
pub struct Data {
    pub(super) table: Table,
    /// The key that is inserted next.
    pub(super) next: Arc<AtomicU64>,
}

/// What loading wrote when it was complete: tuples and their size.
pub(super) fn read_loaded(db: &Database) -> Result<Option<(u64, u32)>> {
    let Ok(table) = db.table(LOADED) else { return Ok(None) };
    let txn = db.begin_read()?;
    let Some(row) = txn.scan(&table, Range::all())?.next().transpose()? else { return Ok(None) };
    Ok(Some((row.get(0)?, row.get(1)?)))
}

impl Data {
    pub(super) fn open(db: &Database) -> Result<Self> {
        let table = db.table(TABLE)?;
        let txn = db.begin_read()?;
        let last = txn.scan(&table, Range::all().reverse().limit(1))?.next().transpose()?;
        let next = last.map_or(Ok(0), |row| row.get::<u64>(KEY).map(|key| key + 1))?;
        drop(txn);
        Ok(Self { table, next: Arc::new(AtomicU64::new(next)) })
    }
}
