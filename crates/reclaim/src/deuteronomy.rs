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

use crate::epoch_lists::EpochLists;
use crate::freeing::{Freeing, Marks};
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Commits of an epoch (Steam, Table 4).
const THRESHOLD: u64 = 100;
/// Versions removed after one commit: more than most transactions leave.
const MOST: usize = 128;

/// The collector.
pub(crate) struct Deuteronomy {
    freeing: Freeing,
    lists: EpochLists,
    commits: AtomicU64,
    threshold: u64,
    /// When the epochs ended that are not over for everybody, by number.
    ended: Mutex<VecDeque<(u64, Timestamp)>>,
    /// The last epoch that nobody is in any more.
    over: AtomicU64,
}

impl Deuteronomy {
    pub fn new(options: GcOptions) -> Self {
        Self {
            freeing: Freeing::new(options, Marks::None),
            lists: EpochLists::default(),
            commits: AtomicU64::new(0),
            threshold: options.epoch_commits.unwrap_or(THRESHOLD),
            ended: Mutex::default(),
            over: AtomicU64::new(0),
        }
    }

    /// Ends the epoch, and finds out who is still in earlier ones.
    fn end_epoch(&self, cx: &Context<'_>) {
        let mut ended = self.ended.lock();
        let epoch = self.lists.current();
        self.lists.advance();
        ended.push_back((epoch, cx.registry.now()));
        let watermark = cx.registry.refresh_watermark(Duration::ZERO);
        while let Some((epoch, _)) = ended.pop_front_if(|(_, end)| *end < watermark) {
            self.over.store(epoch, Ordering::Release);
        }
    }
}

impl Reclaimer for Deuteronomy {
    fn name(&self) -> &'static str {
        "deuteronomy"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.lists.push(cx.slot, *old);
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        if (self.commits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.threshold) {
            self.end_epoch(cx);
        }
        let over = self.over.load(Ordering::Acquire);
        self.lists.drain(cx.slot, over, MOST, |old| self.freeing.cut(cx, old));
        if self.freeing.step(cx)? {
            self.lists.drain_all(over, MOST, |old| self.freeing.cut(cx, old));
        }
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.end_epoch(cx);
        let over = self.over.load(Ordering::Acquire);
        self.lists.drain_all(over, usize::MAX, |old| self.freeing.cut(cx, old));
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.lists.forget(table);
        self.freeing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        self.freeing.stats(self.lists.len())
    }
}
