//! Putting the tables together from what the store has found.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::sync::{Instant, RwLock, thread};
use pantile_base::{Address, Segments, TableId, Timestamp, TupleId};
use pantile_index::Index as Tree;
use pantile_store::{Found, HEADER_BYTES, Scan, ScanProgress, ScanSummary, Store, StoreError};

use crate::anchor::Anchor;
use crate::catalog;
use crate::core::{Core, Dropped};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::large;
use crate::options::{Options, Progress, RecoveryStep};
use crate::row::Encoded;
use crate::schema::TableDef;
use crate::stats::{Change, Recovery};
use crate::table::{IndexInner, Table, TableInner};

/// The tuples of one table as the scan finds them.
#[derive(Default)]
pub(crate) struct FoundTable {
    anchors: Segments<AtomicU64>,
    /// One more than the highest tuple id.
    tuples: AtomicU64,
}

/// What the scan has found.
#[derive(Default)]
pub(crate) struct FoundTables {
    by_id: RwLock<HashMap<TableId, Arc<FoundTable>, FixedState>>,
}

impl FoundTables {
    fn table(&self, id: TableId) -> Arc<FoundTable> {
        if let Some(table) = self.by_id.read().get(&id) {
            return Arc::clone(table);
        }
        Arc::clone(self.by_id.write().entry(id).or_default())
    }

    fn take(&self, id: TableId) -> FoundTable {
        let found = self.by_id.write().remove(&id).unwrap_or_default();
        Arc::try_unwrap(found).unwrap_or_default()
    }
}

/// Scans the store.
pub(crate) fn scan(store: &Store, options: &Options) -> Result<(FoundTables, ScanSummary), StoreError> {
    let tables = FoundTables::default();
    let summary = store.recover(&Scan {
        threads: threads(options),
        found: &|table, found| tables.table(table).add(store, found),
        progress: &|ScanProgress { done, total }| {
            options.report(Progress { step: RecoveryStep::Scan, done, total })
        },
    })?;
    Ok((tables, summary))
}

pub(crate) fn threads(options: &Options) -> usize {
    let cores = || thread::available_parallelism().map_or(1, usize::from);
    options.recovery_threads.unwrap_or_else(cores)
}

impl FoundTable {
    /// Keeps the newest content of each tuple.
    fn add(&self, store: &Store, found: &[Found<'_>]) {
        let Some(end) = found.iter().map(|f| f.content.tuple().0 + 1).max() else { return };
        self.tuples.fetch_max(end, Ordering::AcqRel);
        for one in found {
            let cell = self.anchors.get_or_grow(one.content.tuple().0);
            let mut known = cell.load(Ordering::Acquire);
            let begin = one.content.txn_id();
            loop {
                let other = Address::from_word(known);
                let other_begin = (known != 0).then(|| store.content(other).txn_id());
                // Of two copies of one version, either will do (T12).
                if let Some(newer) = other_begin.filter(|&other| other >= begin) {
                    store.supersede(one.address, newer);
                    break;
                }
                let word = one.address.word();
                match cell.compare_exchange_weak(known, word, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) if known != 0 => drop(store.supersede(other, begin)),
                    Ok(_) => {}
                    Err(now) => {
                        known = now;
                        continue;
                    }
                }
                break;
            }
        }
    }
}

impl Core {
    /// Makes the tables and their indexes.
    pub fn recover_tables(
        &mut self,
        found: &FoundTables,
        summary: ScanSummary,
        began: Instant,
    ) -> Result<()> {
        let scan_seconds = began.elapsed().as_secs_f64();
        self.recover_table(found, catalog::CATALOG, catalog::definition())?;
        self.recover_table(found, large::LARGE, large::definition())?;
        let definitions = self.stored_definitions()?;
        let total = definitions.len() as u64;
        let mut next = u64::from(catalog::FIRST_USER_TABLE);
        for (done, (id, def)) in definitions.into_iter().enumerate() {
            next = next.max(u64::from(id.0) + 1);
            self.recover_table(found, id, def)?;
            self.options.report(Progress { step: RecoveryStep::Index, done: done as u64 + 1, total });
        }
        // What is left belongs to tables that were dropped. It goes when all
        // that has been found is durably known to be committed (T1).
        for &table in found.by_id.read().keys() {
            next = next.max(u64::from(table.0) + 1);
            let at = Timestamp::ZERO;
            self.dropped.lock().push(Dropped { at, unused_since: Some(at), table, in_use: None });
        }
        self.next_table = AtomicU64::new(next);
        self.recovery = Recovery {
            seconds: began.elapsed().as_secs_f64(),
            scan_seconds,
            contents_scanned: summary.contents + summary.discarded,
            bytes_scanned: summary.content_bytes,
            discarded: summary.discarded,
            tuples: self.by_id.read().values().map(|t| t.primary.len() as u64).sum(),
            was_closed: summary.was_closed,
        };
        Ok(())
    }

    pub fn stored_definitions(&self) -> Result<Vec<(TableId, TableDef)>> {
        let catalog = self.catalog()?.0;
        let mut definitions = Vec::new();
        for tuple in 0..catalog.tuples_end() {
            if let Some(bytes) = live_row(&self.store, &catalog, TupleId(tuple)) {
                let row = Encoded { schema: &catalog.schema, bytes };
                let mut id = [0; 4];
                id.copy_from_slice(row.raw(&catalog.schema.columns[0]));
                let def = catalog::decode(row.raw(&catalog.schema.columns[1]))?;
                let id = TableId(u32::from_le_bytes(id));
                catalog::check(id, &def)?;
                definitions.push((id, def));
            }
        }
        Ok(definitions)
    }

    fn recover_table(&self, found: &FoundTables, id: TableId, def: TableDef) -> Result<()> {
        let found = found.take(id);
        let tuples = found.tuples.load(Ordering::Acquire);
        let mut table = TableInner::recovered(id, self.id, def, found.anchors, tuples, &self.arena)?;
        let mut list = Vec::new();
        for def in &table.def.indexes {
            list.push(IndexInner::new(def.clone(), table.next_index_number(), &table.schema, &self.arena)?);
        }
        let keys = self.gather(&table, &list)?;
        let trees = self.build_trees(&table, &list, &keys)?;
        let mut trees = trees.into_iter();
        table.primary = trees.next().unwrap_or(table.primary);
        for (index, tree) in list.iter_mut().zip(trees) {
            index.tree = tree;
            index.set_ready();
        }
        table.change_indexes(|indexes| *indexes = list.into_iter().map(Arc::new).collect());
        self.add_table(Table(Arc::new(table)));
        Ok(())
    }

    /// Goes over the tuples once, in parallel: keys of all indexes, and ids of
    /// deleted tuples back into stock.
    fn gather(&self, table: &TableInner, indexes: &[IndexInner]) -> Result<Vec<Gathered>> {
        let threads = threads(&self.options).min(1 + table.tuples_end() as usize / 4096) as u64;
        let part = table.tuples_end().div_ceil(threads);
        let gather = |n: u64| {
            let tuples = n * part..((n + 1) * part).min(table.tuples_end());
            Gathered::from_tuples(&self.store, table, indexes, tuples)
        };
        let parts: Vec<Gathered> = thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|n| scope.spawn(move || gather(n))).collect();
            let mut parts = vec![gather(0)?];
            for other in others {
                parts.push(other.join().expect("a gathering thread does not panic")?);
            }
            Ok::<_, Error>(parts)
        })?;
        for part in &parts {
            self.counters.adjust(part.change);
            self.bury(table, &part.dead);
        }
        Ok(parts)
    }

    /// Ids of tuples that are gone can be used again.
    fn bury(&self, table: &TableInner, dead: &[TupleId]) {
        for &tuple in dead {
            let cell = table.anchor(tuple);
            let tombstone = Anchor::load(cell).newest();
            Anchor::bury(cell, tombstone);
            self.counters.found_buried(u64::from(!tombstone.is_none()));
            table.return_tuple(tuple.0 as usize, tuple);
        }
    }

    /// The primary tree and the indexes', built side by side from sorted keys.
    fn build_trees(
        &self,
        table: &TableInner,
        indexes: &[IndexInner],
        parts: &[Gathered],
    ) -> Result<Vec<Tree>> {
        let mut words = vec![TableInner::primary_words(&table.schema)];
        words.extend(indexes.iter().map(|i| IndexInner::max_words(&table.schema, &i.columns)));
        let build = |n: usize| {
            let runs = parts.iter().map(|part| &part.keys[n]);
            Tree::bulk_load(words[n], &self.arena, Merge::new(runs), 0.9).map_err(|_| Error::Damaged {
                place: format!("table {:?}", table.schema.name),
                detail: "two live rows have the same key".into(),
            })
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..words.len()).map(|n| scope.spawn(move || build(n))).collect();
            let mut trees = vec![build(0)?];
            for tree in others {
                trees.push(tree.join().expect("a building thread does not panic")?);
            }
            Ok(trees)
        })
    }
}

/// The newest version of a tuple, if it is a row.
pub(crate) fn live_row<'s>(store: &'s Store, table: &TableInner, tuple: TupleId) -> Option<&'s [u8]> {
    let address = Anchor::load(table.anchor(tuple)).newest();
    if address.is_none() {
        return None;
    }
    let content = store.content(address);
    (!content.flags().is_tombstone()).then(|| content.row())
}

/// What one thread has gathered from a range of tuples.
#[derive(Default)]
struct Gathered {
    change: Change,
    /// Deleted, or never committed.
    dead: Vec<TupleId>,
    /// Of the primary index, then of the others.
    keys: Vec<SortedKeys>,
}

/// How far ahead contents are fetched.
const AHEAD: u64 = 8;

impl Gathered {
    fn from_tuples(
        store: &Store,
        table: &TableInner,
        indexes: &[IndexInner],
        tuples: std::ops::Range<u64>,
    ) -> Result<Self> {
        let mut gathered =
            Self { keys: (0..=indexes.len()).map(|_| SortedKeys::default()).collect(), ..Self::default() };
        let mut key = Key::default();
        for tuple in tuples {
            prefetch_row(store, table, TupleId(tuple + AHEAD));
            let tuple = TupleId(tuple);
            let Some(bytes) = live_row(store, table, tuple) else {
                gathered.dead.push(tuple);
                continue;
            };
            gathered.change.tuples += 1;
            gathered.change.live_bytes += (bytes.len() + HEADER_BYTES) as i64;
            let row = Encoded { schema: &table.schema, bytes };
            if let Some(problem) = row.shape_problem() {
                let address = Anchor::load(table.anchor(tuple)).newest();
                let place = format!("{}, tuple {}", store.place_of(address), tuple.0);
                return Err(Error::Damaged { place, detail: problem });
            }
            key.set_row(&row, &table.schema.primary_key);
            gathered.keys[0].push(&key, tuple);
            for (keys, index) in gathered.keys[1..].iter_mut().zip(indexes) {
                key.set_row(&row, &index.columns);
                key.push_tuple(tuple.0);
                keys.push(&key, tuple);
            }
        }
        gathered.keys.iter_mut().for_each(SortedKeys::sort);
        Ok(gathered)
    }
}

fn prefetch_row(store: &Store, table: &TableInner, tuple: TupleId) {
    if tuple.0 < table.tuples_end() {
        store.prefetch(Address::from_word(table.anchor(tuple).load(Ordering::Relaxed)));
    }
}

/// Keys in order, with the tuples they belong to.
#[derive(Default)]
struct SortedKeys {
    words: Vec<u64>,
    /// First word of the key (what sorting mostly compares), where the key
    /// begins and how long it is, and the tuple.
    entries: Vec<(u64, u64, u64)>,
}

/// Bits of an entry's second field that hold the key's length.
const LEN_BITS: u32 = 16;

impl SortedKeys {
    fn push(&mut self, key: &Key, tuple: TupleId) {
        let at = ((self.words.len() as u64) << LEN_BITS) | key.words().len() as u64;
        self.entries.push((key.words()[0], at, tuple.0));
        self.words.extend_from_slice(key.words());
    }

    fn sort(&mut self) {
        let words = &self.words;
        self.entries
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key_at(words, a.1).cmp(key_at(words, b.1))));
    }

    fn key(&self, n: usize) -> &[u64] {
        key_at(&self.words, self.entries[n].1)
    }
}

fn key_at(words: &[u64], at: u64) -> &[u64] {
    let start = (at >> LEN_BITS) as usize;
    &words[start..start + (at & ((1 << LEN_BITS) - 1)) as usize]
}

/// Goes through sorted runs in order.
struct Merge<'r> {
    runs: Vec<(&'r SortedKeys, usize)>,
}

impl<'r> Merge<'r> {
    fn new(runs: impl Iterator<Item = &'r SortedKeys>) -> Self {
        Self { runs: runs.map(|run| (run, 0)).collect() }
    }
}

impl<'r> Iterator for Merge<'r> {
    type Item = (&'r [u64], u64);

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.runs.iter_mut().filter(|(run, at)| *at < run.entries.len());
        let (run, at) = left.min_by(|a, b| a.0.key(a.1).cmp(b.0.key(b.1)))?;
        let next = (run.key(*at), run.entries[*at].2);
        *at += 1;
        Some(next)
    }
}
