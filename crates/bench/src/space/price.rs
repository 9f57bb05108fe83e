//! What a space target costs: rows are updated until the space is steady, then
//! the bytes written are measured for some time.
//!
//! By default time is simulated and updates come at a fixed rate, so that the
//! same settings give the same figures on every machine.

use std::sync::atomic::Ordering;
use std::time::Duration;

use pantile::{ConflictPolicy, GcOptions, Options, Pacing, SimulatedTime, Stats};
use pantile_testkit::exact_memory;
use serde::{Serialize, Serializer};

use super::optimum::Optimum;
use super::orders::Orders;
use super::promised;
use super::rows::Rows;
use super::updates::Updates;
use super::updating::Updating;
use crate::error::{Error, Result};
use crate::load::Context;

/// Samples of the space in the measured window.
const SAMPLES: u64 = 400;

/// What is updated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// Rows of one table.
    Rows(Updates),
    /// TPC-C's tables, by its transactions.
    TpcC,
}

impl Load {
    /// Those that the laboratory measures.
    pub fn all() -> Vec<Load> {
        Updates::ALL.into_iter().map(Load::Rows).chain([Load::TpcC]).collect()
    }

    /// The name in tables and on the command line.
    pub fn name(self) -> String {
        match self {
            Load::Rows(updates) => updates.name(),
            Load::TpcC => "tpc-c".into(),
        }
    }
}

/// The settings of a measurement.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// Bytes of the rows, headers included, roughly. TPC-C has a warehouse,
    /// however much that is.
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
    /// Whether a transaction that only reads is open while measuring, begun after the warm-up.
    pub reader: bool,
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
            reader: false,
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
    /// What was updated.
    #[serde(serialize_with = "name")]
    pub load: Load,
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
    /// The part of them in copies of live versions. The rest beyond the updated
    /// bytes is the padding of slots, block headers, and state records.
    pub copied_bytes: u64,
    /// Blocks freed meanwhile.
    pub blocks: u64,
    /// Bytes written for each byte updated.
    pub amplification: f64,
    /// The least for the mean space of the medium.
    pub optimum: f64,
    /// The least for the mean space of the blocks in use.
    pub optimum_used: f64,
    /// The least for any space.
    #[serde(skip)]
    pub least: Optimum,
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

fn name<S: Serializer>(load: &Load, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_str(&load.name())
}

impl Settings {
    /// Checks the settings.
    ///
    /// # Errors
    /// [`Error::Setting`].
    pub fn validate(&self) -> Result<()> {
        if self.live_bytes < 1 << 20 {
            return Err(Error::Setting("a megabyte of live rows is the least that can be measured".into()));
        }
        if self.bytes_per_second == Some(0) {
            return Err(Error::Setting("updates come at a rate of at least a byte per second".into()));
        }
        Ok(())
    }

    /// Measures what this load costs with these options.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Interrupted`].
    pub fn measure(&self, load: Load, gc: GcOptions, context: &Context<'_>) -> Result<Price> {
        self.validate()?;
        let time = self.bytes_per_second.map(|_| SimulatedTime::default());
        let options =
            Options::new().on_medium(exact_memory()).gc(gc).streams(1).conflict(ConflictPolicy::Abort);
        let options = match &time {
            Some(time) => options.simulated_time(time.clone()),
            None => options,
        };
        let db = options.open("unused")?;
        let updating: Box<dyn Updating> = match load {
            Load::Rows(updates) => {
                Box::new(Rows::load(db, self.live_bytes, (self.rows_each, self.seed), updates)?)
            }
            Load::TpcC => Box::new(Orders::load(db, self.seed)?),
        };
        let what = match has_target(gc) {
            true => format!("{}, target {}", load.name(), gc.space_target),
            false => format!("{}, fixed", load.name()),
        };
        let mut run = Run::new(updating, self, time);
        let (warmup, window) = (run.transactions(self.warmup), run.transactions(self.window));
        context.observer.begin(&what, warmup + window);
        let measured = run.updates(warmup, context).and_then(|()| {
            let _reader = if self.reader { Some(run.updating.db().begin_read()?) } else { None };
            run.window(window, context)
        });
        context.observer.end();
        Ok(price(load, gc, &measured?, run.updating.optimum()))
    }
}

fn price(load: Load, gc: GcOptions, samples: &[Stats], least: Optimum) -> Price {
    let (before, after) = (&samples[0], &samples[samples.len() - 1]);
    let updated_bytes = after.payload_bytes - before.payload_bytes;
    let written_bytes = after.medium.bytes_written - before.medium.bytes_written;
    let collector = after.collector.since(&before.collector);
    let used = taken(samples, |stats| stats.medium_bytes - stats.free_bytes);
    let medium = taken(samples, |stats| stats.medium_bytes);
    Price {
        load,
        pacing: gc.pacing.name(),
        target: has_target(gc).then_some(gc.space_target),
        live_bytes: after.live_bytes,
        medium,
        used,
        beyond_promise: has_target(gc).then(|| beyond_promise(samples, gc.space_target)),
        updated_bytes,
        written_bytes,
        copied_bytes: after.copied_bytes - before.copied_bytes,
        blocks: collector.blocks_reclaimed,
        amplification: written_bytes as f64 / updated_bytes as f64,
        optimum: least.amplification(medium.mean),
        optimum_used: least.amplification(used.mean),
        least,
    }
}

/// A measurement at work.
struct Run {
    updating: Box<dyn Updating>,
    /// The time, and how long a transaction takes, where time is simulated.
    time: Option<(SimulatedTime, Duration)>,
}

impl Run {
    fn new(updating: Box<dyn Updating>, settings: &Settings, time: Option<SimulatedTime>) -> Self {
        let rate = settings.bytes_per_second.unwrap_or(1) as f64;
        let transaction = Duration::from_secs_f64(updating.transaction_bytes() as f64 / rate);
        Self { updating, time: time.map(|time| (time, transaction)) }
    }

    /// Transactions that write as many bytes as are live, times `share`.
    fn transactions(&self, share: f64) -> u64 {
        let live = self.updating.db().stats().live_bytes;
        (live as f64 * share / self.updating.transaction_bytes() as f64) as u64 + 1
    }

    /// Updates rows, and returns samples from the beginning to the end.
    fn window(&mut self, transactions: u64, context: &Context<'_>) -> Result<Vec<Stats>> {
        self.updating.begin_window();
        let mut samples = vec![self.updating.db().stats()];
        let each = transactions.div_ceil(SAMPLES);
        for _ in 0..transactions / each {
            self.updates(each, context)?;
            samples.push(self.updating.db().stats());
        }
        Ok(samples)
    }

    fn updates(&mut self, transactions: u64, context: &Context<'_>) -> Result<()> {
        for _ in 0..transactions {
            if context.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted { during: "updating" });
            }
            self.updating.update()?;
            if let Some((time, transaction)) = &self.time {
                time.advance(*transaction);
            }
            context.observer.advance(1);
        }
        Ok(())
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

fn beyond_promise(samples: &[Stats], target: f64) -> i64 {
    let beyond = |stats: &Stats| stats.medium_bytes as i64 - promised(stats.live_bytes, target) as i64;
    samples.iter().map(beyond).max().unwrap_or_default()
}
