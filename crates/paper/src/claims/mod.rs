//! The claims: what was published, how it is measured here, and when it holds.
//!
//! Each claim states its rule. Ratios between
//! collectors in the same repetition count, absolute numbers of another
//! machine do not.

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
    /// Its id; one row may stand for several figures, with slashes.
    pub id: &'static str,
    /// What it is about.
    pub title: &'static str,
    /// Where it was published.
    pub source: &'static str,
    /// What was said.
    pub text: &'static str,
    /// The figures, in short.
    pub published: &'static str,
    /// When it holds here.
    pub rule: &'static str,
    /// How it is looked at.
    pub experiment: Experiment,
}

/// How a claim is looked at.
#[derive(Debug)]
pub enum Experiment {
    /// Not at all, for this reason.
    NotHere(&'static str),
    /// By runs.
    Runs {
        /// The runs.
        runs: fn(&Size) -> Vec<RunSpec>,
        /// What they say.
        judge: fn(&Results, &Size) -> Finding,
    },
}

/// What was found of a claim.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The verdict.
    pub judgement: Judgement,
    /// Our figures, in short.
    pub ours: String,
    /// Their unit.
    pub unit: &'static str,
    /// What was measured.
    pub figures: Vec<Figure>,
}

impl Finding {
    /// Of a rule and what it was applied to.
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

    /// What the results say of it.
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

    /// Whether a name means this claim: its id, or one of the figures that
    /// its id stands for, in either case.
    pub fn is_named(&self, name: &str) -> bool {
        let (series, figures) = self.id.split_once('-').unwrap_or((self.id, ""));
        let is = |figure: &str| format!("{series}-{figure}").eq_ignore_ascii_case(name);
        self.id.eq_ignore_ascii_case(name) || figures.split('/').any(is)
    }

    /// Its place in a page.
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

/// The claims of these names, all of none; in the order of the report.
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
