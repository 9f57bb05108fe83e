//! The indexes of a table that are still in an image.
//!
//! Until they are loaded nobody can have changed the table, so the run of its
//! primary index answers lookups by itself.

use std::sync::Arc;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU32, Ordering};
use pantile_base::{TableId, TupleId};
use pantile_store::Image;

use crate::engine::changed::Changed;
use crate::engine::counters::Change;
use crate::engine::image_run::{PRIMARY, StoredRun};

/// Lookups that are answered from an image before the thread that makes the next
/// one loads the indexes. Each of them reads a few pages of the image.
const LOOKUPS: u32 = 16;
/// The same while the worker loads them.
const LOOKUPS_BESIDE_WORKER: u32 = 1 << 16;

pub(crate) struct StoredTrees {
    pub image: Arc<Image>,
    table: TableId,
    /// Whether the image has the keys of the table's present definition.
    pub fits: bool,
    /// The tuples whose entries it does not have as they are.
    pub changes: Option<Changes>,
    /// Held while they are loaded.
    pub loading: Mutex<()>,
    lookups: AtomicU32,
}

/// What has changed in a table since its image was made.
pub(crate) struct Changes {
    pub tuples: Changed,
    /// All rows that the table has.
    pub rows: Change,
}

impl StoredTrees {
    pub fn new(image: Arc<Image>, table: TableId, fits: bool, changes: Option<Changes>) -> Self {
        Self { image, table, fits, changes, loading: Mutex::new(()), lookups: AtomicU32::new(0) }
    }

    /// The run of an index, counted from 1 in the order of the definition, or
    /// [`PRIMARY`].
    pub fn run(&self, index: u32) -> Option<StoredRun> {
        StoredRun::new(&self.image, self.table, index).filter(|_| self.fits)
    }

    /// The tuple of a primary key, if it is quickly found.
    pub fn find(&self, key: &[u64], has_worker: bool) -> Option<u64> {
        let most = if has_worker { LOOKUPS_BESIDE_WORKER } else { LOOKUPS };
        let is_worth_it = self.lookups.fetch_add(1, Ordering::Relaxed) < most;
        self.run(PRIMARY).filter(|_| is_worth_it)?.get(key).ok()?
    }

    /// Whether the entries of a tuple may be others than the image says.
    pub fn has_changed(&self, tuple: TupleId) -> bool {
        self.changes.as_ref().is_some_and(|changes| changes.tuples.contains(tuple))
    }

    /// Whether anybody has looked for anything.
    pub fn is_used(&self) -> bool {
        self.lookups.load(Ordering::Relaxed) > 0
    }
}
