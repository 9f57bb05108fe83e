//! The scale of the experiments: quick or full, and how far to shorten them if
//! even that does not fit the time.

use pantile_flash::Experiment;
use pantile_redo::Experiment as Recovery;

use crate::numbers::{FEWEST, MOST};
use crate::spec::unsynced;

/// The scale of all experiments.
#[derive(Clone, PartialEq, Debug)]
pub struct Size {
    /// `quick` or `full`.
    pub name: &'static str,
    /// Seconds that all runs together may take.
    pub budget: f64,
    /// Repetitions of a run for which there is to be time: runs are shortened until there is.
    pub fewest: usize,
    /// Most repetitions of a run.
    pub repetitions: usize,
    /// Whether runs are long enough for chains and space to settle.
    pub settles: bool,
    /// Warehouses of TPC-C.
    pub warehouses: u16,
    /// Tuples of YCSB.
    pub tuples: u64,
    /// Tuples of YCSB of 1 KB beside long transactions, and how many of them one scans.
    pub large: (u64, u64),
    /// Seconds of warm-up and of measurement beside these.
    pub beside: (f64, f64),
    /// Seconds of warm-up and of measurement. Where collectors are compared, the warm-up is that of
    /// updates alone, and fewer updates take longer.
    pub pace: (f64, f64),
    /// The same for TPC-C.
    pub tpcc_pace: (f64, f64),
    /// The same, where throughput is observed over time.
    pub long: (f64, f64),
    /// The same beside analytical queries, some of which take seconds.
    pub middle: (f64, f64),
    /// The same, where space or chains are observed.
    pub space: (f64, f64),
    /// The fixed rate of TPC-C in transactions per second, which every
    /// collector can reach.
    pub tpcc_rate: f64,
    /// The same for YCSB.
    pub ycsb_rate: f64,
    /// The same for TPC-C through a SQL server.
    pub sql_rate: f64,
    /// Size of a warehouse through a SQL server, in percent.
    pub sql_scale: u32,
    /// Warehouses where space is observed through a SQL server, and their size in percent.
    pub sql_space: (u16, u32),
    /// Seconds of warm-up and of measurement through a SQL server.
    pub sql: (f64, f64),
    /// Where writes are traced.
    pub traced: Experiment,
    /// The machine's cores.
    pub cores: usize,
    /// Shares of updates in percent (TB-8c).
    pub shares: Vec<u32>,
    /// Skews (TB-9, ST-11).
    pub thetas: Vec<f64>,
    /// Operations of a transaction (TB-10).
    pub ops: Vec<u32>,
    /// Emulated memories besides Optane (TB-15).
    pub memories: Vec<&'static str>,
    /// Numbers of analytical readers (ST-9).
    pub olap: Vec<usize>,
    /// Periods of collectors in milliseconds, or tens of commits (ST-10).
    pub periods: Vec<f64>,
    /// Percent of scans (ST-12).
    pub scans: Vec<u32>,
    /// Concurrency controls (ZN-23).
    pub protocols: Vec<&'static str>,
    /// Tuples of YCSB of 1 KB on designs that are compared (ZN-8).
    pub zen_tuples: u64,
    /// Shares of updates in percent, and skews there.
    pub zen_mixes: Vec<(u32, f64)>,
    /// How many times DRAM the memory is there.
    pub ratios: Vec<u32>,
    /// Shares of updates in percent, and skews, on two nodes (ZN-27).
    pub node_mixes: Vec<(u32, f64)>,
    /// What is opened after a kill (ZN-22).
    pub recoveries: Vec<Recovery>,
}

/// The factors by which experiments are shortened, tried in order until they
/// fit.
const SHORTER: [f64; 7] = [1.0, 0.75, 0.5, 0.35, 0.25, 0.15, 0.1];

/// The least seconds of measurement within which chains and space settle.
const SETTLED: f64 = 10.0;

/// As published: 4 million transactions for 100 GB, and memory of four times the DRAM.
fn recovery(megabytes: u64) -> Recovery {
    Recovery { megabytes, transactions: 40 * megabytes, ratio: 4, seed: pantile_redo::SEED }
}

impl Size {
    /// Ten minutes on two cores, including the page.
    pub fn quick(cores: usize) -> Self {
        Self {
            name: "quick",
            budget: 580.0,
            fewest: 1,
            repetitions: 6,
            settles: false,
            warehouses: 1,
            tuples: 100_000,
            large: (50_000, 20_000),
            beside: (0.3, 1.0),
            pace: (0.2, 0.45),
            tpcc_pace: (0.2, 0.45),
            long: (0.3, 3.0),
            middle: (0.3, 1.7),
            space: (0.3, 1.7),
            tpcc_rate: 4000.0,
            ycsb_rate: 10_000.0,
            sql_rate: 200.0,
            sql_scale: 10,
            sql_space: (1, 5),
            sql: (0.5, 1.5),
            traced: unsynced(1, 20_000, 7),
            cores,
            shares: vec![10, 60],
            thetas: vec![0.5, 0.9],
            ops: vec![1],
            memories: vec!["nvm:E-40"],
            olap: vec![1, 2],
            periods: vec![1.0, 10_000.0],
            scans: vec![10, 90],
            protocols: vec!["2pl-no-wait", "silo", "mvto"],
            zen_tuples: 50_000,
            zen_mixes: vec![(0, 0.0), (50, 0.0)],
            ratios: vec![4],
            node_mixes: vec![(50, 0.6)],
            recoveries: vec![recovery(100)],
        }
    }

    /// Three hours on two cores.
    pub fn full(cores: usize) -> Self {
        Self {
            name: "full",
            budget: 10_720.0,
            fewest: FEWEST,
            repetitions: MOST,
            settles: true,
            warehouses: 2,
            // At theta 0.9 a tuple is updated 2.3 times on average before a block is due for
            // collection. Of so few, each is updated at least 8 times within a run.
            tuples: 200_000,
            // 2 GB. A long scan takes half of it: so several end within the time.
            large: (2_000_000, 1_000_000),
            beside: (1.0, 20.0),
            pace: (0.5, 2.0),
            // With less warm-up TPC-C is measured before the first blocks are due.
            tpcc_pace: (3.0, 2.0),
            long: (1.0, 19.0),
            middle: (1.0, 14.0),
            // At these rates a row is updated 2.3 times, and the first blocks are due, within five
            // seconds. What a collector lets wait until then is not growth.
            space: (8.0, 14.0),
            // Below what the slowest reaches, and so much that blocks are reclaimed within the run.
            tpcc_rate: 16_000.0,
            // So much, and of so little data, that a row of stock is updated five times on average: with fewer updates
            // blocks are not reclaimed.
            sql_rate: 400.0,
            sql_scale: 20,
            sql: (1.0, 2.0),
            // The warehouses of the paper's first trace.
            traced: unsynced(5, 200_000, 32),
            shares: vec![10, 40, 60, 80],
            thetas: vec![0.5, 0.9, 0.95],
            ops: vec![1, 10, 80],
            memories: vec!["nvm:A-40", "nvm:B-40", "nvm:C-40", "nvm:D-40", "nvm:E-40"],
            olap: vec![1, 4],
            periods: vec![1.0, 100.0, 10_000.0],
            scans: vec![10, 50, 90],
            protocols: pantile_protocols::all().iter().map(|protocol| protocol.name()).collect(),
            zen_tuples: 200_000,
            // Read only, balanced and write heavy, without skew and with high skew.
            zen_mixes: vec![(0, 0.0), (50, 0.0), (90, 0.0), (0, 0.95), (50, 0.95), (90, 0.95)],
            ratios: vec![4, 8, 16],
            node_mixes: vec![(50, 0.6), (50, 0.95)],
            recoveries: vec![recovery(250), recovery(1000)],
            ..Self::quick(cores)
        }
    }

    /// The same with shorter runs, each size shorter than the one before.
    pub fn shorter(&self) -> impl Iterator<Item = Self> {
        let shorten = |seconds: f64, by: f64| (seconds * by * 100.0).round().max(2.0) / 100.0;
        SHORTER.iter().map(move |&by| Self {
            pace: (shorten(self.pace.0, by), shorten(self.pace.1, by)),
            tpcc_pace: (shorten(self.tpcc_pace.0, by), shorten(self.tpcc_pace.1, by)),
            long: (shorten(self.long.0, by), shorten(self.long.1, by)),
            middle: (shorten(self.middle.0, by), shorten(self.middle.1, by)),
            space: (shorten(self.space.0, by), shorten(self.space.1, by)),
            beside: (shorten(self.beside.0, by), shorten(self.beside.1, by)),
            sql: (shorten(self.sql.0, by), shorten(self.sql.1, by)),
            settles: self.settles && self.space.1 * by >= SETTLED,
            ..self.clone()
        })
    }

    /// Numbers of clients: one, doubled until every core has one, then twice as
    /// many, past the peak.
    pub fn threads(&self) -> Vec<usize> {
        let mut threads: Vec<_> =
            std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|&n| n < self.cores).collect();
        threads.extend([self.cores, self.cores * 2]);
        threads
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_reach_past_the_peak() {
        assert_eq!(Size::quick(1).threads(), [1, 2]);
        assert_eq!(Size::quick(2).threads(), [1, 2, 4]);
        assert_eq!(Size::full(6).threads(), [1, 2, 4, 6, 12]);
    }

    #[test]
    fn shorter_runs_still_last() {
        let all: Vec<_> = Size::quick(2).shorter().collect();
        assert_eq!(all[0], Size::quick(2));
        assert!(all.windows(2).all(|two| two[1].pace.1 < two[0].pace.1));
        assert!(all.iter().all(|size| size.pace.0 > 0.0 && size.long.1 > 0.2));
        let settling: Vec<_> = Size::full(2).shorter().map(|size| size.settles).collect();
        assert_eq!(settling[..3], [true, true, false], "half of the length is too short");
    }
}
