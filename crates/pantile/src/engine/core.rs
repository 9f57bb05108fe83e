//! What all handles of one open database share.
//!
//! Each part has its invariants in a file of its own. Work that needs several
//! parts is a method of [`Core`], in the file of its purpose: `cleanup.rs`,
//! `collect.rs`, `upkeep.rs`, `index_build.rs`, `recovery.rs`, `closing.rs`.

use std::path::Path;
use std::sync::Arc;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::AtomicBool;
use pantile_cc::{Clock, ConcurrencyControl, Protocol, ReadMarks, Registry};
use pantile_reclaim::Reclaimer;
use pantile_store::{Image, RowCache, Store, StoreError};

use crate::engine::alarm::Alarm;
use crate::engine::buffers::SlotBuffers;
use crate::engine::counters::Counters;
use crate::engine::failure::from_store;
use crate::engine::flights::Flights;
use crate::engine::gate::Gate;
use crate::engine::images::Images;
use crate::engine::insight::Insight;
use crate::engine::memory_limit::MemoryLimit;
use crate::engine::readers::{Admitted, Earlier};
use crate::engine::rounds::Rounds;
use crate::engine::stage::Stage;
use crate::engine::stale::StaleQueue;
use crate::engine::state_records::StateRecords;
use crate::engine::syncer::Syncer;
use crate::engine::tables::Tables;
use crate::engine::unread::Unread;
use crate::types::error::Error;
use crate::types::options::Options;
use crate::types::running::PinnedLimits;
use crate::types::stats::Recovery;

pub(crate) struct Core {
    pub options: Options,
    /// Versions, the transactions that may see them, and what these have read.
    pub store: Store,
    /// Copies of rows that were read lately, if the options say so.
    pub row_cache: Option<RowCache>,
    pub registry: Registry,
    pub marks: ReadMarks,
    pub flights: Flights,
    pub syncer: Syncer,
    pub tables: Tables,
    /// What frees space, in commits and in rounds.
    pub reclaimer: Box<dyn Reclaimer>,
    pub rounds: Rounds,
    /// What keeps transactions apart, if that is not the engine's own protocol.
    pub protocol: Option<Box<dyn ConcurrencyControl>>,
    pub alarm: Arc<Alarm>,
    pub stale: StaleQueue,
    pub state_records: StateRecords,
    /// Memory of slots, for their next transactions.
    pub buffers: SlotBuffers,
    pub memory: MemoryLimit,
    pub stage: Stage,
    pub counters: Counters,
    pub insight: Insight,
    pub recovery: Recovery,
    /// The highest timestamp that recovery found.
    pub found_until: Timestamp,
    /// The index image that the database was opened with, until another one takes its place.
    pub image: Mutex<Option<Arc<Image>>>,
    /// What transactions may hold back.
    pub pinned: Mutex<PinnedLimits>,
    /// Those that are made while it is open.
    pub images: Arc<Images>,
    pub unread: Unread,
    /// Whether the worker has indexes to load.
    pub wanted: AtomicBool,
    /// Processes that read it, and those without a connection to this one.
    pub admitted: Mutex<Vec<Admitted>>,
    pub earlier: Mutex<Vec<Earlier>>,
    /// Closed until recovery is done.
    pub gate: Gate,
}

impl Core {
    /// A database whose tables are still to be recovered.
    pub fn new(options: Options, store: Store, clock: Clock, reclaimer: Box<dyn Reclaimer>) -> Self {
        let times_commits = options.times_commits();
        let memory = MemoryLimit::new(options.memory_limit);
        Self {
            buffers: SlotBuffers::new(memory.bytes()),
            memory,
            pinned: Mutex::new(options.pinned),
            protocol: options.protocol.map(Protocol::build),
            row_cache: options.row_cache.map(|bytes| RowCache::new(bytes, &store)),
            options,
            store,
            registry: Registry::new(clock),
            marks: ReadMarks::default(),
            flights: Flights::default(),
            syncer: Syncer::default(),
            tables: Tables::default(),
            reclaimer,
            rounds: Rounds::default(),
            alarm: Arc::default(),
            stale: StaleQueue::default(),
            state_records: StateRecords::default(),
            stage: Stage::default(),
            counters: Counters::new(times_commits),
            insight: Insight::default(),
            recovery: Recovery::default(),
            found_until: Timestamp::ZERO,
            image: Mutex::default(),
            images: Arc::default(),
            unread: Unread::default(),
            wanted: AtomicBool::new(false),
            admitted: Mutex::default(),
            earlier: Mutex::default(),
            gate: Gate::default(),
        }
    }

    /// The error of a lower room, in the words of the engine.
    pub fn store_error(&self, error: StoreError) -> Error {
        from_store(error, Path::new(&self.store.medium().facts().name))
    }
}
