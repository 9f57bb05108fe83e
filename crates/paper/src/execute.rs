//! Makes the runs of a plan.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::{Ending, Runner};
use crate::error::Result;
use crate::plan::{Plan, Step};
use crate::results::Results;
use crate::store::{Line, Store};

/// Hears how far the runs have come.
pub trait Progress {
    /// So many runs are to be made as far as there is time, about this long.
    fn begin(&self, runs: usize, estimate: Duration);
    /// A run begins: its number, from 1, and what it is.
    fn run(&self, number: usize, step: &Step);
    /// It has ended, `elapsed` after the first began: with so many
    /// transactions a second, or not, and why.
    fn ended(&self, step: &Step, outcome: std::result::Result<f64, &str>, elapsed: Duration);
    /// Something worth telling, in one line.
    fn note(&self, line: &str);
    /// All is over.
    fn end(&self);
}

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Execution {
    /// What was measured, now or before.
    pub results: Results,
    /// Runs made now.
    pub made: usize,
    /// Runs of before that were used.
    pub reused: usize,
    /// Runs that there was no time for, not even once.
    pub left_out: usize,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Whether it was told to stop.
    pub interrupted: bool,
    /// Time taken.
    pub elapsed: Duration,
}

/// Seconds of trust in the first assumption of what runs cost.
const TRUST: f64 = 10.0;

/// What an execution needs.
pub struct Conditions<'a> {
    /// Runs them.
    pub runner: &'a dyn Runner,
    /// Raised to stop early.
    pub stop: &'a AtomicBool,
    /// Time since it began.
    pub clock: &'a dyn Fn() -> Duration,
    /// Hears of progress.
    pub progress: &'a dyn Progress,
    /// Seconds that all runs may take.
    pub budget: f64,
}

/// Makes the runs of a plan that are not among those made `before`. No run is
/// begun that would end after the time is over, as far as can be told.
///
/// # Errors
/// [`crate::Error::Io`] if a finished run cannot be stored.
pub fn execute(
    plan: &Plan,
    before: Vec<Line>,
    store: &mut Store,
    conditions: &Conditions<'_>,
) -> Result<Execution> {
    let mut done = Execution::default();
    let wanted: HashSet<_> = plan.steps.iter().map(|step| (step.run.key(), step.repetition)).collect();
    let mut had = HashSet::new();
    for line in before {
        let id = (line.key, line.repetition);
        if wanted.contains(&id) && had.insert(id.clone()) {
            done.results.add(&id.0, id.1, line.measurement);
            done.reused += 1;
        }
    }
    for (key, why) in &plan.missing {
        done.results.miss(key, why.clone());
    }
    let left: Vec<_> =
        plan.steps.iter().filter(|step| !had.contains(&(step.run.key(), step.repetition))).collect();
    let estimate: f64 = left.iter().map(|step| step.run.cost()).sum();
    let estimate = Duration::from_secs_f64(estimate.min(conditions.budget));
    conditions.progress.begin(left.len(), estimate);
    let outcome = make(&left, store, conditions, &mut done);
    conditions.progress.end();
    done.elapsed = (conditions.clock)();
    outcome.map(|()| done)
}

fn make(steps: &[&Step], store: &mut Store, conditions: &Conditions<'_>, done: &mut Execution) -> Result<()> {
    let Conditions { runner, stop, clock, progress, budget } = *conditions;
    let mut failed = HashSet::new();
    let (mut taken, mut assumed) = (TRUST, TRUST);
    for (n, step) in steps.iter().enumerate() {
        let key = step.run.key();
        if failed.contains(&key) {
            continue;
        }
        let began = clock().as_secs_f64();
        if stop.load(Ordering::Relaxed) {
            done.interrupted = true;
            done.results.miss(&key, "it was interrupted before its run".into());
            continue;
        }
        if began + step.run.cost() * (taken / assumed) > budget {
            done.left_out += usize::from(done.results.repetitions(&key) == 0);
            done.results.miss(&key, "there was no time for its run".into());
            continue;
        }
        progress.run(n + 1, step);
        let ending = runner.run(&step.run, stop);
        let ended = clock();
        taken += ended.as_secs_f64() - began;
        assumed += step.run.cost();
        match ending {
            Ending::Measured(measurement) => {
                progress.ended(step, Ok(measurement.txn_per_s), ended);
                done.made += 1;
                done.results.add(&key, step.repetition, (*measurement).clone());
                store.add(key, step.repetition, *measurement)?;
            }
            Ending::Interrupted => {
                done.interrupted = true;
                done.results.miss(&key, "it was interrupted during its run".into());
            }
            Ending::Failed(why) => {
                progress.ended(step, Err(&why), ended);
                done.failed.push(format!("{key}: {why}"));
                done.results.miss(&key, format!("{} failed: {why}", step.run.gc));
                failed.insert(key);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "execute_test.rs"]
mod tests;
