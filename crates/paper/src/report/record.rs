//! The record for scripts.

use serde::Serialize;

use super::{About, Entry, Report};
use crate::claims::Explanation;
use crate::figure::{Figure, Origin, Series};
use crate::spec::RunSpec;
use crate::verdict::{Part, Verdict};

/// A claim in the record.
#[derive(Serialize)]
struct Told<'a> {
    id: &'a str,
    title: &'a str,
    source: &'a str,
    claim: &'a str,
    rule: &'a str,
    published: &'a str,
    ours: &'a str,
    unit: &'a str,
    verdict: Verdict,
    reason: &'a str,
    parts: &'a [Part],
    /// Why conditions are refuted, as far as it is known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    causes: Vec<CauseTold<'a>>,
    runs: usize,
    repetitions: (usize, usize),
    command: String,
    benchmarks: &'a [String],
    figures: Vec<FigureTold<'a>>,
    size: &'a str,
    /// The share of their length that runs were shortened to.
    #[serde(skip_serializing_if = "Option::is_none")]
    shortened_to: Option<f64>,
    commit: &'a str,
    machine: &'a str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    debug_build: bool,
    date: &'a str,
}

/// A supposed cause, and the condition as it is judged without it.
#[derive(Serialize)]
struct CauseTold<'a> {
    because: &'a str,
    change: &'a str,
    without: &'a Part,
    commands: Vec<String>,
}

#[derive(Serialize)]
struct FigureTold<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
    series: Vec<SeriesTold<'a>>,
}

#[derive(Serialize)]
struct SeriesTold<'a> {
    name: &'a str,
    origin: &'static str,
    points: Vec<PointTold>,
}

#[derive(Serialize)]
struct PointTold {
    x: f64,
    y: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<(f64, f64)>,
}

/// The claims as a JSON array.
pub fn to_json(report: &Report) -> String {
    let told: Vec<_> = report.entries.iter().map(|entry| tell(entry, &report.about)).collect();
    // It contains nothing that JSON cannot express: keys are strings, and
    // numbers are finite or null.
    serde_json::to_string_pretty(&told).unwrap_or_default() + "\n"
}

fn tell<'a>(entry: &'a Entry, about: &'a About) -> Told<'a> {
    let Entry { claim, finding, explanations, commands, runs, repetitions, .. } = entry;
    Told {
        id: claim.id,
        title: claim.title,
        source: claim.source,
        claim: claim.text,
        rule: claim.rule,
        published: claim.published,
        ours: &finding.ours,
        unit: finding.unit,
        verdict: finding.judgement.verdict,
        reason: &finding.judgement.reason,
        parts: &finding.judgement.parts,
        causes: explanations.iter().map(cause).collect(),
        runs: *runs,
        repetitions: *repetitions,
        command: super::page::command(entry, about),
        benchmarks: commands,
        figures: finding.figures.iter().map(figure).collect(),
        size: about.size,
        shortened_to: about.shortened,
        commit: &about.build.commit,
        machine: &about.build.machine,
        debug_build: about.build.debug,
        date: &about.date,
    }
}

fn cause(explanation: &Explanation) -> CauseTold<'_> {
    let Explanation { cause, part, runs } = explanation;
    let commands = runs.iter().map(RunSpec::key).collect();
    CauseTold { because: cause.because, change: cause.change, without: part, commands }
}

fn figure(figure: &Figure) -> FigureTold<'_> {
    let Figure { title, x, y, series, .. } = figure;
    FigureTold { title, x, y, series: series.iter().map(self::series).collect() }
}

fn series(series: &Series) -> SeriesTold<'_> {
    let points =
        series.points.iter().map(|point| PointTold { x: point.x, y: point.y, interval: point.range });
    SeriesTold { name: &series.name, origin: origin(series.origin), points: points.collect() }
}

fn origin(origin: Origin) -> &'static str {
    match origin {
        Origin::Measured => "measured",
        Origin::Published => "published",
        Origin::Model => "model",
    }
}
