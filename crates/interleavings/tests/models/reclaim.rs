//! Blocks are emptied, freed and reused while other threads read them.

use std::sync::Arc;

use pantile::Isolation;
use pantile_base::sync::model::explore;
use pantile_base::sync::{plain_access, thread};
use pantile_base::{TableId, Timestamp, TupleId};
use pantile_interleavings::Model;
use pantile_media::{DramMedium, MapOptions, Medium};
use pantile_store::{BlockRef, ContentFlags, KeepLinks, NewContent, Store, StoreOptions, Urgency};

use crate::support::{Small, at, get, join, version};

pub const MODELS: &[Model] = &[
    Model { name: "free_against_walk", rounds: 300, scale: 11, run: free_against_walk },
    Model { name: "free_against_borrowed_row", rounds: 200, scale: 11, run: free_against_borrowed_row },
    Model { name: "free_against_statements", rounds: 400, scale: 11, run: free_against_statements },
    Model { name: "free_against_pauses", rounds: 400, scale: 11, run: free_against_pauses },
    Model { name: "reuse_against_walk", rounds: 4_000, scale: 10, run: reuse_against_walk },
    Model { name: "freeze_against_freeze", rounds: 1_000, scale: 10, run: freeze_against_freeze },
    Model { name: "unlink_against_walk", rounds: 200, scale: 11, run: unlink_against_walk },
    Model { name: "relocate_against_writer_and_reader", rounds: 1_500, scale: 10, run: relocate },
    Model { name: "queues_are_taken_over", rounds: 200, scale: 11, run: queues_are_taken_over },
];

/// Rounds of the collector after which a fully superseded block has been freed,
/// if no transaction prevents it.
const ENOUGH: u32 = 6;

/// I-11, pins (T6): a reader that has found a version that is too new can
/// continue from it, although its block may meanwhile be superseded, freed and
/// rewritten.
fn free_against_walk() {
    let small = Small::new(2);
    small.put_later(&[1], 1);
    small.put_later(&[2], 100);
    let reader = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
    small.put_later(&[1], 2);
    small.put_later(&[1], 3);
    small.collect(2);
    explore(|| {
        let reading = small.spawn(move |small| {
            for _ in 0..3 {
                assert_eq!(get(&reader, &small.table, 1).expect("get"), Some(1));
            }
            reader.rollback();
        });
        small.put_later(&[1], 4);
        small.put_later(&[1], 5);
        small.collect(ENOUGH);
        // The other row's versions take the freed blocks.
        (101..107).for_each(|n| small.put_later(&[2], n));
        join([reading]);
    });
    small.check(&[(1, 5), (2, 106)]);
}

/// I-3, I-11: a borrowed row keeps its bytes for as long as the transaction
/// that borrowed it runs, at every isolation level.
fn free_against_borrowed_row() {
    let small = Small::new(2);
    small.put_later(&[1], 1);
    small.put_later(&[2], 1);
    let kinds = [at(Isolation::Serializable).read_only(true), at(Isolation::Snapshot)];
    explore(|| {
        let readers = kinds.map(|kind| {
            small.spawn(move |small| {
                let reader = small.db.begin_with(kind).expect("begin");
                let row = reader.get(&small.table, &[1u64.into()]).expect("get").expect("a row");
                let seen = version(&row);
                (0..20).for_each(|_| plain_access());
                assert_eq!(version(&row), seen);
                assert_eq!(get(&reader, &small.table, 1).expect("get"), Some(seen));
            })
        });
        (2..4).for_each(|n| small.put_later(&[1, 2], n));
        small.collect(ENOUGH);
        (4..7).for_each(|n| small.put_later(&[1, 2], n));
        join(readers);
    });
    small.check(&[(1, 6), (2, 6)]);
}

/// The same for transactions that read by statement. They may see any version
/// that was the newest at some time since they began.
fn free_against_statements() {
    let small = Small::new(2);
    small.put_later(&[1, 2], 1);
    let reader = small.db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    (2..4).for_each(|n| small.put_later(&[1], n));
    explore(|| {
        let reading = small.spawn(move |small| {
            let row = reader.get(&small.table, &[1u64.into()]).expect("get").expect("a row");
            let seen = version(&row);
            (0..20).for_each(|_| plain_access());
            assert_eq!(version(&row), seen);
            let next = get(&reader, &small.table, 1).expect("get");
            assert!(next >= Some(seen), "version {next:?} after {seen}");
        });
        (4..6).for_each(|n| small.put_later(&[1], n));
        small.collect(ENOUGH);
        (6..9).for_each(|n| small.put_later(&[1, 2], n));
        join([reading]);
    });
    small.check(&[(1, 8), (2, 8)]);
}

/// The same from each statement on, where nothing is kept between them.
fn free_against_pauses() {
    let small = Small::new(2);
    small.put_later(&[1, 2], 1);
    let mut reader = small.db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
    (2..4).for_each(|n| small.put_later(&[1], n));
    explore(|| {
        let reading = small.spawn(move |small| {
            let mut before = Some(0);
            for _ in 0..3 {
                reader.end_statement();
                let row = reader.get(&small.table, &[1u64.into()]).expect("get").expect("a row");
                let seen = version(&row);
                (0..10).for_each(|_| plain_access());
                assert_eq!(version(&row), seen);
                assert!(Some(seen) >= before, "version {seen} after {before:?}");
                before = get(&reader, &small.table, 1).expect("get");
                assert!(before >= Some(seen), "version {before:?} after {seen}");
            }
        });
        (4..6).for_each(|n| small.put_later(&[1], n));
        small.collect(ENOUGH);
        (6..9).for_each(|n| small.put_later(&[1, 2], n));
        join([reading]);
    });
    small.check(&[(1, 8), (2, 8)]);
}

/// Puts two rows into a block of their own.
fn put_two(store: &Store, table: u32, at: u64) -> Vec<pantile_base::Address> {
    let at = Timestamp::from_raw(at);
    let rows = (0..2).map(|tuple| NewContent {
        table: TableId(table),
        tuple: TupleId(tuple),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: at,
        transaction_contents: 2,
        row: b"some row",
    });
    let mut addresses = Vec::new();
    let appended = store.append(0, Urgency::Write, rows, || at, &mut addresses).expect("room");
    appended.persist().expect("durable");
    addresses
}

/// A block is released, freed and used again while a walk looks whether it is in the generation that a link
/// names. The walk finds the link that is kept.
///
/// Found by a reader: the walk took what was written there since for a later generation of the same number.
fn reuse_against_walk() {
    let ts = Timestamp::from_raw;
    let medium = DramMedium::new(MapOptions { reserve_bytes: 1 << 26, max_bytes: None }).expect("memory");
    let options = StoreOptions { block_slots: 2, boot: 1, ..StoreOptions::default() };
    let store = Arc::new(Store::open(medium as Arc<dyn Medium>, options, 1).expect("open"));
    let (oldest, newest) = (put_two(&store, 21, 1000)[0], put_two(&store, 22, 1002)[0]);
    let both = put_two(&store, 20, 1001);
    let middle = both[0];
    store.set_link(middle, oldest, ts(1000));
    store.set_link(newest, middle, ts(1001));
    let block = store.block_of(middle).expect("in use");
    both.iter().for_each(|address| _ = store.supersede(*address, ts(1002)));
    store.record_state(store.sample(|| ts(2000)), &[]).expect("a record");
    assert!(store.freeze(block).expect("no failure"));
    explore(|| {
        let walking = {
            let store = Arc::clone(&store);
            thread::spawn(move || {
                let link = store.link(newest).expect("a link");
                let older = store.older(link, ts(1002)).map(|link| link.address);
                assert_eq!(older, Some(oldest), "the chain is cut");
            })
        };
        let keep = KeepLinks { until: ts(2000), instead: None, joins: false, moved: &[] };
        drop(store.release(block, None, Some(keep)).expect("no failure").expect("released"));
        store.medium().fence().expect("no failure");
        store.free(block, ts(2001));
        assert!((3000..3002).any(|at| put_two(&store, 20, at)[0] == middle), "it is used again");
        walking.join().expect("no panic");
    });
}

/// Found by a reader: several writers that find no room choose the same blocks. One of them freezes a block,
/// and one releases it.
fn freeze_against_freeze() {
    let medium = DramMedium::new(MapOptions { reserve_bytes: 1 << 26, max_bytes: None }).expect("memory");
    let options = StoreOptions { block_slots: 2, boot: 1, ..StoreOptions::default() };
    let store = Arc::new(Store::open(medium as Arc<dyn Medium>, options, 1).expect("open"));
    let ts = Timestamp::from_raw;
    let rows = (0..2).map(|tuple| NewContent {
        table: TableId(20),
        tuple: TupleId(tuple),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: ts(1_000),
        transaction_contents: 2,
        row: b"some row",
    });
    let mut addresses = Vec::new();
    let appended = store.append(0, Urgency::Write, rows, || ts(1_000), &mut addresses).expect("room");
    appended.persist().expect("durable");
    addresses.iter().for_each(|address| _ = store.supersede(*address, ts(2_000)));
    let block = store.block_of(addresses[0]).expect("in use");
    explore(|| {
        let both = |run: fn(&Store, BlockRef) -> bool| {
            let threads = [(); 2].map(|()| {
                let store = Arc::clone(&store);
                thread::spawn(move || u32::from(run(&store, block)))
            });
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum::<u32>()
        };
        assert_eq!(both(|store, block| store.freeze(block).expect("freeze")), 1);
        store.record_state(store.sample(|| ts(2_000)), &[]).expect("record");
        assert_eq!(both(|store, block| store.release(block, None, None).expect("release").is_ok()), 1);
    });
}

/// I-13 (T13): chains lead through freed blocks, by their kept tiles and the
/// generations in the links.
fn unlink_against_walk() {
    let small = Small::new(2);
    small.put_later(&[1], 1);
    let first = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
    small.put_later(&[1], 2);
    small.put_later(&[1], 3);
    explore(|| {
        let walking = small.spawn(move |small| {
            let second = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
            let seen = get(&second, &small.table, 1).expect("get");
            for _ in 0..3 {
                assert_eq!(get(&first, &small.table, 1).expect("get"), Some(1));
                assert_eq!(get(&second, &small.table, 1).expect("get"), seen);
            }
            first.rollback();
            assert_eq!(get(&second, &small.table, 1).expect("get"), seen);
        });
        for n in 2..5 {
            small.put_later(&[1], 2 * n);
            small.put_later(&[1], 2 * n + 1);
            small.collect(3);
        }
        join([walking]);
    });
    small.check(&[(1, 9)]);
}

/// I-1: a collector moves an anchor to a copy, or a writer changes it. Readers
/// find the newest version, whichever address the anchor holds.
fn relocate() {
    let small = Small::new(3);
    small.put_later(&[1, 2, 3], 1);
    small.put_later(&[2, 3, 4], 2);
    // The next round relocates the survivor.
    small.collect(2);
    explore(|| {
        let collecting = small.spawn(|small| small.collect(2));
        let reading = small.spawn(|small| {
            let mut last = 1;
            for _ in 0..2 {
                let reader = small.db.begin_with(at(Isolation::Serializable).read_only(true)).expect("begin");
                let seen = get(&reader, &small.table, 1).expect("get").expect("a row");
                assert!(seen >= last, "version {seen} after {last}");
                last = seen;
            }
        });
        (3..5).for_each(|n| small.put(&[1], n));
        join([collecting, reading]);
    });
    small.check(&[(1, 4), (2, 2), (3, 2), (4, 2)]);
}

/// T18: running threads work off the queues of stopped threads, one at a time.
/// Nothing is freed twice or forgotten.
fn queues_are_taken_over() {
    let small = Small::new(2);
    (1..=4).for_each(|key| small.put_later(&[key], 1));
    explore(|| {
        let threads = [[1, 2], [3, 4]].map(|keys| {
            small.spawn(move |small| {
                (2..4).for_each(|n| small.put_later(&keys, n));
                small.collect(2);
            })
        });
        small.collect(3);
        join(threads);
    });
    small.collect(2 * ENOUGH);
    let waiting = small.db.stats().collector;
    let queued = waiting.queued_blocks + waiting.long_tx_blocks + waiting.frozen_blocks;
    assert!(small.reclaimed() > 0 && queued == 0, "{waiting:?}");
    small.check(&[(1, 3), (2, 3), (3, 3), (4, 3)]);
}
