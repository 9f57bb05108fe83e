//! T23: hot and cold rows of one table go to different blocks.
//!
//! When an epoch ends, a block may be emptied of which the rest would soon be
//! obsolete, too. So time is simulated: how many commits an epoch has does not
//! depend on the machine.

use super::rows::{Rows, collect_until, gc, is_settled, open, options};
use pantile::{Database, GcOptions, Options, SimulatedTime, Stats};
use pantile_testkit::Random;

const ROWS: u64 = 3200;

/// A database in which time passes when the test says so.
fn timed(options: Options) -> (Database, SimulatedTime) {
    let time = SimulatedTime::default();
    (open(options.simulated_time(time.clone())), time)
}

/// Lets some epochs pass, in each of which the collector works.
fn let_epochs_pass(db: &Database, time: &SimulatedTime) {
    for _ in 0..2 {
        time.advance(gc().epoch);
        collect_until(db, "a moment", |_| true);
    }
}

/// Lets time pass until the collector has nothing left to do.
fn settle(db: &Database, time: &SimulatedTime) -> Stats {
    collect_until(db, "nothing waits", |stats| {
        time.advance(gc().epoch);
        is_settled(db, stats)
    })
}

/// Survivors moved and blocks reclaimed while the hot tenth is rewritten.
fn rewrite_hot(rows: &mut Rows, time: &SimulatedTime, random: &mut Random, rounds: u64) -> (u64, u64) {
    let before = rows.db.stats().collector;
    for _ in 0..rounds {
        // Hot rows lie among cold ones.
        rows.put((0..ROWS / 10).map(|_| random.below(ROWS / 10) * 10));
        let_epochs_pass(&rows.db, time);
    }
    let after = settle(&rows.db, time).collector;
    (after.survivors_relocated - before.survivors_relocated, after.blocks_reclaimed - before.blocks_reclaimed)
}

/// With rows rewritten in random order, each block has a few survivors, which
/// are hot as well. The cold nine tenths stay where they are.
#[test]
fn t23_cold_rows_are_not_copied_again_and_again() {
    let (db, time) = timed(options().block_slots(64).gc(GcOptions { theta: 0.75, ..gc() }));
    let mut random = Random::new(23, 0);
    let mut rows = Rows::new(&db);
    // All rows are written together, in random order, so that each block has
    // all kinds.
    let mut keys: Vec<u64> = (0..ROWS).collect();
    keys.sort_by_key(|key| pantile_testkit::mix(*key));
    rows.put(keys.iter().copied());
    // Twice over, so that blocks of first versions alone cannot pass the test.
    rows.put(keys);
    settle(&db, &time);
    rewrite_hot(&mut rows, &time, &mut random, 10);
    let (moved, reclaimed) = rewrite_hot(&mut rows, &time, &mut random, 40);
    assert!(reclaimed > 100, "{reclaimed} blocks");
    // At most a quarter of a block moves, by theta. If cold rows moved, they
    // would be nine tenths of it.
    assert!(moved < reclaimed * 16, "{moved} survivors of {reclaimed} blocks");
    let writes = 40 * ROWS / 10;
    assert!(moved < writes / 4, "{moved} survivors moved for {writes} writes");
    rows.check();
}

/// A block of which half the rows are hot is reclaimed once. Its cold rows go
/// to blocks of their own, and then there is nothing to move.
#[test]
fn t23_survivors_lie_apart_from_newcomers() {
    let (db, time) = timed(options().block_slots(64));
    let mut rows = Rows::filled(&db, 0..ROWS);
    // The same keys become obsolete in each block, more than theta of it.
    let hot = |key: &u64| key % 8 < 5;
    for keys in (0..ROWS).filter(hot).collect::<Vec<_>>().chunks(10) {
        // Survivors move while new rows arrive: some epochs pass.
        rows.put(keys.iter().copied());
        let_epochs_pass(&db, &time);
    }
    let first = settle(&db, &time).collector;
    assert!(first.survivors_relocated >= ROWS / 5, "{first:#?}");
    for _ in 0..12 {
        rows.put((0..ROWS).filter(hot));
        let_epochs_pass(&db, &time);
    }
    let last = settle(&db, &time).collector;
    let moved = last.survivors_relocated - first.survivors_relocated;
    let reclaimed = last.blocks_reclaimed - first.blocks_reclaimed;
    assert!(reclaimed > 200, "{reclaimed} blocks");
    println!("{moved} survivors of {reclaimed} blocks moved after {first:?}");
    // Survivors among the new rows would be three eighths of every block.
    assert!(moved < reclaimed, "{moved} survivors of {reclaimed} blocks moved after the first time");
    rows.check();
}

/// Order lines are inserted, and updated once when they are delivered.
#[test]
fn t23_rows_that_are_updated_once_leave_whole_blocks_behind() {
    let (db, time) = timed(options().block_slots(64).gc(GcOptions { theta: 0.9, ..gc() }));
    let mut rows = Rows::new(&db);
    for order in 0..600u64 {
        for order in [Some(order), order.checked_sub(40)].into_iter().flatten() {
            rows.put((0..10).map(|line| order * 10 + line));
            // An epoch has fifty commits.
            time.advance(gc().epoch / 50);
        }
    }
    let stats = settle(&db, &time).collector;
    assert!(stats.blocks_reclaimed >= 80, "{stats:#?}");
    assert!(stats.survivors_relocated < stats.blocks_reclaimed * 2, "{stats:#?}");
    // One version of each, and the blocks that are not full.
    assert!(rows.blocks() < 6000 / 64 + 20, "{} blocks", rows.blocks());
    rows.check();
}
