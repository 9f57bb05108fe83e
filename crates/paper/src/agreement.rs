//! How far two reports agree, such as those of two machines.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::numbers::{Outcome, percent};

/// A report, as far as it is compared.
#[derive(Debug)]
struct Record(Vec<Judged>);

/// A claim in it.
#[derive(Deserialize, Debug)]
struct Judged {
    id: String,
    verdict: String,
    parts: Vec<Condition>,
    commit: String,
    machine: String,
    date: String,
}

/// A condition of a claim.
#[derive(Deserialize, Debug)]
struct Condition {
    about: String,
    outcome: Outcome,
    found: String,
}

/// What two reports say of the claims that are in both.
#[derive(Debug)]
pub struct Agreement {
    reports: [Record; 2],
}

/// A condition that one report holds for held, and the other for refuted.
struct Contradiction<'a> {
    id: &'a str,
    found: [&'a Condition; 2],
}

impl Record {
    fn read(path: &Path) -> Result<Self> {
        let text = fs::read(path).map_err(|error| Error::io("read", path, error))?;
        serde_json::from_slice(&text)
            .map(Self)
            .map_err(|error| Error::NoRecord { path: path.to_owned(), problem: error.to_string() })
    }

    /// Where and when it was made, in one line.
    fn title(&self) -> String {
        self.0.first().map_or_else(
            || "no claims".into(),
            |Judged { commit, machine, date, .. }| format!("{machine}, commit {commit}, {date}"),
        )
    }

    /// How many claims have each verdict.
    fn verdicts(&self) -> String {
        let mut counts = BTreeMap::<&str, usize>::new();
        self.0.iter().for_each(|claim| *counts.entry(&claim.verdict).or_default() += 1);
        let told: Vec<_> = counts.iter().map(|(verdict, count)| format!("{count} {verdict}")).collect();
        told.join(", ")
    }
}

impl Agreement {
    /// Compares two records, as `pantile paper` writes them (`claims.json`).
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::NoRecord`] if one is something else.
    pub fn of(first: &Path, second: &Path) -> Result<Self> {
        Ok(Self { reports: [Record::read(first)?, Record::read(second)?] })
    }

    /// Each condition that is in both reports.
    fn conditions(&self) -> impl Iterator<Item = (&str, [&Condition; 2])> {
        let [first, second] = &self.reports;
        first.0.iter().flat_map(move |claim| {
            let other = second.0.iter().find(|other| other.id == claim.id);
            let parts = other.map_or(&[][..], |other| &other.parts[..]);
            claim.parts.iter().filter_map(move |part| {
                let other = parts.iter().find(|other| other.about == part.about)?;
                Some((&*claim.id, [part, other]))
            })
        })
    }

    /// The number of conditions that both decide, and those that they decide differently.
    fn decided(&self) -> (usize, Vec<Contradiction<'_>>) {
        let decided = |(_, parts): &(&str, [&Condition; 2])| {
            parts.iter().all(|part| part.outcome != Outcome::Undecided)
        };
        let decided: Vec<_> = self.conditions().filter(decided).collect();
        let count = decided.len();
        let differ = decided.into_iter().filter(|(_, [one, other])| one.outcome != other.outcome);
        (count, differ.map(|(id, found)| Contradiction { id, found }).collect())
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, report) in self.reports.iter().enumerate() {
            writeln!(f, "report {}: {}: {}", n + 1, report.title(), report.verdicts())?;
        }
        let same = self.conditions().filter(|(_, [one, other])| one.outcome == other.outcome).count();
        let (decided, contradictions) = self.decided();
        writeln!(
            f,
            "{} conditions are in both: {same} have the same outcome, {decided} are decided by both.",
            self.conditions().count()
        )?;
        if decided > 0 {
            let agree = decided - contradictions.len();
            let share = percent(agree as f64 / decided as f64);
            writeln!(f, "Of those that both decide, {agree} agree ({share}).")?;
        }
        for Contradiction { id, found: [one, other] } in contradictions {
            writeln!(f, "{id}: {}", one.about)?;
            for (n, part) in [one, other].into_iter().enumerate() {
                writeln!(f, "  report {}: {}: {}", n + 1, part.outcome.word(), part.found)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(parts: &[(&str, &str)]) -> serde_json::Value {
        let parts: Vec<_> = parts
            .iter()
            .map(|(about, outcome)| serde_json::json!({"about": about, "outcome": outcome, "found": format!("{about} is so")}))
            .collect();
        serde_json::json!([{
            "id": "TB-9", "verdict": "undecided", "parts": parts, "commit": "abc", "machine": "m", "date": "d", "rule": "r",
        }])
    }

    #[test]
    fn what_both_decide_is_compared() {
        let place = tempfile::tempdir().expect("place");
        let [first, second, other] = ["a", "b", "c"].map(|name| place.path().join(name));
        let one = [("a against b", "held"), ("a against c", "held"), ("d", "undecided"), ("e", "held")];
        fs::write(&first, record(&one).to_string()).expect("write");
        let two = [("a against c", "refuted"), ("a against b", "held"), ("d", "undecided"), ("f", "held")];
        fs::write(&second, record(&two).to_string()).expect("write");
        let told = Agreement::of(&first, &second).expect("records").to_string();
        assert!(told.starts_with("report 1: m, commit abc, d: 1 undecided\nreport 2: "), "{told}");
        assert!(
            told.contains("3 conditions are in both: 2 have the same outcome, 2 are decided by both.\n"),
            "{told}"
        );
        assert!(
            told.contains("Of those that both decide, 1 agree (50\u{a0}%).\nTB-9: a against c\n"),
            "{told}"
        );
        assert!(told.contains("  report 2: refuted: a against c is so\n"), "{told}");
        fs::write(&other, "[1]").expect("write");
        let error = Agreement::of(&first, &other).expect_err("no record").to_string();
        assert!(error.contains("is no record of a report"), "{error}");
    }
}
