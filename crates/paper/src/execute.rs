//! Executes the runs of a plan.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::{Ending, Runner};
use crate::error::Result;
use crate::numbers::FEWEST;
use crate::plan::{Plan, Step};
use crate::results::Results;
use crate::store::{Line, Store};

/// Receives the progress of an execution.
pub trait Progress {
    /// This many runs will be executed if time permits, for about this long.
    fn begin(&self, runs: usize, estimate: Duration);
    /// A run begins. `number` counts from 1.
    fn run(&self, number: usize, step: &Step);
    /// A run has ended, `elapsed` after the first began: with its transactions
    /// per second, or with the reason for its failure.
    fn ended(&self, step: &Step, outcome: std::result::Result<f64, &str>, elapsed: Duration);
    /// A message, in one line.
    fn note(&self, line: &str);
    /// The execution has ended.
    fn end(&self);
}

/// The result of a plan.
#[derive(Debug, Default)]
pub struct Execution {
    /// What was measured, now or before.
    pub results: Results,
    /// Runs executed now.
    pub made: usize,
    /// Earlier runs that were used.
    pub reused: usize,
    /// Runs for which there was not even time for one repetition.
    pub left_out: usize,
    /// Runs that were made, but too few times to decide anything.
    pub too_few: usize,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// The duration.
    pub elapsed: Duration,
}

/// The weight of the initial estimate of what runs cost, in seconds.
const TRUST: f64 = 10.0;

/// What an execution needs.
pub struct Conditions<'a> {
    /// Executes the runs.
    pub runner: &'a dyn Runner,
    /// Raised to stop early.
    pub stop: &'a AtomicBool,
    /// The time since the execution began.
    pub clock: &'a dyn Fn() -> Duration,
    /// Receives the progress.
    pub progress: &'a dyn Progress,
    /// Seconds that all runs together may take.
    pub budget: f64,
}

/// Executes the runs of a plan that are not among the runs made `before`. Does
/// not begin a run that would end after the time limit, as far as can be
/// estimated.
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
    let outcome = make(plan, &left, store, conditions, &mut done);
    conditions.progress.end();
    done.elapsed = (conditions.clock)();
    if !done.interrupted {
        let once = plan.steps.iter().filter(|step| step.repetition == 1);
        for step in once.filter(|step| !done.results.has_failed(&step.run)) {
            let made = done.results.repetitions(&step.run.key());
            done.left_out += usize::from(made == 0);
            done.too_few += usize::from((1..FEWEST).contains(&made));
        }
    }
    outcome.map(|()| done)
}

fn make(
    plan: &Plan,
    steps: &[&Step],
    store: &mut Store,
    conditions: &Conditions<'_>,
    done: &mut Execution,
) -> Result<()> {
    let Conditions { runner, stop, clock, progress, budget } = *conditions;
    let mut failed = HashSet::new();
    let (mut taken, mut assumed) = (TRUST, TRUST);
    // Runs that are compared with each other are made equally often.
    let mut asked: Option<(String, usize, bool)> = None;
    for (n, step) in steps.iter().enumerate() {
        let key = step.run.key();
        if failed.contains(&key) {
            continue;
        }
        let (group, repetition) = (step.run.group(), step.repetition);
        let is_needed = match &asked {
            Some((last, of, is_needed)) if (last, *of) == (&group, repetition) => *is_needed,
            _ => plan.needs(step, &done.results),
        };
        asked = Some((group, repetition, is_needed));
        if !is_needed {
            continue;
        }
        let began = clock().as_secs_f64();
        if stop.load(Ordering::Relaxed) {
            done.interrupted = true;
            done.results.miss(&key, "the report was interrupted before its run".into());
            continue;
        }
        if began + step.run.cost() * (taken / assumed) > budget {
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
                done.results.miss(&key, "the report was interrupted during its run".into());
            }
            Ending::Failed(why) => {
                progress.ended(step, Err(&why), ended);
                done.failed.push(format!("{key}: {why}"));
                done.results.fail(&key, format!("{} failed: {why}", step.run.gc));
                failed.insert(key);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "execute_test.rs"]
mod tests;
