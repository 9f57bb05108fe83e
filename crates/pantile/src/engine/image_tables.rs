//! What an index image says about tables: the kinds of its sections, and what
//! opening takes from them at once.

use std::collections::BTreeMap;
use std::sync::Arc;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicUsize, Ordering};
use pantile_base::{TableId, TupleId, share_out, share_range};
use pantile_store::{Image, Section, Store};

use crate::engine::anchor::Anchor;
use crate::engine::catalog;
use crate::engine::changed::Changed;
use crate::engine::found::{FoundTable, StoredTable};
use crate::engine::image_page::Column;
use crate::types::error::Result;
use crate::types::history::Definition;

/// The number of tombstones in the whole database. An image that was made while the
/// database was in use has none.
pub(crate) const TOMBSTONES: Section = Section { kind: 1, table: 0, index: 0, part: 0 };

/// What there is of a table: its definition, its number of tuples, and the bytes of its rows.
pub(crate) fn of_table(table: TableId) -> Section {
    Section { kind: TABLE, table: table.0, index: 0, part: 0 }
}

/// The anchors of a table.
pub(crate) fn anchors_of(table: TableId) -> Section {
    Section { kind: ANCHORS, table: table.0, index: 0, part: 0 }
}

/// Tuples of a table of which the image may have entries that it should not have.
pub(crate) fn notes_of(table: TableId) -> Section {
    Section { kind: NOTES, table: table.0, index: 0, part: 0 }
}

/// Pages of anchors that are worth another thread.
const PAGES_PER_THREAD: usize = 64;
/// Tuples that are.
pub(crate) const TUPLES_PER_THREAD: usize = 1 << 16;

/// Anchors in a page.
pub(crate) const PAGE_ANCHORS: usize = 8192;

const TABLE: u32 = 2;
const ANCHORS: u32 = 3;
// 4 is the kind of runs (`image_run.rs`).
const NOTES: u32 = 5;

/// Identifies a definition. Keys in an image are those of the indexes that the
/// definition had.
pub(crate) fn sum_of_definition(definition: &Definition) -> Result<u64> {
    Ok(Image::sum_of(&catalog::encode(definition)?))
}

/// What an image says about all tables.
#[derive(Default)]
pub(crate) struct StoredTables {
    pub tables: BTreeMap<TableId, FoundTable>,
    /// The number of tombstones; `None` if they, and the rows, are to be counted.
    pub tombstones: Option<u64>,
    /// No anchor leads beyond this.
    pub end: u64,
    /// Rows in the image.
    pub rows: u64,
}

/// A table whose anchors are being read.
#[derive(Default)]
struct Reading {
    found: FoundTable,
    definition: u64,
    tuples: u64,
    live_bytes: u64,
    counts_slots_until: u64,
    dead: Mutex<Vec<TupleId>>,
}

impl Reading {
    fn rows(&mut self) -> u64 {
        self.tuples.saturating_sub(self.dead.get_mut().len() as u64)
    }
}

impl StoredTables {
    /// Reads what there is of all tables, and anchors, on this many threads. `None` if a page cannot
    /// be read.
    pub fn read(image: &Arc<Image>, threads: usize) -> Option<Self> {
        let mut words = Vec::new();
        let tombstones = match image.has(TOMBSTONES) {
            true => {
                image.read(TOMBSTONES, 0, &mut words).ok()?;
                let [tombstones] = words[..] else { return None };
                Some(tombstones)
            }
            false => None,
        };
        let mut reading = BTreeMap::new();
        for section in image.sections().filter(|section| section.kind == TABLE) {
            image.read(section, 0, &mut words).ok()?;
            let [definition, tuples, live_bytes, counts_slots_until] = words[..] else { return None };
            let one = Reading { definition, tuples, live_bytes, counts_slots_until, ..Reading::default() };
            reading.insert(TableId(section.table), one);
        }
        let end = read_anchors(image, &reading, threads)?;
        let rows = reading.values_mut().map(Reading::rows).sum();
        let stored = |(id, one): (TableId, Reading)| {
            let Reading { mut found, definition, tuples, live_bytes, counts_slots_until, dead } = one;
            found.tuples.store(tuples, Ordering::Relaxed);
            let dead = dead.into_inner();
            let image = Arc::clone(image);
            found.stored =
                Some(StoredTable { image, definition, live_bytes, counts_slots_until, dead, changed: None });
            (id, found)
        };
        Some(Self { tables: reading.into_iter().map(stored).collect(), tombstones, end, rows })
    }

    /// Forgets the anchors that lead to nothing any more, and what is known only
    /// if nothing has changed. Where the others lead is alive, unless the scan
    /// finds something newer. `None` if a page cannot be read.
    pub fn bring_up_to_date(&mut self, store: &Store, threads: usize) -> Option<()> {
        self.tombstones = None;
        store.forget_superseded();
        for (id, found) in &mut self.tables {
            let end = found.tuples.load(Ordering::Relaxed);
            let Some(stored) = &mut found.stored else { continue };
            let changed = Changed::default();
            read_notes(&stored.image, *id, &changed)?;
            // Whether their tombstones are still there is for the contents to say.
            stored.dead.drain(..).for_each(|tuple| _ = changed.insert(tuple));
            let (anchors, changed) = (&found.anchors, &*stored.changed.insert(changed));
            share_range(threads.min(1 + end as usize / TUPLES_PER_THREAD), end, |part| {
                let mut claims = store.claims();
                for tuple in part {
                    let cell = anchors.get_or_grow(tuple);
                    let anchor = Anchor::load(cell);
                    let is_there = !anchor.newest().is_none() && claims.claim(anchor.newest());
                    if !is_there {
                        changed.insert(TupleId(tuple));
                    }
                    // Most anchors stay as they are, and need not be written again.
                    if !is_there || anchor.is_dead() {
                        let word = if is_there { anchor.newest().word() } else { 0 };
                        cell.store(word, Ordering::Relaxed);
                    }
                }
            });
        }
        Some(())
    }
}

fn read_notes(image: &Image, table: TableId, changed: &Changed) -> Option<()> {
    let mut words = Vec::new();
    for page in 0..image.pages(notes_of(table)) {
        image.read(notes_of(table), page, &mut words).ok()?;
        words.iter().for_each(|tuple| _ = changed.insert(TupleId(*tuple)));
    }
    Some(())
}

fn read_anchors(image: &Image, tables: &BTreeMap<TableId, Reading>, threads: usize) -> Option<u64> {
    let pages = |id: &TableId| image.pages(anchors_of(*id));
    let jobs: Vec<_> =
        tables.iter().flat_map(|(id, one)| (0..pages(id)).map(move |n| (*id, one, n))).collect();
    let next = AtomicUsize::new(0);
    let work = |_| {
        let (mut words, mut end) = (Vec::new(), 0);
        while let Some((id, one, page)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            image.read(anchors_of(*id), *page, &mut words).ok()?;
            end = take_anchors(one, *page, &words)?.max(end);
        }
        Some(end)
    };
    let ends: Option<Vec<u64>> =
        share_out(threads.min(1 + jobs.len() / PAGES_PER_THREAD), work).into_iter().collect();
    ends?.into_iter().max()
}

/// Stores a page of anchors. Returns the highest offset to which they lead.
fn take_anchors(one: &Reading, page: usize, words: &[u64]) -> Option<u64> {
    let (mut dead, mut end) = (Vec::new(), 0);
    let first = (page * PAGE_ANCHORS) as u64;
    let count = one.tuples.checked_sub(first)?.min(PAGE_ANCHORS as u64) as usize;
    let mut rest = words;
    let column = Column::take(&mut rest, count)?;
    for (n, tuple) in (first..).take(count).enumerate() {
        let anchor = Anchor::stored(column.get(n))?;
        end = end.max(anchor.newest().offset());
        anchor.put(one.found.anchors.get_or_grow(tuple));
        if anchor.is_dead() {
            dead.push(TupleId(tuple));
        }
    }
    if !dead.is_empty() {
        one.dead.lock().append(&mut dead);
    }
    Some(end)
}
