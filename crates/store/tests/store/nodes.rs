//! What a thread appends lies on its node, where the medium knows of nodes.

use std::sync::Arc;
use std::thread;

use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_media::{DirectoryOptions, MapOptions, Medium, Nodes};
use pantile_nvm::{NvmConfig, NvmMedium, join_node};
use pantile_store::{
    BlockState, ContentFlags, NewContent, Scan, Store, StoreError, StoreOptions, Survivor, Urgency,
};
use tempfile::TempDir;

const CHUNK: u64 = 2 << 20;
const TABLE: TableId = TableId(20);
const NODES: usize = 2;

/// A medium of two nodes that has room for some chunks, and its directory.
fn on_nodes(chunks: u64) -> (Arc<dyn Medium>, Arc<dyn Nodes>, TempDir) {
    let dir = TempDir::new().expect("directory");
    let config = NvmConfig::by_name("E+nodes:local-writes").expect("a memory");
    let map = MapOptions { reserve_bytes: 1 << 28, max_bytes: Some(chunks * CHUNK) };
    let options = DirectoryOptions { map, ..DirectoryOptions::default() };
    let medium = NvmMedium::open(dir.path(), config, options).expect("medium");
    let nodes = medium.facts().nodes.clone().expect("it knows of nodes");
    (medium, nodes, dir)
}

fn open(medium: &Arc<dyn Medium>) -> Store {
    let options = StoreOptions { streams: 2, block_slots: 64, boot: 1, ..StoreOptions::default() };
    let store = Store::open(Arc::clone(medium), options, 0x1234_5678).expect("open");
    store.recover(&Scan { threads: 1, found: &|_, _| {}, progress: &|_| {} }).expect("recover");
    store
}

fn ts(raw: u64) -> Timestamp {
    Timestamp::from_raw(raw)
}

/// Appends a row of 1000 bytes by a thread of this node.
fn append_on(node: usize, store: &Store, table: TableId, at: u64) -> Result<Address, StoreError> {
    let append = || {
        join_node(node);
        let content = NewContent {
            table,
            tuple: TupleId(at),
            flags: ContentFlags::ROW,
            layout: 0,
            since: None,
            timestamp: ts(at),
            transaction_contents: 1,
            row: &[7; 1000],
        };
        let (one, mut addresses) = ([content], Vec::new());
        // A hint that does not say on which node the thread is.
        let appended =
            store.append(at as usize, Urgency::Write, one.into_iter(), || ts(at), &mut addresses)?;
        appended.persist()?;
        Ok(addresses[0])
    };
    thread::scope(|scope| scope.spawn(append).join().expect("thread"))
}

fn node_of(nodes: &Arc<dyn Nodes>, address: Address) -> usize {
    nodes.of_chunk((address.offset() / CHUNK) as u32)
}

/// Four chunks' worth of rows by threads of each node in turn. Each is on the node of its thread.
fn fill(store: &Store, nodes: &Arc<dyn Nodes>, from: u64) {
    for at in from..from + 4 * CHUNK / 1024 {
        let node = (at / 3) as usize % NODES;
        let table = TableId(TABLE.0 + (at % 2) as u32);
        let address = append_on(node, store, table, at).expect("there is room");
        assert_eq!(node_of(nodes, address), node, "row {at}");
    }
}

#[test]
fn what_a_thread_appends_is_on_its_node() {
    let (medium, nodes, _dir) = on_nodes(64);
    let store = open(&medium);
    fill(&store, &nodes, 1000);
    store.record_state(store.sample(|| ts(1 << 20)), &[]).expect("record");
    drop(store);
    // Also when streams go on with blocks of before.
    let store = open(&medium);
    fill(&store, &nodes, 1 << 21);
}

#[test]
fn one_node_leaves_to_the_others_no_more_than_a_chunk_for_each_of_its_own() {
    let (medium, nodes, _dir) = on_nodes(64);
    let store = open(&medium);
    let mut last = 0;
    for at in 1000..1000 + 4 * CHUNK / 1024 {
        let address = append_on(1, &store, TABLE, at).expect("there is room");
        assert_eq!(node_of(&nodes, address), 1);
        last = last.max(address.offset() / CHUNK);
    }
    assert!(last <= 2 * 4 + 4, "chunk {last}");
    // What was left is found by the other one.
    let address = append_on(0, &store, TABLE, 1 << 20).expect("there is room");
    assert!(address.offset() / CHUNK < last);
}

#[test]
fn a_full_node_takes_space_of_others() {
    let (medium, nodes, _dir) = on_nodes(8);
    let store = open(&medium);
    let mut on = [0u64; NODES];
    let full = (1000..).find_map(|at| match append_on(0, &store, TABLE, at) {
        Ok(address) => {
            on[node_of(&nodes, address)] += 1;
            None
        }
        Err(error) => Some(error),
    });
    assert!(matches!(full, Some(StoreError::Medium(error)) if error.is_full()));
    assert!(on[0] > 0 && on[1] > on[0] / 4, "{on:?} rows");
}

#[test]
fn a_full_node_goes_on_with_blocks_that_others_have_started() {
    let (medium, _, _dir) = on_nodes(8);
    let store = open(&medium);
    let started = append_on(1, &store, TABLE, 1000).map(|address| store.block_of(address)).expect("room");
    assert!((0..3).any(|_| store.give_up_idle(1)), "its lane is idle");
    let mut goes_on = false;
    let full = (1001..).find_map(|at| match append_on(0, &store, TABLE, at) {
        Ok(address) => {
            goes_on |= store.block_of(address) == started;
            None
        }
        Err(error) => Some(error),
    });
    assert!(matches!(full, Some(StoreError::Medium(error)) if error.is_full()));
    assert!(goes_on, "there was room in {started:?}");
}

#[test]
fn copies_stay_on_the_node_of_what_they_copy() {
    let (medium, nodes, _dir) = on_nodes(64);
    let store = open(&medium);
    for node in 0..NODES {
        let base = 1000 + 1000 * node as u64;
        let addresses: Vec<_> =
            (base..base + 200).map(|at| append_on(node, &store, TABLE, at).expect("room")).collect();
        let block = store.block_of(addresses[0]).expect("in use");
        assert_eq!(store.block_info(block).map(|info| info.state), Some(BlockState::Sealed));
        assert!(store.freeze(block).expect("freeze"));
        let mut alive: Vec<Survivor<'_>> = Vec::new();
        store.survivors(block, 0, 100, &mut alive);
        let alive: Vec<_> = alive.into_iter().map(|survivor| (TABLE, survivor)).collect();
        let mut copies = Vec::new();
        join_node(1 - node);
        store.copy_survivors(0, &alive, || ts(base + 500), &mut copies).expect("copy");
        assert!(!copies.is_empty());
        assert!(copies.iter().all(|copy| node_of(&nodes, *copy) == node));
    }
}
