use super::*;
use crate::format::is_sealed;
use pantile_media::unshared::Unshared;
use pantile_media::{DramMedium, MapOptions, MediumExt};
use pantile_testkit::Random;
use pantile_testkit::cut::{CutKind, CutMedium, Image, Keep};
use std::collections::BTreeMap;

const ROW_BYTES: usize = 24;
/// Few keys, so that transactions meet each other's.
const KEYS: u64 = 20;

type Model = BTreeMap<u64, Vec<u8>>;

/// Changes of some keys, each once.
fn changes(random: &mut Random) -> Model {
    (0..1 + random.below(4))
        .map(|_| {
            let mut row = vec![0; if random.one_in(4) { 0 } else { ROW_BYTES }];
            random.fill_letters(&mut row);
            (random.below(KEYS), row)
        })
        .collect()
}

/// Commits them, in the store and in the model. Empty rows are none.
fn commit(store: &mut RedoStore, model: &mut Model, changes: &Model) {
    let change = |(&key, row): (&u64, &Vec<u8>)| {
        if row.is_empty() {
            model.remove(&key)
        } else {
            model.insert(key, row.clone())
        };
    };
    changes.iter().for_each(change);
    let changes: Vec<_> =
        changes.iter().map(|(&key, row)| (key, Some(&row[..]).filter(|row| !row.is_empty()))).collect();
    store.commit(&changes).expect("commit");
}

fn found(store: &RedoStore) -> Model {
    let rows: Model = (0..KEYS).filter_map(|key| Some((key, store.get(key)?))).collect();
    assert_eq!(store.rows(), rows.len() as u64, "the index has nothing else");
    rows
}

fn memory() -> Arc<DramMedium> {
    DramMedium::small(MapOptions { reserve_bytes: 1 << 28, max_bytes: None }).expect("memory")
}

fn holding(bytes: &[u8], len: u64) -> Arc<DramMedium> {
    let medium = memory();
    medium.grow(len).expect("grow");
    medium.put(0, bytes).expect("write");
    medium
}

/// A store with a log, all bytes of its medium, where each of its transactions ends, and the rows at that point.
fn logged(transactions: usize) -> (Vec<u8>, u64, Vec<(u64, Model)>) {
    let (medium, mut random) = (memory(), Random::new(1, transactions as u64));
    let mut model: Model = (0..5).map(|key| (key, vec![key as u8; ROW_BYTES])).collect();
    let mut store =
        RedoStore::create(Arc::clone(&medium) as _, None, ROW_BYTES as u64, model.clone()).expect("create");
    let mut ends = vec![(store.log_end, model.clone())];
    for _ in 0..transactions {
        commit(&mut store, &mut model, &changes(&mut random));
        ends.push((store.log_end, model.clone()));
    }
    let mut bytes = vec![0; store.log_end as usize];
    medium.get(0, &mut bytes).expect("read");
    (bytes, medium.len(), ends)
}

/// Cuts the log off at each byte, and opens what is left. Returns the cuts behind which there is anything but the transactions that
/// end before them.
fn cuts_that_go_wrong(check: fn(&[u8], u64) -> bool) -> Vec<u64> {
    let (bytes, len, ends) = logged(12);
    let wrong = |cut: &u64| {
        let medium = holding(&bytes[..*cut as usize], len);
        let store = RedoStore::open_checking(medium, None, check).expect("open");
        let (end, model) =
            ends.iter().rev().find(|(end, _)| end <= cut).expect("the first is before all cuts");
        found(&store) != *model || store.log_end != *end
    };
    (ends[0].0..=bytes.len() as u64).filter(wrong).collect()
}

#[test]
fn a_log_that_is_cut_off_anywhere_has_whole_transactions() {
    assert_eq!(cuts_that_go_wrong(is_sealed), [0; 0]);
}

#[test]
fn without_checksums_the_same_test_fails() {
    assert!(!cuts_that_go_wrong(|_, _| true).is_empty());
}

#[test]
fn a_store_goes_on_behind_a_torn_tail() {
    let (bytes, len, ends) = logged(6);
    let last = ends[5].0;
    for cut in last..ends[6].0 {
        let medium = holding(&bytes[..cut as usize], len);
        let mut model = ends[5].1.clone();
        let mut store = RedoStore::open(Arc::clone(&medium) as _, None).expect("open");
        commit(&mut store, &mut model, &Model::from([(3, vec![7; ROW_BYTES]), (4, Vec::new())]));
        drop(store);
        assert_eq!(found(&RedoStore::open(medium, None).expect("open")), model, "{cut}");
    }
}

/// Transactions and checkpoints at random, and power cuts: at any event, with any part of what was not durable.
#[test]
fn what_is_acknowledged_survives_cuts_of_the_power() {
    for seed in 0..60 {
        let mut random = Random::new(2, seed);
        let mut model = Model::new();
        let mut medium = CutMedium::new(&Image::default(), CutKind::Memory, None);
        drop(RedoStore::create(Arc::clone(&medium) as _, None, ROW_BYTES as u64, []).expect("create"));
        for _ in 0..4 {
            let mut store = RedoStore::open(Arc::clone(&medium) as _, None).expect("open");
            assert_eq!(found(&store), model);
            // The events at which the rows of each point had been acknowledged.
            let mut points = vec![(medium.events(), model.clone())];
            for _ in 0..random.below(12) {
                match random.one_in(5) {
                    true => store.checkpoint().expect("checkpoint"),
                    false => commit(&mut store, &mut model, &changes(&mut random)),
                }
                points.push((medium.events(), model.clone()));
            }
            drop(store);
            let first = points[0].0;
            let cut = first + random.index(medium.events() - first + 1);
            let keep = *random.pick(Keep::of(CutKind::Memory));
            medium = medium.after_cut(cut, keep, random.word());
            let acknowledged = points.iter().rposition(|(events, _)| *events <= cut).expect("the first");
            let under_way = points.get(acknowledged + 1).unwrap_or(&points[acknowledged]);
            let store = RedoStore::open(Arc::clone(&medium) as _, None).expect("open");
            let rows = found(&store);
            let is_right = rows == points[acknowledged].1 || rows == under_way.1;
            assert!(is_right, "seed {seed}, cut {cut}, {keep:?}: {rows:?}");
            model = rows;
        }
    }
}

#[test]
fn checkpoints_of_more_than_a_piece_are_loaded() {
    let rows = 50 * PIECE_ROWS * SHARDS as u64 / 10;
    let row = |key: u64| key.to_le_bytes().repeat(ROW_BYTES / 8);
    let medium = memory();
    let store = RedoStore::create(
        Arc::clone(&medium) as _,
        None,
        ROW_BYTES as u64,
        (0..rows).map(|key| (key, row(key))),
    );
    drop(store.expect("create"));
    for ratio in [None, Some(1), Some(4)] {
        let beyond = ratio.map(|ratio| Beyond { memory: memory(), ratio });
        let store = RedoStore::open(Arc::clone(&medium) as _, beyond.clone()).expect("open");
        assert_eq!(store.rows(), rows);
        assert!((0..rows).all(|key| store.get(key) == Some(row(key))));
        assert_eq!(store.get(rows), None);
        let Some(Beyond { memory, ratio }) = beyond else { continue };
        let written = rows - rows.div_ceil(ratio);
        assert_eq!(memory.stats().bytes_written, written * ROW_BYTES as u64, "the others are there");
    }
}

#[test]
fn what_is_lost_in_the_middle_is_reported() {
    let (bytes, len, ends) = logged(5);
    let with_flipped = |at: u64| {
        let mut bytes = bytes.clone();
        bytes[at as usize] ^= 1;
        RedoStore::open(holding(&bytes, len), None).map(|store| found(&store))
    };
    for at in ends[1].0 + 8..ends[2].0 {
        assert!(matches!(with_flipped(at), Err(RedoError::Damaged(_))), "{at}");
    }
    for at in DATA_AT..ends[0].0 {
        assert!(matches!(with_flipped(at), Err(RedoError::Damaged(_))), "{at}");
    }
    assert_eq!(with_flipped(ends[5].0 - 1).expect("a torn tail"), ends[4].1);
}

#[test]
fn a_medium_has_one_store() {
    assert!(matches!(RedoStore::open(memory(), None), Err(RedoError::NoStore)));
    let medium = memory();
    let store = RedoStore::create(Arc::clone(&medium) as _, None, ROW_BYTES as u64, []).expect("create");
    assert!(matches!(RedoStore::open(Arc::clone(&medium) as _, None), Err(RedoError::InUse)));
    drop(store);
    RedoStore::open(medium, None).expect("open");
}
