//! What a report says.

use std::time::Duration;

use crate::claims::{Claim, Explanation, Finding};
use crate::store::Build;

/// A claim and its finding.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The claim.
    pub claim: &'static Claim,
    /// What was found.
    pub finding: Finding,
    /// What is known about why conditions are refuted.
    pub explanations: Vec<Explanation>,
    /// Its runs, as command lines that repeat them.
    pub commands: Vec<String>,
    /// How often its runs were made, all together.
    pub runs: usize,
    /// The number of runs that are not the same.
    pub distinct: usize,
    /// The fewest and the most repetitions of one run.
    pub repetitions: (usize, usize),
}

/// Facts about the whole report.
#[derive(Clone, Debug)]
pub struct About {
    /// What was built, and where it ran.
    pub build: Build,
    /// When it ended.
    pub date: String,
    /// `quick` or `full`.
    pub size: &'static str,
    /// The share of their length that runs have, if they were shortened to fit the time.
    pub shortened: Option<f64>,
    /// Seconds that all runs might take, unless they are those of the size.
    pub budget: Option<f64>,
    /// The time that the most recent runs took.
    pub elapsed: Duration,
    /// The number of the most recent runs.
    pub made: usize,
    /// The number of earlier runs.
    pub reused: usize,
    /// Runs for which there was no time.
    pub left_out: usize,
    /// Runs that were made, but too few times to decide anything.
    pub too_few: usize,
    /// Further repetitions for which there was no time, and that might have decided conditions or shown causes.
    pub not_repeated: usize,
    /// Runs just before which an emulated memory was not what it is configured to be.
    pub off_bound: usize,
    /// Further attempts of runs that other programs disturbed.
    pub repeated: usize,
    /// Runs that count although other programs disturbed them.
    pub disturbed: usize,
    /// Runs that failed, and why.
    pub failed: Vec<String>,
    /// Whether it was interrupted.
    pub interrupted: bool,
}

/// A report.
#[derive(Clone, Debug)]
pub struct Report {
    /// Facts about the whole.
    pub about: About,
    /// The claims, in the order of the page.
    pub entries: Vec<Entry>,
}
