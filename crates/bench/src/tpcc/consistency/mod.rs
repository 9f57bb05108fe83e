//! The consistency conditions of TPC-C, clauses 3.3.2.1 to 3.3.2.12.
//!
//! `facts` reads the database once, in one snapshot, and sums up
//! what the conditions speak of; `conditions` holds each condition as a
//! function of those facts. Condition 11 is stated for a database as loaded,
//! of whose orders 2,100 a district have been delivered; here the deliveries
//! since then, which customers count, are added to them.

mod conditions;
mod facts;

use std::collections::BTreeSet;
use std::fmt;

use pantile::Database;

use super::scale::Scale;
use super::schema::Tables;
use crate::error::Result;
use crate::load::Context;

/// Number of conditions.
pub const CONDITIONS: u32 = 12;

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

    fn add(&mut self, condition: u8, detail: String) {
        self.violations.push(Violation { condition, detail });
    }
}

/// Checks all conditions, for every warehouse, district, order and customer.
/// Nothing may write meanwhile.
///
/// # Errors
/// Those of the engine; [`crate::Error::Interrupted`].
pub fn check(db: &Database, tables: &Tables, scale: Scale, context: &Context<'_>) -> Result<Report> {
    let payments = facts::payments(db, tables, scale)?;
    let all = std::sync::Mutex::new(Report::default());
    context.in_parallel("checking consistency", usize::from(scale.warehouses), |n| {
        let warehouse = facts::warehouse(db, tables, scale, n as u16 + 1, &payments)?;
        let mut report = Report::default();
        conditions::check(&warehouse, scale, &mut report);
        if let Ok(mut all) = all.lock() {
            all.violations.extend(report.violations);
        }
        Ok(0)
    })?;
    let mut all = all.into_inner().map_err(|_| crate::Error::Panicked)?;
    all.violations.sort_by_key(|violation| violation.condition);
    Ok(all)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
