//! A part of the database Pantile; applications use the crate `pantile`. It
//! holds reclamation: how the space of versions that no transaction can see is
//! used again.
//!
//! Every collector implements one trait, [`Reclaimer`]. The engine tells the
//! collector what a commit has superseded and calls it after each commit; the
//! collector decides what to free. No collector can lose data: the store
//! frees a block only if everything in it has a durable successor or copy.
//!
//! This crate has TB-Collect, which is the default, and `none`, which frees
//! nothing. Others come from other crates as constants of the type
//! [`Collector`]; `docs/collectors.md` in the repository shows how to add one.

mod blocks;
mod collector;
mod counters;
mod empty_chunks;
mod none;
mod options;
mod tb_collect;
mod tombstones;

pub use collector::{Collector, Description};
pub use counters::CollectorStats;
pub use none::NoGc;
pub use options::{GcOptions, Pacing};
pub use tb_collect::TbCollect;

/// Parts of collectors, for those in other crates.
pub mod parts {
    pub use crate::counters::{Counters, add};
    pub use crate::empty_chunks::EmptyChunks;
    pub use crate::tombstones::Sweep;
}

use std::sync::Arc;
use std::time::Duration;

use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_cc::{Registry, Slot};
use pantile_store::{SlotReuse, Store, StoreError};

/// A version that a committed transaction has superseded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OldVersion {
    /// Its table.
    pub table: TableId,
    /// The tuple that it is a version of.
    pub tuple: TupleId,
    /// Where it is.
    pub address: Address,
    /// When it began.
    pub begin_ts: Timestamp,
    /// When its successor began: no reader at or above this sees it.
    pub end_ts: Timestamp,
    /// Whether its successor is linked to it. The tombstone that is
    /// remembered under the id of a new tuple is in no chain.
    pub linked: bool,
}

/// A chain that a commit has made longer by one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongerChain {
    /// The new version, which nobody finds yet.
    pub newest: Address,
    /// The version that it supersedes, and is linked to.
    pub old: OldVersion,
}

/// The outcome of a visit to a tuple's chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit {
    /// It took place.
    Done,
    /// A transaction holds the tuple: try again later.
    Busy,
    /// The table has been dropped.
    Dropped,
}

/// The engine's tuples, as far as collectors must know them.
pub trait Tuples {
    /// Whether the table exists. The engine frees the blocks of dropped tables.
    fn exists(&self, table: TableId) -> bool;

    /// Asks the CPU to fetch what the calls below look at.
    fn prefetch(&self, table: TableId, tuple: TupleId);

    /// Whether the tuple's newest version is the one at `address` and the
    /// tuple is not locked.
    fn is_newest(&self, table: TableId, tuple: TupleId, address: Address) -> bool;

    /// Makes the copy at `to` the tuple's newest version in place of the one
    /// at `from`, if that is still the newest and not locked. Returns whether
    /// it did.
    fn relocate(&self, table: TableId, tuple: TupleId, from: Address, to: Address) -> bool;

    /// Calls `visit` with the tuple's newest version, from which its chain can
    /// be walked, while nobody else changes the chain. The caller has pinned
    /// its slot.
    fn visit_chain(&self, table: TableId, tuple: TupleId, visit: &mut dyn FnMut(Address)) -> Visit;

    /// Forgets where the tombstone of a tuple with a free id is. Returns
    /// whether it was at `address`.
    fn drop_tombstone(&self, table: TableId, tuple: TupleId, address: Address) -> bool;

    /// How many tuples have a free id and a tombstone.
    fn waiting_tombstones(&self) -> u64;

    /// Bytes of the newest versions of all tuples.
    fn live_bytes(&self) -> u64;
}

/// What a collector works with. The slot is that of a running transaction of
/// the calling thread.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The versions.
    pub store: &'c Store,
    /// The running transactions.
    pub registry: &'c Registry,
    /// The tuples.
    pub tuples: &'c dyn Tuples,
    /// The caller's slot.
    pub slot: Slot,
}

/// A collector.
pub trait Reclaimer: Send + Sync {
    /// Where the store finds slots to write again, if the collector frees
    /// versions one by one. Asked once, before the store is opened.
    fn slot_reuse(&self) -> Option<Arc<dyn SlotReuse>> {
        None
    }

    /// Whether the engine is to call [`Reclaimer::extended`].
    fn wants_chains(&self) -> bool {
        false
    }

    /// A commit has linked its new versions to those that they supersede. The
    /// committing transaction holds the tuples, and nobody finds the new
    /// versions yet.
    fn extended(&self, _context: &Context<'_>, _chains: &[LongerChain]) {}

    /// A committed transaction has superseded a version. It did so at `at`,
    /// as durability counts, which is not before the version's end.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn superseded(&self, context: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError>;

    /// How often a thread of its own is to call [`Reclaimer::run_background`],
    /// if the collector wants one.
    fn background(&self) -> Option<Duration> {
        None
    }

    /// Does one round of background work.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn run_background(&self, _context: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Does a bounded part of the work; called after each commit.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn step(&self, context: &Context<'_>) -> Result<(), StoreError>;

    /// Frees all it can, since there is no space left.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn make_room(&self, context: &Context<'_>) -> Result<(), StoreError>;

    /// Goes on where the last run was interrupted (TB-Collect 4.5, Algorithm
    /// 3). Called when the database has been opened and nothing runs yet.
    fn resume(&self, store: &Store);

    /// Forgets a dropped table, which nobody uses. The engine frees its blocks.
    fn forget(&self, store: &Store, table: TableId);

    /// What it has done and what waits.
    fn stats(&self, store: &Store) -> CollectorStats;
}
