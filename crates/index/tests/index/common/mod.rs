//! Helpers that the tests share.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use pantile_index::{Batch, Direction, Index, KeyForm, NodeArena, Scan};

pub type Key = Vec<u64>;
pub type Model = BTreeMap<Key, u64>;

pub fn new_index(keys: impl Into<KeyForm>) -> Index {
    Index::new(keys, &Arc::new(NodeArena::new()))
}

/// The tests' keys of `words` words: those of two words end with their value.
pub fn keys_of(words: usize) -> KeyForm {
    if words == 2 { KeyForm::Pairs } else { KeyForm::UpTo(words) }
}

/// Fewer steps under Miri, which is slow.
pub fn steps(n: usize) -> usize {
    if cfg!(miri) { n / 100 + 10 } else { n }
}

pub fn as_slice(bound: &Bound<Key>) -> Bound<&[u64]> {
    bound.as_ref().map(Vec::as_slice)
}

/// All entries that a scan finds.
pub fn scan_all(
    index: &Index,
    lower: &Bound<Key>,
    upper: &Bound<Key>,
    direction: Direction,
    limit: usize,
    mark: Option<u64>,
) -> Vec<(Key, u64)> {
    let (mut scan, mut batch) =
        (Scan::new(as_slice(lower), as_slice(upper), direction), Batch::with_limit(limit));
    let mut found = Vec::new();
    while scan.next_batch(index, mark, &mut batch) {
        assert!(batch.len() <= limit);
        found.extend(batch.iter().map(|(key, value)| (key.to_vec(), value)));
    }
    assert!(batch.is_empty() && scan.is_finished());
    found
}

/// The model's entries between two bounds, in scan order.
pub fn expected(
    model: &Model,
    lower: &Bound<Key>,
    upper: &Bound<Key>,
    direction: Direction,
) -> Vec<(Key, u64)> {
    let above = |key: &Key| match lower {
        Bound::Unbounded => true,
        Bound::Included(bound) => key >= bound,
        Bound::Excluded(bound) => key > bound,
    };
    let below = |key: &Key| match upper {
        Bound::Unbounded => true,
        Bound::Included(bound) => key <= bound,
        Bound::Excluded(bound) => key < bound,
    };
    let inside = |(key, _): &(&Key, &u64)| above(key) && below(key);
    let entries = model.iter().filter(inside).map(|(key, value)| (key.clone(), *value));
    match direction {
        Direction::Forward => entries.collect(),
        Direction::Backward => entries.rev().collect(),
    }
}

/// Compares everything an index can answer with the model.
pub fn check(index: &Index, model: &Model) {
    let (lower, upper) = (Bound::Unbounded, Bound::Unbounded);
    for direction in [Direction::Forward, Direction::Backward] {
        let found = scan_all(index, &lower, &upper, direction, usize::MAX, None);
        assert!(found == expected(model, &lower, &upper, direction));
    }
    assert_eq!(index.len(), model.len());
    for (key, value) in model {
        assert_eq!(index.get(key, None), Some(*value));
    }
}
