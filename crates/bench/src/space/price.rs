//! What a space target costs: rows are updated until the space is steady, then
//! the bytes written are measured for some time.
//!
//! By default time is simulated and updates come at a fixed rate, so that the
//! same settings give the same figures on every machine.

use std::time::Duration;

use pantile::{
    ConflictPolicy, Database, GcOptions, Options, Pacing, SimulatedTime, Stats, Table, TableDef, Type, Value,
};
use pantile_testkit::{Random, exact_memory};
use serde::{Serialize, Serializer};

use super::optimum::Optimum;
use super::updates::{Draws, Updates};
use crate::error::{Error, Result};
use crate::load::Context;

/// Bytes of a row beside its key.
const ROW_BYTES: u16 = 112;
/// Bytes of a content with its header, roughly.
const CONTENT_BYTES: u64 = 144;
/// Rows inserted by one transaction.
const BATCH: u64 = 1000;
/// Samples of the space in the measured window.
const SAMPLES: u64 = 400;

/// The settings of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Bytes of the rows, headers included, roughly.
    pub live_bytes: u64,
    /// Rows that a transaction updates.
    pub rows_each: u32,
    /// Bytes updated per second of simulated time; none to update as fast as
    /// the machine can.
    pub bytes_per_second: Option<u64>,
    /// Bytes updated before measuring, as a multiple of the live bytes.
    pub warmup: f64,
    /// Bytes updated while measuring, as a multiple of the live bytes.
    pub window: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            live_bytes: 64 << 20,
            rows_each: 100,
            bytes_per_second: Some(40_000_000),
            warmup: 6.0,
            window: 4.0,
            seed: 42,
        }
    }
}

/// Bytes taken for each live byte, in the measured window.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Taken {
    /// The mean.
    pub mean: f64,
    /// Nineteen of twenty samples are at or below it.
    pub p95: f64,
    /// The greatest.
    pub max: f64,
}

/// What a target costs.
#[derive(Clone, Debug, Serialize)]
pub struct Price {
    /// How updates are distributed.
    #[serde(serialize_with = "name")]
    pub updates: Updates,
    /// The pacing of the collector: `adaptive`, or the paper's, `fixed`.
    pub pacing: &'static str,
    /// The space target; none with the paper's policy, which has none.
    pub target: Option<f64>,
    /// Bytes of the newest versions of all rows, headers included.
    pub live_bytes: u64,
    /// Bytes of the medium for each live byte.
    pub medium: Taken,
    /// The part of it in blocks in use; the rest is free or held in reserve.
    pub used: Taken,
    /// Bytes of the medium beyond what the target promises, at most; below zero
    /// if the promise was kept at every sample.
    pub beyond_promise: Option<i64>,
    /// Bytes of new versions, headers included, in the window.
    pub updated_bytes: u64,
    /// All bytes written to the medium meanwhile.
    pub written_bytes: u64,
    /// The part of them in copies out of blocks that were freed meanwhile.
    pub copied_bytes: u64,
    /// Blocks freed meanwhile.
    pub blocks: u64,
    /// Bytes written for each byte updated.
    pub amplification: f64,
    /// The least for the mean space of the medium.
    pub optimum: f64,
    /// The least for the mean space of the blocks in use.
    pub optimum_used: f64,
}

impl Price {
    /// What was written in units of the optimum.
    pub fn ratio(&self) -> f64 {
        self.amplification / self.optimum
    }

    /// The same if what is free and in reserve were not counted as space.
    pub fn ratio_used(&self) -> f64 {
        self.amplification / self.optimum_used
    }
}

fn name<S: Serializer>(updates: &Updates, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(&updates.name())
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn validate(&self) -> Result<()> {
        if self.rows() < 1000 {
            return Err(Error::Setting("a million live bytes are the least that can be measured".into()));
        }
        if self.bytes_per_second == Some(0) {
            return Err(Error::Setting("updates come at a rate of at least a byte per second".into()));
        }
        Ok(())
    }

    /// Rows in the table.
    pub fn rows(&self) -> u64 {
        self.live_bytes / CONTENT_BYTES
    }

    /// The optimum for these updates.
    pub fn optimum(&self, updates: Updates) -> Optimum {
        updates.optimum(self.rows(), self.rows_each)
    }

    /// Steps of a measurement, as its observer counts them.
    fn transactions(&self, share: f64) -> u64 {
        (self.live_bytes as f64 * share / (CONTENT_BYTES * u64::from(self.rows_each)) as f64) as u64
    }

    /// Measures what these updates cost with these options.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Interrupted`].
    pub fn measure(&self, updates: Updates, gc: GcOptions, context: &Context<'_>) -> Result<Price> {
        self.validate()?;
        let (warmup, window) = (self.transactions(self.warmup), self.transactions(self.window));
        let mut run = Run::new(self, updates, gc)?;
        let what = match has_target(gc) {
            true => format!("{}, target {}", updates.name(), gc.space_target),
            false => format!("{}, fixed", updates.name()),
        };
        context.observer.begin(&what, warmup + window);
        let measured = run.warm_up(warmup, context).and_then(|()| run.measure(window, context));
        context.observer.end();
        let (before, samples) = measured?;
        Ok(self.price(updates, gc, (&before, &run.db.stats()), &samples))
    }

    fn price(
        &self,
        updates: Updates,
        gc: GcOptions,
        (before, after): (&Stats, &Stats),
        samples: &[Stats],
    ) -> Price {
        let updated_bytes = after.payload_bytes - before.payload_bytes;
        let written_bytes = after.medium.bytes_written - before.medium.bytes_written;
        let collector = after.collector.since(&before.collector);
        let used = taken(samples, |stats| stats.medium_bytes - stats.free_bytes);
        let medium = taken(samples, |stats| stats.medium_bytes);
        let optimum = self.optimum(updates);
        Price {
            updates,
            pacing: gc.pacing.name(),
            target: has_target(gc).then_some(gc.space_target),
            live_bytes: after.live_bytes,
            medium,
            used,
            beyond_promise: has_target(gc).then(|| beyond_promise(samples, gc.space_target)),
            updated_bytes,
            written_bytes,
            copied_bytes: collector.survivors_relocated * after.live_bytes / after.tuples.max(1),
            blocks: collector.blocks_reclaimed,
            amplification: written_bytes as f64 / updated_bytes as f64,
            optimum: optimum.amplification(medium.mean),
            optimum_used: optimum.amplification(used.mean),
        }
    }
}

/// Whether there is a target: the paper's policy has none.
fn has_target(gc: GcOptions) -> bool {
    gc.pacing == Pacing::Adaptive
}

/// What samples took for each live byte.
fn taken(samples: &[Stats], bytes: impl Fn(&Stats) -> u64) -> Taken {
    let mut each: Vec<f64> =
        samples.iter().map(|stats| bytes(stats) as f64 / stats.live_bytes.max(1) as f64).collect();
    each.sort_by(f64::total_cmp);
    Taken {
        mean: each.iter().sum::<f64>() / each.len() as f64,
        p95: each[(each.len() * 95 / 100).min(each.len() - 1)],
        max: each[each.len() - 1],
    }
}

/// Bytes that may be taken beside what the target says.
const SLACK: i64 = 16 << 20;

fn beyond_promise(samples: &[Stats], target: f64) -> i64 {
    let beyond =
        |stats: &Stats| stats.medium_bytes as i64 - (stats.live_bytes as f64 * target) as i64 - SLACK;
    samples.iter().map(beyond).max().unwrap_or_default()
}

/// A database that is being updated.
struct Run {
    db: Database,
    table: Table,
    /// The time, and how long a transaction takes, where time is simulated.
    time: Option<(SimulatedTime, Duration)>,
    draws: Draws,
    random: Random,
    rows_each: u32,
    data: [u8; ROW_BYTES as usize],
}

impl Run {
    fn new(settings: &Settings, updates: Updates, gc: GcOptions) -> Result<Self> {
        let time = settings.bytes_per_second.map(|rate| {
            let bytes = u64::from(settings.rows_each) * CONTENT_BYTES;
            (SimulatedTime::default(), Duration::from_secs_f64(bytes as f64 / rate as f64))
        });
        let options =
            Options::new().on_medium(exact_memory()).gc(gc).streams(1).conflict(ConflictPolicy::Abort);
        let options = match &time {
            Some((time, _)) => options.simulated_time(time.clone()),
            None => options,
        };
        let db = options.open("unused")?;
        let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::FixedBytes(ROW_BYTES));
        let table = db.create_table(def.primary_key(["id"]))?;
        let (draws, random) = (updates.draws(settings.rows()), Random::new(settings.seed, 0));
        let data = [0; ROW_BYTES as usize];
        let mut run = Self { db, table, time, draws, random, rows_each: settings.rows_each, data };
        run.load(settings.rows())?;
        Ok(run)
    }

    fn load(&mut self, rows: u64) -> Result<()> {
        for first in (0..rows).step_by(BATCH as usize) {
            let ids: Vec<u64> = (first..(first + BATCH).min(rows)).collect();
            self.put(&ids)?;
        }
        Ok(())
    }

    fn put(&mut self, ids: &[u64]) -> Result<()> {
        self.random.fill_letters(&mut self.data);
        self.db.run(|txn| {
            ids.iter().try_for_each(|&id| {
                txn.upsert(&self.table, &[id.into(), Value::Bytes(&self.data)]).map(|_| ())
            })
        })?;
        if let Some((time, transaction)) = &self.time {
            time.advance(*transaction * ids.len() as u32 / self.rows_each);
        }
        Ok(())
    }

    fn update(&mut self) -> Result<()> {
        let ids: Vec<u64> = (0..self.rows_each).map(|_| self.draws.draw(&mut self.random)).collect();
        self.put(&ids)
    }

    fn warm_up(&mut self, transactions: u64, context: &Context<'_>) -> Result<()> {
        self.updates(transactions, context)
    }

    /// Returns the state before, and the samples.
    fn measure(&mut self, transactions: u64, context: &Context<'_>) -> Result<(Stats, Vec<Stats>)> {
        let before = self.db.stats();
        let samples = SAMPLES.min(transactions.max(1));
        let each = (0..samples).map(|_| {
            self.updates(transactions.div_ceil(samples), context)?;
            Ok(self.db.stats())
        });
        Ok((before, each.collect::<Result<_>>()?))
    }

    fn updates(&mut self, transactions: u64, context: &Context<'_>) -> Result<()> {
        for _ in 0..transactions {
            if context.stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Err(Error::Interrupted { during: "updating" });
            }
            self.update()?;
            context.observer.advance(1);
        }
        Ok(())
    }
}
