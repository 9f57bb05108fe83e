//! Secondary indexes of tables, as the engine holds them in DRAM.

use std::sync::{Arc, OnceLock};

use pantile_base::Timestamp;
use pantile_base::control::{Control, is_removed};
use pantile_base::sync::RwLock;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_index::{Index as Tree, KeyForm, NodeArena};

use crate::types::encoding::Encoded;
use crate::types::error::Result;
use crate::types::key::{Key, KeyColumn};
use crate::types::layout::Schema;
use crate::types::schema::IndexDef;

/// A secondary index.
pub(crate) struct IndexInner {
    name: RwLock<Arc<str>>,
    pub unique: bool,
    /// No other index of the table has had it since the database was opened.
    pub number: u32,
    /// The ids of the columns of its key.
    pub columns: Vec<usize>,
    /// The same as they were when it was made.
    key_columns: Vec<KeyColumn>,
    /// Whether entering a key must look for other rows that have it. A key
    /// that contains the primary key is unique anyway.
    pub checks_unique: bool,
    /// Keys are the columns' values, then the tuple id: two versions of
    /// different tuples may have the same key at different times (T9, T10).
    tree: OnceLock<Tree>,
    ready: AtomicBool,
    /// When it was dropped; MAX if it has not been.
    dropped_at: AtomicU64,
}

impl std::fmt::Debug for IndexInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexInner").field("name", &self.name()).finish_non_exhaustive()
    }
}

impl IndexInner {
    /// An index whose tree is still to be made.
    pub fn new(def: &IndexDef, number: u32, schema: &Schema) -> Result<Self> {
        let columns = schema.key_columns(&def.name, &def.columns)?;
        let key_columns = columns.iter().map(|id| KeyColumn::new(schema, *id)).collect();
        let tree = OnceLock::new();
        let checks_unique = def.unique && !schema.primary_key.iter().all(|c| columns.contains(c));
        let (ready, dropped_at) = (AtomicBool::new(false), AtomicU64::new(u64::MAX));
        let (name, unique) = (RwLock::new(def.name.as_str().into()), def.unique);
        Ok(Self { name, unique, number, columns, key_columns, checks_unique, tree, ready, dropped_at })
    }

    /// Its name as it is now.
    pub fn name(&self) -> Arc<str> {
        Arc::clone(&self.name.read())
    }

    /// Gives it another name, which the catalog has.
    pub fn rename(&self, to: &str) {
        *self.name.write() = to.into();
    }

    /// Builds the key of a row. Returns false if the row has none in this index:
    /// some have not that are written after a change of its columns, which comes
    /// after its drop. Nobody who can still read it sees them, but for their own
    /// transaction.
    #[must_use]
    pub fn set_key(&self, row: &Encoded<'_>, key: &mut Key) -> bool {
        key.set_indexed(row, &self.key_columns)
    }

    /// Whether two rows are known to have the same key, or both none, without building it.
    #[inline]
    pub fn is_same_key(&self, a: &Encoded<'_>, b: &Encoded<'_>) -> bool {
        let is_same = |id: &usize| {
            let column = &a.schema.columns[*id];
            a.raw(column) == b.raw(column)
                && a.is_null(column) == b.is_null(column)
                && a.is_out_of_line(column) == b.is_out_of_line(column)
        };
        std::ptr::eq(a.schema, b.schema) && self.columns.iter().all(is_same)
    }

    /// The columns of its key, by which its entries are in order.
    pub fn key_columns(&self) -> &[KeyColumn] {
        &self.key_columns
    }

    /// Gives it its tree.
    pub fn set_tree(&self, tree: Tree) {
        assert!(self.tree.set(tree).is_ok(), "an index gets its tree once");
    }

    /// Gives it a tree without entries.
    pub fn set_empty(&self, schema: &Schema, arena: &Arc<NodeArena>) {
        self.set_tree(Tree::new(Self::keys(schema, &self.columns), arena));
    }

    /// Its entries. The table is ready.
    #[inline]
    pub fn tree(&self) -> &Tree {
        self.tree.get().expect("the table is ready")
    }

    /// The same, if it has its tree.
    pub fn made(&self) -> Option<&Tree> {
        self.tree.get()
    }

    /// Its keys: the columns, then the tuple, which is also the value.
    pub fn keys(schema: &Schema, columns: &[usize]) -> KeyForm {
        match schema.max_key_bytes(columns).div_ceil(8) {
            1 => KeyForm::Pairs,
            words => KeyForm::UpTo(words + 1),
        }
    }

    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::SeqCst)
    }

    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Release);
    }

    /// No scan of it begins any more. `now` is called after that, so that every
    /// statement that scans it reads below the time that it returns.
    pub fn drop_at(&self, now: impl FnOnce() -> Timestamp) -> Timestamp {
        self.ready.store(false, Ordering::SeqCst);
        let at = now();
        self.dropped_at.store(at.get(), Ordering::SeqCst);
        at
    }

    /// Whether a transaction that began at `ts` maintains it: one that began
    /// before it was dropped does (I-16).
    #[inline]
    pub fn is_of(&self, ts: Timestamp) -> bool {
        ts.get() < self.dropped_at.load(Ordering::Relaxed)
            && !(is_removed(Control::DroppedIndexes) && self.is_dropped())
    }

    pub fn is_dropped(&self) -> bool {
        self.dropped_at.load(Ordering::Relaxed) != u64::MAX
    }
}

/// The list of a table's secondary indexes at one time, with those that were
/// dropped and still protect a scan.
pub(crate) type Indexes = Arc<Vec<Arc<IndexInner>>>;
