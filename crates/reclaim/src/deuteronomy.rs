//! Deuteronomy: Levandoski, Lomet, Sengupta, Stutsman and Wang, "High
//! Performance Transactions in Deuteronomy", CIDR 2015, as Steam 3 and 5
//! (Table 4) have it.
//!
//! Epochs without end: a new one begins when so many transactions have
//! committed in the last. What was superseded in an epoch is removed when
//! every transaction that began before its end has ended.

use std::collections::VecDeque;
use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::Marks;
use crate::removing::Removing;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Commits of an epoch (Steam, Table 4).
const THRESHOLD: u64 = 100;

/// The collector.
pub(crate) struct Deuteronomy {
    removing: Removing,
    /// The epoch that has begun last.
    current: AtomicU64,
    commits: AtomicU64,
    threshold: u64,
    /// When the epochs ended that are not over for everybody, by the number of
    /// the next.
    ended: Mutex<VecDeque<(u64, Timestamp)>>,
    /// Nobody is in an earlier epoch any more.
    over: AtomicU64,
}

impl Deuteronomy {
    pub fn new(options: GcOptions) -> Self {
        Self {
            removing: Removing::new(options, Marks::None),
            current: AtomicU64::new(1),
            commits: AtomicU64::new(0),
            threshold: options.epoch_commits.unwrap_or(THRESHOLD),
            ended: Mutex::default(),
            over: AtomicU64::new(0),
        }
    }

    /// Ends the epoch, and finds out who is still in earlier ones.
    fn end_epoch(&self, cx: &Context<'_>) {
        let mut ended = self.ended.lock();
        let next = self.current.fetch_add(1, Ordering::AcqRel) + 1;
        ended.push_back((next, cx.registry.now()));
        let watermark = cx.registry.refresh_watermark(Duration::ZERO);
        while let Some((next, _)) = ended.pop_front_if(|(_, end)| *end < watermark) {
            self.over.store(next, Ordering::Release);
        }
    }
}

impl Reclaimer for Deuteronomy {
    fn name(&self) -> &'static str {
        "deuteronomy"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.removing.add(cx, old, at, || self.current.load(Ordering::Acquire));
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        if (self.commits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.threshold) {
            self.end_epoch(cx);
        }
        self.removing.step(cx, self.over.load(Ordering::Acquire), began)
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.end_epoch(cx);
        self.removing.make_room(cx, self.over.load(Ordering::Acquire))
    }

    fn resume(&self, store: &Store) {
        self.removing.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.removing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        self.removing.stats()
    }
}
