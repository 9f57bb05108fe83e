//! Helpers to write histories by hand.

pub mod store;

use std::collections::BTreeSet;

use pantile_history::{AnomalyKind, History, Op, Outcome, Txn, check};

/// A read that found a value.
pub fn r(key: u64, value: u64) -> Op {
    Op::Read { key, value: Some(value) }
}

/// A read that found no value.
pub fn none(key: u64) -> Op {
    Op::Read { key, value: None }
}

/// A write.
pub fn w(key: u64, value: u64) -> Op {
    Op::Write { key, value }
}

/// A deletion.
pub fn d(key: u64, value: u64) -> Op {
    Op::Delete { key, value }
}

/// A scan.
pub fn s(low: u64, high: u64, found: &[(u64, u64)]) -> Op {
    Op::Scan { low, high, found: found.to_vec() }
}

/// A transaction with the given outcome, concurrent with all others.
pub fn ended(id: u64, outcome: Outcome, ops: &[Op]) -> Txn {
    Txn { id, outcome, begin: 0, end: 1000, ops: ops.to_vec() }
}

/// A transaction that committed at the timestamp that equals its id.
pub fn t(id: u64, ops: &[Op]) -> Txn {
    ended(id, Outcome::Committed { ts: id }, ops)
}

/// The same, between two moments.
pub fn timed(id: u64, begin: u64, end: u64, ops: &[Op]) -> Txn {
    Txn { begin, end, ..t(id, ops) }
}

/// Builds a history from transactions.
pub fn history(transactions: &[Txn]) -> History {
    History { transactions: transactions.to_vec() }
}

/// The kinds of anomalies found in the transactions, without real time.
pub fn kinds(transactions: &[Txn]) -> BTreeSet<AnomalyKind> {
    check(&history(transactions)).kinds()
}

/// Asserts that exactly these kinds are found.
#[track_caller]
pub fn finds(transactions: &[Txn], expected: &[AnomalyKind]) {
    let report = check(&history(transactions));
    let expected: BTreeSet<AnomalyKind> = expected.iter().copied().collect();
    assert_eq!(report.kinds(), expected, "\n{report}");
    well_linked(&report);
}

/// Asserts that every witness is a cycle.
#[track_caller]
pub fn well_linked(report: &pantile_history::Report) {
    for anomaly in &report.anomalies {
        let cycle = &anomaly.cycle;
        for (index, edge) in cycle.iter().enumerate() {
            assert_eq!(edge.to, cycle[(index + 1) % cycle.len()].from, "{anomaly}");
        }
    }
}
