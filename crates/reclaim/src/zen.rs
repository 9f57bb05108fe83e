//! Zen: Liu, Chen and Chen, "Zen+: a robust NUMA-aware OLTP engine optimized
//! for non-volatile main memory", VLDB Journal 32, 2023, sections 3.3.2
//! (Maintenance) and 3.4, with the background scan of TB-Collect 2.3.2.
//!
//! What a commit has superseded goes to its thread's garbage queue with its
//! timestamp. In the background the queues are scanned, and what lies below
//! the minimum of all transactions goes to the free lists. No chain is
//! walked: nobody follows a link from a version that everybody sees.

use std::time::Duration;

use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::{Freeing, Marks};
use crate::lists::Lists;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Versions taken from one queue at a time, so that its thread need not wait.
const MOST: usize = 4096;

/// The collector.
pub(crate) struct Zen {
    freeing: Freeing,
    interval: Duration,
    queues: Lists,
}

impl Zen {
    pub fn new(options: GcOptions) -> Self {
        Self {
            freeing: Freeing::new(options, Marks::None),
            interval: options.interval,
            queues: Lists::default(),
        }
    }

    fn scan(&self, cx: &Context<'_>, most: usize) {
        let minimum = cx.registry.refresh_watermark(Duration::ZERO);
        self.queues.drain_all(minimum.get(), most, |old| {
            self.freeing.retire(cx, old.table, old.address);
            true
        });
    }
}

impl Reclaimer for Zen {
    fn name(&self) -> &'static str {
        "zen"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.queues.push(cx.slot, *old, || old.end_ts.get());
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
        self.scan(cx, MOST);
        self.freeing.run(cx)?;
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.scan(cx, usize::MAX);
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.queues.forget(table);
        self.freeing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        self.freeing.stats(self.queues.len())
    }
}
