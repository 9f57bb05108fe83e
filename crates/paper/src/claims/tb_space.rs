//! TB-Collect: space, steadiness and chains (figures 12 to 14).

use super::help::{
    GROUP, NONE, OTHERS, TB, bars, collected, each, grows_less, growths, need, over_time, publish, settled,
    tpcc, ycsb,
};
use super::{Claim, Experiment, Finding};
use crate::measurement::{Measurement, Second};
use crate::numbers::{figure, percent, times};
use crate::results::{Metric, Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
use crate::workload::Work;

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "TB-12",
        title: "Growth of space at a fixed rate",
        source: "TB-Collect, section 5.5, figure 12",
        text: "After ten minutes of TPC-C at the same rate, TB-Collect has taken the least additional NVM and DRAM: 46 to \
               77 % of the other collectors.",
        published: "tb-collect takes 46 to 77 % of what each other collector takes",
        rule: "Every collector keeps up with the rate, and medium and DRAM together grow less with tb-collect than with each other \
               collector.",
        experiment: Experiment { runs: |size| each(&GROUP, [steady(size)]), judge: judge_growth },
    },
    Claim {
        id: "TB-13",
        title: "Throughput over time",
        source: "TB-Collect, section 5.5, figure 13",
        text: "Over 200 s of TPC-C, NoGC slows down after 150 s, when chains have grown long; TB-Collect is 1.23 to 1.40 times as \
               fast as the other collectors; Zen, whose thread in the background collects, is the least steady.",
        published: "NoGC decays; tb-collect 1.23 to 1.40x the others; zen the least steady",
        rule: "NoGC's throughput in the last quarter is below that of the first; tb-collect is faster than each other collector; \
               the throughput of seconds varies most with zen.",
        experiment: Experiment { runs: |size| each(&GROUP, [long(size)]), judge: judge_time },
    },
    Claim {
        id: "TB-14",
        title: "Length of chains and accesses per tuple",
        source: "TB-Collect, section 5.5, figure 14",
        text: "On YCSB at a fixed rate, chains are 2.8 versions long with TB-Collect, 5.5 with OneShot, 2.4 with Zen, 2.0 with N2DB \
               and 1.8 with Steam; in 30 minutes a tuple is accessed 135 times with TB-Collect, 140 with OneShot, 207 with Zen, \
               240 with N2DB and 247 with Steam.",
        published: "chains: tb-collect 2.8, one-shot 5.5, zen 2.4, n2db 2.0, steam 1.8; accesses: 135, 140, 207, 240, 247",
        rule: "Every collector keeps up with the rate; more versions of a tuple take space with tb-collect than with zen, n2db and \
               steam, and fewer than with one-shot (links end here as soon as nobody needs them, so chains that can be walked \
               say nothing of collectors); there are fewer accesses with tb-collect than with zen, n2db and steam: reads, the \
               versions that updates replace, those that a collector visits and those that it copies.",
        experiment: Experiment { runs: |size| each(&GROUP, [chains(size)]), judge: judge_chains },
    },
];

/// TPC-C at a fixed rate.
pub fn steady(size: &Size) -> RunSpec {
    let (warmup, seconds) = size.space;
    RunSpec { warmup, seconds, ..tpcc(size, NONE) }.at_rate(size.tpcc_rate)
}

/// TPC-C for longer, at full speed.
fn long(size: &Size) -> RunSpec {
    let (warmup, seconds) = size.long;
    RunSpec { warmup, seconds, ..tpcc(size, NONE) }
}

/// YCSB at a fixed rate.
fn chains(size: &Size) -> RunSpec {
    let (warmup, seconds) = size.space;
    RunSpec { warmup, seconds, ..ycsb(size, NONE) }.at_rate(size.ycsb_rate)
}

/// Updates of a transaction.
fn updates(work: Work) -> u64 {
    match work {
        Work::Ycsb { ops, updates, .. } => u64::from(ops * updates / 100),
        _ => 0,
    }
}

/// Tuples that it is about.
fn tuples(work: Work) -> u64 {
    match work {
        Work::Ycsb { tuples, .. } => tuples,
        _ => 0,
    }
}

/// Requires that each of these collectors reaches the rate. Otherwise their costs
/// cannot be compared.
pub fn keeps_up(rule: &mut Rule, results: &Results, run: &RunSpec, gcs: &[&'static str]) {
    for gc in gcs {
        let Some(speed) = results.spread(&run.with_gc(gc), &throughput) else { continue };
        if speed.median < run.rate * 0.95 {
            rule.lack(format!("{gc} reached only {} of {} txn/s", figure(speed.median), figure(run.rate)));
        }
    }
}

/// The run with each collector.
fn by_collector(run: &RunSpec) -> [(&'static str, RunSpec); 6] {
    GROUP.map(|gc| (gc, run.with_gc(gc)))
}

fn judge_growth(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = steady(size);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    settled(&mut rule, size);
    collected(&mut rule, results, &run);
    keeps_up(&mut rule, results, &run, &GROUP);
    let mut ours = Vec::new();
    for other in OTHERS {
        let by = results.quotient(&run.with_gc(TB), &run.with_gc(other), &Measurement::grown);
        ours.extend(by.map(|by| format!("{} of {other}", percent(by.median))));
        grows_less(&mut rule, results, &run, other, "");
    }
    let parts = growths("Space taken while TPC-C runs at a fixed rate");
    let mut figures: Vec<_> = parts
        .into_iter()
        .map(|(title, y, of)| {
            let megabytes = |measurement: &Measurement| of(measurement).map(|bytes| bytes / 1e6);
            let y = format!("{y}, MB, nvm:optane-40");
            bars(title, &y, &GROUP, &run, &|run| results.spread(run, &megabytes))
        })
        .collect();
    for (title, y, of) in [
        ("Medium taken over time", "medium, MB, nvm:optane-40", (|second| second.medium_bytes) as Taken),
        ("DRAM taken over time", "DRAM, MB, nvm:optane-40", |second| second.dram_bytes),
    ] {
        let megabytes = |second: &Second| Some(of(second) as f64 / 1e6);
        figures.push(over_time(results, &by_collector(&run), title, y, megabytes));
    }
    let ours = if ours.is_empty() { String::new() } else { format!("tb-collect: {}", ours.join(", ")) };
    Finding::of(rule, "bytes of growth, as a share of another collector's", ours, figures)
}

/// Bytes taken at the end of a second.
type Taken = fn(&Second) -> u64;

fn judge_time(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = long(size);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    settled(&mut rule, size);
    collected(&mut rule, results, &run);
    let mut ours = Vec::new();
    match results.spread(&run, &Measurement::decay) {
        Some(decay) => {
            ours.push(format!("NoGC's last quarter {} of its first", percent(decay.median)));
            rule.smaller("NoGC's last quarter", "its first", Some(decay));
        }
        None => rule.lack("the runs are too short to see NoGC slow down"),
    }
    for other in OTHERS {
        let by = results.quotient(&run.with_gc(TB), &run.with_gc(other), &throughput);
        ours.extend(by.as_ref().map(|by| format!("tb-collect {} {other}", times(by.median))));
        rule.larger(TB, other, by);
    }
    for other in OTHERS.into_iter().chain([TB]).filter(|&gc| gc != "zen") {
        let by = results.quotient(&run.with_gc("zen"), &run.with_gc(other), &Measurement::unsteadiness);
        rule.larger("the unsteadiness of zen", &format!("that of {other}"), by);
    }
    let y = "transactions/s, nvm:optane-40";
    let rate = |second: &Second| Some(second.rate());
    let speed = over_time(results, &by_collector(&run), "TPC-C throughput over time", y, rate);
    let y = "standard deviation / mean, nvm:optane-40";
    let unsteady = bars("How much throughput varies", y, &GROUP, &run, &|run| {
        results.spread(run, &Measurement::unsteadiness)
    });
    Finding::of(rule, "transactions/s", ours.join(", "), vec![speed, unsteady])
}

const CHAINS: [(&str, f64); 5] = [(TB, 2.8), ("one-shot", 5.5), ("zen", 2.4), ("n2db", 2.0), ("steam", 1.8)];
const ACCESSES: [(&str, f64); 5] =
    [(TB, 135.0), ("one-shot", 140.0), ("zen", 207.0), ("n2db", 240.0), ("steam", 247.0)];

fn judge_chains(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = chains(size);
    need(&mut rule, results, each(&GROUP, [run.clone()]));
    settled(&mut rule, size);
    collected(&mut rule, results, &run);
    keeps_up(&mut rule, results, &run, &GROUP);
    let length = |measurement: &Measurement| Some(measurement.stored_mean);
    // What updates replace and what is copied is not among what is counted.
    let with_writes = |counted: f64, transactions: u64, relocated: u64, tuples: u64| {
        counted + (transactions * updates(run.work) + relocated) as f64 / tuples.max(1) as f64
    };
    let accesses = |measurement: &Measurement| {
        let Measurement { accesses_per_tuple, transactions, survivors_relocated, tuples, .. } = *measurement;
        Some(with_writes(accesses_per_tuple, transactions, survivors_relocated, tuples))
    };
    let by = |other, metric: Metric<'_>| results.quotient(&run.with_gc(TB), &run.with_gc(other), metric);
    for other in ["zen", "n2db", "steam"] {
        rule.larger("what tb-collect stores", &format!("what {other} does"), by(other, &length));
        rule.smaller("the accesses of tb-collect", &format!("those of {other}"), by(other, &accesses));
    }
    rule.smaller("what tb-collect stores", "what one-shot does", by("one-shot", &length));
    let told = |gc: &&'static str| {
        let length = results.spread(&run.with_gc(gc), &length)?.median;
        let accesses = results.spread(&run.with_gc(gc), &accesses)?.median;
        Some(format!("{gc} {} and {}", figure(length), figure(accesses)))
    };
    let ours: Vec<_> = GROUP.iter().filter_map(told).collect();
    let ours =
        if ours.is_empty() { String::new() } else { format!("versions and accesses: {}", ours.join(", ")) };
    let mut lengths =
        bars("Versions that take space", "versions of a tuple, mean, nvm:optane-40", &GROUP, &run, &|run| {
            results.spread(run, &length)
        });
    publish(&mut lengths, &GROUP, &CHAINS);
    let y = "multiple of tb-collect's, nvm:optane-40";
    let mut looked = bars("Accesses per tuple", y, &GROUP, &run, &|other| {
        results.quotient(other, &run.with_gc(TB), &accesses)
    });
    publish(&mut looked, &GROUP, &ACCESSES.map(|(gc, n)| (gc, n / ACCESSES[0].1)));
    let accesses_in = |second: &Second| {
        let Second { transactions, survivors_relocated, .. } = *second;
        Some(with_writes(second.accesses_per_tuple?, transactions, survivors_relocated, tuples(run.work)))
    };
    let over_time = |title, y, value: &dyn Fn(&Second) -> Option<f64>| {
        over_time(results, &by_collector(&run), title, y, value)
    };
    let y = "versions of a tuple, mean, nvm:optane-40";
    let lengths_by_second = over_time("Versions that take space, over time", y, &|second| second.stored_mean);
    let y = "accesses per tuple in a second";
    let looked_by_second = over_time("Accesses per tuple, over time", y, &accesses_in);
    Finding::of(rule, "versions of a tuple", ours, vec![lengths, looked, lengths_by_second, looked_by_second])
}
