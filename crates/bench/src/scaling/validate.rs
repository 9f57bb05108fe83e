//! Predictions as a table, and beside what was measured.

use std::fmt;

use super::{Costs, Machine, Prediction, Run, predict};
use crate::record::Record;

/// A line of a table of throughputs.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// The workload.
    pub workload: String,
    /// The collector.
    pub collector: String,
    /// The medium.
    pub medium: String,
    /// Clients.
    pub threads: usize,
    /// What is expected.
    pub predicted: Prediction,
    /// What was measured, where it was.
    pub measured: Option<Measured>,
}

/// What a run measured, beside a prediction of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Transactions a second.
    pub txn_per_s: f64,
    /// Cores that the clients had on average. Clients of a memory are always
    /// ready to run, so where this is less than the machine has, other
    /// programs had the rest.
    pub cores_had: f64,
    /// What it would have been with the machine to itself, by the processor
    /// time that transactions took.
    pub undisturbed_txn_per_s: f64,
}

impl Row {
    /// How much too high the prediction is, in percent of what was measured.
    pub fn error_percent(&self) -> Option<f64> {
        self.measured.map(|measured| percent(self.predicted.txn_per_s, measured.txn_per_s))
    }

    /// The same of what would have been measured undisturbed.
    pub fn undisturbed_error_percent(&self) -> Option<f64> {
        self.measured.map(|measured| percent(self.predicted.txn_per_s, measured.undisturbed_txn_per_s))
    }
}

fn percent(predicted: f64, measured: f64) -> f64 {
    (predicted / measured - 1.0) * 100.0
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { workload, collector, medium, threads, predicted, measured } = self;
        write!(
            f,
            "{workload:<5} {medium:<10} {collector:<16} {threads:>3} threads: predicted {:>8.0}, at least {:>8.0} txn/s",
            predicted.txn_per_s, predicted.least_txn_per_s
        )?;
        let Some(measured) = measured else { return Ok(()) };
        write!(
            f,
            "; measured {:>8.0} on {:.2} cores ({:+.1} %), undisturbed {:>8.0} ({:+.1} %)",
            measured.txn_per_s,
            measured.cores_had,
            percent(predicted.txn_per_s, measured.txn_per_s),
            measured.undisturbed_txn_per_s,
            percent(predicted.txn_per_s, measured.undisturbed_txn_per_s),
        )
    }
}

/// What is expected of these numbers of threads.
pub fn curve(costs: &Costs, machine: &Machine, threads: &[usize]) -> Vec<Row> {
    let row = |&threads: &usize| Row {
        workload: costs.workload.clone(),
        collector: costs.gc.clone(),
        medium: costs.medium.to_string(),
        threads,
        predicted: predict(costs, machine, threads),
        measured: None,
    };
    threads.iter().map(row).collect()
}

/// Puts those of the runs that are of what was calibrated, with any number of
/// clients, beside what is expected of them on the machine that they ran on.
pub fn validate<'r>(
    costs: &Costs,
    machine: &Machine,
    runs: impl IntoIterator<Item = &'r Record>,
) -> Vec<Row> {
    let fits = |run: &&Record| {
        run.workload == costs.workload && run.gc == costs.gc && run.medium == costs.medium.to_string()
    };
    beside(costs, machine, runs.into_iter().filter(fits).map(Run::of))
}

/// The same of runs that are known to be of what was calibrated.
pub fn beside(costs: &Costs, machine: &Machine, runs: impl IntoIterator<Item = Run>) -> Vec<Row> {
    let row = |run: Run| {
        let measured = Some(measured(&run, machine));
        curve(costs, machine, &[run.threads]).into_iter().map(move |row| Row { measured, ..row })
    };
    runs.into_iter().flat_map(row).collect()
}

fn measured(run: &Run, machine: &Machine) -> Measured {
    // A core works for clients, or for the engine's own threads.
    let per_txn = run.cores_had / run.txn_per_s;
    let cores = machine.hardware_threads() as f64;
    let undisturbed_txn_per_s = (run.threads as f64 / per_txn).min(cores / (per_txn + run.background));
    Measured { txn_per_s: run.txn_per_s, cores_had: run.cores_had, undisturbed_txn_per_s }
}
