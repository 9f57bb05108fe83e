//! SAP HANA: Lee et al., "Hybrid Garbage Collection for Multi-Version
//! Concurrency Control in SAP HANA", SIGMOD 2016, as Steam 4.3.2 and 5 (Table
//! 4) have it.
//!
//! A thread of its own goes over the versions that were superseded since the
//! oldest running transaction began, and removes each that no running
//! transaction sees, from the end of its chain or from the middle.

use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::{Freeing, Marks};
use crate::lists::Lists;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// The collector.
pub(crate) struct Hana {
    freeing: Freeing,
    interval: Duration,
    committed: Lists,
    /// Looked at and seen by somebody, or held by a writer; again next time.
    needed: Mutex<Vec<OldVersion>>,
}

impl Hana {
    pub fn new(options: GcOptions) -> Self {
        let freeing = Freeing::new(options, Marks::None);
        Self { freeing, interval: options.interval, committed: Lists::default(), needed: Mutex::default() }
    }

    fn collect(&self, cx: &Context<'_>) {
        let mut versions = self.needed.lock();
        self.committed.drain_all(u64::MAX, usize::MAX, |old| {
            versions.push(*old);
            true
        });
        cx.registry.refresh_watermark(Duration::ZERO);
        let Some(running) = cx.registry.running_set() else { return };
        versions.retain(|old| {
            if old.end_ts < cx.registry.watermark() {
                !self.freeing.cut(cx, old)
            } else {
                running.may_see(old.begin_ts, old.end_ts) || !old.linked || !self.freeing.excise(cx, old)
            }
        });
    }
}

impl Reclaimer for Hana {
    fn name(&self) -> &'static str {
        "hana"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.committed.push(cx.slot, *old, || old.end_ts.get());
        Ok(())
    }

    fn step(&self, _: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn background(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn run_background(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        self.collect(cx);
        self.freeing.run(cx)?;
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.collect(cx);
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.committed.forget(table);
        self.needed.lock().retain(|old| old.table != table);
        self.freeing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        // In the order in which versions move on, so that none is missed.
        let committed = self.committed.len();
        let needed = self.needed.lock().len();
        self.freeing.stats(committed + needed)
    }
}
