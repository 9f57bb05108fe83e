//! What all handles of one open database share.
//!
//! Each part has its invariants in a file of its own. Work that needs several
//! parts is a method of [`Core`], in the file of its purpose: `cleanup.rs`,
//! `collect.rs`, `upkeep.rs`, `index_build.rs`, `recovery.rs`, `closing.rs`.

use std::path::Path;

use pantile_base::Timestamp;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_cc::{Begin, Clock, ReadMarks, Registry, Slot};
use pantile_reclaim::Reclaimer;
use pantile_store::{Store, StoreError};

use crate::engine::buffers::SlotBuffers;
use crate::engine::counters::Counters;
use crate::engine::failure::from_store;
use crate::engine::rounds::Rounds;
use crate::engine::stage::Stage;
use crate::engine::stale::StaleQueue;
use crate::engine::state_records::StateRecords;
use crate::engine::tables::Tables;
use crate::types::error::{Error, Result};
use crate::types::options::Options;
use crate::types::stats::Recovery;

pub(crate) struct Core {
    pub options: Options,
    /// Versions, the transactions that may see them, and what these have read.
    pub store: Store,
    pub registry: Registry,
    pub marks: ReadMarks,
    pub tables: Tables,
    /// What frees space, and when it next does so in rounds.
    pub reclaimer: Box<dyn Reclaimer>,
    pub rounds: Rounds,
    pub stale: StaleQueue,
    pub state_records: StateRecords,
    /// Memory of slots, for their next transactions.
    pub buffers: SlotBuffers,
    pub stage: Stage,
    pub counters: Counters,
    pub recovery: Recovery,
    /// True until recovery is done and again once it is closed.
    pub closed: AtomicBool,
    /// No transaction may begin, because the database is being closed.
    pub closing: AtomicBool,
}

impl Core {
    /// A database whose tables are still to be recovered.
    pub fn new(options: Options, store: Store, clock: Clock, reclaimer: Box<dyn Reclaimer>) -> Self {
        Self {
            options,
            store,
            registry: Registry::new(clock),
            marks: ReadMarks::default(),
            tables: Tables::default(),
            reclaimer,
            rounds: Rounds::default(),
            stale: StaleQueue::default(),
            state_records: StateRecords::default(),
            buffers: SlotBuffers::default(),
            stage: Stage::default(),
            counters: Counters::default(),
            recovery: Recovery::default(),
            closed: AtomicBool::new(true),
            closing: AtomicBool::new(false),
        }
    }

    pub fn set_open(&self) {
        self.closed.store(false, Ordering::Release);
    }

    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Takes a transaction slot and a timestamp, and waits for a slot if need be.
    /// Either the database is not being closed, or closing sees the slot.
    pub fn enter(&self, how: Begin) -> Result<(Slot, Timestamp)> {
        self.check_open()?;
        let waited = self.options.wait_to_begin();
        let entered = self.registry.begin_within(how, waited);
        let (slot, ts) =
            entered.map_err(|_| Error::TooManyTransactions { limit: TRANSACTION_SLOTS, waited })?;
        if self.closing.load(Ordering::SeqCst) {
            self.registry.release(slot);
            return Err(Error::Closed);
        }
        Ok((slot, ts))
    }

    /// The error of a lower room, in the words of the engine.
    pub fn store_error(&self, error: StoreError) -> Error {
        from_store(error, Path::new(&self.store.medium().facts().name))
    }
}
