//! Several threads at once.

use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use crate::common::{Key, Model, as_slice, check, keys_of, new_index, scan_all, steps};
use pantile_index::{Batch, Direction, Finger, Index, Insert, KeyForm, NodeArena, Scan};
use pantile_testkit::{Random, SaysDone, mix};

/// A key of one word, of two that end with the value, or of three words with a common prefix.
fn key(words: usize, i: u64) -> Key {
    match words {
        1 => vec![mix(i)],
        2 => vec![mix(i) % 100, i],
        _ => vec![i % 3, mix(i), i],
    }
}

/// Each thread owns every fourth key and knows exactly which of them are
/// present.
#[test]
fn disjoint_keys_belong_to_their_thread() {
    for words in [1, 2, 3] {
        let (index, mut models) = (new_index(keys_of(words)), Vec::new());
        thread::scope(|scope| {
            let index = &index;
            let own = |t: u64| move || run_own(index, words, t);
            let threads: Vec<_> = (0..4).map(|t| scope.spawn(own(t))).collect();
            models.extend(threads.into_iter().map(|thread| thread.join().unwrap()));
        });
        check(&index, &models.into_iter().flatten().collect());
    }
}

fn run_own(index: &Index, words: usize, thread: u64) -> Model {
    let (mut rng, mut model, finger) = (Random::new(thread, 0), Model::new(), Finger::default());
    for round in [7, 1, 8, 3] {
        for _ in 0..steps(20_000) {
            let key = key(words, rng.below(3000) * 4 + thread);
            let present = model.get(&key).copied();
            assert_eq!(index.get(&key, None), present);
            let value = if words == 2 { key[1] } else { rng.word() };
            if rng.below(10) < round {
                let wanted = present.map_or(Insert::Inserted, Insert::Exists);
                assert_eq!(index.insert_near(&finger, &key, value, 0), wanted);
                model.entry(key).or_insert(value);
            } else if let Some(present) = present {
                assert!(index.remove(&key, present, || 0));
                model.remove(&key);
            }
        }
    }
    model
}

/// Threads compete for a few keys. Every successful insert and removal is
/// counted, and the counts must add up.
#[test]
fn overlapping_keys_add_up() {
    for words in [1, 2, 3] {
        let (index, balance) = (new_index(keys_of(words)), AtomicU64::new(0));
        thread::scope(|scope| {
            for t in 0..4 {
                let (index, balance) = (&index, &balance);
                scope.spawn(move || {
                    let mut rng = Random::new(t, 0);
                    for _ in 0..steps(40_000) {
                        let i = rng.below(500);
                        if rng.below(2) == 0 {
                            let inserted = index.insert(&key(words, i), i, 0) == Insert::Inserted;
                            balance.fetch_add(u64::from(inserted), Ordering::Relaxed);
                        } else if index.remove(&key(words, i), i, || 0) {
                            balance.fetch_sub(1, Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(index.len() as u64, balance.into_inner());
    }
}

/// Every get and every scan finds the keys that stay, in order and exactly
/// once, while their neighbours are inserted and removed.
#[test]
fn what_stays_is_always_found() {
    for words in [1, 2, 3] {
        let (index, stop) = (new_index(keys_of(words)), AtomicBool::new(false));
        let n = steps(4000) as u64;
        let make = |i: u64| match words {
            1 => vec![i],
            2 => vec![i >> 5, i],
            _ => vec![i >> 9, 5, i],
        };
        (0..n).filter(|i| i % 5 == 0).for_each(|i| _ = index.insert(&make(i), i, 0));
        thread::scope(|scope| {
            let over = SaysDone(&stop);
            for t in 0..2 {
                let (index, stop, make) = (&index, &stop, &make);
                scope.spawn(move || churn(index, stop, n, t, make));
            }
            for round in 0..steps(100) {
                check_stayers(&index, n, round, &make);
            }
            drop(over);
        });
    }
}

/// Fills and empties the gaps between the keys that stay, again and again.
fn churn(index: &Index, stop: &AtomicBool, n: u64, thread: u64, make: &dyn Fn(u64) -> Key) {
    let mine = |i: &u64| !i.is_multiple_of(5) && i % 2 == thread;
    while !stop.load(Ordering::Relaxed) {
        for i in (0..n).filter(mine) {
            assert_eq!(index.insert(&make(i), i, 0), Insert::Inserted);
        }
        for i in (0..n).filter(mine) {
            assert!(index.remove(&make(i), i, || 0));
        }
    }
}

fn check_stayers(index: &Index, n: u64, round: usize, make: &dyn Fn(u64) -> Key) {
    let direction = if round.is_multiple_of(2) { Direction::Forward } else { Direction::Backward };
    let limit = if round.is_multiple_of(3) { 7 } else { usize::MAX };
    let mut found = scan_all(index, &Bound::Unbounded, &Bound::Unbounded, direction, limit, None);
    if direction == Direction::Backward {
        found.reverse();
    }
    assert!(found.is_sorted_by(|a, b| a.0 < b.0), "keys are in order, and none appears twice");
    let stayers = found.iter().filter(|(_, i)| i % 5 == 0).map(|(_, i)| *i);
    assert!(stayers.eq((0..n).filter(|i| i % 5 == 0)), "all keys that stay are found");
    for i in (0..n).filter(|i| i % 5 == 0) {
        assert_eq!(index.get(&make(i), None), Some(i));
    }
    let keys: Vec<_> = (0..n).filter(|i| i % 5 == 0).map(make).collect();
    let (wanted, mut values) = (keys.iter().map(|key| &key[..]).collect::<Vec<_>>(), vec![None; keys.len()]);
    index.get_many(&wanted, &mut values);
    assert!(values.into_iter().eq((0..n).filter(|i| i % 5 == 0).map(Some)), "side by side, too");
}

/// A reader marks and scans at a timestamp. A writer with an older timestamp
/// inserts. Either the reader sees the key or the writer is refused.
#[test]
fn no_phantoms() {
    for words in [1, 2, 3] {
        let rounds = if cfg!(miri) { 2 } else { 400 };
        for round in 0..rounds {
            let index = new_index(keys_of(words));
            let make = |i: u64| match words {
                1 => vec![i],
                2 => vec![i / 20, i],
                _ => vec![1, i, 2],
            };
            (0..300).filter(|i| i % 3 == 0).for_each(|i| _ = index.insert(&make(i), i, 0));
            let inserted = AtomicU64::new(0);
            let seen = thread::scope(|scope| {
                let writer = scope.spawn(|| {
                    let mut done = Vec::new();
                    for i in (0..300).filter(|i| i % 3 == 1) {
                        let i = (i + round * 7) % 300;
                        if index.insert(&make(i), i, 5) == Insert::Inserted {
                            done.push(i);
                            inserted.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    done
                });
                while inserted.load(Ordering::Relaxed) < round % 90 && !writer.is_finished() {
                    std::hint::spin_loop();
                }
                let seen = read_all(&index, round, &make);
                (seen, writer.join().unwrap())
            });
            let (seen, done) = seen;
            for i in done {
                assert!(seen.contains(&i), "round {round}: key {i} appeared behind the reader");
            }
        }
    }
}

/// Reads the whole range at timestamp 9, by a scan or by a get of every key.
fn read_all(index: &Index, round: u64, make: &dyn Fn(u64) -> Key) -> Vec<u64> {
    let all = &Bound::Unbounded;
    let scan = |direction, limit| scan_all(index, all, all, direction, limit, Some(9));
    match round % 4 {
        0 => scan(Direction::Forward, usize::MAX).into_iter().map(|(_, i)| i).collect(),
        1 => scan(Direction::Backward, usize::MAX).into_iter().map(|(_, i)| i).collect(),
        2 => scan(Direction::Forward, 5).into_iter().map(|(_, i)| i).collect(),
        _ => (0..300).filter_map(|i| index.get(&make(i), Some(9))).collect(),
    }
}

/// Indexes that keep exchanging their nodes, with those of other layouts as well.
#[test]
fn reused_nodes_do_not_confuse_readers() {
    let arena = Arc::new(NodeArena::new());
    let kinds = [KeyForm::UpTo(1), KeyForm::UpTo(2), KeyForm::Pairs];
    let indexes = [0, 0, 1, 1, 2, 2].map(|kind| Index::new(kinds[kind], &arena));
    let make = |t: usize, i: u64| match kinds[t / 2] {
        KeyForm::UpTo(words) => vec![i; words],
        KeyForm::Pairs => vec![i, i ^ t as u64],
    };
    let (stop, n) = (AtomicBool::new(false), steps(2000) as u64);
    thread::scope(|scope| {
        for (t, index) in indexes.iter().enumerate() {
            let (make, stop) = (&make, &stop);
            scope.spawn(move || {
                let over = SaysDone(stop);
                for _ in 0..steps(60) {
                    (0..n).for_each(|i| _ = index.insert(&make(t, i), i ^ t as u64, 0));
                    (0..n).for_each(|i| assert!(index.remove(&make(t, i), i ^ t as u64, || 0)));
                }
                drop(over);
            });
        }
        let (mut scan, mut batch) = (Scan::default(), Batch::new());
        while !stop.load(Ordering::Relaxed) {
            for (t, index) in indexes.iter().enumerate() {
                scan.reset(as_slice(&Bound::Unbounded), Bound::Unbounded, Direction::Forward);
                while scan.next_batch(index, None, &mut batch) {
                    assert!(batch.iter().all(|(key, value)| value == key[0] ^ t as u64));
                }
                let keys: Vec<_> = (0..n).step_by(7).map(|i| make(t, i)).collect();
                let wanted: Vec<_> = keys.iter().map(|key| &key[..]).collect();
                let mut values = vec![None; keys.len()];
                index.get_many(&wanted, &mut values);
                let is_right =
                    |(key, value): (&Key, &Option<u64>)| value.is_none_or(|v| v == key[0] ^ t as u64);
                assert!(keys.iter().zip(&values).all(is_right));
            }
        }
    });
    drop(indexes);
    assert_eq!(arena.used_bytes(), 0);
}
