//! SIAS: appending on flash.

use pantile_flash::IN_PLACE;

use super::help::{NONE, TB, bars, each, need};
use super::{Claim, Experiment, Finding};
use crate::measurement::Measurement;
use crate::numbers::{Outcome, times};
use crate::results::{Metric, Results};
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Rule;

/// The claims.
pub const CLAIMS: &[Claim] = &[Claim {
    id: "SI-1",
    title: "Appending against updating in place, on flash",
    source: "SIAS, section III, table I",
    text: "Replaying the pages of two runs of TPC-C on an SSD, appending writes 18 to 35 times fewer megabytes than updating in place, and \
           takes 4.6 times less time at queue depth 32.",
    published: "18 to 35x fewer MB written; 4.6x less time at queue depth 32",
    rule: "One-sided. The same transactions are traced on a medium and replayed on a simulated SSD (docs/flash.md), without syncs of commits. If a \
           store that updates in place, behind a buffer pool of a tenth of the data, writes more than 18 times the bytes of tb-collect, the claim \
           holds. Fewer do not refute it: that store has no indexes, no old versions and writes no page twice. What is read behind a cache as large as \
           the pool and the time are shown and not judged: indexes are in memory here, and the paper's reads are most of its time. For a seed, the simulation gives the same figures each time.",
    experiment: Experiment { runs: |size| each(&LAYOUTS, [traced(size)]), judge },
}];

/// Appending without and with a collector, and updating in place.
const LAYOUTS: [&str; 3] = [NONE, TB, IN_PLACE];

fn traced(size: &Size) -> RunSpec {
    RunSpec::traced(size.traced, NONE)
}

fn judge(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = traced(size);
    need(&mut rule, results, each(&LAYOUTS, [run.clone()]));
    let per = |measurement: &Measurement, of: f64| {
        (measurement.transactions > 0).then(|| of / measurement.transactions as f64)
    };
    let kilobytes: Metric<'_> = &|measurement| per(measurement, measurement.bytes_written / 1e3);
    let micros_1: Metric<'_> = &|measurement| per(measurement, measurement.device?.seconds_1 * 1e6);
    let micros: Metric<'_> = &|measurement| per(measurement, measurement.device?.seconds_32 * 1e6);
    let reads: Metric<'_> = &|measurement| per(measurement, measurement.device?.pages_read? as f64);
    let erases: Metric<'_> = &|measurement| per(measurement, measurement.device?.erases as f64 * 1e3);
    let times_of = |metric| results.quotient(&run.with_gc(IN_PLACE), &run.with_gc(TB), metric);
    let (written, time) = (times_of(kilobytes), times_of(micros));
    match written.as_ref().map(|by| by.is_above(18.0)) {
        Some(Outcome::Held) => {
            rule.compare("what updating in place writes", "what tb-collect writes", written.clone(), |by| {
                by.is_above(18.0)
            });
        }
        _ => rule.lack("no store here that updates indexes and old versions in place as well"),
    }
    let ours = match (written, time) {
        (Some(written), Some(time)) => format!(
            "updating in place writes {} the bytes of tb-collect, in {} the time",
            times(written.median),
            times(time.median)
        ),
        _ => String::new(),
    };
    let figure = |title, unit, metric| bars(title, unit, &LAYOUTS, &run, &|run| results.spread(run, metric));
    let figures = vec![
        figure("Written by TPC-C, traced", "KB per transaction", kilobytes),
        figure("Read by TPC-C, traced", "pages per transaction", reads),
        figure("Time of reads and writes, one request", "µs per transaction, simulated SSD", micros_1),
        figure("Time of reads and writes, 32 requests", "µs per transaction, simulated SSD", micros),
        figure("Erased blocks", "per 1,000 transactions, simulated SSD", erases),
    ];
    Finding::of(rule, "bytes written, as a multiple", ours, figures)
}
