//! TB-Collect: measurements through a SQL server (figures 15 and 16). There is
//! no SQL server here; the embedded engine is measured instead.

use super::help::{At, NONE, TB, each, grouped, runs, series, share_of_none, tpcc};
use super::tb_space::steady;
use super::{Claim, Experiment, Finding};
use crate::figure::Series;
use crate::measurement::Measurement;
use crate::numbers::{percent, times};
use crate::results::{Metric, Results, throughput};
use crate::size::Size;
use crate::verdict::Judgement;

/// The claims.
pub const CLAIMS: &[Claim] = &[
    Claim {
        id: "TB-15",
        title: "Memories from Optane to DRAM's speed, through a SQL server",
        source: "TB-Collect, section 5.6, figure 15",
        text: "In a SQL server, TB-Collect keeps 88 % of NoGC's TPC-C throughput and is 1.23 to 1.58 times as fast as \
               the other collectors; on a memory as fast as DRAM (E) they reach up to 95 % of it.",
        published: "88 % of NoGC; 1.23 to 1.58x the others; at E the others up to 95 % of TB-Collect",
        rule: "Not judged: the measurements are of the embedded engine, without a SQL server.",
        experiment: Experiment::Runs { runs: |size| runs(&memories(size)), judge: judge_memories },
    },
    Claim {
        id: "TB-16",
        title: "Growth of space on several memories, through a SQL server",
        source: "TB-Collect, section 5.6, figure 16",
        text: "In a SQL server at 800 k transactions a minute for 120 minutes, TB-Collect grows least, and no collector's growth \
               depends on the memory's bandwidth.",
        published: "tb-collect the smallest; independent of bandwidth",
        rule: "Not judged: the measurements are of the embedded engine, without a SQL server.",
        experiment: Experiment::Runs {
            runs: |size| each(&SPACE, [steady(size), steady(size).on(LAST)]),
            judge: judge_growth_on_memories,
        },
    },
];

const SHARE: &str = "share of NoGC's throughput";

/// The collectors whose space is compared on two memories.
const SPACE: [&str; 3] = [NONE, TB, "zen"];

/// The first memory, that of the other claims.
const FIRST: &str = "nvm:optane-40";

/// The memory that differs most from Optane.
const LAST: &str = "nvm:E";

/// The collectors of figure 15.
const SQL: [&str; 5] = [NONE, TB, "steam", "zen", "one-shot"];

fn memories(size: &Size) -> Vec<At> {
    let media = std::iter::once(FIRST).chain(size.memories.iter().copied());
    let at =
        |(n, medium)| each(&SQL, [tpcc(size, NONE).on(medium)]).into_iter().map(move |run| (n as f64, run));
    media.enumerate().flat_map(at).collect()
}

fn judge_memories(results: &Results, size: &Size) -> Finding {
    let optane = tpcc(size, NONE);
    let share = share_of_none(results, &optane.with_gc(TB));
    let mut ours = share.map_or(String::new(), |share| format!("{} of NoGC", percent(share.median)));
    let others = |medium| {
        let run = tpcc(size, TB).on(medium);
        let by = |gc: &&'static str| results.quotient(&run, &run.with_gc(gc), &throughput);
        let factors: Vec<_> = SQL[2..].iter().filter_map(by).map(|by| times(by.median)).collect();
        (!factors.is_empty()).then(|| format!("; {} the others on {medium}", factors.join(", ")))
    };
    ours.extend(others(FIRST));
    ours.extend(size.memories.last().copied().and_then(others));
    let mut names = vec![FIRST.to_owned()];
    names.extend(size.memories.iter().map(ToString::to_string));
    let places: Vec<_> = memories(size).into_iter().filter(|(_, run)| run.gc == NONE).collect();
    let speeds = series(&SQL, &places, &|run| results.spread(run, &throughput));
    let mut shares = series(&SQL[1..], &places, &|run| share_of_none(results, run));
    shares.push(Series::published(TB, &[(0.0, 0.88)]));
    let reason = if ours.is_empty() {
        "There is no SQL server here, and the embedded engine was not measured instead.".to_owned()
    } else {
        format!("There is no SQL server here; the embedded engine was measured instead: {ours}.")
    };
    let figures = vec![
        grouped(
            "TPC-C without SQL against NoGC's on the same memory",
            names.clone(),
            "memory",
            SHARE,
            shares,
        ),
        grouped("TPC-C without SQL", names, "memory", "transactions/s", speeds),
    ];
    Finding {
        judgement: Judgement::cannot(reason),
        ours,
        unit: "share of NoGC's throughput",
        figures: figures.into_iter().filter(|figure| !figure.is_empty()).collect(),
    }
}

fn judge_growth_on_memories(results: &Results, size: &Size) -> Finding {
    let growth: Metric<'_> = &Measurement::growth;
    let run = steady(size);
    let by = |gc: &&'static str| {
        let by = results.quotient(&run.with_gc(gc).on(LAST), &run.with_gc(gc), growth)?;
        Some(format!("{gc} {}", times(by.median)))
    };
    let told: Vec<_> = SPACE.iter().filter_map(by).collect();
    let ours = if told.is_empty() {
        String::new()
    } else {
        format!("growth on {LAST} against {FIRST}: {}", told.join(", "))
    };
    let reason = if ours.is_empty() {
        "There is no SQL server here, and the embedded engine was not measured instead.".to_owned()
    } else {
        format!("There is no SQL server here; the embedded engine was measured instead: {ours}.")
    };
    let places: Vec<At> = vec![(0.0, run.clone()), (1.0, run.on(LAST))];
    let megabytes = |measurement: &Measurement| measurement.growth().map(|bytes| bytes / 1e6);
    let grown = series(&SPACE, &places, &|run| results.spread(run, &megabytes));
    let names = vec![FIRST.into(), LAST.into()];
    let figure = grouped(
        "Space taken while TPC-C runs at a fixed rate, without SQL",
        names,
        "memory",
        "growth of medium and DRAM, MB",
        grown,
    );
    Finding {
        judgement: Judgement::cannot(reason),
        ours,
        unit: "bytes of growth, as a multiple",
        figures: [figure].into_iter().filter(|figure| !figure.is_empty()).collect(),
    }
}
