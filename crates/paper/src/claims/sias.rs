//! SIAS: appending on flash.

use super::help::{NONE, TB, bars, each, need, tpcc};
use super::{Claim, Experiment, Finding};
use crate::measurement::Measurement;
use crate::numbers::times;
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
    rule: "On a file, one-shot, which updates in place, writes more than 18 times the bytes per transaction that tb-collect writes. The \
           time at queue depth 32 is not judged: traces are not replayed here.",
    experiment: Experiment::Runs { runs: |size| each(&LAYOUTS, [on_file(size)]), judge },
}];

/// Appending with and without a collector, and updating in place.
const LAYOUTS: [&str; 3] = [NONE, TB, "one-shot"];

fn on_file(size: &Size) -> RunSpec {
    tpcc(size, NONE).on("file")
}

fn judge(results: &Results, size: &Size) -> Finding {
    let mut rule = Rule::default();
    let run = on_file(size);
    need(&mut rule, results, each(&LAYOUTS, [run.clone()]));
    let per = |measurement: &Measurement, of: f64| {
        (measurement.transactions > 0).then(|| of / measurement.transactions as f64)
    };
    let kilobytes: Metric<'_> = &|measurement| per(measurement, measurement.bytes_written / 1e3);
    let syncs: Metric<'_> = &|measurement| per(measurement, measurement.syncs as f64);
    let by = results.quotient(&run.with_gc("one-shot"), &run.with_gc(TB), kilobytes);
    rule.compare("what one-shot writes per transaction", "that of tb-collect", by, |by| by.is_above(18.0));
    let ours = by
        .map_or(String::new(), |by| format!("one-shot writes {} the bytes of tb-collect", times(by.median)));
    let written = bars("Written by TPC-C on a file", "KB per transaction, file", &LAYOUTS, &run, &|run| {
        results.spread(run, kilobytes)
    });
    let synced = bars("Syncs of TPC-C on a file", "syncs per transaction, file", &LAYOUTS, &run, &|run| {
        results.spread(run, syncs)
    });
    Finding::of(rule, "bytes written, as a multiple", ours, vec![written, synced])
}
