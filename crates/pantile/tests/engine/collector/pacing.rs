//! When the collector acts, and when it waits.

use std::time::{Duration, Instant};

use pantile::{Database, GcOptions, Pacing, Table, TableDef, Type, Value};

use super::rows::{Rows, collect_until, gc, open, options, settle};

const MB: u64 = 1 << 20;

fn big_table(db: &Database) -> Table {
    let def = TableDef::new("big").column("id", Type::U64).column("data", Type::Bytes(2000));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn put_big(db: &Database, table: &Table, ids: impl Iterator<Item = u64>) {
    let ids: Vec<u64> = ids.collect();
    for ids in ids.chunks(20) {
        let put = |txn: &mut pantile::Transaction| {
            ids.iter().try_for_each(|&id| {
                txn.upsert(table, &[id.into(), Value::Bytes(&[id as u8; 1000])]).map(|_| ())
            })
        };
        db.run(put).expect("a commit");
    }
}

/// A little more than half of each block is obsolete: too little for theta, and
/// worth reclaiming only if space is short.
fn half_dead(options: pantile::Options, rows: u64, space_target: f64) -> (Database, Table) {
    let gc = GcOptions { theta: 0.9, space_target, pacing: Pacing::Adaptive, ..gc() };
    let db = open(options.block_slots(1920).gc(gc));
    let table = big_table(&db);
    put_big(&db, &table, 0..rows);
    put_big(&db, &table, (0..rows).filter(|id| id % 20 < 11));
    (db, table)
}

/// Lets the collector examine all blocks several times, over more epochs than a
/// block must have been half obsolete for.
fn look_around(db: &Database) {
    let steps = db.stats().collector.steps + 1500;
    let began = Instant::now();
    collect_until(db, "steps are made", |s| {
        s.collector.steps > steps && began.elapsed() > Duration::from_millis(400)
    });
}

#[test]
fn nothing_is_compacted_while_there_is_space() {
    // This is far below the target.
    let (db, _table) = half_dead(options().block_slots(1920), 6_000, 4.0);
    look_around(&db);
    let stats = db.stats().collector;
    assert_eq!((stats.blocks_compacted, stats.blocks_reclaimed), (0, 0), "{stats:#?}");
}

#[test]
fn blocks_are_compacted_when_the_data_takes_more_than_it_should() {
    // 40 MB live, 22 MB obsolete: over the target by more than a quarter and
    // more than 16 MB.
    let (db, _table) = half_dead(options().max_bytes(4096 * MB), 54_000, 1.25);
    let stats = collect_until(&db, "compacted", |s| s.collector.blocks_compacted >= 3);
    assert!(stats.collector.survivors_relocated > 0);
}

#[test]
fn blocks_are_compacted_when_the_medium_is_nearly_full() {
    // Less than a tenth of 40 MB is left.
    let wide = GcOptions { theta: 0.9, space_target: 100.0, ..gc() };
    let db = open(options().block_slots(1920).gc(wide).max_bytes(40 * MB));
    let table = big_table(&db);
    put_big(&db, &table, 0..19_000);
    put_big(&db, &table, (0..19_000).filter(|id| id % 20 < 11));
    let stats = collect_until(&db, "compacted", |s| s.collector.blocks_compacted >= 1);
    assert!(stats.collector.survivors_relocated > 0);
}

/// The published pacing: the queues hold their share of the data, whatever
/// happens.
#[test]
fn fixed_pacing_lets_a_share_of_the_data_wait() {
    let share = 0.4;
    let db = open(options().gc(GcOptions { queue_share: share, ..gc() }));
    let mut rows = Rows::filled(&db, 0..4000);
    let capacity = |db: &Database| {
        let mut last = u64::MAX;
        // Until the store has been examined since.
        let stats = collect_until(db, "steady", |s| {
            std::mem::replace(&mut last, s.collector.queue_capacity) == s.collector.queue_capacity
        });
        stats.collector.queue_capacity
    };
    rows.put(0..600);
    // Blocks of the usual size are a 63rd of a chunk, and most of it is unused.
    let stats = db.stats();
    assert!(stats.collector.blocks_reclaimed == 0, "{stats:#?}");
    collect_until(&db, "blocks wait", |s| s.collector.queued_blocks > 20);
    let small = capacity(&db);
    rows.put(4000..12_000);
    let large = capacity(&db);
    assert!(large > 2 * small, "the share of {small} blocks rose to {large}");
    let waiting = db.stats().collector.queued_blocks;
    assert!(waiting > 20);
    // What exceeds the share is processed during the writes or after them.
    for first in 0..20 {
        rows.put((0..12_000).filter(|key| key % 10 == first % 10));
    }
    collect_until(&db, "worked off", |s| {
        let waiting = s.collector.frozen_blocks + s.collector.queued_blocks;
        waiting <= s.collector.queue_capacity && s.collector.blocks_reclaimed > 200
    });
    rows.check();
}

#[test]
fn adaptive_pacing_lets_less_wait_as_versions_pile_up() {
    let options = options().block_slots(64).max_bytes(4096 * MB);
    let db =
        open(options.gc(GcOptions { queue_share: 1.0, pacing: Pacing::Adaptive, bypass: false, ..gc() }));
    let mut rows = Rows::filled(&db, 0..16_000);
    let calm = collect_until(&db, "calm", |s| s.collector.queue_capacity > 10).collector.queue_capacity;
    // A reader keeps every version, so that chains grow.
    let reader = db.begin_read().expect("begin");
    for round in 0..4 {
        rows.put((0..16_000).filter(|key| key % 4 == round));
    }
    // Each row has two, whether or not blocks were being emptied when it began.
    assert!(db.chains(1000).stored_mean > 1.9);
    let alarmed = collect_until(&db, "alarmed", |s| s.collector.queue_capacity <= calm / 8);
    drop(reader);
    // And back again, once the versions are gone.
    let again = collect_until(&db, "calm again", |s| s.collector.queue_capacity > calm / 2);
    assert!(again.collector.blocks_reclaimed > alarmed.collector.blocks_reclaimed + 50);
    // Some may wait, since there is no hurry any more.
    collect_until(&db, "nothing is half done", |s| s.collector.frozen_blocks == 0);
    rows.check();
}

#[test]
fn adaptive_pacing_lets_less_wait_as_space_runs_out() {
    let gc = GcOptions { queue_share: 0.5, pacing: Pacing::Adaptive, theta: 0.9, ..gc() };
    let db = open(options().block_slots(1920).max_bytes(60 * MB).gc(gc));
    let table = big_table(&db);
    put_big(&db, &table, 0..14_000);
    let calm = collect_until(&db, "calm", |s| s.collector.queue_capacity > 3).collector.queue_capacity;
    // New rows only: only live data grows.
    put_big(&db, &table, 14_000..40_000);
    let stats = collect_until(&db, "alarmed", |s| s.collector.queue_capacity <= calm / 2);
    assert_eq!(stats.collector.blocks_reclaimed, 0, "{stats:#?}");
}

/// The collector never follows a chain, whatever it does.
#[test]
fn no_version_is_reached_by_following_a_chain() {
    let db = open(options());
    let mut rows = Rows::filled(&db, 0..320);
    let reader = db.begin_read().expect("begin");
    for round in 0..20 {
        rows.put((0..320).filter(|key| key % 7 != round % 7));
        rows.delete((0..320).filter(|key| key % 40 == round));
    }
    drop(reader);
    let stats = settle(&db).collector;
    assert!(stats.blocks_reclaimed > 100 && stats.survivors_relocated > 20, "{stats:#?}");
    assert_eq!(stats.versions_traversed, 0);
}
