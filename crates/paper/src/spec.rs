//! The description of one run, by which it can be found and repeated.

use std::time::Duration;

use pantile::{Durability, ExclusiveStage, GcOptions, Isolation};
use pantile_bench::runner::Pace;
use pantile_bench::settings::{Medium, NEVER, Settings, Variant, stage};
use pantile_flash::{Experiment, SEED};

use crate::workload::Work;

/// A run, without its number of repetitions.
#[derive(Clone, PartialEq, Debug)]
pub struct RunSpec {
    /// The workload.
    pub work: Work,
    /// The collector's name.
    pub gc: &'static str,
    /// The medium's name.
    pub medium: &'static str,
    /// The name of the protocol that keeps transactions apart, unless it is that of the engine.
    pub protocol: Option<&'static str>,
    /// Whether transactions are sent to the node that most of their data is mapped to.
    pub by_partition: bool,
    /// The number of clients; with `ch`, of those that write.
    pub threads: usize,
    /// Transactions per second on a schedule, or 0.
    pub rate: f64,
    /// Seconds of warm-up.
    pub warmup: f64,
    /// Seconds of measurement.
    pub seconds: f64,
    /// Transactions that only read and stay open.
    pub long_readers: usize,
    /// Seconds that each stays open before the next begins, unless it is the whole run.
    pub long_seconds: Option<f64>,
    /// The interval of the collector, unless it is left as tuned: the period of
    /// its thread in milliseconds, or the commits of its epochs in tens.
    pub period: Option<f64>,
    /// Milliseconds of the collector's epochs, unless they are as tuned.
    pub epoch: Option<f64>,
    /// The share of a block's versions that must be superseded before it is emptied, unless it is
    /// the published one.
    pub threshold: Option<f64>,
    /// The bytes that may be taken for each live byte, to which the engine's pacing keeps, unless the pacing is
    /// the published one.
    pub space_target: Option<f64>,
    /// Whether writers move to later timestamps where they would conflict, as the engine's do. Those
    /// of the publications keep theirs.
    pub writers_move: bool,
    /// How many rows a transaction accesses in vain before it gets the exclusive stage, unless it is the published number.
    pub wasted: Option<u64>,
    /// How many it accesses before it gets it in one attempt, unless that is any number.
    pub accessed: Option<u64>,
    /// After how many failures it gets it ([`NEVER`]: after none), unless that is as with transactions that stay or move.
    pub tries: Option<u32>,
    /// Through a SQL server, with warehouses of this size in percent, unless the
    /// engine is embedded.
    pub server: Option<u32>,
    /// Traced and replayed on a simulated SSD, unless it is timed. The collector may be
    /// [`IN_PLACE`](pantile_flash::IN_PLACE) then.
    pub flash: Option<Experiment>,
    /// Opened after a kill. The collector may be that of [`RedoLog`](pantile_redo::Kind::RedoLog) then.
    pub recovery: Option<pantile_redo::Experiment>,
}

/// Seconds that the initial estimate adds for a server: two starts and stops, and what it adds.
const SERVER: f64 = 4.5;

/// How many times as long loading and checking take through SQL, by the initial
/// estimate.
const THROUGH_SQL: f64 = 5.0;

/// Seconds that a second of transactions adds to closing, opening and checking, by the initial
/// estimate: much in the first seconds, until space settles.
const GROWTH: f64 = 0.6;
const GROWING_SECONDS: f64 = 4.0;
const LATER_GROWTH: f64 = 0.1;

/// Seconds that a traced warehouse, and a transaction with all that follows, take by the initial
/// estimate.
const TRACED_WAREHOUSE: f64 = 0.4;
const TRACED_TRANSACTION: f64 = 3.3e-5;

/// Seconds that loading a megabyte, updating rows of it and opening it take by the initial estimate.
const RECOVERED_MEGABYTE: f64 = 0.012;

/// What the names of memories with a tenth of the bandwidth begin with. To load them takes longer.
const A_TENTH: &str = "nvm:optane-400";

/// The argument for the papers' collectors, as in [`RunSpec::settings`]: published values only.
const PUBLISHED: &str = " --gc-pacing fixed";

/// The argument for the engine's pacing instead.
const TARGET: &str = " --gc-space-target ";

/// That for their transactions, which keep their timestamps.
const WRITERS_STAY: &str = " --writers-stay";

/// Openings of what a kill has left.
pub const OPENINGS: usize = 3;

impl RunSpec {
    /// A run on emulated Optane at full speed, with `(warmup, seconds)`.
    pub fn new(work: Work, gc: &'static str, threads: usize, (warmup, seconds): (f64, f64)) -> Self {
        let medium = "nvm:optane-40";
        Self {
            work,
            gc,
            medium,
            protocol: None,
            by_partition: false,
            threads,
            rate: 0.0,
            warmup,
            seconds,
            long_readers: 0,
            long_seconds: None,
            period: None,
            epoch: None,
            threshold: None,
            space_target: None,
            writers_move: false,
            wasted: None,
            accessed: None,
            tries: None,
            server: None,
            flash: None,
            recovery: None,
        }
    }

    /// Opening after a kill, on emulated Optane.
    pub fn recovering(
        experiment: pantile_redo::Experiment,
        kind: pantile_redo::Kind,
        threads: usize,
    ) -> Self {
        let work = Work::Ycsb { tuples: experiment.megabytes * 1000, ops: 8, updates: 100, theta: 0.0 };
        Self { recovery: Some(experiment), ..Self::new(work, kind.name(), threads, (0.0, 0.0)) }
    }

    /// TPC-C over a traced medium.
    pub fn traced(experiment: Experiment, gc: &'static str) -> Self {
        let work = Work::Tpcc { warehouses: experiment.warehouses };
        let run = Self::new(work, gc, 1, (0.0, 0.0));
        Self { flash: Some(experiment), ..run.on("flash") }
    }

    /// The same with another collector.
    #[must_use]
    pub fn with_gc(&self, gc: &'static str) -> Self {
        Self { gc, ..self.clone() }
    }

    /// The same on another medium.
    #[must_use]
    pub fn on(self, medium: &'static str) -> Self {
        Self { medium, ..self }
    }

    /// The same under a protocol of the laboratory.
    #[must_use]
    pub fn under(self, protocol: &'static str) -> Self {
        Self { protocol: Some(protocol), ..self }
    }

    /// The same with transactions sent to the node that most of their data is mapped to.
    #[must_use]
    pub fn by_partition(self) -> Self {
        Self { by_partition: true, ..self }
    }

    /// The same at a fixed rate in transactions per second.
    #[must_use]
    pub fn at_rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }

    /// The same through a SQL server, with warehouses of this size in percent. The
    /// client there counts whole seconds.
    #[must_use]
    pub fn through_server(self, scale: u32) -> Self {
        let [warmup, seconds] = [self.warmup, self.seconds].map(|seconds| seconds.ceil().max(1.0));
        Self { warmup, seconds, server: Some(scale), ..self }
    }

    /// The command line that repeats the run, which identifies it.
    pub fn key(&self) -> String {
        self.command(&[self.gc], 1)
    }

    /// What it has in common with the runs that it is compared with.
    pub fn group(&self) -> String {
        // Also with those on the same memory under another design, or with other nodes.
        let memory = self.medium.split_once('+').map_or(self.medium, |(memory, _)| memory);
        Self { by_partition: false, ..self.clone().on(memory) }.command(&["*"], 1)
    }

    /// The command line that repeats it with each of these collectors.
    pub fn command(&self, gcs: &[&str], runs: usize) -> String {
        let Self { medium, threads, warmup, seconds, .. } = self;
        if let Some(Experiment { warehouses, transactions, pool, .. }) = self.flash {
            return format!(
                "cargo run --release -p pantile-flash --example sias -- --warehouses {warehouses} \
                 --transactions {transactions} --pool {pool} --layouts {}",
                gcs.join(",")
            );
        }
        if let Some(pantile_redo::Experiment { megabytes, transactions, ratio, .. }) = self.recovery {
            return format!(
                "cargo run --release -p pantile-redo --example recovery -- --megabytes {megabytes} \
                 --transactions {transactions} --ratio {ratio} --medium {medium} --openings {OPENINGS} --kinds {}",
                gcs.join(",")
            );
        }
        let program = if self.server.is_some() { "scripts/mariadb/" } else { "pantile bench " };
        let mut line = format!(
            "{program}{} {} {threads} --gc {} --medium {medium} --warmup {warmup} --seconds {seconds}",
            self.work.arguments(),
            self.work.threads_flag(),
            gcs.join(",")
        );
        // A server is started with these values by its script.
        if self.server.is_none() {
            line += &self.space_target.map_or(PUBLISHED.to_owned(), |target| format!("{TARGET}{target}"));
            line += if self.writers_move { "" } else { WRITERS_STAY };
        }
        if let Some(rows) = self.wasted {
            line += &format!(" --exclusive-wasted {rows}");
        }
        if let Some(rows) = self.accessed {
            line += &format!(" --exclusive-accessed {rows}");
        }
        match self.tries {
            Some(NEVER) => line += " --exclusive-tries never",
            Some(tries) => line += &format!(" --exclusive-tries {tries}"),
            None => {}
        }
        if let Some(protocol) = self.protocol {
            line += &format!(" --protocol {protocol}");
        }
        if self.by_partition {
            line += " --by-partition";
        }
        if self.rate > 0.0 {
            line += &format!(" --rate {}", self.rate);
        }
        if self.long_readers > 0 {
            line += &format!(" --long-readers {}", self.long_readers);
        }
        if let Some(seconds) = self.long_seconds {
            line += &format!(" --long-seconds {seconds}");
        }
        if let Some(period) = self.period {
            line += &format!(" --gc-interval-ms {period} --gc-epoch-commits {}", epoch_commits(period));
        }
        if let Some(millis) = self.epoch {
            line += &format!(" --gc-epoch-ms {millis}");
        }
        if let Some(threshold) = self.threshold {
            line += &format!(" --gc-theta {threshold}");
        }
        if let Some(scale) = self.server {
            line += &format!(" --scale {scale}");
        }
        if runs > 1 {
            line += &format!(" --runs {runs}");
        }
        line
    }

    /// The total seconds that it takes, by the initial estimate.
    pub fn cost(&self) -> f64 {
        if let Some(Experiment { warehouses, transactions, .. }) = self.flash {
            return TRACED_WAREHOUSE * f64::from(warehouses) + TRACED_TRANSACTION * transactions as f64;
        }
        if let Some(experiment) = self.recovery {
            return RECOVERED_MEGABYTE * experiment.megabytes as f64;
        }
        if let Some(scale) = self.server {
            return SERVER + THROUGH_SQL * self.work.overhead() * f64::from(scale) / 100.0 + self.pace();
        }
        // Loading waits for the device, which also has a measurement of its
        // own.
        let slow = match self.medium {
            "file" => 2.0,
            medium if medium.starts_with(A_TENTH) => 3.0,
            _ => 1.0,
        };
        let pace = self.pace();
        let grown = GROWTH * pace.min(GROWING_SECONDS) + LATER_GROWTH * pace;
        self.work.overhead() * slow + pace + grown
    }

    /// Seconds of warm-up and measurement.
    pub fn pace(&self) -> f64 {
        self.warmup + self.seconds
    }

    /// The run as settings of the benchmarks, with the seed of its data and transactions.
    ///
    /// # Errors
    /// What is not built in or invalid.
    pub fn settings(&self, seed: u64) -> Result<Settings, String> {
        let gc = pantile_rivals::by_name(self.gc).ok_or_else(|| not_built_in(self.gc))?;
        let medium = Medium::by_name(self.medium)?;
        let by_name = |name| pantile_protocols::by_name(name).ok_or_else(|| not_built_in(name));
        let protocol = self.protocol.map(by_name).transpose()?;
        let mut gc_options = match self.space_target {
            Some(space_target) => GcOptions { space_target, ..GcOptions::default() },
            None => GcOptions::published(),
        };
        if let Some(period) = self.period {
            gc_options.interval = Duration::from_secs_f64(period / 1e3);
            gc_options.epoch_commits = Some(epoch_commits(period));
        }
        if let Some(millis) = self.epoch {
            gc_options.epoch = Duration::from_secs_f64(millis / 1e3);
        }
        gc_options.theta = self.threshold.unwrap_or(gc_options.theta);
        Ok(Settings {
            variants: vec![Variant { medium, gc, protocol }],
            runs: 1,
            gc: gc_options,
            threads: self.threads + self.work.readers(),
            long_readers: self.long_readers,
            long_seconds: self.long_seconds,
            pace: Pace {
                warmup: Duration::from_secs_f64(self.warmup),
                measure: Duration::from_secs_f64(self.seconds),
                rate: self.rate,
            },
            isolation: Isolation::Serializable,
            writers_move: self.writers_move,
            stage: self.stage(),
            row_cache: None,
            durability: Durability::Sync,
            seed,
            dir: None,
        })
    }
}

impl RunSpec {
    /// When a transaction has the database to itself.
    fn stage(&self) -> ExclusiveStage {
        let stage = stage(self.writers_move, self.tries);
        let (wasted, accessed) =
            (self.wasted.unwrap_or(stage.wasted), self.accessed.unwrap_or(stage.accessed));
        ExclusiveStage { wasted, accessed, ..stage }
    }
}

/// One repetition of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The run.
    pub run: RunSpec,
    /// Its repetition, from 1.
    pub repetition: usize,
}

/// The seed of the first repetition.
const FIRST_SEED: u64 = 42;

impl Step {
    /// The seed of its data and transactions. Each repetition has another, so that intervals cover
    /// what these vary by; runs that are compared have the same.
    pub fn seed(&self) -> u64 {
        FIRST_SEED + self.repetition as u64 - 1
    }
}

/// An experiment without syncs, with `pool` megabytes for the store that updates in place.
pub const fn unsynced(warehouses: u16, transactions: u64, pool: u64) -> Experiment {
    Experiment { warehouses, transactions, pool, is_synced: false, seed: SEED }
}

/// Ten commits for each millisecond.
fn epoch_commits(period: f64) -> u64 {
    (period * 10.0).round().max(1.0) as u64
}

/// The reason given for a collector that the engine does not have.
pub fn not_built_in(collector: &str) -> String {
    format!("{collector} is not built in")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_a_command_and_tells_runs_apart() {
        let run = RunSpec::new(Work::Tpcc { warehouses: 1 }, "tb-collect", 2, (0.2, 1.0));
        assert_eq!(
            run.key(),
            "pantile bench tpcc --warehouses 1 --threads 2 --gc tb-collect --medium nvm:optane-40 --warmup 0.2 --seconds 1 --gc-pacing fixed --writers-stay"
        );
        let others = [
            run.with_gc("none"),
            run.clone().on("dram"),
            run.clone().under("silo"),
            run.clone().at_rate(100.0),
            RunSpec { long_readers: 1, ..run.clone() },
            RunSpec { long_readers: 1, long_seconds: Some(2.0), ..run.clone() },
            RunSpec { period: Some(1.0), ..run.clone() },
            RunSpec { epoch: Some(5000.0), ..run.clone() },
            RunSpec { threshold: Some(0.6), ..run.clone() },
            RunSpec { space_target: Some(1.1), ..run.clone() },
            RunSpec { writers_move: true, ..run.clone() },
            RunSpec { wasted: Some(100), ..run.clone() },
            RunSpec { accessed: Some(100), ..run.clone() },
            RunSpec { tries: Some(8), ..run.clone() },
            RunSpec { tries: Some(NEVER), ..run.clone() },
            RunSpec { seconds: 2.0, ..run.clone() },
            run.clone().through_server(100),
        ];
        assert!(others.iter().all(|other| other.key() != run.key()));
        assert_eq!(run.group(), others[0].group());
        assert!(others[1..].iter().all(|other| other.group() != run.group()));
        let designs = ["nvm:optane-40+zen:4", "nvm:optane-40+mmdb:16"].map(|medium| run.clone().on(medium));
        assert!(designs.iter().all(|design| design.group() == run.group() && design.key() != run.key()));
        let soft = run.clone().by_partition();
        assert!(soft.group() == run.group() && soft.key().ends_with(" --by-partition"));
    }

    #[test]
    fn a_server_has_a_command_of_its_own_and_whole_seconds() {
        let run = RunSpec::new(Work::Tpcc { warehouses: 2 }, "zen", 2, (0.3, 2.7)).at_rate(50.0);
        let run = run.on("nvm:E").through_server(10);
        let arguments =
            "--warehouses 2 --threads 2 --gc zen --medium nvm:E --warmup 1 --seconds 3 --rate 50 --scale 10";
        assert_eq!(run.key(), format!("scripts/mariadb/tpcc {arguments}"));
        assert!(run.cost() < run.clone().through_server(100).cost());
    }

    #[test]
    fn a_trace_is_repeated_by_the_example_of_flash() {
        let run = RunSpec::traced(unsynced(5, 60_000, 32), "in-place");
        let program = "cargo run --release -p pantile-flash --example sias --";
        assert_eq!(
            run.key(),
            format!("{program} --warehouses 5 --transactions 60000 --pool 32 --layouts in-place")
        );
        assert!(run.with_gc("none").key() != run.key() && run.cost() > 1.0);
    }

    #[test]
    fn a_recovery_is_repeated_by_the_example_of_redo() {
        let experiment = pantile_redo::Experiment {
            megabytes: 100,
            transactions: 4000,
            ratio: 4,
            seed: pantile_redo::SEED,
        };
        let run = RunSpec::recovering(experiment, pantile_redo::Kind::RedoLog, 2);
        let program = "cargo run --release -p pantile-redo --example recovery --";
        let of = "--megabytes 100 --transactions 4000 --ratio 4 --medium nvm:optane-40 --openings 3 --kinds redo-log";
        assert_eq!(run.key(), format!("{program} {of}"));
        assert!(run.with_gc("tb-collect").group() == run.group() && run.cost() > 0.5);
    }

    #[test]
    fn what_is_not_built_in_is_named() {
        let run = RunSpec::new(Work::Tpcc { warehouses: 1 }, "no-such", 2, (0.2, 1.0));
        assert_eq!(run.settings(1).unwrap_err(), "no-such is not built in");
        let settings = run.with_gc("none").at_rate(500.0).settings(1).unwrap();
        assert_eq!((settings.pace.rate, settings.threads), (500.0, 2));
        assert_eq!(settings.gc, GcOptions::published());
        let bounded = RunSpec { space_target: Some(1.1), ..run.with_gc("tb-collect") };
        assert_eq!(bounded.settings(1).unwrap().gc, GcOptions { space_target: 1.1, ..GcOptions::default() });
        assert!(bounded.key().ends_with(" --gc-space-target 1.1 --writers-stay"), "{}", bounded.key());
        assert_eq!(settings.variants[0].medium.to_string(), "nvm:optane-40");
    }
}
