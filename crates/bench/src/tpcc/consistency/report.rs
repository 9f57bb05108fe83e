//! Where conditions do not hold.

use std::collections::BTreeSet;
use std::fmt;

/// A place where a condition does not hold.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The condition, 1 to 12: clause 3.3.2.N.
    pub condition: u8,
    /// Where, and what does not fit.
    pub detail: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "condition {} (clause 3.3.2.{0}): {}", self.condition, self.detail)
    }
}

/// What a check found.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Every place where a condition does not hold.
    pub violations: Vec<Violation>,
}

impl Report {
    /// The conditions that do not hold.
    pub fn failed(&self) -> BTreeSet<u8> {
        self.violations.iter().map(|violation| violation.condition).collect()
    }

    pub(super) fn add(&mut self, condition: u8, detail: String) {
        self.violations.push(Violation { condition, detail });
    }
}
