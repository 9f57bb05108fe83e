//! Concurrent transactions: what they see, and which waits for which.

use std::sync::Arc;

use pantile::{Conflict, Error, Isolation, Transaction, TransactionOptions};
use pantile_base::limits::WRITER_SLOTS;
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_base::sync::model::explore;
use pantile_base::sync::thread::JoinHandle;
use pantile_interleavings::Model;

use crate::support::{Small, all, at, get, join, put, unless_conflict};

pub const MODELS: &[Model] = &[
    Model { name: "install_against_read", rounds: 500, scale: 9, run: install_against_read },
    Model { name: "late_install_against_read", rounds: 500, scale: 9, run: late_install_against_read },
    Model { name: "acknowledged_is_seen", rounds: 500, scale: 9, run: acknowledged_is_seen },
    Model { name: "commit_against_snapshot", rounds: 500, scale: 9, run: commit_against_snapshot },
    Model { name: "no_update_is_lost", rounds: 500, scale: 9, run: no_update_is_lost },
    Model { name: "no_write_skew", rounds: 500, scale: 9, run: no_write_skew },
    Model { name: "no_phantoms", rounds: 500, scale: 9, run: no_phantoms },
    Model { name: "unique_keys", rounds: 500, scale: 9, run: unique_keys },
    Model { name: "circles_of_waits_end", rounds: 500, scale: 9, run: circles_of_waits_end },
    Model { name: "beginning_waits_for_a_slot", rounds: 500, scale: 9, run: beginning_waits_for_a_slot },
];

fn readers() -> [TransactionOptions; 4] {
    [
        at(Isolation::Serializable).read_only(true),
        at(Isolation::Serializable),
        at(Isolation::Snapshot),
        TransactionOptions::new().safe_snapshot(),
    ]
}

/// Sees both rows as one transaction left them, twice.
fn reads_pairs(small: &Small, kind: TransactionOptions) {
    let reader = small.db.begin_with(kind).expect("begin");
    let pair = || Ok((get(&reader, &small.table, 1)?, get(&reader, &small.table, 2)?));
    let Some(seen) = unless_conflict(pair()) else { return };
    assert_eq!(seen.0, seen.1, "{kind:?}");
    assert_eq!(unless_conflict(pair()).unwrap_or(seen), seen, "{kind:?} reads the same again");
}

fn install(level: Isolation) {
    let small = Small::new(4);
    small.put(&[1, 2], 1);
    explore(|| {
        let reading = [0, 2].map(|half| {
            small.spawn(move |small| {
                readers()[half..half + 2].iter().for_each(|&kind| reads_pairs(&small, kind))
            })
        });
        for n in 2..4 {
            let mut txn = small.db.begin_with(at(level)).expect("begin");
            let done = [1, 2].into_iter().try_for_each(|key| put(&mut txn, &small.table, key, n));
            match unless_conflict(done) {
                Some(()) => drop(txn.commit().expect("commit")),
                None => txn.rollback(),
            }
        }
        join(reading);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    small.check(&rows);
}

/// A reader sees all of a transaction or nothing, and always the same.
fn install_against_read() {
    install(Isolation::Serializable);
}

/// The same with writers that draw their timestamp when they commit (I-6).
fn late_install_against_read() {
    install(Isolation::Snapshot);
}

/// A transaction that begins after a commit was acknowledged sees it. A safe
/// snapshot never shows less than an older one did.
fn acknowledged_is_seen() {
    let small = Small::new(4);
    small.put(&[1, 2], 1);
    let told = Arc::new(AtomicBool::new(false));
    explore(|| {
        let reading = {
            let told = Arc::clone(&told);
            small.spawn(move |small| {
                for kind in &readers()[..3] {
                    let known = told.load(Ordering::SeqCst);
                    let reader = small.db.begin_with(*kind).expect("begin");
                    let Some(seen) = unless_conflict(get(&reader, &small.table, 1)) else { continue };
                    assert!(
                        !known || seen == Some(2),
                        "{kind:?} sees version {seen:?} after version 2 was acknowledged"
                    );
                }
            })
        };
        small.put(&[1, 2], 2);
        told.store(true, Ordering::SeqCst);
        join([reading]);
    });
    small.check(&[(1, 2), (2, 2)]);
}

/// Moves `n` from one row to the other, unless another transaction conflicts.
fn transfer(small: &Small, level: Isolation, from: u64, to: u64) {
    let move_one = || {
        let mut txn = small.db.begin_with(at(level)).expect("begin");
        let have = |txn: &Transaction, key| get(txn, &small.table, key).map(|n| n.expect("a row"));
        let (a, b) = (have(&txn, from)?, have(&txn, to)?);
        put(&mut txn, &small.table, from, a - 1)?;
        put(&mut txn, &small.table, to, b + 1)?;
        txn.commit()
    };
    unless_conflict(move_one());
}

/// Late writers announce where they will publish. So a snapshot taken
/// meanwhile, safe or not, sees all of a transfer or nothing (I-6).
fn commit_against_snapshot() {
    let small = Small::new(4);
    small.put(&[1, 2], 10);
    // Safe snapshots taken from here on are not older than this point.
    small.db.begin_safe_snapshot().expect("begin").rollback();
    explore(|| {
        let writing = [
            small.spawn(|small| transfer(&small, Isolation::Snapshot, 1, 2)),
            small.spawn(|small| transfer(&small, Isolation::Serializable, 2, 1)),
        ];
        for kind in readers() {
            let reader = small.db.begin_with(kind).expect("begin");
            let sum = || all(&reader, &small.table).map(|rows| rows.iter().map(|(_, n)| n).sum::<u64>());
            assert_eq!(unless_conflict(sum()).unwrap_or(20), 20, "{kind:?}");
            assert_eq!(unless_conflict(sum()).unwrap_or(20), 20, "{kind:?}");
        }
        join(writing);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert_eq!(rows[0].1 + rows[1].1, 20);
    small.check(&rows);
}

/// Every acknowledged increment counts, whatever the isolation levels.
fn no_update_is_lost() {
    let small = Small::new(4);
    small.put(&[1], 1);
    let increment = |small: &Small, level| -> u64 {
        let once = || {
            let mut txn = small.db.begin_with(at(level)).expect("begin");
            let n = get(&txn, &small.table, 1)?.expect("a row");
            put(&mut txn, &small.table, 1, n + 1)?;
            txn.commit()
        };
        u64::from(unless_conflict(once()).is_some())
    };
    let done = explore(|| {
        let levels = [Isolation::Snapshot, Isolation::Serializable];
        let threads = levels.map(|level| {
            let own = small.share();
            pantile_base::sync::thread::spawn(move || increment(&own, level))
        });
        let mine = increment(&small, Isolation::Serializable);
        mine + threads.into_iter().map(|t: JoinHandle<u64>| t.join().expect("no panic")).sum::<u64>()
    });
    small.check(&[(1, 1 + done)]);
}

/// I-5: if each of two transactions reads what the other writes, one fails.
fn no_write_skew() {
    let small = Small::new(4);
    small.put(&[1, 2], 1);
    let clear = |small: &Small, mine: u64, other: u64| {
        let once = || {
            let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
            if get(&txn, &small.table, other)?.expect("a row") == 1 {
                put(&mut txn, &small.table, mine, 0)?;
            }
            txn.commit()
        };
        unless_conflict(once());
    };
    explore(|| {
        let other = small.spawn(move |small| clear(&small, 1, 2));
        clear(&small, 2, 1);
        join([other]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.iter().any(|&(_, n)| n == 1), "{rows:?}");
    small.check(&rows);
}

/// I-5 for gaps (T8): if each of two transactions inserts what the other found
/// absent, by key or in a range, one fails.
fn no_phantoms() {
    let small = Small::new(4);
    small.put(&[5], 1);
    let enter = |small: &Small, mine: u64, other: u64, by_key: bool| {
        let once = || {
            let mut txn = small.db.begin_with(at(Isolation::Serializable)).expect("begin");
            let is_absent = if by_key {
                get(&txn, &small.table, other)?.is_none()
            } else {
                all(&txn, &small.table)?.iter().all(|&(key, _)| key != other)
            };
            if is_absent {
                put(&mut txn, &small.table, mine, 1)?;
            }
            txn.commit()
        };
        unless_conflict(once());
    };
    explore(|| {
        let other = small.spawn(move |small| enter(&small, 3, 7, false));
        enter(&small, 7, 3, true);
        join([other]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(rows.len() <= 2, "{rows:?}");
    small.check(&rows);
}

/// T10: if two transactions insert the same key, one is refused.
fn unique_keys() {
    let small = Small::new(4);
    let insert = |small: &Small, level, n: u64| -> u64 {
        let once = || {
            let mut txn = small.db.begin_with(at(level)).expect("begin");
            let bytes = vec![(31 + n * 7) as u8; 100];
            txn.insert(&small.table, &[1u64.into(), n.into(), pantile::Value::Bytes(&bytes)])?;
            txn.commit()
        };
        match once() {
            Ok(_) => 1,
            Err(Error::Conflict { .. } | Error::DuplicateKey { .. }) => 0,
            Err(error) => panic!("{error}"),
        }
    };
    let done: u64 = explore(|| {
        let levels = [Isolation::Snapshot, Isolation::ReadCommitted];
        let threads = levels.map(|level| {
            let own = small.share();
            pantile_base::sync::thread::spawn(move || insert(&own, level, 2))
        });
        let mine = insert(&small, Isolation::Serializable, 1);
        mine + threads.into_iter().map(|t: JoinHandle<u64>| t.join().expect("no panic")).sum::<u64>()
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert!(done <= 1 && rows.len() as u64 == done, "{done} inserted, {rows:?}");
    small.check(&rows);
}

/// While every slot that a writer can have is taken, those who begin wait until others have ended.
fn beginning_waits_for_a_slot() {
    let small = Small::new(4);
    let begin = |small: &Small| small.db.begin_with(at(Isolation::Serializable)).expect("begin");
    let open: Vec<_> = (0..WRITER_SLOTS).map(|_| begin(&small)).collect();
    explore(|| {
        let waiting = [1, 2].map(|key| {
            small.spawn(move |small| {
                let mut txn = begin(&small);
                put(&mut txn, &small.table, key, 1).expect("put");
                txn.commit().expect("commit");
            })
        });
        drop(open);
        join(waiting);
    });
    small.check(&[(1, 1), (2, 1)]);
}

/// Every waiter is woken. Of transactions that wait in a cycle, at least one is
/// refused. Time limits, which end no wait in a model, are not needed.
fn circles_of_waits_end() {
    let small = Small::new(4);
    small.put(&[1, 2], 1);
    let lock = |small: &Small, keys: [u64; 2]| {
        let mut txn = small.db.begin_with(at(Isolation::ReadCommitted)).expect("begin");
        let done = keys.into_iter().try_for_each(|key| put(&mut txn, &small.table, key, 2));
        match done {
            Ok(()) => drop(txn.commit().expect("commit")),
            Err(Error::Conflict { conflict: Conflict::Deadlock, .. }) => txn.rollback(),
            Err(error) => panic!("{error}"),
        }
    };
    explore(|| {
        let other = small.spawn(move |small| lock(&small, [1, 2]));
        lock(&small, [2, 1]);
        join([other]);
    });
    let rows = all(&small.db.begin_read().expect("begin"), &small.table).expect("rows");
    assert_eq!(rows[0].1, rows[1].1, "all or nothing");
    small.check(&rows);
}
