//! Rows of one table that are updated at random.

use pantile::{Database, Table, TableDef, Type, Value};
use pantile_testkit::Random;

use super::optimum::Optimum;
use super::updates::{Draws, Updates};
use super::updating::Updating;
use crate::error::Result;

/// Bytes of a row beside its key.
const DATA: usize = 112;
/// Bytes of a content with its header.
const CONTENT_BYTES: u64 = 144;
/// Rows inserted by one transaction.
const BATCH: u64 = 1000;

/// The rows, and what draws the next ones to update.
pub(super) struct Rows {
    db: Database,
    table: Table,
    updates: Updates,
    rows: u64,
    rows_each: u32,
    draws: Draws,
    random: Random,
    data: [u8; DATA],
}

impl Rows {
    /// Loads rows of `live_bytes` in all. Transactions will update `rows_each`,
    /// at random with this seed.
    pub fn load(
        db: Database,
        live_bytes: u64,
        (rows_each, seed): (u32, u64),
        updates: Updates,
    ) -> Result<Self> {
        let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::FixedBytes(DATA as u16));
        let table = db.create_table(def.primary_key(["id"]))?;
        let rows = live_bytes / CONTENT_BYTES;
        let (draws, random) = (updates.draws(rows), Random::new(seed, 0));
        let mut loaded = Self { db, table, updates, rows, rows_each, draws, random, data: [0; DATA] };
        for first in (0..rows).step_by(BATCH as usize) {
            let ids: Vec<u64> = (first..(first + BATCH).min(rows)).collect();
            loaded.put(&ids)?;
        }
        Ok(loaded)
    }

    fn put(&mut self, ids: &[u64]) -> Result<()> {
        self.random.fill_letters(&mut self.data);
        Ok(self.db.run(|txn| {
            ids.iter().try_for_each(|&id| {
                txn.upsert(&self.table, &[id.into(), Value::Bytes(&self.data)]).map(|_| ())
            })
        })?)
    }
}

impl Updating for Rows {
    fn db(&self) -> &Database {
        &self.db
    }

    fn transaction_bytes(&self) -> u64 {
        u64::from(self.rows_each) * CONTENT_BYTES
    }

    fn update(&mut self) -> Result<()> {
        let ids: Vec<u64> = (0..self.rows_each).map(|_| self.draws.draw(&mut self.random)).collect();
        self.put(&ids)
    }

    fn optimum(&self) -> Optimum {
        self.updates.optimum(self.rows, self.rows_each)
    }
}
