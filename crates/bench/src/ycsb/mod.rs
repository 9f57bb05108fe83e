//! YCSB: one table of tuples with an 8-byte key, and transactions of a number
//! of operations on single tuples.
//!
//! An update overwrites all of a tuple but its key; a read looks at every
//! byte; a read-modify-write changes 8 bytes of what it read; a scan reads 1
//! to 100 tuples from a key on; an insert adds a tuple after the last.
//!
//! Some of the transactions can be longer than the others, and some can be
//! scans of the whole table at a safe snapshot. One more client can run
//! transactions of millions of tuples beside all of that. `docs/workloads.md` says which
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
mod data;
pub mod keys;
mod settings;

use std::sync::Arc;

use pantile::{Database, Isolation, TableDef, Type};

pub use client::{Client, Drawn};
pub use data::Data;
pub use settings::{Beside, Mix, STANDARD_THETA, TUPLE_BYTES, Ycsb};

use crate::error::Result;
use crate::load::Context;
use crate::record::Consistency;
use crate::workload::{Found, LoadedRow, Workload, remove_unfinished};
use client::KINDS;
use data::{LOADED, TABLE, read_loaded};
use keys::{Keys, Scatter};
use pantile_testkit::Random;
use settings::KEY_BYTES;

/// Tuples inserted by one transaction when loading.
const BATCH: u64 = 1000;

/// Of the most frequent keys, this many are half of what long readers read: what
/// skewed updates leave behind is found there.
const FREQUENT: u64 = 1000;

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

    fn most_bytes_per_second(&self) -> f64 {
        // What an operation takes apart from its tuple limits short tuples, the memory long ones.
        (120e6 + 300e3 * f64::from(self.tuple_bytes)).min(600e6)
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
        let keys = Arc::new(Keys::new(self.shared_tuples(), self.theta, self.latest));
        let mut clients: Vec<_> =
            (0..count).map(|n| Client::new(self, db, data, &keys, n, isolation)).collect();
        if let (Some(last), Some(beside)) = (clients.last_mut(), self.beside) {
            last.run_beside(beside);
        }
        Ok(clients)
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

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
