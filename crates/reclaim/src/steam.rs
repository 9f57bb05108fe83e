//! Steam: Böttcher, Leis, Neumann and Kemper, "Scalable Garbage Collection for
//! In-Memory MVCC Systems", PVLDB 13(2), 2019, section 4.
//!
//! Committed transactions' old versions wait in thread-local lists until the
//! watermark has passed (4.2). With eager pruning of obsolete versions (EPO,
//! 4.3) each update first takes everything out of the chain it makes longer
//! that no running transaction sees.

use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::{Address, TableId, Timestamp};
use pantile_cc::{Clock, RunningSet};
use pantile_store::{Store, StoreError};

use crate::commit_lists::CommitLists;
use crate::freeing::{Freeing, Marks};
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// How old a thread's list of active timestamps may become (4.3.1).
const ACTIVE_AGE: Duration = Duration::from_millis(5);
const SHARDS: usize = 64;
/// Versions removed after one commit: more than most transactions leave.
const MOST: usize = 128;

/// Who ran, and when that was found out; none before the first look.
type Active = Mutex<Option<(Timestamp, RunningSet)>>;

/// The collector.
pub(crate) struct Steam {
    freeing: Freeing,
    lists: CommitLists,
    /// The active timestamps as each slot last looked; none without EPO.
    active: Option<Box<[Active]>>,
}

impl Steam {
    pub fn new(options: GcOptions) -> Self {
        let active = (0..SHARDS).map(|_| Mutex::default()).collect();
        Self { active: Some(active), ..Self::watermark_only(options) }
    }

    /// Without EPO.
    pub fn watermark_only(options: GcOptions) -> Self {
        Self { freeing: Freeing::new(options, Marks::None), lists: CommitLists::default(), active: None }
    }
}

impl Reclaimer for Steam {
    fn name(&self) -> &'static str {
        if self.active.is_some() { "steam" } else { "steam-watermark" }
    }

    fn prunes(&self) -> bool {
        self.active.is_some()
    }

    fn extended(&self, cx: &Context<'_>, newest: Address, old: &OldVersion) {
        let Some(active) = &self.active else { return };
        let mut known = active[cx.slot.index() % SHARDS].lock();
        let now = cx.registry.now();
        let is_old = |(at, _): &(Timestamp, RunningSet)| {
            Clock::duration(now.tick().saturating_sub(at.tick())) >= ACTIVE_AGE
        };
        if known.as_ref().is_none_or(is_old) {
            *known = cx.registry.running_set().map(|running| (now, running)).or(known.take());
        }
        let Some((at, running)) = &*known else { return };
        let left = self.freeing.prune(cx, old.table, newest, old.end_ts, running);
        // One version for each transaction that runs, the new one and its
        // predecessor. More than that has been written since the list was made.
        if left > running.readers() + 2
            && *at < now
            && let Some(running) = cx.registry.running_set()
        {
            self.freeing.prune(cx, old.table, newest, old.end_ts, &running);
            *known = Some((now, running));
        }
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.lists.push(cx.slot, *old);
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        let watermark = cx.registry.watermark();
        self.lists.drain(cx.slot, watermark, MOST, |old| self.freeing.cut(cx, old));
        if self.freeing.step(cx)? {
            self.lists.drain_all(watermark, MOST, |old| self.freeing.cut(cx, old));
        }
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.lists.drain_all(cx.registry.watermark(), usize::MAX, |old| self.freeing.cut(cx, old));
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
