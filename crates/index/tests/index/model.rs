//! Random operations against a `BTreeMap`.

use std::ops::Bound;
use std::sync::Arc;

use crate::common::{Key, Model, check, expected, new_index, scan_all, steps};
use pantile_index::{Direction, Finger, Index, Insert, KeyForm, NodeArena, Parts, Scan};
use pantile_testkit::{Random, mix};

/// A source of keys. Many keys are drawn more than once.
type KeySource = fn(&mut Random) -> Key;

fn dense(rng: &mut Random) -> Key {
    vec![rng.below(4000)]
}

/// Keys of columns that are shorter than a word, and some between them.
fn units(rng: &mut Random) -> Key {
    let between = if rng.below(30) == 0 { 1 << rng.below(24) } else { 0 };
    vec![rng.below(4000) << 24 | between]
}

fn sparse(rng: &mut Random) -> Key {
    let few = rng.below(2000);
    vec![if few == 0 { u64::MAX } else { mix(few) }]
}

fn composite(rng: &mut Random) -> Key {
    vec![rng.below(3) << 32 | rng.below(3), rng.below(200), rng.below(4)]
}

/// Tuples of some columns' values: of most a few, of one as many as of all others.
fn pairs(rng: &mut Random) -> Key {
    let first = if rng.below(2) == 0 { 70 } else { rng.below(150) };
    vec![first, rng.below(if first == 70 { 2000 } else { 20 })]
}

fn strings(rng: &mut Random) -> Key {
    let len = 1 + rng.below(6);
    (0..len).map(|_| 1 + rng.below(4)).collect()
}

fn long(rng: &mut Random) -> Key {
    let mut seed = Random::new(rng.below(600), 0);
    let (len, shared) = (1 + seed.below(384) as usize, seed.below(380) as usize);
    (0..len).map(|i| if i < shared { 7 } else { seed.word() }).collect()
}

/// Many keys that begin alike, in few groups.
fn groups(rng: &mut Random) -> Key {
    let group = rng.below(5);
    let mut key = vec![group / 2; [3, 6, 12, 1, 0][group as usize]];
    key.extend([rng.below(5_000), group]);
    key
}

/// Keys that begin alike, for long, and go on for long or not.
fn uneven(rng: &mut Random) -> Key {
    let mut key = vec![7; 300];
    match rng.below(2) {
        0 => key.push(2 + rng.below(400)),
        _ => {
            key.resize(301 + 20 * rng.below(4) as usize, 0);
            key.push(1 + rng.below(20));
        }
    }
    key
}

const SOURCES: [(&str, KeyForm, KeySource); 9] = [
    ("dense", KeyForm::UpTo(1), dense),
    ("units", KeyForm::UpTo(1), units),
    ("sparse", KeyForm::UpTo(1), sparse),
    ("pairs", KeyForm::Pairs, pairs),
    ("composite", KeyForm::UpTo(3), composite),
    ("strings", KeyForm::UpTo(6), strings),
    ("long", KeyForm::UpTo(384), long),
    ("groups", KeyForm::UpTo(14), groups),
    ("uneven", KeyForm::UpTo(384), uneven),
];

/// A value that goes with a key.
fn value_of(keys: KeyForm, key: &[u64], rng: &mut Random) -> u64 {
    if keys == KeyForm::Pairs { key[1] } else { rng.word() }
}

fn bound(rng: &mut Random, source: KeySource) -> Bound<Key> {
    let mut key = source(rng);
    match rng.below(6) {
        0 => return Bound::Unbounded,
        1 => key.truncate(rng.below(key.len() as u64 + 1) as usize),
        2 => key.push(rng.below(3)),
        _ => {}
    }
    if rng.below(2) == 0 { Bound::Included(key) } else { Bound::Excluded(key) }
}

fn check_scan(index: &Index, model: &Model, rng: &mut Random, source: KeySource) {
    let (lower, upper) = (bound(rng, source), bound(rng, source));
    let limit = if rng.below(2) == 0 { usize::MAX } else { 1 + rng.below(40) as usize };
    for direction in [Direction::Forward, Direction::Backward] {
        let found = scan_all(index, &lower, &upper, direction, limit, None);
        let expected = expected(model, &lower, &upper, direction);
        assert!(found == expected, "{lower:?}..{upper:?} {direction:?} by {limit}");
    }
}

/// Keys that are there and keys that are not, by one call.
fn check_many(index: &Index, model: &Model, rng: &mut Random, source: KeySource) {
    let keys: Vec<Key> = (0..rng.below(40)).map(|_| source(rng)).collect();
    let slices: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
    let mut found = vec![Some(u64::MAX); keys.len()];
    index.get_many(&slices, &mut found);
    assert!(found.iter().zip(&keys).all(|(found, key)| *found == model.get(key).copied()), "{keys:?}");
    // The first entries of ranges that begin at these keys, or at their first words.
    let slices: Vec<_> = slices.iter().map(|key| &key[..1 + rng.below(key.len() as u64) as usize]).collect();
    let between = |(a, b)| Scan::new(Bound::Included(a), Bound::Excluded(b), Direction::Forward);
    let mut ranges: Vec<_> = slices.iter().copied().zip(slices.iter().rev().copied()).map(between).collect();
    let most = 1 + rng.below(60) as usize;
    let asked = ranges.clone();
    let firsts = asked.iter().zip(&slices).flat_map(|(range, key)| {
        let upper = range.upper().map(<[u64]>::to_vec);
        let all = expected(model, &Bound::Included(key.to_vec()), &upper, Direction::Forward);
        all.into_iter().take(most).map(|(_, value)| value)
    });
    let mut found = Vec::new();
    index.first_values(&mut ranges, most, &mut found);
    assert!(firsts.eq(found), "{asked:?}");
}

fn step(
    (index, finger): (&Index, &Finger),
    model: &mut Model,
    rng: &mut Random,
    (keys, source): (KeyForm, KeySource),
    inserts: u64,
) {
    let key = source(rng);
    let value = value_of(keys, &key, rng);
    if rng.below(10) < inserts {
        let result = match rng.below(2) {
            0 => index.insert(&key, value, 0),
            _ => index.insert_near(finger, &key, value, 0),
        };
        match model.get(&key) {
            Some(present) => assert_eq!(result, Insert::Exists(*present)),
            None => assert_eq!(result, Insert::Inserted),
        }
        model.entry(key).or_insert(value);
    } else {
        let present = model.get(&key).copied();
        assert_eq!(index.get(&key, None), present);
        assert!(!index.remove(&key, value ^ 1, || 0));
        if let Some(present) = present {
            assert!(index.remove(&key, present, || 0));
            model.remove(&key);
        }
    }
}

/// Grows, churns, shrinks to nothing, and grows again.
fn run(keys: KeyForm, source: KeySource, seed: u64) {
    let (index, mut model, mut rng) = (new_index(keys), Model::new(), Random::new(seed, 0));
    let finger = Finger::default();
    for inserts in [9, 5, 1, 0, 7] {
        for i in 0..steps(8000) {
            step((&index, &finger), &mut model, &mut rng, (keys, source), inserts);
            if i % steps(20) == 0 {
                check_many(&index, &model, &mut rng, source);
            }
            if i % steps(200) == 0 {
                check_scan(&index, &model, &mut rng, source);
            }
        }
        check(&index, &model);
    }
}

#[test]
fn random_operations_match_a_map() {
    for (name, keys, source) in SOURCES {
        println!("{name}");
        (0..3).for_each(|seed| run(keys, source, seed));
    }
}

#[test]
fn ordered_inserts_match_a_map() {
    for (keys, key) in [
        (KeyForm::UpTo(1), (|i| vec![i]) as fn(u64) -> Key),
        (KeyForm::Pairs, |i| vec![i / 50, i]),
        (KeyForm::UpTo(2), |i| vec![i / 50, i]),
        (KeyForm::UpTo(3), |i| vec![i % 10, 5, i]),
        (KeyForm::UpTo(384), |i| vec![i; 1 + (i as usize * 37) % 384]),
    ] {
        let n = steps(5000) as u64;
        for order in [|i, _| i, |i, n| n - i] as [fn(u64, u64) -> u64; 2] {
            let (index, mut model) = (new_index(keys), Model::new());
            // The second has been left behind by many splits when it is used.
            let fingers = [Finger::default(), Finger::default()];
            for i in 0..n {
                let key = key(order(i, n));
                let finger = &fingers[usize::from(i % 300 == 0)];
                let value = key[key.len() - 1];
                assert_eq!(index.insert_near(finger, &key, value, 0), Insert::Inserted);
                model.insert(key, value);
            }
            check(&index, &model);
            while let Some((key, value)) = model.pop_first() {
                assert!(index.remove(&key, value, || 0));
            }
            check(&index, &model);
        }
    }
}

fn insert(index: &Index, model: &mut Model, key: Key) {
    assert_eq!(index.insert(&key, 1, 0), Insert::Inserted);
    model.insert(key, 1);
}

/// A separator that does not begin as all others do costs more than a node has room for, although that is half
/// empty.
#[test]
fn a_key_unlike_all_others_finds_room() {
    let most = if cfg!(miri) { 50 } else { 6_000 };
    for words in [3, 6, 12, 40] {
        for n in (40..most).step_by(150) {
            let (index, mut model) = (new_index(words + 1), Model::new());
            for i in 0..n {
                insert(&index, &mut model, [&vec![1; words][..], &[i]].concat());
            }
            for unlike in [2, 0] {
                insert(&index, &mut model, [&[unlike][..], &vec![0; words]].concat());
            }
            check(&index, &model);
        }
    }
}

/// Half of the keys, counted with the words with which all begin, would not fit into a node.
#[test]
fn halves_of_long_and_short_keys_fit() {
    let (index, mut model) = (new_index(384), Model::new());
    let begins = vec![7; 300];
    let short = |n: u64| [&begins[..], &[n]].concat();
    let long = |n: u64| [&begins[..], &[1], &[0; 81], &[n]].concat();
    let long = (0..=40).rev().map(long);
    for key in (0..=60).filter(|n| *n != 1).map(short).chain(long).chain((61..300).map(short)) {
        insert(&index, &mut model, key);
    }
    check(&index, &model);
}

/// Inserts in order need one descent for a leaf, and not one for each key.
#[test]
fn neighbours_need_no_descent() {
    for keys in [KeyForm::UpTo(1), KeyForm::Pairs, KeyForm::UpTo(3)] {
        let (index, finger) = (new_index(keys), Finger::default());
        let key = |i: u64| match keys {
            KeyForm::UpTo(1) => vec![i],
            KeyForm::UpTo(_) => vec![7, i / 9, i % 9],
            KeyForm::Pairs => vec![i / 9, i],
        };
        let near = (0..2000).filter(|i| {
            let is_near = index.is_near(&finger, &key(*i));
            assert_eq!(index.insert_near(&finger, &key(*i), *i, 0), Insert::Inserted);
            is_near
        });
        assert_eq!(near.count(), 1999);
        assert!(!index.is_near(&finger, &key(5)), "that is another leaf");
        assert_eq!(index.insert_near(&finger, &key(5), 5, 0), Insert::Exists(5));
        // Somebody else changes the leaf.
        assert!(index.remove(&key(1999), 1999, || 0));
        assert!(!index.is_near(&finger, &key(2000)));
        assert_eq!(index.insert_near(&finger, &key(2000), 2000, 9), Insert::Inserted);
        // A reader has relied on a gap there.
        assert_eq!(index.get(&key(3000), Some(10)), None);
        assert!(index.is_near(&finger, &key(2500)));
        assert_eq!(index.insert_near(&finger, &key(2500), 2500, 9), Insert::Forbidden(10));
    }
}

/// Nodes of a tree that has gone are used again, with the versions that they had.
#[test]
fn a_finger_points_into_no_other_tree() {
    for max_key_words in [1, 2] {
        let arena = Arc::new(NodeArena::new());
        let index = Index::new(max_key_words, &arena);
        let finger = Finger::default();
        (0..1000).for_each(|i| assert_eq!(index.insert_near(&finger, &[i], i, 0), Insert::Inserted));
        drop(index);
        let others: Vec<_> = (0..3)
            .map(|n| {
                let keys = (0..1000).map(move |i| ([10_000 * n + i], i));
                Index::bulk_load(max_key_words, &arena, keys, 0.8).expect("in order")
            })
            .collect();
        for other in &others {
            for i in 1000..1100 {
                let old = finger.clone();
                assert!(!other.is_near(&old, &[i]));
                assert_eq!(other.insert_near(&old, &[i], i, 0), Insert::Inserted);
            }
            assert_eq!(other.len(), 1100);
        }
    }
}

#[test]
fn bulk_load_equals_inserts() {
    for (_, keys, source) in SOURCES {
        let (arena, mut rng) = (Arc::new(NodeArena::new()), Random::new(1, 0));
        let (mut model, finger) = (Model::new(), Finger::default());
        for size in [0, 1, 2, 100, steps(20_000)] {
            for _ in 0..size {
                let key = source(&mut rng);
                let value = value_of(keys, &key, &mut rng);
                model.insert(key, value);
            }
            for fill in [0.5, 0.9, 1.0] {
                let entries = model.iter().map(|(key, value)| (key, *value));
                let index = Index::bulk_load(keys, &arena, entries, fill).unwrap();
                check(&index, &model);
                let mut model = model.clone();
                for _ in 0..steps(500) {
                    step((&index, &finger), &mut model, &mut rng, (keys, source), 5);
                }
                check(&index, &model);
            }
        }
        assert_eq!(arena.used_bytes(), 0);
    }
}

/// Entries in parts; one of them may be unreadable.
struct Cut {
    parts: Vec<Vec<(Key, u64)>>,
    unreadable: Option<usize>,
}

impl Parts for Cut {
    fn count(&self) -> usize {
        self.parts.len()
    }

    fn first(&self, part: usize) -> &[u64] {
        &self.parts[part][0].0
    }

    fn each(&self, part: usize, push: &mut impl FnMut(&[u64], u64) -> bool) -> bool {
        self.parts[part].iter().all(|(key, value)| push(key, *value)) && self.unreadable != Some(part)
    }
}

#[test]
fn bulk_load_of_parts_equals_inserts() {
    for (_, keys, source) in SOURCES {
        let (arena, mut rng) = (Arc::new(NodeArena::new()), Random::new(2, 0));
        let (mut model, finger) = (Model::new(), Finger::default());
        for size in [0, 1, 2, 100, steps(20_000)] {
            for _ in 0..size {
                let key = source(&mut rng);
                let value = value_of(keys, &key, &mut rng);
                model.insert(key, value);
            }
            for (fill, most) in [(0.5, 3), (0.9, 20), (1.0, 200)] {
                let mut cut = Cut { parts: Vec::new(), unreadable: None };
                for entry in &model {
                    if cut.parts.is_empty() || rng.below(model.len() as u64) < most {
                        cut.parts.push(Vec::new());
                    }
                    cut.parts.last_mut().expect("a part").push((entry.0.clone(), *entry.1));
                }
                let index = Index::bulk_load_parts(keys, &arena, &cut, 2, fill).expect("in order");
                check(&index, &model);
                let mut model = model.clone();
                for _ in 0..steps(500) {
                    step((&index, &finger), &mut model, &mut rng, (keys, source), 5);
                }
                check(&index, &model);
                drop(index);
                if !cut.parts.is_empty() {
                    cut.unreadable = Some(rng.below(cut.parts.len() as u64) as usize);
                    assert!(Index::bulk_load_parts(keys, &arena, &cut, 2, fill).is_none());
                    cut.unreadable = None;
                    cut.parts.reverse();
                    let is_in_order = cut.parts.len() == 1;
                    let loaded = Index::bulk_load_parts(keys, &arena, &cut, 2, fill);
                    assert_eq!(loaded.is_some(), is_in_order);
                }
            }
        }
        assert_eq!(arena.used_bytes(), 0);
    }
}

#[test]
fn bulk_load_refuses_disorder() {
    let arena = Arc::new(NodeArena::new());
    for max_key_words in [1, 2] {
        let keys = (0..1000).chain([999]).map(|i| ([i], i));
        let error = Index::bulk_load(max_key_words, &arena, keys, 1.0).unwrap_err();
        assert_eq!(error.position, 1000);
        assert_eq!(arena.used_bytes(), 0);
    }
}
