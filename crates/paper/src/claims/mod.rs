//! The claims: what was published, how it is measured here, and when it holds.
//!
//! Each claim states its rule. Ratios between collectors in the same repetition
//! count. Absolute numbers from another machine do not.

mod help;
mod sias;
mod steam;
mod tb_space;
mod tb_sql;
mod tb_throughput;
mod tb_ycsb;
mod zen;

use crate::error::{Error, Result};
use crate::figure::Figure;
use crate::results::Results;
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::{Judgement, Rule};

/// A published result.
#[derive(Debug)]
pub struct Claim {
    /// Its id. One claim may cover several figures, separated by slashes.
    pub id: &'static str,
    /// The topic.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// The published statement.
    pub text: &'static str,
    /// The published numbers, in short.
    pub published: &'static str,
    /// When the claim holds here.
    pub rule: &'static str,
    /// How it is examined.
    pub experiment: Experiment,
}

/// How a claim is examined.
#[derive(Debug)]
pub enum Experiment {
    /// Not examined here, for this reason.
    NotHere(&'static str),
    /// Examined by runs.
    Runs {
        /// The runs.
        runs: fn(&Size) -> Vec<RunSpec>,
        /// Judges the results.
        judge: fn(&Results, &Size) -> Finding,
    },
}

/// The finding on a claim.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The verdict.
    pub judgement: Judgement,
    /// Our numbers, in short.
    pub ours: String,
    /// Their unit.
    pub unit: &'static str,
    /// The figures to draw.
    pub figures: Vec<Figure>,
}

impl Finding {
    /// Builds the finding from a rule and what it was applied to.
    fn of(rule: Rule, unit: &'static str, ours: String, figures: Vec<Figure>) -> Self {
        let figures = figures.into_iter().filter(|figure| !figure.is_empty()).collect();
        Self { judgement: rule.judge(), ours, unit, figures }
    }
}

impl Claim {
    /// Its runs.
    pub fn runs(&self, size: &Size) -> Vec<RunSpec> {
        match self.experiment {
            Experiment::NotHere(_) => Vec::new(),
            Experiment::Runs { runs, .. } => runs(size),
        }
    }

    /// Judges the results.
    pub fn judge(&self, results: &Results, size: &Size) -> Finding {
        match self.experiment {
            Experiment::NotHere(reason) => Finding {
                judgement: Judgement::cannot(reason),
                ours: String::new(),
                unit: "",
                figures: Vec::new(),
            },
            Experiment::Runs { judge, .. } => judge(results, size),
        }
    }

    /// Whether a name means this claim: its id, or one of the figures that the
    /// id covers, in upper or lower case.
    pub fn is_named(&self, name: &str) -> bool {
        let (series, figures) = self.id.split_once('-').unwrap_or((self.id, ""));
        let is = |figure: &str| format!("{series}-{figure}").eq_ignore_ascii_case(name);
        self.id.eq_ignore_ascii_case(name) || figures.split('/').any(is)
    }

    /// The anchor in the page.
    pub fn anchor(&self) -> String {
        self.id.replace('/', "-")
    }
}

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
