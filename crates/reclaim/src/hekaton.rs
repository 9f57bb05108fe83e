//! Hekaton: Diaconu et al., "Hekaton: SQL Server's Memory-Optimized OLTP
//! Engine", SIGMOD 2013, as Steam 3 and 5 (Table 4) have it.
//!
//! A background thread finds out which transactions' versions are obsolete
//! and hands them to the threads that commit, which remove them after their
//! own transactions.

use std::collections::VecDeque;
use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::{Freeing, Marks};
use crate::lists::Lists;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Versions given to a worker at a time.
const TASK: usize = 64;
/// Tasks that a committing thread does.
const TASKS: usize = 2;

/// The collector.
pub(crate) struct Hekaton {
    freeing: Freeing,
    interval: Duration,
    committed: Lists,
    /// Found obsolete, for anybody to remove.
    tasks: Mutex<VecDeque<Vec<OldVersion>>>,
}

impl Hekaton {
    pub fn new(options: GcOptions) -> Self {
        let freeing = Freeing::new(options, Marks::None);
        Self { freeing, interval: options.interval, committed: Lists::default(), tasks: Mutex::default() }
    }

    fn identify(&self, cx: &Context<'_>) {
        let watermark = cx.registry.refresh_watermark(Duration::ZERO);
        // Held, so that nothing is in neither list for whoever counts or forgets.
        let mut tasks = self.tasks.lock();
        let mut obsolete = Vec::new();
        self.committed.drain_all(watermark.get(), usize::MAX, |old| {
            obsolete.push(*old);
            true
        });
        tasks.extend(obsolete.chunks(TASK).map(<[_]>::to_vec));
    }

    fn remove(&self, cx: &Context<'_>, most: usize) {
        for _ in 0..most {
            let Some(mut task) = self.tasks.lock().pop_front() else { return };
            task.retain(|old| !self.freeing.cut(cx, old));
            if !task.is_empty() {
                self.tasks.lock().push_back(task);
            }
        }
    }
}

impl Reclaimer for Hekaton {
    fn name(&self) -> &'static str {
        "hekaton"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.committed.push(cx.slot, *old, || old.end_ts.get());
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        self.remove(cx, TASKS);
        self.freeing.step(cx)?;
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn background(&self) -> Option<Duration> {
        Some(self.interval)
    }

    fn run_background(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.identify(cx);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.identify(cx);
        let tasks = self.tasks.lock().len();
        self.remove(cx, tasks);
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.committed.forget(table);
        self.tasks.lock().iter_mut().for_each(|task| task.retain(|old| old.table != table));
        self.freeing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        let committed = self.committed.len();
        let tasks: usize = self.tasks.lock().iter().map(Vec::len).sum();
        self.freeing.stats(committed + tasks)
    }
}
