//! Power cuts under relaxed durability. After another boot the database is in
//! the state of a record: the last one, or the one that was being written.
//!
//! The boot of a machine is an option of the store, so this test uses the
//! store.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex};

use pantile::{CheckOptions, Durability, Medium, Options, TableDef, Timestamp, Type, inspect};
use pantile_base::{TableId, TupleId};
use pantile_store::{ContentFlags, NewContent, Scan, Store, StoreError, StoreOptions, Urgency};
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Keep};
use pantile_testkit::{Random, from_env};

type Found = BTreeSet<(u32, u64)>;

fn open(medium: Arc<dyn Medium>, boot: u64) -> Result<(Store, Found), StoreError> {
    let store = Store::open(medium, StoreOptions { boot, relaxed: true, ..StoreOptions::default() }, 99)?;
    let tuples = Mutex::new(Found::new());
    store.recover(&Scan {
        threads: 1,
        found: &|table, found| {
            let new = found.iter().map(|one| (table.0, one.content.tuple().0));
            tuples.lock().expect("tuples").extend(new);
        },
        progress: &|_| {},
    })?;
    Ok((store, tuples.into_inner().expect("tuples")))
}

/// Transaction `n` writes tuple `n` of some tables, in rows of various lengths.
fn contents(n: u64) -> Vec<(u32, usize)> {
    let mut random = Random::new(n, 0);
    let tables = (16..20).filter(|_| random.below(2) == 0).collect::<Vec<_>>();
    tables.into_iter().map(|table| (table, random.below(200) as usize)).collect()
}

fn append(store: &Store, n: u64) {
    let rows: Vec<_> = contents(n).into_iter().map(|(table, len)| (table, vec![7; len])).collect();
    let ts = Timestamp::from_raw(1000 + n);
    let new = rows.iter().map(|(table, row)| NewContent {
        table: TableId(*table),
        tuple: TupleId(n),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: ts,
        transaction_contents: rows.len() as u64,
        row,
    });
    store.append(0, Urgency::Write, new, || ts, &mut Vec::new()).and_then(|a| a.persist()).expect("append");
}

/// After a power failure there is what the last state record covers. A sync makes one that covers all that was visible.
#[test]
fn what_was_visible_when_a_sync_began_is_covered_by_a_record() {
    for has_worker in [false, true] {
        let place = tempfile::tempdir().expect("a directory");
        let options = Options::new().durability(Durability::None).worker(has_worker);
        let db = options.open(place.path()).expect("open");
        let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
        let table = db.create_table(def).expect("create");
        // One that writes and does not end is in nobody's way.
        let mut open = db.begin().expect("begin");
        open.insert(&table, &[1000u64.into()]).expect("insert");
        for round in 0..5u64 {
            let mut txn = db.begin().expect("begin");
            txn.insert(&table, &[(2 * round).into()]).expect("insert");
            let committed = txn.commit().expect("committed");
            let mut txn = db.begin().expect("begin");
            txn.insert(&table, &[(2 * round + 1).into()]).expect("insert");
            let left = txn.publish().expect("published");
            db.sync().expect("synced");
            let copy = tempfile::tempdir().expect("a directory");
            let (from, to) = (place.path().join("pantile.data"), copy.path().join("pantile.data"));
            fs::copy(from, to).expect("copied");
            let found = inspect(copy.path(), &CheckOptions::new()).expect("inspected");
            let record = found.records.iter().find(|record| record.is_used).expect("a record");
            for ts in [committed, left.timestamp()] {
                assert!(record.durable_watermark >= ts.get(), "{ts:?} in round {round}: {record:?}");
                assert!(!record.undecided.contains(&ts.get()), "{ts:?} in round {round}: {record:?}");
            }
            left.wait().expect("no failure");
        }
        open.rollback();
    }
}

#[test]
fn another_boot_finds_the_state_of_a_record() {
    let seed = from_env("PANTILE_CUT_SEED", 3);
    println!("PANTILE_CUT_SEED={seed}");
    let medium = CutMedium::new(&Image::default(), CutKind::File, Some(Broken::Fence));
    let (store, _) = open(medium.clone(), 1).expect("open");
    // Opening a database ends with this record, which says that commits are
    // relaxed from here on.
    store.record_state(store.sample(|| Timestamp::from_raw(1000)), &[]).expect("record");
    // The number of transactions that each record covers, and when its write
    // began and ended.
    let mut records = vec![(0, 0, medium.events())];
    for n in 1..=60 {
        append(&store, n);
        if n % 12 == 0 {
            let began = medium.events();
            store.record_state(store.sample(|| Timestamp::from_raw(1000 + n)), &[]).expect("record");
            records.push((n, began, medium.events()));
        }
    }
    let expected = |covered: u64| -> Found {
        (1..=covered).flat_map(|n| contents(n).into_iter().map(move |(table, _)| (table, n))).collect()
    };
    let mut tried = 0;
    for cut in (0..=medium.events()).step_by(7) {
        for (mode, &keep) in Keep::ALL.iter().enumerate() {
            let image = medium.cut(cut, keep, seed ^ (cut * 5 + mode) as u64);
            let found = open(CutMedium::new(&image, CutKind::File, None), 2).map(|(_, found)| found);
            let found = found.unwrap_or_else(|error| panic!("cut at {cut}, {keep:?}: {error}"));
            let last = records.iter().rposition(|(.., ended)| *ended <= cut).unwrap_or(0);
            let next = records.get(last + 1).filter(|(_, began, _)| *began < cut);
            let covered = [Some(&records[last]), next].into_iter().flatten().map(|(n, ..)| *n);
            assert!(covered.clone().any(|n| expected(n) == found), "cut at {cut}, {keep:?}: {covered:?}");
            tried += 1;
        }
    }
    println!("{tried} images of {} events", medium.events());
    assert!(tried > 300);
}
