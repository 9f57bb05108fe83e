use std::sync::atomic::AtomicBool;

use super::*;
use crate::claims;
use crate::engine::Ending;
use crate::measurement::Measurement;
use crate::numbers::{MOST, Outcome, Spread};

/// A runner that has everything, or everything except one collector.
struct Has(Option<&'static str>);

impl Runner for Has {
    fn missing(&self, run: &RunSpec) -> Option<String> {
        self.0.filter(|gc| run.gc == *gc).map(|gc| format!("{gc} is not built in"))
    }

    fn run(&self, _: &Step, _: &AtomicBool) -> Ending {
        unreachable!("plans run nothing")
    }
}

fn every_claim() -> Vec<&'static Claim> {
    claims::all().collect()
}

/// The cost of running everything once, computed independently.
fn once(plan: &Plan) -> f64 {
    plan.steps.iter().filter(|step| step.repetition == 1).map(|step| step.run.cost()).sum()
}

#[test]
fn quick_and_full_fit_their_time_with_every_collector() {
    for (size, fewest) in [(Size::quick(2), 1), (Size::full(2), FEWEST)] {
        assert_eq!(size.fewest, fewest);
        let plan = Plan::new(&every_claim(), &size, size.budget, &Has(None));
        assert!((once(&plan) - plan.estimate).abs() < 1e-6);
        let time = plan.least();
        assert!(time <= once(&plan) * fewest as f64);
        assert!(time <= size.budget * MARGIN, "{}: {time} s", size.name);
        assert_eq!(plan.size, size, "{} runs must not be shortened", size.name);
    }
    assert!(Size::quick(2).budget < 600.0 && Size::full(2).budget < 3.0 * 3600.0);
}

#[test]
fn a_small_budget_shortens_runs() {
    let claims = claims::named(&["TB-7a".into()]).unwrap();
    let quick = Size::quick(2);
    let needed: f64 = claims[0].runs(&quick).iter().map(RunSpec::cost).sum();
    let plan = Plan::new(&claims, &quick, needed, &Has(None));
    assert!(plan.size.pace.1 < quick.pace.1 && once(&plan) <= needed * MARGIN);
    // What does not fit at all is planned, and left out when time runs out.
    let tiny = Plan::new(&claims, &quick, 0.1, &Has(None));
    assert_eq!(tiny.steps.len(), plan.steps.len());
}

#[test]
fn runs_are_shortened_until_a_verdict_is_possible() {
    let full = Size::full(2);
    let plan = Plan::new(&every_claim(), &full, full.budget * 0.6, &Has(None));
    assert!(plan.size.pace.1 < full.pace.1 && plan.size.fewest == FEWEST);
    assert!(plan.least() <= full.budget * 0.6 * MARGIN);
}

#[test]
fn runs_that_claims_share_are_made_once() {
    let claims = claims::named(&["TB-7a".into(), "TB-7c".into()]).unwrap();
    let plan = Plan::new(&claims, &Size { repetitions: 1, ..Size::quick(2) }, 1e6, &Has(None));
    let keys: HashSet<_> = plan.steps.iter().map(|step| step.run.key()).collect();
    assert_eq!(keys.len(), plan.steps.len());
}

#[test]
fn repetitions_go_back_and_forth() {
    let claims = claims::named(&["TB-7a".into()]).unwrap();
    let plan = Plan::new(&claims, &Size::quick(2), 1e6, &Has(None));
    let round = |n| -> Vec<_> {
        plan.steps.iter().filter(|step| step.repetition == n).map(|step| step.run.gc).collect()
    };
    let mut back = round(2);
    back.reverse();
    assert_eq!((round(1), round(1)), (back, round(3)));
    let order: Vec<_> = plan.steps.iter().map(|step| step.repetition).collect();
    assert!(order.is_sorted());
    assert_eq!(order.last(), Some(&6));
}

#[test]
fn what_is_decided_is_not_repeated() {
    let claims = claims::named(&["TB-8a".into()]).unwrap();
    let plan = Plan::new(&claims, &Size::quick(2), 1e6, &Has(None));
    let mut results = Results::default();
    let fast = |run: &RunSpec| match run.gc {
        "none" => 1000.0,
        "tb-collect" => 900.0,
        _ => 500.0,
    };
    let add = |results: &mut Results, speed: &dyn Fn(&RunSpec, usize) -> f64| {
        for step in plan.steps.iter().filter(|step| step.repetition <= FEWEST) {
            let txn_per_s = speed(&step.run, step.repetition);
            let measurement = Measurement { txn_per_s, ..Measurement::default() };
            results.add(&step.run.key(), step.repetition, measurement);
        }
    };
    let needed = |results: &Results, repetition| {
        let mut gcs: Vec<_> = plan
            .steps
            .iter()
            .filter(|step| plan.needed(repetition, results).contains(&step.run.key()))
            .map(|step| step.run.gc)
            .collect();
        gcs.sort_unstable();
        gcs.dedup();
        gcs
    };
    add(&mut results, &|run, _| fast(run));
    for repetition in [1, FEWEST] {
        assert_eq!(needed(&results, repetition), ["n2db", "none", "one-shot", "steam", "tb-collect", "zen"]);
    }
    assert!(needed(&results, FEWEST + 1).is_empty());
    add(&mut results, &|run, repetition| match run.gc {
        "zen" => [700.0, 800.0, 900.0][repetition - 1],
        _ => fast(run),
    });
    assert_eq!(needed(&results, FEWEST + 1), ["tb-collect", "zen"]);
    // What more repetitions would hardly decide is not repeated.
    add(&mut results, &|run, repetition| match run.gc {
        "zen" => [800.0, 900.0, 1000.0][repetition - 1],
        _ => fast(run),
    });
    assert!(needed(&results, FEWEST + 1).is_empty());
    // What is refuted is looked at more often.
    add(&mut results, &|run, _| if run.gc == "zen" { 1000.0 } else { fast(run) });
    for repetition in FEWEST + 1..=REFUTED {
        assert_eq!(needed(&results, repetition), ["tb-collect", "zen"]);
    }
    assert!(needed(&results, REFUTED + 1).is_empty());
}

#[test]
fn every_condition_is_about_some_runs() {
    for size in [Size::quick(2), Size::full(2)] {
        for claim in claims::all() {
            let about = conditions(&[claim], &size);
            let runs: HashSet<_> = claim.runs(&size).iter().map(RunSpec::key).collect();
            assert!(about.is_empty() == runs.is_empty() && about.is_subset(&runs), "{}", claim.id);
        }
    }
    let half = conditions(&claims::named(&["TB-8a".into()]).unwrap(), &Size::full(2));
    assert_eq!(half.len(), 6, "with a thread on each core: {half:?}");
}

#[test]
fn what_is_not_built_in_is_not_planned() {
    let claims = claims::named(&["TB-7a".into()]).unwrap();
    let plan = Plan::new(&claims, &Size::quick(2), 1e6, &Has(Some("zen")));
    assert!(plan.steps.iter().all(|step| step.run.gc != "zen"));
    assert_eq!(plan.missing.len(), 1);
    assert!(plan.missing.values().all(|why| why == "zen is not built in"));
}

/// How a condition that the quotient of two runs is above 1 ends, if the true one is `truth` and repetitions vary
/// by `deviation`: looked at after the third and each further repetition, as long as these are made.
fn ending(truth: f64, deviation: f64, normal: &mut impl FnMut() -> f64) -> Outcome {
    let mut quotients: Vec<f64> = Vec::new();
    loop {
        quotients.push(truth * (deviation * normal()).exp());
        let count = quotients.len();
        let spread = Spread::of(&quotients).expect("numbers");
        let decide = |spread: &Spread| if spread.is_tie() { Outcome::Refuted } else { spread.is_above(1.0) };
        let outcome = decide(&spread);
        let goes_on = match outcome {
            Outcome::Held => false,
            Outcome::Refuted => count < REFUTED,
            Outcome::Undecided => {
                count < FEWEST || count < MOST && decide(&spread.at_best(MOST)) != Outcome::Undecided
            }
        };
        if !goes_on {
            return outcome;
        }
    }
}

/// The figures of docs/experiments.md, "Verdicts", come of this.
#[test]
fn verdicts_err_as_seldom_as_documented() {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    };
    // Box and Muller.
    let mut normal = move || (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
    const TIMES: usize = 20_000;
    let mut rates = |truth: f64, deviation: f64| {
        let mut count = [0; 2];
        for _ in 0..TIMES {
            match ending(truth, deviation, &mut normal) {
                Outcome::Held => count[0] += 1,
                Outcome::Refuted => count[1] += 1,
                Outcome::Undecided => {}
            }
        }
        count.map(|n| n as f64 / TIMES as f64)
    };
    let [held, refuted] = rates(1.0, 0.05);
    println!("at the border: held {held:.3}, refuted {refuted:.3}");
    assert!((0.05..0.1).contains(&held) && (0.03..0.06).contains(&refuted), "{held} {refuted}");
    for (truth, deviation, most) in [(1.03, 0.05, 0.03), (1.03, 0.07, 0.08), (1.05, 0.07, 0.02)] {
        let [_, refuted] = rates(truth, deviation);
        let of_sixteen = 1.0 - (1.0 - refuted).powi(16);
        println!("true by {truth}, varying by {deviation}: one of 16 refuted in {of_sixteen:.4}");
        assert!(of_sixteen < most, "{truth} {deviation}: {of_sixteen}");
    }
}
