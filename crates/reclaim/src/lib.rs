//! Reclamation: what happens to versions that nobody can see any more.
//!
//! Collectors stand behind one seam, [`Reclaimer`]. The engine tells them
//! what has been superseded and lets them work a little after each commit;
//! they decide what to free. They cannot lose data: the store frees a block
//! only where everything in it has a successor or a copy that is durable.

mod collector;
mod counters;
mod deuteronomy;
mod empty_chunks;
mod ermia;
mod freeing;
mod hana;
mod hekaton;
mod hyper;
mod lists;
mod n2db;
mod none;
mod one_shot;
mod options;
mod removing;
mod steam;
mod tb_collect;
mod tombstones;
mod zen;

pub use collector::Collector;
pub use counters::CollectorStats;
pub use none::NoGc;
pub use options::{GcOptions, Pacing};
pub use tb_collect::TbCollect;

use std::time::Duration;

use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_cc::{Registry, Slot};
use pantile_store::{Store, StoreError};

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
    /// When its successor began: who reads from here on does not see it.
    pub end_ts: Timestamp,
    /// Where a copy of it is, in [`pantile_store::Layout::Delta`], which its
    /// successor is linked to; else none.
    pub copy: Address,
    /// Whether its successor is linked to it. The tombstone that is
    /// remembered under the id of a new tuple is in nobody's chain.
    pub linked: bool,
}

/// What became of a visit to a tuple's chain.
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
    /// Whether the table is there; dropped tables are seen to elsewhere.
    fn exists(&self, table: TableId) -> bool;

    /// Asks the CPU to fetch what the calls below look at.
    fn prefetch(&self, table: TableId, tuple: TupleId);

    /// Whether the tuple's newest version is the one at `address` and nobody
    /// has locked it.
    fn is_newest(&self, table: TableId, tuple: TupleId, address: Address) -> bool;

    /// Has everybody find the copy at `to` instead of the version at `from`,
    /// if that is still the newest and not locked; tells whether.
    fn relocate(&self, table: TableId, tuple: TupleId, from: Address, to: Address) -> bool;

    /// Shows the tuple's newest version, from which its chain can be walked,
    /// while nobody else changes the chain. The caller has pinned its slot.
    fn visit_chain(&self, table: TableId, tuple: TupleId, visit: &mut dyn FnMut(Address)) -> Visit;

    /// Forgets where the tombstone of a tuple is whose id is free; tells
    /// whether it was at `address`.
    fn drop_tombstone(&self, table: TableId, tuple: TupleId, address: Address) -> bool;

    /// Tuples whose ids are free and that have a tombstone.
    fn waiting_tombstones(&self) -> u64;

    /// Bytes of the newest versions of all tuples.
    fn live_bytes(&self) -> u64;
}

/// What a collector works with. The slot is that of a running transaction of
/// the calling thread.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// Where versions are.
    pub store: &'c Store,
    /// Who runs.
    pub registry: &'c Registry,
    /// Who is found where.
    pub tuples: &'c dyn Tuples,
    /// The caller's.
    pub slot: Slot,
}

/// A collector.
pub trait Reclaimer: Send + Sync {
    /// The name by which commands and records know it.
    fn name(&self) -> &'static str;

    /// Whether it wants to be told by [`Reclaimer::extended`].
    fn prunes(&self) -> bool {
        false
    }

    /// The version at `newest` has been linked to the one that it supersedes.
    /// The committing transaction holds the tuple, and nobody finds the
    /// version yet.
    fn extended(&self, _context: &Context<'_>, _newest: Address, _old: &OldVersion) {}

    /// A committed transaction has superseded a version. It did so at `at`,
    /// as durability counts, which is not before the version's end.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn superseded(&self, context: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError>;

    /// How often a thread of its own is to call [`Reclaimer::run_background`],
    /// if it wants one.
    fn background(&self) -> Option<Duration> {
        None
    }

    /// One round of what is done in the background.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn run_background(&self, _context: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    /// Does a little of what there is to do; called after each commit.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn step(&self, context: &Context<'_>) -> Result<(), StoreError>;

    /// Does all it can to free space, since there is none left.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn make_room(&self, context: &Context<'_>) -> Result<(), StoreError>;

    /// The database has been opened: goes on where work was interrupted
    /// (TB-Collect 4.5, Algorithm 3). Nothing runs yet.
    fn resume(&self, store: &Store);

    /// The table has been dropped and nobody uses it; its blocks are not the
    /// collector's any more.
    fn forget(&self, store: &Store, table: TableId);

    /// What it has done and what waits.
    fn stats(&self, store: &Store) -> CollectorStats;
}
