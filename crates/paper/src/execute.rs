//! Executes the runs of a plan.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::engine::{Ending, Runner};
use crate::error::Result;
use crate::numbers::{FEWEST, percent};
use crate::plan::Plan;
use crate::results::Results;
use crate::spec::Step;
use crate::store::{Line, Store};

/// Receives the progress of an execution.
pub trait Progress {
    /// At least this many runs will be executed if time permits, for about this long.
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
    /// Further repetitions for which there was no time, of conditions that they might have decided, and
    /// runs that might have shown causes.
    pub not_repeated: usize,
    /// Further attempts of runs that other programs disturbed.
    pub repeated: usize,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
    /// The duration.
    pub elapsed: Duration,
}

/// The weight of the initial estimate of what runs cost, in seconds.
const TRUST: f64 = 10.0;

/// How often a repetition is tried while other programs disturb it.
const ATTEMPTS: usize = 3;

/// The share of the time that goes to further attempts: on a machine that others
/// always use, repetitions are worth more.
const FOR_ATTEMPTS: f64 = 0.1;

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
    let (mut had, mut earlier) = (HashSet::new(), Vec::new());
    for line in before {
        let id = (line.key, line.repetition);
        if !wanted.contains(&id) || !had.insert(id.clone()) {
            continue;
        }
        done.reused += 1;
        if let Some(measurement) = line.measurement {
            done.results.add(&id.0, id.1, measurement);
        }
        if let Some(why) = line.failed {
            earlier.push(format!("{}: {why}, in an earlier report; --fresh makes all runs again", id.0));
            done.results.fail(&id.0, why);
        }
    }
    for (key, why) in &plan.missing {
        done.results.miss(key, why.clone());
    }
    let left: Vec<_> =
        plan.steps.iter().filter(|step| !had.contains(&(step.run.key(), step.repetition))).collect();
    // More are made of what is undecided then, if there is time.
    let least = left.iter().filter(|step| match step.repetition {
        1 => true,
        repetition => repetition <= FEWEST && plan.conditions.contains(&step.run.key()),
    });
    let (count, estimate) = least.fold((0, 0.0), |(n, sum), step| (n + 1, sum + step.run.cost()));
    conditions.progress.begin(count, Duration::from_secs_f64(estimate.min(conditions.budget)));
    let mut making = Making { plan, store, conditions, done: &mut done, cost: Cost::default() };
    let outcome =
        making.make(&left, Plan::needed).and_then(|()| making.make(&left, |plan, n, _| plan.shown(n)));
    conditions.progress.end();
    done.elapsed = (conditions.clock)();
    done.failed.splice(0..0, earlier);
    if !done.interrupted {
        let once = plan.steps.iter().filter(|step| step.repetition == 1);
        for step in once.filter(|step| !done.results.has_failed(&step.run)) {
            let key = step.run.key();
            let made = done.results.repetitions(&key);
            done.left_out += usize::from(made == 0);
            done.too_few += usize::from(plan.conditions.contains(&key) && (1..FEWEST).contains(&made));
        }
    }
    outcome.map(|()| done)
}

/// What runs have cost, in seconds, and what was assumed.
struct Cost {
    taken: f64,
    assumed: f64,
    /// The part of it that further attempts took.
    repeated: f64,
}

impl Default for Cost {
    fn default() -> Self {
        Self { taken: TRUST, assumed: TRUST, repeated: 0.0 }
    }
}

/// An execution under way.
struct Making<'a, 'c> {
    plan: &'a Plan,
    store: &'a mut Store,
    conditions: &'a Conditions<'c>,
    done: &'a mut Execution,
    cost: Cost,
}

impl Making<'_, '_> {
    /// Makes those of the steps that are `wanted` in their repetition, and not yet made. This is
    /// decided when a repetition begins: runs that are compared are made equally often.
    fn make(
        &mut self,
        steps: &[&Step],
        wanted: impl Fn(&Plan, usize, &Results) -> HashSet<String>,
    ) -> Result<()> {
        for repetition in steps.chunk_by(|a, b| a.repetition == b.repetition) {
            let number = repetition[0].repetition;
            let wanted = wanted(self.plan, number, &self.done.results);
            for step in repetition {
                let key = step.run.key();
                let is_wanted = wanted.contains(&key)
                    && !self.done.results.has_failed(&step.run)
                    && !self.done.results.has(&key, number);
                if is_wanted {
                    self.step(step, key)?;
                }
            }
        }
        Ok(())
    }

    /// Makes one run, if there is time.
    fn step(&mut self, step: &Step, key: String) -> Result<()> {
        let Conditions { stop, clock, progress, budget, .. } = *self.conditions;
        if stop.load(Ordering::Relaxed) {
            self.done.interrupted = true;
            self.done.results.miss(&key, "the report was interrupted before its run".into());
            return Ok(());
        }
        let began = clock().as_secs_f64();
        let cost = step.run.cost() * (self.cost.taken / self.cost.assumed);
        if began + cost > budget {
            self.done.not_repeated += usize::from(step.repetition > FEWEST);
            self.done.results.miss(&key, "there was no time for its run".into());
            return Ok(());
        }
        progress.run(self.done.made + self.done.failed.len() + 1, step);
        let repeated = self.cost.repeated;
        let ending = self.attempts(step, cost);
        let ended = clock();
        self.cost.taken += ended.as_secs_f64() - began - (self.cost.repeated - repeated);
        self.cost.assumed += step.run.cost();
        match ending {
            Ending::Measured(measurement) => {
                progress.ended(step, Ok(measurement.txn_per_s), ended);
                self.done.made += 1;
                self.done.results.add(&key, step.repetition, (*measurement).clone());
                self.store.add(key, step.repetition, Ok(*measurement))?;
            }
            Ending::Interrupted => {
                self.done.interrupted = true;
                self.done.results.miss(&key, "the report was interrupted during its run".into());
            }
            Ending::Failed(why) => {
                progress.ended(step, Err(&why), ended);
                self.done.failed.push(format!("{key}: {why}"));
                let why = format!("{} failed: {why}", step.run.gc);
                self.done.results.fail(&key, why.clone());
                self.store.add(key, step.repetition, Err(why))?;
            }
        }
        Ok(())
    }

    /// Runs a step, whose estimated `cost` is in seconds; again if other programs disturb it.
    /// The attempt that they disturb least counts.
    fn attempts(&mut self, step: &Step, cost: f64) -> Ending {
        let Conditions { runner, stop, clock, budget, progress } = *self.conditions;
        let mut ending = runner.run(step, stop);
        for _ in 1..ATTEMPTS {
            let now = clock().as_secs_f64();
            let has_time = !stop.load(Ordering::Relaxed)
                && now + cost <= budget
                && self.cost.repeated + cost <= now * FOR_ATTEMPTS;
            let Ending::Measured(least) = &ending else { break };
            if !least.is_disturbed() || !has_time {
                break;
            }
            let share = percent(least.others_share.unwrap_or_default());
            progress.note(&format!(
                "other programs took {share} of the processors' time; this run is made again"
            ));
            match runner.run(step, stop) {
                Ending::Measured(next) if next.others_share >= least.others_share => {}
                // What was measured is not lost.
                Ending::Interrupted => self.done.interrupted = true,
                // A run that fails once has failed.
                next => ending = next,
            }
            self.cost.repeated += clock().as_secs_f64() - now;
            self.done.repeated += 1;
        }
        ending
    }
}

#[cfg(test)]
#[path = "execute_test.rs"]
mod tests;
