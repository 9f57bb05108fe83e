//! Which runs are executed, and in which order, so that they fit the time.

use std::collections::{BTreeMap, HashSet};

use crate::claims::Claim;
use crate::engine::Runner;
use crate::numbers::FEWEST;
use crate::results::Results;
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::Verdict;

/// The share of the time that the fewest repetitions may take, because the cost of runs is not
/// known yet.
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
    /// Seconds that all runs may take.
    pub budget: f64,
    /// The size that fits the time.
    pub size: Size,
    /// The claims that the runs are for.
    pub claims: Vec<&'static Claim>,
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
    /// other repetition executes them in reverse order. Everything runs once before
    /// anything runs again. If the fewest repetitions of the size do not fit into `budget`
    /// seconds, runs are shortened until they do. Of the planned repetitions, those
    /// are executed for which there is time, and which a claim needs.
    pub fn new(claims: &[&'static Claim], size: &Size, budget: f64, runner: &dyn Runner) -> Self {
        let mut plans = size.shorter().map(|size| Self::of_size(claims, size, runner));
        let fitting = plans.find(|plan| plan.estimate * size.fewest as f64 <= budget * MARGIN);
        let mut plan = fitting.unwrap_or_else(|| {
            let shortest = size.shorter().last().unwrap_or_else(|| size.clone());
            Self::of_size(claims, shortest, runner)
        });
        plan.budget = budget;
        plan.repeat();
        plan
    }

    /// Whether a step may still change a verdict: each run is made as often as a
    /// verdict needs, and more often only for claims that are undecided.
    pub fn needs(&self, step: &Step, results: &Results) -> bool {
        let group = step.run.group();
        let uses = |claim: &&Claim| claim.runs(&self.size).iter().any(|run| run.group() == group);
        step.repetition <= FEWEST
            || self
                .claims
                .iter()
                .filter(|claim| uses(claim))
                .any(|claim| claim.judge(results, &self.size).judgement.verdict == Verdict::Undecided)
    }

    /// Everything once.
    fn of_size(claims: &[&'static Claim], size: Size, runner: &dyn Runner) -> Self {
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
        Self { budget: size.budget, size, claims: claims.to_vec(), steps, missing, estimate }
    }

    /// Adds repetitions, one group after another. Those of a group are apart, so that
    /// what drifts between groups differs from one to the next.
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
