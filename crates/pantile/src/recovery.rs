//! Putting the tables together from what the store has found.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use foldhash::fast::RandomState;
use pantile_base::{Address, Segments, TableId, Timestamp, TupleId};
use pantile_index::Index as Tree;
use pantile_store::{Found, HEADER_BYTES, Scan, ScanProgress, ScanSummary, Store, StoreError};
use parking_lot::RwLock;

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
    by_id: RwLock<HashMap<TableId, Arc<FoundTable>, RandomState>>,
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
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
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
            while known == 0 || store.content(Address::from_word(known)).txn_id() < one.content.txn_id() {
                match cell.compare_exchange_weak(
                    known,
                    one.address.word(),
                    Ordering::AcqRel,
                    Ordering::Acquire,
                ) {
                    Ok(_) => break,
                    Err(now) => known = now,
                }
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
            self.dropped.lock().push(Dropped { at, unused_since: Some(at), table });
        }
        self.next_table = AtomicU64::new(next);
        self.recovery = Recovery {
            seconds: began.elapsed().as_secs_f64(),
            scan_seconds,
            contents_scanned: summary.contents + summary.discarded,
            content_bytes: summary.content_bytes,
            discarded: summary.discarded,
            tuples: self.by_id.read().values().map(|t| t.primary.len() as u64).sum(),
            was_closed: summary.was_closed,
        };
        Ok(())
    }

    fn stored_definitions(&self) -> Result<Vec<(TableId, TableDef)>> {
        let catalog = self.catalog()?.0;
        let mut definitions = Vec::new();
        for tuple in 0..catalog.tuples_end() {
            if let Some(bytes) = live_row(&self.store, &catalog, TupleId(tuple)) {
                let row = Encoded { schema: &catalog.schema, bytes };
                let mut id = [0; 4];
                id.copy_from_slice(row.raw(&catalog.schema.columns[0]));
                let def = catalog::decode(row.raw(&catalog.schema.columns[1]))?;
                definitions.push((TableId(u32::from_le_bytes(id)), def));
            }
        }
        Ok(definitions)
    }

    fn recover_table(&self, found: &FoundTables, id: TableId, def: TableDef) -> Result<()> {
        let found = found.take(id);
        let tuples = found.tuples.load(Ordering::Acquire);
        let mut table = TableInner::recovered(id, self.id, def, found.anchors, tuples, &self.arena)?;
        let change = self.free_dead_tuples(&table);
        self.counters.recovered(change);
        let words = TableInner::primary_words(&table.schema);
        table.primary = self.build_tree(&table, &table.schema.primary_key, words, false)?;
        let mut list = Vec::new();
        for def in &table.def.indexes {
            let mut index =
                IndexInner::new(def.clone(), table.next_index_number(), &table.schema, &self.arena)?;
            let words = IndexInner::max_words(&table.schema, &index.columns);
            index.tree = self.build_tree(&table, &index.columns, words, true)?;
            index.set_ready();
            list.push(Arc::new(index));
        }
        table.change_indexes(|indexes| *indexes = list);
        self.add_table(Table(Arc::new(table)));
        Ok(())
    }

    /// Puts the ids of deleted tuples back into stock, and adds up the rest.
    fn free_dead_tuples(&self, table: &TableInner) -> Change {
        let mut change = Change::default();
        for tuple in (0..table.tuples_end()).map(TupleId) {
            match live_row(&self.store, table, tuple) {
                Some(row) => {
                    change.tuples += 1;
                    change.live_bytes += (row.len() + HEADER_BYTES) as i64;
                }
                None => table.return_tuple(tuple.0 as usize, tuple),
            }
        }
        change
    }

    /// An index of all live rows, built from sorted keys.
    fn build_tree(
        &self,
        table: &TableInner,
        columns: &[usize],
        max_words: usize,
        with_tuple: bool,
    ) -> Result<Tree> {
        let threads = threads(&self.options).min(1 + table.tuples_end() as usize / 4096);
        let part = table.tuples_end().div_ceil(threads as u64);
        let collect = |n: u64| {
            let tuples = n * part..((n + 1) * part).min(table.tuples_end());
            SortedKeys::collect(&self.store, table, columns, with_tuple, tuples)
        };
        let runs: Vec<SortedKeys> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads as u64).map(|n| scope.spawn(move || collect(n))).collect();
            let mut runs = vec![collect(0)];
            runs.extend(others.into_iter().map(|t| t.join().expect("a collecting thread does not panic")));
            runs
        });
        Tree::bulk_load(max_words, &self.arena, Merge::new(&runs), 0.9).map_err(|_| Error::Damaged {
            place: format!("table {:?}", table.schema.name),
            detail: "two live rows have the same key".into(),
        })
    }
}

/// The newest version of a tuple, if it is a row.
fn live_row<'s>(store: &'s Store, table: &TableInner, tuple: TupleId) -> Option<&'s [u8]> {
    let address = Address::from_word(table.anchor(tuple).load(Ordering::Acquire));
    if address.is_none() {
        return None;
    }
    let content = store.content(address);
    (!content.flags().is_tombstone()).then(|| content.row())
}

/// Keys of a range of tuples in order, with the tuples they belong to.
struct SortedKeys {
    words: Vec<u64>,
    /// First word of the key (what sorting mostly compares), where the key
    /// begins and how long it is, and the tuple.
    entries: Vec<(u64, u64, u64)>,
}

/// Bits of an entry's second field that hold the key's length.
const LEN_BITS: u32 = 16;

impl SortedKeys {
    fn collect(
        store: &Store,
        table: &TableInner,
        columns: &[usize],
        with_tuple: bool,
        tuples: std::ops::Range<u64>,
    ) -> Self {
        let mut keys =
            Self { words: Vec::new(), entries: Vec::with_capacity((tuples.end - tuples.start) as usize) };
        let mut key = Key::default();
        for tuple in tuples.map(TupleId) {
            let Some(bytes) = live_row(store, table, tuple) else { continue };
            key.set_row(&Encoded { schema: &table.schema, bytes }, columns);
            if with_tuple {
                key.push_tuple(tuple.0);
            }
            let at = (keys.words.len() as u64) << LEN_BITS | key.words().len() as u64;
            keys.entries.push((key.words()[0], at, tuple.0));
            keys.words.extend_from_slice(key.words());
        }
        let words = &keys.words;
        keys.entries
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key_at(words, a.1).cmp(key_at(words, b.1))));
        keys
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
    fn new(runs: &'r [SortedKeys]) -> Self {
        Self { runs: runs.iter().map(|run| (run, 0)).collect() }
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
