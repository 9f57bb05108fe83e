//! Read marks: what they forbid, and that they survive splits and merges.

use std::ops::Bound;

use crate::common::{Key, keys_of, new_index, scan_all, steps};
use pantile_index::{Batch, Direction, Index, Insert, KeyForm, Scan};

fn make(words: usize, i: u64) -> Key {
    match words {
        1 => vec![i],
        2 => vec![i / 16, i],
        _ => vec![3, i, 4],
    }
}

fn insert(index: &Index, words: usize, i: u64, ts: u64) -> Insert {
    index.insert(&make(words, i), i, ts)
}

fn filled(words: usize, keys: impl IntoIterator<Item = u64>) -> Index {
    let index = new_index(keys_of(words));
    keys.into_iter().for_each(|i| assert_eq!(insert(&index, words, i, 1), Insert::Inserted));
    index
}

#[test]
fn a_missed_get_forbids_older_inserts() {
    for words in [1, 2, 3] {
        let index = filled(words, 0..10);
        assert_eq!(index.get(&make(words, 20), Some(50)), None);
        assert_eq!(insert(&index, words, 20, 49), Insert::Forbidden(50));
        assert_eq!(insert(&index, words, 5, 1), Insert::Exists(5), "a present key is not a gap");
        assert_eq!(index.get(&make(words, 20), None), None, "nothing changed");
        assert_eq!(insert(&index, words, 20, 50), Insert::Inserted, "the reader itself may insert");
        assert_eq!(insert(&index, words, 21, 51), Insert::Inserted);
        assert_eq!(index.mark(&make(words, 20)), 50, "an entry does not hide it");
    }
}

#[test]
fn a_hit_or_an_unmarked_miss_forbids_nothing() {
    for words in [1, 2, 3] {
        let index = filled(words, 0..10);
        assert_eq!(index.get(&make(words, 5), Some(50)), Some(5));
        assert_eq!(index.get(&make(words, 20), None), None);
        assert_eq!(insert(&index, words, 20, 2), Insert::Inserted);
    }
}

#[test]
fn marks_never_sink() {
    let index = filled(1, 0..10);
    index.get(&[20], Some(50));
    index.get(&[21], Some(40));
    assert_eq!(insert(&index, 1, 20, 45), Insert::Forbidden(50));
}

#[test]
fn a_scan_forbids_older_inserts_in_its_range() {
    for (words, direction) in
        [1, 2, 3].into_iter().flat_map(|w| [Direction::Forward, Direction::Backward].map(|d| (w, d)))
    {
        let n = 2000;
        let index = filled(words, (0..n).map(|i| i * 10));
        let (lower, upper) = (make(words, 5000), make(words, 9000));
        let bounds = (Bound::Included(lower), Bound::Excluded(upper));
        let found = scan_all(&index, &bounds.0, &bounds.1, direction, 50, Some(77));
        assert_eq!(found.len(), 400);
        for i in 500..900 {
            assert_eq!(insert(&index, words, i * 10 + 1, 76), Insert::Forbidden(77));
        }
        assert_eq!(insert(&index, words, 1, 76), Insert::Inserted, "the key is far from the range");
        assert_eq!(insert(&index, words, 19_999, 76), Insert::Inserted);
    }
}

/// Entries that come to a leaf or leave it show in what was read from it; marks, and other leaves, do not.
#[test]
fn a_batch_is_current_until_its_leaf_changes() {
    for words in [1, 2, 3] {
        let (index, mut batch) = (filled(words, (0..2000).map(|i| i * 10)), Batch::with_limit(4));
        assert!(batch.is_current(&index), "nothing was read");
        let lower = make(words, 5000);
        let read = |batch: &mut Batch| {
            let mut scan = Scan::new(Bound::Included(&lower), Bound::Unbounded, Direction::Forward);
            assert!(scan.next_batch(&index, Some(7), batch) && batch.is_current(&index));
        };
        read(&mut batch);
        assert_eq!(index.get(&make(words, 5001), Some(9)), None);
        assert_eq!(insert(&index, words, 19_999, 10), Insert::Inserted);
        assert!(batch.is_current(&index));
        assert_eq!(insert(&index, words, 5001, 10), Insert::Inserted);
        assert!(!batch.is_current(&index));
        read(&mut batch);
        assert!(index.remove(&make(words, 5001), 5001, || 11));
        assert!(!batch.is_current(&index));
        read(&mut batch);
        assert!(!batch.is_current(&filled(words, 0..10)), "it is of another index");
    }
}

#[test]
fn a_scan_of_nothing_protects_the_gap() {
    for words in [1, 2, 3] {
        let index = filled(words, [10, 90]);
        let bounds = (Bound::Excluded(make(words, 10)), Bound::Excluded(make(words, 90)));
        assert!(scan_all(&index, &bounds.0, &bounds.1, Direction::Forward, 9, Some(5)).is_empty());
        assert_eq!(insert(&index, words, 50, 4), Insert::Forbidden(5));
    }
}

#[test]
fn splits_keep_marks() {
    for words in [1, 2, 3] {
        let index = filled(words, [1_000_000]);
        assert_eq!(index.get(&make(words, 1), Some(50)), None);
        let n = if cfg!(miri) { 300 } else { 5000 };
        for i in (2..n).map(|i| i * 2) {
            assert_eq!(insert(&index, words, i, 60), Insert::Inserted);
        }
        assert!(index.bytes() > 3 * 1088);
        assert!((2..n).all(|i| index.mark(&make(words, i * 2)) == 50));
        for i in (2..n).map(|i| i * 2 + 1) {
            assert_eq!(insert(&index, words, i, 49), Insert::Forbidden(50));
        }
    }
}

#[test]
fn merges_keep_the_newest_mark() {
    for words in [1, 2, 3] {
        let n = steps(5000) as u64;
        let index = filled(words, 0..n);
        assert_eq!(index.get(&make(words, n + 5), Some(50)), None);
        for i in 0..n {
            assert!(index.remove(&make(words, i), i, || 40 + i % 2));
        }
        for i in 0..n {
            let ts = if i < n / 2 { 40 } else { 49 };
            assert!(matches!(insert(&index, words, i, ts), Insert::Forbidden(41..=50)));
        }
        assert_eq!(insert(&index, words, n + 5, 49), Insert::Forbidden(50));
    }
}

#[test]
fn a_removal_leaves_its_floor() {
    for words in [1, 2, 3] {
        let index = filled(words, 0..10);
        assert!(!index.remove(&make(words, 3), 99, || 70), "the value differs");
        assert!(!index.remove(&make(words, 33), 33, || 70), "the key is absent");
        assert_eq!(insert(&index, words, 30, 2), Insert::Inserted, "nothing was removed");
        assert!(index.remove(&make(words, 3), 3, || 70));
        assert_eq!(insert(&index, words, 3, 69), Insert::Forbidden(70));
        assert_eq!(insert(&index, words, 3, 70), Insert::Inserted);
    }
}

/// The bounds of a scan of one value have one word. It marks the leaves that have the value, and no
/// neighbour: writers of other values need not move behind it.
#[test]
fn a_scan_of_one_value_forbids_no_others() {
    const OF_LEAF: u64 = 63;
    for direction in [Direction::Forward, Direction::Backward] {
        let index = new_index(KeyForm::Pairs);
        for i in 0..3 * OF_LEAF {
            assert_eq!(index.insert(&[i / OF_LEAF, i], i, 1), Insert::Inserted);
        }
        let bounds = (Bound::Included(vec![1]), Bound::Excluded(vec![2]));
        let found = scan_all(&index, &bounds.0, &bounds.1, direction, usize::MAX, Some(50));
        assert_eq!(found.len() as u64, OF_LEAF);
        for (first, outcome) in [(0, Insert::Inserted), (1, Insert::Forbidden(50)), (2, Insert::Inserted)] {
            assert_eq!(index.insert(&[first, 1_000], 1_000, 49), outcome, "{direction:?}, {first}");
        }
        assert_eq!(index.mark(&[1, 0]), 50);
    }
}
