//! Versions are removed from chains, and their slots are rewritten, while other
//! threads read them.

use pantile::Isolation;
use pantile_base::sync::model::explore;
use pantile_base::sync::plain_access;
use pantile_interleavings::Model;

use crate::support::{Small, at, get, join, version};

pub const MODELS: &[Model] = &[
    Model { name: "skip_against_walk", rounds: 300, scale: 11, run: skip_against_walk },
    Model { name: "cut_against_walk", rounds: 300, scale: 11, run: cut_against_walk },
    Model { name: "cut_against_prune", rounds: 200, scale: 11, run: cut_against_prune },
    Model { name: "recycle_against_borrowed_row", rounds: 200, scale: 11, run: recycle_against_borrowed_row },
];

/// Rounds of the collector after which a version that nobody sees has been
/// freed, if no transaction prevents it.
const ENOUGH: u32 = 4;

/// I-11, pins (T6): versions are removed from the middle of a chain while an
/// old reader walks it, and their slots are reused.
fn skip_against_walk() {
    let small = Small::beside(pantile_rivals::STEAM, 2);
    small.put_later(&[1], 1);
    // A reader that strays into the other row's chain finds a different number.
    small.put_later(&[2], 100);
    let reader = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
    (2..4).for_each(|n| small.put_later(&[1], n));
    explore(|| {
        let reading = small.spawn(move |small| {
            for _ in 0..3 {
                assert_eq!(get(&reader, &small.table, 1).expect("get"), Some(1));
            }
            reader.rollback();
        });
        (4..7).for_each(|n| small.put_later(&[1], n));
        small.collect(ENOUGH);
        (7..11).for_each(|n| small.put_later(&[2], n));
        join([reading]);
    });
    small.collect(ENOUGH);
    assert!(small.versions_reclaimed() > 0);
    small.check(&[(1, 6), (2, 10)]);
}

/// The same at the end of chains: readers begin and end while the versions
/// below the watermark are cut off.
fn cut_against_walk() {
    let small = Small::beside(pantile_rivals::N2DB, 2);
    (1..4).for_each(|n| small.put_later(&[1, 2], n));
    explore(|| {
        let reading = small.spawn(move |small| {
            let mut last = 3;
            for _ in 0..2 {
                let reader = small.db.begin_with(at(Isolation::Snapshot)).expect("begin");
                let seen = get(&reader, &small.table, 1).expect("get").expect("a row");
                assert!(seen >= last, "version {seen} after {last}");
                assert_eq!(get(&reader, &small.table, 2).expect("get"), Some(seen));
                assert_eq!(get(&reader, &small.table, 1).expect("get"), Some(seen));
                last = seen;
            }
        });
        (4..7).for_each(|n| small.put_later(&[1, 2], n));
        small.collect(ENOUGH);
        (7..9).for_each(|n| small.put_later(&[1, 2], n));
        join([reading]);
    });
    small.collect(ENOUGH);
    assert!(small.versions_reclaimed() > 0);
    small.check(&[(1, 8), (2, 8)]);
}

/// A writer prunes the chain of its tuple while other threads cut off the
/// versions in their lists. A version must be retired once, or its slot would
/// be freed twice.
fn cut_against_prune() {
    let small = Small::beside(pantile_rivals::STEAM, 2);
    (1..4).for_each(|n| small.put_later(&[1, 2], n));
    explore(|| {
        let collecting = small.spawn(|small| small.collect(ENOUGH));
        let writing = small.spawn(|small| (4..7).for_each(|n| small.put_later(&[2], n)));
        (4..7).for_each(|n| small.put_later(&[1], n));
        join([collecting, writing]);
    });
    small.collect(2 * ENOUGH);
    let waiting = small.db.stats().collector;
    assert_eq!(waiting.waiting_versions, 0, "{waiting:?}");
    small.check(&[(1, 6), (2, 6)]);
}

/// I-3, I-11: a borrowed row keeps its bytes for as long as the transaction
/// that borrowed it runs, at every isolation level.
fn recycle_against_borrowed_row() {
    let small = Small::beside(pantile_rivals::HYPER, 2);
    small.put_later(&[1, 2], 1);
    let kinds =
        [at(Isolation::Serializable).read_only(true), at(Isolation::Snapshot), at(Isolation::ReadCommitted)];
    explore(|| {
        let readers = kinds.map(|kind| {
            small.spawn(move |small| {
                let reader = small.db.begin_with(kind).expect("begin");
                let row = reader.get(&small.table, &[1u64.into()]).expect("get").expect("a row");
                let seen = version(&row);
                (0..20).for_each(|_| plain_access());
                assert_eq!(version(&row), seen);
            })
        });
        (2..4).for_each(|n| small.put_later(&[1, 2], n));
        small.collect(ENOUGH);
        (4..7).for_each(|n| small.put_later(&[1, 2], n));
        join(readers);
    });
    small.collect(ENOUGH);
    assert!(small.versions_reclaimed() > 0);
    small.check(&[(1, 6), (2, 6)]);
}
