//! An index while its leaves are split, merged and marked.

use std::ops::Bound;
use std::sync::Arc;

use pantile_base::sync::model::explore;
use pantile_base::sync::thread;
use pantile_index::{Batch, Direction, Finger, Index, Insert, NodeArena, Scan};
use pantile_interleavings::Model;

pub const MODELS: &[Model] = &[
    Model { name: "split_against_scan", rounds: 300, scale: 10, run: split_against_scan },
    Model { name: "merge_against_get", rounds: 300, scale: 10, run: merge_against_get },
    Model { name: "merge_against_directory", rounds: 300, scale: 10, run: merge_against_directory },
    Model { name: "merge_against_finger", rounds: 300, scale: 10, run: merge_against_finger },
    Model { name: "mark_against_insert", rounds: 1_000, scale: 9, run: mark_against_insert },
];

/// Entries of a leaf.
const LEAF: u64 = 64;

/// Leaves of every second number up to `end`.
fn filled(end: u64, fill: f64) -> Arc<Index> {
    let entries = (0..end).step_by(2).map(|key| ([key], key));
    Arc::new(Index::bulk_load(1, &Arc::new(NodeArena::new()), entries, fill).expect("in order"))
}

fn scan(index: &Index, from: u64, to: u64, direction: Direction, mark: Option<u64>) -> Vec<u64> {
    let (from, to) = ([from], [to]);
    let mut scan = Scan::new(Bound::Included(&from[..]), Bound::Excluded(&to[..]), direction);
    let (mut batch, mut found) = (Batch::with_limit(16), Vec::new());
    while scan.next_batch(index, mark, &mut batch) {
        found.extend(batch.iter().map(|(_, value)| value));
    }
    if direction == Direction::Backward {
        found.reverse();
    }
    found
}

/// A scan finds every entry that stays, once and in order, even if its leaves
/// are split during the scan.
fn split_against_scan() {
    let index = filled(2 * LEAF, 1.0);
    explore(|| {
        let scanning = [Direction::Forward, Direction::Backward].map(|direction| {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                let found = scan(&index, 0, 2 * LEAF, direction, None);
                assert!(found.is_sorted_by(|a, b| a < b), "{found:?}");
                assert!((0..2 * LEAF).step_by(2).all(|key| found.contains(&key)), "{found:?}");
            })
        });
        for key in [1, 2 * LEAF - 1] {
            assert_eq!(index.insert(&[key], key, 0), Insert::Inserted);
        }
        scanning.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    assert_eq!(scan(&index, 0, 2 * LEAF, Direction::Forward, None).len() as u64, LEAF + 2);
}

/// Entries that stay are found while leaves are merged and their memory is
/// reused.
fn merge_against_get() {
    let index = filled(2 * LEAF, 0.5);
    let stays = |key: u64| key.is_multiple_of(8);
    explore(|| {
        let reading = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                for key in (0..2 * LEAF).step_by(16) {
                    assert_eq!(index.get(&[key], None), Some(key));
                }
                let keys = [8, 40, 72, 104].map(|key| [key]);
                let mut found = [None; 4];
                index.get_many(&keys.each_ref().map(|key| &key[..]), &mut found);
                assert_eq!(found, keys.map(|[key]| Some(key)));
                let found = scan(&index, 0, 2 * LEAF, Direction::Forward, None);
                assert!((0..2 * LEAF).step_by(8).all(|key| found.contains(&key)), "{found:?}");
            })
        };
        for key in (0..2 * LEAF).step_by(2).filter(|&key| !stays(key)) {
            assert!(index.remove(&[key], key, || 0));
        }
        for n in 0..LEAF {
            assert_eq!(index.insert(&[2 * LEAF + n], n, 0), Insert::Inserted);
        }
        reading.join().expect("no panic");
    });
    let left = scan(&index, 0, 2 * LEAF, Direction::Forward, None);
    assert_eq!(left, (0..2 * LEAF).step_by(8).collect::<Vec<_>>());
}

/// Entries that stay are found by look-ups that go side by side to the leaves that the directory
/// names, and others are not, while these leaves are merged, freed and filled with other keys.
fn merge_against_directory() {
    const END: u64 = 16 * LEAF;
    let index = filled(END, 0.5);
    let stays = |key: u64| key.is_multiple_of(16);
    let look_up = |index: &Index, keys: &[u64]| {
        let keys: Vec<_> = keys.iter().map(|key| [*key]).collect();
        let wanted: Vec<_> = keys.iter().map(|key| &key[..]).collect();
        let mut found = vec![None; keys.len()];
        index.get_many(&wanted, &mut found);
        found
    };
    // All leaves are in the directory.
    let all: Vec<_> = (0..END).step_by(2).collect();
    assert!(look_up(&index, &all).iter().all(Option::is_some));
    explore(|| {
        let reading = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                for first in (0..END).step_by(4 * LEAF as usize) {
                    let keys = [0, 34, 64, 112, 160, 163, 208].map(|key| first + key);
                    for (key, found) in keys.iter().zip(look_up(&index, &keys)) {
                        // 34 is removed at some time.
                        let may_be_there = key % 16 == 2 && found == Some(*key);
                        assert!(found == stays(*key).then_some(*key) || may_be_there, "{key}: {found:?}");
                    }
                }
            })
        };
        for key in (0..END).step_by(2).filter(|key| !stays(*key)) {
            assert!(index.remove(&[key], key, || 0));
        }
        // Some of the freed leaves get other keys.
        (0..2 * LEAF).for_each(|n| assert_eq!(index.insert(&[2 * END + n], n, 0), Insert::Inserted));
        reading.join().expect("no panic");
        // What no leaf of the tree has any more is not served from a freed one.
        let late: Vec<_> = (1..END).step_by(32).collect();
        late.iter().for_each(|key| assert_eq!(index.insert(&[*key], *key, 0), Insert::Inserted));
        assert_eq!(look_up(&index, &late), late.iter().map(|key| Some(*key)).collect::<Vec<_>>());
    });
    let left = scan(&index, 0, END, Direction::Forward, None);
    assert_eq!(left.len() as u64, END / 16 + END / 32);
}

/// What is entered beside a finger is found by all, while its leaf is merged with another, or
/// is freed and gets other keys.
fn merge_against_finger() {
    let index = filled(2 * LEAF, 0.5);
    // Every second leaf loses its keys to its neighbour, the finger's own one among them.
    let odd = |n: u64| 2 * LEAF - 1 - 2 * n;
    explore(|| {
        let removing = {
            let index = Arc::clone(&index);
            thread::spawn(move || {
                for key in (0..2 * LEAF).step_by(2).filter(|key| !key.is_multiple_of(32)) {
                    assert!(index.remove(&[key], key, || 0));
                }
                (0..LEAF).for_each(|n| assert_eq!(index.insert(&[4 * LEAF + n], n, 0), Insert::Inserted));
            })
        };
        let finger = Finger::default();
        for n in 0..8 {
            assert_eq!(index.insert_near(&finger, &[odd(n)], n, 0), Insert::Inserted);
        }
        removing.join().expect("no panic");
        assert!((0..8).all(|n| index.get(&[odd(n)], None) == Some(n)));
    });
    let mut left: Vec<_> = (0..2 * LEAF).step_by(32).chain((0..8).map(odd)).collect();
    left.sort_unstable();
    let value = |key: u64| if key.is_multiple_of(2) { key } else { (2 * LEAF - 1 - key) / 2 };
    let found = scan(&index, 0, 2 * LEAF, Direction::Forward, None);
    assert_eq!(found, left.into_iter().map(value).collect::<Vec<_>>());
}

/// I-5 (T8): a reader at 50 finds an entry that is inserted at 40, or the
/// insert is refused, even if the leaf is split at that moment.
fn mark_against_insert() {
    let index = filled(2 * LEAF, 1.0);
    explore(|| {
        let by_key = {
            let index = Arc::clone(&index);
            thread::spawn(move || index.get(&[65], Some(50)).is_some())
        };
        let by_range = {
            let index = Arc::clone(&index);
            thread::spawn(move || scan(&index, 66, 69, Direction::Forward, Some(50)).contains(&67))
        };
        let finger = Finger::default();
        let entered = [65, 67].map(|key| match index.insert_near(&finger, &[key], key, 40) {
            Insert::Inserted => true,
            Insert::Forbidden(_) => false,
            Insert::Exists(_) => panic!("no other thread inserts {key}"),
        });
        let found = [by_key, by_range].map(|thread| thread.join().expect("no panic"));
        assert!(entered[0] == found[0] || !entered[0], "inserted {entered:?}, found {found:?}");
        assert!(entered[1] == found[1] || !entered[1], "inserted {entered:?}, found {found:?}");
    });
}
