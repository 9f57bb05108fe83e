//! Random executions, sound and broken, and the anomalies found in them.

use std::collections::BTreeSet;

use crate::common::store::{Load, Mode, run};
use crate::common::well_linked;
use pantile_history::{AnomalyKind, Check, History, Op, Outcome, Txn, check};
use pantile_testkit::Random;

const SEEDS: u64 = 60;

/// The kinds of anomalies found with any of the seeds.
fn all_kinds(mode: Mode, load: Load) -> BTreeSet<AnomalyKind> {
    let mut kinds = BTreeSet::new();
    for seed in 0..SEEDS {
        let (history, check) = run(mode, load, seed);
        let report = check.run(&history);
        well_linked(&report);
        assert!(report.complete);
        kinds.extend(report.kinds());
    }
    kinds
}

fn has_g1(kinds: &BTreeSet<AnomalyKind>) -> bool {
    [AnomalyKind::G1a, AnomalyKind::G1b, AnomalyKind::G1c].iter().any(|kind| kinds.contains(kind))
}

/// Runs one transaction after another, on a map.
fn serial(seed: u64) -> History {
    let mut rng = Random::new(seed, 0);
    let mut state = std::collections::BTreeMap::new();
    let mut name = 0;
    let transactions = (1..=200)
        .map(|id| {
            let ops = (0..=rng.below(6))
                .map(|_| {
                    name += 1;
                    let key = rng.below(8);
                    match rng.below(4) {
                        0 => {
                            state.insert(key, name);
                            Op::Write { key, value: name }
                        }
                        1 => {
                            state.remove(&key);
                            Op::Delete { key, value: name }
                        }
                        2 => Op::Scan {
                            low: key,
                            high: key + 3,
                            found: state.range(key..=key + 3).map(|(k, v)| (*k, *v)).collect(),
                        },
                        _ => Op::Read { key, value: state.get(&key).copied() },
                    }
                })
                .collect();
            Txn { id, outcome: Outcome::Committed { ts: id }, begin: id * 10, end: id * 10 + 9, ops }
        })
        .collect();
    History { transactions }
}

#[test]
fn serial_histories_are_clean() {
    for seed in 0..SEEDS {
        let report = Check::new().real_time(true).run(&serial(seed));
        assert!(report.is_strictly_serializable(), "{seed}: {report}");
    }
}

#[test]
fn serial_histories_in_disorder_are_serializable() {
    for seed in 0..SEEDS {
        let mut history = serial(seed);
        let mut rng = Random::new(seed + 1000, 0);
        for index in (1..history.transactions.len()).rev() {
            let other = rng.below(index as u64 + 1) as usize;
            history.transactions.swap(index, other);
            history.transactions[index].begin = rng.below(1000);
            history.transactions[index].end = 1000 + rng.below(1000);
        }
        assert!(check(&history).anomalies.is_empty(), "{seed}");
    }
}

#[test]
fn sound_executors_are_clean() {
    for mode in [Mode::Locking, Mode::Optimistic] {
        for unknown in [0, 10] {
            for seed in 0..SEEDS {
                let load = Load { unknown, ..Load::MIXED };
                let (history, check) = run(mode, load, seed);
                let report = check.real_time(true).run(&history);
                assert!(report.is_strictly_serializable(), "{mode:?} {seed}: {report}");
            }
        }
    }
}

#[test]
fn snapshots_show_write_skew_and_no_more() {
    for deletes in [0, 10, 30] {
        let load = Load { deletes, ..Load::MIXED };
        let kinds = all_kinds(Mode::Snapshot, load);
        let expected = BTreeSet::from([AnomalyKind::G2Item, AnomalyKind::G2]);
        assert!(!kinds.is_empty() && kinds.is_subset(&expected), "{kinds:?}");
    }
    let points = Load { scans: 0, ..Load::MIXED };
    assert_eq!(all_kinds(Mode::Snapshot, points), [AnomalyKind::G2Item].into());
}

#[test]
fn snapshots_with_unknown_outcomes_show_no_more() {
    let load = Load { unknown: 20, ..Load::MIXED };
    let kinds = all_kinds(Mode::Snapshot, load);
    assert!(kinds.is_subset(&[AnomalyKind::G2Item, AnomalyKind::G2].into()), "{kinds:?}");
}

#[test]
fn read_committed_shows_read_skew() {
    for deletes in [0, 10, 30] {
        let load = Load { deletes, ..Load::MIXED };
        let kinds = all_kinds(Mode::ReadCommitted, load);
        for expected in [AnomalyKind::GSingle, AnomalyKind::LostUpdate, AnomalyKind::NonRepeatableRead] {
            assert!(kinds.contains(&expected), "{kinds:?}");
        }
        assert!(!has_g1(&kinds) && !kinds.contains(&AnomalyKind::G0), "{kinds:?}");
        assert!(!kinds.contains(&AnomalyKind::Internal), "{kinds:?}");
    }
}

#[test]
fn no_isolation_shows_everything_dirty() {
    let kinds = all_kinds(Mode::Nothing, Load::MIXED);
    for expected in
        [AnomalyKind::G0, AnomalyKind::G1a, AnomalyKind::G1b, AnomalyKind::G1c, AnomalyKind::Internal]
    {
        assert!(kinds.contains(&expected), "{kinds:?}");
    }
}

#[test]
fn every_broken_run_is_caught() {
    for mode in [Mode::Nothing, Mode::ReadCommitted, Mode::Snapshot] {
        for seed in 0..SEEDS {
            let (history, check) = run(mode, Load::MIXED, seed);
            assert!(!check.run(&history).is_serializable(), "{mode:?} {seed}");
        }
    }
}

#[test]
fn snapshots_of_pure_readers_are_clean() {
    let load = Load { deletes: 30, split: true, ..Load::MIXED };
    for seed in 0..SEEDS {
        let (history, check) = run(Mode::Snapshot, load, seed);
        let report = check.real_time(true).run(&history);
        assert!(report.is_strictly_serializable(), "{seed}: {report}");
    }
    assert!(all_kinds(Mode::ReadCommitted, load).contains(&AnomalyKind::GSingle));
}
