//! TB-Collect: throughput and latency of TPC-C (figures 1 and 7).

use super::help::{
    At, GROUP, NONE, OTHERS, TB, bars, clients, collected, each, fastest, grouped, keeps, kept_against,
    lines, need, publish, runs, series, share_of_none, told, tpcc,
};
use super::tb_space::steady;
use super::{Claim, Experiment, Finding};
use crate::figure::{Point, Series};
use crate::measurement::Measurement;
use crate::numbers::{figure, percent, times};
use crate::results::{Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "TB-1",
        title: "What collecting costs on NVM against DRAM",
        source: "TB-Collect, figure 1",
        text: "Partition clearing (one-shot), pruning at commit (steam) and background scanning (zen) keep 88, 79 \
               and 83 % of NoGC's TPC-C throughput on DRAM, but only 56 to 68 % on NVM.",
        published: "DRAM 88 / 79 / 83 %, NVM 56 to 68 % of NoGC",
        rule: "For each of the three, the share of NoGC's throughput is smaller on emulated Optane than on DRAM.",
        experiment: Experiment { runs: on_both_media, judge: judge_media },
    },
    Claim {
        id: "TB-7a",
        title: "TPC-C throughput against NoGC",
        source: "TB-Collect, section 5.2, figure 7a",
        text: "On TPC-C, TB-Collect keeps 91 % of NoGC's throughput, the most of all collectors; Zen 75 %, OneShot \
               68 to 70 %, N2DB 66 to 68 %, Steam 63 to 66 %.",
        published: "tb-collect 91 %, zen 75 %, one-shot 69 %, n2db 67 %, steam 64 %",
        rule: "tb-collect has a higher throughput than each other collector; and of each two whose published shares \
               are more than 5 points apart, the same one is ahead here. tb-collect keeps 81 to 101 % of NoGC's.",
        experiment: Experiment { runs: |size| each(&GROUP, [tpcc(size, NONE)]), judge: judge_throughput },
    },
    Claim {
        id: "TB-7b",
        title: "TPC-C throughput by threads",
        source: "TB-Collect, section 5.2, figure 7b",
        text: "Throughput grows until every logical core has a thread (1.88 M txn/s of NoGC, 1.71 of TB-Collect, 1.41 \
               of Zen, 1.32 of OneShot, 1.28 of N2DB, 1.24 of Steam). With more threads NoGC, TB-Collect and OneShot \
               stay, Steam, Zen and N2DB fall, Steam to 79 % of its peak.",
        published: "peak with all cores busy; twice as many threads: steam 79 % of its peak",
        rule: "none and tb-collect are faster with a thread for each core than with one thread. With more threads than cores: \
               shown only, since here they wait for each other's turns, so the claim cannot hold as a whole.",
        experiment: Experiment { runs: |size| runs(&all_by_threads(size)), judge: judge_threads },
    },
    Claim {
        id: "TB-7c",
        title: "Latency of New-Order and Payment",
        source: "TB-Collect, section 5.2, figure 7c",
        text: "After NoGC, TB-Collect has the lowest latency: New-Order 65 us on average and 96 us at the 99th percentile \
               (NoGC 50 and 80), Payment 19 and 35 us (NoGC 12 and 22).",
        published: "New-Order 1.30x and Payment 1.58x of NoGC's mean, the least of all collectors",
        rule: "tb-collect has a lower mean and 99th percentile than each other collector, of New-Order and of Payment, as fast as \
               each goes, where the means largely follow from the throughput. Shown besides: at the same rate for all, as in TB-12. Not \
               judged: the 95th percentile, which lies between, and the published factors, which are of another processor.",
        experiment: Experiment {
            runs: |size| each(&GROUP, [tpcc(size, NONE), steady(size)]),
            judge: judge_latency,
        },
    },
];

const SHARES: [(&str, f64); 5] =
    [(TB, 0.91), ("zen", 0.75), ("one-shot", 0.69), ("n2db", 0.67), ("steam", 0.645)];

const SHARE: &str = "share of NoGC's throughput";

/// The collectors of figure 1, in its order.
const FIRST: [&str; 4] = [NONE, "one-shot", "steam", "zen"];

fn on_both_media(size: &Size) -> Vec<RunSpec> {
    each(&FIRST, [tpcc(size, NONE), tpcc(size, NONE).on("dram")])
}

fn judge_media(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, on_both_media(size));
    let (nvm, dram) = (tpcc(size, NONE), tpcc(size, NONE).on("dram"));
    for gc in &FIRST[1..] {
        let [on_nvm, on_dram] = [&nvm, &dram].map(|run| [run.with_gc(gc), run.clone()]);
        let by = kept_against(results, on_nvm, on_dram);
        rule.smaller(&format!("the share that {gc} keeps on nvm:optane-40"), "that on dram", by);
    }
    let places = [(0.0, dram.clone()), (1.0, nvm.clone())];
    let mut shares = series(&FIRST[1..], &places, &|run| share_of_none(results, run));
    for (gc, on_dram) in [("one-shot", 0.88), ("steam", 0.79), ("zen", 0.83)] {
        shares.push(Series::published(gc, &[(0.0, on_dram)]));
    }
    let names = vec!["dram".into(), "nvm:optane-40".into()];
    let ours = format!("DRAM: {}; NVM: {}", told(results, &FIRST, &dram), told(results, &FIRST, &nvm));
    let figure =
        grouped("TPC-C throughput against NoGC's on the same medium", names, "medium", SHARE, shares);
    Finding::of(rule, "share of NoGC's throughput", ours, vec![figure])
}

fn judge_throughput(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = tpcc(size, NONE);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    collected(&mut rule, results, &run);
    fastest(&mut rule, results, &run, TB, &OTHERS, "");
    keeps(&mut rule, results, &run.with_gc(TB), SHARES[0].1, "");
    for (n, &(ahead, more)) in SHARES.iter().enumerate().skip(1) {
        for &(behind, _) in SHARES[n + 1..].iter().filter(|(_, less)| more - less > 0.05) {
            let by = results.quotient(&run.with_gc(ahead), &run.with_gc(behind), &throughput);
            rule.larger(ahead, behind, by);
        }
    }
    let y = format!("{SHARE}, nvm:optane-40");
    let shown = &GROUP[1..];
    let mut figure =
        bars("TPC-C throughput against NoGC's", &y, shown, &run, &|run| share_of_none(results, run));
    publish(&mut figure, shown, &SHARES);
    let y = "transactions/s, nvm:optane-40";
    let absolute = bars("TPC-C throughput", y, &GROUP, &run, &|run| results.spread(run, &throughput));
    Finding::of(rule, "share of NoGC's throughput", told(results, &GROUP, &run), vec![figure, absolute])
}

fn by_threads(size: &Size) -> Vec<At> {
    let at = |threads: usize| (threads as f64, RunSpec { threads, ..tpcc(size, NONE) });
    size.threads().into_iter().map(at).collect()
}

fn all_by_threads(size: &Size) -> Vec<At> {
    let at = |(x, run): At| each(&GROUP, [run]).into_iter().map(move |run| (x, run));
    by_threads(size).into_iter().flat_map(at).collect()
}

/// Threads per core, and the share of NoGC's peak.
const PEAKS: [(&str, &[(f64, f64)]); 6] = [
    (NONE, &[(1.0, 1.0)]),
    (TB, &[(1.0, 0.91)]),
    ("zen", &[(1.0, 0.75)]),
    ("one-shot", &[(1.0, 0.70)]),
    ("n2db", &[(1.0, 0.68)]),
    ("steam", &[(1.0, 0.66), (2.0, 0.52)]),
];

fn judge_threads(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let up_to_cores = all_by_threads(size).into_iter().filter(|(_, run)| run.threads <= size.cores);
    need(&mut rule, results, up_to_cores.map(|(_, run)| run));
    collected(&mut rule, results, &tpcc(size, NONE));
    let at = |gc, threads| RunSpec { threads, ..tpcc(size, gc) };
    let (cores, twice) = (size.cores, size.cores * 2);
    for gc in [NONE, TB] {
        let by = results.quotient(&at(gc, cores), &at(gc, 1), &throughput);
        if cores > 1 {
            rule.larger(&format!("{gc} with a thread for each core"), "with one", by);
        }
    }
    let past = |gc| results.quotient(&at(gc, twice), &at(gc, cores), &throughput);
    if !rule.is_refuted() {
        rule.lack(
            "which collectors stay and which fall with more threads, past the cores, says little where threads take turns",
        );
    }
    let peak = at(NONE, cores);
    let per_core = |(threads, run): &At| (threads / cores as f64, run.clone());
    let places: Vec<_> = by_threads(size).iter().map(per_core).collect();
    let mut shares = series(&GROUP, &places, &|run| results.quotient(run, &peak, &throughput));
    shares.extend(PEAKS.iter().map(|(gc, points)| Series::published(gc, points)));
    let absolute = series(&GROUP, &by_threads(size), &|run| results.spread(run, &throughput));
    let told = |gc: &&'static str| past(gc).map(|share| format!("{gc} {}", percent(share.median)));
    let ours = format!(
        "{twice} threads against {cores}: {}",
        GROUP.iter().filter_map(told).collect::<Vec<_>>().join(", ")
    );
    let figures = vec![
        lines("TPC-C throughput by threads", &clients(size), "transactions/s, nvm:optane-40", true, absolute),
        lines(
            "TPC-C throughput against NoGC's with one thread per core",
            "threads per core (more than one take turns)",
            "share of NoGC's peak, nvm:optane-40",
            true,
            shares,
        ),
    ];
    Finding::of(rule, "transactions/s", ours, figures)
}

/// A kind of transaction, its name, a percentile, and the published values in
/// microseconds, by collector in the order of [`GROUP`].
type Published = (&'static str, &'static str, fn(&Measurement, &str) -> Option<f64>, [f64; 6]);

fn mean(measurement: &Measurement, kind: &str) -> Option<f64> {
    measurement.kinds.get(kind).map(|kind| kind.mean)
}

fn p95(measurement: &Measurement, kind: &str) -> Option<f64> {
    measurement.kinds.get(kind).map(|kind| kind.p95)
}

fn p99(measurement: &Measurement, kind: &str) -> Option<f64> {
    measurement.kinds.get(kind).map(|kind| kind.p99)
}

const LATENCIES: [Published; 6] = [
    ("new_order", "New-Order mean", mean, [50.0, 65.0, 82.0, 90.0, 91.0, 110.0]),
    ("new_order", "New-Order p95", p95, [72.0, 83.0, 114.0, 100.0, 135.0, 155.0]),
    ("new_order", "New-Order p99", p99, [80.0, 96.0, 168.0, 133.0, 188.0, 203.0]),
    ("payment", "Payment mean", mean, [12.0, 19.0, 22.0, 24.0, 27.0, 30.0]),
    ("payment", "Payment p95", p95, [17.0, 23.0, 31.0, 28.0, 41.0, 45.0]),
    ("payment", "Payment p99", p99, [22.0, 35.0, 53.0, 40.0, 63.0, 70.0]),
];

fn judge_latency(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = tpcc(size, NONE);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    collected(&mut rule, results, &run);
    let mut multiples: Vec<Series> = GROUP[1..].iter().map(|gc| Series::measured(gc, Vec::new())).collect();
    let mut micros: Vec<Series> = GROUP.iter().map(|gc| Series::measured(gc, Vec::new())).collect();
    let mut published: Vec<Series> = GROUP[1..].iter().map(|gc| Series::published(gc, &[])).collect();
    let mut ours = Vec::new();
    for (n, (kind, name, of, values)) in LATENCIES.iter().enumerate() {
        let metric = |measurement: &Measurement| of(measurement, kind);
        let x = n as f64;
        for (g, gc) in GROUP.iter().enumerate() {
            if let Some(spread) = results.spread(&run.with_gc(gc), &metric) {
                micros[g].points.push(Point::measured(x, spread));
            }
            if g == 0 {
                continue;
            }
            published[g - 1].points.push(Point::exact(x, values[g] / values[0]));
            if let Some(multiple) = results.quotient(&run.with_gc(gc), &run, &metric) {
                multiples[g - 1].points.push(Point::measured(x, multiple.clone()));
                if *gc == TB && name.ends_with("mean") {
                    ours.push(format!("{name} {}", times(multiple.median)));
                }
            }
        }
        for other in OTHERS.iter().filter(|_| !name.ends_with("p95")) {
            let by = results.quotient(&run.with_gc(TB), &run.with_gc(other), &metric);
            rule.smaller(&format!("the {name} of {TB}"), other, by);
        }
    }
    multiples.extend(published);
    let ours =
        if ours.is_empty() { String::new() } else { format!("tb-collect: {} of NoGC's", ours.join(", ")) };
    let names: Vec<_> = LATENCIES.iter().map(|(_, name, ..)| (*name).to_owned()).collect();
    let mut at_rate: Vec<Series> = GROUP.iter().map(|gc| Series::measured(gc, Vec::new())).collect();
    for (n, (kind, _, of, _)) in LATENCIES.iter().enumerate() {
        let metric = |measurement: &Measurement| of(measurement, kind);
        for (gc, series) in GROUP.iter().zip(&mut at_rate) {
            let spread = results.spread(&steady(size).with_gc(gc), &metric);
            series.points.extend(spread.map(|spread| Point::measured(n as f64, spread)));
        }
    }
    let against = grouped(
        "Latency against NoGC's",
        names.clone(),
        "transaction and figure",
        "latency, multiple of NoGC's, nvm:optane-40",
        multiples,
    );
    let y = "latency in us, nvm:optane-40";
    let absolute = grouped("Latency", names.clone(), "transaction and figure", y, micros);
    let title = format!("Latency at {} transactions a second", figure(size.tpcc_rate));
    let at_rate = grouped(&title, names, "transaction and figure", y, at_rate);
    Finding::of(rule, "multiple of NoGC's latency", ours, vec![against, absolute, at_rate])
}
