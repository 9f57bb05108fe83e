//! Garbage collection: how the space of versions that no transaction can see is reused.
//!
//! This crate is a part of the database Pantile; applications use the crate `pantile`.
//!
//! Every collector implements one trait, [`Reclaimer`]. The engine reports to the collector which
//! versions a commit has superseded, and calls it after each commit. The collector decides what to
//! free. No collector can lose data: the store frees a block only if everything in it has a durable
//! successor or copy.
//!
//! This crate contains TB-Collect, which is the default, and `none`, which
//! frees nothing. Other crates add collectors as constants of the type
//! [`Collector`]; `docs/collectors.md` in the repository shows how.

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

/// Parts that collectors in other crates use.
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
    /// Its address.
    pub address: Address,
    /// Its `begin_ts`.
    pub begin_ts: Timestamp,
    /// The `begin_ts` of its successor: no reader at or above this sees the
    /// version.
    pub end_ts: Timestamp,
    /// Whether its successor is linked to it. The tombstone that is remembered
    /// under the id of a new tuple is in no chain.
    pub linked: bool,
}

/// A chain that a commit has extended by one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LongerChain {
    /// The new version, which no reader finds yet.
    pub newest: Address,
    /// The version that the new one supersedes and is linked to.
    pub old: OldVersion,
}

/// The outcome of a visit to a tuple's chain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Visit {
    /// It took place.
    Done,
    /// A transaction has locked the tuple; try again later.
    Busy,
    /// The table has been dropped.
    Dropped,
}

/// The engine's tuples, as far as collectors need them.
pub trait Tuples {
    /// Whether the table exists. The engine frees the blocks of dropped tables.
    fn exists(&self, table: TableId) -> bool;

    /// Asks the CPU to fetch what the methods below look at.
    fn prefetch(&self, table: TableId, tuple: TupleId);

    /// Whether the tuple's newest version is the one at `address` and the
    /// tuple is not locked.
    fn is_newest(&self, table: TableId, tuple: TupleId, address: Address) -> bool;

    /// Makes the copy at `to` the tuple's newest version in place of the one at
    /// `from`, if that is still the newest and not locked. Returns whether it
    /// did.
    fn relocate(&self, table: TableId, tuple: TupleId, from: Address, to: Address) -> bool;

    /// Calls `visit` with the tuple's newest version, from which its chain can
    /// be walked, while no other thread changes the chain. The caller has
    /// pinned its transaction slot.
    fn visit_chain(&self, table: TableId, tuple: TupleId, visit: &mut dyn FnMut(Address)) -> Visit;

    /// Forgets the address of the tombstone of a tuple whose id is free.
    /// Returns whether the tombstone that was written at `begin` was at `address`;
    /// another one of the tuple may be there by now. The caller has pinned its
    /// transaction slot.
    fn drop_tombstone(&self, table: TableId, tuple: TupleId, address: Address, begin: Timestamp) -> bool;

    /// Number of tuples that have a free id and a tombstone.
    fn waiting_tombstones(&self) -> u64;

    /// The bytes of the newest versions of all tuples.
    fn live_bytes(&self) -> u64;
}

/// What a collector works with. The transaction slot is that of a running
/// transaction of the calling thread.
#[derive(Clone, Copy)]
pub struct Context<'c> {
    /// The versions.
    pub store: &'c Store,
    /// The running transactions.
    pub registry: &'c Registry,
    /// The tuples.
    pub tuples: &'c dyn Tuples,
    /// The caller's transaction slot.
    pub slot: Slot,
}

/// What a collector still has to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Debt {
    /// Nothing, until something is superseded.
    #[default]
    Nothing,
    /// Something that running transactions may still need.
    Held,
    /// Something, in the next round.
    Payable,
    /// The same, and more space is taken than promised.
    Space,
    /// The same, and the next round should follow at once.
    More,
}

impl Debt {
    /// Whether more space is taken than promised.
    pub fn is_of_space(self) -> bool {
        matches!(self, Debt::Space | Debt::More)
    }

    /// Whether there is something to do now.
    pub fn is_payable(self) -> bool {
        !matches!(self, Debt::Nothing | Debt::Held)
    }
}

/// The progress of compacting a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Compaction {
    /// Blocks that are still to be emptied or are being emptied: blocks with obsolete contents, and
    /// blocks whose contents fit into free blocks further down.
    pub blocks_left: u64,
    /// The bytes of these blocks, without those that are already queued to be emptied.
    pub bytes_left: u64,
    /// Whether empty chunks are still to be given back to the system.
    pub is_returning: bool,
    /// Whether nothing more can be done for now. Either running transactions see what is left, or
    /// the collector is one that does not move contents together.
    pub is_held: bool,
}

impl Compaction {
    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.blocks_left == 0 && !self.is_returning && !self.is_held
    }
}

/// A collector.
pub trait Reclaimer: Send + Sync {
    /// Where the store finds slots to rewrite, if the collector frees versions
    /// one by one. Called once, before the store is opened.
    fn slot_reuse(&self) -> Option<Arc<dyn SlotReuse>> {
        None
    }

    /// Whether the engine should call [`Reclaimer::extended`].
    fn wants_chains(&self) -> bool {
        false
    }

    /// Called when a commit has linked its new versions to those that they
    /// supersede. The committing transaction holds the locks of the tuples, and
    /// no reader finds the new versions yet.
    fn extended(&self, _context: &Context<'_>, _chains: &[LongerChain]) {}

    /// Whether the store is told of each superseded version. If it is not, an index image would
    /// call them needed.
    fn notes_superseded(&self) -> bool {
        true
    }

    /// Called when a committed transaction has superseded a version. For
    /// durability it did so at `at`, which is not before the version's
    /// `end_ts`.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn superseded(&self, context: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError>;

    /// Bytes that may be appended between two state records, because what has
    /// been emptied is free only after the next. `u64::MAX` for any number.
    fn bytes_between_records(&self) -> u64 {
        u64::MAX
    }

    /// How often [`Reclaimer::run_background`] should be called while
    /// something is owed; `None` if the collector does all of its work after
    /// commits.
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

    /// What is left after a round. The worker sleeps while nothing is.
    fn debt(&self, _context: &Context<'_>) -> Debt {
        Debt::Payable
    }

    /// Does a part of emptying every block that has anything obsolete in it and
    /// was full before `since`, to bring the space down as far as it goes. The
    /// engine calls it until nothing is left. `None` if it is not known just now
    /// what that is: a transaction is beginning.
    ///
    /// What others make obsolete meanwhile is not part of it, or it would not end
    /// beside a writer. The same holds for chunks that became empty after `emptied`,
    /// which is when all those blocks were seen to be free.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn compact(
        &self,
        _context: &Context<'_>,
        _since: Timestamp,
        _emptied: Option<Timestamp>,
    ) -> Result<Option<Compaction>, StoreError> {
        Ok(Some(Compaction { is_held: true, ..Compaction::default() }))
    }

    /// Does a bounded part of the work; called after each commit.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn step(&self, context: &Context<'_>) -> Result<(), StoreError>;

    /// Frees as much as it can, since there is no space left.
    ///
    /// # Errors
    /// [`StoreError::Medium`]: the medium has failed.
    fn make_room(&self, context: &Context<'_>) -> Result<(), StoreError>;

    /// Notes that nothing more will be superseded, since the database is being
    /// closed, and that what was seen last of the space does not count any more.
    fn note_end(&self) {}

    /// Continues where the last run was interrupted (TB-Collect 4.5, Algorithm
    /// 3). Called when the database has been opened and nothing runs yet.
    fn resume(&self, store: &Store);

    /// Forgets a dropped table, which no transaction uses. The engine frees its
    /// blocks.
    fn forget(&self, store: &Store, table: TableId);

    /// What it has done and what is waiting.
    fn stats(&self, store: &Store) -> CollectorStats;
}
