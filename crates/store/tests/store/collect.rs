//! What the store lets collectors do to blocks. It allows nothing that loses a
//! row, whatever a collector asks for (T1, T2, T12, T14).

use pantile_media::unshared::Unshared;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_media::{DramMedium, MapOptions, Medium};
use pantile_nvm::{NvmConfig, NvmMedium};
use pantile_store::{
    BlockRef, BlockState, ContentFlags, KeepLinks, NewContent, Refused, Scan, Store, StoreError,
    StoreOptions, Survivor, Urgency, Visited,
};
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image};
use pantile_testkit::{Fault, FaultMedium, How, Operation};

const CHUNK: u64 = 2 << 20;
const A: TableId = TableId(20);
const B: TableId = TableId(21);
const SLOTS: u64 = 8;
/// Where the first chunk begins, its header page, and its blocks.
const HEAD: u64 = 64 << 10;
const PAGE: u64 = 12_288;
const SMALLEST: u64 = 16_448;

/// Rows by table and tuple: the newest row, its transaction, and the number of
/// versions.
type Rows = BTreeMap<(u32, u64), Vec<u64>>;

fn memory(chunks: u64) -> Arc<DramMedium> {
    DramMedium::new(MapOptions { reserve_bytes: 1 << 28, max_bytes: Some(chunks * CHUNK) }).expect("memory")
}

fn try_open<M: Medium + 'static>(medium: &Arc<M>) -> Result<(Store, Rows), StoreError> {
    open_with(medium, StoreOptions { block_slots: SLOTS as u32, boot: 1, ..StoreOptions::default() })
}

fn open_with<M: Medium + 'static>(
    medium: &Arc<M>,
    options: StoreOptions,
) -> Result<(Store, Rows), StoreError> {
    let store = Store::open(Arc::clone(medium) as Arc<dyn Medium>, options, 0x1234_5678)?;
    let rows = Mutex::new(Rows::new());
    store.recover(&Scan {
        threads: 1,
        found: &|table, found| {
            let mut rows = rows.lock().expect("rows");
            for one in found {
                let key = (table.0, one.content.tuple().0);
                rows.entry(key).or_default().push(one.content.timestamp().get());
            }
        },
        progress: &|_| {},
    })?;
    Ok((store, rows.into_inner().expect("rows")))
}

fn open<M: Medium + 'static>(medium: &Arc<M>) -> (Store, Rows) {
    try_open(medium).expect("open")
}

fn ts(raw: u64) -> Timestamp {
    Timestamp::from_raw(raw)
}

fn contents(at: u64, rows: &[(TableId, u64)]) -> impl Iterator<Item = NewContent<'_>> + Clone {
    rows.iter().map(move |&(table, tuple)| NewContent {
        table,
        tuple: TupleId(tuple),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: ts(at),
        transaction_contents: rows.len() as u64,
        row: b"some row",
    })
}

fn try_append(
    store: &Store,
    urgency: Urgency,
    at: u64,
    rows: &[(TableId, u64)],
) -> Result<Vec<Address>, StoreError> {
    let mut addresses = Vec::new();
    store.append(0, urgency, contents(at, rows), || ts(at), &mut addresses)?.persist()?;
    Ok(addresses)
}

fn append(store: &Store, at: u64, rows: &[(TableId, u64)]) -> Vec<Address> {
    try_append(store, Urgency::Write, at, rows).expect("append")
}

fn record(store: &Store, at: u64) {
    store.record_state(store.sample(|| ts(at)), &[]).expect("record");
}

/// A block's worth of rows in one transaction, and the block that they are in.
fn block_of(store: &Store, table: TableId, at: u64) -> (BlockRef, Vec<Address>) {
    let rows: Vec<_> = (0..SLOTS).map(|tuple| (table, tuple)).collect();
    let addresses = append(store, at, &rows);
    (block_at(store, addresses[0]), addresses)
}

fn block_at(store: &Store, address: Address) -> BlockRef {
    let chunk = (address.offset() / CHUNK) as u32;
    let mut blocks = (0..store.blocks_in(chunk)).filter_map(|index| store.block_at(chunk, index));
    let found = store.block_of(address).expect("in use");
    assert!(blocks.any(|b| b == found));
    found
}

fn survivors(store: &Store, block: BlockRef) -> Vec<Survivor<'_>> {
    let mut out = Vec::new();
    assert_eq!(store.survivors(block, 0, 100, &mut out), Visited::default());
    out
}

fn refusal(store: &Store, block: BlockRef, copies: Option<pantile_media::SyncPoint>) -> Option<Refused> {
    store.release(block, copies, None).expect("no failure").err()
}

#[test]
fn blocks_are_released_only_when_nothing_is_lost() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let (block, addresses) = block_of(&store, A, 1000);
    assert_eq!(refusal(&store, block, None), Some(Refused::NotFrozen), "it is sealed");
    assert!(store.freeze(block).expect("freeze"));
    assert!(!store.freeze(block).expect("freeze"), "once");
    assert_eq!(refusal(&store, block, None), Some(Refused::Alive(SLOTS as u32)));
    for address in &addresses[1..] {
        store.supersede(*address, ts(2000));
    }
    assert_eq!(refusal(&store, block, None), Some(Refused::Alive(1)));
    store.leave(addresses[0], ts(2100));
    assert_eq!(
        refusal(&store, block, None),
        Some(Refused::NotDurable),
        "its contents are above the durable watermark (T1)"
    );
    record(&store, 1999);
    assert_eq!(
        refusal(&store, block, None),
        Some(Refused::NotDurable),
        "its successors are above the durable watermark"
    );
    record(&store, 2000);
    assert_eq!(refusal(&store, block, None), Some(Refused::NotDurable), "no record expects the copy yet");
    record(&store, 2100);
    let info = store.block_info(block).expect("alive");
    assert_eq!((info.evidence, info.seen_until), (ts(2100), ts(2100)));
    assert_eq!(refusal(&store, block, None), None);
    assert_eq!(store.block_info(block).map(|i| i.state), Some(BlockState::Released));
    assert_eq!(refusal(&store, block, None), Some(Refused::NotFrozen), "once");
    store.free(block, ts(3000));
    assert!(store.block_info(block).is_none(), "its generation has ended");
    assert_eq!(refusal(&store, block, None), Some(Refused::NotFrozen));
}

/// Whatever the durable watermark says (I-10; T12). A medium that calls data
/// durable before it is would lose the copies.
#[test]
fn a_block_waits_until_its_copies_are_durable() {
    for broken in [None, Some(Broken::SyncPoint)] {
        let medium = CutMedium::new(&Image::default(), CutKind::File, broken);
        wait_for_copies(&medium, broken.is_none());
    }
}

fn wait_for_copies(medium: &Arc<CutMedium>, waits: bool) {
    let (store, _) = open(medium);
    let (block, addresses) = block_of(&store, A, 1000);
    assert!(store.freeze(block).expect("freeze"));
    addresses.iter().for_each(|address| _ = store.supersede(*address, ts(2000)));
    record(&store, 2000);
    let copies = medium.sync_point();
    assert_eq!(refusal(&store, block, Some(copies)), waits.then_some(Refused::NotDurable));
    if waits {
        medium.sync_all().expect("sync");
        assert_eq!(refusal(&store, block, Some(copies)), None);
    }
}

#[test]
fn survivors_are_committed_by_themselves() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    // One transaction over two tables; only its part in A is copied.
    let rows: Vec<_> = (0..SLOTS).map(|tuple| (A, tuple)).chain([(B, 1)]).collect();
    let addresses = append(&store, 1000, &rows);
    let block = block_at(&store, addresses[0]);
    assert!(store.freeze(block).expect("freeze"));
    addresses[2..SLOTS as usize].iter().for_each(|address| _ = store.supersede(*address, ts(1500)));
    let moved = survivors(&store, block);
    assert_eq!(moved.len(), 2);
    let moved: Vec<_> = moved.into_iter().map(|s| (A, s)).collect();
    let mut copies = Vec::new();
    store.copy_survivors(0, &moved, || ts(1600), &mut copies).expect("copy");
    drop(moved);
    drop(store);
    // The transaction cannot be whole any more, because a part of it rots.
    medium.put(addresses[8].offset(), &[0; 24]).expect("write");
    let (store, rows) = open(&medium);
    let expected = Rows::from([((A.0, 0), vec![1000]), ((A.0, 1), vec![1000])]);
    assert_eq!(rows, expected, "only the copies of the transaction count");
    assert!(copies.iter().all(|to| store.content(*to).flags().is_relocated()));
}

#[test]
fn a_recycled_block_starts_anew() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let (block, addresses) = block_of(&store, A, 1000);
    addresses.iter().for_each(|address| _ = store.supersede(*address, ts(1100)));
    record(&store, 1200);
    assert!(store.freeze(block).expect("freeze"));
    assert_eq!(refusal(&store, block, None), None);
    store.medium().fence().expect("fence");
    store.free(block, ts(1300));
    // Another table uses its place, and only in part.
    let mut used = Rows::new();
    let again = loop {
        let at = 2000 + used.len() as u64;
        assert!(used.len() < 1000, "the place is not reused");
        used.insert((B.0, at), vec![at]);
        let again = append(&store, at, &[(B, at)]);
        if again == addresses[..1] {
            break again;
        }
    };
    let other = block_at(&store, again[0]);
    assert_ne!(other, block);
    assert!(store.block_info(block).is_none() && !store.frozen_on_medium(other));
    drop(store);
    let (store, rows) = open(&medium);
    assert_eq!(rows, used);
    let found = block_at(&store, again[0]);
    assert!(!store.frozen_on_medium(found), "the flag is of an earlier generation");
    assert_eq!(store.block_info(found).map(|i| (i.fill, i.obsolete)), Some((1, 0)));
}

#[test]
fn frozen_blocks_are_known_after_a_crash() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let (frozen, addresses) = block_of(&store, A, 1000);
    let (sealed, _) = block_of(&store, B, 1100);
    store.supersede(addresses[3], ts(1050));
    assert!(store.freeze(frozen).expect("freeze"));
    store.medium().fence().expect("fence");
    drop(store);
    for _ in 0..2 {
        let (store, rows) = open(&medium);
        assert!(store.frozen_on_medium(frozen) && !store.frozen_on_medium(sealed));
        assert_eq!(store.block_info(frozen).map(|i| i.state), Some(BlockState::Sealed));
        // Recovery does not trust the block header on the medium (T4).
        assert_eq!(store.block_info(frozen).map(|i| i.obsolete), Some(0));
        assert_eq!(rows.len(), 2 * SLOTS as usize);
    }
}

#[test]
fn a_damaged_frozen_flag_is_reported_with_its_place() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let (block, addresses) = block_of(&store, A, 1000);
    assert!(store.freeze(block).expect("freeze"));
    store.medium().fence().expect("fence");
    record(&store, 1001);
    drop(store);
    // The second entry of the block's line.
    assert!(addresses[0].offset() < CHUNK, "the first chunk");
    let index = (addresses[0].offset() - HEAD - PAGE) / SMALLEST;
    let flag = HEAD + 64 * (index + 1) + 32;
    let mut byte = [0];
    medium.get(flag, &mut byte).expect("read");
    for bit in [0, 3, 7] {
        medium.put(flag, &[byte[0] ^ (1 << bit)]).expect("write");
        let Err(StoreError::Damaged { place, .. }) = try_open(&medium).map(|_| ()) else {
            panic!("bit {bit}: not noticed");
        };
        assert!(place.contains(&flag.to_string()) && place.contains("frozen"), "{place}");
    }
    // A flag that was cut off counts as not written, and is cleared.
    medium.put(flag, &[0; 8]).expect("write");
    let (store, rows) = open(&medium);
    assert!(!store.frozen_on_medium(block));
    assert_eq!(rows.len(), SLOTS as usize);
    let mut line = [1; 32];
    medium.get(flag, &mut line).expect("read");
    assert_eq!(line, [0; 32]);
}

/// Empties and frees a block as a collector does.
fn reclaim(store: &Store, block: BlockRef, addresses: &[Address], at: u64) {
    addresses.iter().for_each(|address| _ = store.supersede(*address, ts(at)));
    record(store, at + 1);
    assert!(store.freeze(block).expect("freeze"));
    assert_eq!(refusal(store, block, None), None);
    store.medium().fence().expect("fence");
    store.free(block, ts(at + 2));
}

/// Fences that a block takes when it is filled by two transactions, and when it is reclaimed.
fn fences_of_a_block(memory: &str) -> [u64; 2] {
    let config = NvmConfig::by_name(memory).expect("a memory");
    let medium = NvmMedium::anonymous(config).expect("memory");
    let (store, _) = open(&medium);
    let fences = || medium.status().stats.fences;
    let start = fences();
    let rows: Vec<_> = (0..SLOTS).map(|tuple| (A, tuple)).collect();
    let mut addresses = append(&store, 1000, &rows[..3]);
    addresses.extend(append(&store, 1001, &rows[3..]));
    let filled = fences();
    reclaim(&store, block_at(&store, addresses[0]), &addresses, 2000);
    [filled - start, fences() - filled]
}

/// Once each, whatever the number of transactions and writes.
#[test]
fn slots_are_charged_when_they_are_taken() {
    let [taken, given_back] = fences_of_a_block("E+zen:4");
    assert_eq!(fences_of_a_block("E+zen-naive:4"), [taken + SLOTS, given_back]);
}

#[test]
fn empty_chunks_are_taken_apart_and_used_for_other_sizes() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    // One block at a time, until there is one outside of the first chunk,
    // which is never taken apart.
    let mut blocks = Vec::new();
    let (block, addresses) = loop {
        let made = block_of(&store, A, 1000 + blocks.len() as u64);
        if made.1[0].offset() > CHUNK {
            break made;
        }
        blocks.push(made);
    };
    assert!(store.retire_chunk(true, ts(1001), || ts(1001)).is_none(), "it is not empty");
    reclaim(&store, block, &addresses, 2100);
    blocks.iter().for_each(|(block, addresses)| reclaim(&store, *block, addresses, 2200));
    let long = medium.len();
    assert!(store.retire_chunk(true, ts(1200), || ts(1200)).is_none(), "it was not empty then");
    let mut chunk = store.retire_chunk(true, ts(2300), || ts(2300)).expect("it is empty");
    assert!(!store.forget_chunk(&mut chunk).expect("forget"), "a state record still counts it");
    record(&store, 2400);
    while !store.forget_chunk(&mut chunk).expect("forget") {
        store.medium().fence().expect("fence");
    }
    assert!(store.retire_chunk(true, ts(2500), || ts(2500)).is_none(), "the first chunk stays");
    store.return_chunk(chunk).expect("return");
    assert!(medium.len() < long, "the medium is shorter: {} and {long} bytes", medium.len());
    append(&store, 3000, &[(B, 1)]);
    record(&store, 3001);
    drop(store);
    assert_eq!(open(&medium).1, Rows::from([((B.0, 1), vec![3000])]));
}

/// A medium as large as a chunk and a part of the next, which has been handed
/// back.
#[test]
fn what_is_free_is_part_of_what_the_medium_takes() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let mut at = 1000;
    let (block, addresses) = loop {
        at += 1;
        let made = block_of(&store, A, at);
        if made.1[0].offset() > CHUNK {
            break made;
        }
    };
    reclaim(&store, block, &addresses, 2100);
    let mut chunk = store.retire_chunk(true, ts(2300), || ts(2300)).expect("it is empty");
    record(&store, 2400);
    while !store.forget_chunk(&mut chunk).expect("forget") {
        store.medium().fence().expect("fence");
    }
    store.return_chunk(chunk).expect("return");
    let space = store.space();
    assert!(medium.len() > CHUNK, "{} bytes", medium.len());
    assert!(space.free_block_bytes + space.free_chunk_bytes < space.medium_bytes, "{space:#?}");
    assert!(space.medium_bytes > CHUNK / 2, "{space:#?}");
}

/// Copies that are not durable yet fill the chunk that was carved for the first
/// of them.
#[test]
fn copies_share_a_chunk_before_it_is_durable() {
    let medium = CutMedium::new(&Image::default(), CutKind::File, None);
    let (store, _) = open(&medium);
    let row = [7; 40_000];
    let contents = (0..8).map(|tuple| NewContent {
        table: A,
        tuple: TupleId(tuple),
        flags: ContentFlags::ROW,
        layout: 0,
        since: None,
        timestamp: ts(1000),
        transaction_contents: 8,
        row: &row,
    });
    let mut addresses = Vec::new();
    let appended = store.append(0, Urgency::Write, contents, || ts(1000), &mut addresses).expect("append");
    appended.persist().expect("persist");
    record(&store, 1001);
    // One chunk is full of other blocks, so that the copies need another.
    let mut n = 0;
    while store.available().1 > 0 {
        n += 1;
        try_append(&store, Urgency::Write, 2000 + n, &[(TableId(100 + n as u32), 0)]).expect("append");
    }
    let before = medium.len();
    for address in addresses {
        let block = block_at(&store, address);
        let survivor = Survivor { address, content: store.content(address) };
        let mut to = Vec::new();
        store.copy_survivors(0, &[(A, survivor)], || ts(3000), &mut to).expect("copies");
        assert!(store.block_info(block).is_some());
    }
    let grown = medium.len() - before;
    assert!(grown <= 2 * CHUNK, "{grown} bytes for copies of 320 KB");
}

/// Appends a row to a table of its own, so that the append takes a block.
fn take_block(store: &Store, urgency: Urgency, n: u64) -> bool {
    try_append(store, urgency, 1000 + n, &[(TableId(100 + n as u32), 0)]).is_ok()
}

#[test]
fn the_reserve_is_kept_for_the_urgent() {
    // With a reserve of bytes, and with one of whole chunks.
    for chunks in [4, 12] {
        let medium = memory(chunks);
        let (store, _) = open(&medium);
        let mut n = 0;
        let mut takes = |urgency| {
            n += 1;
            take_block(&store, urgency, n)
        };
        let by_writers = (0..).take_while(|_| takes(Urgency::Write)).count();
        assert!(by_writers > 20, "{by_writers} tables");
        // None of what the more urgent find serves the less urgent.
        let by_deletes = (0..).take_while(|_| takes(Urgency::Delete) && !takes(Urgency::Write)).count();
        assert!(by_deletes > 1, "deletes succeed when writers are refused");
        assert!(!takes(Urgency::Write) && !takes(Urgency::Delete));
        let mut collect = || takes(Urgency::Collect) && !takes(Urgency::Delete) && !takes(Urgency::Write);
        let by_collector = (0..).take_while(|_| collect()).count();
        assert!(by_collector > 1, "the collector succeeds when deletes are refused");
        assert!(!takes(Urgency::Collect));
        assert_eq!(store.space().medium_bytes, chunks * CHUNK, "all of it is in use");
    }
}

/// A hole for which a full device has no space does not keep the reserve from those that it is for.
#[test]
fn the_reserve_is_found_beside_a_hole() {
    // From the first attempt to fill a hole on, there is no space for anything.
    let fault = Fault { operation: Operation::Restore, nth: 1, how: How::FullForLong };
    let medium = FaultMedium::new(&Image::default(), Some(fault));
    let (store, _) = open(&medium);
    // Five chunks, so that whole chunks are the reserve; the blocks of the second go.
    let mut at = 1000;
    let second = CHUNK..2 * CHUNK;
    let mut leaving = Vec::new();
    loop {
        at += 1;
        let (block, addresses) = block_of(&store, A, at);
        match addresses[0].offset() {
            offset if offset > 5 * CHUNK => break,
            offset if second.contains(&offset) => leaving.push((block, addresses)),
            _ => {}
        }
    }
    for (block, addresses) in leaving {
        at += 10;
        reclaim(&store, block, &addresses, at);
    }
    at += 10;
    let mut chunk = store.retire_chunk(true, ts(at), || ts(at)).expect("it is empty");
    record(&store, at + 1);
    while !store.forget_chunk(&mut chunk).expect("forget") {
        store.medium().fence().expect("fence");
    }
    store.return_chunk(chunk).expect("return");
    let mut n = at;
    let mut takes = |urgency| {
        n += 1;
        take_block(&store, urgency, n)
    };
    let by_writers = (0..).take_while(|_| takes(Urgency::Write)).count();
    assert!(medium.has_struck(), "{by_writers} blocks, and there is space");
    let by_deletes = (0..).take_while(|_| takes(Urgency::Delete) && !takes(Urgency::Write)).count();
    assert!(by_deletes > 1, "deletes find the reserve");
}

#[test]
fn a_life_whose_tile_is_kept_is_not_used_up_twice() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let mut kept = 0;
    // Tiles of all generations except the last few are dropped, so generation
    // numbers can be reused.
    for n in 0..40u64 {
        let at = 1000 * (n + 1);
        let (block, addresses) = block_of(&store, A, at);
        let older = Address::from_offset(addresses[1].offset());
        addresses.iter().for_each(|address| store.set_link(*address, older, ts(at)));
        addresses.iter().for_each(|address| _ = store.supersede(*address, ts(at + 1)));
        record(&store, at + 2);
        assert!(store.freeze(block).expect("freeze"));
        let released = store
            .release(
                block,
                None,
                Some(KeepLinks { until: ts(at + 1), instead: None, joins: false, moved: &[] }),
            )
            .expect("no failure");
        assert!(matches!(released, Ok(None)), "the tile is kept");
        store.medium().fence().expect("fence");
        store.free(block, ts(at + 3));
        kept += 1;
        assert_eq!(store.kept_tiles(), kept);
        if n % 10 == 9 {
            assert_eq!(store.take_kept_tiles(ts(at - 5000)).len() as u64, kept - 6);
            kept = store.kept_tiles();
        }
    }
    assert_eq!(store.take_kept_tiles(ts(1 << 40)).len() as u64, kept);
    assert_eq!(store.kept_tiles(), 0);
}

/// The number of generations of a block after which its number comes round again.
const GENERATIONS: u64 = 1 << 16;

/// A reader from before a version walks past it. The version's block had no links, so that nothing is kept of it,
/// and is in a generation of the same number again.
#[test]
fn a_generation_whose_number_comes_again_is_another_one() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let mut at = 1000;
    let mut release = |block: BlockRef, addresses: &[Address]| {
        at += 10;
        addresses.iter().for_each(|address| _ = store.supersede(*address, ts(at)));
        record(&store, at + 1);
        assert!(store.freeze(block).expect("freeze"));
        let keep = KeepLinks { until: ts(at), instead: None, joins: true, moved: &[] };
        let tile = store.release(block, None, Some(keep)).expect("no failure").expect("released");
        drop(tile);
        store.medium().fence().expect("fence");
        store.free(block, ts(at + 2));
        at
    };
    let (first_block, first) = block_of(&store, A, 1001);
    // Another table's, so that it is no matter which block is used when.
    let (_, newest) = block_of(&store, B, 1002);
    newest.iter().zip(&first).for_each(|(newest, first)| store.set_link(*newest, *first, ts(1001)));
    let links: Vec<_> = newest.iter().map(|address| store.link(*address).expect("a link")).collect();
    let mut now = release(first_block, &first);
    for n in 1..=GENERATIONS {
        let (block, addresses) = block_of(&store, A, now + 3);
        assert_eq!(addresses, first, "the same block");
        if n < GENERATIONS {
            now = release(block, &addresses);
            continue;
        }
        // Its versions have links.
        let (_, others) = block_of(&store, B, 1003);
        addresses.iter().zip(&others).for_each(|(address, other)| store.set_link(*address, *other, ts(900)));
        for (link, address) in links.iter().zip(&addresses) {
            assert_eq!((link.address, store.older(*link, ts(1002))), (*address, None));
        }
        newest.iter().for_each(|address| store.forget_chain(*address, ts(1)));
        assert!(addresses.iter().all(|address| store.link(*address).is_some()), "they stay");
    }
}

/// A block does not begin its generations again while links of another block of its chunk are kept:
/// the division of the chunk could not tell which are meant.
#[test]
fn generations_do_not_begin_again_beside_what_is_kept() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let (kept_block, kept) = block_of(&store, A, 1000);
    kept.iter().for_each(|address| store.set_link(*address, kept[0], ts(900)));
    kept.iter().for_each(|address| _ = store.supersede(*address, ts(1001)));
    record(&store, 1002);
    assert!(store.freeze(kept_block).expect("freeze"));
    let keep = KeepLinks { until: ts(1001), instead: None, joins: false, moved: &[] };
    assert!(store.release(kept_block, None, Some(keep)).expect("no failure").is_ok());
    store.medium().fence().expect("fence");
    store.free(kept_block, ts(1003));
    let (_, there) = block_of(&store, A, 1010);
    assert_eq!(there, kept, "the block is used again");
    let (mut at, mut first) = (1010, None);
    for n in 1..=GENERATIONS {
        at += 10;
        let (block, addresses) = block_of(&store, B, at);
        assert_eq!(*first.get_or_insert_with(|| addresses.clone()), addresses, "the same block");
        if n < GENERATIONS {
            reclaim(&store, block, &addresses, at + 1);
            continue;
        }
        addresses.iter().for_each(|address| _ = store.supersede(*address, ts(at + 1)));
        record(&store, at + 2);
        assert!(store.freeze(block).expect("freeze"));
        assert_eq!(refusal(&store, block, None), Some(Refused::GenerationsUsedUp));
        assert_eq!(store.kept_tiles(), 1);
        drop(store.take_kept_tiles(ts(at)));
        assert_eq!(refusal(&store, block, None), None, "nothing is kept");
    }
}

/// The version of each tuple that a walk from the newest one comes to at the
/// end.
fn walked(store: &Store, newest: &[Address]) -> Vec<Option<Address>> {
    let last = |address: &Address| {
        let links = store.links(*address, store.content(*address).timestamp());
        links.last().map(|(link, _)| link.address)
    };
    newest.iter().map(last).collect()
}

/// A chunk goes although a reader of the first versions walks over links of its
/// blocks. Blocks that lie there later have nothing to do with the reader.
#[test]
fn walks_lead_over_chunks_that_are_gone() {
    let medium = memory(16);
    let (store, _) = open(&medium);
    let (_, first) = block_of(&store, A, 1000);
    let seen: Vec<_> = first.iter().copied().map(Some).collect();
    // Blocks of the second chunk, all of it, with the second versions first.
    let mut at = 1000;
    let mut next = |store: &Store, table| {
        at += 1;
        block_of(store, table, at)
    };
    let (second_block, second) = loop {
        let made = next(&store, A);
        if made.1[0].offset() > CHUNK {
            break made;
        }
    };
    let mut others = Vec::new();
    let (_, third) = loop {
        let made = next(&store, A);
        if made.1[0].offset() > 2 * CHUNK {
            break made;
        }
        others.push(made);
    };
    for (new, old) in [(&second, &first), (&third, &second)] {
        new.iter().zip(old).for_each(|(new, old)| store.set_link(*new, *old, ts(1000)));
        old.iter().for_each(|old| _ = store.supersede(*old, ts(5000)));
    }
    record(&store, 5001);
    assert!(store.freeze(second_block).expect("freeze"));
    let keep = KeepLinks { until: ts(5000), instead: None, joins: false, moved: &[] };
    assert!(store.release(second_block, None, Some(keep)).expect("no failure").is_ok());
    store.medium().fence().expect("fence");
    store.free(second_block, ts(5002));
    others.iter().for_each(|(block, addresses)| reclaim(&store, *block, addresses, 6000));
    assert_eq!(walked(&store, &third), seen);
    let mut chunk = store.retire_chunk(true, ts(9000), || ts(9000)).expect("it is empty");
    assert_eq!(walked(&store, &third), seen, "the chunk is not there");
    record(&store, 9001);
    while !store.forget_chunk(&mut chunk).expect("forget") {
        store.medium().fence().expect("fence");
    }
    store.return_chunk(chunk).expect("return");
    assert_eq!((walked(&store, &third), store.kept_tiles()), (seen.clone(), 1));
    // Others come to lie in the same places, and have links of their own.
    let strangers = loop {
        at += 1;
        let (_, made) = block_of(&store, B, 10_000 + at);
        if made == second {
            break made;
        }
        assert!(made[0].offset() < 4 * CHUNK, "the chunk is not used again");
    };
    strangers.iter().for_each(|stranger| store.set_link(*stranger, first[0], ts(1000)));
    assert_eq!(walked(&store, &third), seen, "the chunk is there again");
    assert_eq!(store.take_kept_tiles(ts(5001)).len(), 1);
    let ends: Vec<_> = second.iter().copied().map(Some).collect();
    assert_eq!(walked(&store, &third), ends, "nothing is kept, and what is there is not believed");
}

/// Beside a reader of the first versions, what is kept does not grow with the
/// number of versions that came and went.
#[test]
fn joined_links_follow_the_number_of_rows() {
    let medium = memory(8);
    let (store, _) = open(&medium);
    let (_, first) = block_of(&store, A, 1000);
    let seen: Vec<_> = first.iter().copied().map(Some).collect();
    let mut last = first.clone();
    for n in 1..60u64 {
        let at = 1000 * (n + 1);
        let (block, newest) = block_of(&store, A, at);
        newest.iter().zip(&last).for_each(|(new, old)| store.set_link(*new, *old, ts(at - 1000)));
        last.iter().for_each(|old| _ = store.supersede(*old, ts(at)));
        if n > 1 {
            let old = block_at(&store, last[0]);
            record(&store, at + 1);
            assert!(store.freeze(old).expect("freeze"));
            let keep = KeepLinks { until: ts(at), instead: None, joins: true, moved: &[] };
            assert!(store.release(old, None, Some(keep)).expect("no failure").is_ok());
            store.medium().fence().expect("fence");
            store.free(old, ts(at + 2));
        }
        assert_eq!(walked(&store, &newest), seen, "before the passed links are removed");
        store.remove_passed(&store.take_passed());
        assert_eq!(walked(&store, &newest), seen);
        assert!(store.kept_tiles() <= 1, "{} tiles after {n} versions", store.kept_tiles());
        assert_eq!(store.block_info(block).expect("alive").obsolete, 0);
        last = newest;
    }
    // A version that has moved begins no walk where it was.
    let (block, at) = (block_at(&store, last[0]), 100_000);
    let (_, copies) = block_of(&store, A, at);
    copies.iter().zip(&last).for_each(|(to, from)| store.copy_link(*to, store.link(*from).expect("a link")));
    last.iter().for_each(|old| store.leave(*old, ts(at)));
    record(&store, at + 1);
    assert!(store.freeze(block).expect("freeze"));
    let keep = KeepLinks { until: ts(at), instead: None, joins: true, moved: &last };
    assert!(store.release(block, None, Some(keep)).expect("no failure").is_ok());
    assert!(store.take_passed().is_empty(), "the copies still lead there");
    assert_eq!(walked(&store, &copies), seen);
    assert_eq!(store.kept_tiles(), 1);
    // Nobody needs the chains of tuples that are gone.
    copies.iter().for_each(|newest| store.forget_chain(*newest, ts(1)));
    store.remove_passed(&store.take_passed());
    assert_eq!((walked(&store, &copies), store.kept_tiles()), (vec![None; SLOTS as usize], 0));
}

/// A large append has a stream of its own. It holds that until it is durable.
#[test]
fn nobody_waits_for_a_large_append() {
    let (store, _) = open(&memory(8));
    let store = &store;
    let rows: Vec<_> = (0..100).map(|tuple| (A, tuple)).collect();
    let mut addresses = Vec::new();
    let large =
        store.append(0, Urgency::Write, contents(5, &rows), || ts(5), &mut addresses).expect("append");
    let found = thread::scope(|scope| {
        let (tell, told) = mpsc::channel();
        scope.spawn(move || {
            append(store, 6, &[(A, 1000)]);
            let has_lane = store.has_lane(|info| info.table == B);
            tell.send((store.space().contents_appended, has_lane)).expect("somebody listens");
        });
        let found = told.recv_timeout(Duration::from_secs(60));
        large.persist().expect("persist");
        found
    });
    // What is not over is not counted.
    assert_eq!(found, Ok((1, false)));
    assert_eq!(store.space().contents_appended, 101);
}

/// While a table has few blocks, its small appends go on with what a large one has left.
#[test]
fn few_rows_share_blocks_whether_many_come_at_once_or_one() {
    let options = StoreOptions { boot: 1, ..StoreOptions::default() };
    let (store, _) = open_with(&memory(8), options).expect("open");
    let rows: Vec<_> = (0..1100).map(|tuple| (A, tuple)).collect();
    let many = append(&store, 5, &rows);
    let one = append(&store, 6, &[(A, 2000)]);
    assert_eq!(store.block_of(one[0]), store.block_of(many[1099]));
}
