//! The workloads of the experiments with their parameters. Only this module
//! knows which benchmark each one is.

use pantile_bench::Result;
use pantile_bench::ch::Ch;
use pantile_bench::experiment::run_all;
use pantile_bench::load::Context;
use pantile_bench::partition::ByPartition;
use pantile_bench::record::Record;
use pantile_bench::settings::Settings;
use pantile_bench::tpcc::{Scale, Tpcc};
use pantile_bench::ycsb::{Beside, Mix, Ycsb};

/// A workload and its parameters.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Work {
    /// TPC-C, all five transactions.
    Tpcc {
        /// Warehouses.
        warehouses: u16,
    },
    /// YCSB of 100-byte tuples. Operations that do not update read.
    Ycsb {
        /// Tuples.
        tuples: u64,
        /// Operations of a transaction.
        ops: u32,
        /// Percentage of operations that update.
        updates: u32,
        /// Skew.
        theta: f64,
    },
    /// YCSB with some longer transactions among the short ones.
    Mixed {
        /// Tuples.
        tuples: u64,
        /// Operations of a short transaction.
        ops: u32,
        /// Skew.
        theta: f64,
        /// Percentage of transactions that are long.
        long_share: u32,
        /// Operations of a long transaction.
        long_ops: u32,
    },
    /// TPC-C beside analytical readers.
    Ch {
        /// Warehouses.
        warehouses: u16,
        /// Threads that run analytical queries.
        olap: usize,
    },
    /// YCSB of tuples of 1 KB and transactions of 16 operations (Zen+ 5.1).
    Zen {
        /// Tuples.
        tuples: u64,
        /// Percentage of operations that update.
        updates: u32,
        /// Skew.
        theta: f64,
        /// What the long transactions of one more client do, if any.
        beside: Option<Beside>,
    },
    /// Updates of single rows, beside scans.
    Kv {
        /// Rows.
        tuples: u64,
        /// Skew.
        theta: f64,
        /// Percentage of transactions that scan the table.
        scans: u32,
    },
}

/// The name of table scans in records.
pub const SCAN: &str = "table_scan";

/// Bytes of a YCSB tuple (TB-Collect 5.1).
const TUPLE_BYTES: u32 = 100;

/// Bytes of one of Zen+'s tuples, and its operations in a transaction (5.1).
const ZEN_TUPLE_BYTES: u32 = 1000;
const ZEN_OPS: u32 = 16;

impl Work {
    /// Runs it, with transactions sent to the node that most of their data is mapped to if that is
    /// wanted and it can. Passes each record to `each`.
    ///
    /// # Errors
    /// The errors of the run.
    pub fn run(
        &self,
        settings: &Settings,
        by_partition: bool,
        context: &Context<'_>,
        each: impl FnMut(Record),
    ) -> Result<()> {
        let seed = settings.seed;
        let tpcc = |warehouses| Tpcc { scale: Scale::full(warehouses), together: false, seed };
        let ycsb = |tuples, ops, updates, theta| Ycsb {
            tuples,
            tuple_bytes: TUPLE_BYTES,
            ops,
            mix: Mix { updates, ..Mix::default() },
            theta,
            seed,
            ..Ycsb::default()
        };
        match *self {
            Work::Tpcc { warehouses } if by_partition => {
                run_all(&ByPartition(tpcc(warehouses)), settings, context, each)
            }
            Work::Tpcc { warehouses } => run_all(&tpcc(warehouses), settings, context, each),
            Work::Ch { warehouses, olap } => {
                let oltp = settings.threads - olap;
                run_all(&Ch { tpcc: tpcc(warehouses), oltp, olap }, settings, context, each)
            }
            Work::Ycsb { tuples, ops, updates, theta } => {
                run_all(&ycsb(tuples, ops, updates, theta), settings, context, each)
            }
            Work::Mixed { tuples, ops, theta, long_share, long_ops } => {
                let mixed = Ycsb { long_share, long_ops, ..ycsb(tuples, ops, 50, theta) };
                run_all(&mixed, settings, context, each)
            }
            Work::Zen { tuples, updates, theta, beside } => {
                let zen =
                    Ycsb { tuple_bytes: ZEN_TUPLE_BYTES, beside, ..ycsb(tuples, ZEN_OPS, updates, theta) };
                match by_partition {
                    true => run_all(&ByPartition(zen), settings, context, each),
                    false => run_all(&zen, settings, context, each),
                }
            }
            Work::Kv { tuples, theta, scans } => {
                let kv = Ycsb { scan_share: scans, ..ycsb(tuples, 1, 100, theta) };
                run_all(&kv, settings, context, each)
            }
        }
    }

    /// The number of clients besides those that write.
    pub fn readers(&self) -> usize {
        match self {
            Work::Ch { olap, .. } => *olap,
            Work::Zen { beside, .. } => usize::from(beside.is_some()),
            _ => 0,
        }
    }

    /// The arguments with which `pantile bench` runs it.
    pub fn arguments(&self) -> String {
        match *self {
            Work::Tpcc { warehouses } => format!("tpcc --warehouses {warehouses}"),
            Work::Ycsb { tuples, ops, updates, theta } => {
                format!("ycsb --tuples {tuples} --ops {ops} --updates {updates} --theta {theta}")
            }
            Work::Mixed { tuples, ops, theta, long_share, long_ops } => format!(
                "ycsb --tuples {tuples} --ops {ops} --updates 50 --theta {theta} --long-share {long_share} --long-ops {long_ops}"
            ),
            Work::Ch { warehouses, olap } => format!("ch --warehouses {warehouses} --olap {olap}"),
            Work::Zen { tuples, updates, theta, beside } => {
                let beside = match beside {
                    None => String::new(),
                    Some(Beside::Scans(rows)) => format!(" --beside scans:{rows}"),
                    Some(Beside::Updates(rows)) => format!(" --beside updates:{rows}"),
                };
                format!(
                    "ycsb --tuples {tuples} --tuple-bytes {ZEN_TUPLE_BYTES} --ops {ZEN_OPS} --updates {updates} --theta {theta}{beside}"
                )
            }
            Work::Kv { tuples, theta, scans } => {
                format!("ycsb --tuples {tuples} --ops 1 --updates 100 --theta {theta} --scan-share {scans}")
            }
        }
    }

    /// The flag that sets the number of writing threads.
    pub fn threads_flag(&self) -> &'static str {
        match self {
            Work::Ch { .. } => "--oltp",
            _ => "--threads",
        }
    }

    /// Seconds that a run without transactions takes, by the initial estimate: loading, checking,
    /// closing, reopening and checking again.
    pub fn overhead(&self) -> f64 {
        match *self {
            Work::Tpcc { warehouses } | Work::Ch { warehouses, .. } => 0.9 * f64::from(warehouses),
            Work::Ycsb { tuples, .. } | Work::Mixed { tuples, .. } | Work::Kv { tuples, .. } => {
                0.3 + 4.5e-7 * tuples as f64
            }
            Work::Zen { tuples, .. } => 0.1 + 5e-6 * tuples as f64,
        }
    }
}
