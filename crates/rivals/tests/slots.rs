//! Slots that are rewritten one by one: what the store refuses, what it allows,
//! and what recovery makes of the slots (I-10, T1, T2, T3, T12).
//!
//! A store asks for free slots only when the open block has no room, so the
//! tests fill blocks first.

use pantile_media::unshared::Unshared;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_media::{DramMedium, MapOptions, Medium};
use pantile_rivals::FreeSlots;
use pantile_store::{
    BlockRef, ContentFlags, GivenBack, NewContent, Period, Scan, ScanSummary, SlotReuse, Store, StoreError,
    StoreOptions, Urgency,
};

const CHUNK: u64 = 2 << 20;
const A: TableId = TableId(20);
const B: TableId = TableId(21);
const SLOTS: u64 = 8;

/// Rows by table and tuple: the `begin_ts` of each version that was found, and
/// its bytes.
type Rows = BTreeMap<(u32, u64), Vec<(u64, Vec<u8>)>>;

/// Whether slots are rewritten.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Layout {
    Append,
    Recycle,
}

struct Opened {
    store: Store,
    slots: Arc<FreeSlots>,
    rows: Rows,
    summary: ScanSummary,
}

fn memory(chunks: u64) -> Arc<DramMedium> {
    DramMedium::new(MapOptions { reserve_bytes: 1 << 28, max_bytes: Some(chunks * CHUNK) }).expect("memory")
}

fn try_open(medium: &Arc<DramMedium>, layout: Layout) -> Result<Opened, StoreError> {
    let slots = Arc::new(FreeSlots::default());
    let reuse = (layout == Layout::Recycle).then(|| Arc::clone(&slots) as Arc<dyn SlotReuse>);
    let options = StoreOptions { block_slots: SLOTS as u32, boot: 1, reuse, ..StoreOptions::default() };
    let store = Store::open(Arc::clone(medium) as Arc<dyn Medium>, options, 0x1234_5678)?;
    let rows = Mutex::new(Rows::new());
    let summary = store.recover(&Scan {
        threads: 1,
        found: &|table, found| {
            let mut rows = rows.lock().expect("rows");
            for one in found {
                let version = (one.content.timestamp().get(), one.content.row().to_vec());
                rows.entry((table.0, one.content.tuple().0)).or_default().push(version);
            }
        },
        progress: &|_| {},
    })?;
    Ok(Opened { store, slots, rows: rows.into_inner().expect("rows"), summary })
}

fn open(medium: &Arc<DramMedium>, layout: Layout) -> Opened {
    try_open(medium, layout).expect("open")
}

fn ts(raw: u64) -> Timestamp {
    Timestamp::from_raw(raw)
}

/// The row of a tuple as the transaction with this timestamp writes it.
fn row(tuple: u64, at: u64) -> Vec<u8> {
    (tuple << 32 | at).to_le_bytes().to_vec()
}

/// Appends one transaction's rows.
fn append(store: &Store, at: u64, rows: &[(TableId, u64)]) -> Vec<Address> {
    let bytes: Vec<_> = rows.iter().map(|&(_, tuple)| row(tuple, at)).collect();
    let contents = rows.iter().zip(&bytes).map(|(&(table, tuple), row)| NewContent {
        table,
        tuple: TupleId(tuple),
        flags: ContentFlags::ROW,
        layout: 0,
        since: Some(Timestamp::ZERO),
        timestamp: ts(at),
        transaction_contents: rows.len() as u64,
        row,
    });
    let mut addresses = Vec::new();
    let appended = store.append(0, Urgency::Write, contents, || ts(at), &mut addresses).expect("append");
    appended.persist().expect("persist");
    addresses
}

fn tuples(table: TableId, numbers: std::ops::Range<u64>) -> Vec<(TableId, u64)> {
    numbers.map(|tuple| (table, tuple)).collect()
}

fn record(store: &Store, at: u64) {
    store.record_state(store.sample(|| ts(at)), &[]).expect("record");
}

fn close(store: &Store, at: u64) {
    store.record_closed(store.sample(|| ts(at))).expect("record");
}

fn supersede(store: &Store, versions: &[Address], at: u64) {
    versions.iter().for_each(|version| _ = store.supersede(*version, ts(at)));
}

/// Supersedes versions of A, and frees their slots.
fn free(store: &Store, slots: &FreeSlots, versions: &[Address], at: u64) {
    supersede(store, versions, at);
    record(store, at);
    assert_eq!(slots.recycle(store, A, versions, ts(at)), Some(versions.len()));
}

fn newest(rows: &Rows) -> BTreeMap<(u32, u64), (u64, Vec<u8>)> {
    rows.iter().map(|(key, versions)| (*key, versions.iter().max().expect("a version").clone())).collect()
}

fn expected(rows: &[(TableId, u64, u64)]) -> BTreeMap<(u32, u64), (u64, Vec<u8>)> {
    rows.iter().map(|&(table, tuple, at)| ((table.0, tuple), (at, row(tuple, at)))).collect()
}

#[test]
fn t1_a_slot_waits_for_the_durable_watermark() {
    let medium = memory(8);
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    let old = append(&store, 1000, &tuples(A, 0..SLOTS));
    append(&store, 2000, &tuples(A, 0..SLOTS));
    supersede(&store, &old, 2000);
    record(&store, 1999);
    assert_eq!(slots.recycle(&store, A, &old, ts(2000)), None, "their successors may still be lost");
    assert_eq!(slots.count(), 0);
    let elsewhere = append(&store, 2100, &[(A, 9)]);
    assert!(!old.contains(&elsewhere[0]));
    record(&store, 2000);
    assert_eq!(slots.recycle(&store, A, &old, ts(2000)), Some(SLOTS as usize));
    assert_eq!(slots.count(), SLOTS);
}

#[test]
fn slots_are_written_again_and_read_back() {
    let medium = memory(8);
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    let old = append(&store, 1000, &tuples(A, 0..SLOTS));
    append(&store, 2000, &tuples(A, 0..SLOTS));
    let before = store.space();
    free(&store, &slots, &old, 2000);
    let others = append(&store, 2100, &tuples(B, 0..SLOTS));
    assert!(others.iter().all(|to| !old.contains(to)), "slots stay with their table");
    let again = append(&store, 3000, &tuples(A, 100..100 + SLOTS));
    assert_eq!(again.iter().collect::<BTreeSet<_>>(), old.iter().collect(), "each slot once");
    assert_eq!(slots.count(), 0);
    for (tuple, address) in (100..).zip(&again) {
        let content = store.content(*address);
        assert_eq!((content.tuple(), content.timestamp()), (TupleId(tuple), ts(3000)));
        assert_eq!(content.row(), row(tuple, 3000));
        assert!(store.link(*address).is_none(), "the link belonged to the earlier version");
    }
    let after = store.space();
    assert_eq!(after.contents_stored, before.contents_stored + SLOTS, "the contents of B");
    assert_eq!(after.obsolete_bytes, 0);
    record(&store, 3000);
    drop(store);
    let rows: Vec<_> = (0..SLOTS).flat_map(|n| [(A, n, 2000), (B, n, 2100), (A, 100 + n, 3000)]).collect();
    let opened = open(&medium, Layout::Recycle);
    assert_eq!(newest(&opened.rows), expected(&rows));
    assert_eq!(opened.summary.contents, 3 * SLOTS, "nothing is left of what was overwritten");
}

#[test]
fn links_of_a_slot_end_with_its_version() {
    let medium = memory(8);
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    let oldest = append(&store, 1000, &[(A, 1)]);
    let old = append(&store, 2000, &[(A, 1)]);
    store.set_link(old[0], oldest[0], ts(1000));
    let link = store.link(old[0]).expect("set");
    assert!(store.take_link(old[0], link), "the first caller takes it");
    assert!(!store.take_link(old[0], link), "the second caller does not");
    store.set_link(old[0], oldest[0], ts(1000));
    append(&store, 3000, &[(A, 1)]);
    free(&store, &slots, &old, 3000);
    append(&store, 3500, &tuples(A, 10..10 + SLOTS - 3));
    assert_eq!(append(&store, 4000, &[(A, 7)]), old);
    assert!(store.link(old[0]).is_none());
    assert!(!store.take_link(old[0], link), "it belonged to another version");
}

#[test]
#[should_panic(expected = "a slot is freed once")]
fn a_slot_is_free_once() {
    let Opened { store, slots, .. } = open(&memory(8), Layout::Recycle);
    let old = append(&store, 1000, &[(A, 1)]);
    append(&store, 2000, &[(A, 1)]);
    free(&store, &slots, &old, 2000);
    slots.recycle(&store, A, &old, ts(2000));
}

#[test]
#[should_panic(expected = "a slot is freed although its version is the newest")]
fn the_newest_version_is_never_free() {
    let Opened { store, slots, .. } = open(&memory(8), Layout::Recycle);
    let newest = append(&store, 1000, &[(A, 1)]);
    record(&store, 1000);
    slots.recycle(&store, A, &newest, ts(1000));
}

#[test]
fn blocks_that_only_grow_are_not_written_again() {
    let medium = memory(8);
    let store = open(&medium, Layout::Append).store;
    let old = append(&store, 1000, &tuples(A, 0..SLOTS));
    append(&store, 2000, &tuples(A, 0..SLOTS));
    close(&store, 2000);
    drop(store);
    // Its descriptor says so, whichever store opens it.
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    supersede(&store, &old, 2000);
    assert_eq!(slots.recycle(&store, A, &old, Timestamp::ZERO), Some(0));
    record(&store, 2500);
    let elsewhere = append(&store, 3000, &[(A, 1)]);
    assert!(!old.contains(&elsewhere[0]));
    drop(store);
    // The reverse: a store that only appends does so in such a block too.
    let Opened { store, slots, .. } = open(&medium, Layout::Append);
    record(&store, 3500);
    free(&store, &slots, &elsewhere, 4000);
    assert!(!elsewhere.contains(&append(&store, 5000, &[(A, 1)])[0]));
}

/// A cut in an overwrite hits only a version that had been superseded.
#[test]
fn a_torn_overwrite_is_void_and_not_damage() {
    for bytes in [0, 8, 16, 24, 31] {
        let medium = memory(8);
        let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
        let old = append(&store, 1000, &tuples(A, 0..SLOTS));
        append(&store, 2000, &tuples(A, 0..SLOTS));
        free(&store, &slots, &old, 2000);
        let again = append(&store, 3000, &[(A, 100)]);
        drop(store);
        let mut torn = vec![0; 32];
        medium.get(again[0].offset(), &mut torn).expect("read");
        // The first bytes of the new content, and something else behind them.
        torn[bytes..].iter_mut().for_each(|byte| *byte ^= 0x5A);
        medium.put(again[0].offset(), &torn).expect("write");
        for recovery in 0..2 {
            let opened = open(&medium, Layout::Recycle);
            assert!(!opened.rows.contains_key(&(A.0, 100)), "{bytes} bytes, recovery {recovery}");
            let rows: Vec<_> = (0..SLOTS).map(|n| (A, n, 2000)).collect();
            assert_eq!(newest(&opened.rows), expected(&rows));
            record(&opened.store, 4000);
            // The slot is void, and can be rewritten.
            let mut superseded = BTreeSet::new();
            opened.store.superseded_versions(|_, versions| superseded.extend(versions.iter().copied()));
            assert!(superseded.contains(&again[0]));
        }
        let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
        assert_eq!(slots.recycle(&store, A, &again, Timestamp::ZERO), Some(1));
        assert_eq!(append(&store, 5000, &[(A, 200)]), again);
    }
}

/// In a block that is only appended to, the same bytes can only be rot.
#[test]
fn the_same_in_a_block_that_only_grows_is_damage() {
    for (layout, is_damage) in [(Layout::Append, true), (Layout::Recycle, false)] {
        let medium = memory(8);
        let store = open(&medium, layout).store;
        let addresses = append(&store, 1000, &tuples(A, 0..SLOTS));
        record(&store, 1001);
        drop(store);
        medium.put(addresses[3].offset() + 25, &[0xFF]).expect("write");
        let opened = try_open(&medium, layout).map(|_| ());
        assert_eq!(matches!(opened, Err(StoreError::Damaged { .. })), is_damage, "{layout:?}: {opened:?}");
    }
}

/// Nothing was in progress when the database was closed.
#[test]
fn after_a_clean_close_it_is_damage_in_any_block() {
    for layout in [Layout::Append, Layout::Recycle] {
        let medium = memory(8);
        let store = open(&medium, layout).store;
        let addresses = append(&store, 1000, &tuples(A, 0..SLOTS));
        close(&store, 1001);
        drop(store);
        medium.put(addresses[3].offset() + 25, &[0xFF]).expect("write");
        let Err(StoreError::Damaged { place, .. }) = try_open(&medium, layout).map(|_| ()) else {
            panic!("{layout:?}: not noticed");
        };
        assert!(place.contains("slot 3") && place.contains("table 20"), "{place}");
    }
}

/// T2, T3: whichever slots are free, and whether or not they have been
/// rewritten, recovery finds the same newest versions.
#[test]
fn old_content_never_comes_back() {
    let medium = memory(8);
    let mut live: BTreeMap<u64, (u64, Address)> = BTreeMap::new();
    let mut at = 1000;
    for life in 0..6u64 {
        let Opened { store, slots, rows, .. } = open(&medium, Layout::Recycle);
        let now: Vec<_> = live.iter().map(|(&tuple, &(begin, _))| (A, tuple, begin)).collect();
        assert_eq!(newest(&rows), expected(&now), "life {life}");
        record(&store, at);
        let is_live: BTreeSet<_> = live.values().map(|(_, address)| *address).collect();
        // All versions except the newest have been superseded, as the engine
        // reports to the store.
        let mut superseded = Vec::new();
        for block in blocks(&store) {
            let mut out = Vec::new();
            store.survivors(block, 0, SLOTS as usize, &mut out);
            superseded.extend(out.iter().map(|one| one.address).filter(|address| !is_live.contains(address)));
        }
        superseded.retain(|address| store.content_header(*address).timestamp() != Timestamp::ZERO);
        supersede(&store, &superseded, at);
        store.superseded_versions(|table, versions| {
            _ = slots.recycle(&store, table, versions, Timestamp::ZERO)
        });
        for round in 0..10u64 {
            at += 10;
            let keys: Vec<_> = (0..5).map(|n| (A, (life * 7 + round * 3 + n) % 20)).collect();
            let written = append(&store, at, &keys);
            let old: Vec<_> = keys
                .iter()
                .zip(&written)
                .filter_map(|((_, tuple), to)| live.insert(*tuple, (at, *to)).map(|(_, from)| from))
                .collect();
            supersede(&store, &old, at);
            if round % 2 == 0 {
                record(&store, at);
                assert_eq!(slots.recycle(&store, A, &old, ts(at)), Some(old.len()));
            }
        }
        let used = store.space();
        assert!(used.contents_stored < 200, "slots are rewritten: {used:?}");
    }
}

fn blocks(store: &Store) -> Vec<BlockRef> {
    (1..store.chunks_end())
        .flat_map(|chunk| (0..store.blocks_in(chunk)).filter_map(move |index| store.block_at(chunk, index)))
        .collect()
}

#[test]
fn slots_of_a_dropped_table_are_forgotten() {
    let medium = memory(8);
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    let old = append(&store, 1000, &tuples(A, 0..SLOTS));
    let kept = append(&store, 1100, &tuples(B, 0..SLOTS));
    append(&store, 2000, &tuples(A, 0..SLOTS));
    free(&store, &slots, &old, 2000);
    supersede(&store, &kept[..2], 2000);
    assert_eq!(slots.recycle(&store, B, &kept[..2], ts(2000)), Some(2));
    let dropped = BTreeMap::from([(A, Period { from: Timestamp::ZERO, until: ts(2000) })]);
    let given = store.release_tables(&dropped, usize::MAX, ts(2500)).expect("release");
    assert_eq!(given, GivenBack::All);
    assert_eq!(slots.count(), 2, "the slots of B");
    assert_eq!(slots.recycle(&store, A, &old, ts(2000)), Some(0), "they belong to no table");
    // Any table may take their space, and the slots of B are where they were.
    let again = append(&store, 3000, &tuples(B, 50..50 + 3 * SLOTS));
    assert!(kept[..2].iter().all(|slot| again.contains(slot)));
    record(&store, 3000);
    assert_eq!(slots.recycle(&store, A, &old, ts(2000)), Some(0), "they belong to another table now");
    drop(store);
    let rows = open(&medium, Layout::Recycle).rows;
    assert!(rows.keys().all(|(table, _)| *table == B.0));
    assert_eq!(rows.len() as u64, SLOTS - 2 + 3 * SLOTS);
}

/// A transaction that finds no room for some of its rows gives back the slots
/// that it has taken for others.
#[test]
fn slots_that_were_taken_and_not_written_are_not_lost() {
    let medium = memory(24);
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    let old = append(&store, 1000, &tuples(A, 0..SLOTS));
    append(&store, 2000, &tuples(A, 0..SLOTS));
    // A table for each append, so that every append takes blocks until no
    // chunks are left.
    let full = (100..).find(|n| {
        let rows = [(TableId(*n), 0)];
        let large = vec![0; 40 + 8 * *n as usize];
        let new = rows.iter().map(|&(table, tuple)| NewContent {
            table,
            tuple: TupleId(tuple),
            flags: ContentFlags::ROW,
            layout: 0,
            since: None,
            timestamp: ts(1500),
            transaction_contents: 1,
            row: &large,
        });
        let appended = store.append(0, Urgency::Write, new, || ts(1500), &mut Vec::new());
        appended.and_then(|appended| appended.persist()).is_err()
    });
    let full = TableId(full.expect("full at last"));
    free(&store, &slots, &old, 2000);
    for n in 0..3 {
        let large = vec![0; 40 + 8 * full.0 as usize];
        let small = row(50, 3000);
        let new = [(A, &small), (full, &large), (A, &small)].map(|(table, row)| NewContent {
            table,
            tuple: TupleId(50 + n),
            flags: ContentFlags::ROW,
            layout: 0,
            since: Some(Timestamp::ZERO),
            timestamp: ts(3000),
            transaction_contents: 3,
            row,
        });
        let mut addresses = Vec::new();
        let refused = store.append(0, Urgency::Write, new.into_iter(), || ts(3000), &mut addresses);
        assert!(refused.is_err_and(|error| matches!(error, StoreError::Medium(e) if e.is_full())));
        assert!(addresses.is_empty());
        assert_eq!(slots.count(), SLOTS, "attempt {n}");
    }
    let again = append(&store, 4000, &tuples(A, 100..100 + SLOTS));
    assert_eq!(again.iter().collect::<BTreeSet<_>>(), old.iter().collect(), "each slot once");
}

/// A commit's copies of versions that it supersedes are only for readers of
/// this process.
#[test]
fn copies_of_superseded_versions_are_not_recovered() {
    let medium = memory(8);
    let Opened { store, slots, .. } = open(&medium, Layout::Recycle);
    let first = append(&store, 1000, &tuples(A, 0..SLOTS));
    let before = store.space();
    let copy = |at: u64, versions: &[Address]| {
        let mut copies = Vec::new();
        let versions = versions.iter().map(|version| (A, *version));
        store.copy_superseded(0, versions, || ts(at), &mut copies).expect("space");
        copies
    };
    let copies = copy(1000, &first);
    for (tuple, copy) in (0..).zip(&copies) {
        assert_eq!(store.content(*copy).row(), row(tuple, 1000), "the copies are read unchanged");
    }
    let after = store.space();
    assert_eq!(after.payload_bytes, before.payload_bytes, "no row of a transaction");
    assert_eq!(after.contents_appended, before.contents_appended);
    // Copies never go to free slots: what lies beside them must be freed with
    // them.
    let more = copy(2500, &first[2..4]);
    free(&store, &slots, &first[..2], 2600);
    let more = [more, copy(2700, &first[2..])].concat();
    assert!(more.iter().all(|copy| !first.contains(copy)));
    assert_eq!(slots.count(), 2);
    drop(store);
    let opened = open(&medium, Layout::Recycle);
    assert_eq!(opened.rows.len() as u64, SLOTS);
    assert!(opened.rows.values().all(|versions| versions.len() == 1), "{:?}", opened.rows);
    // Blocks that held nothing but copies are free.
    let used = opened.store.space();
    assert_eq!((used.contents_stored, used.open_blocks + used.sealed_blocks), (SLOTS, 1), "{used:?}");
}

/// Without space for copies, nothing is changed.
#[test]
fn copies_do_not_take_the_reserve() {
    let medium = memory(8);
    let store = open(&medium, Layout::Recycle).store;
    let first = append(&store, 1000, &tuples(A, 0..SLOTS));
    let (mut copies, mut refused) = (Vec::new(), None);
    while refused.is_none() {
        let versions = first.iter().map(|version| (A, *version));
        let before = copies.len();
        refused = store.copy_superseded(0, versions, || ts(1000), &mut copies).err();
        assert_eq!(copies.len(), before + if refused.is_none() { SLOTS as usize } else { 0 });
    }
    assert!(matches!(refused, Some(StoreError::Medium(error)) if error.is_full()));
    // A size class of its own, which needs a chunk.
    let new = [NewContent {
        table: B,
        tuple: TupleId(1),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: ts(2000),
        transaction_contents: 1,
        row: &[1; 500],
    }];
    let mut addresses = Vec::new();
    let appended = store.append(0, Urgency::Delete, new.into_iter(), || ts(2000), &mut addresses);
    appended.expect("room for deletes").persist().expect("persist");
}
