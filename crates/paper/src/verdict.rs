//! Verdicts, and the rules by which they are reached.
//!
//! A rule is a list of conditions taken from the published text. Each is judged by
//! itself, from the interval in which the true value lies: held, refuted, or
//! undecided. A claim holds if all are held, and does not if one is refuted.

use std::sync::Arc;

use serde::Serialize;

use crate::numbers::{MOST, Outcome, Spread, times};

/// The verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// Every condition of its rule is held.
    #[serde(rename = "holds")]
    Holds,
    /// At least one condition is refuted.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// None is refuted, and more or longer runs are needed for the others.
    #[serde(rename = "undecided")]
    Undecided,
    /// The machine, the engine or the size of the runs does not permit a verdict.
    #[serde(rename = "cannot be judged here")]
    CannotBeJudged,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::Undecided => "undecided",
            Verdict::CannotBeJudged => "cannot be judged here",
        }
    }
}

/// A condition of a claim, and what was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    /// What is compared: the same in every report of the claim.
    pub about: String,
    /// What follows for the condition.
    pub outcome: Outcome,
    /// What was found, in numbers.
    pub found: String,
    /// The keys of the runs that it follows from.
    #[serde(skip)]
    pub runs: Arc<[String]>,
    /// Whether it is undecided, and may be decided by more repetitions.
    #[serde(skip)]
    pub is_open: bool,
}

/// A verdict and its reason, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
    /// Its conditions, as far as they were measured.
    pub parts: Vec<Part>,
}

impl Judgement {
    /// A judgement that the claim cannot be judged, for this reason.
    pub fn cannot(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::CannotBeJudged, reason: reason.into(), parts: Vec::new() }
    }

    /// How many conditions have which outcome, in words.
    pub fn counts(&self) -> String {
        counts(&self.parts)
    }

    /// The number of parts with this outcome.
    pub fn count(&self, outcome: Outcome) -> usize {
        self.parts.iter().filter(|part| part.outcome == outcome).count()
    }
}

/// A tie is not a win.
fn unless_tie(by: &Spread, outcome: Outcome) -> Outcome {
    if by.is_tie() { Outcome::Refuted } else { outcome }
}

/// Most conditions that a reason lists one by one.
const MOST_TOLD: usize = 3;

/// The conditions examined so far.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    parts: Vec<Part>,
    missing: Vec<String>,
    /// Required collectors that are not built in.
    absent: Vec<&'static str>,
    /// Missing measurements; mentioned only if nothing else explains why they
    /// are missing.
    without_figures: Vec<String>,
}

impl Rule {
    /// Adds a condition on `by`, what it is about, and what was found.
    pub fn require(
        &mut self,
        about: impl Into<String>,
        by: &Spread,
        decide: impl Fn(&Spread) -> Outcome,
        found: impl FnOnce(Outcome) -> String,
    ) {
        let outcome = decide(by);
        let is_open = outcome == Outcome::Undecided
            && (by.interval.is_none() || decide(&by.at_best(MOST)) != Outcome::Undecided);
        let (about, found, runs) = (about.into(), found(outcome), Arc::clone(&by.runs));
        self.parts.push(Part { about, outcome, found, runs, is_open });
    }

    /// Whether a condition is refuted, so that nothing that is missing counts any more.
    pub fn is_refuted(&self) -> bool {
        self.parts.iter().any(|part| part.outcome == Outcome::Refuted)
    }

    /// Adds something whose absence prevents a verdict.
    pub fn lack(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    /// Adds that there are no measurements of something.
    pub fn no_figures(&mut self, of: &str) {
        self.without_figures.push(format!("there are no measurements of {of}"));
    }

    /// Adds a required collector that is not built in.
    pub fn absent(&mut self, collector: &'static str) {
        if !self.absent.contains(&collector) {
            self.absent.push(collector);
        }
    }

    /// Requires that `what` is larger: it is `by` times as large.
    pub fn larger(&mut self, what: &str, than: &str, by: Option<Spread>) {
        self.compare(what, than, by, |by| unless_tie(by, by.is_above(1.0)));
    }

    /// Requires that `what` is smaller: it is `by` times as large.
    pub fn smaller(&mut self, what: &str, than: &str, by: Option<Spread>) {
        self.compare(what, than, by, |by| unless_tie(by, by.is_below(1.0)));
    }

    /// Requires something of `what`, which is `by` times as large.
    pub fn compare(
        &mut self,
        what: &str,
        than: &str,
        by: Option<Spread>,
        decide: impl Fn(&Spread) -> Outcome,
    ) {
        match by {
            Some(by) => {
                let found = format!("{what} is {} {than}", by.told(times));
                self.require(format!("{what} against {than}"), &by, decide, |_| found);
            }
            None => self.no_figures(&format!("{what} and {than}")),
        }
    }

    /// Requires that `what` lies between these two values.
    pub fn between(&mut self, what: &str, found: Option<Spread>, (low, high): (f64, f64)) {
        let Some(found) = found else {
            return self.no_figures(what);
        };
        let told = |outcome| {
            let relation = match outcome {
                Outcome::Held => "between",
                Outcome::Refuted => "not between",
                Outcome::Undecided => "perhaps between",
            };
            format!("{what} is {}, {relation} {} and {}", found.told(times), times(low), times(high))
        };
        self.require(what, &found, |found| found.is_between(low, high), told);
    }

    /// The verdict.
    pub fn judge(self) -> Judgement {
        let absent = match self.absent.as_slice() {
            [] => None,
            [one] => Some(format!("{one} is not built in")),
            [many @ .., last] => Some(format!("{} and {last} are not built in", many.join(", "))),
        };
        let missing: Vec<_> = absent.into_iter().chain(self.missing).collect();
        let parts = self.parts;
        let cannot = |reason| Judgement { verdict: Verdict::CannotBeJudged, reason, parts: parts.clone() };
        if !missing.is_empty() {
            return cannot(sentence(&missing));
        }
        if !self.without_figures.is_empty() {
            return cannot(sentence(&self.without_figures));
        }
        let found = |outcome| -> Vec<String> {
            parts.iter().filter(|part| part.outcome == outcome).map(|part| part.found.clone()).collect()
        };
        let (refuted, undecided) = (found(Outcome::Refuted), found(Outcome::Undecided));
        let (verdict, told) = match () {
            () if parts.is_empty() => return cannot("Nothing was measured.".into()),
            () if !refuted.is_empty() => (Verdict::DoesNotHold, refuted),
            () if !undecided.is_empty() => (Verdict::Undecided, undecided),
            () => (Verdict::Holds, found(Outcome::Held)),
        };
        Judgement { verdict, reason: format!("{}: {}", counts(&parts), sentence(&told)), parts }
    }
}

fn counts(parts: &[Part]) -> String {
    let count = |outcome: Outcome| match parts.iter().filter(|part| part.outcome == outcome).count() {
        0 => None,
        count => Some(format!("{count} {}", outcome.word())),
    };
    let all = [Outcome::Held, Outcome::Refuted, Outcome::Undecided];
    all.into_iter().filter_map(count).collect::<Vec<_>>().join(", ")
}

/// The first of these, as one sentence.
fn sentence(parts: &[String]) -> String {
    let more = parts.len().saturating_sub(MOST_TOLD);
    let mut text = parts.iter().take(MOST_TOLD).cloned().collect::<Vec<_>>().join("; ");
    if more > 0 {
        text += &format!("; and {more} more");
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(figures: &[f64]) -> Option<Spread> {
        Spread::of(figures)
    }

    #[test]
    fn a_rule_holds_if_every_condition_is_held() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[1.25; 3]));
        rule.smaller("c", "b", spread(&[0.5; 3]));
        rule.between("d", spread(&[0.8; 4]), (0.7, 0.9));
        let judgement = rule.judge();
        assert_eq!(judgement.verdict, Verdict::Holds);
        assert_eq!(
            judgement.reason,
            "3 held: a is 1.25x (1.25x to 1.25x) b; c is 0.50x (0.50x to 0.50x) b; d is 0.80x (0.80x to 0.80x), \
             between 0.70x and 0.90x."
        );
    }

    #[test]
    fn one_condition_that_is_refuted_is_enough() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[1.2, 1.21, 1.22]));
        rule.larger("a", "c", spread(&[0.8, 0.81, 0.79]));
        rule.larger("a", "d", spread(&[0.8]));
        let judgement = rule.judge();
        assert_eq!(judgement.verdict, Verdict::DoesNotHold);
        assert_eq!(judgement.reason, "1 held, 1 refuted, 1 undecided: a is 0.80x (0.78x to 0.83x) c.");
        assert_eq!(judgement.count(Outcome::Undecided), 1);
        let mut outside = Rule::default();
        outside.between("d", spread(&[0.2; 3]), (0.7, 0.9));
        assert_eq!(outside.judge().verdict, Verdict::DoesNotHold);
    }

    #[test]
    fn what_is_not_decided_is_undecided() {
        for few in [&[0.9, 1.2, 1.3][..], &[1.2], &[1.5, 1.6]] {
            let mut rule = Rule::default();
            rule.larger("a", "b", spread(few));
            rule.larger("c", "b", spread(&[2.0; 3]));
            let judgement = rule.judge();
            assert_eq!(judgement.verdict, Verdict::Undecided);
            assert!(judgement.reason.starts_with("1 held, 1 undecided: a is "), "{}", judgement.reason);
        }
    }

    #[test]
    fn a_tie_is_not_a_win() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[1.001, 0.999, 1.0]));
        rule.smaller("a", "b", spread(&[1.001, 0.999, 1.0]));
        assert_eq!(rule.judge().count(Outcome::Refuted), 2);
    }

    #[test]
    fn what_is_missing_comes_first() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[0.1; 3]));
        rule.absent("zen");
        rule.absent("zen");
        rule.larger("a", "zen", None);
        let judgement = rule.clone().judge();
        assert_eq!(
            (judgement.verdict, &*judgement.reason, judgement.count(Outcome::Refuted)),
            (Verdict::CannotBeJudged, "zen is not built in.", 1)
        );
        rule.absent("steam");
        rule.lack("it was late");
        assert_eq!(rule.judge().reason, "zen and steam are not built in; it was late.");
        let mut rule = Rule::default();
        rule.larger("a", "b", None);
        assert_eq!(rule.judge().verdict, Verdict::CannotBeJudged);
        assert_eq!(Rule::default().judge(), Judgement::cannot("Nothing was measured."));
    }

    #[test]
    fn a_long_reason_is_cut() {
        let mut rule = Rule::default();
        for n in 0..5 {
            let found = format!("c{n}");
            rule.require(&found, &Spread::of(&[1.0]).unwrap(), |_| Outcome::Held, |_| found.clone());
        }
        assert_eq!(rule.judge().reason, "5 held: c0; c1; c2; and 2 more.");
    }
}
