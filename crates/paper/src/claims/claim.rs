//! What a claim is, and a finding on it.

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
pub struct Experiment {
    /// The runs.
    pub runs: fn(&Size) -> Vec<RunSpec>,
    /// Judges the results.
    pub judge: fn(&Results, &Size) -> Finding,
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
    pub(super) fn of(rule: Rule, unit: &'static str, ours: String, figures: Vec<Figure>) -> Self {
        let figures = figures.into_iter().filter(|figure| !figure.is_empty()).collect();
        Self { judgement: rule.judge(), ours, unit, figures }
    }
}

impl Claim {
    /// Its runs.
    pub fn runs(&self, size: &Size) -> Vec<RunSpec> {
        (self.experiment.runs)(size)
    }

    /// Judges the results.
    pub fn judge(&self, results: &Results, size: &Size) -> Finding {
        (self.experiment.judge)(results, size)
    }

    /// Whether a name means this claim: its id, or one of the figures that the
    /// id covers, in upper or lower case.
    pub fn is_named(&self, name: &str) -> bool {
        let (series, figures) = self.id.split_once('-').unwrap_or((self.id, ""));
        let is = |figure: &str| format!("{series}-{figure}").eq_ignore_ascii_case(name);
        self.id.eq_ignore_ascii_case(name) || figures.split('/').any(is)
    }

    /// The address of the publication.
    pub fn publication(&self) -> &'static str {
        match self.id.split_once('-').unwrap_or_default().0 {
            "TB" => "https://doi.org/10.3390/electronics14102080",
            "ST" => "https://doi.org/10.14778/3364324.3364328",
            "ZN" => "https://doi.org/10.1007/s00778-022-00737-1",
            _ => "https://publikationen.reutlingen-university.de/frontdoor/index/index/docId/406",
        }
    }

    /// The anchor in the page.
    pub fn anchor(&self) -> String {
        self.id.replace('/', "-")
    }
}
