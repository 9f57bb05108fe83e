//! Helpers that experiments share.

use crate::figure::{Figure, Point, Series, Shape};
use crate::measurement::{Measurement, Second};
use crate::numbers::{Spread, percent};
use crate::results::{Metric, Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::spec::not_built_in;
use crate::verdict::Rule;
use crate::workload::Work;

/// The baseline: nothing is reclaimed.
pub const NONE: &str = "none";
/// TB-Collect.
pub const TB: &str = "tb-collect";
/// Collectors that TB-Collect was compared with (TB-Collect 5.1).
pub const OTHERS: [&str; 4] = ["zen", "one-shot", "n2db", "steam"];
/// All of these.
pub const GROUP: [&str; 6] = [NONE, TB, "zen", "one-shot", "n2db", "steam"];

/// A position on the horizontal axis, and the run measured there, for some
/// collector.
pub type At = (f64, RunSpec);

/// A value taken from a run.
pub type Value<'v> = &'v dyn Fn(&RunSpec) -> Option<Spread>;

/// TPC-C on emulated Optane with one client per core.
pub fn tpcc(size: &Size, gc: &'static str) -> RunSpec {
    RunSpec::new(Work::Tpcc { warehouses: size.warehouses }, gc, size.cores, size.tpcc_pace)
}

/// The YCSB of most experiments: 20 operations, half of them updates, without
/// skew.
pub fn ycsb(size: &Size, gc: &'static str) -> RunSpec {
    let work = Work::Ycsb { tuples: size.tuples, ops: 20, updates: 50, theta: 0.0 };
    RunSpec::new(work, gc, size.cores, pace(size, 20, 50))
}

/// Seconds of warm-up and of measurement of such transactions: the warm-up lasts as long as the
/// same number of updates takes, so that blocks are due when it ends. A transaction takes about as
/// long as one more operation. Runs in which nothing settles anyway have the same warm-up.
pub fn pace(size: &Size, ops: u32, updates: u32) -> (f64, f64) {
    let (warmup, seconds) = size.pace;
    if !size.settles {
        return (warmup, seconds);
    }
    let [ops, updates] = [ops, updates].map(|n| f64::from(n.max(1)));
    let warmup = warmup * 100.0 / updates * (ops + 1.0) / ops;
    ((warmup * 100.0).round() / 100.0, seconds)
}

/// Each of the runs with each of the collectors.
pub fn each(gcs: &[&'static str], runs: impl IntoIterator<Item = RunSpec>) -> Vec<RunSpec> {
    runs.into_iter().flat_map(|run| gcs.iter().map(move |gc| run.with_gc(gc))).collect()
}

/// The runs at these positions.
pub fn runs(places: &[At]) -> Vec<RunSpec> {
    places.iter().map(|(_, run)| run.clone()).collect()
}

/// A series for each collector, with a point at each position that has a value.
pub fn series(gcs: &[&'static str], places: &[At], value: Value<'_>) -> Vec<Series> {
    let points = |gc: &&'static str| {
        let point = |(x, run): &At| Some(Point::measured(*x, value(&run.with_gc(gc))?));
        Series::measured(gc, places.iter().filter_map(point).collect())
    };
    gcs.iter().map(points).filter(|series| !series.points.is_empty()).collect()
}

/// A bar for each collector.
pub fn bars(title: &str, y: &str, gcs: &[&'static str], run: &RunSpec, value: Value<'_>) -> Figure {
    let numbered = gcs.iter().enumerate().map(|(n, gc)| series(&[gc], &[(n as f64, run.clone())], value));
    Figure {
        title: title.into(),
        shape: Shape::Bars(gcs.iter().map(ToString::to_string).collect()),
        x: "collector".into(),
        y: y.into(),
        series: numbered.flatten().collect(),
    }
}

/// Adds the published values to the bars of [`bars`].
pub fn publish(figure: &mut Figure, gcs: &[&str], published: &[(&str, f64)]) {
    for (name, value) in published {
        if let Some(n) = gcs.iter().position(|gc| gc == name) {
            figure.series.push(Series::published(name, &[(n as f64, *value)]));
        }
    }
}

/// Lines over a numeric axis.
pub fn lines(title: &str, x: &str, y: &str, doubling: bool, series: Vec<Series>) -> Figure {
    let shape = Shape::Lines { doubling, markers: true };
    Figure { title: title.into(), shape, x: x.into(), y: y.into(), series }
}

/// The seconds of the last repetition of each run, one line for each.
pub fn over_time(
    results: &Results,
    runs: &[(&str, RunSpec)],
    title: &str,
    y: &str,
    value: impl Fn(&Second) -> Option<f64>,
) -> Figure {
    let line = |(name, run): &(&str, RunSpec)| {
        let seconds = &results.one(run)?.seconds;
        let whole = seconds.iter().enumerate().filter(|(_, second)| second.is_whole());
        let point = |(n, second)| Some(Point::exact(n as f64 + 1.0, value(second)?));
        Some(Series::measured(name, whole.filter_map(point).collect()))
    };
    Figure {
        title: title.into(),
        shape: Shape::Lines { doubling: false, markers: false },
        x: "seconds of measurement".into(),
        y: y.into(),
        series: runs.iter().filter_map(line).collect(),
    }
}

/// The name of an axis of clients. Where there are more than cores, they share them.
pub fn clients(size: &Size) -> String {
    format!("threads (more than {} take turns on the cores)", size.cores)
}

/// Groups of bars.
pub fn grouped(title: &str, names: Vec<String>, x: &str, y: &str, series: Vec<Series>) -> Figure {
    Figure { title: title.into(), shape: Shape::Bars(names), x: x.into(), y: y.into(), series }
}

/// Throughput as a share of the baseline's in the same repetitions.
pub fn share_of_none(results: &Results, run: &RunSpec) -> Option<Spread> {
    results.quotient(run, &run.with_gc(NONE), &throughput)
}

/// What a run keeps of another's throughput, divided by what a third keeps of a
/// fourth's.
pub fn kept_against(results: &Results, kept: [RunSpec; 2], against: [RunSpec; 2]) -> Option<Spread> {
    results.together(&[kept, against].concat(), &throughput, &|speeds| {
        (speeds[0] / speeds[1]) / (speeds[2] / speeds[3])
    })
}

/// Adds to a rule that runs of this size are too short for what it is about.
pub fn settled(rule: &mut Rule, size: &Size) {
    if !size.settles {
        rule.lack("chains and space take ten seconds to settle at least, and these runs are shorter");
    }
}

/// Versions beyond the newest that the baseline stores are fewer with a collector that has begun: at
/// most this share of them is left.
const LEFT_AT_MOST: f64 = 0.7;

/// What is said where more is left.
const HARDLY_COLLECTED: &str = "tb-collect has hardly begun to collect in runs of this length";

/// Adds to a rule that TB-Collect leaves about as much as the baseline, if this share is left.
pub fn begun(rule: &mut Rule, left: Option<Spread>) {
    if left.is_some_and(|left| left.median > LEFT_AT_MOST) {
        rule.lack(HARDLY_COLLECTED);
    }
}

/// Adds to a rule that TB-Collect has hardly reclaimed anything in this run, so that its costs are
/// not seen, where the measurements say so. A SQL server does not tell them.
pub fn collected(rule: &mut Rule, results: &Results, run: &RunSpec) {
    let [tb, none] = [TB, NONE].map(|gc| run.with_gc(gc));
    let old =
        |measurement: &Measurement| (measurement.stored_mean >= 1.0).then_some(measurement.stored_mean - 1.0);
    let left = results.quotient(&tb, &none, &old);
    let reclaimed = results.spread(&tb, &|measurement| Some(measurement.blocks_reclaimed? as f64));
    begun(rule, left);
    if reclaimed.is_some_and(|blocks| blocks.median == 0.0) {
        rule.lack(HARDLY_COLLECTED);
    }
}

/// Requires that space grows less with TB-Collect than with another collector.
pub fn grows_less(rule: &mut Rule, results: &Results, run: &RunSpec, other: &'static str, place: &str) {
    let [ours, theirs] = [TB, other].map(|gc| run.with_gc(gc));
    let grows = |run: &RunSpec| results.all(run).any(Measurement::has_grown);
    let are_there = [&ours, &theirs].into_iter().all(|run| results.repetitions(&run.key()) > 0);
    if are_there && !grows(&ours) && !grows(&theirs) {
        rule.lack(format!("{place}neither {TB} nor {other} takes more space within runs of this length"));
    }
    let by = results.quotient(&ours, &theirs, &Measurement::grown);
    rule.smaller(&format!("{place}the growth of {TB}"), &format!("that of {other}"), by);
}

/// The growth of space and its two parts: what each is called, and on an axis.
pub fn growths(whole: &'static str) -> [(&'static str, &'static str, Metric<'static>); 3] {
    [
        (whole, "growth of medium and DRAM", &Measurement::growth),
        ("Of it, on the medium", "growth of the medium", &Measurement::medium_growth),
        ("Of it, in DRAM", "growth of DRAM", &Measurement::dram_growth),
    ]
}

/// Adds to a rule what is missing of the runs that it needs.
pub fn need(rule: &mut Rule, results: &Results, runs: impl IntoIterator<Item = RunSpec>) {
    for run in runs {
        match results.why_missing(&run) {
            None => {}
            Some(why) if why == not_built_in(run.gc) => rule.absent(run.gc),
            Some(why) => rule.lack(why),
        }
    }
}

/// How far a share of the baseline's throughput may be from the published one on another machine.
const NEAR: f64 = 0.1;

/// Requires that a run has about the published share of the baseline's throughput.
pub fn keeps(rule: &mut Rule, results: &Results, run: &RunSpec, published: f64, place: &str) {
    let share = share_of_none(results, run);
    let what = format!("{place}the throughput of {} against NoGC's", run.gc);
    rule.between(&what, share, (published - NEAR, published + NEAR));
}

/// Requires that `winner` has a higher throughput than each of `others`.
pub fn fastest(
    rule: &mut Rule,
    results: &Results,
    run: &RunSpec,
    winner: &'static str,
    others: &[&'static str],
    place: &str,
) {
    for other in others {
        let by = results.quotient(&run.with_gc(winner), &run.with_gc(other), &throughput);
        rule.larger(&format!("{place}{winner}"), other, by);
    }
}

/// Shares of the baseline, as one short text.
pub fn told(results: &Results, gcs: &[&'static str], run: &RunSpec) -> String {
    let one = |gc: &&'static str| {
        let share = share_of_none(results, &run.with_gc(gc))?;
        Some(format!("{gc} {}", percent(share.median)))
    };
    gcs.iter().filter(|&&gc| gc != NONE).filter_map(one).collect::<Vec<_>>().join(", ")
}
