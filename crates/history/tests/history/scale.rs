//! Histories of a hundred thousand transactions. How long each takes is printed.

use std::time::Instant;

use crate::common::store::{Load, Mode, run};
use crate::common::well_linked;

const LOAD: Load = Load {
    transactions: 100_000,
    clients: 16,
    keys: 10_000,
    ops: 19,
    writes: 25,
    deletes: 5,
    scans: 5,
    range: 20,
    unknown: 0,
    split: false,
};

/// Checks such a history. Returns whether it is serializable.
fn time(mode: Mode, load: Load) -> bool {
    let (history, check) = run(mode, load, 1);
    let ops: usize = history.transactions.iter().map(|txn| txn.ops.len()).sum();
    let start = Instant::now();
    let report = check.real_time(true).run(&history);
    let took = start.elapsed();
    println!(
        "{mode:?}, {} keys: {ops} operations in {took:?}, {:?}, {}",
        load.keys,
        report.kinds(),
        report.complete
    );
    well_linked(&report);
    report.is_serializable()
}

#[test]
fn large_histories() {
    assert!(time(Mode::Optimistic, LOAD));
    for mode in [Mode::Snapshot, Mode::ReadCommitted, Mode::Nothing] {
        assert!(!time(mode, LOAD));
    }
}

#[test]
fn large_histories_of_few_keys() {
    let load = Load { keys: 100, deletes: 15, ..LOAD };
    assert!(time(Mode::Optimistic, load));
    for mode in [Mode::Snapshot, Mode::ReadCommitted, Mode::Nothing] {
        assert!(!time(mode, load), "{mode:?}");
    }
}

#[test]
fn large_histories_of_stale_readers() {
    // Readers whose timestamps are late, among keys that are inserted and
    // deleted. Many absences must be placed, and all of them can be.
    for (keys, writes, deletes) in [(100, 25, 15), (20, 20, 20), (1000, 20, 20)] {
        let load = Load { keys, writes, deletes, split: true, ..LOAD };
        assert!(time(Mode::Snapshot, load));
    }
}
