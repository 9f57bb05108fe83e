//! Compares small histories with all serial orders, one by one.

use std::collections::BTreeMap;

use crate::common::store::{Load, Mode, run};
use crate::common::{ended, history, well_linked};
use pantile_history::{AnomalyKind, Check, History, Op, Outcome, Txn};
use pantile_testkit::Random;

/// Whether the transactions, run in this order, see what they saw, and install
/// versions in the order of timestamps.
fn replays(order: &[&Txn]) -> bool {
    let mut state: BTreeMap<u64, u64> = BTreeMap::new();
    let mut newest: BTreeMap<u64, u64> = BTreeMap::new();
    for txn in order {
        let Outcome::Committed { ts } = txn.outcome else {
            return false;
        };
        for op in &txn.ops {
            let wrote = match op {
                Op::Read { key, value } if state.get(key) != value.as_ref() => return false,
                Op::Scan { low, high, found } => {
                    let there = state.range(low..=high).map(|(key, value)| (*key, *value));
                    if !there.eq(found.iter().copied()) {
                        return false;
                    }
                    continue;
                }
                Op::Read { .. } => continue,
                Op::Write { key, value } => {
                    state.insert(*key, *value);
                    key
                }
                Op::Delete { key, .. } => {
                    state.remove(key);
                    key
                }
            };
            if newest.insert(*wrote, ts).is_some_and(|before| before > ts) {
                return false;
            }
        }
    }
    true
}

/// Whether some order of the rest, after the chosen ones, replays.
fn some_order<'a>(chosen: &mut Vec<&'a Txn>, rest: &mut Vec<&'a Txn>, strict: bool) -> bool {
    let overdue = |txn: &&Txn| chosen.iter().any(|before| txn.end < before.begin);
    if !replays(chosen) || strict && rest.iter().any(overdue) {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    (0..rest.len()).any(|index| {
        chosen.push(rest.remove(index));
        let found = some_order(chosen, rest, strict);
        rest.insert(index, chosen.pop().expect("was pushed"));
        found
    })
}

fn serializable(history: &History, strict: bool) -> bool {
    let mut committed: Vec<&Txn> =
        history.transactions.iter().filter(|txn| txn.outcome != Outcome::Aborted).collect();
    some_order(&mut Vec::new(), &mut committed, strict)
}

/// Compares the two verdicts. Returns whether there was an anomaly, and whether
/// it was found.
#[track_caller]
fn compare(history: &History, strict: bool) -> (bool, bool) {
    let report = Check::new().real_time(strict).run(history);
    well_linked(&report);
    let truth = serializable(history, strict);
    let found = if strict { !report.is_strictly_serializable() } else { !report.is_serializable() };
    assert!(!(truth && found), "invented:\n{report}\n{history:#?}");
    (!truth, found)
}

/// Transactions that read values that some transaction may write; mostly they
/// find none.
fn arbitrary(seed: u64, deletions: bool) -> History {
    let mut rng = Random::new(seed, 0);
    let count = 2 + rng.below(3);
    let values = |rng: &mut Random, key: u64| {
        let by = 1 + rng.below(count + 1);
        (by <= count).then_some(by * 10 + key)
    };
    let keys = 3;
    let txns: Vec<Txn> = (1..=count)
        .map(|id| {
            // The most that it can have written: its number and the key.
            let mut ops = Vec::new();
            for key in 0..keys {
                match rng.below(4) {
                    0 | 1 => {
                        let value = values(&mut rng, key).filter(|value| value / 10 != id);
                        ops.push(Op::Read { key, value });
                    }
                    _ => {}
                }
                match rng.below(if deletions { 5 } else { 4 }) {
                    0 | 1 => ops.push(Op::Write { key, value: id * 10 + key }),
                    4 => ops.push(Op::Delete { key, value: id * 10 + key }),
                    _ => {}
                }
            }
            let begin = rng.below(10);
            Txn { begin, end: begin + rng.below(20), ..ended(id, Outcome::Committed { ts: id }, &ops) }
        })
        .collect();
    history(&txns)
}

#[test]
fn exact_without_deletions() {
    let (mut broken, mut sound) = (0, 0);
    for seed in 0..20_000 {
        let history = arbitrary(seed, false);
        let (anomalous, found) = compare(&history, seed % 2 == 0);
        assert_eq!(anomalous, found, "{seed}: missed\n{history:#?}");
        broken += u32::from(anomalous);
        sound += u32::from(!anomalous);
    }
    assert!(broken > 500 && sound > 500, "{broken} {sound}");
}

#[test]
fn never_wrong_with_deletions() {
    let (mut anomalies, mut caught) = (0, 0);
    for seed in 0..20_000 {
        let (anomalous, found) = compare(&arbitrary(seed, true), seed % 2 == 0);
        anomalies += u32::from(anomalous);
        caught += u32::from(found);
    }
    println!("{caught} of {anomalies} caught");
    assert!(caught * 100 >= anomalies * 99, "{caught} of {anomalies}");
}

#[test]
fn agrees_about_toy_stores() {
    let (mut anomalies, mut caught) = (0, 0);
    for (deletes, writes) in [(0, 50), (25, 25), (40, 20)] {
        for mode in [Mode::ReadCommitted, Mode::Snapshot, Mode::Locking] {
            for seed in 0..3000 {
                let load = Load {
                    transactions: 6,
                    clients: 4,
                    keys: 2,
                    ops: 3,
                    writes,
                    deletes,
                    scans: 15,
                    range: 2,
                    unknown: 0,
                    split: false,
                };
                let (history, _) = run(mode, load, seed);
                let (anomalous, found) = compare(&history, false);
                let kinds = Check::new().run(&history).kinds();
                let most = match mode {
                    Mode::Snapshot => AnomalyKind::G2Item,
                    _ => AnomalyKind::NonRepeatableRead,
                };
                assert!(kinds.iter().all(|kind| *kind >= most), "{kinds:?}");
                let flow = [AnomalyKind::G0, AnomalyKind::G1a, AnomalyKind::G1b, AnomalyKind::G1c];
                assert!(kinds.is_disjoint(&flow.into()), "{kinds:?}");
                assert!(deletes > 0 || anomalous == found, "{history:#?}");
                anomalies += u32::from(anomalous);
                caught += u32::from(found);
            }
        }
    }
    println!("{caught} of {anomalies} caught");
    assert!(caught * 100 >= anomalies * 99, "{caught} of {anomalies}");
}
