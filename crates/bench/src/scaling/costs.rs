//! What a transaction costs, from runs with one client and with two.

use serde::{Deserialize, Serialize};

use crate::baseline::median;
use crate::error::{Error, Result};
use crate::record::Record;
use crate::settings::Medium;

/// What a run tells of its transactions; seconds and counts are per
/// transaction unless they say otherwise.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// Clients.
    pub threads: usize,
    /// Transactions a second.
    pub txn_per_s: f64,
    /// Cores that the clients had on average.
    pub cores_had: f64,
    /// Processor time of clients, without what they waited for the medium.
    pub cpu: f64,
    /// Processor time of the engine's own threads, but for taking memory from
    /// the system, which is part of the emulation.
    pub background: f64,
    /// Attempts that met a conflict.
    pub aborts: f64,
    /// What the medium did.
    pub io: Io,
}

/// What the medium does for a transaction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Io {
    /// Bytes written, in whole units.
    pub written_bytes: f64,
    /// Seconds that the emulated device takes for them.
    pub device_write: f64,
    /// Seconds waited for it in fences.
    pub write_wait: f64,
    /// Units read that the caches did not have.
    pub units_read: f64,
    /// Bytes of a unit.
    pub unit_bytes: f64,
    /// Seconds waited because of them.
    pub read_wait: f64,
}

impl Run {
    /// What a record tells.
    pub fn of(record: &Record) -> Self {
        let per_txn = |total: f64| total / record.transactions as f64;
        let (io, clients) = (&record.medium_io.counted, record.cpu.client_seconds());
        let seconds = |picoseconds: u64| picoseconds as f64 / 1e12;
        let [device_write, write_wait, read_wait] =
            [io.device_write_ps, io.write_wait_ps, io.read_wait_ps].map(seconds);
        let waited = write_wait + read_wait;
        let unit_bytes = record.medium_io.unit_bytes.unwrap_or(0) as f64;
        Self {
            threads: record.threads,
            txn_per_s: record.txn_per_s,
            cores_had: clients / record.seconds,
            cpu: per_txn((clients - waited).max(0.0)),
            background: per_txn(record.cpu.background_seconds),
            aborts: record.aborts_per_txn,
            io: Io {
                written_bytes: per_txn(io.units_written as f64) * unit_bytes,
                device_write: per_txn(device_write),
                write_wait: per_txn(write_wait),
                units_read: per_txn(io.units_read as f64),
                unit_bytes,
                read_wait: per_txn(read_wait),
            },
        }
    }

    /// Processor time of one attempt; one that is given up is taken to cost
    /// as much as one that commits.
    fn cpu_per_attempt(&self) -> f64 {
        self.cpu / (1.0 + self.aborts)
    }
}

/// What a transaction costs, whatever the number of threads. Times are in
/// seconds of a core of the machine that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Costs {
    /// The workload.
    pub workload: String,
    /// The collector.
    pub gc: String,
    /// The medium.
    pub medium: Medium,
    /// Processor time of an attempt of a thread that is alone.
    pub cpu: f64,
    /// How often an attempt touches lines that other threads change, if
    /// what two threads cost more than one is transfers of such lines.
    pub shared_touches: f64,
    /// Seconds of one transfer.
    pub transfer: f64,
    /// Attempts that meet a conflict, for each other thread.
    pub aborts: f64,
    /// Processor time of the engine's own threads, but for taking memory from
    /// the system, which is part of the emulation.
    pub background: f64,
    /// What the medium does for a transaction of a thread that is alone.
    pub io: Io,
    /// How far the runs of one kind are apart in processor time: the largest
    /// less the smallest, as a share of their median. What is finer than that
    /// is noise.
    pub spread: f64,
}

/// The costs that runs with one client and runs with two, otherwise the same,
/// tell; `transfer` is [`super::transfer_seconds`] of the same machine. Of several runs
/// the medians count.
///
/// # Errors
/// [`Error::Setting`] if the runs do not belong together or say too little.
pub fn calibrate(one: &[Record], two: &[Record], transfer: f64) -> Result<Costs> {
    let wrong = |reason: String| Err(Error::Setting(reason));
    let Some(first) = one.first() else { return wrong("no run with one client to calibrate with".into()) };
    for (records, threads) in [(one, 1), (two, 2)] {
        if records.is_empty() || records.iter().any(|record| !fits(record, first, threads)) {
            return wrong(format!(
                "to calibrate for {}, {}, {} takes complete runs of it with {threads} client(s)",
                first.workload, first.medium, first.gc
            ));
        }
    }
    let medium = Medium::by_name(&first.medium).map_err(Error::Setting)?;
    let (one, two): (Vec<_>, Vec<_>) = (one.iter().map(Run::of).collect(), two.iter().map(Run::of).collect());
    calibrate_with(first.workload, &first.gc, medium, &one, &two, transfer)
}

/// Whether the run can be used beside the first, as one with this many clients.
fn fits(record: &Record, first: &Record, threads: usize) -> bool {
    let variant = |record: &Record| (record.workload, record.gc.clone(), record.medium.clone());
    record.threads == threads && record.transactions > 0 && variant(record) == variant(first)
}

/// As [`calibrate`], with what runs of a workload, collector and medium told.
///
/// # Errors
/// [`Error::Setting`] if there are none of a kind, or the medium is not memory.
pub fn calibrate_with(
    workload: &str,
    gc: &str,
    medium: Medium,
    one: &[Run],
    two: &[Run],
    transfer: f64,
) -> Result<Costs> {
    if !matches!(medium, Medium::Dram | Medium::Nvm(_)) {
        return Err(Error::Setting(format!("the model knows memory, dram or nvm, and not {medium}")));
    }
    if one.is_empty() || two.is_empty() {
        let what =
            format!("to calibrate for {workload}, {medium}, {gc} takes runs with 1 and with 2 clients");
        return Err(Error::Setting(what));
    }
    let alone = |of: fn(&Run) -> f64| middle(one, of);
    let cpu = alone(Run::cpu_per_attempt);
    let growth = (middle(two, Run::cpu_per_attempt) - cpu).max(0.0);
    Ok(Costs {
        workload: workload.into(),
        gc: gc.into(),
        medium,
        cpu,
        // Of two threads, the other was the last to touch a line half the time.
        shared_touches: 2.0 * growth / transfer,
        transfer,
        aborts: middle(two, |run| run.aborts),
        background: middle(&[one, two].concat(), |run| run.background),
        io: Io {
            written_bytes: alone(|run| run.io.written_bytes),
            device_write: alone(|run| run.io.device_write),
            write_wait: alone(|run| run.io.write_wait),
            units_read: alone(|run| run.io.units_read),
            unit_bytes: alone(|run| run.io.unit_bytes),
            read_wait: alone(|run| run.io.read_wait),
        },
        spread: spread(one).max(spread(two)),
    })
}

/// Largest less smallest processor time, as a share of the median.
fn spread(runs: &[Run]) -> f64 {
    let times = || runs.iter().map(Run::cpu_per_attempt);
    let range = times().fold(0.0, f64::max) - times().fold(f64::INFINITY, f64::min);
    range / middle(runs, Run::cpu_per_attempt)
}

fn middle(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    median(&runs.iter().map(of).collect::<Vec<_>>()).unwrap_or(0.0)
}

impl Io {
    /// Seconds of the device's work that passed before the fence: the engine
    /// had other things to do meanwhile.
    pub fn overlap(&self) -> f64 {
        (self.device_write - self.write_wait).max(0.0)
    }
}
