//! The settings of a run, apart from its workload.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pantile::lab::Protocol;
use pantile::{Collector, Durability, ExclusiveStage, GcOptions, Isolation, MediumKind, Options};
use pantile_nvm::{MOST_REMOTE_COST, NvmConfig};
use serde::Serialize;

use crate::machine;
use crate::runner::Pace;

/// Where a database lives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Medium {
    /// A file.
    File,
    /// Memory, gone with the process.
    Dram,
    /// Persistent memory.
    Dax {
        /// Whether the platform saves the CPU's caches when power fails.
        persistent_caches: bool,
    },
    /// Emulated persistent memory.
    Nvm(NvmConfig),
}

impl Medium {
    /// The medium of a name: `file`, `dram`, `dax`, `dax:eadr` (where the
    /// platform saves the CPU's caches), `nvm` (which is `nvm:optane`),
    /// `nvm:optane-40`, `nvm:A` to `nvm:E`, `nvm:A-40` to `nvm:E-40`, and each with other units, as in `nvm:optane-40/64`,
    /// with a design and how many times DRAM it is, as in
    /// `nvm:optane-40+mmdb:4`, or with two nodes, as in `nvm:optane-40+nodes:naive:2.5`.
    ///
    /// # Errors
    /// What is wrong with the name.
    pub fn by_name(name: &str) -> Result<Self, String> {
        match name {
            "file" => Ok(Medium::File),
            "dram" => Ok(Medium::Dram),
            "nvm" => Ok(Medium::Nvm(NvmConfig::OPTANE)),
            "dax" => Ok(Medium::Dax { persistent_caches: false }),
            "dax:eadr" => Ok(Medium::Dax { persistent_caches: true }),
            _ => name
                .strip_prefix("nvm:")
                .and_then(NvmConfig::by_name)
                .map(Medium::Nvm)
                .ok_or_else(|| {
                    format!(
                        "there is no medium {name:?}; there are file, dram, dax, dax:eadr, nvm:optane, nvm:optane-40, nvm:A to nvm:E and nvm:A-40 to nvm:E-40, these also as nvm:A/64 (bytes of a unit), nvm:A+zen:4 (or zen-naive, mmdb, wbl, foedus) and nvm:A+nodes:naive:2.5 (or local, remote, local-writes; remote memory costs 1 to {MOST_REMOTE_COST} times as much)"
                    )
                }),
        }
    }

    /// Whether the contents are gone with the process.
    pub fn is_volatile(self) -> bool {
        self == Medium::Dram
    }

    /// Bytes that a write takes on the medium at least, where it has units
    /// that are counted as such.
    pub fn unit_bytes(self) -> Option<u64> {
        match self {
            Medium::Nvm(config) => Some(config.unit_bytes),
            Medium::File | Medium::Dram | Medium::Dax { .. } => None,
        }
    }

    /// Options of a database on this medium.
    pub fn options(self) -> Options {
        let options = Options::new();
        match self {
            Medium::File => options.medium(MediumKind::File),
            Medium::Dram => options.medium(MediumKind::Dram),
            Medium::Dax { persistent_caches } => {
                options.medium(MediumKind::Dax).persistent_caches(persistent_caches)
            }
            Medium::Nvm(config) => options.custom_medium(config),
        }
    }
}

impl fmt::Display for Medium {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Medium::File => f.write_str("file"),
            Medium::Dram => f.write_str("dram"),
            Medium::Dax { persistent_caches: false } => f.write_str("dax"),
            Medium::Dax { persistent_caches: true } => f.write_str("dax:eadr"),
            Medium::Nvm(config) => write!(f, "nvm:{config}"),
        }
    }
}

/// What differs between the runs of one command.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Variant {
    /// Where the database lives.
    pub medium: Medium,
    /// What frees the space of old versions.
    pub gc: Collector,
    /// What keeps transactions apart; the engine's own protocol if none is given.
    pub protocol: Option<Protocol>,
}

impl Variant {
    /// Transactions under the engine's own protocol.
    pub fn new(medium: Medium, gc: Collector) -> Self {
        Self { medium, gc, protocol: None }
    }

    /// The name of the protocol; [`OWN_PROTOCOL`] for the engine's own.
    pub fn protocol_name(self) -> &'static str {
        self.protocol.map_or(OWN_PROTOCOL, Protocol::name)
    }
}

/// The name of the engine's own protocol.
pub const OWN_PROTOCOL: &str = "pantile";

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.medium, self.gc.name())?;
        self.protocol.map_or(Ok(()), |protocol| write!(f, ", {protocol}"))
    }
}

/// What all runs of one command have in common.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The variants to run.
    pub variants: Vec<Variant>,
    /// How often to run each.
    pub runs: usize,
    /// How collectors go about their work.
    pub gc: GcOptions,
    /// Clients.
    pub threads: usize,
    /// Transactions that only read and stay open.
    pub long_readers: usize,
    /// How long each stays open before the next begins; for the whole run if there is none.
    pub long_seconds: Option<f64>,
    /// How long and how fast.
    pub pace: Pace,
    /// How strictly transactions are kept apart.
    pub isolation: Isolation,
    /// Whether serializable writers move behind later readers.
    pub writers_move: bool,
    /// When a transaction gets the exclusive stage.
    pub stage: ExclusiveStage,
    /// Bytes of the cache of rows; none where there is none.
    pub row_cache: Option<u64>,
    /// When a commit is acknowledged.
    pub durability: Durability,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Where the databases go; none for a temporary directory.
    pub dir: Option<PathBuf>,
}

/// No number of failures gives a transaction the exclusive stage.
pub const NEVER: u32 = u32::MAX;

/// The exclusive stage after this many failures, too. If it is [`NEVER`], it is as published (Zen+ 4.1.1): by what a
/// transaction has accessed, in one attempt or in vain, and by nothing else. So it is without other wishes where
/// writers stay as in the papers.
pub fn stage(writers_move: bool, tries: Option<u32>) -> ExclusiveStage {
    let default = ExclusiveStage::default();
    match tries.unwrap_or(if writers_move { default.tries } else { NEVER }) {
        NEVER => ExclusiveStage { tries: NEVER, spent: Duration::MAX, ..default },
        tries => ExclusiveStage { tries, ..default },
    }
}

/// What a transaction writes at most, roughly: five times what TPC-C's do on average.
const BYTES_PER_TRANSACTION: f64 = 16e3;

/// Most memory that is taken ahead.
const MOST_PREALLOCATED: u64 = 6 << 30;

/// [`Settings`] as a record tells them.
#[derive(Serialize)]
struct Told<'a> {
    warmup_seconds: f64,
    measured_seconds: f64,
    rate_txn_per_s: f64,
    seed: u64,
    runs: usize,
    dir: Option<&'a PathBuf>,
    preallocated_bytes: u64,
    long_readers: usize,
    long_seconds: Option<f64>,
    gc_theta: f64,
    gc_queue_share: f64,
    gc_space_target: f64,
    gc_epoch_ms: f64,
    gc_interval_ms: f64,
    gc_epoch_commits: Option<u64>,
    gc_pacing: &'static str,
    gc_pass_over: bool,
    writers_move: bool,
    exclusive_wasted: u64,
    exclusive_accessed: Option<u64>,
    exclusive_tries: Option<u32>,
    row_cache_bytes: Option<u64>,
}

impl Settings {
    /// How to open the database of a variant.
    pub fn options(&self, variant: Variant) -> Options {
        let options = variant.medium.options();
        let options = match self.row_cache {
            Some(bytes) => options.row_cache(bytes),
            None => options,
        };
        options
            .exclusive_stage(self.stage)
            .protocol(variant.protocol)
            // What recovery takes is measured, not what an image spares it.
            .index_image(false)
            .collector(variant.gc)
            .gc(self.gc)
            .writers_move(self.writers_move)
            .durability(self.durability)
    }

    /// Bytes that a variant's medium takes beyond the loaded data before anything is timed, so that the system's
    /// clearing of fresh pages is not counted as the engine's time: about what the run will write, if a client on a
    /// core of its own writes `most_per_second` at most. Nothing in files.
    pub(crate) fn preallocated(&self, variant: Variant, most_per_second: f64) -> u64 {
        if matches!(variant.medium, Medium::File | Medium::Dax { .. }) {
            return 0;
        }
        let most = self.threads.min(machine::cores()) as f64 * most_per_second;
        let bytes_per_second = match self.pace.rate {
            0.0 => most,
            rate => most.min(rate * BYTES_PER_TRANSACTION),
        };
        let wanted = (self.pace.warmup + self.pace.measure).as_secs_f64() * bytes_per_second;
        (wanted as u64).min(MOST_PREALLOCATED).min(machine::available_memory() / 4)
    }

    /// For records: these settings, those of the workload, and what the medium took ahead.
    pub(crate) fn config(&self, preallocated_bytes: u64, workload: serde_json::Value) -> serde_json::Value {
        let told = Told {
            warmup_seconds: self.pace.warmup.as_secs_f64(),
            measured_seconds: self.pace.measure.as_secs_f64(),
            rate_txn_per_s: self.pace.rate,
            seed: self.seed,
            runs: self.runs,
            dir: self.dir.as_ref(),
            preallocated_bytes,
            long_readers: self.long_readers,
            long_seconds: self.long_seconds,
            gc_theta: self.gc.theta,
            gc_queue_share: self.gc.queue_share,
            gc_space_target: self.gc.space_target,
            gc_epoch_ms: self.gc.epoch.as_secs_f64() * 1e3,
            gc_interval_ms: self.gc.interval.as_secs_f64() * 1e3,
            gc_epoch_commits: self.gc.epoch_commits,
            gc_pacing: self.gc.pacing.name(),
            gc_pass_over: self.gc.bypass,
            writers_move: self.writers_move,
            exclusive_wasted: self.stage.wasted,
            exclusive_accessed: Some(self.stage.accessed).filter(|&rows| rows != u64::MAX),
            exclusive_tries: Some(self.stage.tries).filter(|&tries| tries != NEVER),
            row_cache_bytes: self.row_cache,
        };
        let mut all = serde_json::to_value(told).unwrap_or_default();
        if let (Some(all), serde_json::Value::Object(workload)) = (all.as_object_mut(), workload) {
            all.extend(workload);
        }
        all
    }
}

/// The name of an isolation level.
pub fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Serializable => "serializable",
        Isolation::Snapshot => "snapshot",
        Isolation::ReadCommitted => "read-committed",
    }
}

/// The name of a durability.
pub fn durability_name(durability: Durability) -> &'static str {
    match durability {
        Durability::Sync => "sync",
        Durability::Group => "group",
        Durability::None => "none",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_rate_limits_what_is_taken_ahead() {
        let taken = |seconds, rate| {
            let measure = Duration::from_secs(seconds);
            let variant = Variant::new(Medium::Dram, Collector::TB_COLLECT);
            let settings = Settings {
                variants: vec![variant],
                runs: 1,
                gc: GcOptions::default(),
                threads: 1,
                long_readers: 0,
                long_seconds: None,
                pace: Pace { warmup: Duration::ZERO, measure, rate },
                isolation: Isolation::Serializable,
                writers_move: true,
                stage: ExclusiveStage::default(),
                row_cache: None,
                durability: Durability::Sync,
                seed: 1,
                dir: None,
            };
            settings.preallocated(variant, 150e6)
        };
        assert_eq!(taken(2, 100.0), 3_200_000);
        assert!(taken(600, 1000.0) <= MOST_PREALLOCATED);
        assert!(taken(1, 0.0) <= 150_000_000 && taken(1, 1e9) == taken(1, 0.0));
    }

    #[test]
    fn media_have_their_names() {
        for name in
            ["file", "dram", "dax", "dax:eadr", "nvm:optane", "nvm:A", "nvm:E", "nvm:A-40", "nvm:E-40"]
        {
            assert_eq!(Medium::by_name(name).unwrap().to_string(), name);
        }
        assert_eq!(Medium::by_name("nvm").unwrap().to_string(), "nvm:optane");
        assert_eq!(Medium::by_name("nvm:C").unwrap().unit_bytes(), Some(128));
        assert!(Medium::by_name("nvm:F").unwrap_err().contains("there is no medium \"nvm:F\""));
    }
}
