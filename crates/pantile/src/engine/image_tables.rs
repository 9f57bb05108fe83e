//! What an index image says about tables: the kinds of its sections, and what
//! opening takes from them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicUsize, Ordering};
use pantile_base::{TableId, TupleId, share_out};
use pantile_store::{Image, PAGE_WORDS, Section};

use crate::engine::anchor::Anchor;
use crate::engine::catalog;
use crate::engine::counters::Change;
use crate::engine::found::{FoundTable, StoredTable};
use crate::types::error::Result;
use crate::types::schema::TableDef;

/// The gauges of the whole database.
pub(crate) const GAUGES: Section = Section { kind: 1, table: 0, index: 0, part: 0 };

/// What there is of a table: its definition and its number of tuples.
pub(crate) fn of_table(table: TableId) -> Section {
    Section { kind: TABLE, table: table.0, index: 0, part: 0 }
}

/// The anchors of a table.
pub(crate) fn anchors_of(table: TableId) -> Section {
    Section { kind: ANCHORS, table: table.0, index: 0, part: 0 }
}

/// Pages of anchors that are worth another thread.
const PAGES_PER_THREAD: usize = 64;

const TABLE: u32 = 2;
const ANCHORS: u32 = 3;

/// Identifies a definition. Keys in an image are those of the indexes that the
/// definition had.
pub(crate) fn sum_of_definition(def: &TableDef) -> Result<u64> {
    Ok(Image::sum_of(&catalog::encode(def)?))
}

/// What an image says about all tables.
#[derive(Default)]
pub(crate) struct StoredTables {
    pub tables: BTreeMap<TableId, FoundTable>,
    pub change: Change,
    pub buried: u64,
}

/// A table whose anchors are being read.
#[derive(Default)]
struct Reading {
    found: FoundTable,
    definition: u64,
    tuples: u64,
    dead: Mutex<Vec<TupleId>>,
}

impl StoredTables {
    /// Reads gauges and anchors, on this many threads. `None` if a page cannot
    /// be read.
    pub fn read(image: &Arc<Image>, medium_len: u64, threads: usize) -> Option<Self> {
        let mut words = Vec::new();
        if !image.has(GAUGES) {
            return None;
        }
        image.read(GAUGES, 0, &mut words).ok()?;
        let [tuples, live_bytes, buried] = words[..] else { return None };
        let change = Change { tuples: tuples as i64, live_bytes: live_bytes as i64 };
        let mut reading = BTreeMap::new();
        for section in image.sections().filter(|section| section.kind == TABLE) {
            image.read(section, 0, &mut words).ok()?;
            let [definition, tuples] = words[..] else { return None };
            reading.insert(TableId(section.table), Reading { definition, tuples, ..Reading::default() });
        }
        read_anchors(image, &reading, medium_len, threads)?;
        let stored = |(id, one): (TableId, Reading)| {
            let Reading { mut found, definition, tuples, dead } = one;
            found.tuples.store(tuples, Ordering::Relaxed);
            let dead = dead.into_inner();
            found.stored = Some(StoredTable { image: Arc::clone(image), definition, dead });
            (id, found)
        };
        Some(Self { tables: reading.into_iter().map(stored).collect(), change, buried })
    }
}

fn read_anchors(
    image: &Image,
    tables: &BTreeMap<TableId, Reading>,
    medium_len: u64,
    threads: usize,
) -> Option<()> {
    let pages = |id: &TableId| image.pages(anchors_of(*id));
    let jobs: Vec<_> =
        tables.iter().flat_map(|(id, one)| (0..pages(id)).map(move |n| (*id, one, n))).collect();
    let next = AtomicUsize::new(0);
    let work = |_| {
        let mut words = Vec::new();
        while let Some((id, one, page)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            image.read(anchors_of(*id), *page, &mut words).ok()?;
            take_anchors(one, *page, &words, medium_len)?;
        }
        Some(())
    };
    share_out(threads.min(1 + jobs.len() / PAGES_PER_THREAD), work).into_iter().collect()
}

/// Stores a page of anchors.
fn take_anchors(one: &Reading, page: usize, words: &[u64], medium_len: u64) -> Option<()> {
    let mut dead = Vec::new();
    for (tuple, &word) in ((page * PAGE_WORDS) as u64..).zip(words) {
        let anchor = Anchor::stored(word)?;
        if tuple >= one.tuples || anchor.newest().offset() >= medium_len {
            return None;
        }
        one.found.anchors.get_or_grow(tuple).store(word, Ordering::Relaxed);
        if anchor.is_dead() {
            dead.push(TupleId(tuple));
        }
    }
    if !dead.is_empty() {
        one.dead.lock().append(&mut dead);
    }
    Some(())
}
