//! Notes beside plain lists of what has been read.

use std::sync::Arc;

use pantile_index::{Batch, Index, NodeArena};
use pantile_testkit::{Random, SeedNote, seeds};

use super::*;

const TABLE: TableId = TableId(7);

fn includes(range: &RangeRead, key: &[u64]) -> bool {
    let begins = match &range.lower {
        Included(lower) => key >= &lower[..],
        Excluded(lower) => key > &lower[..],
        Unbounded => true,
    };
    let ends = match &range.upper {
        Included(upper) => key <= &upper[..],
        Excluded(upper) => key < &upper[..],
        Unbounded => true,
    };
    begins && ends
}

fn any_key(random: &mut Random) -> Words {
    (0..1 + random.index(2)).map(|_| random.below(12)).collect()
}

fn any_bound(random: &mut Random) -> Bound<Words> {
    match random.below(7) {
        0 => Unbounded,
        1..=3 => Included(any_key(random)),
        _ => Excluded(any_key(random)),
    }
}

/// A scan, the index that it is over, its note, and its whole range.
struct Walk {
    scan: Cursor,
    index: usize,
    note: Option<RangeNote>,
    whole: RangeRead,
}

/// Keys of one and of two words.
fn trees(arena: &Arc<NodeArena>) -> [Index; 2] {
    let trees = [Index::new(1, arena), Index::new(2, arena)];
    for key in 0..12 {
        trees[0].insert(&[key], key, u64::MAX);
        for second in 0..12 {
            trees[1].insert(&[key, second], key * 12 + second, u64::MAX);
        }
    }
    trees
}

fn keys_of(index: usize) -> impl Iterator<Item = Words> {
    let seconds = if index == 0 { 1 } else { 12 };
    (0..12).flat_map(move |first| {
        (0..seconds).map(move |second| [first, second][..=index].iter().copied().collect())
    })
}

/// Scans come and go, go on after ranges have been united, and end half-way.
#[test]
fn united_ranges_are_what_was_read() {
    for seed in seeds(0, 300) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let arena = Arc::new(NodeArena::new());
        let trees = trees(&arena);
        let (mut reads, mut read) = (ReadSet::default(), Vec::new());
        let mut walks: Vec<Walk> = Vec::new();
        let mut batch = Batch::with_limit(1 + random.index(10));
        for _ in 0..random.below(1500) {
            let index = random.index(2);
            match random.below(12) {
                0..=3 => {
                    let key = any_key(&mut random);
                    reads.note_absent(TABLE, &key);
                    read.push(RangeRead::new(TABLE, PRIMARY, Included(&key), Included(&key)));
                }
                4 | 5 => {
                    let direction = *random.pick(&[Direction::Forward, Direction::Backward]);
                    let (lower, upper) = (any_bound(&mut random), any_bound(&mut random));
                    let scan = Cursor::new(as_slice(&lower), as_slice(&upper), direction);
                    let whole = RangeRead { table: TABLE, index: index as u32, lower, upper };
                    walks.push(Walk { scan, index, note: None, whole });
                }
                6 if random.one_in(20) => reads.unite(),
                7 if !walks.is_empty() => drop(walks.swap_remove(random.index(walks.len()))),
                _ if walks.is_empty() => {}
                _ => {
                    let n = random.index(walks.len());
                    let Walk { scan, index, note, whole } = &mut walks[n];
                    if scan.is_finished() {
                        continue;
                    }
                    let at = reads.note_scan(*note, TABLE, *index as u32, scan);
                    scan.next_batch(&trees[*index], None, &mut batch);
                    reads.note_progress(at, scan);
                    *note = Some(at);
                    let near = match (scan.is_finished(), scan.direction()) {
                        (true, _) => whole.clone(),
                        (false, Direction::Forward) => {
                            let upper = until(scan.lower()).map(Words::from_slice);
                            RangeRead { upper, ..whole.clone() }
                        }
                        (false, Direction::Backward) => {
                            let lower = until(scan.upper()).map(Words::from_slice);
                            RangeRead { lower, ..whole.clone() }
                        }
                    };
                    read.push(near);
                }
            }
        }
        let ranges = reads.ranges().to_vec();
        for index in [0, 1, PRIMARY] {
            for key in [0, 1]
                .into_iter()
                .flat_map(keys_of)
                .filter(|key| index > 1 || key.len() == index as usize + 1)
            {
                let of = |range: &&RangeRead| range.index == index && includes(range, &key);
                let (noted, expected) = (ranges.iter().filter(of).count(), read.iter().any(|r| of(&r)));
                assert_eq!(noted, usize::from(expected), "{key:?} of {index}: {ranges:?}");
            }
        }
        assert!(ranges.len() <= 3 * (12 + 144), "{} ranges", ranges.len());
        reads.clear();
        assert!(reads.ranges().is_empty());
    }
}

#[test]
fn what_is_read_again_and_again_is_kept_once() {
    let arena = Arc::new(NodeArena::new());
    let [tree, _] = trees(&arena);
    let mut batch = Batch::new();
    let entry = StaleEntry { table: TABLE, index: 1, tuple: TupleId(3), key: [5, 3].into_iter().collect() };
    let long = vec![9; 500];
    let mut reads = ReadSet::default();
    for n in 0..100_000u64 {
        reads.note(TABLE, TupleId(n % 5));
        reads.note_absent(TABLE, &[n % 5]);
        reads.note_absent(TABLE, &long);
        reads.note_free(&entry);
        let mut scan = Cursor::new(Included(&[n % 3]), Unbounded, Direction::Forward);
        let note = reads.note_scan(None, TABLE, 2, &scan);
        scan.next_batch(&tree, None, &mut batch);
        reads.note_progress(note, &scan);
    }
    let bytes = reads.bytes();
    assert!(bytes < 2 << 20, "{bytes} bytes");
    assert_eq!(reads.points().len(), 5);
    assert_eq!(reads.ranges().len(), 5 + 1 + 1 + 1);
    assert_eq!(reads.bytes(), reads.count());
    assert_eq!(reads.count_growth(), 0);
    reads.clear();
    assert!(reads.bytes() <= bytes && reads.count_growth() <= 0);
}

/// Of two indexes, with keys that lie in the list and others. A scan that goes on finds its note moved.
#[test]
fn widened_ranges_are_one_for_each_index_and_have_all_that_was_read() {
    let mut reads = ReadSet::default();
    let mut scan = Cursor::new(Included(&[1]), Unbounded, Direction::Forward);
    let note = reads.note_scan(None, TABLE, 2, &scan);
    for n in 0..1000u64 {
        reads.note_absent(TABLE, &[n]);
        reads.note_free(&StaleEntry { table: TABLE, index: 1, tuple: TupleId(n), key: vec![n; 50].into() });
    }
    reads.widen();
    let of = |index| RangeRead { table: TABLE, index, lower: Unbounded, upper: Unbounded };
    let wide = [of(PRIMARY), of(1), of(2)];
    assert_eq!(*reads.ranges(), wide);
    assert!(reads.key_bytes.get() == 0 && reads.has_room_for_range());
    let arena = Arc::new(NodeArena::new());
    let [tree, _] = trees(&arena);
    let again = reads.note_scan(Some(note), TABLE, 2, &scan);
    scan.next_batch(&tree, None, &mut Batch::new());
    reads.note_progress(again, &scan);
    reads.note_absent(TABLE, &[7]);
    assert_eq!(*reads.ranges(), wide);
    reads.clear();
    assert!(reads.is_empty());
}

/// Different keys that do not lie in the list.
#[test]
fn long_keys_are_counted() {
    let mut reads = ReadSet::default();
    let (mut counted, mut calls) = (reads.capacities(), 0);
    for n in 0..4000u64 {
        let mut key = vec![7; 500];
        key[0] = n;
        reads.note_absent(TABLE, &key);
        calls += u32::from(reads.capacities() != std::mem::replace(&mut counted, reads.capacities()));
    }
    assert!(reads.bytes() >= 4000 * 2 * 500 * 8, "{} bytes", reads.bytes());
    assert!((8..40).contains(&calls), "{calls} times");
}
