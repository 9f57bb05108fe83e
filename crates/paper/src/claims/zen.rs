//! Zen+: log-free commits, allocation, recovery, long transactions, NUMA.

use pantile_bench::settings::OWN_PROTOCOL;

use super::help::{NONE, TB, bars, each, grouped, need, tpcc, ycsb};
use super::{Claim, Experiment, Finding};
use crate::figure::{Point, Series};
use crate::measurement::Measurement;
use crate::numbers::{Outcome, figure, percent, times};
use crate::results::{Metric, Results, throughput};
use crate::size::{PROTOCOLS, Size};
use crate::spec::RunSpec;
use crate::verdict::{Judgement, Rule};
use crate::workload::Work;

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "ZN-8/9/10",
        title: "Log-free commits against three engines for NVM, YCSB",
        source: "Zen+, section 5.2, figures 8 to 10",
        text: "With tuples of 1 KB and 16 operations, Zen is 1.0 to 10.1 times as fast as an in-memory database with a log (MMDB), \
               write-behind logging (WBL) and FOEDUS, over four mixes, three skews and three ratios of NVM to DRAM.",
        published: "1.0 to 10.1x",
        rule: "Not judged.",
        experiment: Experiment::NotHere(
            "The other three engines, MMDB, WBL and FOEDUS, are not available here yet, and DRAM cannot be limited.",
        ),
    },
    Claim {
        id: "ZN-17",
        title: "Allocation without persisting",
        source: "Zen+, section 5.3, figure 17",
        text: "Not persisting metadata of each allocated tuple makes Zen 1.3 to 2.5 times as fast as a design that does, on YCSB with \
               writes.",
        published: "1.30 to 2.52x over persisting every allocation",
        rule: "Not judged: no design here persists each allocation. Measured instead: block headers persisted at every update \
               (tb-collect-eager) against lazily (tb-collect).",
        experiment: Experiment::Runs {
            runs: |size| each(&HEADERS, [ycsb(size, NONE)]),
            judge: judge_headers,
        },
    },
    Claim {
        id: "ZN-20",
        title: "Log-free commits against three engines for NVM, TPC-C",
        source: "Zen+, section 5.3, figure 20",
        text: "On TPC-C with 16 threads, Zen is 1.56 to 4.79 times as fast as MMDB, WBL and FOEDUS.",
        published: "1.56 to 4.79x",
        rule: "Not judged.",
        experiment: Experiment::NotHere(
            "The other three engines, MMDB, WBL and FOEDUS, are not available here yet.",
        ),
    },
    Claim {
        id: "ZN-22",
        title: "Recovery",
        source: "Zen+, section 5.3, figure 22",
        text: "After a failure, a YCSB database of 100 GB is open again in 3.1 s with 16 threads; with a redo log and a checkpoint it takes \
               86 s.",
        published: "100 GB in 3.1 s (32 GB/s with 16 threads) against 86 s with a redo log",
        rule: "Not judged: there is no engine with a redo log here to compare with. Measured: bytes of contents that opening scans per second.",
        experiment: Experiment::Runs {
            runs: |size| vec![ycsb(size, TB), tpcc(size, TB)],
            judge: judge_recovery,
        },
    },
    Claim {
        id: "ZN-23",
        title: "Ten concurrency controls",
        source: "Zen+, section 5.4, figure 23",
        text: "Zen's storage runs under ten concurrency controls, 1.1 to 2.5 times as fast as MMDB under each.",
        published: "all run; 1.1 to 2.5x over MMDB",
        rule: "One-sided: the claim does not hold if one of the ten commits nothing. It cannot be confirmed without MMDB.",
        experiment: Experiment::Runs { runs: under_each, judge: judge_protocols },
    },
    Claim {
        id: "ZN-24/25/26",
        title: "Long readers and long writers",
        source: "Zen+, section 5.5, figures 24 to 26",
        text: "Beside transactions that scan 2 and 8 GB, YCSB loses 11 % of its throughput; beside consecutive scans it loses 9.4 to 24.9 %; a \
               transaction that updates 8 GB commits in an exclusive stage.",
        published: "11 % loss beside long scans, 24.9 % at worst",
        rule: "One-sided: a loss of more than 24.9 % beside a transaction that stays open and reads ten times a second, without scanning, \
               refutes the claim; a smaller one does not confirm it, since scans of gigabytes and long writers are not measured.",
        experiment: Experiment::Runs { runs: beside_readers, judge: judge_readers },
    },
    Claim {
        id: "ZN-27/31",
        title: "Soft partitions on NUMA",
        source: "Zen+, section 5.6, figures 27 and 31",
        text: "With a soft partition by NUMA node, YCSB and TPC-C come within 10 % of using local memory only; they are 1.54 times as fast as without.",
        published: "within 10 % of local; 1.54x the naive design",
        rule: "Not judged.",
        experiment: Experiment::NotHere(
            "The engine places nothing by NUMA node, and the experiment needs a machine with two nodes.",
        ),
    },
];

/// Block headers persisted at every update, and lazily.
const HEADERS: [&str; 2] = ["tb-collect-eager", TB];

fn judge_headers(results: &Results, size: &Size) -> Finding {
    let run = ycsb(size, NONE);
    let by = results.quotient(&run.with_gc(TB), &run.with_gc(HEADERS[0]), &throughput);
    let ours = by.map_or(String::new(), |by| format!("tb-collect is {} tb-collect-eager", by.told(times)));
    let measured = if ours.is_empty() {
        String::new()
    } else {
        format!("; block headers persisted lazily instead of at every update: {ours}")
    };
    let y = "transactions/s, nvm:optane-40";
    let figure = bars("Block headers persisted at every update, and lazily", y, &HEADERS, &run, &|run| {
        results.spread(run, &throughput)
    });
    Finding {
        judgement: Judgement::cannot(format!("No design here persists each allocation{measured}.")),
        ours,
        unit: "transactions/s",
        figures: [figure].into_iter().filter(|figure| !figure.is_empty()).collect(),
    }
}

/// Bytes of the published database.
const PUBLISHED_BYTES: f64 = 100e9;

fn judge_recovery(results: &Results, size: &Size) -> Finding {
    let speed: Metric<'_> =
        &|measurement: &Measurement| measurement.recovery_bytes_per_s().map(|bytes| bytes / 1e9);
    let runs = [("YCSB", ycsb(size, TB)), ("TPC-C", tpcc(size, TB))];
    let told = runs.iter().filter_map(|(name, run)| {
        let speed = results.spread(run, speed)?.median;
        let whole = PUBLISHED_BYTES / 1e9 / speed;
        Some(format!("{name} {} GB/s, so 100 GB take {} s", figure(speed), figure(whole)))
    });
    let told: Vec<_> = told.collect();
    let ours = told.join("; ");
    let measured = if ours.is_empty() { String::new() } else { format!("; {} threads: {ours}", size.cores) };
    let points = runs
        .iter()
        .enumerate()
        .filter_map(|(n, (_, run))| Some(Point::measured(n as f64, results.spread(run, speed)?)));
    let points = points.collect();
    let names = runs.iter().map(|(name, _)| (*name).to_owned()).collect();
    let series = vec![Series::measured(TB, points)];
    let figure = grouped(
        "Contents scanned when opening",
        names,
        "workload",
        "GB of contents per second, nvm:optane-40",
        series,
    );
    Finding {
        judgement: Judgement::cannot(format!(
            "There is no engine with a redo log here to compare with{measured}."
        )),
        ours,
        unit: "GB/s",
        figures: [figure].into_iter().filter(|figure| !figure.is_empty()).collect(),
    }
}

/// The published workload: 16 operations, half of them updates, high skew.
fn skewed(size: &Size) -> RunSpec {
    let work = Work::Ycsb { tuples: size.tuples / 4, ops: 16, updates: 50, theta: 0.95 };
    // Many runs, which only have to be told from none.
    RunSpec::new(work, TB, size.cores, (size.pace.0 / 2.0, size.pace.1 / 2.0))
}

fn under_each(size: &Size) -> Vec<RunSpec> {
    let own = skewed(size);
    let others: Vec<_> = size.protocols.iter().map(|name| own.clone().under(name)).collect();
    [own].into_iter().chain(others).collect()
}

fn judge_protocols(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let runs = under_each(size);
    need(&mut rule, results, runs.clone());
    let name = |run: &RunSpec| run.protocol.unwrap_or(OWN_PROTOCOL);
    let mut told = Vec::new();
    for run in &runs[1..] {
        let Some(speed) = results.spread(run, &throughput) else { continue };
        let outcome = if speed.median > 0.0 { Outcome::Held } else { Outcome::Refuted };
        rule.require(
            outcome,
            format!("{} commits {} transactions per second", name(run), figure(speed.median)),
        );
        if let Some(by) = results.quotient(run, &runs[0], &throughput) {
            told.push(format!("{} {}", name(run), times(by.median)));
        }
    }
    if !rule.is_refuted() {
        let left = PROTOCOLS.len() - size.protocols.len();
        if left > 0 {
            rule.lack(format!("runs of this size leave out {left} of the ten"));
        }
        rule.lack("MMDB is not available here, so the second half of the claim is not measured");
    }
    let points = runs
        .iter()
        .enumerate()
        .filter_map(|(n, run)| Some(Point::measured(n as f64, results.spread(run, &throughput)?)));
    let series = vec![Series::measured(TB, points.collect())];
    let names = runs.iter().map(|run| name(run).to_owned()).collect();
    let y = "transactions/s, nvm:optane-40";
    let plot =
        grouped("YCSB under ten concurrency controls and the engine's own", names, "protocol", y, series);
    let ours = match told.is_empty() {
        true => String::new(),
        false => format!("throughput against the engine's own protocol: {}", told.join(", ")),
    };
    Finding::of(rule, "transactions/s", ours, vec![plot])
}

/// The loss above which the claim is refuted.
const WORST: f64 = 0.249;

fn readers(size: &Size) -> [RunSpec; 2] {
    let alone = ycsb(size, TB);
    [alone.clone(), RunSpec { long_readers: 1, ..alone }]
}

fn beside_readers(size: &Size) -> Vec<RunSpec> {
    readers(size).into()
}

fn judge_readers(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let [alone, beside] = readers(size);
    need(&mut rule, results, [alone.clone(), beside.clone()]);
    let mut ours = String::new();
    if let Some(by) = results.quotient(&beside, &alone, &throughput) {
        ours = format!("{} of the throughput beside one long reader", percent(by.median));
        let told = by.told(percent);
        match by.is_below(1.0 - WORST) {
            Outcome::Held => rule.require(Outcome::Refuted, format!("tb-collect keeps only {told}")),
            Outcome::Undecided => rule.require(Outcome::Undecided, format!("tb-collect keeps {told}")),
            Outcome::Refuted => rule.lack(format!(
                "scans of gigabytes and long writers are not measured; {ours}, which reads little, does not contradict the claim"
            )),
        }
    }
    let points = [&alone, &beside]
        .into_iter()
        .enumerate()
        .filter_map(|(n, run)| Some(Point::measured(n as f64, results.spread(run, &throughput)?)));
    let series = vec![Series::measured(TB, points.collect())];
    let names = vec!["alone".into(), "beside a long reader".into()];
    let y = "transactions/s, nvm:optane-40";
    let figure = grouped("YCSB beside a transaction that stays open", names, "run", y, series);
    Finding::of(rule, "share of the throughput alone", ours, vec![figure])
}
