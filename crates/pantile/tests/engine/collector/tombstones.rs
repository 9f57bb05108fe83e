//! T3: what is deleted stays deleted, and does not take space forever.

use super::rows::{Rows, collect_until, gc, open, options, settle};
use pantile::{GcOptions, Options};
use pantile_testkit::Random;

/// Blocks stay until nine of ten versions are obsolete.
fn patient() -> Options {
    options().gc(GcOptions { theta: 0.9, ..gc() })
}

/// Four of ten versions of each block are deleted. They stay on the medium,
/// since that is not enough to reclaim the block. So the tombstones must stay
/// too.
#[test]
fn t3_tombstones_stay_while_there_is_anything_to_hide() {
    let db = open(patient());
    let mut rows = Rows::filled(&db, 0..1600);
    rows.delete((0..1600).filter(|key| key % 10 < 4));
    // Two whole sweeps and more.
    for _ in 0..8 {
        let steps = db.stats().collector.steps;
        collect_until(&db, "work is done", |s| s.collector.steps > steps + 400);
        rows.check_after_crash(patient()).check();
    }
    let stats = db.stats().collector;
    assert_eq!((stats.tombstones_dropped, stats.waiting_tombstones), (0, 640));
}

/// Checked at every stage of deleting most of a table.
#[test]
fn t3_tombstones_go_in_the_end_and_nothing_comes_back() {
    let db = open(patient());
    let mut rows = Rows::filled(&db, 0..2000);
    let (full, blocks) = (db.stats(), rows.blocks());
    for part in 0..5 {
        rows.delete((0..2000).filter(|key| key % 20 != 0 && key % 5 == part));
        rows.check_after_crash(patient());
    }
    let mut seen = 0;
    let stats = collect_until(&db, "tombstones are gone", |s| {
        let dropped = s.collector.tombstones_dropped;
        if dropped > seen {
            seen = dropped;
            rows.check_after_crash(patient());
        }
        s.collector.waiting_tombstones < 256 && rows.blocks() < blocks / 2
    });
    assert!(stats.collector.tombstones_dropped > 1500, "{stats:#?}");
    rows.check();
    let stats = settle(&db);
    let crashed = rows.check_after_crash(patient());
    // A reopened database finds what is left, and what is obsolete in blocks
    // that are mostly live.
    let left = crashed.db.stats().collector.waiting_tombstones;
    assert!(left < 512, "{left} tombstones came back");
    // Empty chunks can be used by tables of any size.
    assert!(stats.free_bytes > full.free_bytes, "{stats:#?}\n{full:#?}");
}

/// Ids of deleted tuples are reused by other rows, before and after their
/// tombstones are gone.
#[test]
fn t3_reused_tuple_ids_bring_nothing_back() {
    for theta in [0.5, 0.9] {
        let options = || options().gc(GcOptions { theta, ..gc() });
        let db = open(options());
        let mut random = Random::new(3, 0);
        let mut rows = Rows::filled(&db, 0..500);
        for round in 1..=8 {
            let keys: Vec<u64> = rows.expected.keys().copied().collect();
            rows.delete(keys.into_iter().filter(|_| random.below(10) < 7));
            if round % 2 == 0 {
                settle(&db);
            }
            rows.put((0..300).map(|key| 1000 * round + key));
            rows.put((0..100).map(|key| key * 5));
            rows.check_after_crash(options());
        }
        rows.check();
        let tuples = db.stats().anchor_bytes / 8;
        // Those that wait to be taken again are counted, too.
        assert!(tuples < 3000, "{tuples} ids were taken");
    }
}

/// The older version moves. Its copy needs the tombstone as the original did.
#[test]
fn t3_versions_that_moved_stay_deleted() {
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..640);
    for stage in 0..6 {
        // Survivors of the rewriting move, and then some of them are deleted.
        rows.put((0..640).filter(|key| key % 8 != stage && key % 3 == 0));
        rows.check_after_crash(options());
        rows.delete((0..640).filter(|key| key % 8 == stage));
        settle(&db);
        rows.check_after_crash(options());
    }
    rows.check();
}
