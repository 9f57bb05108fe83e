//! Zen+: a machine of two nodes, and where its memory is used (5.6). Both are simulated.

use super::Finding;
use super::help::{TB, grouped, need, tpcc};
use crate::figure::{Figure, Origin, Point, Series};
use crate::numbers::{Spread, times};
use crate::results::{Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
use crate::workload::Work;

/// How many times as long remote memory takes in all of these runs: in the middle of the published "2-3x".
const REMOTE_COST: f64 = 2.5;

const NODES: usize = 2;

/// What is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Design {
    Remote,
    Naive,
    Soft,
    Local,
}

/// From the slowest to the fastest, as published.
const DESIGNS: [Design; 4] = [Design::Remote, Design::Naive, Design::Soft, Design::Local];

/// The share of accesses that go to the other node.
#[derive(Clone, Copy)]
struct RemoteShare {
    reads: f64,
    writes: f64,
}

impl Design {
    fn name(self) -> &'static str {
        match self {
            Design::Remote => "remote",
            Design::Naive => "naive",
            Design::Soft => "soft",
            Design::Local => "local",
        }
    }

    /// The run with it.
    fn of(self, run: &RunSpec) -> RunSpec {
        match self {
            Design::Remote => run.clone().on("nvm:optane-40+nodes:remote:2.5"),
            Design::Naive => run.clone().on("nvm:optane-40+nodes:naive:2.5"),
            Design::Soft => run.clone().on("nvm:optane-40+nodes:local-writes:2.5").by_partition(),
            Design::Local => run.clone().on("nvm:optane-40+nodes:local:2.5"),
        }
    }

    /// What is expected of it where soft partitions leave this share of the reads remote.
    fn remote_share(self, with_soft: f64) -> RemoteShare {
        let all = |share| RemoteShare { reads: share, writes: share };
        match self {
            Design::Remote => all(1.0),
            Design::Naive => all(0.5),
            Design::Soft => RemoteShare { reads: with_soft, writes: 0.0 },
            Design::Local => all(0.0),
        }
    }
}

/// The share of reads that are remote with soft partitions. Of 16 uniform keys 60 % are on the node of the majority. A tuple is
/// where its partition is mapped to if the transaction that wrote it ran there, in 60 % of cases, and so is the next
/// one that reads it: 1 - (0.6 * 0.6 + 0.4 * 0.4).
const YCSB_SHARE: f64 = 0.48;

/// The same of TPC-C: one of 100 order lines, 15 of 100 payments, and one in 100 rows in all. ITEM, which all share, is cached.
const TPCC_SHARE: f64 = 0.01;

/// A workload, what it is called, and the share of reads that soft partitions leave remote.
struct Case {
    name: String,
    run: RunSpec,
    soft_share: f64,
}

/// YCSB with each mix.
fn ycsb(size: &Size) -> Vec<Case> {
    let case = |&(updates, theta): &(u32, f64)| {
        let work = Work::Zen { tuples: size.zen_tuples, updates, theta, beside: None };
        Case {
            name: format!("{updates} % updates, skew {theta}"),
            run: RunSpec::new(work, TB, size.cores, half(size.pace)),
            soft_share: YCSB_SHARE,
        }
    };
    size.node_mixes.iter().map(case).collect()
}

/// These are many runs.
fn half((warmup, seconds): (f64, f64)) -> (f64, f64) {
    (warmup / 2.0, seconds / 2.0)
}

/// TPC-C, if each node has a warehouse.
fn tpcc_case(size: &Size) -> Option<Case> {
    let (warmup, seconds) = half(size.tpcc_pace);
    let run = RunSpec { warmup, seconds, ..tpcc(size, TB) };
    let case = Case { name: "TPC-C".into(), run, soft_share: TPCC_SHARE };
    (usize::from(size.warehouses) >= NODES).then_some(case)
}

fn cases(size: &Size) -> Vec<Case> {
    ycsb(size).into_iter().chain(tpcc_case(size)).collect()
}

pub fn runs(size: &Size) -> Vec<RunSpec> {
    cases(size).iter().flat_map(|case| DESIGNS.map(|design| design.of(&case.run))).collect()
}

/// The least published factors over remote memory, and what is left of local memory's throughput.
const NAIVE_OVER_REMOTE: f64 = 1.03;
const SOFT_OVER_REMOTE: f64 = 1.13;
const SOFT_OF_LOCAL: f64 = 0.898;

pub fn judge(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, runs(size));
    let by = |case: &Case, one: Design, other: Design| {
        results.quotient(&one.of(&case.run), &other.of(&case.run), &throughput)
    };
    let mut told = Vec::new();
    for case in ycsb(size) {
        for (design, least) in [(Design::Naive, NAIVE_OVER_REMOTE), (Design::Soft, SOFT_OVER_REMOTE)] {
            let found = by(&case, design, Design::Remote);
            let what = format!("{}: {}", case.name, design.name());
            rule.compare(&what, "remote", found.clone(), |by| by.is_above(least));
            told.extend(tell(results, &case, design, Design::Remote, found));
        }
        let faster = by(&case, Design::Soft, Design::Naive);
        rule.larger(&format!("{}: soft", case.name), "naive", faster);
    }
    if let Some(case) = tpcc_case(size) {
        let kept = by(&case, Design::Soft, Design::Local);
        rule.compare("TPC-C: soft", "local", kept.clone(), |by| by.is_above(SOFT_OF_LOCAL));
        told.extend(tell(results, &case, Design::Soft, Design::Local, kept));
        // How much depends on how long the processor works between its waits.
        let faster = by(&case, Design::Soft, Design::Naive);
        rule.larger("TPC-C: soft", "naive", faster.clone());
        told.extend(tell(results, &case, Design::Soft, Design::Naive, faster));
    } else {
        rule.lack("runs of this size have one warehouse for two nodes");
    }
    if size.cores < NODES {
        rule.lack("two nodes need a thread each");
    }
    let figures = vec![measured(results, size), predicted(results, size)];
    Finding::of(rule, "transactions/s", told.join("; "), figures)
}

/// One throughput against another, and what the model says.
fn tell(results: &Results, case: &Case, one: Design, other: Design, found: Option<Spread>) -> Option<String> {
    let model = predict(results, case, one)? / predict(results, case, other)?;
    let (one, other) = (one.name(), other.name());
    Some(format!("{}: {one} is {} {other} (model {})", case.name, times(found?.median), times(model)))
}

/// Transactions a second by the model: what a run on local memory waits for it takes longer by the share that is remote.
fn predict(results: &Results, case: &Case, design: Design) -> Option<f64> {
    let share = design.remote_share(case.soft_share);
    let speed = |measurement: &crate::measurement::Measurement| {
        let (costs, threads) = (&measurement.costs, case.run.threads as f64);
        let longer = share.reads * costs.io.read_wait + share.writes * costs.io.write_wait;
        Some(threads / (threads / measurement.txn_per_s + (REMOTE_COST - 1.0) * longer))
    };
    Some(results.spread(&Design::Local.of(&case.run), &speed)?.median)
}

fn measured(results: &Results, size: &Size) -> Figure {
    let title = "Two simulated nodes";
    plot(
        title,
        size,
        |case, design| {
            let spread = results.spread(&design.of(&case.run), &throughput)?;
            Some(Point::measured(0.0, spread))
        },
        Origin::Measured,
    )
}

fn predicted(results: &Results, size: &Size) -> Figure {
    let title = "What the model predicts from the run on local memory";
    plot(title, size, |case, design| Some(Point::exact(0.0, predict(results, case, design)?)), Origin::Model)
}

/// Bars for each design with each workload.
fn plot(title: &str, size: &Size, point: impl Fn(&Case, Design) -> Option<Point>, origin: Origin) -> Figure {
    let cases = cases(size);
    let series = DESIGNS.map(|design| {
        let at = |(n, case): (usize, &Case)| Some(Point { x: n as f64, ..point(case, design)? });
        let points = cases.iter().enumerate().filter_map(at).collect();
        Series { name: design.name().into(), origin, points }
    });
    let series = series.into_iter().filter(|series| !series.points.is_empty()).collect();
    let names = cases.iter().map(|case| case.name.clone()).collect();
    grouped(title, names, "workload", "transactions/s, nvm:optane-40 on two nodes", series)
}
