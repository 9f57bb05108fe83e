//! Measurements, looked up by run.

use std::collections::{BTreeMap, HashMap};

use crate::measurement::Measurement;
use crate::numbers::Spread;
use crate::spec::RunSpec;

/// A value taken from a measurement; `None` where the run has none.
pub type Metric<'m> = &'m dyn Fn(&Measurement) -> Option<f64>;

/// Transactions per second.
pub fn throughput(measurement: &Measurement) -> Option<f64> {
    Some(measurement.txn_per_s)
}

/// All measurements, and the reasons for missing ones.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// By key, then by number of repetition.
    measured: HashMap<String, BTreeMap<usize, Measurement>>,
    /// By key.
    missing: HashMap<String, String>,
    /// Why a repetition of a run failed, by key.
    failed: HashMap<String, String>,
}

impl Results {
    /// Adds a repetition of a run.
    pub fn add(&mut self, key: &str, repetition: usize, measurement: Measurement) {
        self.measured.entry(key.to_owned()).or_default().insert(repetition, measurement);
    }

    /// Records why a run has no measurement.
    pub fn miss(&mut self, key: &str, why: String) {
        self.missing.insert(key.to_owned(), why);
    }

    /// Records why a repetition of a run failed. The run counts as missing, however
    /// often it succeeded.
    pub fn fail(&mut self, key: &str, why: String) {
        self.failed.insert(key.to_owned(), why);
    }

    /// The measurements of the second run of each pair, as if the first had them. There are no others.
    pub fn seen_as(&self, pairs: &[(RunSpec, RunSpec)]) -> Self {
        let seen = |(run, other): &(RunSpec, RunSpec)| {
            let measured = self.measured.get(&other.key()).filter(|_| !self.has_failed(other))?;
            Some((run.key(), measured.clone()))
        };
        Self { measured: pairs.iter().filter_map(seen).collect(), ..Self::default() }
    }

    /// Whether a repetition of a run failed.
    pub fn has_failed(&self, run: &RunSpec) -> bool {
        self.failed.contains_key(&run.key())
    }

    /// Whether this repetition of a run was made.
    pub fn has(&self, key: &str, repetition: usize) -> bool {
        self.measured.get(key).is_some_and(|made| made.contains_key(&repetition))
    }

    /// The number of repetitions of a run.
    pub fn repetitions(&self, key: &str) -> usize {
        self.measured.get(key).map_or(0, BTreeMap::len)
    }

    /// The number of repetitions that all of these runs have.
    pub fn common(&self, keys: &[String]) -> usize {
        let Some(first) = keys.first().and_then(|key| self.measured.get(key)) else { return 0 };
        first.keys().filter(|repetition| keys.iter().all(|key| self.has(key, **repetition))).count()
    }

    /// Why a run has no measurement, or none that counts; `None` if it has one.
    pub fn why_missing(&self, run: &RunSpec) -> Option<String> {
        let key = run.key();
        if let Some(why) = self.failed.get(&key) {
            return Some(why.clone());
        }
        (self.repetitions(&key) == 0)
            .then(|| self.missing.get(&key).cloned().unwrap_or_else(|| "it was not run".into()))
    }

    /// The last repetition of a run.
    pub fn one(&self, run: &RunSpec) -> Option<&Measurement> {
        self.measured.get(&run.key())?.values().last()
    }

    /// All repetitions of a run.
    pub fn all(&self, run: &RunSpec) -> impl Iterator<Item = &Measurement> {
        self.measured.get(&run.key()).into_iter().flat_map(BTreeMap::values)
    }

    /// In how many repetitions of all runs something is so.
    pub fn count(&self, is_so: impl Fn(&Measurement) -> bool) -> usize {
        self.measured.values().flat_map(BTreeMap::values).filter(|measurement| is_so(measurement)).count()
    }

    /// A value over all repetitions.
    pub fn spread(&self, run: &RunSpec, metric: Metric<'_>) -> Option<Spread> {
        let figures: Option<Vec<_>> = self.measured.get(&run.key())?.values().map(metric).collect();
        Spread::of_runs(&figures?, [run.key()])
    }

    /// A value of one run divided by that of another.
    pub fn quotient(&self, of: &RunSpec, to: &RunSpec, metric: Metric<'_>) -> Option<Spread> {
        self.together(&[of.clone(), to.clone()], metric, &|values| values[0] / values[1])
    }

    /// What follows from a value of several runs, repetition by repetition, so that
    /// drift between repetitions cancels out.
    pub fn together(
        &self,
        runs: &[RunSpec],
        metric: Metric<'_>,
        of: &dyn Fn(&[f64]) -> f64,
    ) -> Option<Spread> {
        let keys: Vec<_> = runs.iter().map(RunSpec::key).collect();
        let runs: Option<Vec<_>> = keys.iter().map(|key| self.measured.get(key)).collect();
        let runs = runs?;
        let one =
            |repetition: &usize| -> Option<Vec<_>> { runs.iter().map(|run| run.get(repetition)).collect() };
        let all = runs.first()?.keys().filter_map(one);
        let value = |run: Vec<&Measurement>| -> Option<f64> {
            let values: Option<Vec<_>> = run.into_iter().map(metric).collect();
            Some(of(&values?))
        };
        let values: Option<Vec<_>> = all.map(value).collect();
        Spread::of_runs(&values?, keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Work;

    fn at(txn_per_s: f64) -> Measurement {
        Measurement { txn_per_s, ..Measurement::default() }
    }

    #[test]
    fn quotients_are_of_the_same_repetition() {
        let none = RunSpec::new(Work::Tpcc { warehouses: 1 }, "none", 2, (0.0, 1.0));
        let tb = none.with_gc("tb-collect");
        let mut results = Results::default();
        for (n, speed) in [100.0, 200.0, 400.0].into_iter().enumerate() {
            results.add(&none.key(), n, at(speed));
            results.add(&tb.key(), n, at(speed * 0.9));
        }
        let ratio = results.quotient(&tb, &none, &throughput).unwrap();
        let (low, high) = ratio.interval.unwrap();
        assert!((low - 0.9).abs() < 1e-9 && (high - 0.9).abs() < 1e-9);
        assert_eq!(results.spread(&none, &throughput).unwrap().median, 200.0);
        // A repetition that the other run does not have is ignored.
        results.add(&tb.key(), 3, at(1.0));
        assert_eq!(results.quotient(&tb, &none, &throughput).unwrap().count, 3);
    }

    #[test]
    fn common_repetitions_are_those_of_all() {
        let mut results = Results::default();
        for (key, made) in [("a", [3, 4, 5]), ("b", [4, 5, 6]), ("c", [4, 5, 9])] {
            made.into_iter().for_each(|n| results.add(key, n, at(1.0)));
        }
        let common =
            |keys: &[&str]| results.common(&keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            [common(&["a"]), common(&["a", "b", "c"]), common(&["a", "d"]), common(&[])],
            [3, 2, 0, 0]
        );
    }

    #[test]
    fn what_is_missing_says_why() {
        let run = RunSpec::new(Work::Tpcc { warehouses: 1 }, "zen", 2, (0.0, 1.0));
        let mut results = Results::default();
        assert_eq!(results.why_missing(&run).unwrap(), "it was not run");
        results.miss(&run.key(), "zen is not built in".into());
        assert_eq!(results.why_missing(&run).unwrap(), "zen is not built in");
        results.add(&run.key(), 1, at(1.0));
        assert_eq!(results.why_missing(&run), None);
        results.add(&run.key(), 2, at(f64::INFINITY));
        assert_eq!(results.spread(&run, &throughput), None);
        results.fail(&run.key(), "zen failed: it broke".into());
        assert_eq!(results.why_missing(&run).unwrap(), "zen failed: it broke");
    }
}
