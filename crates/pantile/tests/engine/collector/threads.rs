//! T18 and T19: threads stop, and threads come and go.

use std::thread;

use super::rows::{Rows, collect_until, gc, open, options, settle};
use pantile::GcOptions;

/// Threads in several transaction slots fill queues and exit; another thread
/// empties the queues.
#[test]
fn t18_queues_of_threads_that_stopped_are_worked_off_by_others() {
    // Sixteen sets of queues. What waits is not due before all threads have
    // filled theirs.
    let db = open(options().streams(16).gc(GcOptions { bypass: false, ..gc() }));
    let mut rows = Rows::filled(&db, 0..1600);
    settle(&db);
    // An old reader keeps everything waiting while the threads work.
    let old = db.begin_read().expect("begin");
    // Held, so that each thread has a transaction slot of its own.
    let mut held = Vec::new();
    for part in 0..12u64 {
        held.push(db.begin_read().expect("begin"));
        let part = (0..1600).filter(move |key| key % 12 == part);
        rows = thread::spawn(move || {
            rows.put(part);
            rows
        })
        .join()
        .expect("no panic");
    }
    let waiting = db.stats().collector.pending_blocks;
    assert!(waiting > 50, "{:#?}", db.stats());
    drop(old);
    drop(held);
    let before = db.stats().collector.blocks_reclaimed;
    let stats = settle(&db);
    assert!(stats.collector.blocks_reclaimed >= before + waiting, "{stats:#?}");
    rows.check();
}

/// The space that is held after `count` threads, each with a commit or two. The
/// collector gets time at intervals, so that it never falls behind them.
fn after_threads(rows: &mut Rows, count: u64) -> (u64, u64, u64) {
    for n in 0..count / 4 {
        if n % 50 == 0 {
            settle(&rows.db);
        }
        thread::scope(|scope| {
            for part in 0..4 {
                let (db, table) = (rows.db.clone(), rows.table.clone());
                scope.spawn(move || {
                    let keys = (0..4).map(|key| (n * 4 + key) % 40 * 4 + part);
                    let keys: Vec<u64> = keys.collect();
                    let put = |txn: &mut _| {
                        keys.iter().try_for_each(|&key| super::rows::put(txn, &table, key, 1_000 + n))
                    };
                    db.run(put).expect("a commit");
                });
            }
        });
        let keys = (0..4).map(|key| (n * 4 + key) % 40 * 4);
        rows.expected.extend(keys.flat_map(|key| (0..4).map(move |part| (key + part, 1_000 + n))));
    }
    settle(&rows.db);
    let stats = collect_until(&rows.db, "tiles go", |s| s.tile_bytes < 32 << 10);
    (stats.dram_bytes, stats.medium_bytes, stats.collector.pending_blocks)
}

#[test]
fn t19_thousands_of_threads_leave_nothing_in_the_queues() {
    let db = open(options().streams(4));
    let mut rows = Rows::filled(&db, 0..160);
    let (dram, medium, _) = (0..2).map(|_| after_threads(&mut rows, 1_500)).max().expect("two");
    let (dram_after, medium_after, waiting) = after_threads(&mut rows, 1_500);
    // The space of blocks that are not full.
    assert!(waiting <= 8, "{waiting} blocks wait");
    assert!(dram_after <= dram + (128 << 10), "{dram} bytes of DRAM grew to {dram_after}");
    assert!(medium_after <= medium + (8 << 20), "{medium} bytes of the medium grew to {medium_after}");
    assert!(db.stats().collector.blocks_reclaimed > 300);
    rows.check();
}
