//! What a transaction keeps to itself until it commits, slot by slot.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::FixedState;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::Mutex;
use pantile_base::{Address, TableId, TupleId};
use pantile_cc::Slot;
use pantile_reclaim::OldVersion;

use crate::engine::stale::StaleEntry;
use crate::engine::table::{Indexes, TableInner};

/// What a transaction does to a tuple that it has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// Nothing: it has only locked the tuple.
    Nothing,
    /// Writes the row at this place of [`Buffers::rows`].
    Row { start: usize, len: usize },
    /// Deletes it.
    Tombstone,
}

/// A tuple that a transaction has locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Index into [`Buffers::tables`].
    pub table: u32,
    pub tuple: TupleId,
    /// The newest committed version.
    pub base: Address,
    pub pending: Pending,
    /// The transaction inserted its primary entry and has taken it back.
    pub gone: bool,
    /// The tuple is new; its base, if any, is the tombstone of an earlier life of its id.
    pub is_new: bool,
    /// The tuple is new, and a later reader had marked its id before.
    pub found_by_later: bool,
}

impl Write {
    /// Whether the new version is linked to an older one.
    pub fn has_chain(&self) -> bool {
        !self.base.is_none() && !self.is_new
    }
}

/// A change that a savepoint can take back.
pub(crate) enum Undo {
    /// Forget the newest write, which was made by locking a tuple.
    Unlock,
    /// Restore what was pending.
    Restore { write: u32, pending: Pending },
    /// Clean up an index entry that was inserted.
    Entry(StaleEntry),
}

/// A table that a transaction writes to.
pub(crate) struct TableUse {
    pub table: Arc<TableInner>,
    pub indexes: Indexes,
    pub indexes_version: u64,
}

/// A transaction's private memory, kept for the next one in the same slot.
#[derive(Default)]
pub(crate) struct Buffers {
    /// Kept from one transaction to the next, so that cores do not contend for
    /// reference counts.
    pub tables: Vec<TableUse>,
    pub writes: Vec<Write>,
    pub by_tuple: HashMap<(TableId, TupleId), u32, FixedState>,
    /// Rows to be written, one after the other.
    pub rows: Vec<u8>,
    pub undo: Vec<Undo>,
    /// Entries that the commit will make stale.
    pub stale: Vec<StaleEntry>,
    /// Which writes append a content, and the addresses they get.
    pub appends: Vec<u32>,
    pub addresses: Vec<Address>,
    /// The versions that the commit supersedes.
    pub superseded: Vec<OldVersion>,
    pub scratch: Vec<u8>,
}

/// Tables that buffers keep at most.
const TABLES_KEPT: usize = 64;

impl Buffers {
    #[inline]
    pub fn clear(&mut self) {
        // Clearing a map takes time by its capacity, and one large transaction
        // must not slow down all that follow.
        if self.by_tuple.capacity() > 64 * (self.writes.len() + 16) {
            self.by_tuple = HashMap::default();
        } else {
            self.by_tuple.clear();
        }
        self.writes.clear();
        self.rows.clear();
        self.undo.clear();
        self.stale.clear();
        self.appends.clear();
        self.addresses.clear();
        self.superseded.clear();
        if self.tables.len() > TABLES_KEPT || self.tables.iter().any(|t| t.table.is_dropped()) {
            self.tables.clear();
        }
        if self.rows.capacity() > 1 << 20 {
            self.rows = Vec::new();
        }
    }
}

/// The buffers of slots that no transaction has.
pub(crate) struct IdleBuffers {
    by_slot: Box<[Mutex<Option<Box<Buffers>>>]>,
}

impl Default for IdleBuffers {
    fn default() -> Self {
        Self { by_slot: (0..TRANSACTION_SLOTS).map(|_| Mutex::default()).collect() }
    }
}

impl IdleBuffers {
    pub fn take(&self, slot: Slot) -> Box<Buffers> {
        self.by_slot[slot.index()].lock().take().unwrap_or_default()
    }

    pub fn keep(&self, slot: Slot, buffers: Box<Buffers>) {
        *self.by_slot[slot.index()].lock() = Some(buffers);
    }

    /// Drops them all, so that they no longer refer to tables.
    pub fn forget(&self) {
        for buffers in &self.by_slot {
            buffers.lock().take();
        }
    }
}
