//! Which runs are executed, and in which order, so that they fit the time.

use std::collections::{BTreeMap, HashSet};

use crate::claims::Claim;
use crate::engine::Runner;
use crate::numbers::{FEWEST, Outcome};
use crate::results::Results;
use crate::size::Size;
use crate::spec::{RunSpec, Step};
use crate::verdict::{Judgement, Verdict};

/// The share of the time that the fewest repetitions may take, because the cost of runs is not
/// known yet.
const MARGIN: f64 = 0.9;

/// Repetitions of what is refuted: of many conditions, a few of the fewest repetitions err.
const REFUTED: usize = 6;

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
    /// The keys of the runs that conditions are about; others are only drawn.
    pub conditions: HashSet<String>,
}

impl Plan {
    /// The runs of these claims. A run that several claims share is planned
    /// once. Runs that are compared with each other stand side by side; every
    /// other repetition executes them in reverse order. Everything runs once before
    /// anything runs again. If the fewest repetitions of the size do not fit into `budget`
    /// seconds, runs are shortened until they do. Of the planned repetitions, those
    /// are executed for which there is time, and which a condition of a claim needs.
    pub fn new(claims: &[&'static Claim], size: &Size, budget: f64, runner: &dyn Runner) -> Self {
        let mut plans = size.shorter().map(|size| Self::of_size(claims, size, runner));
        let fitting = plans.find(|plan| plan.least() <= budget * MARGIN);
        let mut plan = fitting.unwrap_or_else(|| {
            let shortest = size.shorter().last().unwrap_or_else(|| size.clone());
            Self::of_size(claims, shortest, runner)
        });
        plan.budget = budget;
        plan.repeat(runner);
        plan
    }

    /// The keys of the runs that this repetition needs for verdicts: once, all of
    /// them; up to as often as a verdict needs, those that a condition is about; and
    /// after that, those of conditions that are undecided and that repetitions may
    /// decide, and for some more repetitions those of conditions that are refuted, and
    /// of the same without the supposed causes.
    pub fn needed(&self, repetition: usize, results: &Results) -> HashSet<String> {
        match repetition {
            1 => self.keys(),
            2..=FEWEST => self.conditions.clone(),
            _ => {
                let of_claim = |claim: &&'static Claim| {
                    let judgement = claim.judge(results, &self.size).judgement;
                    let mut keys = self.causes(claim, &judgement, results);
                    let Judgement { verdict, parts, .. } = judgement;
                    let open = parts.into_iter().filter(|part| match verdict {
                        Verdict::Undecided | Verdict::DoesNotHold => {
                            part.is_open || part.outcome == Outcome::Refuted && repetition <= REFUTED
                        }
                        Verdict::Holds | Verdict::CannotBeJudged => false,
                    });
                    keys.extend(open.flat_map(|part| part.runs.to_vec()));
                    keys
                };
                self.claims.iter().flat_map(of_claim).collect()
            }
        }
    }

    /// The keys of the runs that show what the causes of refuted conditions are, until as many repetitions as an interval
    /// needs have all of a condition's: from any repetition on in which it is refuted. Runs that a cause leaves as they are
    /// are among them.
    fn causes(&self, claim: &Claim, judgement: &Judgement, results: &Results) -> Vec<String> {
        let of_condition = |(cause, part)| -> Vec<String> {
            let runs = claim.without(cause, part, &self.size);
            let has_failed = runs.iter().any(|(_, run)| results.has_failed(run));
            let keys: Vec<_> = runs.iter().map(|(_, run)| run.key()).collect();
            if !has_failed && results.common(&keys) < FEWEST { keys } else { Vec::new() }
        };
        claim.supposed(judgement).flat_map(of_condition).collect()
    }

    /// The keys of the runs that this repetition needs where there is time left:
    /// those of which the figures show an interval, too.
    pub fn shown(&self, repetition: usize) -> HashSet<String> {
        if repetition <= FEWEST { self.keys() } else { HashSet::new() }
    }

    fn keys(&self) -> HashSet<String> {
        self.steps.iter().map(|step| step.run.key()).collect()
    }

    /// Seconds that the fewest repetitions take which permit verdicts.
    fn least(&self) -> f64 {
        let once = self.steps.iter().filter(|step| step.repetition == 1);
        let again = once.filter(|step| self.conditions.contains(&step.run.key()));
        let again: f64 = again.map(|step| step.run.cost()).sum();
        self.estimate + again * (self.size.fewest - 1) as f64
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
        let conditions = conditions(claims, &size);
        Self { budget: size.budget, size, claims: claims.to_vec(), steps, missing, estimate, conditions }
    }

    /// Adds repetitions, one group after another. Those of a group are apart, so that
    /// what drifts between groups differs from one to the next. The runs that show causes come first: repetitions of what is
    /// refuted say less.
    fn repeat(&mut self, runner: &dyn Runner) {
        let once = self.steps.clone();
        let mut causes: Vec<RunSpec> = Vec::new();
        for run in self.claims.iter().flat_map(|claim| claim.runs_of_causes(&self.size)) {
            if runner.missing(&run).is_none() && !causes.contains(&run) {
                causes.push(run);
            }
        }
        for repetition in 2..=self.size.repetitions {
            if repetition > FEWEST {
                self.steps.extend(causes.iter().map(|run| Step { repetition, run: run.clone() }));
            }
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

/// The keys of the runs that these claims' conditions are about, found by judging
/// measurements in which every figure is there.
fn conditions(claims: &[&'static Claim], size: &Size) -> HashSet<String> {
    let of_claim = |claim: &&'static Claim| {
        let parts = claim.with_every_figure(size).parts;
        let about: HashSet<_> = parts.iter().flat_map(|part| part.runs.to_vec()).collect();
        if about.is_empty() { claim.runs(size).iter().map(RunSpec::key).collect() } else { about }
    };
    claims.iter().flat_map(of_claim).collect()
}

#[cfg(test)]
#[path = "plan_test.rs"]
mod tests;
