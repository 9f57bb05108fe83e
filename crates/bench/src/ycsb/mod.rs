//! YCSB: one table of tuples with an 8-byte key, and transactions of a number
//! of operations on single tuples.
//!
//! An update overwrites all of a tuple but its key; a read looks at every
//! byte; a read-modify-write changes 8 bytes of what it read; a scan reads 1
//! to 100 tuples from a key on; an insert adds a tuple after the last.
//!
//! Some of the transactions can be longer than the others, and some can be
//! scans of the whole table at a safe snapshot. `docs/workloads.md` says which
//! experiments of which papers that makes possible.
//!
//! | workload | mix | keys |
//! | --- | --- | --- |
//! | A | 50 % reads, 50 % updates | zipf 0.99 |
//! | B | 95 % reads, 5 % updates | zipf 0.99 |
//! | C | reads | zipf 0.99 |
//! | D | 95 % reads, 5 % inserts | the latest, zipf 0.99 |
//! | E | 95 % scans, 5 % inserts | zipf 0.99 |
//! | F | 50 % reads, 50 % read-modify-writes | zipf 0.99 |

mod client;
pub mod keys;

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use pantile::{Database, Isolation, Range, Table, TableDef, Type};
use serde::Serialize;

pub use client::Client;

use crate::error::{Error, Result};
use crate::load::Context;
use crate::long_readers::LoadedRow;
use crate::record::Consistency;
use crate::workload::{Found, Workload, remove_unfinished};
use client::KINDS;
use keys::{Keys, Scatter, THETA};
use pantile_testkit::Random;

/// Skew of the standard workloads.
pub const STANDARD_THETA: f64 = 0.99;

/// Tuple sizes that are possible.
pub const TUPLE_BYTES: RangeInclusive<u32> = 16..=65_000;

/// Bytes of the key.
const KEY_BYTES: u32 = 8;

/// Tuples inserted by one transaction when loading.
const BATCH: u64 = 1000;

/// Of the most frequent keys so many are half of what long readers read: what
/// skewed updates leave behind is found there.
const FREQUENT: u64 = 1000;

const TABLE: &str = "ycsb";
const LOADED: &str = "ycsb_loaded";

/// Columns of the table.
const KEY: usize = 0;
const FIELD: usize = 1;

/// Of 100 operations, how many are what; the rest reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Mix {
    /// Updates.
    pub updates: u32,
    /// Inserts.
    pub inserts: u32,
    /// Scans.
    pub scans: u32,
    /// Read-modify-writes.
    pub rmw: u32,
}

impl Mix {
    /// How many of 100 are not reads.
    pub fn sum(&self) -> u32 {
        [self.updates, self.inserts, self.scans, self.rmw].into_iter().fold(0, u32::saturating_add)
    }

    fn writes(&self) -> bool {
        self.updates + self.inserts + self.rmw > 0
    }
}

/// The workload.
#[derive(Clone, Debug, Serialize)]
pub struct Ycsb {
    /// Tuples loaded.
    pub tuples: u64,
    /// Bytes of each, the key included.
    pub tuple_bytes: u32,
    /// Operations of a transaction.
    pub ops: u32,
    /// Of 100 transactions that are no table scans, how many are long.
    pub long_share: u32,
    /// Operations of a long transaction.
    pub long_ops: u32,
    /// Of 100 transactions, how many are table scans.
    pub scan_share: u32,
    /// Tuples that a table scan reads, from a random one on; none for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scan_tuples: Option<u64>,
    /// What they are.
    #[serde(flatten)]
    pub mix: Mix,
    /// Skew of the keys: from 0, for none, to 1.
    pub theta: f64,
    /// Whether the latest keys are the frequent ones.
    pub latest: bool,
    /// Seed of all random numbers.
    #[serde(skip)]
    pub seed: u64,
}

impl Default for Ycsb {
    /// A million tuples of 100 bytes, 20 operations, half of them updates, no skew.
    fn default() -> Self {
        Self {
            tuples: 1_000_000,
            tuple_bytes: 100,
            ops: 20,
            long_share: 0,
            long_ops: 100,
            scan_share: 0,
            scan_tuples: None,
            mix: Mix { updates: 50, ..Mix::default() },
            theta: 0.0,
            latest: false,
            seed: 42,
        }
    }
}

impl Ycsb {
    /// The mix of a standard workload, A to F, and whether it asks for the latest keys.
    pub fn standard(letter: char) -> Option<(Mix, bool)> {
        let none = Mix::default();
        Some(match letter.to_ascii_uppercase() {
            'A' => (Mix { updates: 50, ..none }, false),
            'B' => (Mix { updates: 5, ..none }, false),
            'C' => (none, false),
            'D' => (Mix { inserts: 5, ..none }, true),
            'E' => (Mix { scans: 95, inserts: 5, ..none }, false),
            'F' => (Mix { rmw: 50, ..none }, false),
            _ => return None,
        })
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Setting`] naming the one that makes no sense.
    pub fn validate(&self) -> Result<()> {
        let wrong = |reason: &str| Err(Error::Setting(reason.to_owned()));
        match self {
            Self { tuples: 0, .. } => wrong("there must be at least one tuple"),
            Self { ops: 0, .. } | Self { long_ops: 0, .. } => {
                wrong("a transaction has at least one operation")
            }
            Self { scan_tuples: Some(0), .. } => wrong("a scan reads at least one tuple"),
            Self { long_share, scan_share, .. } if *long_share.max(scan_share) > 100 => {
                wrong("a share is at most 100 percent")
            }
            Self { tuple_bytes, .. } if !TUPLE_BYTES.contains(tuple_bytes) => {
                wrong("a tuple has 16 to 65000 bytes")
            }
            Self { theta, .. } if !THETA.contains(theta) => wrong("theta is from 0 to 1"),
            Self { mix, .. } if mix.sum() > 100 => wrong(
                "updates, inserts, scans and rmw together are more than 100 percent (updates is 50 unless given)",
            ),
            _ => Ok(()),
        }
    }

    fn definition(&self) -> TableDef {
        // The key limits the field to what `validate` allows.
        let field = u16::try_from(self.tuple_bytes - KEY_BYTES).unwrap_or(u16::MAX);
        TableDef::new(TABLE)
            .column("key", Type::U64)
            .column("field", Type::FixedBytes(field))
            .primary_key(["key"])
    }
}

/// Handles of the data.
pub struct Data {
    table: Table,
    /// The key that is inserted next.
    next: Arc<AtomicU64>,
}

impl Workload for Ycsb {
    type Client = Client;
    type Data = Data;

    fn name(&self) -> &'static str {
        "ycsb"
    }

    fn config(&self) -> serde_json::Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn kinds(&self) -> &'static [&'static str] {
        &KINDS
    }

    fn find(&self, db: &Database) -> Result<Found<Data>> {
        let Some((tuples, tuple_bytes)) = read_loaded(db)? else {
            return remove_unfinished(db, &[LOADED, TABLE]);
        };
        if (tuples, tuple_bytes) != (self.tuples, self.tuple_bytes) {
            return Ok(Found::Other(format!(
                "holds YCSB's data for --tuples {tuples} --tuple-bytes {tuple_bytes}; give the same, or another directory"
            )));
        }
        Ok(Found::Complete(Data::open(db)?))
    }

    fn load(&self, db: &Database, context: &Context<'_>) -> Result<Data> {
        self.validate()?;
        let loaded = TableDef::new(LOADED).column("tuples", Type::U64).column("tuple_bytes", Type::U32);
        let loaded = db.create_table(loaded.primary_key(["tuples"]))?;
        let table = db.create_table(self.definition())?;
        context.observer.begin("loading", self.tuples);
        let done = context.in_parallel("loading", self.tuples.div_ceil(BATCH) as usize, |part| {
            let first = part as u64 * BATCH;
            let end = (first + BATCH).min(self.tuples);
            let mut random = Random::new(self.seed, part as u64);
            let mut field = vec![0; (self.tuple_bytes - KEY_BYTES) as usize];
            db.run(|txn| {
                (first..end).try_for_each(|key| {
                    random.fill_letters(&mut field);
                    txn.insert(&table, &[key.into(), field[..].into()])
                })
            })?;
            Ok(end - first)
        });
        context.observer.end();
        done?;
        db.run(|txn| txn.insert(&loaded, &[self.tuples.into(), self.tuple_bytes.into()]))?;
        Data::open(db)
    }

    fn clients(&self, db: &Database, data: &Data, count: usize, isolation: Isolation) -> Result<Vec<Client>> {
        let keys = Arc::new(Keys::new(self.tuples, self.theta, self.latest));
        Ok((0..count).map(|n| Client::new(self, db, data, &keys, n, isolation)).collect())
    }

    fn random_row<'d>(&self, data: &'d Data, random: &mut Random) -> LoadedRow<'d> {
        let key = match random.percent(50) {
            true => Scatter::new(self.tuples).key(random.below(self.tuples.min(FREQUENT))),
            false => random.below(self.tuples),
        };
        LoadedRow { table: &data.table, key: vec![key.into()], is_deleted: false }
    }

    fn check(&self, _: &Database, _: &Data, _: &Context<'_>) -> Result<Option<Consistency>> {
        Ok(None)
    }
}

/// What loading wrote when it was complete: tuples and their size.
fn read_loaded(db: &Database) -> Result<Option<(u64, u32)>> {
    let Ok(table) = db.table(LOADED) else { return Ok(None) };
    let txn = db.begin_read()?;
    let Some(row) = txn.scan(&table, Range::all())?.next().transpose()? else { return Ok(None) };
    Ok(Some((row.get(0)?, row.get(1)?)))
}

impl Data {
    fn open(db: &Database) -> Result<Self> {
        let table = db.table(TABLE)?;
        let txn = db.begin_read()?;
        let last = txn.scan(&table, Range::all().reverse().limit(1))?.next().transpose()?;
        let next = last.map_or(Ok(0), |row| row.get::<u64>(KEY).map(|key| key + 1))?;
        drop(txn);
        Ok(Self { table, next: Arc::new(AtomicU64::new(next)) })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
