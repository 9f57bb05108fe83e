//! Tables, as the engine holds them in DRAM, and the handles of them and of their indexes.

use std::sync::{Arc, OnceLock};

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pantile_base::sync::{Mutex, MutexGuard, RwLock};
use pantile_base::{Address, Padded, Segments, TableId, Timestamp, TupleId};
use pantile_index::{Index as Tree, KeyForm};
use pantile_store::{Content, Store, slot_bytes};

use crate::engine::anchor::Anchor;
use crate::engine::counters::Change;
pub(crate) use crate::engine::image_run::PRIMARY;
use crate::engine::image_trees::StoredTrees;
use crate::engine::index::{IndexInner, Indexes};
use crate::engine::layout_list::LayoutList;
use crate::engine::memory_limit::Allowance;
use crate::engine::row_count::RowCount;
use crate::types::columns::Columns;
use crate::types::encoding::Encoded;
use crate::types::error::{Conflict, Error, Result};
use crate::types::history::Definition;
use crate::types::layout::Schema;
use crate::types::layouts::Layouts;
use crate::types::schema::{ColumnDef, IndexDef, TableDef};
use crate::types::stats::IndexParts;

/// Shards of the stock of tuple ids, so that inserting threads seldom meet.
const ID_SHARDS: usize = 8;
/// Tuple ids that a shard takes at a time.
const ID_BATCH: u64 = 64;
/// Ids that go from one shard to another at a time.
const MOST_IDS_MOVED: usize = 4096;

/// A handle of a table; cheap to clone.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// assert_eq!(pets.name(), "pets");
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Table {
    pub(crate) inner: Arc<TableInner>,
    /// As of when the handle was made.
    pub(crate) columns: Arc<Columns>,
}

/// A handle of a secondary index; cheap to clone.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let pets = db.create_table(
///     TableDef::new("pets")
///         .column("id", Type::U32)
///         .column("name", Type::String(40))
///         .primary_key(["id"])
///         .index(IndexDef::unique("by_name", ["name"])),
/// )?;
/// let by_name = pets.index("by_name")?;
/// db.run(|txn| txn.insert(&pets, &[7u32.into(), "Rex".into()]))?;
/// let txn = db.begin_read()?;
/// let rex = txn.get_by_index(&by_name, &["Rex".into()])?.expect("a pet");
/// assert_eq!(rex.get::<u32>("id")?, 7);
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Index {
    pub(crate) table: Table,
    pub(crate) inner: Arc<IndexInner>,
    /// Its name when the handle was made.
    name: Arc<str>,
}

impl Table {
    /// A handle of the table as it is now.
    pub(crate) fn of(inner: Arc<TableInner>) -> Self {
        let columns = Arc::clone(&inner.layouts().columns);
        Self { inner, columns }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.inner.schema().name
    }

    /// Returns the definition: the columns that this handle knows, and the indexes that the table
    /// has now.
    pub fn definition(&self) -> TableDef {
        let _of_one_moment = self.inner.index_names.read();
        let indexes = self.inner.indexes();
        let ready = indexes.iter().filter(|index| index.is_ready());
        self.columns.definition(self.name(), ready.map(|i| (i.name(), i.unique, &i.columns[..])))
    }

    /// Returns the columns that this handle knows, in the order of a row's values.
    pub fn columns(&self) -> &[ColumnDef] {
        self.columns.defs()
    }

    /// Returns how many times [`Database::alter_table`](crate::Database::alter_table) has changed
    /// the table since it was created.
    pub fn version(&self) -> u64 {
        self.inner.layouts().definition.version
    }

    /// Returns the secondary index of this name.
    ///
    /// # Errors
    /// [`Error::UnknownIndex`] if there is none, or while it is being built.
    pub fn index(&self, name: &str) -> Result<Index> {
        let _of_one_moment = self.inner.index_names.read();
        let indexes = self.inner.indexes();
        let found = indexes.iter().find(|i| i.is_ready() && *i.name() == *name);
        let unknown = || Error::UnknownIndex { table: self.name().to_owned(), index: name.to_owned() };
        Ok(Index::of(self, found.cloned().ok_or_else(unknown)?))
    }

    /// Converts a struct or a map to the values of a row.
    ///
    /// Each field gives the column of the same name its value. A column without a field gets its
    /// default, or NULL if it takes NULL. [`Row::deserialize`](crate::Row::deserialize) converts in
    /// the other direction, and has an example.
    ///
    /// # Errors
    /// [`Error::Serde`], which names the field or column that does not fit. Lengths and ranges are
    /// not checked here, but when the row is written.
    #[cfg(feature = "serde")]
    pub fn serialize<T: serde::Serialize + ?Sized>(&self, row: &T) -> Result<Vec<crate::OwnedValue>> {
        let values = crate::types::row_serialize::serialize(&self.columns, row);
        values.map_err(|error| error.of_table(self.name()))
    }

    /// Returns the number of a column, for [`crate::Row::get`] and [`crate::Transaction::update`].
    ///
    /// # Errors
    /// [`Error::UnknownColumn`].
    pub fn column(&self, name: &str) -> Result<usize> {
        self.columns.number(name, self.name())
    }
}

impl Index {
    pub(crate) fn of(table: &Table, inner: Arc<IndexInner>) -> Self {
        let name = inner.name();
        Self { table: table.clone(), inner, name }
    }

    /// The name that it had when this handle was made.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// A table.
pub(crate) struct TableInner {
    pub id: TableId,
    /// The database that it belongs to.
    pub database: u64,
    layouts: LayoutList,
    primary: OnceLock<Tree>,
    /// Where the trees are as long as they have not been loaded.
    stored: Mutex<Option<Arc<StoredTrees>>>,
    anchors: Segments<AtomicU64>,
    next_tuple: AtomicU64,
    stock: [Padded<Mutex<Vec<TupleId>>>; ID_SHARDS],
    indexes: RwLock<Indexes>,
    /// Held while indexes get other names, and while the names of several are looked at.
    index_names: RwLock<()>,
    /// Rises whenever the list of indexes changes.
    indexes_version: AtomicU64,
    next_index: AtomicU32,
    /// Held by the one that changes its definition: for long if that makes an index.
    changing: Mutex<()>,
    dropped: AtomicBool,
    /// Zero for a table that was there when the database was opened.
    created_at: AtomicU64,
    /// Rows that were written by then are counted with their slots: opening has not read them.
    counts_slots_until: AtomicU64,
    /// Below every timestamp at which its definition is visible; zero as above.
    defined_from: AtomicU64,
    /// When it was created, a transaction could have known another of its name.
    replaces: AtomicBool,
    /// The latest deletion whose primary entry has been removed.
    cleaned_until: AtomicU64,
    /// Rows as the newest transaction sees them.
    pub rows: RowCount,
    /// What may be added to it near the limit of memory.
    pub allowance: Allowance,
}

impl std::fmt::Debug for TableInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableInner")
            .field("id", &self.id)
            .field("name", &self.schema().name)
            .finish_non_exhaustive()
    }
}

impl TableInner {
    /// A table whose tree is still to be made.
    pub fn new(id: TableId, database: u64, definition: Definition) -> Result<Self> {
        let layouts = LayoutList::new(Layouts::new(definition, id)?);
        Ok(Self {
            id,
            database,
            layouts,
            primary: OnceLock::new(),
            stored: Mutex::default(),
            anchors: Segments::default(),
            next_tuple: AtomicU64::new(0),
            stock: Default::default(),
            indexes: RwLock::default(),
            index_names: RwLock::default(),
            indexes_version: AtomicU64::new(0),
            next_index: AtomicU32::new(PRIMARY + 1),
            changing: Mutex::default(),
            dropped: AtomicBool::new(false),
            created_at: AtomicU64::new(0),
            counts_slots_until: AtomicU64::new(0),
            defined_from: AtomicU64::new(0),
            replaces: AtomicBool::new(false),
            cleaned_until: AtomicU64::new(0),
            rows: RowCount::default(),
            allowance: Allowance::default(),
        })
    }

    /// Its definition and layouts as they are now.
    #[inline]
    pub fn layouts(&self) -> &Layouts {
        self.layouts.newest()
    }

    /// Those of rows that a transaction writes at this time (I-26).
    #[inline]
    pub fn layouts_at(&self, time: Timestamp) -> &Layouts {
        self.layouts.at(time)
    }

    /// The layout of rows that are written now.
    #[inline]
    pub fn schema(&self) -> &Schema {
        &self.layouts().latest
    }

    /// Its definition as it is now, with the indexes that it has now.
    pub fn definition(&self) -> Definition {
        let _of_one_moment = self.index_names.read();
        let layouts = self.layouts();
        let mut definition = layouts.definition.clone();
        let name = |id: &usize| layouts.latest.names[*id].clone();
        let index = |index: &Arc<IndexInner>| IndexDef {
            name: index.name().to_string(),
            columns: index.columns.iter().map(name).collect(),
            unique: index.unique,
        };
        let indexes = self.indexes();
        definition.def.indexes = indexes.iter().filter(|i| i.is_ready()).map(index).collect();
        definition
    }

    /// Changes its definition. Rows that are written from here on have the new
    /// layout.
    pub fn change_layouts(&self, layouts: Layouts) {
        let _all_at_once = self.index_names.write();
        let names = layouts.definition.def.indexes.iter().map(|def| def.name.clone()).collect::<Vec<_>>();
        self.layouts.push(layouts);
        let indexes = self.indexes();
        let ready = indexes.iter().filter(|index| index.is_ready());
        ready.zip(&names).for_each(|(index, name)| index.rename(name));
    }

    /// The row in a content.
    #[inline]
    pub fn row_of<'c>(&'c self, content: Content<'c>) -> Encoded<'c> {
        self.row_in(content.layout(), content.row())
    }

    /// A row of this layout.
    #[inline]
    pub fn row_in<'c>(&'c self, layout: u8, bytes: &'c [u8]) -> Encoded<'c> {
        Encoded { schema: self.layouts().get(layout), bytes }
    }

    /// The keys of the primary index and the others.
    pub fn keys_of(&self, indexes: &[Arc<IndexInner>]) -> Vec<KeyForm> {
        let schema = self.schema();
        let primary = KeyForm::UpTo(schema.max_key_bytes(&schema.primary_key).div_ceil(8));
        let others = indexes.iter().map(|index| IndexInner::keys(schema, &index.columns));
        [primary].into_iter().chain(others).collect()
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        self.schema().name.clone()
    }

    /// The table with the tuples that recovery has found.
    pub fn with_tuples(mut self, anchors: Segments<AtomicU64>, tuples: u64) -> Self {
        self.anchors = anchors;
        self.next_tuple = AtomicU64::new(tuples);
        self
    }

    /// The table with its trees in an image.
    pub fn with_stored(self, stored: StoredTrees) -> Self {
        *self.stored.lock() = Some(Arc::new(stored));
        self
    }

    /// Gives the primary index and the others their trees, in this order: the
    /// table is ready.
    pub fn set_trees(&self, trees: Vec<Tree>) {
        let mut trees = trees.into_iter();
        let primary = trees.next().expect("the first tree is that of the primary index");
        for (index, tree) in self.indexes().iter().zip(trees) {
            index.set_tree(tree);
        }
        assert!(self.primary.set(primary).is_ok(), "a table gets its trees once");
        *self.stored.lock() = None;
    }

    /// The primary index, if the table is ready.
    #[inline]
    pub fn primary(&self) -> Option<&Tree> {
        self.primary.get()
    }

    /// The primary index. The table is ready.
    #[inline]
    pub fn tree(&self) -> &Tree {
        self.primary().expect("the table is ready")
    }

    /// The trees in an image, if the table is not ready.
    pub fn stored(&self) -> Option<Arc<StoredTrees>> {
        self.stored.lock().clone()
    }

    /// Rows that were written by then are counted with their slots.
    pub fn count_slots_until(&self, written: u64) {
        self.counts_slots_until.store(written, Ordering::Relaxed);
    }

    pub fn counts_slots_until(&self) -> u64 {
        self.counts_slots_until.load(Ordering::Relaxed)
    }

    /// As what a committed row was counted that was written at this time.
    #[inline]
    pub fn counted(&self, written: Timestamp, row_len: usize) -> Change {
        match written.get() <= self.counts_slots_until() {
            true => of_slot(row_len),
            false => Change::of_row(row_len),
        }
    }

    /// The anchor of a tuple, which an index entry or a content has named.
    #[inline]
    pub fn anchor(&self, tuple: TupleId) -> &AtomicU64 {
        self.anchors.get_or_grow(tuple.0)
    }

    /// The newest version of a tuple, if it is a row.
    pub fn live_row<'s>(&'s self, store: &'s Store, tuple: TupleId) -> Option<Encoded<'s>> {
        self.live_row_in(tuple, |address| store.content(address))
    }

    /// The same of a version that has been read, and paid for, before.
    pub fn known_row<'s>(&'s self, store: &'s Store, tuple: TupleId) -> Option<Encoded<'s>> {
        self.live_row_in(tuple, |address| store.known_content(address))
    }

    fn live_row_in<'s>(
        &'s self,
        tuple: TupleId,
        content: impl FnOnce(Address) -> Content<'s>,
    ) -> Option<Encoded<'s>> {
        let address = Anchor::load(self.anchor(tuple)).newest();
        let content = (!address.is_none()).then(|| content(address))?;
        (!content.flags().is_tombstone()).then(|| self.row_of(content))
    }

    pub fn conflict(&self, conflict: Conflict) -> Error {
        Error::Conflict { conflict, table: self.name() }
    }

    pub fn duplicate(&self, index: &str) -> Error {
        Error::DuplicateKey { table: self.name(), index: index.to_owned() }
    }

    /// A primary entry is about to be removed whose tuple was deleted at `at`.
    pub fn note_cleaned(&self, at: Timestamp) {
        self.cleaned_until.fetch_max(at.get(), Ordering::SeqCst);
    }

    /// Whether a key that was deleted after `ts` may have lost its primary entry.
    pub fn is_cleaned_after(&self, ts: Timestamp) -> bool {
        self.cleaned_until.load(Ordering::SeqCst) > ts.get()
    }

    /// Tuple ids given out so far lie below this.
    pub fn tuples_end(&self) -> u64 {
        self.next_tuple.load(Ordering::Acquire)
    }

    /// A tuple id that nothing refers to.
    pub fn take_tuple(&self, hint: usize) -> TupleId {
        let own = hint % ID_SHARDS;
        let mut stock = self.stock[own].lock();
        if let Some(tuple) = stock.pop() {
            return tuple;
        }
        // Ids come back to the thread that cleans, which may be one that never inserts.
        let others = (1..ID_SHARDS).filter_map(|n| self.stock[(own + n) % ID_SHARDS].try_lock());
        let is_rich = |other: &MutexGuard<'_, Vec<_>>| other.len() > ID_BATCH as usize;
        let rich = others.into_iter().find(is_rich).filter(|_| !is_removed(Control::IdsReturn));
        if let Some(mut rich) = rich {
            let left = rich.len() - (rich.len() / 2).min(MOST_IDS_MOVED);
            stock.extend(rich.drain(left..));
            return stock.pop().expect("half of many");
        }
        let first = self.next_tuple.fetch_add(ID_BATCH, Ordering::AcqRel);
        stock.extend((first + 1..first + ID_BATCH).rev().map(TupleId));
        TupleId(first)
    }

    /// Takes back a tuple id that nothing refers to any more.
    pub fn return_tuple(&self, hint: usize, tuple: TupleId) {
        self.stock[hint % ID_SHARDS].lock().push(tuple);
    }

    /// The ids in stock.
    #[cfg(test)]
    pub fn free_ids(&self) -> Vec<TupleId> {
        self.stock.iter().flat_map(|stock| stock.lock().clone()).collect()
    }

    /// DRAM of anchors, and of tuple ids that nothing refers to, in bytes.
    pub fn anchor_bytes(&self) -> u64 {
        let stock: usize = self.stock.iter().map(|stock| stock.lock().capacity()).sum();
        self.tuples_end() * size_of::<AtomicU64>() as u64 + (stock * size_of::<TupleId>()) as u64
    }

    pub fn indexes(&self) -> Indexes {
        Arc::clone(&self.indexes.read())
    }

    /// Looks at the tree of an index by its number, [`PRIMARY`] or a secondary one's.
    /// `None` if that was dropped. The table is ready.
    pub fn with_tree<R>(&self, number: u32, look: impl FnOnce(&Tree) -> R) -> Option<R> {
        if number == PRIMARY {
            return Some(look(self.tree()));
        }
        self.indexes().iter().find(|index| index.number == number).map(|index| look(index.tree()))
    }

    #[inline]
    pub fn indexes_version(&self) -> u64 {
        self.indexes_version.load(Ordering::SeqCst)
    }

    /// Replaces the list of indexes. Writers that commit later see it. Returns the old list: its
    /// end may free large trees, for which nobody is to wait at a lock.
    pub fn change_indexes(&self, change: impl FnOnce(&mut Vec<Arc<IndexInner>>)) -> Indexes {
        let mut indexes = self.indexes.write();
        let mut list = Vec::clone(&indexes);
        change(&mut list);
        let old = std::mem::replace(&mut *indexes, Arc::new(list));
        self.indexes_version.fetch_add(1, Ordering::SeqCst);
        old
    }

    /// A number that no index of this table has had since it was opened.
    pub fn next_index_number(&self) -> u32 {
        self.next_index.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets one caller at a time change its definition. [`Tables::change`](crate::engine::tables::Tables::change)
    /// comes behind it.
    pub fn change(&self) -> MutexGuard<'_, ()> {
        self.changing.lock()
    }

    /// Called before the table is found by anyone.
    pub fn set_created(&self, at: Timestamp) {
        self.created_at.store(at.get(), Ordering::Relaxed);
    }

    /// Called before its definition is written.
    pub fn set_defined_from(&self, from: Timestamp) {
        self.defined_from.store(from.get(), Ordering::Relaxed);
    }

    /// Below every timestamp at which its definition is visible.
    pub fn defined_from(&self) -> Timestamp {
        Timestamp::from_raw(self.defined_from.load(Ordering::Relaxed))
    }

    /// Called before the table is found by anyone.
    pub fn set_replacing(&self) {
        self.replaces.store(true, Ordering::Relaxed);
    }

    /// Whether a transaction that began before the table may have known another of
    /// its name.
    pub fn replaces_another(&self) -> bool {
        self.replaces.load(Ordering::Relaxed)
    }

    /// Whether a transaction at `ts` comes before the table (I-16).
    #[inline]
    pub fn is_newer_than(&self, ts: Timestamp) -> bool {
        ts.get() < self.created_at.load(Ordering::Relaxed)
    }

    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }

    /// A commit that does not see it has announced itself before.
    pub fn set_dropped(&self) {
        self.dropped.store(true, Ordering::SeqCst);
    }

    pub fn index_entries(&self) -> u64 {
        let indexes = self.indexes();
        let secondary = indexes.iter().filter(|index| !index.is_dropped()).filter_map(|index| index.made());
        secondary.chain(self.primary()).map(|tree| tree.len() as u64).sum()
    }

    /// What there is to say of each index.
    pub fn index_parts(&self) -> Vec<IndexParts> {
        let _of_one_moment = self.index_names.read();
        let layouts = self.layouts();
        let name = |id: &usize| layouts.latest.names[*id].clone();
        let bytes = |tree: Option<&Tree>| tree.map(Tree::bytes);
        let primary = IndexParts {
            name: "primary".into(),
            columns: layouts.definition.def.primary_key.clone(),
            unique: true,
            bytes: bytes(self.primary()),
        };
        let indexes = self.indexes();
        let ready = indexes.iter().filter(|index| index.is_ready() && !index.is_dropped());
        let secondary = ready.map(|index| IndexParts {
            name: index.name().to_string(),
            columns: index.columns.iter().map(name).collect(),
            unique: index.unique,
            bytes: bytes(index.made()),
        });
        [primary].into_iter().chain(secondary).collect()
    }

    /// Whether none of its indexes is being made or dropped.
    pub fn are_indexes_ready(&self) -> bool {
        self.indexes().iter().all(|index| index.is_ready())
    }

    pub fn index_bytes(&self) -> u64 {
        let indexes = self.indexes();
        let trees = indexes.iter().filter_map(|index| index.made()).chain(self.primary());
        trees.map(Tree::bytes).sum()
    }

    /// Free nodes, in bytes, that new rows take before any of its trees needs other memory. A row
    /// has an entry in each tree, so the tree that can take least decides.
    pub fn spare_node_bytes(&self) -> u64 {
        let indexes = self.indexes();
        let trees = indexes.iter().map(|index| index.made()).chain([self.primary()]);
        trees.map(|tree| tree.map_or(0, Tree::spare_bytes)).min().unwrap_or(0)
    }
}

// Apart, so that commits do not make room for it.
#[cold]
#[inline(never)]
fn of_slot(row_len: usize) -> Change {
    Change { tuples: 1, live_bytes: slot_bytes(row_len) as i64 }
}
