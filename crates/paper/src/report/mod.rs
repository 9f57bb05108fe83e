//! The page and the record of all claims.

mod contents;
mod page;
mod record;
mod style;
mod table;

use std::fs;
use std::path::{Path, PathBuf};

pub use contents::{About, Entry, Report};

use crate::claims::Claim;
use crate::error::{Error, Result};
use crate::execute::Execution;
use crate::measurement::Measurement;
use crate::outlook::Outlook;
use crate::plan::Plan;
use crate::size::Size;
use crate::spec::RunSpec;
use crate::store::Build;

/// The name of the page in the report's directory.
pub const PAGE: &str = "index.html";
/// The name of the record.
pub const RECORD: &str = "claims.json";

impl Report {
    /// Judges these claims by the measurements, and adds a model's predictions
    /// for larger machines.
    pub fn new(
        claims: &[&'static Claim],
        plan: &Plan,
        execution: &Execution,
        build: Build,
        outlooks: &[Outlook],
    ) -> Self {
        let entry = |&claim: &&'static Claim| {
            let mut finding = claim.judge(&execution.results, &plan.size);
            for outlook in outlooks.iter().filter(|outlook| outlook.claim == claim.id) {
                let mut figures = finding.figures.iter_mut();
                if let Some(figure) = figures.find(|figure| figure.y.starts_with("transactions/s")) {
                    figure.series.extend(outlook.here.iter().cloned());
                }
                finding.figures.extend(outlook.figures.iter().cloned());
            }
            let runs = claim.runs(&plan.size);
            let made = |run: &RunSpec| execution.results.repetitions(&run.key());
            let all = || runs.iter().map(made);
            let repetitions = (all().min().unwrap_or_default(), all().max().unwrap_or_default());
            let commands = commands(&runs, made);
            let explanations = claim.explain(&finding.judgement, &execution.results, &plan.size);
            let (distinct, runs) = (runs.len(), all().sum());
            Entry { claim, finding, explanations, commands, runs, distinct, repetitions }
        };
        let now = std::time::SystemTime::now();
        let about = About {
            build,
            date: humantime::format_rfc3339_seconds(now).to_string(),
            size: plan.size.name,
            shortened: shortened(&plan.size),
            budget: (plan.budget != plan.size.budget).then_some(plan.budget),
            elapsed: execution.elapsed,
            made: execution.made,
            reused: execution.reused,
            left_out: execution.left_out,
            too_few: execution.too_few,
            not_repeated: execution.not_repeated,
            off_bound: execution.results.count(|measurement| measurement.is_off_bound),
            repeated: execution.repeated,
            disturbed: execution.results.count(Measurement::is_disturbed),
            failed: execution.failed.clone(),
            interrupted: execution.interrupted,
        };
        Self { about, entries: claims.iter().map(entry).collect() }
    }

    /// Writes the page and the record. Returns the path of the page.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn write(&self, dir: &Path) -> Result<PathBuf> {
        let write = |name: &str, text: String| {
            let path = dir.join(name);
            fs::write(&path, text).map_err(|e| Error::io("write", &path, e)).map(|()| path)
        };
        write(RECORD, record::to_json(self))?;
        write(PAGE, page::to_html(self))
    }
}

/// The share of their length that runs of this size have, if it is one of the shorter ones.
fn shortened(size: &Size) -> Option<f64> {
    let whole = if size.name == "quick" { Size::quick(size.cores) } else { Size::full(size.cores) };
    let share = size.long.1 / whole.long.1;
    (share < 1.0).then_some(share)
}

/// One command line for each group of runs that differ only by the collector,
/// with the collectors that are built in.
fn commands(runs: &[RunSpec], repetitions: impl Fn(&RunSpec) -> usize) -> Vec<String> {
    let mut groups: Vec<(String, Vec<&RunSpec>)> = Vec::new();
    for run in runs {
        let group = run.command(&["*"], 1);
        match groups.iter_mut().find(|(name, _)| *name == group) {
            Some((_, runs)) => runs.push(run),
            None => groups.push((group, vec![run])),
        }
    }
    let command = |(_, runs): &(String, Vec<&RunSpec>)| {
        let made: Vec<_> = runs.iter().filter(|run| repetitions(run) > 0).collect();
        let gcs: Vec<_> = made.iter().map(|run| run.gc).collect();
        let most = made.iter().map(|run| repetitions(run)).max()?;
        Some(runs.first()?.command(&gcs, most))
    };
    groups.iter().filter_map(command).collect()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
