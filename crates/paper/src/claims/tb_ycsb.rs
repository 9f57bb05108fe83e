//! TB-Collect: YCSB by threads, shares of writes, skew and size (figures 8 to 11).

use super::help::{
    At, GROUP, NONE, OTHERS, TB, clients, collected, each, fastest, keeps, kept_against, lines, need, pace,
    runs, series, share_of_none, told, ycsb,
};
use super::{Claim, Experiment, Finding};
use crate::figure::{Figure, Series};
use crate::numbers::times;
use crate::results::{Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
use crate::workload::Work;

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "TB-8a",
        title: "YCSB with half updates, by threads",
        source: "TB-Collect, section 5.3, figure 8a",
        text: "With 50 % updates, 20 operations and no skew, throughput peaks with a thread on every logical core, where \
               TB-Collect keeps 85 % of NoGC's (0.65 M txn/s), ahead of Zen 0.49, OneShot 0.46, N2DB 0.44, Steam 0.43.",
        published: "tb-collect 85 %, zen 75 %, one-shot 71 %, n2db 68 %, steam 66 % of NoGC",
        rule: "With one thread per core, tb-collect has a higher throughput than each other collector, and 75 to 95 % of NoGC's. \
               Whether throughput falls with more threads than cores is not judged, but shown.",
        experiment: Experiment { runs: |size| every_collector(&by_threads(size, 50)), judge: judge_half },
    },
    Claim {
        id: "TB-8b",
        title: "YCSB with updates only",
        source: "TB-Collect, section 5.3, figure 8b",
        text: "With 100 % updates the medium's bandwidth is the limit: all collectors keep about 80 % of NoGC's \
               throughput, but for OneShot, whose delta storage makes it the slowest.",
        published: "all about 80 % of NoGC, one-shot the lowest",
        rule: "tb-collect, zen, n2db and steam keep 70 to 90 % of NoGC's throughput, with a thread for each core, and each is \
               faster than one-shot.",
        experiment: Experiment { runs: |size| every_collector(&by_threads(size, 100)), judge: judge_updates },
    },
    Claim {
        id: "TB-8c",
        title: "YCSB by share of writes",
        source: "TB-Collect, section 5.3, figure 8c",
        text: "TB-Collect's advantage over the other collectors grows with the share of writes and peaks at 60 %, where it is \
               10.2 to 20.3 % faster than they are.",
        published: "10.2 to 20.3 % faster than the others at 60 % writes, where the advantage peaks",
        rule: "At 60 % writes tb-collect is faster than each other collector, and its mean advantage over them is larger there \
               than with the smallest and with the largest share of writes.",
        experiment: Experiment { runs: |size| every_collector(&by_share(size)), judge: judge_shares },
    },
    Claim {
        id: "TB-9",
        title: "YCSB by skew",
        source: "TB-Collect, section 5.3, figure 9",
        text: "With half updates, TB-Collect is the fastest collector at every skew: 86 % of NoGC at theta 0.5 and 81 % at \
               0.9, where Steam keeps 63 and 51 %.",
        published: "theta 0.5 / 0.9: tb-collect 86 / 81 %, steam 63 / 51 % of NoGC",
        rule: "tb-collect is faster than each other collector at theta 0.5 and at 0.9, where it keeps 76 to 96 % and 71 to 91 % of \
               NoGC's throughput, and steam's share of it is smaller at 0.9 than at 0.5.",
        experiment: Experiment { runs: |size| every_collector(&by_theta(size)), judge: judge_skew },
    },
    Claim {
        id: "TB-10",
        title: "YCSB by size of transactions",
        source: "TB-Collect, section 5.3, figure 10",
        text: "TB-Collect is the fastest collector, with 85 % of NoGC at 20 operations a transaction; Steam and N2DB, which \
               collect at every commit, are the slowest with small transactions.",
        published: "tb-collect 85 % of NoGC at 20 operations; steam and n2db slowest at small transactions",
        rule: "tb-collect is faster than each other collector at 20 operations and keeps 75 to 95 % of NoGC's throughput there; with the smallest transactions, steam and n2db are \
               slower than tb-collect, zen and one-shot.",
        experiment: Experiment { runs: |size| every_collector(&by_ops(size)), judge: judge_ops },
    },
    Claim {
        id: "TB-11",
        title: "Keeping chains walkable: tiles against a hash index",
        source: "TB-Collect, section 5.4, figure 11",
        text: "At theta 0.9 and 10 operations a transaction, TB-Collect with its tiles and with OneShot's hash index both keep 81 % \
               of NoGC's throughput. With 10 % of transactions of 100 operations, tiles keep 79 % and the hash index 69 %.",
        published: "81 % both; with long transactions 79 % against 69 %",
        rule: "Without long transactions, tb-collect-hash is within 3 % of tb-collect, and both keep 71 to 91 % of NoGC's throughput; \
               with them tb-collect is faster and keeps 69 to 89 %, and tb-collect-hash 59 to 79 %.",
        experiment: Experiment { runs: |size| each(&HASH, two_mixes(size)), judge: judge_hash },
    },
];

const SHARE: &str = "share of NoGC's throughput, nvm:optane-40";
const UNIT: &str = "share of NoGC's throughput";
const SPEED: &str = "transactions/s, nvm:optane-40";

/// Every collector at each of these positions.
fn every_collector(places: &[At]) -> Vec<RunSpec> {
    each(&GROUP, runs(places))
}

/// The YCSB of most experiments, with a change.
fn with(size: &Size, change: impl FnOnce(&mut u32, &mut u32, &mut f64)) -> RunSpec {
    let (mut ops, mut updates, mut theta) = (20, 50, 0.0);
    change(&mut ops, &mut updates, &mut theta);
    let work = Work::Ycsb { tuples: size.tuples, ops, updates, theta };
    RunSpec::new(work, NONE, size.cores, pace(size, ops, updates))
}

/// Shares of NoGC's throughput, and the throughput itself.
fn figures(
    results: &Results,
    (title, x): (&str, &str),
    places: &[At],
    published: Vec<Series>,
    doubling: bool,
) -> Vec<Figure> {
    let mut shares = series(&GROUP[1..], places, &|run| share_of_none(results, run));
    shares.extend(published);
    let speeds = series(&GROUP, places, &|run| results.spread(run, &throughput));
    vec![
        lines(&format!("{title}, against NoGC's"), x, SHARE, doubling, shares),
        lines(title, x, SPEED, doubling, speeds),
    ]
}

fn by_threads(size: &Size, updates: u32) -> Vec<At> {
    let at = |threads: usize| {
        let run = with(size, |_, share, _| *share = updates);
        (threads as f64, RunSpec { threads, ..run })
    };
    size.threads().into_iter().map(at).collect()
}

fn judge_half(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = ycsb(size, NONE);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    collected(&mut rule, results, &run);
    fastest(&mut rule, results, &run, TB, &OTHERS, "");
    keeps(&mut rule, results, &run.with_gc(TB), 0.85, "");
    let shares = [(TB, 0.846), ("zen", 0.754), ("one-shot", 0.708), ("n2db", 0.677), ("steam", 0.662)];
    let published = shares.map(|(gc, share)| Series::published(gc, &[(size.cores as f64, share)]));
    let title = "YCSB throughput, 50 % updates, by threads";
    let figures = figures(results, (title, &clients(size)), &by_threads(size, 50), published.into(), true);
    Finding::of(rule, UNIT, told(results, &GROUP, &run), figures)
}

fn judge_updates(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = with(size, |_, updates, _| *updates = 100);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    collected(&mut rule, results, &run);
    for gc in [TB, "zen", "n2db", "steam"] {
        let share = share_of_none(results, &run.with_gc(gc));
        rule.between(&format!("{gc} against NoGC"), share, (0.7, 0.9));
        let by = results.quotient(&run.with_gc(gc), &run.with_gc("one-shot"), &throughput);
        rule.larger(gc, "one-shot", by);
    }
    let published = [TB, "zen", "n2db", "steam"].map(|gc| Series::published(gc, &[(size.cores as f64, 0.8)]));
    let title = "YCSB throughput, 100 % updates, by threads";
    let figures = figures(results, (title, &clients(size)), &by_threads(size, 100), published.into(), true);
    Finding::of(rule, UNIT, told(results, &GROUP, &run), figures)
}

/// The share of writes at which TB-Collect's advantage is published to peak.
const PEAK: u32 = 60;

fn by_share(size: &Size) -> Vec<At> {
    let mut shares = size.shares.clone();
    // The shares of figures 8a and 8b belong to it.
    shares.extend([50, PEAK, 100]);
    shares.sort_unstable();
    shares.dedup();
    shares.into_iter().map(|share| (f64::from(share), with(size, |_, updates, _| *updates = share))).collect()
}

/// The runs of TB-Collect and of those that it is compared with.
fn compared(run: &RunSpec) -> Vec<RunSpec> {
    std::iter::once(TB).chain(OTHERS).map(|gc| run.with_gc(gc)).collect()
}

/// How many times faster the first is than the others, on average.
fn advantage(speeds: &[f64]) -> f64 {
    let others = &speeds[1..];
    others.iter().map(|other| speeds[0] / other).sum::<f64>() / others.len() as f64
}

fn judge_shares(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let places = by_share(size);
    need(&mut rule, results, every_collector(&places));
    let peak = with(size, |_, updates, _| *updates = PEAK);
    let ends = [places.first(), places.last()].into_iter().flatten();
    ends.clone().map(|(_, run)| run).chain([&peak]).for_each(|run| collected(&mut rule, results, run));
    fastest(&mut rule, results, &peak, TB, &OTHERS, "at 60 % writes ");
    let at_peak = results.together(&compared(&peak), &throughput, &advantage);
    for (share, run) in ends {
        let both = [compared(&peak), compared(run)].concat();
        let by = results.together(&both, &throughput, &|speeds| {
            let (at_peak, there) = speeds.split_at(speeds.len() / 2);
            advantage(at_peak) / advantage(there)
        });
        rule.larger("the advantage at 60 % writes", &format!("that at {share} %"), by);
    }
    let ours = at_peak
        .map_or(String::new(), |by| format!("{} the others on average at 60 % writes", times(by.median)));
    let title = "YCSB throughput by share of writes";
    let figures = figures(results, (title, "updates, % of operations"), &places, Vec::new(), false);
    Finding::of(rule, UNIT, ours, figures)
}

fn by_theta(size: &Size) -> Vec<At> {
    let thetas = std::iter::once(0.0).chain(size.thetas.iter().copied());
    thetas.map(|theta| (theta, with(size, |_, _, skew| *skew = theta))).collect()
}

fn judge_skew(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let at = |theta, gc| with(size, |_, _, skew| *skew = theta).with_gc(gc);
    let mut ours = Vec::new();
    for (theta, share) in [(0.5, 0.86), (0.9, 0.81)] {
        let run = at(theta, NONE);
        need(&mut rule, results, each(&GROUP, [run.clone()]));
        collected(&mut rule, results, &run);
        fastest(&mut rule, results, &run, TB, &OTHERS, &format!("at theta {theta} "));
        keeps(&mut rule, results, &run.with_gc(TB), share, &format!("at theta {theta} "));
        ours.push(format!("theta {theta}: {}", told(results, &[TB, "steam"], &run)));
    }
    let [high, low] = [0.9, 0.5].map(|theta| [at(theta, "steam"), at(theta, NONE)]);
    let by = kept_against(results, high, low);
    rule.smaller("the share that steam keeps at theta 0.9", "that at 0.5", by);
    let published = vec![
        Series::published(TB, &[(0.5, 0.86), (0.9, 0.81)]),
        Series::published("steam", &[(0.5, 0.63), (0.9, 0.51)]),
    ];
    let title = "YCSB throughput by skew";
    let figures =
        figures(results, (title, "theta of the zipf distribution"), &by_theta(size), published, false);
    Finding::of(rule, UNIT, ours.join("; "), figures)
}

fn by_ops(size: &Size) -> Vec<At> {
    let mut all = size.ops.clone();
    all.push(20);
    all.sort_unstable();
    all.into_iter().map(|n| (f64::from(n), with(size, |ops, _, _| *ops = n))).collect()
}

fn judge_ops(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let places = by_ops(size);
    let twenty = ycsb(size, NONE);
    let Some((fewest, small)) = places.first() else {
        return Finding::of(rule, UNIT, String::new(), Vec::new());
    };
    need(&mut rule, results, each(&GROUP, [twenty.clone(), small.clone()]));
    collected(&mut rule, results, &twenty);
    collected(&mut rule, results, small);
    fastest(&mut rule, results, &twenty, TB, &OTHERS, "at 20 operations ");
    keeps(&mut rule, results, &twenty.with_gc(TB), 0.85, "at 20 operations ");
    for slow in ["steam", "n2db"] {
        for fast in [TB, "zen", "one-shot"] {
            let by = results.quotient(&small.with_gc(slow), &small.with_gc(fast), &throughput);
            rule.smaller(&format!("with {fewest} operations {slow}"), fast, by);
        }
    }
    let published = vec![Series::published(TB, &[(20.0, 0.85)])];
    let title = "YCSB throughput by size of transactions";
    let figures = figures(results, (title, "operations of a transaction"), &places, published, true);
    Finding::of(rule, UNIT, format!("20 operations: {}", told(results, &GROUP, &twenty)), figures)
}

/// The collectors that figure 11 compares.
const HASH: [&str; 3] = [NONE, TB, "tb-collect-hash"];

/// Transactions of ten operations, and the same with some of a hundred.
fn two_mixes(size: &Size) -> [RunSpec; 2] {
    let short = with(size, |ops, _, theta| (*ops, *theta) = (10, 0.9));
    let work = Work::Mixed { tuples: size.tuples, ops: 10, theta: 0.9, long_share: 10, long_ops: 100 };
    [short.clone(), RunSpec { work, ..short }]
}

fn judge_hash(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let [short, long] = two_mixes(size);
    need(&mut rule, results, each(&HASH, [short.clone(), long.clone()]));
    collected(&mut rule, results, &short);
    collected(&mut rule, results, &long);
    let by = |run: &RunSpec| results.quotient(&run.with_gc(TB), &run.with_gc("tb-collect-hash"), &throughput);
    rule.compare("without long transactions tb-collect", "tb-collect-hash", by(&short), |by| {
        by.is_between(0.97, 1.03)
    });
    rule.larger("with long transactions tb-collect", "tb-collect-hash", by(&long));
    for (run, gc, share, place) in [
        (&short, TB, 0.81, "without long transactions "),
        (&short, "tb-collect-hash", 0.81, "without long transactions "),
        (&long, TB, 0.79, "with long transactions "),
        (&long, "tb-collect-hash", 0.69, "with long transactions "),
    ] {
        keeps(&mut rule, results, &run.with_gc(gc), share, place);
    }
    let bypassed = results.spread(&long.with_gc(TB), &|measurement| Some(measurement.blocks_bypassed as f64));
    if bypassed.is_some_and(|bypassed| bypassed.median == 0.0) {
        rule.lack(
            "no transaction was older than a block that was reclaimed, so chains were not consolidated",
        );
    }
    let places = [(0.0, short.clone()), (1.0, long.clone())];
    let mut shares = series(&HASH[1..], &places, &|run| share_of_none(results, run));
    shares.push(Series::published(TB, &[(0.0, 0.81), (1.0, 0.79)]));
    shares.push(Series::published("tb-collect-hash", &[(0.0, 0.81), (1.0, 0.69)]));
    let names = vec!["10 operations".into(), "10 %: 100 operations".into()];
    let title = "YCSB throughput at theta 0.9, against NoGC's";
    let figure = super::help::grouped(title, names, "transactions", SHARE, shares);
    let ours = format!("{}; with long ones: {}", told(results, &HASH, &short), told(results, &HASH, &long));
    Finding::of(rule, UNIT, ours, vec![figure])
}
