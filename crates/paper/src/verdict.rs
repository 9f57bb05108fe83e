//! Verdicts, and the rules by which they are reached.
//!
//! A rule is a list of conditions taken from the published text. A claim holds
//! if all of them are met. A condition that is met only within noise is not
//! met: a tie is not a win.

use serde::Serialize;

use crate::numbers::{Side, Spread, times};

/// The verdict on a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub enum Verdict {
    /// Every condition of its rule is met.
    #[serde(rename = "holds")]
    Holds,
    /// At least one condition is not met.
    #[serde(rename = "does not hold")]
    DoesNotHold,
    /// The machine, the engine or the measurements do not permit a verdict.
    #[serde(rename = "cannot be judged here")]
    CannotBeJudged,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::DoesNotHold => "does not hold",
            Verdict::CannotBeJudged => "cannot be judged here",
        }
    }
}

/// A verdict and its reason, as a sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// Why.
    pub reason: String,
}

impl Judgement {
    /// A judgement that the claim cannot be judged, for this reason.
    pub fn cannot(reason: impl Into<String>) -> Self {
        Self { verdict: Verdict::CannotBeJudged, reason: reason.into() }
    }
}

/// Most conditions that a reason lists one by one.
const MOST_TOLD: usize = 3;

/// The conditions examined so far.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    met: Vec<String>,
    unmet: Vec<String>,
    missing: Vec<String>,
    /// Required collectors that are not built in.
    absent: Vec<&'static str>,
    /// Missing measurements; mentioned only if nothing else explains why they
    /// are missing.
    without_figures: Vec<String>,
}

impl Rule {
    /// Adds a condition, and what was found.
    pub fn require(&mut self, is_met: bool, found: impl Into<String>) {
        if is_met { self.met.push(found.into()) } else { self.unmet.push(found.into()) }
    }

    /// Adds something whose absence prevents a verdict.
    pub fn lack(&mut self, what: impl Into<String>) {
        let what = what.into();
        if !self.missing.contains(&what) {
            self.missing.push(what);
        }
    }

    /// Adds a required collector that is not built in.
    pub fn absent(&mut self, collector: &'static str) {
        if !self.absent.contains(&collector) {
            self.absent.push(collector);
        }
    }

    /// Requires that `what` is larger: it is `by` times as large in each
    /// repetition.
    pub fn larger(&mut self, what: &str, than: &str, by: Option<Spread>) {
        self.differs(what, than, by, Side::Above);
    }

    /// Requires that `what` is smaller: it is `by` times as large in each
    /// repetition.
    pub fn smaller(&mut self, what: &str, than: &str, by: Option<Spread>) {
        self.differs(what, than, by, Side::Below);
    }

    fn differs(&mut self, what: &str, than: &str, by: Option<Spread>, wanted: Side) {
        let Some(by) = by else {
            return self.without_figures.push(format!("there are no measurements of {what} and {than}"));
        };
        let side = by.side_of(1.0);
        let mut found = format!("{what} is {} {than}", times(by.median));
        if side == Side::Within {
            let (low, high) = (times(by.low), times(by.high));
            found += &format!(" ({low} to {high}), within noise: a tie is not a win");
        }
        self.require(side == wanted, found);
    }

    /// Requires that `what` lies between these two values, or that its spread
    /// overlaps them.
    pub fn between(&mut self, what: &str, found: Option<Spread>, (low, high): (f64, f64)) {
        let Some(found) = found else {
            return self.without_figures.push(format!("there are no measurements of {what}"));
        };
        let inside = found.side_of(low) != Side::Below && found.side_of(high) != Side::Above;
        let relation = if inside { "between" } else { "not between" };
        self.require(
            inside,
            format!("{what} is {}, {relation} {} and {}", times(found.median), times(low), times(high)),
        );
    }

    /// The verdict.
    pub fn judge(self) -> Judgement {
        let absent = match self.absent.as_slice() {
            [] => None,
            [one] => Some(format!("{one} is not built in")),
            [many @ .., last] => Some(format!("{} and {last} are not built in", many.join(", "))),
        };
        let missing: Vec<_> = absent.into_iter().chain(self.missing).collect();
        if !missing.is_empty() {
            return Judgement::cannot(sentence(&missing));
        }
        if !self.without_figures.is_empty() {
            return Judgement::cannot(sentence(&self.without_figures));
        }
        let (verdict, told) = match (self.unmet.is_empty(), self.met.is_empty()) {
            (true, true) => return Judgement::cannot("Nothing was measured."),
            (true, false) => (Verdict::Holds, &self.met),
            (false, _) => (Verdict::DoesNotHold, &self.unmet),
        };
        Judgement { verdict, reason: sentence(told) }
    }
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
    fn a_rule_holds_if_every_condition_is_met() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[1.2, 1.3, 1.25]));
        rule.smaller("c", "b", spread(&[0.5]));
        rule.between("d", spread(&[0.92]), (0.7, 0.9));
        let judgement = rule.judge();
        assert_eq!(judgement.verdict, Verdict::Holds);
        assert_eq!(judgement.reason, "a is 1.25x b; c is 0.50x b; d is 0.92x, between 0.70x and 0.90x.");
    }

    #[test]
    fn one_condition_that_is_not_met_is_enough() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[1.2, 1.3, 1.25]));
        rule.larger("a", "c", spread(&[0.8, 0.9, 0.7]));
        let judgement = rule.judge();
        assert_eq!(judgement.verdict, Verdict::DoesNotHold);
        assert_eq!(judgement.reason, "a is 0.80x c.");
        let mut outside = Rule::default();
        outside.between("d", spread(&[0.2]), (0.7, 0.9));
        assert_eq!(outside.judge().verdict, Verdict::DoesNotHold);
    }

    #[test]
    fn a_tie_is_not_a_win() {
        for tie in [&[0.99, 1.2, 1.3][..], &[1.02]] {
            let mut rule = Rule::default();
            rule.larger("a", "b", spread(tie));
            let judgement = rule.judge();
            assert_eq!(judgement.verdict, Verdict::DoesNotHold);
            assert!(judgement.reason.contains("a tie is not a win"), "{}", judgement.reason);
        }
        let mut rule = Rule::default();
        rule.smaller("a", "b", spread(&[0.98]));
        assert_eq!(rule.judge().verdict, Verdict::DoesNotHold);
    }

    #[test]
    fn what_is_missing_comes_first() {
        let mut rule = Rule::default();
        rule.larger("a", "b", spread(&[0.1]));
        rule.absent("zen");
        rule.absent("zen");
        rule.larger("a", "zen", None);
        let judgement = rule.clone().judge();
        assert_eq!(judgement, Judgement::cannot("zen is not built in."));
        rule.absent("steam");
        rule.lack("it was late");
        let judgement = rule.judge();
        assert_eq!(judgement, Judgement::cannot("zen and steam are not built in; it was late."));
        let mut rule = Rule::default();
        rule.larger("a", "b", None);
        assert_eq!(rule.judge().verdict, Verdict::CannotBeJudged);
        assert_eq!(Rule::default().judge().verdict, Verdict::CannotBeJudged);
    }

    #[test]
    fn a_long_reason_is_cut() {
        let mut rule = Rule::default();
        for n in 0..5 {
            rule.require(true, format!("c{n}"));
        }
        assert_eq!(rule.judge().reason, "c0; c1; c2; and 2 more.");
    }
}
