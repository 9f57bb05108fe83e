//! The record of one run, as it goes into JSON.
//!
//! Units are in the names; what means nothing in a run is absent.

use pantile::stats::{CollectorStats, MediumStats, TableSpace};
use pantile_nvm::{DEVIATION_BOUND, Measured};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use crate::cpu::Cpu;
use crate::latency::LatencySummary;

/// The record of one run.
#[derive(Clone, Debug, Serialize)]
pub struct Record {
    /// The workload: `ycsb`, `tpcc`, `ch`.
    pub workload: &'static str,
    /// The engine.
    pub engine: &'static str,
    /// The collector.
    pub gc: String,
    /// What kept transactions apart.
    pub protocol: &'static str,
    /// The medium.
    pub medium: String,
    /// The isolation level.
    pub isolation: &'static str,
    /// When commits were acknowledged.
    pub durability: &'static str,
    /// Clients.
    pub threads: usize,
    /// Seconds measured.
    pub seconds: f64,
    /// Number of the run among those of its variant, from 1.
    pub run: usize,
    /// Whether it was told to stop before its time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The commit that the program was built from.
    pub commit: &'static str,
    /// Whether the program was built without optimisation: its figures mean nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub debug_build: bool,
    /// The machine.
    pub machine: String,
    /// Every setting.
    pub config: serde_json::Value,
    /// Transactions that ended, rolled back by their own input or committed.
    pub transactions: u64,
    /// The same per second.
    pub txn_per_s: f64,
    /// Analytical queries per second, where clients beside those of the
    /// transactions run any; `transactions` does not count them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries_per_s: Option<f64>,
    /// New-Orders committed per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpmc: Option<f64>,
    /// Attempts that met a conflict and were made again, per transaction.
    pub aborts_per_txn: f64,
    /// Transactions that rolled back because their input says so.
    pub rollbacks: u64,
    /// By kind of transaction, or query.
    #[serde(serialize_with = "as_map")]
    pub latency_us: Vec<(&'static str, LatencySummary)>,
    /// What the medium did while measuring.
    pub medium_io: MediumIo,
    /// Processor time that the process, and other programs, took while measuring.
    pub cpu: Cpu,
    /// What the collector did while measuring: counters as differences, its
    /// gauges and the longest pause as at the end.
    pub collector: CollectorStats,
    /// What the data takes.
    pub space: Space,
    /// How many versions a tuple has when measuring ends.
    pub chains: Chains,
    /// Loading, where the data was not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// What was found when a database of an earlier run was opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<Reopened>,
    /// What the device alone can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// How well an emulated medium was emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emulation: Option<Emulation>,
    /// Opening the database again after the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recovery: Option<Recovery>,
    /// Whether the data is what it should be, after the run and after opening it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
    /// The seconds of measuring, one by one.
    pub per_second: Vec<Second>,
}

/// One second of measuring: counts of what happened in it, and gauges as they
/// are at its end.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Second {
    /// Its number, from 1.
    pub second: usize,
    /// How long it was: the last one may be shorter than a second.
    pub seconds: f64,
    /// Transactions that ended.
    pub transactions: u64,
    /// Analytical queries that ended, where clients run any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<u64>,
    /// Bytes of the medium that are taken, and for media in memory those that were taken
    /// before anything was timed.
    pub medium_bytes: u64,
    /// The part of it in blocks in use.
    pub used_bytes: u64,
    /// Bytes of the newest versions of all tuples.
    pub live_bytes: u64,
    /// DRAM for control data.
    pub dram_bytes: u64,
    /// The part of it in tiles.
    pub tile_bytes: u64,
    /// Blocks freed.
    pub blocks_reclaimed: u64,
    /// Live versions copied out of blocks.
    pub survivors_relocated: u64,
    /// Blocks that are obsolete for the most part.
    pub pending_blocks: u64,
    /// Blocks that nobody can see into.
    pub queued_blocks: u64,
    /// Blocks being emptied and freed.
    pub frozen_blocks: u64,
    /// Blocks that wait for a long transaction.
    pub long_tx_blocks: u64,
    /// Tiles kept for chains that long transactions walk.
    pub kept_tiles: u64,
    /// Blocks that a queue may hold before it is worked off.
    pub queue_capacity: u64,
    /// Mean length of the chains of some tuples.
    pub chain_mean: f64,
    /// Versions that a tuple has on the medium, on average.
    pub stored_mean: f64,
    /// Versions that transactions and the collector looked at, per tuple.
    pub accesses_per_tuple: f64,
}

impl Second {
    /// How many times the bytes of live versions the blocks in use take.
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.used_bytes, self.live_bytes)
    }
}

fn ratio(used_bytes: u64, live_bytes: u64) -> Option<f64> {
    (live_bytes > 0).then(|| used_bytes as f64 / live_bytes as f64)
}

/// How many versions a tuple has when measuring ends, as a sample shows.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Chains {
    /// What the sample shows.
    #[serde(flatten)]
    pub sampled: pantile::stats::Chains,
    /// Versions that transactions and the collector looked at while
    /// measuring, per tuple.
    pub accesses_per_tuple: f64,
}

/// What the medium did while measuring.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MediumIo {
    /// Bytes of the contents of commits, headers included.
    pub payload_bytes: u64,
    /// What the medium counts.
    #[serde(flatten)]
    pub counted: MediumStats,
    /// Bytes of a write unit, where the medium has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit_bytes: Option<u64>,
    /// Bytes written, in whole units where the medium has them, per byte of payload.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_amplification: Option<f64>,
}

/// What the data takes when measuring ends.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Space {
    /// Of the medium, with what was taken ahead of its use: emulated memory takes what a run will write.
    pub medium_bytes: u64,
    /// The part of `medium_bytes` in blocks in use.
    pub used_bytes: u64,
    /// Of DRAM, for control data.
    pub dram_bytes: u64,
    /// The part of `dram_bytes` in tiles.
    pub tile_bytes: u64,
    /// Of the medium: slots of superseded versions.
    pub obsolete_bytes: u64,
    /// Of the medium: slots that are not written yet, of blocks in use.
    pub unfilled_bytes: u64,
    /// Of the medium: blocks and chunks that nothing is in.
    pub free_bytes: u64,
    /// Of the medium, by table.
    pub tables: Vec<TableSpace>,
    /// The newest versions of all tuples.
    pub live_bytes: u64,
    /// How fast `used_bytes` grows against `live_bytes` in the last half of
    /// measuring, in percent of itself; not of runs under ten seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio_trend_percent_per_minute: Option<f64>,
    /// Memory of the process, mapped files included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resident_bytes: Option<u64>,
    /// Tuples.
    pub tuples: u64,
    /// DRAM for control data per tuple, before the first transaction.
    pub dram_bytes_per_tuple: f64,
}

impl Space {
    /// How many times the bytes of live versions the blocks in use take.
    pub fn ratio(&self) -> Option<f64> {
        ratio(self.used_bytes, self.live_bytes)
    }
}

/// Loading.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Load {
    /// Time taken.
    pub seconds: f64,
    /// Tuples loaded.
    pub tuples: u64,
}

/// What the device alone can do.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Baseline {
    /// Half the overwrites of one page of a file, written before, and
    /// `fdatasync`, took at most this long.
    pub file_sync_us: f64,
}

/// The bandwidth that an emulated medium reached just before the run, on one
/// thread, beside the one that its configuration asks for.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Emulation {
    /// Sequential reads.
    pub read_bytes_per_s: f64,
    /// The share by which that is above what was asked for, or below if negative.
    pub read_deviation: f64,
    /// Sequential writes.
    pub write_bytes_per_s: f64,
    /// As `read_deviation`.
    pub write_deviation: f64,
    /// The largest deviation, up or down, that goes without a warning.
    pub bound: f64,
    /// Whether both deviations are within it.
    pub within_bound: bool,
}

impl From<Measured> for Emulation {
    fn from(measured: Measured) -> Self {
        Self {
            read_bytes_per_s: measured.read.bytes_per_s,
            read_deviation: measured.read.deviation(),
            write_bytes_per_s: measured.write.bytes_per_s,
            write_deviation: measured.write.deviation(),
            bound: DEVIATION_BOUND,
            within_bound: measured.is_within_bound(),
        }
    }
}

/// Opening a database that holds data.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Recovery {
    /// What the engine counts.
    #[serde(flatten)]
    pub counted: pantile::stats::Recovery,
    /// Bytes scanned per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<f64>,
}

/// A database of an earlier run.
#[derive(Clone, Debug, Serialize)]
pub struct Reopened {
    /// Opening it.
    pub recovery: Recovery,
    /// Whether it had been closed; if not, its process was killed.
    pub was_closed: bool,
    /// Whether the data was what it should be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consistency: Option<Consistency>,
}

/// Conditions that the data fulfils, or not.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Consistency {
    /// Conditions checked.
    pub checked: u32,
    /// Conditions that do not hold.
    pub failed: u32,
    /// Where not, at most [`Consistency::MOST`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

impl Consistency {
    /// Most failures that are told one by one.
    pub const MOST: usize = 20;

    /// This check and an `earlier` one of the same conditions, as one: the
    /// worse of both, with what failed in either.
    #[must_use]
    pub fn after(mut self, earlier: Self) -> Self {
        self.failed = self.failed.max(earlier.failed);
        let reopened = self.failures.into_iter().map(|failure| format!("after reopening, {failure}"));
        self.failures = earlier.failures.into_iter().chain(reopened).take(Self::MOST).collect();
        self
    }
}

fn as_map<S: Serializer>(kinds: &[(&'static str, LatencySummary)], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(kinds.len()))?;
    for (kind, summary) in kinds {
        map.serialize_entry(kind, summary)?;
    }
    map.end()
}

/// Records as JSON has them: the one of a single run, or an array of those of several, however many there are.
#[derive(Clone, Copy, Debug)]
pub struct Records<'a> {
    /// The records.
    pub records: &'a [Record],
    /// Whether several runs were asked for.
    pub of_several: bool,
}

impl Serialize for Records<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.records {
            [one] if !self.of_several => one.serialize(to),
            records => records.serialize(to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_nvm::Reached;

    #[test]
    fn a_deviation_above_the_bound_is_in_the_record() {
        let reached = |of_wanted: f64| Reached { bytes_per_s: 5e9 * of_wanted, wanted_bytes_per_s: 5e9 };
        for (read, write, within_bound) in
            [(1.0, 1.0, true), (1.09, 0.91, true), (0.88, 1.0, false), (1.0, 1.12, false)]
        {
            let measured = Measured { read: reached(read), write: reached(write) };
            let told = serde_json::to_value(Emulation::from(measured)).unwrap();
            assert_eq!(told["within_bound"], within_bound, "{told}");
            assert_eq!(told["bound"], 0.1);
            let deviation = told["read_deviation"].as_f64().unwrap();
            assert!((deviation - (read - 1.0)).abs() < 1e-9, "{told}");
        }
    }

    #[test]
    fn two_checks_become_the_worse_of_both() {
        let check = |failed, failures: &[&str]| Consistency {
            checked: 12,
            failed,
            failures: failures.iter().map(ToString::to_string).collect(),
        };
        assert_eq!(check(0, &[]).after(check(0, &[])), check(0, &[]));
        assert_eq!(check(1, &["b"]).after(check(0, &[])), check(1, &["after reopening, b"]));
        assert_eq!(check(0, &[]).after(check(2, &["a", "b"])), check(2, &["a", "b"]));
    }
}
