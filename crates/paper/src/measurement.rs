//! The part of a run's record that the report needs.

use std::collections::BTreeMap;

use pantile_bench::cpu::MOST_FOR_OTHERS;
use pantile_bench::record::Record;
use pantile_bench::scaling;
use pantile_flash::Outcome;
use pantile_redo::Opened;
use serde::{Deserialize, Serialize};

/// The measurements of one run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// Transactions per second.
    pub txn_per_s: f64,
    /// Analytical queries per second, if there were any.
    pub queries_per_s: Option<f64>,
    /// By kind of transaction.
    pub kinds: BTreeMap<String, KindSummary>,
    /// Bytes that the medium was asked to write, in whole write units if it has
    /// them.
    pub bytes_written: f64,
    /// Syncs of the device.
    pub syncs: u64,
    /// Transactions measured.
    pub transactions: u64,
    /// Bytes written per byte of payload.
    pub write_amplification: Option<f64>,
    /// Versions that the collector examined.
    pub versions_traversed: u64,
    /// Mean length of chains.
    pub chain_mean: f64,
    /// Longest chain.
    pub chain_max: u64,
    /// Versions of a tuple that take space, on average.
    pub stored_mean: f64,
    /// Versions examined per tuple.
    pub accesses_per_tuple: f64,
    /// Blocks that were reclaimed while it was measured; older results, and those of a SQL server,
    /// do not say.
    #[serde(default)]
    pub blocks_reclaimed: Option<u64>,
    /// Blocks that were reclaimed beside a transaction older than they.
    pub blocks_bypassed: u64,
    /// Live versions that the collector copied.
    pub survivors_relocated: u64,
    /// Tuples in the end.
    pub tuples: u64,
    /// Whether the emulated memory was more than the bound off what was configured.
    pub is_off_bound: bool,
    /// The share of the processors' time that other programs took, if known.
    pub others_share: Option<f64>,
    /// Bytes of contents read when opening.
    pub recovered_bytes: Option<u64>,
    /// Seconds that opening took.
    pub recovery_seconds: Option<f64>,
    /// The individual seconds of the measurement.
    pub seconds: Vec<Second>,
    /// The costs of a transaction, for the model of larger machines.
    pub costs: scaling::Run,
    /// What a simulated device did with the trace of the run, if it was traced.
    #[serde(default)]
    pub device: Option<Device>,
}

/// What a simulated SSD did with a trace.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Device {
    /// Seconds that it took with one request under way.
    pub seconds_1: f64,
    /// The same with 32.
    pub seconds_32: f64,
    /// Pages that it wrote for each page that it was asked to write.
    pub write_amplification: f64,
    /// Blocks that it erased.
    pub erases: u64,
    /// Pages that were read from it; older results do not say.
    #[serde(default)]
    pub pages_read: Option<u64>,
}

/// Rate and latency of one kind of transaction.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct KindSummary {
    /// Transactions per second.
    pub per_s: f64,
    /// Mean latency in microseconds.
    pub mean: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
}

/// Less growth of space than this many bytes is about none.
const HARDLY: f64 = 1e5;

/// One second of the measurement.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Second {
    /// Its exact length.
    pub seconds: f64,
    /// Transactions that ended in it.
    pub transactions: u64,
    /// Bytes of the medium in use at its end.
    pub medium_bytes: u64,
    /// Bytes of DRAM in use at its end.
    pub dram_bytes: u64,
    /// Versions of a tuple that took space at its end, on average; a SQL server does not tell.
    pub stored_mean: Option<f64>,
    /// Versions examined in it per tuple; a SQL server does not tell.
    pub accesses_per_tuple: Option<f64>,
    /// Live versions that the collector copied in it.
    #[serde(default)]
    pub survivors_relocated: u64,
}

impl Second {
    /// Whether it is long enough for its figures to mean something: the last one may be shorter.
    pub fn is_whole(&self) -> bool {
        self.seconds > 0.5
    }

    /// Transactions per second.
    pub fn rate(&self) -> f64 {
        self.transactions as f64 / self.seconds
    }
}

impl Measurement {
    /// A measurement that has every figure.
    pub fn example() -> Self {
        let kinds =
            ["new_order", "payment", "order_status", "delivery", "stock_level", "transaction", "table_scan"];
        let kind = KindSummary { per_s: 1e6, mean: 1.0, p95: 1.0, p99: 1.0 };
        let second = |n: u64| Second {
            seconds: 1.0,
            transactions: 1_000_000,
            medium_bytes: n << 20,
            dram_bytes: n << 20,
            stored_mean: Some(1.0),
            accesses_per_tuple: Some(1.0),
            survivors_relocated: 0,
        };
        Self {
            txn_per_s: 1e6,
            queries_per_s: Some(1.0),
            kinds: kinds.into_iter().map(|name| (name.to_owned(), kind)).collect(),
            bytes_written: 1e9,
            transactions: 1_000_000,
            write_amplification: Some(1.0),
            versions_traversed: 1,
            chain_mean: 1.0,
            chain_max: 1,
            stored_mean: 1.0,
            accesses_per_tuple: 1.0,
            tuples: 1,
            recovered_bytes: Some(1),
            recovery_seconds: Some(1.0),
            seconds: (0..8).map(second).collect(),
            device: Some(Device {
                seconds_1: 1.0,
                seconds_32: 1.0,
                write_amplification: 1.0,
                erases: 1,
                pages_read: Some(1),
            }),
            ..Self::default()
        }
    }

    /// What was traced, and what a device made of it.
    pub fn of_device(transactions: u64, outcome: &Outcome) -> Self {
        let Outcome { one, many, .. } = outcome;
        Self {
            transactions,
            bytes_written: one.host_bytes() as f64,
            device: Some(Device {
                seconds_1: one.micros / 1e6,
                seconds_32: many.micros / 1e6,
                write_amplification: one.write_amplification(),
                erases: one.erases,
                pages_read: Some(one.read_pages),
            }),
            ..Self::default()
        }
    }

    /// The opening that took the median time.
    pub fn of_openings(transactions: u64, mut opened: Vec<Opened>) -> Self {
        opened.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        let median = opened.get(opened.len() / 2);
        Self {
            transactions,
            recovered_bytes: median.map(|opened| opened.bytes),
            recovery_seconds: median.map(|opened| opened.seconds),
            ..Self::default()
        }
    }

    /// Whether other programs took so much of the processors that the figures are
    /// doubtful.
    pub fn is_disturbed(&self) -> bool {
        self.others_share.is_some_and(|share| share > MOST_FOR_OTHERS)
    }

    /// How much the space in use, on the medium and in DRAM together, grew between
    /// the ends of the first and of the last second, in bytes, by the line that fits
    /// the seconds best: collectors free space by and by, or much of it at a time.
    pub fn growth(&self) -> Option<f64> {
        Some(self.medium_growth()? + self.dram_growth()?)
    }

    /// Whether that is so much that it can be compared.
    pub fn has_grown(&self) -> bool {
        self.growth().is_some_and(|bytes| bytes > HARDLY)
    }

    /// The same as something to divide by: space that shrank, or hardly grew, counts as
    /// 100 kB, so that it is less than what grew.
    pub fn grown(&self) -> Option<f64> {
        self.growth().map(|bytes| bytes.max(HARDLY))
    }

    /// The same, of the medium alone.
    pub fn medium_growth(&self) -> Option<f64> {
        self.growth_of(|second| second.medium_bytes)
    }

    /// The same, of DRAM alone.
    pub fn dram_growth(&self) -> Option<f64> {
        self.growth_of(|second| second.dram_bytes)
    }

    fn growth_of(&self, bytes: impl Fn(&Second) -> u64) -> Option<f64> {
        let count = self.seconds.len() as f64;
        let middle = (count - 1.0) / 2.0;
        let from_middle = || (0..self.seconds.len()).map(|n| n as f64 - middle);
        let squares: f64 = from_middle().map(|x| x * x).sum();
        let products: f64 =
            from_middle().zip(&self.seconds).map(|(x, second)| x * bytes(second) as f64).sum();
        (squares > 0.0).then(|| products / squares * (count - 1.0))
    }

    /// The throughput of each whole second.
    pub fn rates(&self) -> Vec<f64> {
        self.seconds.iter().filter(|second| second.is_whole()).map(Second::rate).collect()
    }

    /// The standard deviation of the seconds' throughput, as a share of their
    /// mean.
    pub fn unsteadiness(&self) -> Option<f64> {
        let rates = self.rates();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
        (rates.len() > 1 && mean > 0.0).then(|| variance.sqrt() / mean)
    }

    /// The throughput of the last quarter of the seconds, relative to the first
    /// quarter.
    pub fn decay(&self) -> Option<f64> {
        let rates = self.rates();
        let quarter = rates.len() / 4;
        let sum = |part: &[f64]| part.iter().sum::<f64>();
        let first = sum(&rates[..quarter]);
        (quarter > 0 && first > 0.0).then(|| sum(&rates[rates.len() - quarter..]) / first)
    }

    /// Bytes per second that opening the database again reads.
    pub fn recovery_bytes_per_s(&self) -> Option<f64> {
        let (bytes, seconds) = self.recovered_bytes.zip(self.recovery_seconds)?;
        (seconds > 0.0).then(|| bytes as f64 / seconds)
    }
}

impl From<&Record> for Measurement {
    fn from(record: &Record) -> Self {
        let (io, counted) = (&record.medium_io, &record.medium_io.counted);
        let kinds = record.latency_us.iter().map(|(name, summary)| {
            let per_s = if record.seconds > 0.0 { summary.count as f64 / record.seconds } else { 0.0 };
            let kind = KindSummary { per_s, mean: summary.mean, p95: summary.p95, p99: summary.p99 };
            ((*name).to_owned(), kind)
        });
        Self {
            txn_per_s: record.txn_per_s,
            queries_per_s: record.queries_per_s,
            kinds: kinds.collect(),
            bytes_written: io.unit_bytes.map_or(counted.bytes_written, |unit| unit * counted.units_written)
                as f64,
            syncs: counted.syncs,
            transactions: record.transactions,
            write_amplification: io.write_amplification,
            versions_traversed: record.collector.versions_traversed,
            chain_mean: record.chains.sampled.mean,
            stored_mean: record.chains.sampled.stored_mean,
            blocks_reclaimed: Some(record.collector.blocks_reclaimed),
            blocks_bypassed: record.collector.blocks_bypassed,
            survivors_relocated: record.collector.survivors_relocated,
            tuples: record.space.tuples,
            is_off_bound: record.emulation.as_ref().is_some_and(|emulation| !emulation.within_bound),
            others_share: record.cpu.others_share,
            chain_max: record.chains.sampled.max,
            accesses_per_tuple: record.chains.accesses_per_tuple,
            recovered_bytes: record.recovery.map(|recovery| recovery.counted.bytes_scanned),
            recovery_seconds: record.recovery.map(|recovery| recovery.counted.seconds),
            seconds: record.per_second.iter().map(Second::from).collect(),
            costs: scaling::Run::of(record),
            device: None,
        }
    }
}

impl From<&pantile_bench::record::Second> for Second {
    fn from(second: &pantile_bench::record::Second) -> Self {
        Self {
            seconds: second.seconds,
            transactions: second.transactions,
            medium_bytes: second.used_bytes,
            dram_bytes: second.dram_bytes,
            stored_mean: Some(second.stored_mean),
            accesses_per_tuple: Some(second.accesses_per_tuple),
            survivors_relocated: second.survivors_relocated,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(rates: &[u64]) -> Measurement {
        let second = |(n, &transactions): (usize, &u64)| Second {
            seconds: 1.0,
            transactions,
            medium_bytes: 1000 * n as u64,
            dram_bytes: 10 * n as u64,
            ..Second::default()
        };
        Measurement { seconds: rates.iter().enumerate().map(second).collect(), ..Measurement::default() }
    }

    #[test]
    fn growth_and_decay_are_from_the_first_to_the_last() {
        let falling = run(&[100, 90, 80, 50]);
        assert_eq!(falling.growth(), Some(3030.0));
        assert_eq!((falling.grown(), run(&[]).grown()), (Some(HARDLY), None));
        assert!(!falling.has_grown() && run(&[1; 200]).has_grown());
        assert_eq!((falling.medium_growth(), falling.dram_growth()), (Some(3000.0), Some(30.0)));
        assert_eq!(falling.decay(), Some(0.5));
        assert!(falling.unsteadiness().unwrap() > 0.2);
        assert_eq!(run(&[5, 5, 5, 5]).unsteadiness(), Some(0.0));
    }

    #[test]
    fn growth_is_that_of_a_line_and_not_of_two_seconds() {
        let second = |medium_bytes| Second { seconds: 1.0, medium_bytes, ..Second::default() };
        let taken = |bytes: &[u64]| {
            let seconds = bytes.iter().copied().map(second).collect();
            Measurement { seconds, ..Measurement::default() }.medium_growth()
        };
        assert_eq!(taken(&[0, 500, 1000, 1500, 0]), Some(400.0), "much has just been freed");
        assert_eq!(taken(&[7, 7, 7]), Some(0.0));
        assert_eq!(taken(&[3000, 2000, 1000, 0]), Some(-3000.0));
    }

    #[test]
    fn the_median_opening_counts() {
        let opened = |seconds, bytes| Opened { seconds, bytes };
        let measured = Measurement::of_openings(7, vec![opened(3.0, 30), opened(1.0, 10), opened(2.0, 20)]);
        assert_eq!((measured.recovery_seconds, measured.recovered_bytes), (Some(2.0), Some(20)));
        assert_eq!(measured.recovery_bytes_per_s(), Some(10.0));
    }

    #[test]
    fn short_runs_have_none() {
        assert_eq!((run(&[]).growth(), run(&[1]).growth()), (None, None));
        assert_eq!((run(&[1, 2]).decay(), run(&[]).unsteadiness()), (None, None));
        assert_eq!(run(&[0, 0, 0, 0]).decay(), None);
    }
}
