//! Histories by hand.

pub mod store;

use std::collections::BTreeSet;

use pantile_history::{History, Kind, Op, Outcome, Txn, check};

/// A key read and found to hold a value.
pub fn r(key: u64, value: u64) -> Op {
    Op::Read { key, value: Some(value) }
}

/// A key read and found absent.
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

/// A transaction with an outcome, concurrent with all others.
pub fn ended(id: u64, outcome: Outcome, ops: &[Op]) -> Txn {
    Txn { id, outcome, begin: 0, end: 1000, ops: ops.to_vec() }
}

/// A transaction that committed at the timestamp that is also its id.
pub fn t(id: u64, ops: &[Op]) -> Txn {
    ended(id, Outcome::Committed { ts: id }, ops)
}

/// The same between two points of time.
pub fn timed(id: u64, begin: u64, end: u64, ops: &[Op]) -> Txn {
    Txn { begin, end, ..t(id, ops) }
}

/// Puts transactions together.
pub fn history(transactions: &[Txn]) -> History {
    History { transactions: transactions.to_vec() }
}

/// What is found in the transactions, real time apart.
pub fn kinds(transactions: &[Txn]) -> BTreeSet<Kind> {
    check(&history(transactions)).kinds()
}

/// Asserts that exactly these kinds are found.
#[track_caller]
pub fn finds(transactions: &[Txn], expected: &[Kind]) {
    let report = check(&history(transactions));
    let expected: BTreeSet<Kind> = expected.iter().copied().collect();
    assert_eq!(report.kinds(), expected, "\n{report}");
    well_linked(&report);
}

/// Asserts that witnesses are cycles.
#[track_caller]
pub fn well_linked(report: &pantile_history::Report) {
    for anomaly in &report.anomalies {
        let cycle = &anomaly.cycle;
        for (index, edge) in cycle.iter().enumerate() {
            assert_eq!(edge.to, cycle[(index + 1) % cycle.len()].from, "{anomaly}");
        }
    }
}
