//! The consistency conditions of TPC-C, clauses 3.3.2.1 to 3.3.2.12.
//!
//! `facts` reads the database once, in one snapshot, and sums up
//! what the conditions speak of; `conditions` holds each condition as a
//! function of those facts. Condition 11 is stated for a database as loaded,
//! of whose orders 2,100 a district have been delivered; here the deliveries
//! since then, which customers count, are added to them.

mod conditions;
mod facts;
mod report;

use pantile::Database;

pub use report::{Report, Violation};

use super::scale::Scale;
use super::schema::Tables;
use crate::error::Result;
use crate::load::Context;

/// Number of conditions.
pub const CONDITIONS: u32 = 12;

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
