//! Zen+: its design beside those of three other engines for persistent memory, and beside a naive allocator (5.2, 5.4).

use pantile_bench::settings::OWN_PROTOCOL;

use super::Finding;
use super::help::{TB, grouped, need, tpcc};
use crate::figure::{Figure, Point, Series};
use crate::numbers::{Outcome, Spread, times};
use crate::results::{Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
use crate::workload::Work;

/// The design that is proposed.
const ZEN: &str = "zen";
const OTHERS: [&str; 3] = ["mmdb", "wbl", "foedus"];
const DESIGNS: [&str; 4] = [ZEN, OTHERS[0], OTHERS[1], OTHERS[2]];
/// The same as zen with an allocator that persists.
const NAIVE: &str = "zen-naive";

/// Emulated memories that charge the costs of a design, with that many times the bytes of DRAM.
const MEMORIES: [&str; 13] = [
    "nvm:optane-40+zen:4",
    "nvm:optane-40+zen-naive:4",
    "nvm:optane-40+mmdb:4",
    "nvm:optane-40+wbl:4",
    "nvm:optane-40+foedus:4",
    "nvm:optane-40+zen:8",
    "nvm:optane-40+mmdb:8",
    "nvm:optane-40+wbl:8",
    "nvm:optane-40+foedus:8",
    "nvm:optane-40+zen:16",
    "nvm:optane-40+mmdb:16",
    "nvm:optane-40+wbl:16",
    "nvm:optane-40+foedus:16",
];

/// Read only, runs with and without an allocator that persists are alike within this share.
const AS_FAST: f64 = 0.95;

/// The least published factor over the three others, by share of updates and ratio (figures 8 and 10). For 8 times the
/// DRAM only curves were published (figure 9).
const YCSB_LEAST: [(u32, u32, f64); 6] =
    [(0, 4, 1.25), (50, 4, 1.54), (90, 4, 2.16), (0, 16, 1.34), (50, 16, 1.02), (90, 16, 1.02)];

/// The same on TPC-C, by ratio (figure 20).
const TPCC_LEAST: [(u32, f64); 3] = [(4, 1.56), (8, 1.72), (16, 1.75)];

/// The least published factor over mmdb under each of the concurrency controls.
const PROTOCOLS_LEAST: f64 = 1.1;

/// Requires the least published factor. What the emulation leaves out favours the others.
fn at_least(by: &Spread, least: f64) -> Outcome {
    if by.is_tie() { Outcome::Refuted } else { by.is_above(least) }
}

/// The least by which workloads with writes are faster without an allocator that persists. Only the bandwidth of what it
/// persists is charged, a fifth of a tuple's at most, and not the time that the processor waits for it.
const WITHOUT_PERSISTING: f64 = 1.3;

/// Tuples of 1 KB of which a sixteenth is more than a processor has in its caches for a core.
const ENOUGH_TUPLES: u64 = 200_000;

/// The ratio of most figures of the publication.
const FIRST_RATIO: u32 = 4;

/// The run on a design with a ratio.
fn on(run: &RunSpec, design: &str, ratio: u32) -> Option<RunSpec> {
    let design = format!("+{design}:{ratio}");
    let memory = MEMORIES.iter().find(|memory| memory.ends_with(&design))?;
    Some(run.clone().on(memory))
}

/// The run on each design, with each ratio.
fn on_each(run: &RunSpec, size: &Size) -> Vec<RunSpec> {
    let with = |ratio: &u32| DESIGNS.map(|design| on(run, design, *ratio));
    size.ratios.iter().flat_map(with).flatten().collect()
}

/// YCSB with this share of updates and this skew.
fn ycsb(size: &Size, (updates, theta): (u32, f64)) -> RunSpec {
    let work = Work::Zen { tuples: size.zen_tuples, updates, theta, beside: None };
    RunSpec::new(work, TB, size.cores, half(size.pace))
}

/// These are many runs.
fn half((warmup, seconds): (f64, f64)) -> (f64, f64) {
    (warmup / 2.0, seconds / 2.0)
}

fn tpcc_run(size: &Size) -> RunSpec {
    let (warmup, seconds) = half(size.tpcc_pace);
    RunSpec { warmup, seconds, ..tpcc(size, TB) }
}

pub fn ycsb_runs(size: &Size) -> Vec<RunSpec> {
    size.zen_mixes.iter().flat_map(|mix| on_each(&ycsb(size, *mix), size)).collect()
}

/// On the design with each allocator.
pub fn allocator_runs(size: &Size) -> Vec<RunSpec> {
    let on_both = |mix: &(u32, f64)| [ZEN, NAIVE].map(|design| on(&ycsb(size, *mix), design, FIRST_RATIO));
    size.zen_mixes.iter().flat_map(on_both).flatten().collect()
}

pub fn judge_allocators(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, allocator_runs(size));
    let runs: Vec<_> = size.zen_mixes.iter().map(|mix| ycsb(size, *mix)).collect();
    let mut told = Vec::new();
    for (run, (updates, theta)) in runs.iter().zip(&size.zen_mixes) {
        let [zen, naive] = [ZEN, NAIVE].map(|design| on(run, design, FIRST_RATIO));
        let (Some(zen), Some(naive)) = (zen, naive) else { continue };
        let by = results.quotient(&zen, &naive, &throughput);
        let tell = |by: &Spread| format!("{} with {updates} % updates and skew {theta}", times(by.median));
        told.extend(by.as_ref().map(tell));
        rule.compare(&format!("{updates} % updates, skew {theta}: {ZEN}"), NAIVE, by, |by| match updates {
            0 => by.is_between(AS_FAST, 1.0 / AS_FAST),
            _ => at_least(by, WITHOUT_PERSISTING),
        });
    }
    let names = size.zen_mixes.iter().map(|(updates, theta)| format!("{updates} %, skew {theta}")).collect();
    let title = "YCSB with and without an allocator that persists";
    let plot = plot(results, title, names, "updates", &runs, &[ZEN, NAIVE], FIRST_RATIO);
    let ours = match told.is_empty() {
        true => String::new(),
        false => format!("zen is, against zen-naive, {}", told.join(", ")),
    };
    Finding::of(rule, "transactions/s", ours, vec![plot])
}

pub fn tpcc_runs(size: &Size) -> Vec<RunSpec> {
    on_each(&tpcc_run(size), size)
}

pub fn judge_ycsb(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, ycsb_runs(size));
    let mut told = Told::default();
    for ratio in &size.ratios {
        for (updates, theta) in &size.zen_mixes {
            let run = ycsb(size, (*updates, *theta));
            let place = format!("1:{ratio}, {updates} % updates, skew {theta}: ");
            let least = YCSB_LEAST.iter().find(|(of, at, _)| (of, at) == (updates, ratio));
            told.compare(results, &run, *ratio, |other, by| {
                if let Some((.., least)) = least {
                    rule.compare(&format!("{place}zen"), other, by, |by| at_least(by, *least));
                }
            });
        }
    }
    if size.zen_tuples < ENOUGH_TUPLES {
        rule.lack("the data of runs of this size is hardly larger than the caches of a processor");
    }
    let mut skews: Vec<_> = size.zen_mixes.iter().map(|(_, theta)| *theta).collect();
    skews.dedup();
    let figures = size.ratios.iter().flat_map(|ratio| skews.iter().map(move |theta| (*ratio, *theta)));
    let figures = figures.map(|(ratio, theta)| {
        let mixes: Vec<_> = size.zen_mixes.iter().filter(|mix| mix.1 == theta).collect();
        let runs: Vec<_> = mixes.iter().map(|mix| ycsb(size, **mix)).collect();
        let names = mixes.iter().map(|mix| format!("{} %", mix.0)).collect();
        let title = format!("YCSB on four designs, memory {ratio} times DRAM, skew {theta}");
        plot(results, &title, names, "updates", &runs, &DESIGNS, ratio)
    });
    let figures = figures.collect();
    Finding::of(rule, "transactions/s", told.text(), figures)
}

pub fn judge_tpcc(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, tpcc_runs(size));
    let run = tpcc_run(size);
    let mut told = Told::default();
    for ratio in &size.ratios {
        let least = TPCC_LEAST.iter().find(|(at, _)| at == ratio);
        told.compare(results, &run, *ratio, |other, by| match least {
            Some((_, least)) => {
                rule.compare(&format!("1:{ratio}: zen"), other, by, |by| at_least(by, *least));
            }
            None => rule.lack(format!("nothing is published for 1:{ratio}")),
        });
    }
    let figures = size.ratios.iter().map(|ratio| {
        let title = format!("TPC-C on four designs, memory {ratio} times DRAM");
        plot(results, &title, vec!["TPC-C".into()], "workload", std::slice::from_ref(&run), &DESIGNS, *ratio)
    });
    let figures = figures.collect();
    Finding::of(rule, "transactions/s", told.text(), figures)
}

/// The least and the most by which zen is faster than each of the others.
#[derive(Default)]
struct Told([Option<(f64, f64)>; OTHERS.len()]);

impl Told {
    /// Tells `each` how many times as fast zen is as each of the others.
    fn compare(
        &mut self,
        results: &Results,
        run: &RunSpec,
        ratio: u32,
        mut each: impl FnMut(&str, Option<Spread>),
    ) {
        for (other, seen) in OTHERS.iter().zip(&mut self.0) {
            let (Some(zen), Some(run)) = (on(run, ZEN, ratio), on(run, other, ratio)) else { continue };
            let by = results.quotient(&zen, &run, &throughput);
            if let Some(by) = &by {
                let (low, high) = seen.unwrap_or((by.median, by.median));
                *seen = Some((low.min(by.median), high.max(by.median)));
            }
            each(other, by);
        }
    }

    fn text(&self) -> String {
        let seen = OTHERS.iter().zip(&self.0).filter_map(|(other, seen)| seen.map(|seen| (other, seen)));
        let told: Vec<_> = seen
            .map(|(other, (low, high))| match times(low) == times(high) {
                true => format!("{} {other}", times(low)),
                false => format!("{} to {} {other}", times(low), times(high)),
            })
            .collect();
        if told.is_empty() { String::new() } else { format!("zen is {}", told.join(", ")) }
    }
}

/// Bars for the throughput of the runs on each of these designs.
fn plot(
    results: &Results,
    title: &str,
    names: Vec<String>,
    x: &str,
    runs: &[RunSpec],
    designs: &[&'static str],
    ratio: u32,
) -> Figure {
    let series = designs.iter().map(|design| {
        let points = runs.iter().enumerate().filter_map(|(n, run)| {
            Some(Point::measured(n as f64, results.spread(&on(run, design, ratio)?, &throughput)?))
        });
        Series::measured(design, points.collect())
    });
    let series = series.filter(|series| !series.points.is_empty()).collect();
    grouped(title, names, x, "transactions/s, nvm:optane-40", series)
}

/// The published workload of the protocols: 16 operations, half of them updates, high skew.
fn skewed(size: &Size) -> RunSpec {
    ycsb(size, (50, 0.95))
}

/// The engine's own protocol and the others.
fn protocols(size: &Size) -> Vec<RunSpec> {
    let own = skewed(size);
    let others: Vec<_> = size.protocols.iter().map(|name| own.clone().under(name)).collect();
    [own].into_iter().chain(others).collect()
}

pub fn under_each(size: &Size) -> Vec<RunSpec> {
    let on_both = |run: &RunSpec| [ZEN, OTHERS[0]].map(|design| on(run, design, FIRST_RATIO));
    protocols(size).iter().flat_map(on_both).flatten().collect()
}

pub fn judge_protocols(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, under_each(size));
    let name = |run: &RunSpec| run.protocol.unwrap_or(OWN_PROTOCOL);
    let mut told = Vec::new();
    let runs = protocols(size);
    for run in &runs {
        let [zen, mmdb] = [ZEN, OTHERS[0]].map(|design| on(run, design, FIRST_RATIO));
        let (Some(zen), Some(mmdb)) = (zen, mmdb) else { continue };
        if results.spread(&zen, &throughput).is_some_and(|speed| speed.median <= 0.0) {
            rule.lack(format!("{} commits nothing", name(run)));
        }
        // Where mmdb commits nothing there is no figure, and so no verdict.
        let by = results.quotient(&zen, &mmdb, &throughput);
        told.extend(by.as_ref().map(|by| format!("{} {}", name(run), times(by.median))));
        rule.compare(&format!("{} on zen", name(run)), "on mmdb", by, |by| at_least(by, PROTOCOLS_LEAST));
    }
    let left = pantile_protocols::all().len() - size.protocols.len();
    if left > 0 && !rule.is_refuted() {
        rule.lack(format!("runs of this size leave out {left} of the ten"));
    }
    let names = runs.iter().map(|run| name(run).to_owned()).collect();
    let title = "YCSB under ten concurrency controls and the engine's own";
    let plot = plot(results, title, names, "protocol", &runs, &DESIGNS, FIRST_RATIO);
    let ours = match told.is_empty() {
        true => String::new(),
        false => format!("throughput on zen against mmdb: {}", told.join(", ")),
    };
    Finding::of(rule, "transactions/s", ours, vec![plot])
}
