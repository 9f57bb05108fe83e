//! HyPer: Neumann, Mühlbauer and Kemper, "Fast Serializable Multi-Version
//! Concurrency Control for Main-Memory Database Systems", SIGMOD 2015, as
//! Steam 4.1 describes it.
//!
//! One list of committed transactions for all threads, behind one mutex. Each
//! commit asks for the oldest running transaction and removes the versions of
//! those that were committed before it began.

use std::collections::VecDeque;
use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::{Freeing, Marks};
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Versions removed after one commit: more than most transactions leave.
const MOST: usize = 128;

/// The collector.
pub(crate) struct Hyper {
    freeing: Freeing,
    committed: Mutex<VecDeque<OldVersion>>,
}

impl Hyper {
    pub fn new(options: GcOptions) -> Self {
        Self { freeing: Freeing::new(options, Marks::None), committed: Mutex::default() }
    }

    fn remove(&self, cx: &Context<'_>, most: usize) {
        let watermark = cx.registry.refresh_watermark(Duration::ZERO);
        let mut obsolete = Vec::new();
        {
            let mut committed = self.committed.lock();
            while obsolete.len() < most
                && let Some(old) = committed.pop_front_if(|old| old.end_ts < watermark)
            {
                obsolete.push(old);
            }
        }
        obsolete.retain(|old| !self.freeing.cut(cx, old));
        self.committed.lock().extend(obsolete);
    }
}

impl Reclaimer for Hyper {
    fn name(&self) -> &'static str {
        "hyper"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.committed.lock().push_back(*old);
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        self.remove(cx, MOST);
        self.freeing.step(cx)?;
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.remove(cx, usize::MAX);
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.committed.lock().retain(|old| old.table != table);
        self.freeing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        self.freeing.stats(self.committed.lock().len())
    }
}
