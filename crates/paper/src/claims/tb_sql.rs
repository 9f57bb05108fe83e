//! TB-Collect: measurements through a SQL server (figures 15 and 16).

use super::help::{
    At, NONE, TB, begun, each, fastest, grouped, grows_less, growths, keeps, kept_against, need, runs,
    series, settled, share_of_none, tpcc,
};
use super::tb_space::keeps_up;
use super::{Claim, Experiment, Finding};
use crate::figure::Series;
use crate::measurement::Measurement;
use crate::numbers::{percent, times};
use crate::results::{Metric, Results, throughput};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;
use crate::workload::Work;

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "TB-15",
        title: "Memories from Optane to DRAM's speed, through a SQL server",
        source: "TB-Collect, section 5.6, figure 15",
        text: "In a SQL server, TB-Collect keeps 88 % of NoGC's TPC-C throughput and is 1.23 to 1.58 times as fast as \
               the other collectors; on a memory as fast as DRAM (E) they reach up to 95 % of it.",
        published: "88 % of NoGC; 1.23 to 1.58x the others; at E the others up to 95 % of TB-Collect",
        rule: "With a connection for each core, tb-collect is faster than steam, zen and one-shot on each memory; and each of \
               these reaches a larger share of its throughput on nvm:E-40 than on nvm:optane-40, where tb-collect keeps 78 to 98 % of NoGC's.",
        experiment: Experiment { runs: |size| runs(&memories(size)), judge: judge_memories },
    },
    Claim {
        id: "TB-16",
        title: "Growth of space on several memories, through a SQL server",
        source: "TB-Collect, section 5.6, figure 16",
        text: "In a SQL server at 800 k transactions a minute for 120 minutes, TB-Collect grows least, and no collector's growth \
               depends on the memory's bandwidth.",
        published: "tb-collect the smallest; independent of bandwidth",
        rule: "Every collector keeps up with the rate; on nvm:optane-40 and on nvm:E-40, medium and DRAM together grow less with \
               tb-collect than with steam, zen and one-shot; and with each of the four, growth on nvm:E-40 is 0.75 to 1.33 times that \
               on nvm:optane-40.",
        experiment: Experiment {
            runs: |size| if size.settles { growing(size) } else { Vec::new() },
            judge: judge_growth_on_memories,
        },
    },
];

const SHARE: &str = "share of NoGC's throughput";

/// The first memory, that of the other claims.
const FIRST: &str = "nvm:optane-40";

/// The memory that differs most from Optane.
const LAST: &str = "nvm:E-40";

/// The memories on which space is compared.
const MEMORIES: [&str; 2] = [FIRST, LAST];

/// Growth on two memories that is alike: one is at most a third more than the other.
const ALIKE: (f64, f64) = (0.75, 1.33);

/// The baseline and the collectors of figures 15 and 16.
const SQL: [&str; 5] = [NONE, TB, "steam", "zen", "one-shot"];

/// Those of them that TB-Collect was compared with.
const COMPARED: [&str; 3] = ["steam", "zen", "one-shot"];

/// TPC-C through a server, with a connection for each core.
fn sql(size: &Size) -> RunSpec {
    let (warmup, seconds) = size.sql;
    RunSpec { warmup, seconds, ..tpcc(size, NONE) }.through_server(size.sql_scale)
}

/// The same at a fixed rate, with less data.
fn steady(size: &Size) -> RunSpec {
    let (warehouses, scale) = size.sql_space;
    let work = Work::Tpcc { warehouses };
    RunSpec::new(work, NONE, size.cores, size.space).at_rate(size.sql_rate).through_server(scale)
}

/// What TB-16 compares. Shorter runs say nothing about space, and take time.
fn growing(size: &Size) -> Vec<RunSpec> {
    each(&SQL, MEMORIES.map(|medium| steady(size).on(medium)))
}

fn media(size: &Size) -> Vec<&'static str> {
    std::iter::once(FIRST).chain(size.memories.iter().copied()).collect()
}

fn memories(size: &Size) -> Vec<At> {
    let at = |(n, medium)| each(&SQL, [sql(size).on(medium)]).into_iter().map(move |run| (n as f64, run));
    media(size).into_iter().enumerate().flat_map(at).collect()
}

fn judge_memories(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    need(&mut rule, results, runs(&memories(size)));
    for medium in media(size) {
        fastest(&mut rule, results, &sql(size).on(medium), TB, &COMPARED, &format!("on {medium}, "));
    }
    keeps(&mut rule, results, &sql(size).with_gc(TB), 0.88, &format!("on {FIRST}, "));
    for other in COMPARED {
        let [there, here] = [LAST, FIRST].map(|medium| {
            let run = sql(size).on(medium);
            [run.with_gc(other), run.with_gc(TB)]
        });
        let by = kept_against(results, there, here);
        rule.larger(
            &format!("{other}'s share of tb-collect's throughput on {LAST}"),
            &format!("that on {FIRST}"),
            by,
        );
    }
    let mut ours = Vec::new();
    let share = share_of_none(results, &sql(size).with_gc(TB));
    ours.extend(share.map(|share| format!("{} of NoGC", percent(share.median))));
    for medium in MEMORIES {
        let run = sql(size).on(medium).with_gc(TB);
        let by = |gc: &&'static str| {
            let by = results.quotient(&run, &run.with_gc(gc), &throughput)?;
            Some(format!("{} {gc}", times(by.median)))
        };
        let factors: Vec<_> = COMPARED.iter().filter_map(by).collect();
        ours.extend((!factors.is_empty()).then(|| format!("on {medium} {}", factors.join(", "))));
    }
    let names: Vec<_> = media(size).into_iter().map(str::to_owned).collect();
    let places: Vec<_> = memories(size).into_iter().filter(|(_, run)| run.gc == NONE).collect();
    let grouped = |title: &str, y: &str, series| grouped(title, names.clone(), "memory", y, series);
    let mut shares = series(&SQL[1..], &places, &|run| share_of_none(results, run));
    shares.push(Series::published(TB, &[(0.0, 0.88)]));
    let speeds = series(&SQL, &places, &|run| results.spread(run, &throughput));
    let new_order = |measurement: &Measurement| Some(measurement.kinds.get("new_order")?.mean / 1e3);
    let latencies = series(&SQL, &places, &|run| results.spread(run, &new_order));
    let figures = vec![
        grouped("TPC-C through SQL against NoGC's on the same memory", SHARE, shares),
        grouped("TPC-C through SQL", "transactions/s", speeds),
        grouped("New-Order through SQL", "mean latency, ms", latencies),
    ];
    Finding::of(rule, SHARE, ours.join("; "), figures)
}

fn judge_growth_on_memories(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = steady(size);
    settled(&mut rule, size);
    if size.settles {
        need(&mut rule, results, growing(size));
    }
    let grown: Metric<'_> = &Measurement::grown;
    for medium in MEMORIES {
        let run = run.clone().on(medium);
        keeps_up(&mut rule, results, &run, &SQL);
        let left = results.quotient(&run.with_gc(TB), &run, grown);
        begun(&mut rule, left);
        for other in COMPARED {
            grows_less(&mut rule, results, &run, other, &format!("on {medium}, "));
        }
    }
    let mut ours = Vec::new();
    for gc in &SQL[1..] {
        let by = results.quotient(&run.with_gc(gc).on(LAST), &run.with_gc(gc), grown);
        ours.extend(by.as_ref().map(|by| format!("{gc} {}", times(by.median))));
        rule.between(&format!("the growth of {gc} on {LAST} against that on {FIRST}"), by, ALIKE);
    }
    let ours = if ours.is_empty() {
        String::new()
    } else {
        format!("growth on {LAST} against {FIRST}: {}", ours.join(", "))
    };
    let places: Vec<At> = vec![(0.0, run.clone()), (1.0, run.on(LAST))];
    let parts = growths("Space taken while TPC-C runs through SQL at a fixed rate");
    let figures = parts.into_iter().map(|(title, y, of)| {
        let megabytes = |measurement: &Measurement| of(measurement).map(|bytes| bytes / 1e6);
        let growth = series(&SQL, &places, &|run| results.spread(run, &megabytes));
        grouped(title, MEMORIES.map(str::to_owned).to_vec(), "memory", &format!("{y}, MB"), growth)
    });
    Finding::of(rule, "bytes of growth, as a multiple", ours, figures.collect())
}
