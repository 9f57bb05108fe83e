//! Threads that come and go leave nothing behind.

use pantile::{Database, IndexDef};
use pantile_testkit::Patience;

use super::table::Things;
use crate::support::in_memory;

fn short_threads(things: &Things, count: u64) {
    for n in (0..count).step_by(4) {
        std::thread::scope(|scope| {
            for n in n..n + 4 {
                scope.spawn(move || {
                    things.db.run(|t| things.resize(t, n % 8, n as i64)).expect("it succeeds in the end");
                    let mut txn = things.db.begin().expect("a transaction");
                    // Whatever its outcome, it is rolled back.
                    let _ = things.insert(&mut txn, 100 + n % 4, n, 0);
                });
            }
        });
    }
}

/// The sizes that must not grow, after everything that waits for cleaning has
/// been cleaned.
fn held(db: &Database, things: &Things) -> (u64, u64, u64) {
    let patience = Patience::new();
    while db.stats().stale_entries > 0 {
        patience.check(|| format!("entries are cleaned: {:#?}", db.stats()));
        db.run(|t| things.resize(t, 0, 0)).expect("a commit");
    }
    let stats = db.stats();
    assert_eq!(stats.running, 0);
    (stats.index_bytes, stats.anchor_bytes, stats.tuples)
}

#[test]
fn two_thousand_short_threads() {
    let db = in_memory();
    let things = Things::new(&db, &[IndexDef::new("by_name", ["name"])]);
    things.fill((0..8).map(|n| (n, n, 0)));
    short_threads(&things, 200);
    let (index, anchors, tuples) = held(&db, &things);
    short_threads(&things, 2_000);
    let (index_after, anchors_after, tuples_after) = held(&db, &things);
    assert_eq!(tuples_after, tuples);
    assert!(index_after <= index + (64 << 10), "{index} bytes of indexes grew to {index_after}");
    assert!(anchors_after <= anchors + 8 * 1024, "{anchors} bytes of anchors grew to {anchors_after}");
}
