//! The claims: what was published, how it is measured here, and when it holds.
//!
//! Each claim states its rule. Ratios between collectors in the same repetition
//! count. Absolute numbers from another machine do not.

mod cause;
mod claim;
mod designs;
mod help;
mod nodes;
mod sias;
mod steam;
mod tb_space;
mod tb_sql;
mod tb_throughput;
mod tb_ycsb;
mod zen;

use crate::error::{Error, Result};

pub use cause::{Cause, Explanation};
pub use claim::{Claim, Experiment, Finding};

/// All claims, in the order of the report.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    let collect = tb_throughput::CLAIMS.iter().chain(tb_ycsb::CLAIMS).chain(tb_space::CLAIMS);
    let collect = collect.chain(tb_sql::CLAIMS);
    collect.chain(steam::CLAIMS).chain(zen::CLAIMS).chain(sias::CLAIMS)
}

/// The claims with these names, in the order of the report; all claims if there
/// are no names.
///
/// # Errors
/// [`Error::UnknownClaim`].
pub fn named(names: &[String]) -> Result<Vec<&'static Claim>> {
    if let Some(unknown) = names.iter().find(|name| !all().any(|claim| claim.is_named(name))) {
        return Err(Error::UnknownClaim(unknown.clone()));
    }
    let wanted = |claim: &&Claim| names.is_empty() || names.iter().any(|name| claim.is_named(name));
    Ok(all().filter(wanted).collect())
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
