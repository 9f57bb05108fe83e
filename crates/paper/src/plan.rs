//! Which runs are executed, and in which order, so that they fit the time.

use std::collections::{BTreeMap, HashSet};

use crate::claims::Claim;
use crate::engine::Runner;
use crate::size::Size;
use crate::spec::RunSpec;

/// The share of the time that running everything once may take, because the
/// cost of runs is not known yet.
const MARGIN: f64 = 0.9;

/// One repetition of a run.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// The run.
    pub run: RunSpec,
    /// Its repetition, from 1.
    pub repetition: usize,
}

/// The runs of some claims.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The size that fits the time.
    pub size: Size,
    /// In the order of execution.
    pub steps: Vec<Step>,
    /// Runs that cannot be executed, by key, with the reason.
    pub missing: BTreeMap<String, String>,
    /// Seconds that running everything once takes, by the initial estimate.
    pub estimate: f64,
}

impl Plan {
    /// The runs of these claims. A run that several claims share is planned
    /// once. Runs that are compared with each other stand side by side; every
    /// other repetition executes them in reverse order. Everything runs once
    /// before anything runs again. If running everything once does not fit into
    /// `budget` seconds, runs are shortened until it does. Of the planned
    /// repetitions, as many are executed as there is time for.
    pub fn new(claims: &[&Claim], size: &Size, budget: f64, runner: &dyn Runner) -> Self {
        let mut plans = size.shorter().map(|size| Self::of_size(claims, size, runner));
        let fitting = plans.find(|plan| plan.estimate <= budget * MARGIN);
        let mut plan = fitting.unwrap_or_else(|| {
            let shortest = size.shorter().last().unwrap_or_else(|| size.clone());
            Self::of_size(claims, shortest, runner)
        });
        plan.repeat();
        plan
    }

    /// Everything once.
    fn of_size(claims: &[&Claim], size: Size, runner: &dyn Runner) -> Self {
        let mut seen = HashSet::new();
        let mut groups: Vec<(String, Vec<RunSpec>)> = Vec::new();
        let mut missing = BTreeMap::new();
        for run in claims.iter().flat_map(|claim| claim.runs(&size)) {
            let key = run.key();
            if !seen.insert(key.clone()) {
                continue;
            }
            if let Some(why) = runner.missing(&run) {
                missing.insert(key, why);
                continue;
            }
            let group = run.group();
            match groups.iter_mut().find(|(name, _)| *name == group) {
                Some((_, runs)) => runs.push(run),
                None => groups.push((group, vec![run])),
            }
        }
        let runs = groups.into_iter().flat_map(|(_, runs)| runs);
        let steps: Vec<_> = runs.map(|run| Step { run, repetition: 1 }).collect();
        let estimate = steps.iter().map(|step| step.run.cost()).sum();
        Self { size, steps, missing, estimate }
    }

    /// Adds repetitions, one group after another.
    fn repeat(&mut self) {
        let once = self.steps.clone();
        for repetition in 2..=self.size.repetitions {
            for group in once.chunk_by(|a, b| a.run.group() == b.run.group()) {
                let mut group: Vec<_> =
                    group.iter().map(|step| Step { repetition, run: step.run.clone() }).collect();
                if repetition.is_multiple_of(2) {
                    group.reverse();
                }
                self.steps.extend(group);
            }
        }
    }
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
