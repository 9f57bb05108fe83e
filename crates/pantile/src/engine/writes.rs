//! What a transaction writes, and to which tables.

use std::sync::Arc;

use pantile_base::{Address, Timestamp, TupleId};
use pantile_index::Finger;

use crate::engine::index::{IndexInner, Indexes};
use crate::engine::table::TableInner;

/// What a transaction does to a tuple that it has locked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// Nothing: it has only locked the tuple.
    Nothing,
    /// Writes the row at this place of [`Buffers::rows`](super::buffers::Buffers::rows), which has this layout.
    Row { start: usize, len: u32, layout: u8 },
    /// Deletes it.
    Tombstone,
}

/// A tuple that a transaction has locked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    /// Index into [`Buffers::tables`](super::buffers::Buffers::tables).
    pub table: u32,
    pub tuple: TupleId,
    /// The newest committed version.
    pub base: Address,
    /// Its `begin_ts`; zero if there is none.
    pub base_ts: Timestamp,
    pub pending: Pending,
    /// There is no base, or its checksum has been found to fit.
    pub is_verified: bool,
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

/// A table that a transaction writes to.
pub(crate) struct TableUse {
    pub table: Arc<TableInner>,
    /// Where the last primary key has been entered.
    pub finger: Finger,
    /// Taken out while they are changed: to count one more user would write to a line that all transactions share.
    pub indexes: Option<Indexes>,
    pub indexes_version: u64,
}

impl TableUse {
    pub fn indexes(&self) -> &[Arc<IndexInner>] {
        self.indexes.as_ref().map_or(&[], |indexes| indexes)
    }
}
