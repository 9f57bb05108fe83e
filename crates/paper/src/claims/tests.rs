use std::collections::HashSet;

use super::*;
use crate::measurement::{Device, KindSummary, Measurement, Second};
use crate::numbers::Outcome;
use crate::results::Results;
use crate::size::Size;
use crate::spec::RunSpec;
use crate::verdict::{Judgement, Part, Verdict};
use crate::workload::Work;
use pantile_bench::settings::NEVER;
use pantile_bench::ycsb::Beside;

/// Rows of the published results.
const ROWS: [&str; 30] = [
    "TB-1",
    "TB-7a",
    "TB-7b",
    "TB-7c",
    "TB-8a",
    "TB-8b",
    "TB-8c",
    "TB-9",
    "TB-10",
    "TB-11",
    "TB-12",
    "TB-13",
    "TB-14",
    "TB-15",
    "TB-16",
    "ST-2/7",
    "ST-8",
    "ST-9",
    "ST-10",
    "ST-11",
    "ST-12",
    "ST-T5",
    "ZN-8/9/10",
    "ZN-17",
    "ZN-20",
    "ZN-22",
    "ZN-23",
    "ZN-24/25/26",
    "ZN-27/31",
    "SI-1",
];

fn claim(name: &str) -> &'static Claim {
    named(&[name.to_owned()]).expect("the claim exists")[0]
}

fn size() -> Size {
    // Quick, but for what such runs are too short for.
    Size { settles: true, zen_tuples: 200_000, ..Size::quick(2) }
}

/// A measurement in which every value follows from a speed.
fn at(speed: f64) -> Measurement {
    let second = |n: u64| Second {
        seconds: 1.0,
        transactions: speed as u64,
        medium_bytes: (n as f64 * 1e9 / speed) as u64,
        ..Second::default()
    };
    let kind = KindSummary { per_s: speed, mean: 1e6 / speed, p95: 2e6 / speed, p99: 3e6 / speed };
    let kinds = ["new_order", "payment", "table_scan"].map(|name| (name.to_owned(), kind));
    Measurement {
        txn_per_s: speed,
        kinds: kinds.into(),
        transactions: 300_000,
        bytes_written: 1e9 / speed,
        chain_mean: 2.0,
        stored_mean: 2.0,
        chain_max: 5,
        blocks_bypassed: 1,
        tuples: 100_000,
        versions_traversed: 1000,
        accesses_per_tuple: 1.0,
        queries_per_s: Some(speed / 1e3),
        recovered_bytes: Some(1_000_000_000),
        recovery_seconds: Some(0.5),
        seconds: (0..4).map(second).collect(),
        device: Some(Device { seconds_32: 1e3 / speed, ..Device::default() }),
        ..Measurement::default()
    }
}

/// The same, with the versions that pile up where nothing is reclaimed.
fn of_run(run: &RunSpec, speed: f64) -> Measurement {
    let stored_mean = if run.gc == "none" { 4.0 } else { 2.0 };
    Measurement { stored_mean, ..at(speed) }
}

/// Repetitions enough of every run of a claim, at the speed given for each.
fn measured(claim: &Claim, speed: impl Fn(&RunSpec) -> f64) -> Results {
    let mut results = Results::default();
    for run in claim.runs(&size()) {
        for (repetition, drift) in [1.0, 1.1, 0.9].into_iter().enumerate() {
            results.add(&run.key(), repetition + 1, of_run(&run, speed(&run) * drift));
        }
    }
    results
}

fn verdict(name: &str, speed: impl Fn(&RunSpec) -> f64) -> Judgement {
    let claim = claim(name);
    claim.judge(&measured(claim, speed), &size()).judgement
}

/// The published speeds of the collectors of figure 7a.
fn as_published(run: &RunSpec) -> f64 {
    match run.gc {
        "none" => 1000.0,
        "tb-collect" => 910.0,
        "zen" => 750.0,
        "one-shot" => 690.0,
        "n2db" => 670.0,
        _ => 640.0,
    }
}

#[test]
fn every_row_is_a_claim_and_every_claim_a_row() {
    let ids: Vec<_> = all().map(|claim| claim.id).collect();
    assert_eq!(ids, ROWS);
    for claim in all() {
        for text in [claim.title, claim.source, claim.text, claim.published, claim.rule] {
            assert!(!text.is_empty(), "{}", claim.id);
        }
        assert!(claim.rule.ends_with('.') && claim.text.ends_with('.'), "{}", claim.id);
    }
}

#[test]
fn names_are_found_in_either_case_and_one_by_one() {
    assert_eq!(claim("tb-7A").id, "TB-7a");
    assert_eq!(claim("ZN-25").id, "ZN-24/25/26");
    assert_eq!(claim("st-2").id, "ST-2/7");
    assert_eq!(claim("ZN-24/25/26").id, "ZN-24/25/26");
    let two = named(&["SI-1".into(), "TB-1".into()]).unwrap();
    assert_eq!(two.iter().map(|claim| claim.id).collect::<Vec<_>>(), ["TB-1", "SI-1"]);
    let error = named(&["TB-7".into()]).unwrap_err().to_string();
    assert!(error.contains("no claim \"TB-7\"") && error.contains("--list"), "{error}");
    assert_eq!(named(&[]).unwrap().len(), ROWS.len());
}

#[test]
fn every_run_and_every_run_of_a_cause_can_be_made() {
    for size in [Size::quick(2), Size::full(2)] {
        let runs = all().flat_map(|claim| [claim.runs(&size), claim.runs_of_causes(&size)].concat());
        // Others are made by programs of their own.
        for run in runs.filter(|run| run.flash.is_none() && run.recovery.is_none()) {
            run.settings(1).unwrap_or_else(|why| panic!("{}: {why}", run.key()));
        }
    }
}

#[test]
fn claims_share_their_runs() {
    let keys = |name| -> HashSet<String> { claim(name).runs(&size()).iter().map(RunSpec::key).collect() };
    assert_eq!(
        keys("TB-7c"),
        keys("TB-7a").union(&keys("TB-12")).cloned().collect(),
        "as fast as can be, and at one rate"
    );
    assert!(keys("TB-7a").is_subset(&keys("TB-7b")));
    assert!(!keys("TB-1").is_disjoint(&keys("ST-8")), "the survey was made in DRAM");
    assert!(keys("TB-7a").is_disjoint(&keys("ST-8")));
    assert_eq!(keys("TB-8c").intersection(&keys("TB-8a")).count(), 6);
}

#[test]
fn no_measurement_gives_no_verdict() {
    for claim in all() {
        let finding = claim.judge(&Results::default(), &size());
        assert_eq!(finding.judgement.verdict, Verdict::CannotBeJudged, "{}", claim.id);
        assert!(finding.judgement.reason.ends_with('.') && finding.figures.is_empty(), "{}", claim.id);
    }
}

#[test]
fn what_is_not_built_in_is_the_reason() {
    let claim = claim("TB-7a");
    let mut results = measured(claim, as_published);
    let zen = claim.runs(&size()).into_iter().find(|run| run.gc == "zen").unwrap();
    let mut without = Results::default();
    for run in claim.runs(&size()).iter().filter(|run| run.gc != "zen") {
        without.add(&run.key(), 1, of_run(run, as_published(run)));
    }
    without.miss(&zen.key(), "zen is not built in".into());
    let finding = claim.judge(&without, &size());
    assert_eq!(finding.judgement.verdict, Verdict::CannotBeJudged);
    assert_eq!(finding.judgement.reason, "zen is not built in.");
    assert!(!finding.figures.is_empty());
    results.miss(&zen.key(), "not this".into());
    assert_eq!(claim.judge(&results, &size()).judgement.verdict, Verdict::Holds);
}

#[test]
fn throughput_as_published_holds_and_otherwise_does_not() {
    for name in ["TB-7a", "TB-7c", "TB-8a"] {
        assert_eq!(verdict(name, as_published).verdict, Verdict::Holds, "{name}");
        let slow = |run: &RunSpec| if run.gc == "tb-collect" { 600.0 } else { as_published(run) };
        assert_eq!(verdict(name, slow).verdict, Verdict::DoesNotHold, "{name}");
    }
    // Nor is the order: what is kept of NoGC's throughput counts as well.
    let all_slow = |run: &RunSpec| as_published(run) * if run.gc == "none" { 1.0 } else { 0.8 };
    for name in ["TB-7a", "TB-8a"] {
        let judgement = verdict(name, all_slow);
        assert_eq!(judgement.verdict, Verdict::DoesNotHold, "{name}");
        assert!(judgement.reason.contains("against NoGC's is 0.73x"), "{}", judgement.reason);
    }
    // The best collector alone is not enough: the order counts too.
    let swapped = |run: &RunSpec| if run.gc == "zen" { 600.0 } else { as_published(run) };
    let judgement = verdict("TB-7a", swapped);
    assert_eq!(judgement.verdict, Verdict::DoesNotHold);
    assert!(judgement.reason.contains("zen is 0.87x (0.87x to 0.87x) one-shot"), "{}", judgement.reason);
}

#[test]
fn what_noise_hides_is_undecided() {
    let claim = claim("TB-8a");
    let mut results = measured(claim, as_published);
    for run in claim.runs(&size()).iter().filter(|run| run.gc == "zen") {
        for (repetition, speed) in [880.0, 1010.0, 850.0].into_iter().enumerate() {
            results.add(&run.key(), repetition + 1, at(speed));
        }
    }
    let judgement = claim.judge(&results, &size()).judgement;
    assert_eq!(judgement.verdict, Verdict::Undecided);
    assert!(judgement.reason.starts_with("4 held, 1 undecided: tb-collect is "), "{}", judgement.reason);
}

#[test]
fn a_collector_that_has_hardly_begun_cannot_be_judged() {
    let claim = claim("TB-7a");
    let judged = |stored_mean: f64, blocks_reclaimed: Option<u64>| {
        let mut results = measured(claim, as_published);
        for run in claim.runs(&size()).iter().filter(|run| run.gc == "tb-collect") {
            let measurement = Measurement { stored_mean, blocks_reclaimed, ..at(910.0) };
            (1..=3).for_each(|repetition| results.add(&run.key(), repetition, measurement.clone()));
        }
        claim.judge(&results, &size()).judgement
    };
    for (stored_mean, blocks_reclaimed) in [(3.5, None), (2.0, Some(0))] {
        let judgement = judged(stored_mean, blocks_reclaimed);
        assert_eq!(judgement.verdict, Verdict::CannotBeJudged);
        assert!(judgement.reason.contains("hardly begun to collect"), "{}", judgement.reason);
    }
    for blocks_reclaimed in [None, Some(5)] {
        assert!(!judged(2.9, blocks_reclaimed).reason.contains("hardly begun"));
    }
}

#[test]
fn quick_runs_say_what_they_are_too_short_for() {
    for name in ["TB-12", "TB-13", "TB-14", "TB-16"] {
        let claim = claim(name);
        let judgement = claim.judge(&measured(claim, as_published), &Size::quick(2)).judgement;
        assert_eq!(judgement.verdict, Verdict::CannotBeJudged, "{name}");
        assert!(judgement.reason.contains("these runs are shorter"), "{}", judgement.reason);
    }
}

#[test]
fn media_are_compared_by_their_shares() {
    let dearer = |run: &RunSpec| match (run.gc, run.medium) {
        ("none", _) => 1000.0,
        (_, "dram") => 850.0,
        _ => 600.0,
    };
    assert_eq!(verdict("TB-1", dearer).verdict, Verdict::Holds);
    let alike = |run: &RunSpec| if run.gc == "none" { 1000.0 } else { 850.0 };
    assert_eq!(verdict("TB-1", alike).verdict, Verdict::DoesNotHold, "a tie is not a win");
}

#[test]
fn threads_past_the_cores_are_only_drawn() {
    let scaled = |run: &RunSpec| as_published(run) * if run.threads == 1 { 0.6 } else { 1.0 };
    let judgement = verdict("TB-7b", scaled);
    assert_eq!((judgement.verdict, judgement.count(Outcome::Held)), (Verdict::CannotBeJudged, 2));
    assert!(judgement.reason.contains("past the cores"), "{}", judgement.reason);
    assert_eq!(verdict("TB-7b", as_published).verdict, Verdict::DoesNotHold);
}

#[test]
fn updates_only_lie_between() {
    let alike = |run: &RunSpec| match run.gc {
        "none" => 1000.0,
        "one-shot" => 600.0,
        _ => 800.0,
    };
    assert_eq!(verdict("TB-8b", alike).verdict, Verdict::Holds);
    let free = |run: &RunSpec| if run.gc == "one-shot" { 600.0 } else { 1000.0 };
    assert!(verdict("TB-8b", free).reason.contains("not between"));
}

#[test]
fn a_rate_that_is_not_reached_cannot_be_judged() {
    let judgement = verdict("TB-12", |run| if run.gc == "steam" { 100.0 } else { 4000.0 });
    assert_eq!(judgement.verdict, Verdict::CannotBeJudged);
    assert!(judgement.reason.contains("steam reached only 100 of 4,000 txn/s"), "{}", judgement.reason);
    // In these measurements, growth follows from the speed.
    let smaller = |run: &RunSpec| if run.gc == "tb-collect" { 8000.0 } else { 5000.0 };
    assert_eq!(verdict("TB-12", smaller).verdict, Verdict::Holds);
    let larger = |run: &RunSpec| if run.gc == "tb-collect" { 5000.0 } else { 8000.0 };
    assert_eq!(verdict("TB-12", larger).verdict, Verdict::DoesNotHold);
}

/// A measurement at this rate in which space grows by some megabytes.
fn growing(run: &RunSpec, megabytes: i64) -> Measurement {
    let second = |medium_bytes| Second { seconds: 1.0, medium_bytes, ..Second::default() };
    let last = (100_000_000 + megabytes * 1_000_000).cast_unsigned();
    Measurement { seconds: vec![second(100_000_000), second(last)], ..of_run(run, 5000.0) }
}

#[test]
fn what_does_not_grow_grows_least() {
    let claim = claim("TB-12");
    for least in [-50, 0] {
        let mut results = Results::default();
        for run in claim.runs(&size()) {
            let measurement = growing(&run, if run.gc == "tb-collect" { least } else { 20 });
            (1..=3).for_each(|repetition| results.add(&run.key(), repetition, measurement.clone()));
        }
        assert_eq!(claim.judge(&results, &size()).judgement.verdict, Verdict::Holds, "{least} MB");
    }
}

#[test]
fn accesses_of_a_second_are_counted_as_those_of_a_run() {
    let claim = claim("TB-14");
    let mut results = Results::default();
    let runs = claim.runs(&size());
    // 100,000 tuples, and ten of twenty operations update.
    for run in &runs {
        let second = Second {
            seconds: 1.0,
            transactions: 10_000,
            stored_mean: Some(1.5),
            accesses_per_tuple: Some(2.0),
            survivors_relocated: 50_000,
            ..Second::default()
        };
        let short = Second { seconds: 0.1, ..second };
        results.add(
            &run.key(),
            1,
            Measurement { seconds: vec![second, second, short], ..of_run(run, 5000.0) },
        );
    }
    let figures = claim.judge(&results, &size()).figures;
    for (title, value) in
        [("Versions that take space, over time", 1.5), ("Accesses per tuple, over time", 3.5)]
    {
        let figure = figures.iter().find(|figure| figure.title == title).expect("a figure");
        assert_eq!(figure.series.len(), runs.len());
        let points: Vec<_> = figure.series[0].points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(1.0, value), (2.0, value)]);
    }
}

#[test]
fn frequency_needs_its_factor() {
    let wild = |run: &RunSpec| if run.period > Some(1000.0) { 10.0 } else { 10_000.0 };
    let claim = claim("ST-10");
    let long = Size { tpcc_pace: (1.0, 600.0), ..size() };
    let judged = |size: &Size, speed: &dyn Fn(&RunSpec) -> f64| {
        let mut results = Results::default();
        for run in claim.runs(size) {
            (1..=3).for_each(|repetition| results.add(&run.key(), repetition, at(speed(&run))));
        }
        claim.judge(&results, size).judgement
    };
    assert_eq!(judged(&long, &wild).verdict, Verdict::Holds);
    assert_eq!(judged(&long, &|_| 1000.0).verdict, Verdict::DoesNotHold);
    let judgement = judged(&size(), &wild);
    assert_eq!(judgement.verdict, Verdict::CannotBeJudged, "less than a period");
    assert!(judgement.reason.contains("less than one of 10 s"), "{}", judgement.reason);
}

#[test]
fn long_transactions_may_cost_so_much_and_must_commit() {
    let beside = |run: &RunSpec| matches!(run.work, Work::Zen { beside: Some(_), .. });
    let updates = |run: &RunSpec| matches!(run.work, Work::Zen { beside: Some(Beside::Updates(_)), .. });
    let as_published = |run: &RunSpec| match (beside(run), updates(run)) {
        (false, _) => 1000.0,
        (true, false) => 890.0,
        (true, true) => 500.0,
    };
    assert_eq!(verdict("ZN-24", as_published).verdict, Verdict::Holds);
    let slow = |run: &RunSpec| if beside(run) { 500.0 } else { 1000.0 };
    let judgement = verdict("ZN-24", slow);
    assert_eq!(judgement.verdict, Verdict::DoesNotHold);
    assert!(judgement.reason.contains("beside long scans"), "{}", judgement.reason);
    let claim = claim("ZN-24");
    let mut results = measured(claim, as_published);
    let mut none_ended = at(500.0);
    none_ended.queries_per_s = Some(0.0);
    for run in claim.runs(&size()).iter().filter(|run| updates(run)) {
        (1..=3).for_each(|repetition| results.add(&run.key(), repetition, none_ended.clone()));
    }
    let judgement = claim.judge(&results, &size()).judgement;
    assert_eq!((judgement.verdict, judgement.count(Outcome::Held)), (Verdict::CannotBeJudged, 1));
}

#[test]
fn long_updates_and_their_threshold_scale_with_the_data() {
    let runs = claim("ZN-24").runs(&Size::full(2));
    let [alone, scans, fewer_alone, updates, largest] = &runs[..] else { panic!("{} runs", runs.len()) };
    let tuples_and_beside = |run: &RunSpec| match run.work {
        Work::Zen { tuples, beside, .. } => (tuples, beside),
        other => panic!("{other:?}"),
    };
    assert_eq!(tuples_and_beside(alone), (2_000_000, None));
    assert_eq!(tuples_and_beside(scans), (2_000_000, Some(Beside::Scans(1_000_000))));
    // The run alone has none of the tuples that are updated beside it.
    assert_eq!(tuples_and_beside(fewer_alone), (2_000_000 - 15_625, None));
    assert_eq!(tuples_and_beside(updates), (2_000_000, Some(Beside::Updates(15_625))));
    assert_eq!(updates.wasted, Some(8 * 15_625));
    assert!([alone, scans, fewer_alone].iter().all(|run| run.wasted.is_none()));
    let settings = updates.settings(1).expect("settings");
    assert_eq!((settings.stage.wasted, settings.stage.tries, settings.writers_move), (125_000, NEVER, false));
    assert!(updates.key().ends_with(" --writers-stay --exclusive-wasted 125000"), "{}", updates.key());
    // The largest exceed what one may access, and the others do not.
    assert_eq!(tuples_and_beside(largest), (2_000_000, Some(Beside::Updates(62_500))));
    assert_eq!(largest.settings(1).expect("settings").stage.accessed, 29_687);
}

#[test]
fn throughput_beside_long_transactions_is_drawn_by_the_second() {
    let claim = claim("ZN-24");
    let finding = claim.judge(&measured(claim, |_| 1000.0), &size());
    for name in ["scans", "updates"] {
        let title = format!("YCSB beside long {name}, over time");
        let figure = finding.figures.iter().find(|figure| figure.title == title).expect("a figure");
        let names: Vec<_> = figure.series.iter().map(|series| &*series.name).collect();
        assert_eq!(names, ["alone", "beside"]);
        for series in &figure.series {
            let points: Vec<_> = series.points.iter().map(|point| (point.x, point.y)).collect();
            assert_eq!(points, [(1.0, 900.0), (2.0, 900.0), (3.0, 900.0), (4.0, 900.0)]);
        }
    }
}

#[test]
fn designs_are_compared_one_by_one() {
    let on = |run: &RunSpec, design: &str| run.medium.contains(&format!("+{design}:"));
    let published = |run: &RunSpec| if on(run, "zen") { 1000.0 } else { 600.0 };
    let equal_to_one = |run: &RunSpec| if on(run, "mmdb") { 1000.0 } else { published(run) };
    // Faster, by less than published.
    let little = |run: &RunSpec| if on(run, "mmdb") { 900.0 } else { published(run) };
    let one_is_faster = |run: &RunSpec| if on(run, "foedus") { 1100.0 } else { published(run) };
    for name in ["ZN-8", "ZN-20"] {
        assert_eq!(verdict(name, published).verdict, Verdict::Holds, "{name}");
        for speed in [&one_is_faster as &dyn Fn(&RunSpec) -> f64, &equal_to_one, &little] {
            assert_eq!(verdict(name, speed).verdict, Verdict::DoesNotHold, "{name}");
        }
    }
    let judgement = verdict("ZN-20", one_is_faster);
    assert!(judgement.reason.contains("1:4: zen is 0.91x (0.91x to 0.91x) foedus"), "{}", judgement.reason);
    let full = claim("ZN-8").runs(&Size::full(2));
    let keys: HashSet<_> = full.iter().map(RunSpec::key).collect();
    assert_eq!((keys.len(), full.len()), (72, 72), "six mixes and skews, three ratios, four designs");
}

#[test]
fn a_ratio_is_judged_where_a_factor_was_published_for_it() {
    let full = Size::full(2);
    let parts = |name: &str| claim(name).with_every_figure(&full).parts;
    let at_eight = |part: &&Part| part.about.starts_with("1:8");
    assert_eq!(parts("ZN-20").iter().filter(at_eight).count(), 3);
    assert_eq!(parts("ZN-8").iter().filter(at_eight).count(), 0);
    assert_eq!(parts("ZN-8").len(), 36, "six mixes and skews, two ratios, three others");
    let zen = claim("ZN-8");
    let mut results = Results::default();
    zen.runs(&full).iter().for_each(|run| results.add(&run.key(), 1, at(1000.0)));
    let figures = zen.judge(&results, &full).figures;
    let drawn = figures.iter().filter(|figure| figure.title.contains("memory 8 times DRAM"));
    assert_eq!(drawn.map(|figure| figure.series.len()).collect::<Vec<_>>(), [4, 4]);
}

/// The judgement of ZN-27 with three repetitions at these speeds.
fn on_nodes(size: &Size, speed: impl Fn(&RunSpec) -> f64) -> Judgement {
    let claim = claim("ZN-27");
    let mut results = Results::default();
    for run in claim.runs(size) {
        (1..=3).for_each(|repetition| results.add(&run.key(), repetition, at(speed(&run))));
    }
    claim.judge(&results, size).judgement
}

#[test]
fn nodes_are_compared_as_published() {
    let full = Size::full(2);
    let on = |run: &RunSpec, nodes: &str| run.medium.contains(&format!("+nodes:{nodes}:"));
    let published = |run: &RunSpec| match run {
        _ if on(run, "remote") => 400.0,
        _ if on(run, "naive") => 600.0,
        _ if run.by_partition => 950.0,
        _ => 1000.0,
    };
    assert_eq!(on_nodes(&full, published).verdict, Verdict::Holds);
    assert_eq!(on_nodes(&Size::quick(2), published).verdict, Verdict::CannotBeJudged, "one warehouse");
    let blind = |run: &RunSpec| if run.by_partition { 600.0 } else { published(run) };
    let judgement = on_nodes(&full, blind);
    assert_eq!(
        (judgement.verdict, judgement.count(Outcome::Refuted)),
        (Verdict::DoesNotHold, 4),
        "{}",
        judgement.reason
    );
    assert!(
        judgement.parts.iter().any(|part| part.found.contains("TPC-C: soft is 0.60x (0.60x to 0.60x) local"))
    );
    let all_remote = |run: &RunSpec| if on(run, "naive") { 400.0 } else { published(run) };
    assert_eq!(on_nodes(&full, all_remote).verdict, Verdict::DoesNotHold);
    let runs = claim("ZN-31").runs(&full);
    let keys: HashSet<_> = runs.iter().map(RunSpec::key).collect();
    assert_eq!((keys.len(), runs.len()), (12, 12), "two mixes and TPC-C, four designs");
    assert!(runs.iter().all(|run| run.by_partition == on(run, "local-writes")));
}

/// The model takes what is waited for on local memory as much longer as remote memory costs.
#[test]
fn the_model_of_two_nodes_follows_from_local_memory() {
    let size = Size::full(2);
    let claim = claim("ZN-27");
    let mut results = Results::default();
    for run in claim.runs(&size).iter().filter(|run| run.medium.contains("+nodes:local:")) {
        let mut measurement = at(1000.0);
        // Two threads that wait for reads a quarter of the time, and for writes another one.
        (measurement.costs.io.read_wait, measurement.costs.io.write_wait) = (0.0005, 0.0005);
        (1..=3).for_each(|repetition| results.add(&run.key(), repetition, measurement.clone()));
    }
    let figures = claim.judge(&results, &size).figures;
    let model = figures.iter().find(|figure| figure.is_foretold()).expect("a model");
    let last = |name: &str| {
        let series = model.series.iter().find(|series| series.name == name).expect("a series");
        series.points.last().expect("TPC-C is last").y
    };
    let expected = [
        ("local", 1000.0),
        ("remote", 2.0 / (0.002 + 1.5 * 0.001)),
        ("naive", 2.0 / (0.002 + 1.5 * 0.0005)),
        ("soft", 2.0 / (0.002 + 1.5 * 0.01 * 0.0005)),
    ];
    for (name, expected) in expected {
        assert!((last(name) - expected).abs() < 0.01, "{name}: {}", last(name));
    }
}

#[test]
fn an_allocator_that_persists_costs_only_what_writes() {
    let reads_only = |run: &RunSpec| matches!(run.work, Work::Zen { updates: 0, .. });
    let is_naive = |run: &RunSpec| run.medium.contains("+zen-naive:");
    let published = |run: &RunSpec| if is_naive(run) && !reads_only(run) { 700.0 } else { 1000.0 };
    assert_eq!(verdict("ZN-17", published).verdict, Verdict::Holds);
    let little = |run: &RunSpec| if is_naive(run) && !reads_only(run) { 800.0 } else { 1000.0 };
    let judgement = verdict("ZN-17", little);
    assert_eq!(judgement.verdict, Verdict::DoesNotHold, "less than published");
    assert!(judgement.reason.contains("50 % updates, skew 0: zen is 1.25x"), "{}", judgement.reason);
    let always = |run: &RunSpec| if is_naive(run) { 700.0 } else { 1000.0 };
    assert_eq!(verdict("ZN-17", always).verdict, Verdict::DoesNotHold, "reads allocate nothing");
    let full = claim("ZN-17").runs(&Size::full(2));
    let zen = claim("ZN-8").runs(&Size::full(2));
    assert_eq!(
        (full.len(), full.iter().filter(|run| zen.contains(run)).count()),
        (12, 6),
        "zen runs once for both"
    );
}

#[test]
fn ten_protocols_can_fail_on_each_design() {
    let faster = |run: &RunSpec| if run.medium.contains("+zen:") { 1000.0 } else { 700.0 };
    let judgement = verdict("ZN-23", faster);
    assert_eq!(judgement.verdict, Verdict::CannotBeJudged, "runs of this size leave some out");
    assert_eq!(judgement.count(Outcome::Held), size().protocols.len() + 1);
    let stuck = |run: &RunSpec| if run.protocol == Some("silo") { 0.0 } else { faster(run) };
    let judgement = verdict("ZN-23", stuck);
    assert_eq!(judgement.verdict, Verdict::CannotBeJudged);
    assert!(judgement.reason.contains("silo commits nothing"), "{}", judgement.reason);
    assert_eq!(verdict("ZN-23", |run| 1.0 / faster(run)).verdict, Verdict::DoesNotHold);
    let full = Size::full(2);
    let claim = claim("ZN-23");
    let mut results = Results::default();
    for run in claim.runs(&full) {
        (1..=3).for_each(|repetition| results.add(&run.key(), repetition, at(faster(&run))));
    }
    assert_eq!(claim.judge(&results, &full).judgement.verdict, Verdict::Holds);
    let names: HashSet<_> = claim.runs(&full).iter().filter_map(|run| run.protocol).collect();
    assert_eq!(names, pantile_protocols::all().iter().map(|protocol| protocol.name()).collect());
}

#[test]
fn through_a_server_the_order_on_each_memory_counts() {
    // The others catch up on the fastest memory.
    let catching_up = |run: &RunSpec| match (run.gc, run.medium) {
        ("none" | "tb-collect", _) | (_, "nvm:optane-40") => as_published(run),
        _ => as_published(run) * 1.15,
    };
    assert_eq!(verdict("TB-15", catching_up).verdict, Verdict::Holds);
    let judgement = verdict("TB-15", as_published);
    assert_eq!(judgement.verdict, Verdict::DoesNotHold);
    assert!(
        judgement.reason.contains("share of tb-collect's throughput on nvm:E-40"),
        "{}",
        judgement.reason
    );
    let ahead =
        |run: &RunSpec| if (run.gc, run.medium) == ("zen", "nvm:E-40") { 950.0 } else { catching_up(run) };
    let judgement = verdict("TB-15", ahead);
    assert_eq!(judgement.verdict, Verdict::DoesNotHold);
    assert!(judgement.reason.contains("on nvm:E-40, tb-collect is 0.96x"), "{}", judgement.reason);
    assert!(claim("TB-15").runs(&size()).iter().all(|run| run.key().starts_with("scripts/mariadb/tpcc ")));
}

#[test]
fn growth_through_a_server_is_judged_on_two_memories() {
    // In these measurements, growth follows from the speed.
    let smaller = |run: &RunSpec| match run.gc {
        "none" => 200.0,
        "tb-collect" => 800.0,
        _ => 500.0,
    };
    assert_eq!(verdict("TB-16", smaller).verdict, Verdict::Holds);
    let larger = |run: &RunSpec| match run.gc {
        "none" => 200.0,
        "tb-collect" => 500.0,
        _ => 800.0,
    };
    assert_eq!(verdict("TB-16", larger).verdict, Verdict::DoesNotHold);
    let idle = |run: &RunSpec| if run.gc == "none" { 500.0 } else { larger(run) };
    let judgement = verdict("TB-16", idle);
    assert_eq!(judgement.verdict, Verdict::CannotBeJudged);
    assert!(judgement.reason.contains("hardly begun to collect"), "{}", judgement.reason);
    let depends = |run: &RunSpec| smaller(run) * if run.medium == "nvm:E-40" { 2.0 } else { 1.0 };
    let judgement = verdict("TB-16", depends);
    assert_eq!(judgement.verdict, Verdict::DoesNotHold);
    assert!(
        judgement.reason.contains("the growth of tb-collect on nvm:E-40 against that"),
        "{}",
        judgement.reason
    );
    let slow = |run: &RunSpec| if run.gc == "zen" { 100.0 } else { smaller(run) };
    assert!(verdict("TB-16", slow).reason.contains("zen reached only 100 of 200 txn/s"));
    assert!(claim("TB-16").runs(&Size::quick(2)).is_empty());
    let full = Size::full(2);
    let small = " --warehouses 1 --threads 2 --gc tb-collect --medium nvm:optane-40 --warmup 8 --seconds 14 --rate 400 --scale 5";
    assert!(claim("TB-16").runs(&full).iter().any(|run| run.key().ends_with(small)));
    let of_cause = claim("TB-16").runs_of_causes(&full);
    assert!(of_cause.iter().any(|run| run.key().ends_with("--rate 400 --gc-theta 0.5 --scale 5")));
}

#[test]
fn without_a_server_the_reason_says_what_installs_one() {
    let claim = claim("TB-15");
    let mut results = Results::default();
    for run in claim.runs(&size()) {
        results.miss(&run.key(), crate::server::MISSING.to_owned());
    }
    let finding = claim.judge(&results, &size());
    assert_eq!(finding.judgement.verdict, Verdict::CannotBeJudged);
    assert_eq!(finding.judgement.reason, format!("{}.", crate::server::MISSING));
    assert!(finding.judgement.reason.contains("scripts/mariadb/setup"));
}

#[test]
fn latencies_are_drawn_as_fast_as_can_be_and_at_one_rate() {
    let claim = claim("TB-7c");
    let figures = claim.judge(&measured(claim, as_published), &size()).figures;
    let drawn: Vec<_> =
        figures.iter().map(|figure| (&*figure.title, figure.series[0].points.len())).collect();
    let of_both_kinds = ["Latency against NoGC's", "Latency", "Latency at 4,000 transactions a second"];
    assert_eq!(drawn, of_both_kinds.map(|title| (title, 6)));
}

#[test]
fn the_time_of_a_device_is_drawn_at_both_depths() {
    let claim = claim("SI-1");
    let mut results = Results::default();
    let device = Device { seconds_1: 0.3, seconds_32: 0.06, ..Device::default() };
    for run in claim.runs(&size()) {
        results.add(&run.key(), 1, Measurement { device: Some(device), ..at(1000.0) });
    }
    let figures = claim.judge(&results, &size()).figures;
    for (requests, micros) in [("one request", 1.0), ("32 requests", 0.2)] {
        let title = format!("Time of reads and writes, {requests}");
        let figure = figures.iter().find(|figure| figure.title == title).expect("a figure");
        assert!(figure.series.iter().all(|series| (series.points[0].y - micros).abs() < 1e-9));
    }
}

#[test]
fn bytes_written_in_place() {
    let much = |run: &RunSpec| if run.gc == "in-place" { 50.0 } else { 1000.0 };
    assert_eq!(verdict("SI-1", much).verdict, Verdict::Holds);
    let judgement = verdict("SI-1", |_| 1000.0);
    assert_eq!(judgement.verdict, Verdict::CannotBeJudged, "one-sided");
    assert!(judgement.reason.contains("indexes and old versions"), "{}", judgement.reason);
}

#[test]
fn the_survey_as_published_holds() {
    let published = |run: &RunSpec| match run.gc {
        "steam" => 3000.0,
        "hekaton" => 500.0,
        "hana" => 300.0,
        _ => 1000.0,
    };
    for name in ["ST-2", "ST-8", "ST-9", "ST-12"] {
        assert_eq!(verdict(name, published).verdict, Verdict::Holds, "{name}");
        assert_eq!(verdict(name, |_| 1000.0).verdict, Verdict::DoesNotHold, "{name}");
        assert!(claim(name).runs(&size()).iter().all(|run| run.medium == "dram"), "{name}");
    }
    for name in ["ST-2", "ST-9", "ST-T5"] {
        let claim = claim(name);
        let mut results = Results::default();
        for run in claim.runs(&size()) {
            let few = Measurement { transactions: 100_000, ..at(published(&run)) };
            (1..=3).for_each(|repetition| results.add(&run.key(), repetition, few.clone()));
        }
        let judgement = claim.judge(&results, &size()).judgement;
        assert_eq!(judgement.verdict, Verdict::CannotBeJudged, "{name}");
        assert!(judgement.reason.contains("100,000 transactions were made"), "{}", judgement.reason);
    }
}

#[test]
fn recovery_is_compared_at_each_size() {
    let full = Size::full(2);
    let claim = claim("ZN-22");
    let judged = |seconds: &dyn Fn(&RunSpec) -> f64| {
        let mut results = Results::default();
        for run in claim.runs(&full) {
            for (repetition, drift) in [1.0, 1.1, 0.9].into_iter().enumerate() {
                let measured = Measurement { recovery_seconds: Some(seconds(&run) * drift), ..at(1000.0) };
                results.add(&run.key(), repetition + 1, measured);
            }
        }
        claim.judge(&results, &full)
    };
    let published = |run: &RunSpec| if run.gc == "redo-log" { 14.0 } else { 0.5 };
    let finding = judged(&published);
    assert_eq!(finding.judgement.verdict, Verdict::Holds);
    assert_eq!(finding.judgement.count(Outcome::Held), 2 * full.recoveries.len());
    let little = judged(&|run: &RunSpec| if run.gc == "redo-log" { 0.6 } else { 0.5 }).judgement;
    assert_eq!(
        (little.verdict, little.count(Outcome::Held)),
        (Verdict::DoesNotHold, full.recoveries.len()),
        "faster, by less than an order of magnitude"
    );
    assert!(finding.ours.contains("28x at 250 MB"), "{}", finding.ours);
    assert!(finding.ours.contains("YCSB 2 GB/s, so 100 GB take 50 s"), "{}", finding.ours);
    let is_large = |run: &RunSpec| run.recovery.is_some_and(|recovery| recovery.megabytes >= 1000);
    let slow_at_one =
        |run: &RunSpec| if is_large(run) && run.gc == "tb-collect" { 20.0 } else { published(run) };
    let judgement = judged(&slow_at_one).judgement;
    assert_eq!(judgement.verdict, Verdict::DoesNotHold);
    assert!(judgement.reason.contains("1000 MB: opening with a redo log is 0.7"), "{}", judgement.reason);
}

#[test]
fn names_of_axes_fit_beside_the_plot() {
    for claim in all() {
        let finding = claim.judge(&measured(claim, |_| 1000.0), &size());
        for figure in finding.figures {
            assert!(figure.y.chars().count() <= 44, "{}", figure.y);
        }
    }
}
