//! The newest contents of all tuples, as the store's scan finds them.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::sync::{Mutex, RwLock};
use pantile_base::{Address, Segments, TableId, TupleId, prefetch};
use pantile_store::{DEPENDENCIES, Found, Image, Store};

use crate::engine::catalog;
use crate::engine::changed::Changed;
use crate::types::encoding::Encoded;

/// The tuples of one table as the scan finds them.
#[derive(Default)]
pub(crate) struct FoundTable {
    pub anchors: Segments<AtomicU64>,
    /// One more than the highest tuple id.
    pub tuples: AtomicU64,
    /// The rest of what an image says about it, if that is where the anchors
    /// come from.
    pub stored: Option<StoredTable>,
}

/// What an image says about a table, besides its anchors.
pub(crate) struct StoredTable {
    pub image: Arc<Image>,
    /// Identifies the definition that the table had.
    pub definition: u64,
    /// Bytes of its rows, if nothing has changed.
    pub live_bytes: u64,
    /// Rows that were written by then count there with their slots.
    pub counts_slots_until: u64,
    /// Ids of tuples that are not rows.
    pub dead: Vec<TupleId>,
    /// The tuples about which the image is not up to date, if there may be any.
    pub changed: Option<Changed>,
}

/// The tuples of all tables as the scan finds them.
#[derive(Default)]
pub(crate) struct FoundTables {
    by_id: RwLock<HashMap<TableId, Arc<FoundTable>, FixedState>>,
    /// The rows of the catalog in which tables have or had their definitions, if anybody will ask.
    definitions: Option<Mutex<HashMap<TableId, TupleId, FixedState>>>,
}

impl FoundTables {
    /// None yet. [`FoundTables::definition_of`] answers if `asks`.
    pub fn new(asks: bool) -> Self {
        Self { definitions: asks.then(Mutex::default), ..Self::default() }
    }

    /// Begins with the tables of an image.
    pub fn begin_with(&self, tables: impl IntoIterator<Item = (TableId, FoundTable)>) {
        self.by_id.write().extend(tables.into_iter().map(|(id, table)| (id, Arc::new(table))));
    }

    /// Adds contents of a table. Called from several threads.
    pub fn add(&self, store: &Store, table: TableId, found: &[Found<'_>]) {
        if table == DEPENDENCIES {
            // They have served.
            for one in found {
                store.supersede(one.address, one.content.timestamp());
            }
            return;
        }
        if table == catalog::CATALOG {
            self.note_definitions(found);
        }
        self.table(table).add(store, found);
    }

    fn note_definitions(&self, found: &[Found<'_>]) {
        let Some(definitions) = &self.definitions else { return };
        let schema = catalog::schema();
        for content in found.iter().map(|one| &one.content).filter(|content| !content.flags().is_tombstone())
        {
            let row = Encoded { schema: &schema, bytes: content.row() };
            if row.shape_problem().is_none() {
                definitions.lock().insert(catalog::table_of(&row), content.tuple());
            }
        }
    }

    /// The row of the catalog in which a table of a user has or had its definition.
    pub fn definition_of(&self, table: TableId) -> Option<TupleId> {
        self.definitions.as_ref()?.lock().get(&table).copied()
    }

    /// The tables that have not been taken.
    pub fn rest(&self) -> Vec<TableId> {
        self.by_id.read().keys().copied().collect()
    }

    fn table(&self, id: TableId) -> Arc<FoundTable> {
        if let Some(table) = self.by_id.read().get(&id) {
            return Arc::clone(table);
        }
        Arc::clone(self.by_id.write().entry(id).or_default())
    }

    /// Takes a table out; it is empty if nothing of it was found.
    pub fn take(&self, id: TableId) -> FoundTable {
        let found = self.by_id.write().remove(&id).unwrap_or_default();
        Arc::try_unwrap(found).unwrap_or_default()
    }
}

/// How many contents ahead the anchors of their tuples are prefetched, and what
/// is known of the contents to which they lead half as many ahead.
const AHEAD: usize = 16;

impl FoundTable {
    /// Keeps the newest content of each tuple, and marks older ones as superseded.
    fn add(&self, store: &Store, found: &[Found<'_>]) {
        let Some(end) = found.iter().map(|f| f.content.tuple().0 + 1).max() else { return };
        self.tuples.fetch_max(end, Ordering::AcqRel);
        let changed = self.changed();
        let anchor = |n: usize| found.get(n).map(|one| self.anchors.get_or_grow(one.content.tuple().0));
        for (n, one) in found.iter().enumerate() {
            if let Some(cell) = anchor(n + AHEAD) {
                prefetch(cell);
                changed.inspect(|changed| changed.prefetch(found[n + AHEAD].content.tuple()));
            }
            if let Some(cell) = anchor(n + AHEAD / 2) {
                let known = Address::from_word(cell.load(Ordering::Relaxed));
                store.prefetch_superseded(known);
                if !self.is_above_image(&found[n + AHEAD / 2]) {
                    store.prefetch(known);
                }
            }
            self.add_one(store, one);
        }
    }

    fn changed(&self) -> Option<&Changed> {
        self.stored.as_ref().and_then(|stored| stored.changed.as_ref())
    }

    /// Whether a content is newer than all that the image knows.
    fn is_above_image(&self, one: &Found<'_>) -> bool {
        let is_above = |stored: &StoredTable| one.content.timestamp().get() > stored.image.highest();
        self.stored.as_ref().is_some_and(is_above)
    }

    fn add_one(&self, store: &Store, one: &Found<'_>) {
        let (tuple, begin) = (one.content.tuple(), one.content.timestamp());
        let cell = self.anchors.get_or_grow(tuple.0);
        let mut known = cell.load(Ordering::Acquire);
        // A thread that replaces what the image knows inserts the tuple before. So if the
        // tuple was not there, `known` is the image's. It need not be read, which would
        // be a cache miss for each row.
        let is_first = self.changed().is_some_and(|changed| changed.insert(tuple));
        let mut is_newer = is_first && self.is_above_image(one);
        loop {
            let other = Address::from_word(known);
            let other_begin = (known != 0 && !is_newer).then(|| store.content_header(other).timestamp());
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
                    (known, is_newer) = (now, false);
                    continue;
                }
            }
            break;
        }
    }
}
