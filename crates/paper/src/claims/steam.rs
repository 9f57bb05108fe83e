//! Steam: its survey of collectors (figures 7 to 12, table 5).

use std::sync::Arc;

use super::help::{At, NONE, bars, clients, each, fastest, grouped, kept_against, lines, need, runs, series};
use super::{Claim, Experiment, Finding, help};
use crate::figure::{Point, Series};
use crate::measurement::Measurement;
use crate::numbers::{Spread, figure as number, percent, times};
use crate::results::{Metric, Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
use crate::workload::{SCAN, Work};

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "ST-2/7",
        title: "Writes beside analytical queries",
        source: "Steam, section 5.1, figures 2 and 7",
        text: "With one thread of TPC-C's transactions and one of analytical queries (CH-benCHmark), pruning exactly what no running \
               transaction needs (Steam with EPO) gives about three times the write rate of the next best; without it chains \
               grow until everything slows down.",
        published: "Steam with EPO about 3x the next best write rate",
        rule: "In DRAM, steam's write rate is more than twice that of each other collector of the survey, with about as many transactions \
               (300,000) as published for table 5.",
        experiment: Experiment { runs: |size| each(&BESIDE, [ch(size, 1)]), judge: judge_writes },
    },
    Claim {
        id: "ST-8",
        title: "TPC-C by threads, the survey's collectors",
        source: "Steam, section 5.2, figure 8",
        text: "Collectors that work in the foreground (Ermia, Deuteronomy, Steam) scale best; Hana, with its global tracker, and \
               Hekaton, with its thread in the background, fall behind.",
        published: "ermia, deuteronomy and steam ahead of hekaton, and hekaton ahead of hana",
        rule: "With a thread for each core, ermia, deuteronomy and steam each have a higher throughput than hekaton, and hekaton than \
               hana.",
        experiment: Experiment { runs: |size| each(&ALONE, runs(&by_threads(size))), judge: judge_survey },
    },
    Claim {
        id: "ST-9",
        title: "Writes by number of analytical readers",
        source: "Steam, section 5.3, figure 9",
        text: "Beside any number of threads that run analytical queries, one thread of transactions is fastest with Steam and EPO.",
        published: "steam the highest at every number of readers",
        rule: "At every number of readers that have a core each beside the writer, steam has a higher write rate than each other \
               collector, with about 300,000 transactions, as for table 5 (figure 9 has 1 million). With more readers \
               than that: shown only.",
        experiment: Experiment { runs: |size| each(&SURVEY, runs(&by_olap(size))), judge: judge_readers },
    },
    Claim {
        id: "ST-10",
        title: "How often the collector works",
        source: "Steam, section 5.4, figure 10",
        text: "From a period of 1 ms to 60 s (Hana, Hekaton), or an epoch of 1 to 100,000 transactions (Deuteronomy, Ermia), TPC-C's \
               throughput differs by a factor of more than 500.",
        published: "more than 500x between the best and the worst setting",
        rule: "Over the periods and epochs measured, the best throughput of one of these collectors is more than 500 times its worst.",
        experiment: Experiment {
            runs: |size| each(&PERIODIC, runs(&by_period(size))),
            judge: judge_frequency,
        },
    },
    Claim {
        id: "ST-11",
        title: "Skewed updates of single rows",
        source: "Steam, section 5.5, figure 11",
        text: "With key-value updates from theta 0 to 1, Steam's throughput stays, since chains are pruned as they grow; collectors that \
               work at intervals (Hana, Hekaton) fall.",
        published: "steam flat, interval collectors fall",
        rule: "steam keeps more than 80 % of its throughput at theta 0 at the highest theta; hana and \
               hekaton keep less of theirs than steam.",
        experiment: Experiment { runs: |size| each(&SURVEY, runs(&by_theta(size))), judge: judge_skew },
    },
    Claim {
        id: "ST-12",
        title: "Scans against updates of single rows",
        source: "Steam, section 5.6, figure 12",
        text: "In every mix of table scans and updates, Steam completes the most scans.",
        published: "steam best in every mix",
        rule: "In every mix, steam completes more scans per second than each other collector.",
        experiment: Experiment { runs: |size| each(&SURVEY, runs(&by_scans(size))), judge: judge_scans },
    },
    Claim {
        id: "ST-T5",
        title: "What eager pruning saves",
        source: "Steam, section 5.7, table 5",
        text: "Over 300 k transactions of CH-benCHmark, EPO cuts the versions that the collector walks from 1,197 M to 4.2 M and the longest \
               chain from 30,287 to 2, and raises throughput from 6,554 to 30,580 txn/s.",
        published: "versions walked 285x fewer, longest chain 15,000x shorter, 4.7x the throughput",
        rule: "Per transaction, steam walks less than a tenth of the versions that steam-watermark walks; its longest chain is less than a tenth as long, \
               and its throughput more than twice as high, with about 300,000 transactions of steam.",
        experiment: Experiment { runs: |size| each(&EPO, [ch(size, 1)]), judge: judge_epo },
    },
];

/// Steam first, then the collectors that the survey compares it with.
const SURVEY: [&str; 6] = ["steam", "steam-watermark", "hana", "hekaton", "deuteronomy", "ermia"];

/// The same, with TB-Collect for comparison.
const BESIDE: [&str; 7] =
    ["steam", "steam-watermark", "hana", "hekaton", "deuteronomy", "ermia", "tb-collect"];

/// The collectors of figure 8, with no collector at all and HyPer's own for
/// comparison.
const ALONE: [&str; 8] =
    [NONE, "steam", "steam-watermark", "hana", "hekaton", "deuteronomy", "ermia", "hyper"];

/// Collectors that work periodically.
const PERIODIC: [&str; 4] = ["hana", "hekaton", "deuteronomy", "ermia"];

/// With and without eager pruning.
const EPO: [&str; 2] = ["steam", "steam-watermark"];

const WRITES: &str = "write transactions/s, dram";

/// The survey was made in DRAM.
const MEDIUM: &str = "dram";

/// TPC-C with one client per core.
fn tpcc(size: &Size, gc: &'static str) -> RunSpec {
    help::tpcc(size, gc).on(MEDIUM)
}

/// One client of TPC-C beside analytical clients.
fn ch(size: &Size, olap: usize) -> RunSpec {
    RunSpec::new(Work::Ch { warehouses: size.warehouses, olap }, "steam", 1, size.middle).on(MEDIUM)
}

/// Transactions beside analytical queries for table 5 (Steam 5.4); about as many are four fifths of them.
const TRANSACTIONS: f64 = 300_000.0;
const ABOUT: f64 = 0.8;

/// Adds to a rule that fewer transactions than published were made beside the readers. How much is
/// saved grows with their number. Of the collectors steam makes the most.
fn enough(rule: &mut Rule, results: &Results, run: &RunSpec) {
    let Some(made) = results.spread(run, &|measurement| Some(measurement.transactions as f64)) else {
        return;
    };
    if made.median < ABOUT * TRANSACTIONS {
        rule.lack(format!(
            "{} transactions were made beside the readers, and {} for table 5 of the publication",
            number(made.median),
            number(TRANSACTIONS)
        ));
    }
}

/// Throughputs of the runs, as one short text.
fn told(results: &Results, gcs: &[&'static str], run: &RunSpec) -> String {
    let speed = |gc: &&'static str| {
        let speed = results.spread(&run.with_gc(gc), &throughput)?;
        Some(format!("{gc} {}", number(speed.median)))
    };
    gcs.iter().filter_map(speed).collect::<Vec<_>>().join(", ")
}

fn judge_writes(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = ch(size, 1);
    need(&mut rule, results, each(&SURVEY, [run.clone()]));
    enough(&mut rule, results, &run);
    for other in &SURVEY[1..] {
        let by = results.quotient(&run, &run.with_gc(other), &throughput);
        rule.compare("steam's write rate", &format!("that of {other}"), by, |by| by.is_above(2.0));
    }
    let queries: Metric<'_> = &|measurement: &Measurement| measurement.queries_per_s;
    let y = "analytical queries/s, dram";
    let figures = vec![
        bars("Writes beside one analytical reader", WRITES, &BESIDE, &run, &|run| {
            results.spread(run, &throughput)
        }),
        bars("Queries beside one writer", y, &BESIDE, &run, &|run| results.spread(run, queries)),
    ];
    Finding::of(rule, "transactions/s", told(results, &BESIDE, &run), figures)
}

fn by_threads(size: &Size) -> Vec<At> {
    let at = |threads: usize| (threads as f64, RunSpec { threads, ..tpcc(size, NONE) });
    size.threads().into_iter().map(at).collect()
}

fn judge_survey(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = tpcc(size, NONE);
    need(&mut rule, results, each(&ALONE[1..7], [run.clone()]));
    for foreground in ["ermia", "deuteronomy", "steam"] {
        fastest(&mut rule, results, &run, foreground, &["hekaton"], "");
    }
    fastest(&mut rule, results, &run, "hekaton", &["hana"], "");
    let speeds = series(&ALONE, &by_threads(size), &|run| results.spread(run, &throughput));
    let y = "transactions/s, dram";
    let figure = lines("TPC-C throughput by threads", &clients(size), y, true, speeds);
    Finding::of(rule, "transactions/s", told(results, &ALONE, &run), vec![figure])
}

fn by_olap(size: &Size) -> Vec<At> {
    size.olap.iter().map(|&olap| (olap as f64, ch(size, olap))).collect()
}

fn judge_readers(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let places = by_olap(size);
    need(&mut rule, results, each(&SURVEY, runs(&places)));
    // Where they take turns, a collector with a thread of its own gets a share of the readers' time.
    let have_cores = |(readers, _): &&At| (*readers as usize) < size.cores;
    if !places.iter().any(|place| have_cores(&place)) {
        rule.lack("a reader and a writer need two cores");
    }
    for (readers, run) in places.iter().filter(have_cores) {
        enough(&mut rule, results, run);
        fastest(&mut rule, results, run, "steam", &SURVEY[1..], &format!("beside {readers} readers "));
    }
    let speeds = series(&SURVEY, &places, &|run| results.spread(run, &throughput));
    let figure = lines("Writes by number of analytical readers", &analysts(size), WRITES, true, speeds);
    let judged = places.iter().rfind(have_cores);
    let ours = judged
        .map_or(String::new(), |(readers, run)| format!("beside {readers}: {}", told(results, &SURVEY, run)));
    Finding::of(rule, "transactions/s", ours, vec![figure])
}

/// The name of an axis of analytical readers. With the writer, they share the cores if there are more.
fn analysts(size: &Size) -> String {
    format!("analytical readers ({} and more take turns with the writer)", size.cores)
}

fn by_period(size: &Size) -> Vec<At> {
    let at = |&period: &f64| (period, RunSpec { period: Some(period), ..tpcc(size, NONE) });
    size.periods.iter().map(at).collect()
}

/// As many periods of a collector are to lie in a run.
const PERIODS_SEEN: f64 = 10.0;

fn judge_frequency(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let places = by_period(size);
    need(&mut rule, results, each(&PERIODIC, runs(&places)));
    let speeds = series(&PERIODIC, &places, &|run| results.spread(run, &throughput));
    let longest = size.periods.iter().copied().fold(0.0, f64::max) / 1e3;
    let seen = size.tpcc_pace.1 / longest;
    if seen < PERIODS_SEEN {
        let seen = if seen < 1.0 { "less than one".into() } else { format!("only {seen:.0}") };
        rule.lack(format!(
            "the published factor comes of periods of up to a minute, over many of them: runs of {} s see {seen} of {longest} s",
            size.tpcc_pace.1
        ));
    }
    let range = |gc: &&'static str| {
        let own: Vec<_> = places.iter().map(|(_, run)| run.with_gc(gc)).collect();
        results.together(&own, &throughput, &|speeds| {
            let end = |of: fn(f64, f64) -> f64| speeds.iter().copied().fold(f64::NAN, of);
            end(f64::max) / end(f64::min)
        })
    };
    let ranges = PERIODIC.iter().filter_map(range);
    let by = ranges.max_by(|a, b| a.median.total_cmp(&b.median));
    // Any of them may turn out to be the widest.
    let keys: Arc<[String]> = each(&PERIODIC, runs(&places)).iter().map(RunSpec::key).collect();
    let by = by.map(|by| Spread { runs: keys, ..by });
    rule.compare("a collector's best throughput", "its worst", by.clone(), |by| by.is_above(500.0));
    let ours = by.map_or(String::new(), |by| format!("{} between the best and the worst", times(by.median)));
    let y = "transactions/s, dram";
    let figure = lines(
        "TPC-C throughput by the interval between collections",
        "period, ms (hana, hekaton); epoch, tens of commits (deuteronomy, ermia)",
        y,
        true,
        speeds,
    );
    Finding::of(rule, "factor", ours, vec![figure])
}

fn kv(size: &Size, theta: f64, scans: u32) -> RunSpec {
    let work = Work::Kv { tuples: size.tuples, theta, scans };
    RunSpec::new(work, "steam", size.cores, size.pace).on(MEDIUM)
}

fn by_theta(size: &Size) -> Vec<At> {
    let high = size.thetas.iter().copied().filter(|&theta| theta > 0.5);
    let thetas = std::iter::once(0.0).chain(high).chain([1.0]);
    thetas.map(|theta| (theta, kv(size, theta, 0))).collect()
}

fn judge_skew(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let places = by_theta(size);
    need(&mut rule, results, each(&SURVEY, runs(&places)));
    let kept = |gc| {
        let ((_, even), (_, skewed)) = places.first().zip(places.last())?;
        results.quotient(&skewed.with_gc(gc), &even.with_gc(gc), &throughput)
    };
    let even = "that at theta 0";
    rule.compare("the throughput of steam at theta 1", even, kept("steam"), |by| by.is_above(0.8));
    for gc in ["hana", "hekaton"] {
        let by = places.first().zip(places.last()).and_then(|((_, even), (_, skewed))| {
            let [other, steam] = [gc, "steam"].map(|gc| [skewed.with_gc(gc), even.with_gc(gc)]);
            kept_against(results, other, steam)
        });
        rule.smaller(&format!("the share that {gc} keeps at theta 1"), "that of steam", by);
    }
    let told = |gc: &&'static str| kept(gc).map(|share| format!("{gc} {}", percent(share.median)));
    let told: Vec<_> = SURVEY.iter().filter_map(told).collect();
    let ours =
        if told.is_empty() { String::new() } else { format!("theta 1 against 0: {}", told.join(", ")) };
    let speeds = series(&SURVEY, &places, &|run| results.spread(run, &throughput));
    let y = "transactions/s, dram";
    let figure = lines("Updates of single rows by skew", "theta of the zipf distribution", y, false, speeds);
    Finding::of(rule, "share of the throughput without skew", ours, vec![figure])
}

fn by_scans(size: &Size) -> Vec<At> {
    size.scans.iter().map(|&scans| (f64::from(scans), kv(size, 0.0, scans))).collect()
}

fn judge_scans(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let places = by_scans(size);
    need(&mut rule, results, each(&SURVEY, runs(&places)));
    let scans: Metric<'_> = &|measurement: &Measurement| measurement.kinds.get(SCAN).map(|kind| kind.per_s);
    for (share, run) in &places {
        for other in &SURVEY[1..] {
            let by = results.quotient(run, &run.with_gc(other), scans);
            rule.larger(&format!("with {share} % scans steam"), other, by);
        }
    }
    let speeds = series(&SURVEY, &places, &|run| results.spread(run, scans));
    let names = size.scans.iter().map(|share| format!("{share} % scans")).collect();
    let figure =
        grouped("Table scans beside updates of single rows", names, "mix", "table scans/s, dram", speeds);
    let told = |gc: &&'static str| {
        let (_, run) = places.first()?;
        Some(format!("{gc} {}", number(results.spread(&run.with_gc(gc), scans)?.median)))
    };
    let told: Vec<_> = SURVEY.iter().filter_map(told).collect();
    Finding::of(rule, "table scans/s", told.join(", "), vec![figure])
}

fn judge_epo(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = ch(size, 1);
    need(&mut rule, results, each(&EPO, [run.clone()]));
    enough(&mut rule, results, &run);
    let walked: Metric<'_> = &|measurement: &Measurement| {
        (measurement.transactions > 0)
            .then(|| measurement.versions_traversed as f64 / measurement.transactions as f64)
    };
    let longest: Metric<'_> = &|measurement: &Measurement| Some(measurement.chain_max as f64);
    let mut ours = Vec::new();
    for (what, metric) in [("versions walked per transaction", walked), ("longest chain", longest)] {
        let by = results.quotient(&run.with_gc(EPO[0]), &run.with_gc(EPO[1]), metric);
        ours.extend(
            by.as_ref().map(|by| format!("steam's {what}: {} of steam-watermark's", percent(by.median))),
        );
        rule.compare(&format!("steam's {what}"), "steam-watermark's", by, |by| by.is_below(0.1));
    }
    let by = results.quotient(&run.with_gc(EPO[0]), &run.with_gc(EPO[1]), &throughput);
    ours.extend(
        by.as_ref().map(|by| format!("steam's throughput is {} steam-watermark's", times(by.median))),
    );
    rule.compare("steam's throughput", "steam-watermark's", by, |by| by.is_above(2.0));
    let names = vec!["versions walked per transaction".into(), "longest chain".into()];
    let mut compared = Vec::new();
    for gc in EPO {
        let points = [walked, longest].into_iter().enumerate().filter_map(|(n, metric)| {
            Some(Point::measured(n as f64, results.spread(&run.with_gc(gc), metric)?))
        });
        compared.push(Series::measured(gc, points.collect()));
    }
    let figure = grouped("With and without eager pruning", names, "figure", "versions, dram", compared);
    Finding::of(rule, "versions", ours.join("; "), vec![figure])
}
