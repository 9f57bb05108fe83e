//! Zen+: log-free commits, allocation, recovery, long transactions, NUMA.

use pantile::ExclusiveStage;
use pantile_bench::ycsb::Beside;
use pantile_redo::Kind;

use super::help::{TB, grouped, need, over_time, tpcc, ycsb};
use super::{Claim, Experiment, Finding, designs, nodes};
use crate::figure::{Figure, Point, Series};
use crate::measurement::Measurement;
use crate::numbers::{Spread, figure, percent, times};
use crate::results::{Metric, Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
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
        rule: "Against each of the three zen is, as published for the mix and the ratio at least, 1.25 (read only), 1.54 (balanced) and 2.16 \
               times (write heavy) as fast where the memory is 4 times the DRAM, and 1.34, 1.02 and 1.02 times where it is 16 times. \
               Where it is 8 times, only curves were published, so that is shown and not judged. Not run: read heavy and low skew. All four are \
               this engine over emulated memory that charges what the design would cost (docs/experiments.md); what is left out \
               favours the other three.",
        experiment: Experiment { runs: designs::ycsb_runs, judge: designs::judge_ycsb },
    },
    Claim {
        id: "ZN-17",
        title: "Allocation without persisting",
        source: "Zen+, section 5.2, figure 17",
        text: "Not persisting metadata of each allocated tuple makes Zen 1.3 to 2.5 times as fast as a design that does, on YCSB with \
               writes.",
        published: "1.30 to 2.52x over persisting every allocation",
        rule: "Where a share of the operations update, zen has at least 1.3 times the throughput of zen-naive, and read only 0.95 to 1.05 times. \
               Both are this engine over emulated memory of four times the DRAM, as for ZN-8/9/10; zen-naive charges a line for each slot that \
               is taken for a tuple, and waits until it is durable (docs/experiments.md).",
        experiment: Experiment { runs: designs::allocator_runs, judge: designs::judge_allocators },
    },
    Claim {
        id: "ZN-20",
        title: "Log-free commits against three engines for NVM, TPC-C",
        source: "Zen+, section 5.2, figure 20",
        text: "On TPC-C with 16 threads, Zen is 1.56 to 4.79 times as fast as MMDB, WBL and FOEDUS.",
        published: "1.56 to 4.79x",
        rule: "Zen is at least 1.56 times as fast as each of the three where the memory is 4 times the DRAM, 1.72 times where it is \
               8 times, and 1.75 times where it is 16 times. Not run: 16 threads. All as for ZN-8/9/10.",
        experiment: Experiment { runs: designs::tpcc_runs, judge: designs::judge_tpcc },
    },
    Claim {
        id: "ZN-22",
        title: "Recovery",
        source: "Zen+, section 5.3, figure 22",
        text: "After a failure, a YCSB database of 100 GB is open again in 3.1 s with 16 threads; with a redo log and a checkpoint it takes \
               86 s.",
        published: "100 GB in 3.1 s (32 GB/s with 16 threads) against 86 s with a redo log",
        rule: "With each size, opening after a kill until the first row has been read takes less time than with a store that has a redo log and a \
               checkpoint, on the same emulated memory of four times the DRAM, with 40 transactions of eight updates for each megabyte as in the publication; and at most a tenth, where the publication has a \
               28th. What that store leaves out favours it, and here both read about as many bytes (docs/experiments.md). Also measured: bytes of contents that opening scans per second.",
        experiment: Experiment { runs: recovery_runs, judge: judge_recovery },
    },
    Claim {
        id: "ZN-23",
        title: "Ten concurrency controls",
        source: "Zen+, section 5.4, figure 23",
        text: "Zen's storage runs under ten concurrency controls, 1.1 to 2.5 times as fast as MMDB under each.",
        published: "all run; 1.1 to 2.5x over MMDB",
        rule: "Each of the ten, and the engine's own protocol, commits and is at least 1.1 times as fast on zen as on mmdb, \
               both as for ZN-8/9/10 with memory of four times the DRAM. Not run: WBL and FOEDUS, and 16 threads.",
        experiment: Experiment { runs: designs::under_each, judge: designs::judge_protocols },
    },
    Claim {
        id: "ZN-24/25/26",
        title: "Long readers and long writers",
        source: "Zen+, section 5.5, figures 24 to 26",
        text: "Beside transactions that scan 2 and 8 GB, YCSB loses 11 % of its throughput; beside consecutive scans it loses 9.4 to 24.9 %; a \
               transaction that updates 8 GB commits in an exclusive stage.",
        published: "9.4 to 24.9 % loss beside scans, 17.3 to 73.7 % beside updates; the largest commits",
        rule: "One client for each core but one runs the workload, alone and beside a client that scans half of the data, or updates a 128th, in each of \
               its transactions. Alone, it has the tuples that it has beside them: none of those that are updated. The loss is at most 24.9 % beside scans and 73.7 % beside updates, and scans and updates \
               commit. The published updates of 2 GB, whose loss this is, are a 128th of 256 GB, too. Updates take the exclusive stage by what they have accessed in vain (gamma), as published: \
               16 million tuples for 256 GB, and here as many times fewer as there are fewer tuples, so that it is eight times an update in both. \
               Updates of 8 GB, a 32nd here, take it by what they access (alpha), 3.8 million tuples there. They are to commit; what the others \
               do meanwhile is shown.",
        experiment: Experiment { runs: beside_long, judge: judge_long },
    },
    Claim {
        id: "ZN-27/31",
        title: "Soft partitions on NUMA",
        source: "Zen+, section 5.6, figures 27 and 31",
        text: "With a soft partition by NUMA node, TPC-C comes within 10.2 % of using local memory only, and is 1.54 times as fast as with \
               pages spread over the nodes (naive). On YCSB naive is 1.03 to 2.17 times as fast as remote memory only, and soft \
               1.13 to 3.72 times.",
        published: "TPC-C: 0.898x local, 1.54x naive; YCSB: naive 1.03 to 2.17x remote, soft 1.13 to 3.72x remote",
        rule: "The two nodes are simulated: threads belong to one each, and memory of the other one costs 2.5 times as much \
               (docs/experiments.md). With each mix of YCSB, naive is more than 1.03 and soft more than 1.13 times as fast as \
               remote, and soft is faster than naive. On TPC-C soft has more than 0.898 times the throughput of local, and is faster than naive \
               (by how much is up to how long a processor works between its waits).",
        experiment: Experiment { runs: nodes::runs, judge: nodes::judge },
    },
];

const SPEED: &str = "transactions/s, nvm:optane-40";

/// Bytes of the published database.
const PUBLISHED_BYTES: f64 = 100e9;

/// How many times as long opening takes with a redo log, in the words of the publication: an order of magnitude (28 times).
const MAGNITUDE: f64 = 10.0;

/// Opening a database of each size, and a store with a redo log.
fn openings(size: &Size) -> Vec<(u64, [RunSpec; 2])> {
    let both = |experiment: &pantile_redo::Experiment| {
        Kind::ALL.map(|kind| RunSpec::recovering(*experiment, kind, size.cores))
    };
    size.recoveries.iter().map(|experiment| (experiment.megabytes, both(experiment))).collect()
}

fn recovery_runs(size: &Size) -> Vec<RunSpec> {
    let openings = openings(size).into_iter().flat_map(|(_, runs)| runs);
    [ycsb(size, TB), tpcc(size, TB)].into_iter().chain(openings).collect()
}

fn judge_recovery(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let openings = openings(size);
    need(&mut rule, results, openings.iter().flat_map(|(_, runs)| runs.clone()));
    let seconds: Metric<'_> = &|measurement: &Measurement| measurement.recovery_seconds;
    let mut told = Vec::new();
    for (megabytes, [ours, theirs]) in &openings {
        let by = results.quotient(theirs, ours, seconds);
        if by.is_none() {
            rule.no_figures(&format!("opening a database of {megabytes} MB"));
        }
        if let Some(by) = by {
            told.push(format!("{} at {megabytes} MB", times(by.median)));
            let found =
                format!("{megabytes} MB: opening with a redo log is {} opening without", by.told(times));
            let longer = |by: &Spread| by.is_above(1.0);
            rule.require(format!("{megabytes} MB: opening takes less"), &by, longer, |_| found.clone());
            let far_longer = |by: &Spread| by.is_above(MAGNITUDE);
            let found = format!("{found}, against {MAGNITUDE}x at least");
            rule.require(format!("{megabytes} MB: opening takes a tenth"), &by, far_longer, |_| found);
        }
    }
    let mut ours = match told.is_empty() {
        true => Vec::new(),
        false => vec![format!("opening takes a redo log {} as long", told.join(", "))],
    };
    let series = Kind::ALL.iter().enumerate().map(|(n, kind)| {
        let point = |(at, (_, runs)): (usize, &(u64, [RunSpec; 2]))| {
            Some(Point::measured(at as f64, results.spread(&runs[n], seconds)?))
        };
        Series::measured(kind.name(), openings.iter().enumerate().filter_map(point).collect())
    });
    let series = series.filter(|series| !series.points.is_empty()).collect();
    let names = openings.iter().map(|(megabytes, _)| format!("{megabytes} MB")).collect();
    let opening = grouped("Opening after a kill", names, "rows", "seconds, nvm:optane-40", series);
    let scanned = scanned(results, size, &mut ours);
    Finding::of(rule, "seconds", ours.join("; "), vec![opening, scanned])
}

/// The bytes that opening scans per second after the workloads.
fn scanned(results: &Results, size: &Size, told: &mut Vec<String>) -> Figure {
    let speed: Metric<'_> =
        &|measurement: &Measurement| measurement.recovery_bytes_per_s().map(|bytes| bytes / 1e9);
    let runs = [("YCSB", ycsb(size, TB)), ("TPC-C", tpcc(size, TB))];
    let speeds: Vec<_> = runs.iter().map(|(_, run)| results.spread(run, speed)).collect();
    for ((name, _), speed) in runs.iter().zip(&speeds) {
        if let Some(speed) = speed {
            let whole = PUBLISHED_BYTES / 1e9 / speed.median;
            told.push(format!("{name} {} GB/s, so 100 GB take {} s", figure(speed.median), figure(whole)));
        }
    }
    let points =
        speeds.iter().enumerate().filter_map(|(n, speed)| Some(Point::measured(n as f64, speed.clone()?)));
    let points: Vec<_> = points.collect();
    let names = runs.iter().map(|(name, _)| (*name).to_owned()).collect();
    let y = "GB of contents per second, nvm:optane-40";
    let series = if points.is_empty() { Vec::new() } else { vec![Series::measured(TB, points)] };
    grouped("Contents scanned when opening", names, "workload", y, series)
}

/// A bar for the throughput of each run.
fn plot_each(results: &Results, title: &str, names: Vec<String>, x: &str, runs: &[RunSpec]) -> Figure {
    let points = runs
        .iter()
        .enumerate()
        .filter_map(|(n, run)| Some(Point::measured(n as f64, results.spread(run, &throughput)?)));
    let series = vec![Series::measured(TB, points.collect())];
    grouped(title, names, x, SPEED, series)
}

/// The losses above which the claim is refuted.
const WORST_BESIDE_SCANS: f64 = 0.249;
const WORST_BESIDE_UPDATES: f64 = 0.737;

/// The skew of the runs beside long transactions.
const LOW_SKEW: f64 = 0.6;

/// The published database there, in tuples, and those that a long update writes.
const PUBLISHED_TUPLES: u64 = 256_000_000;
const PUBLISHED_UPDATED: u64 = 2_000_000;

/// The largest long updates there, and the tuples that a transaction accesses at most before it gets the exclusive stage: 95 % of
/// a region of the cache, which has 4 million.
const PUBLISHED_LARGEST: u64 = 8_000_000;
const PUBLISHED_ACCESSED: u64 = 3_800_000;

/// As many times fewer than published as the database has fewer tuples than the published one.
fn scaled(published: u64, tuples: u64) -> u64 {
    (u128::from(published) * u128::from(tuples) / u128::from(PUBLISHED_TUPLES)) as u64
}

/// Alone and beside scans, then alone and beside updates, whose tuples the other clients leave out:
/// so the run alone has only as many. The long transactions have a core of their own where there are two.
fn long(size: &Size) -> [RunSpec; 4] {
    let (tuples, scanned) = size.large;
    let updated = scaled(PUBLISHED_UPDATED, tuples);
    let (scans, updates) = (Some(Beside::Scans(scanned)), Some(Beside::Updates(updated)));
    let threads = size.cores.saturating_sub(1).max(1);
    let run = |tuples, beside| {
        RunSpec::new(Work::Zen { tuples, updates: 50, theta: LOW_SKEW, beside }, TB, threads, size.beside)
    };
    let wasted = Some(scaled(ExclusiveStage::default().wasted, tuples));
    let beside_updates = RunSpec { wasted, ..run(tuples, updates) };
    [run(tuples, None), run(tuples, scans), run(tuples - updated, None), beside_updates]
}

/// Beside updates that always take the exclusive stage.
fn largest(size: &Size) -> RunSpec {
    let [.., beside_updates] = long(size);
    let (tuples, _) = size.large;
    let beside = Some(Beside::Updates(scaled(PUBLISHED_LARGEST, tuples)));
    let work = Work::Zen { tuples, updates: 50, theta: LOW_SKEW, beside };
    RunSpec { work, accessed: Some(scaled(PUBLISHED_ACCESSED, tuples)), ..beside_updates }
}

fn beside_long(size: &Size) -> Vec<RunSpec> {
    let mut runs = long(size).to_vec();
    runs.push(largest(size));
    runs
}

fn judge_long(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let runs = long(size);
    let largest = largest(size);
    need(&mut rule, results, beside_long(size));
    let [alone, scans, fewer_alone, updates] = &runs;
    let (mut ended, mut told) = (Vec::new(), Vec::new());
    let committed: Metric<'_> = &|measurement: &Measurement| measurement.queries_per_s;
    let kinds = [
        ("scans", alone, scans, WORST_BESIDE_SCANS),
        ("updates", fewer_alone, updates, WORST_BESIDE_UPDATES),
    ];
    for (name, alone, run, worst) in kinds {
        let Some(done) = results.spread(run, committed) else {
            rule.no_figures(&format!("long {name}"));
            continue;
        };
        if done.median <= 0.0 {
            rule.lack(format!("no long one of the {name} has ended within the runs"));
            continue;
        }
        ended.push(format!("{} long {name}", figure(done.median)));
        let by = results.quotient(run, alone, &throughput);
        if by.is_none() {
            rule.no_figures(&format!("what is kept beside long {name}"));
        }
        if let Some(by) = by {
            told.push(format!("{} beside long {name}", percent(by.median)));
            let found = format!("beside long {name}, tb-collect keeps {}", by.told(percent));
            let about = format!("what is kept beside long {name}");
            rule.require(about, &by, |by| by.is_above(1.0 - worst), |_| found);
        }
    }
    match results.spread(&largest, committed) {
        Some(done) if done.median > 0.0 => {
            ended.push(format!("{} of the largest updates", figure(done.median)))
        }
        Some(_) => rule.lack("none of the largest updates has ended within the runs"),
        None => rule.no_figures("the largest updates"),
    }
    if !size.settles {
        rule.lack("long transactions of this size are hardly long");
    }
    let names = ["alone", "beside long scans", "alone, fewer tuples", "beside long updates"];
    let names = names.map(str::to_owned).to_vec();
    let mut figures = vec![plot_each(results, "YCSB beside long transactions", names, "run", &runs)];
    for (name, alone, run, _) in kinds {
        let title = format!("YCSB beside long {name}, over time");
        let both = [("alone", alone.clone()), ("beside", run.clone())];
        figures.push(over_time(results, &both, &title, SPEED, |second| Some(second.rate())));
    }
    let title = "YCSB beside the largest updates, over time";
    figures.push(over_time(results, &[("beside", largest)], title, SPEED, |second| Some(second.rate())));
    let ours = match told.is_empty() {
        true => String::new(),
        false => {
            format!("of the throughput alone: {}; {} commit a second", told.join(", "), ended.join(", "))
        }
    };
    Finding::of(rule, "share of the throughput alone", ours, figures)
}
