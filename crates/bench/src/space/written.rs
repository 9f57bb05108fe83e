//! What loading and committing write, in bytes and in system calls.

use std::path::Path;

use pantile::{Durability, Options, TableDef, Type, Value};
use pantile_testkit::Random;
use serde::Serialize;

use super::files::Written;
use super::patterns::Settings;
use crate::error::Result;
use crate::place::DatabaseDir;

/// Bytes of a row: its key and its data.
const KEY: usize = 8;
const DATA: usize = 242;

/// What some commits wrote to a file, all that the database wrote beside them
/// included.
#[derive(Clone, Debug, Serialize)]
pub struct Cost {
    /// What was written.
    pub what: String,
    /// Commits.
    pub commits: u64,
    /// Bytes of keys and data.
    pub row_bytes: u64,
    /// Bytes that the engine gave to the medium, for each byte of row.
    pub medium: f64,
    /// Bytes given to system calls that write, zeros ahead of use included, for
    /// each byte of row.
    pub process: f64,
    /// System calls that write, for each commit.
    pub calls: f64,
    /// Syncs, for each commit.
    pub syncs: f64,
    /// The most of one of these figures, where there is a bar.
    pub bar: Option<Bar>,
}

/// The most that a figure may be.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// Bytes for each byte of row.
    Bytes(f64),
    /// System calls for each commit.
    Calls(f64),
}

impl Cost {
    /// Whether the bar, if there is one, was kept.
    pub fn is_within(&self) -> bool {
        match self.bar {
            None => true,
            Some(Bar::Bytes(most)) => self.medium.max(self.process) <= most,
            // A state record now and then belongs to no commit.
            Some(Bar::Calls(most)) => self.calls + self.syncs <= most * 1.05,
        }
    }
}

/// Measures bulk loads and small commits, in new databases in `parent`.
///
/// # Errors
/// Those of the engine; [`crate::Error::Io`].
pub fn measure(settings: &Settings, parent: Option<&Path>) -> Result<Vec<Cost>> {
    let scaled = |n: u64| ((n as f64 * settings.scale) as u64).max(1);
    let (rows, few) = (scaled(400_000), scaled(1000));
    let (none, sync) = (Durability::None, Durability::Sync);
    let bytes = Some(Bar::Bytes(1.3));
    let load = |each: u64, durability| Load { rows, each: each.min(rows), durability, seed: settings.seed };
    let commit = |rows, durability| Load { rows, each: 1, durability, seed: settings.seed };
    Ok(vec![
        load(1000, sync).cost("load, 1000 rows in a transaction, sync", bytes, parent)?,
        load(1000, none).cost("load, 1000 rows in a transaction, none", bytes, parent)?,
        load(rows, sync).cost("load, all rows in one transaction, sync", bytes, parent)?,
        commit(few, sync).cost("commits of one row, sync", None, parent)?,
        commit(20 * few, none).cost("commits of one row, none", Some(Bar::Calls(1.0)), parent)?,
    ])
}

struct Load {
    rows: u64,
    each: u64,
    durability: Durability,
    seed: u64,
}

impl Load {
    fn cost(&self, what: &str, bar: Option<Bar>, parent: Option<&Path>) -> Result<Cost> {
        let place = DatabaseDir::temporary_in(parent)?;
        let db = Options::new().durability(self.durability).open(place.path())?;
        let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::FixedBytes(DATA as u16));
        let table = db.create_table(def.primary_key(["id"]))?;
        let (mut random, mut data) = (Random::new(self.seed, 0), [0; DATA]);
        let (before, medium) = (Written::now(), db.stats().medium);
        let mut commits = 0;
        for first in (0..self.rows).step_by(self.each as usize) {
            random.fill_letters(&mut data);
            db.run(|txn| {
                let mut ids = first..(first + self.each).min(self.rows);
                ids.try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&data)]))
            })?;
            commits += 1;
        }
        let (medium, written) = (db.stats().medium - medium, Written::now().since(before));
        db.close()?;
        let row_bytes = self.rows * (KEY + DATA) as u64;
        Ok(Cost {
            what: what.into(),
            commits,
            row_bytes,
            medium: medium.bytes_written as f64 / row_bytes as f64,
            process: written.bytes as f64 / row_bytes as f64,
            calls: written.calls as f64 / commits as f64,
            syncs: medium.syncs as f64 / commits as f64,
            bar,
        })
    }
}
