//! What a store finds when it is reopened.

use pantile_media::unshared::Unshared;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_media::{DramMedium, MapOptions, Medium, MediumExt};
use pantile_nvm::{NvmConfig, NvmMedium};
use pantile_store::{
    ContentFlags, GivenBack, NewContent, Period, Scan, ScanSummary, Store, StoreError, StoreOptions, Urgency,
};
use pantile_testkit::{Heard, HeardMedium};

const CHUNK: u64 = 2 << 20;
/// Where the first chunk begins.
const HEAD: u64 = 64 << 10;
const A: TableId = TableId(20);
const B: TableId = TableId(21);

fn memory(chunks: u64) -> Arc<DramMedium> {
    DramMedium::new(MapOptions { reserve_bytes: 1 << 28, max_bytes: Some(chunks * CHUNK) }).expect("memory")
}

/// Contents found, by table and tuple: transaction and row.
type Rows = BTreeMap<(u32, u64), (u64, Vec<u8>)>;

struct Opened {
    store: Store,
    rows: Rows,
    summary: ScanSummary,
}

fn try_open<M: Medium + 'static>(medium: &Arc<M>, boot: u64, relaxed: bool) -> Result<Opened, StoreError> {
    let medium = Arc::clone(medium) as Arc<dyn Medium>;
    let store = Store::open(medium, StoreOptions { boot, relaxed, ..StoreOptions::default() }, 0x1234_5678)?;
    let rows = Mutex::new(Rows::new());
    let summary = store.recover(&Scan {
        threads: 2,
        found: &|table, found| {
            let mut rows = rows.lock().expect("rows");
            for one in found {
                let content = (one.content.timestamp().get(), one.content.row().to_vec());
                assert!(rows.insert((table.0, one.content.tuple().0), content).is_none());
            }
        },
        progress: &|_| {},
    })?;
    Ok(Opened { store, rows: rows.into_inner().expect("rows"), summary })
}

fn open<M: Medium + 'static>(medium: &Arc<M>) -> Opened {
    try_open(medium, 1, false).expect("open")
}

/// Appends a transaction. A block that it opens gets the same timestamp.
fn append(store: &Store, ts: u64, contents: &[(TableId, u64, &[u8])]) -> Vec<Address> {
    try_append(store, ts, contents).expect("append")
}

fn try_append(
    store: &Store,
    ts: u64,
    contents: &[(TableId, u64, &[u8])],
) -> Result<Vec<Address>, StoreError> {
    append_at(store, ts, ts, contents)
}

/// Like [`try_append`], for a transaction that began long before `now`.
fn append_at(
    store: &Store,
    ts: u64,
    now: u64,
    contents: &[(TableId, u64, &[u8])],
) -> Result<Vec<Address>, StoreError> {
    let (ts, now) = (Timestamp::from_raw(ts), Timestamp::from_raw(now));
    let new = contents.iter().map(|&(table, tuple, row)| NewContent {
        table,
        tuple: TupleId(tuple),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: ts,
        transaction_contents: contents.len() as u64,
        row,
    });
    let mut addresses = Vec::new();
    store.append(0, Urgency::Write, new, || now, &mut addresses)?.persist()?;
    Ok(addresses)
}

fn record(store: &Store, taken_at: u64) {
    store.record_state(store.sample(|| Timestamp::from_raw(taken_at)), &[]).expect("record");
}

fn expect(rows: &Rows, expected: &[(TableId, u64, u64, &[u8])]) {
    let expected = expected.iter().map(|&(table, tuple, ts, row)| ((table.0, tuple), (ts, row.to_vec())));
    assert_eq!(*rows, expected.collect());
}

#[test]
fn partly_filled_blocks_are_taken_up_again() {
    let medium = memory(8);
    let mut expected = Vec::new();
    for life in 0..5u64 {
        let Opened { store, rows, .. } = open(&medium);
        expect(&rows, &expected);
        let ts = 1000 * (life + 1);
        append(&store, ts, &[(A, life, b"row"), (B, life, b"other")]);
        expected.extend([(A, life, ts, &b"row"[..]), (B, life, ts, b"other")]);
        assert_eq!(store.space().open_blocks, 2, "a new block in life {life}");
        if life % 2 == 0 {
            record(&store, ts + 1);
        }
    }
    let summary = open(&medium).summary;
    assert_eq!((summary.contents, summary.discarded), (10, 0));
    assert_eq!(summary.highest, Timestamp::from_raw(5001), "timestamps continue above (T5)");
}

/// An emulated memory counts what it charges for.
#[test]
fn opening_is_charged_for_the_blocks_that_it_reads() {
    let medium = NvmMedium::anonymous(NvmConfig::E).expect("memory");
    let row = [7; 1000];
    let contents: Vec<_> = (0..100).map(|tuple| (A, tuple, &row[..])).collect();
    append(&open(&medium).store, 1000, &contents);
    let before = medium.stats().bytes_read;
    assert_eq!(open(&medium).rows.len(), 100);
    let read = medium.stats().bytes_read - before;
    assert!((100_000..CHUNK).contains(&read), "{read}");
}

#[test]
fn a_transaction_counts_only_if_all_of_it_is_there() {
    let medium = memory(8);
    let store = open(&medium).store;
    append(&store, 1000, &[(A, 1, b"whole"), (B, 1, b"whole")]);
    let torn = append(&store, 2000, &[(A, 2, b"torn"), (B, 2, b"torn"), (A, 3, b"torn")]);
    append(&store, 3000, &[(B, 4, b"later")]);
    drop(store);
    medium.put(torn[1].offset(), &[0; 24]).expect("write");
    for recovery in 0..3 {
        let opened = open(&medium);
        expect(&opened.rows, &[(A, 1, 1000, b"whole"), (B, 1, 1000, b"whole"), (B, 4, 3000, b"later")]);
        let discarded = if recovery == 0 { 2 } else { 0 };
        assert_eq!(opened.summary.discarded, discarded, "recovery {recovery}");
        // The contents of uncommitted transactions were made void, so a record
        // may claim the slots now.
        record(&opened.store, 4000);
    }
    let store = open(&medium).store;
    let again = append(&store, 5000, &[(A, 2, b"again")]);
    assert!(again[0].offset() > torn[2].offset(), "void slots are not reused");
}

#[test]
fn an_undecided_transaction_counts_only_if_all_of_it_is_there() {
    for whole in [true, false] {
        let medium = memory(8);
        let store = open(&medium).store;
        append(&store, 1000, &[(A, 1, b"decided")]);
        let sample = store.sample(|| Timestamp::from_raw(5000));
        store.record_state(sample, &[Timestamp::from_raw(2000)]).expect("record");
        let late = append_at(&store, 2000, 6000, &[(A, 2, b"late"), (B, 2, b"late")]).expect("append");
        drop(store);
        if !whole {
            medium.put(late[1].offset(), &[0; 24]).expect("write");
        }
        let rows = open(&medium).rows;
        let decided = (A, 1, 1000, &b"decided"[..]);
        let late = [decided, (A, 2, 2000, b"late"), (B, 2, 2000, b"late")];
        expect(&rows, if whole { &late } else { &late[..1] });
    }
}

#[test]
fn what_was_durable_and_does_not_fit_is_damage() {
    let medium = memory(8);
    let store = open(&medium).store;
    let addresses = append(&store, 1000, &[(A, 1, b"one"), (A, 2, b"two")]);
    record(&store, 1001);
    drop(store);
    medium.put(addresses[1].offset() + 24, b"2").expect("write");
    let before = bytes(&medium);
    let Err(StoreError::Damaged { place, .. }) = try_open(&medium, 1, false).map(|_| ()) else {
        panic!("damage was not noticed");
    };
    assert!(place.contains("slot 1") && place.contains("table 20"), "{place}");
    assert!(place.contains(&addresses[1].offset().to_string()), "{place}");
    assert!(bytes(&medium) == before, "the medium was changed");
}

fn bytes(medium: &DramMedium) -> Vec<u8> {
    let mut bytes = vec![0; medium.len() as usize];
    medium.get(0, &mut bytes).expect("read");
    bytes
}

#[test]
fn released_blocks_begin_a_new_life() {
    let medium = memory(8);
    let store = open(&medium).store;
    for n in 0..50 {
        append(&store, 1000 + n, &[(A, n, b"of the first life")]);
    }
    // The record lists the block with 50 slots filled.
    record(&store, 2000);
    let period = Period { from: Timestamp::ZERO, until: Timestamp::from_raw(2000) };
    let dropped = BTreeMap::from([(A, period)]);
    let given = store.release_tables(&dropped, usize::MAX, Timestamp::from_raw(2500)).expect("release");
    assert_eq!(given, GivenBack::All);
    append(&store, 3000, &[(B, 1, b"of the second one")]);
    assert_eq!(store.space().open_blocks, 1);
    drop(store);
    let opened = open(&medium);
    expect(&opened.rows, &[(B, 1, 3000, b"of the second one")]);
    append(&opened.store, 4000, &[(B, 2, b"of the second one")]);
    assert_eq!(opened.store.space().open_blocks, 1, "its block is resumed");
}

#[test]
fn relaxed_commits_after_the_record_are_dropped_with_the_boot() {
    for (boot, kept) in [(1, true), (2, false)] {
        let medium = memory(8);
        let store = try_open(&medium, 1, true).expect("open").store;
        append(&store, 1000, &[(A, 1, b"recorded")]);
        record(&store, 1001);
        append(&store, 2000, &[(A, 2, b"whole"), (B, 2, b"whole")]);
        drop(store);
        for _ in 0..2 {
            let opened = try_open(&medium, boot, true).expect("open");
            let mut expected = vec![(A, 1, 1000, &b"recorded"[..])];
            if kept {
                expected.extend([(A, 2, 2000, &b"whole"[..]), (B, 2, 2000, b"whole")]);
            }
            expect(&opened.rows, &expected);
        }
    }
}

#[test]
fn the_older_record_serves_if_the_newer_is_gone() {
    let medium = memory(8);
    let store = open(&medium).store;
    append(&store, 1000, &[(A, 1, b"one")]);
    record(&store, 1001); // sequence 3, the second place
    append(&store, 2000, &[(A, 2, b"two"), (B, 2, b"two")]);
    record(&store, 2001); // sequence 4, the first place
    drop(store);
    let expected: &[(TableId, u64, u64, &[u8])] =
        &[(A, 1, 1000, b"one"), (A, 2, 2000, b"two"), (B, 2, 2000, b"two")];
    let copies = [4 << 10, (4 << 10) + (14 << 10)];
    let watermarks = [2001, 1001];
    for (copy, watermark) in copies.into_iter().zip(watermarks) {
        medium.put(copy + 8, &[0xee]).expect("write");
        let opened = open(&medium);
        assert_eq!(opened.store.durable_watermark(), Timestamp::from_raw(watermark));
        expect(&opened.rows, expected);
    }
    for copy in [32 << 10, (32 << 10) + (14 << 10)] {
        medium.put(copy + 8, &[0xee]).expect("write");
    }
    let error = try_open(&medium, 1, false).map(|_| ()).expect_err("no record is left");
    assert!(error.to_string().contains("state records"), "{error}");
}

#[test]
fn lines_that_were_cut_off_are_cleared() {
    let medium = memory(8);
    let store = open(&medium).store;
    append(&store, 1000, &[(A, 1, b"one")]);
    record(&store, 1001);
    drop(store);
    // A half-written descriptor, and a half-written chunk header with a
    // descriptor behind it.
    medium.grow(3 * CHUNK).expect("grow");
    let lines = [HEAD + 5 * 64, 2 * CHUNK, 2 * CHUNK + 64];
    for line in lines {
        medium.put(line + 8, &[0xab; 16]).expect("write");
    }
    expect(&open(&medium).rows, &[(A, 1, 1000, b"one")]);
    let mut bytes = bytes(&medium);
    // What lies beyond the last block in use is given up.
    bytes.resize(3 * CHUNK as usize, 0);
    for line in lines {
        assert!(bytes[line as usize..][..64].iter().all(|&b| b == 0), "line {line}");
    }
}

/// A content that was cut off, and another of the same length over it that is cut
/// off in turn: what the medium has of both must not make the first one whole (T2).
#[test]
fn what_was_cut_off_twice_does_not_become_whole() {
    let (first, second, third) = ([1; 100], [2; 100], {
        let mut row = [3; 100];
        row[40..].fill(2);
        row
    });
    let medium = memory(8);
    let Opened { store, .. } = open(&medium);
    append(&store, 1000, &[(A, 1, &first)]);
    record(&store, 1500);
    let at = append(&store, 2000, &[(A, 2, &second)])[0].offset();
    drop(store);
    // All but the lines from the second one on.
    medium.put(at + 64, &[0; 60]).expect("write");
    let Opened { store, rows, .. } = open(&medium);
    expect(&rows, &[(A, 1, 1000, &first)]);
    let found = bytes(&medium)[at as usize..][..64].to_vec();
    assert_eq!(append(&store, 3000, &[(A, 3, &third)])[0].offset(), at);
    drop(store);
    medium.put(at, &found).expect("write");
    expect(&open(&medium).rows, &[(A, 1, 1000, &first)]);
}

#[test]
fn a_store_whose_making_was_cut_short_is_made_anew() {
    let whole = memory(8);
    drop(open(&whole).store);
    let bytes = bytes(&whole);
    for words in 0..15u32 {
        let medium = memory(8);
        medium.grow(HEAD).expect("grow");
        medium.put(64, &bytes[64..HEAD as usize]).expect("write");
        for (n, at) in [0, 8, 16, 56].into_iter().enumerate() {
            if words & (1 << n) != 0 {
                medium.put(at as u64, &bytes[at..at + 8]).expect("write");
            }
        }
        expect(&open(&medium).rows, &[]);
    }
}

#[test]
fn a_full_medium_refuses_whole_transactions() {
    let medium = memory(2);
    let store = open(&medium).store;
    let row = vec![1; 1000];
    append(&store, 1000, &[(A, 0, &row)]);
    let many: Vec<_> = (0..8000).map(|tuple| (A, tuple, &row[..])).collect();
    let error = try_append(&store, 2000, &many).map(drop).expect_err("full");
    assert!(matches!(&error, StoreError::Medium(error) if error.is_full()), "{error}");
    // The blocks that it opened serve other transactions, of the same table and
    // size.
    append(&store, 3000, &many[1..1200]);
    record(&store, 4000);
    drop(store);
    let opened = open(&medium);
    assert_eq!(opened.rows.len(), 1200);
    assert!(opened.rows.values().all(|(ts, _)| *ts == 1000 || *ts == 3000));
}

/// Beyond the last chunk in use there may be chunks that an earlier life has given
/// back and not cut off. Space is found for them before anything is written there.
#[test]
fn space_is_found_again_beyond_the_last_chunk() {
    let memory = memory(32);
    let store = open(&memory).store;
    let row = vec![1; 60_000];
    let many = |ts: u64| (0..100).map(|n| (A, 1000 * ts + n, &row[..])).collect::<Vec<_>>();
    let mut used = 0;
    for ts in 1..4 {
        let addresses = append(&store, 1000 * ts, &many(ts));
        used = used.max(addresses.iter().map(|address| address.offset() / CHUNK).max().expect("addresses"));
    }
    record(&store, 4000);
    drop(store);
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let listener = Arc::clone(&heard);
    let hear = move |call| listener.lock().expect("no panic").push(call);
    let medium = Arc::new(HeardMedium::over(memory, hear));
    // The medium may find space ahead of use at any time. What it finds after the
    // opening is there.
    let before = medium.len();
    let store = open(&medium).store;
    let unknown = used + 1..medium.len().min(before) / CHUNK;
    assert!(!unknown.is_empty(), "some of the reserve lies there");
    (5..8).for_each(|ts| drop(append(&store, 1000 * ts, &many(ts))));
    let mut found = BTreeSet::new();
    let mut written = BTreeSet::new();
    for call in heard.lock().expect("no panic").iter() {
        match call {
            Heard::Restore { offset } => drop(found.insert(offset / CHUNK)),
            Heard::Write { offset, .. } if unknown.contains(&(offset / CHUNK)) => {
                assert!(found.contains(&(offset / CHUNK)), "there may be no space behind offset {offset}");
                written.insert(offset / CHUNK);
            }
            _ => {}
        }
    }
    assert!(!written.is_empty());
}

/// What a process has written that was killed may be in the page cache only when the next one reads it. So may the zeros
/// in place of descriptors of blocks at the end.
#[test]
fn an_opening_syncs_before_it_makes_the_medium_shorter() {
    let memory = memory(8);
    let store = open(&memory).store;
    append(&store, 1000, &[(A, 1, b"one")]);
    record(&store, 1001);
    drop(store);
    memory.grow(6 * CHUNK).expect("grow");
    let heard: Arc<Mutex<Vec<Heard>>> = Arc::default();
    let listener = Arc::clone(&heard);
    let hear = move |call| listener.lock().expect("no panic").push(call);
    let medium = Arc::new(HeardMedium::over(memory.clone(), hear));
    let store = open(&medium).store;
    let calls = std::mem::take(&mut *heard.lock().expect("no panic"));
    let at = |wanted: fn(&Heard) -> bool| calls.iter().position(wanted);
    let (sync, shrink) = (at(|call| *call == Heard::Sync), at(|call| matches!(call, Heard::Shrink { .. })));
    assert!(shrink.is_some() && sync.is_some_and(|sync| Some(sync) < shrink), "{calls:?}");
    drop(store);
}

#[test]
fn missing_chunks_are_noticed() {
    let medium = memory(8);
    let store = open(&medium).store;
    append(&store, 1000, &[(A, 1, b"one"), (A, 2, &[1; 500])]);
    record(&store, 1001);
    drop(store);
    let short = memory(8);
    short.grow(HEAD).expect("grow");
    short.put(0, &bytes(&medium)[..HEAD as usize]).expect("write");
    let error = try_open(&short, 1, false).map(|_| ()).expect_err("truncated");
    assert!(
        matches!(error, StoreError::Damaged { .. }) && error.to_string().contains("truncated"),
        "{error}"
    );
}

#[test]
fn nobody_relies_on_a_block_that_is_not_durable() {
    let medium = memory(8);
    let store = open(&medium).store;
    let flags = ContentFlags::ROW;
    let ts = Timestamp::from_raw(1000);
    let (tuple, row) = (TupleId(1), &b"opens the block"[..]);
    let new = [NewContent {
        table: A,
        tuple,
        flags,
        layout: 0,
        since: None,
        timestamp: ts,
        transaction_contents: 1,
        row,
    }];
    let mut addresses = Vec::new();
    let opening = store.append(0, Urgency::Write, new.into_iter(), || ts, &mut addresses).expect("append");
    std::thread::scope(|scope| {
        let other = scope.spawn(|| append(&store, 2000, &[(A, 2, b"opens the block")]));
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(!other.is_finished(), "appended to a block whose descriptor may be lost (I-7)");
        opening.persist().expect("persist");
        other.join().expect("no panic");
    });
    assert_eq!(store.space().open_blocks, 1);
}
