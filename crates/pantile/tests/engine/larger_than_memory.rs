//! What the engine says about the reads to come, on a medium that is larger
//! than memory.

use std::ops::Bound;
use std::sync::{Arc, Mutex};

use pantile_media::{DramMedium, MapOptions, Reads};

use pantile::{Database, Error, IndexDef, Medium, Options, Range, Table, TableDef, Transaction, Type, Value};
use pantile_testkit::{Heard, HeardMedium, fails};

/// A medium, and what it has been told about reads.
struct Advised {
    medium: Arc<dyn Medium>,
    heard: Arc<Mutex<Vec<Reads>>>,
}

impl Advised {
    /// A medium that the system keeps in this many bytes of memory.
    fn cached_in(bytes: u64) -> Self {
        let heard: Arc<Mutex<Vec<Reads>>> = Arc::default();
        let inner = DramMedium::new(MapOptions::default()).expect("memory");
        let medium = HeardMedium::over(inner, {
            let heard = Arc::clone(&heard);
            move |call| {
                if let Heard::Advice(reads) = call {
                    heard.lock().expect("no panic").push(reads);
                }
            }
        });
        Self { medium: Arc::new(medium.cached_in(bytes)), heard }
    }

    /// What it has been told since the last call.
    fn heard(&self) -> Vec<Reads> {
        std::mem::take(&mut self.heard.lock().expect("no panic"))
    }

    /// The ranges that were to be read soon: offset and length.
    fn fetched(&self) -> Vec<(u64, u64)> {
        let range = |reads| if let Reads::Soon { offset, len } = reads { Some((offset, len)) } else { None };
        self.heard().into_iter().filter_map(range).collect()
    }
}

fn open(medium: &Advised) -> Database {
    Options::new()
        .on_medium(Arc::clone(&medium.medium))
        .worker(false)
        .streams(1)
        .open("unused")
        .expect("open")
}

/// A thousand rows of a kilobyte, written in the order of their keys.
fn load(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    for first in (0..1000u64).step_by(100) {
        let put = |txn: &mut Transaction| {
            (first..first + 100).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&[7; 1000])]))
        };
        db.run(put).expect("load");
    }
    table
}

#[test]
fn reads_are_at_random_and_recovery_fetches_chunk_by_chunk() {
    let medium = Advised::cached_in(1 << 40);
    let db = open(&medium);
    assert_eq!(medium.heard()[0], Reads::AtRandom);
    load(&db);
    db.close().expect("close");
    medium.heard();
    drop(open(&medium));
    let heard = medium.heard();
    assert_eq!(heard[0], Reads::AtRandom);
    let chunks = medium.medium.len().div_ceil(2 << 20);
    let is_chunk = |reads: &&Reads| matches!(reads, Reads::Soon { len: 0x20_0000, .. });
    assert_eq!(heard.iter().filter(is_chunk).count() as u64, chunks, "{heard:?}");
}

/// Rows that were updated lie anywhere, so reading ahead of each would read the
/// file again and again.
#[test]
fn the_rows_of_an_index_that_is_built_are_fetched_many_at_once() {
    let medium = Advised::cached_in(1 << 20);
    let db = open(&medium);
    load(&db);
    db.close().expect("close");
    medium.heard();
    let db = open(&medium);
    let heard = medium.heard();
    let is_of_rows = |reads: &Reads| matches!(reads, Reads::Soon { len: 200_000..0x20_0000, .. });
    assert!(heard.iter().any(is_of_rows), "{heard:?}");
    assert_eq!(db.stats().tuples, 1001, "the rows, and one of the catalog");
}

#[test]
fn nothing_is_fetched_of_a_database_that_fits_into_memory() {
    let medium = Advised::cached_in(1 << 30);
    let db = open(&medium);
    let table = load(&db);
    let txn = db.begin_read().expect("begin");
    txn.get_many(&table, &[[Value::UInt(1)], [Value::UInt(500)]]).expect("rows");
    assert_eq!(txn.scan(&table, Range::all()).expect("scan").count(), 1000);
    assert_eq!(medium.fetched(), []);
}

#[test]
fn rows_that_are_asked_for_together_are_fetched_before_the_first_is_read() {
    let medium = Advised::cached_in(1 << 20);
    let db = open(&medium);
    let table = load(&db);
    let txn = db.begin_read().expect("begin");
    medium.heard();
    // Two rows side by side, and one far away; one is not there.
    let keys = [[Value::UInt(900)], [Value::UInt(11)], [Value::UInt(5000)], [Value::UInt(10)]];
    let rows = txn.get_many(&table, &keys).expect("rows");
    assert_eq!(rows.iter().map(Option::is_some).collect::<Vec<_>>(), [true, true, false, true]);
    let fetched = medium.fetched();
    let [(near, near_len), (far, far_len), ..] = fetched[..] else { panic!("{fetched:?}") };
    assert!((2000..4096).contains(&near_len) && (1000..2000).contains(&far_len), "{fetched:?}");
    assert!(far > near + 500_000, "{fetched:?}");
    // What follows is of single rows that lie across pages.
    assert!(fetched[2..].iter().all(|&(offset, len)| offset % 4096 + len > 4096), "{fetched:?}");
}

#[test]
fn the_rows_of_a_join_are_fetched_before_the_first_is_read() {
    let medium = Advised::cached_in(1 << 20);
    let db = open(&medium);
    let by_group = IndexDef::new("by_group", ["group"]);
    let def =
        TableDef::new("t").column("major", Type::U64).column("minor", Type::U64).column("group", Type::U64);
    let def = def.column("data", Type::Bytes(1000)).primary_key(["major", "minor"]).index(by_group);
    let table = db.create_table(def).expect("create");
    for major in 0..200u64 {
        let row = |minor: u64| [major.into(), minor.into(), (major % 50).into(), Value::Bytes(&[7; 1000])];
        db.run(|txn| txn.insert_many(&table, (0..5).map(row))).expect("insert");
    }
    let (by_group, txn) = (table.index("by_group").expect("index"), db.begin_read().expect("begin"));
    medium.heard();
    // The first values of primary keys; five rows each lie side by side. One is not there.
    let majors = [[Value::UInt(190)], [Value::UInt(3)], [Value::UInt(1000)]];
    txn.fetch_ahead(&table, &majors).expect("fetch");
    let fetched = medium.fetched();
    let [(near, near_len), (far, far_len)] = fetched[..] else { panic!("{fetched:?}") };
    assert!(near_len > 5_000 && far_len > 5_000 && far > near + 500_000, "{fetched:?}");
    // Four times five rows in different places have a group.
    txn.fetch_ahead_index(&by_group, &[[Value::UInt(7)], [Value::UInt(77)]]).expect("fetch");
    let fetched = medium.fetched();
    assert!(fetched.iter().map(|&(_, len)| len).sum::<u64>() > 15_000 && fetched.len() <= 4, "{fetched:?}");
    assert_eq!(medium.fetched(), []);
    // Nothing has been read: what others then write is no conflict.
    let mut reader = db.begin().expect("begin");
    reader.fetch_ahead(&table, &majors).expect("fetch");
    reader.fetch_ahead_index(&by_group, &[[Value::UInt(3)]]).expect("fetch");
    let mut older = db.begin().expect("begin");
    let change = |txn: &mut Transaction, major: u64| {
        txn.update(&table, &[major.into(), 0u64.into()], &[("group", 9u64.into())])
    };
    assert!(change(&mut older, 3).expect("update") && change(&mut reader, 190).expect("update"));
    older.commit().expect("commit");
    reader.commit().expect("commit");
    fails!(txn.fetch_ahead_index(&by_group, &[[Value::Str("x")]]), Error::WrongType { .. }, "group",);
}

#[test]
fn a_row_across_two_pages_is_fetched_whole() {
    let medium = Advised::cached_in(1 << 20);
    let db = open(&medium);
    let table = load(&db);
    let txn = db.begin_read().expect("begin");
    medium.heard();
    for id in 0..1000 {
        txn.get(&table, &[Value::UInt(id)]).expect("get").expect("a row");
    }
    let fetched = medium.fetched();
    assert!(fetched.iter().all(|&(offset, len)| offset % 4096 + len > 4096), "{fetched:?}");
    // Slots of 1,152 bytes: those that begin in the last 1,151 bytes of a page.
    assert!((200..350).contains(&fetched.len()), "{}", fetched.len());
}

#[test]
fn a_scan_fetches_what_lies_side_by_side_at_once() {
    let medium = Advised::cached_in(1 << 20);
    let db = open(&medium);
    let table = load(&db);
    let txn = db.begin_read().expect("begin");
    medium.heard();
    let from = [Value::UInt(300)];
    let rows = txn.scan(&table, Range::all().from(Bound::Included(&from)).limit(100)).expect("scan");
    assert_eq!(rows.count(), 100);
    let fetched = medium.fetched();
    let whole: u64 = fetched.iter().map(|&(_, len)| len).filter(|&len| len > 4096).sum();
    assert!(whole >= 100_000, "a hundred rows in few pieces: {fetched:?}");
    assert!(fetched.iter().filter(|&&(_, len)| len > 4096).count() <= 4, "{fetched:?}");
}

#[test]
fn survivors_are_fetched_before_they_are_copied() {
    let medium = Advised::cached_in(1 << 20);
    let db = open(&medium);
    let table = load(&db);
    for id in (0..1000u64).filter(|id| id % 10 != 0) {
        db.run(|txn| txn.delete(&table, &[id.into()])).expect("delete");
    }
    medium.heard();
    db.compact().expect("compact");
    let fetched = medium.fetched();
    let most = fetched.iter().map(|&(_, len)| len).max().unwrap_or_default();
    assert!(most > 10_000, "survivors lie eleven kilobytes apart: {fetched:?}");
}
