//! Recovery: making tables from what the store's scan finds.
//!
//! Its stages follow each other by their types: [`Scanned`], [`Rebuilt`], and
//! the open database. `store/src/scan.rs` decides what has been committed.

use std::ops::Range;
use std::sync::Arc;

use pantile_base::sync::atomic::{AtomicUsize, Ordering};
use pantile_base::sync::{Instant, Mutex};
use pantile_base::{TableId, Timestamp, TupleId, share_out, share_range};
use pantile_cc::Clock;
use pantile_index::Index as Tree;
use pantile_media::MediumExt;
use pantile_reclaim::Reclaimer;
use pantile_store::{Image, IsWhole, Scan, ScanProgress, ScanSummary, Store, StoreError};

use crate::engine::anchor::Anchor;
use crate::engine::changed::Changed;
use crate::engine::core::Core;
use crate::engine::counters::Change;
use crate::engine::failure::from_medium;
use crate::engine::found::{FoundTable, FoundTables, StoredTable};
use crate::engine::image_tables::{StoredTables, TUPLES_PER_THREAD, sum_of_definition};
use crate::engine::image_trees::{Changes, StoredTrees};
use crate::engine::index::IndexInner;
use crate::engine::readers::Earlier;
use crate::engine::salvage::Skip;
use crate::engine::sorted_keys::{Merge, SortedKeys};
use crate::engine::table::{Table, TableInner};
use crate::engine::tables::Batch;
use crate::engine::unread::Unread;
use crate::engine::{catalog, pieces};
use crate::types::encoding::Encoded;
use crate::types::error::{Error, Result};
use crate::types::history::Definition;
use crate::types::key::Key;
use crate::types::options::{Options, Progress, RecoveryStep};
use crate::types::stats::Recovery;

/// The store has been scanned, which has shown what was committed.
pub(crate) struct Scanned {
    store: Store,
    found: FoundTables,
    summary: ScanSummary,
    began: Instant,
    /// The image in place of a scan, and the gauges in it if nothing has changed
    /// since.
    image: Option<Arc<Image>>,
    tombstones: Option<u64>,
    /// Rows in the image that the state record names, whether it serves or not.
    image_rows: Option<u64>,
    earlier: Option<Earlier>,
}

impl Scanned {
    /// Scans the store, unless an image of this state makes that unnecessary;
    /// `began` is when opening began.
    pub fn new(store: Store, options: &Options, began: Instant) -> Result<Self, StoreError> {
        let threads = options.threads_of_recovery();
        let found = FoundTables::new(options.salvage.is_some());
        let stored = stored_tables(&store, options);
        let scan = Scan {
            threads,
            found: &|table, contents| found.add(&store, table, contents),
            progress: &|ScanProgress { done, total }| {
                options.report(Progress { step: RecoveryStep::Scan, done, total })
            },
        };
        let (image, tables) = stored.unzip();
        let image_rows = tables.as_ref().map(|tables| tables.rows);
        let (tables, tombstones) = (Mutex::new(tables), Mutex::new(None));
        let take = |whole| {
            let Some(mut tables) = tables.lock().take() else { return true };
            let is_current = match whole {
                IsWhole::Yes if tables.tombstones.is_some() => tables.end < store.medium().len(),
                _ => tables.bring_up_to_date(&store, threads).is_some(),
            };
            let is_taken = is_current && is_catalog_whole(&store, &tables);
            if is_taken {
                *tombstones.lock() = tables.tombstones;
                found.begin_with(tables.tables);
            }
            is_taken
        };
        let earlier = if options.is_read_only() { None } else { Earlier::hold(&store)? };
        let summary = match options.beside() {
            Some(beside) => store.scan_beside(&scan, beside)?,
            None => store.recover_from(&scan, image.as_deref(), take)?,
        };
        let (image, tombstones) = (image.filter(|_| summary.from_image), tombstones.into_inner());
        Ok(Self { store, found, summary, began, image, image_rows, tombstones, earlier })
    }

    /// The highest timestamp on the medium.
    pub fn highest(&self) -> Timestamp {
        self.summary.highest
    }

    /// Makes the tables and their indexes.
    pub fn rebuild(self, options: Options, clock: Clock, reclaimer: Box<dyn Reclaimer>) -> Result<Rebuilt> {
        let Self { store, found, summary, began, image, image_rows, tombstones, earlier } = self;
        let scan_seconds = began.elapsed().as_secs_f64();
        options.check_stopped()?;
        // Indexes are built in the order of tuples. Rows that were updated lie
        // anywhere.
        store.expect_transactions();
        let mut core = Core::new(options, store, clock, reclaimer);
        let unread = image.as_ref().and_then(|image| core.store.unread(image));
        core.unread = Unread::new(unread, core.registry.now());
        core.image = Mutex::new(image);
        core.found_until = summary.highest;
        core.earlier.lock().extend(earlier);
        core.counters.found_buried(tombstones.unwrap_or(0));
        core.recover_table(&found, catalog::CATALOG, catalog::definition().into())?;
        let definitions = core.stored_definitions()?;
        let total = definitions.len() as u64;
        for (done, (id, def)) in (1..).zip(definitions) {
            core.tables.id_is_used(id);
            let recovered = core.recover_with_pieces(&found, id, def);
            recovered.or_else(|error| core.leave_out(Some(id), None, error))?;
            core.options.report(Progress { step: RecoveryStep::Index, done, total });
            core.options.check_stopped()?;
        }
        // What is left belongs to tables that were dropped.
        for table in found.rest() {
            core.leave_out_table(table, found.definition_of(pieces::owner(table)))?;
            core.tables.found_dropped(table);
        }
        core.images.begin(summary.content_bytes, image_rows);
        core.measure_images();
        core.recovery = Recovery {
            seconds: began.elapsed().as_secs_f64(),
            scan_seconds,
            contents_scanned: summary.contents + summary.discarded,
            bytes_scanned: summary.content_bytes,
            discarded: summary.discarded,
            tuples: core.counters.tuples(),
            was_closed: summary.was_closed,
            from_image: summary.from_image,
        };
        Ok(Rebuilt(core))
    }
}

/// All tables are as they were committed, and nothing has been added to them.
pub(crate) struct Rebuilt(Core);

impl Rebuilt {
    /// Opens the database. What recovery has decided becomes durable before
    /// anything is added.
    pub fn open(self) -> Result<Arc<Core>> {
        let core = self.0;
        if !core.options.is_read_only() {
            core.hold_for_earlier();
            core.store.medium().preallocate(core.options.preallocate).map_err(from_medium)?;
            // If an image has said all, nothing has been decided, and the record that
            // says closed stays in force until something is added.
            if !(core.recovery.was_closed && core.image.lock().is_some()) {
                let recorded = core.state_records.record_now(&core.store, &core.registry);
                recorded.map_err(|e| core.store_error(e))?;
            }
            while core.release_tables(Batch::LARGE) {}
            core.reclaimer.resume(&core.store);
        }
        core.gate.open();
        Ok(Arc::new(core))
    }
}

impl Core {
    fn stored_definitions(&self) -> Result<Vec<(TableId, Definition)>> {
        let catalog = self.tables.catalog()?.inner;
        let mut definitions = Vec::new();
        for tuple in 0..catalog.tuples_end() {
            if let Some(row) = catalog.live_row(&self.store, TupleId(tuple)) {
                // It has been refused, or left out.
                if row.shape_problem().is_some() {
                    continue;
                }
                let id = catalog::table_of(&row);
                let decoded = catalog::decode(row.raw(&row.schema.columns[1]));
                match decoded.and_then(|def| catalog::check(id, &def).map(|()| def)) {
                    Ok(def) => definitions.push((id, def)),
                    Err(error) => self.leave_out(Some(catalog.id), Some(TupleId(tuple)), error)?,
                }
            }
        }
        self.rename_older(&mut definitions);
        Ok(definitions)
    }

    /// Looks at the checksum of the newest version of a tuple.
    fn verify_newest(&self, table: &TableInner, tuple: TupleId) -> Result<()> {
        let newest = Anchor::load(table.anchor(tuple)).newest();
        match newest.is_none() {
            true => Ok(()),
            false => self.store.verify(newest).map(drop).map_err(|error| self.store_error(error)),
        }
    }

    /// A table, and that of its long values if it can have any.
    fn recover_with_pieces(&self, found: &FoundTables, id: TableId, definition: Definition) -> Result<()> {
        if definition.can_move_out() {
            self.recover_table(found, pieces::of(id), pieces::definition(&definition.def.name).into())?;
        }
        self.recover_table(found, id, definition)
    }

    fn recover_table(&self, found: &FoundTables, id: TableId, definition: Definition) -> Result<()> {
        let FoundTable { anchors, tuples, stored } = found.take(id);
        let table = self.tables.make(id, definition)?.with_tuples(anchors, tuples.load(Ordering::Acquire));
        let list = self.tables.make_indexes(&table)?;
        list.iter().for_each(IndexInner::set_ready);
        table.change_indexes(|indexes| *indexes = list.into_iter().map(Arc::new).collect());
        let table = match stored {
            Some(stored) => self.leave_in_image(table, stored)?,
            None => self.make_trees(table)?,
        };
        self.tables.add(Table::of(Arc::new(table)));
        Ok(())
    }

    /// A table whose trees stay in an image until they are needed.
    fn leave_in_image(&self, table: TableInner, stored: StoredTable) -> Result<TableInner> {
        stored.dead.iter().for_each(|tuple| table.return_tuple(tuple.0 as usize, *tuple));
        let fits = sum_of_definition(&table.definition())? == stored.definition;
        let rows = table.tuples_end().saturating_sub(stored.dead.len() as u64);
        let in_image = Change { tuples: rows as i64, live_bytes: stored.live_bytes as i64 };
        table.count_slots_until(stored.counts_slots_until);
        let changes = stored.changed.map(|tuples| self.take_stock(&table, tuples));
        self.count_rows(&table, changes.as_ref().map_or(in_image, |changes| changes.rows));
        let trees = StoredTrees::new(stored.image, table.id, fits, changes);
        Ok(table.with_stored(trees))
    }

    /// Counts what a table holds after it has been brought up to date. No row is
    /// read: each counts with its slot, which is up to an eighth more than its
    /// bytes, until it is superseded.
    fn take_stock(&self, table: &TableInner, tuples: Changed) -> Changes {
        table.count_slots_until(self.found_until.get());
        let (end, store) = (table.tuples_end(), &self.store);
        let shares = self.options.threads_of_recovery().min(1 + end as usize / TUPLES_PER_THREAD);
        let counted = share_range(shares, end, |part| {
            let (mut change, mut dead) = (Change::default(), Vec::new());
            let mut nearby = store.nearby();
            for tuple in part.map(TupleId) {
                let newest = Anchor::load(table.anchor(tuple)).newest();
                let bytes = if newest.is_none() { None } else { nearby.row_slot_bytes(newest) };
                match bytes {
                    Some(bytes) => {
                        change.tuples += 1;
                        change.live_bytes += bytes as i64;
                    }
                    None => {
                        tuples.insert(tuple);
                        dead.push(tuple);
                    }
                }
            }
            (change, dead)
        });
        let mut rows = Change::default();
        for (change, dead) in counted {
            rows += change;
            self.bury(table, &dead);
        }
        Changes { tuples, rows }
    }

    /// Counts rows of a table that were found.
    fn count_rows(&self, table: &TableInner, rows: Change) {
        self.counters.adjust(rows);
        table.rows.change(0, rows);
    }

    /// Makes the trees of a table whose tuples have been found.
    fn make_trees(&self, table: TableInner) -> Result<TableInner> {
        let list = table.indexes();
        let mut keys = self.gather(&table, &list, &Skip::default())?;
        for part in keys.iter().filter(|_| self.options.salvage.is_none()) {
            self.count_rows(&table, part.change);
            self.bury(&table, &part.dead);
        }
        if self.options.salvage.is_some() {
            let mut older = self.older_of_one_key(&table, keys.iter().map(|part| &part.keys[0]));
            for (n, index) in (1..).zip(list.iter()).filter(|(_, index)| index.checks_unique) {
                let runs = keys.iter().map(|part| part.of_index(n));
                let of_index = self.older_of_unique_key(&table, index, runs, &older);
                older.extend(of_index);
            }
            if !older.is_empty() {
                keys = self.gather(&table, &list, &older)?;
            }
        }
        table.set_trees(self.build_trees(&table, &list, &keys)?);
        Ok(table)
    }

    /// The trees of a table in which nothing has changed since it was opened with
    /// an image, from its rows. No scan has looked at their checksums.
    pub fn trees_from_rows(&self, table: &TableInner) -> Result<Vec<Tree>> {
        let verify =
            |mut tuples: Range<u64>| tuples.try_for_each(|tuple| self.verify_newest(table, TupleId(tuple)));
        self.share_tuples(table, verify).into_iter().collect::<Result<()>>()?;
        let list = table.indexes();
        let keys = self.gather(table, &list, &Skip::default())?;
        self.build_trees(table, &list, &keys)
    }

    /// The keys of the rows of some tuples, in parts.
    pub fn gather_changed(&self, table: &TableInner, tuples: &Changed) -> Result<Vec<Gathered>> {
        let indexes = table.indexes();
        let gather =
            |part| Gathered::from_tuples(self, table, &indexes, tuples.within(part), &Skip::default());
        self.share_tuples(table, gather).into_iter().collect()
    }

    /// Goes over the tuples once, in parallel, and gathers the keys of all
    /// indexes.
    fn gather(&self, table: &TableInner, indexes: &[Arc<IndexInner>], skip: &Skip) -> Result<Vec<Gathered>> {
        let gather = |part: Range<u64>| Gathered::from_tuples(self, table, indexes, part.map(TupleId), skip);
        self.share_tuples(table, gather).into_iter().collect()
    }

    /// Does `work` for all tuples of a table, in ranges on several threads.
    fn share_tuples<R: Send>(&self, table: &TableInner, work: impl Fn(Range<u64>) -> R + Sync) -> Vec<R> {
        share_range(self.threads_for(table), table.tuples_end(), work)
    }

    /// Makes the ids of deleted tuples available.
    fn bury(&self, table: &TableInner, dead: &[TupleId]) {
        for &tuple in dead {
            let cell = table.anchor(tuple);
            let tombstone = Anchor::load(cell).newest();
            Anchor::bury(cell, tombstone);
            self.counters.found_buried(u64::from(!tombstone.is_none()));
            table.return_tuple(tuple.0 as usize, tuple);
        }
    }

    /// Builds the primary tree and those of the indexes from sorted keys, as
    /// many at a time as there may be threads.
    fn build_trees(
        &self,
        table: &TableInner,
        indexes: &[Arc<IndexInner>],
        parts: &[Gathered],
    ) -> Result<Vec<Tree>> {
        let keys = table.keys_of(indexes);
        let build = |n: usize| {
            let runs = parts.iter().map(|part| &part.keys[n]);
            Tree::bulk_load(keys[n], &self.tables.arena, Merge::new(runs), 0.9).map_err(|_| Error::Damaged {
                place: format!("table {:?}", table.name()),
                detail: "two live rows have the same key".into(),
            })
        };
        in_parallel(self.threads_for(table), keys.len(), build)
    }

    /// A small table is no work for several threads.
    pub fn threads_for(&self, table: &TableInner) -> usize {
        self.options.threads_of_recovery().min(1 + table.tuples_end() as usize / 4096)
    }
}

/// Looks at the checksums of the catalog's rows. They are few, and what is
/// damaged in them is for the scan to report.
fn is_catalog_whole(store: &Store, stored: &StoredTables) -> bool {
    let Some(found) = stored.tables.get(&catalog::CATALOG) else { return false };
    (0..found.tuples.load(Ordering::Relaxed)).all(|tuple| {
        let newest = Anchor::load(found.anchors.get_or_grow(tuple)).newest();
        newest.is_none() || store.verify(newest).is_ok()
    })
}

/// What the image of this state says about tables, if there is one.
fn stored_tables(store: &Store, options: &Options) -> Option<(Arc<Image>, StoredTables)> {
    let beside = store.medium().facts().beside.as_ref()?;
    if options.is_read_only() || options.without_image {
        return None;
    }
    let image = Arc::new(store.named_image(&**beside)?);
    let tables = StoredTables::read(&image, options.threads_of_recovery())?;
    Some((image, tables))
}

/// Does the jobs `0..jobs` on at most `threads` threads, this one included.
/// Returns their results in order, or the error of the first that failed.
fn in_parallel<R: Send>(
    threads: usize,
    jobs: usize,
    job: impl Fn(usize) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed)).take_while(|&n| n < jobs);
        mine.map(|n| (n, job(n))).collect::<Vec<_>>()
    };
    let mut done: Vec<_> = share_out(threads.min(jobs), |_| work()).into_iter().flatten().collect();
    done.sort_unstable_by_key(|(n, _)| *n);
    done.into_iter().map(|(_, result)| result).collect()
}

/// What one thread gathers from a range of tuples.
#[derive(Default)]
pub(crate) struct Gathered {
    change: Change,
    /// Deleted, or never committed.
    dead: Vec<TupleId>,
    /// Those of the primary index, then those of the others.
    keys: Vec<SortedKeys>,
}

/// How many tuples ahead contents are prefetched.
const AHEAD: usize = 8;

/// How many contents the medium is asked for at once, one such number ahead.
const FETCHED: usize = 256;

impl Gathered {
    /// The keys of an index, counted from 1, or of the primary index.
    pub fn of_index(&self, n: usize) -> &SortedKeys {
        &self.keys[n]
    }

    fn from_tuples(
        core: &Core,
        table: &TableInner,
        indexes: &[Arc<IndexInner>],
        mut tuples: impl Iterator<Item = TupleId>,
        skip: &Skip,
    ) -> Result<Self> {
        let store = &core.store;
        let mut gathered =
            Self { keys: (0..=indexes.len()).map(|_| SortedKeys::default()).collect(), ..Self::default() };
        let mut key = Key::default();
        let mut next: Vec<_> = tuples.by_ref().take(FETCHED).collect();
        fetch_rows(store, table, &next);
        while !next.is_empty() {
            let batch = std::mem::replace(&mut next, tuples.by_ref().take(FETCHED).collect());
            fetch_rows(store, table, &next);
            for (n, &tuple) in batch.iter().enumerate() {
                if let Some(&ahead) = batch.get(n + AHEAD) {
                    store.prefetch(Anchor::load(table.anchor(ahead)).newest());
                }
                // Opening has read it whole. Keys are in the first of its bytes, which `add` pays for with the header.
                let Some(bytes) = table.known_row(store, tuple) else {
                    gathered.dead.push(tuple);
                    continue;
                };
                if !skip.is_empty() && skip.contains(&tuple.0) {
                    continue;
                }
                gathered.add(core, table, indexes, tuple, bytes, &mut key)?;
            }
        }
        gathered.keys.iter_mut().for_each(SortedKeys::sort);
        Ok(gathered)
    }

    /// Adds a row and its keys.
    fn add(
        &mut self,
        core: &Core,
        table: &TableInner,
        indexes: &[Arc<IndexInner>],
        tuple: TupleId,
        row: Encoded<'_>,
        key: &mut Key,
    ) -> Result<()> {
        self.change += Change::of_row(row.bytes.len());
        let address = Anchor::load(table.anchor(tuple)).newest();
        let layout = core.store.content_header(address).layout();
        let unknown = (layout > table.schema().layout).then(|| format!("layout {layout} is not known"));
        if let Some(problem) = unknown.or_else(|| row.shape_problem()) {
            let place = format!("{}, tuple {}", core.store.place_of(address), tuple.0);
            let error = Error::Damaged { place, detail: problem };
            return core.leave_out(Some(table.id), Some(tuple), error);
        }
        key.set_primary(&row);
        self.keys[0].push(key, tuple);
        for (keys, index) in self.keys[1..].iter_mut().zip(indexes) {
            if index.set_key(&row, key) {
                key.push_tuple(tuple.0);
                keys.push(key, tuple);
            }
        }
        Ok(())
    }
}

/// Lets the medium begin to read the rows of tuples.
fn fetch_rows(store: &Store, table: &TableInner, tuples: &[TupleId]) {
    if store.may_wait() {
        let newest = |tuple: &TupleId| Anchor::load(table.anchor(*tuple)).newest();
        store.fetch(&store.extents(&mut tuples.iter().map(newest).collect::<Vec<_>>()));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use pantile_base::sync::thread;

    /// However many indexes there are.
    #[test]
    fn no_more_threads_work_than_may() {
        for threads in [1, 2, 5, 40] {
            let work = |n| {
                thread::sleep(std::time::Duration::from_millis(1));
                Ok((n, thread::current().id()))
            };
            let done = in_parallel(threads, 20, work).expect("no job fails");
            assert!(done.iter().enumerate().all(|(n, (job, _))| n == *job));
            let by: HashSet<_> = done.iter().map(|(_, thread)| *thread).collect();
            assert!(by.len() <= threads, "{} of {threads} threads", by.len());
            assert!(threads > 1 || by.contains(&thread::current().id()), "the caller works, too");
        }
        let fail = |n| if n < 7 { Ok(n) } else { Err(Error::Closed) };
        assert!(matches!(in_parallel(3, 20, fail), Err(Error::Closed)));
    }
}
