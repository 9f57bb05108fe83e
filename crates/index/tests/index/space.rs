//! How much memory indexes take, and that they return it.

use std::ops::Bound;
use std::sync::Arc;

use crate::common::{Key, keys_of, new_index, scan_all, steps};
use pantile_index::{Direction, Index, Insert, NodeArena};
use pantile_testkit::Random;

fn make(words: usize, i: u64) -> Key {
    match words {
        1 => vec![i],
        2 => vec![i >> 5, i],
        _ => vec![i >> 32, i, i],
    }
}

fn fill(index: &Index, words: usize, keys: impl Iterator<Item = u64>) {
    keys.for_each(|i| assert_eq!(index.insert(&make(words, i), i, 0), Insert::Inserted));
}

/// Many inserts at the right end and removals at the left end.
#[test]
fn a_queue_does_not_grow() {
    for words in [1, 2, 3] {
        let (index, length, n) = (new_index(keys_of(words)), 1000, steps(300_000) as u64);
        fill(&index, words, 0..length);
        let first = index.bytes();
        for i in 0..n {
            fill(&index, words, [i + length].into_iter());
            assert!(index.remove(&make(words, i), i, || 0));
            assert!(index.bytes() <= 2 * first + 8 * 4160, "{} after {i}", index.bytes());
        }
        assert_eq!(index.len() as u64, length);
    }
}

/// Many queues side by side in one index, such as the new orders of each
/// district.
#[test]
fn queues_in_the_middle_do_not_grow() {
    let (index, length, n) = (new_index(2), 100, steps(20_000) as u64);
    let key = |queue, i| vec![queue, i];
    let mut most = 0;
    for i in 0..n {
        for queue in 0..10 {
            assert_eq!(index.insert(&key(queue, i), i, 0), Insert::Inserted);
            if i >= length {
                assert!(index.remove(&key(queue, i - length), i - length, || 0));
            }
        }
        most = most.max(if i == 2 * length { index.bytes() } else { most });
        assert!(i < 2 * length || index.bytes() <= 2 * most, "{} after {i}", index.bytes());
    }
}

#[test]
fn an_emptied_index_is_small_again() {
    for words in [1, 2, 3] {
        for order in [|i: u64, _| i, |i, n| n - 1 - i, |i, n| (i * 7919) % n] {
            let (index, n) = (new_index(keys_of(words)), steps(30_001) as u64);
            let empty = index.bytes();
            fill(&index, words, 0..n);
            (0..n).map(|i| order(i, n)).for_each(|i| assert!(index.remove(&make(words, i), i, || 0)));
            assert_eq!((index.len(), index.bytes()), (0, empty));
            let all = Bound::Unbounded;
            assert!(scan_all(&index, &all, &all, Direction::Forward, 9, None).is_empty());
        }
    }
}

/// In whatever order most keys go, what is left lies together.
#[test]
fn a_purged_index_is_small() {
    for (most_words, words) in [(1, 1), (2, 2), (3, 3), (256, 3)] {
        for order in [|i: u64, _| i, |i, n| n - 1 - i, |i, n| (i * 7919) % n] {
            let (index, n) = (new_index(keys_of(most_words)), steps(64_000) as u64);
            fill(&index, words, 0..n);
            let full = index.bytes();
            for i in (0..n).map(|i| order(i, n)).filter(|i| i % 64 != 0) {
                assert!(index.remove(&make(words, i), i, || 0));
            }
            assert_eq!(index.len() as u64, n.div_ceil(64));
            assert!(cfg!(miri) || index.bytes() < full / 5, "{} of {full} bytes", index.bytes());
        }
    }
}

#[test]
fn ordered_inserts_fill_their_leaves() {
    let n = steps(100_000) as u64;
    for (words, most) in [(1, 18), (2, 18), (3, 40)] {
        for descending in [false, true] {
            let index = new_index(keys_of(words));
            fill(&index, words, (0..n).map(|i| if descending { n - i } else { i }));
            let per_key = index.bytes() / n;
            assert!(cfg!(miri) || per_key <= most, "{words} words: {per_key} bytes per key");
        }
    }
}

/// Several ascending streams that grow in the middle of the key space.
#[test]
fn ordered_streams_fill_their_leaves() {
    let (index, n) = (new_index(1), steps(20_000) as u64);
    for i in 0..n {
        fill(&index, 1, (0..10).map(|stream| stream << 40 | i));
    }
    let per_key = index.bytes() / (10 * n);
    assert!(cfg!(miri) || per_key <= 20, "{per_key} bytes per key");
}

#[test]
fn random_inserts_fill_two_thirds() {
    let (index, n, mut rng) = (new_index(1), steps(100_000) as u64, Random::new(1, 0));
    fill(&index, 1, (0..n).map(|_| rng.word()));
    assert!(cfg!(miri) || index.bytes() / n <= 27, "{} bytes per key", index.bytes() / n);
}

#[test]
fn an_empty_database_is_small() {
    let arena = Arc::new(NodeArena::new());
    assert_eq!(arena.mapped_bytes(), 0);
    let indexes: Vec<_> = (0..40).map(|_| Index::new(1, &arena)).collect();
    assert_eq!(arena.mapped_bytes(), 64 << 10);
    let used: u64 = indexes.iter().map(Index::bytes).sum();
    assert_eq!(arena.used_bytes(), used);
    drop(indexes);
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn dropped_indexes_leave_their_nodes_to_others() {
    let arena = Arc::new(NodeArena::new());
    let mut mapped = 0;
    for round in 0..5 {
        for words in [1, 2, 3] {
            let index = Index::new(keys_of(words), &arena);
            fill(&index, words, 0..steps(20_000) as u64);
        }
        if round == 0 {
            mapped = arena.mapped_bytes();
        }
        assert_eq!((arena.mapped_bytes(), arena.used_bytes()), (mapped, 0));
    }
}

/// Also one that is given up: it took nodes ahead.
#[test]
fn a_bulk_load_keeps_the_nodes_of_its_tree_only() {
    let arena = Arc::new(NodeArena::new());
    for words in [1, 2, 3] {
        let n = steps(50_000) as u64;
        let load = |keys: &mut dyn Iterator<Item = u64>| {
            Index::bulk_load(keys_of(words), &arena, keys.map(|key| (vec![key; words], key)), 0.9)
        };
        let index = load(&mut (0..n)).expect("keys in order");
        assert_eq!(arena.used_bytes(), index.bytes());
        assert!(load(&mut (0..n).chain([0])).is_err());
        assert_eq!(arena.used_bytes(), index.bytes());
        drop(index);
        assert_eq!(arena.used_bytes(), 0);
    }
}
