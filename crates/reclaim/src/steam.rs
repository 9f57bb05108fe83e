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

use crate::freeing::Marks;
use crate::removing::Removing;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// How old a thread's list of active timestamps may become (4.3.1).
const ACTIVE_AGE: Duration = Duration::from_millis(5);
const SHARDS: usize = 64;

/// Who ran, and when that was found out; none before the first look.
type Active = Mutex<Option<(Timestamp, RunningSet)>>;

/// The collector.
pub(crate) struct Steam {
    removing: Removing,
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
        Self { removing: Removing::new(options, Marks::None), active: None }
    }

    /// Takes out of the chain what nobody sees of those that ran when
    /// `running` was taken and may have begun since (4.3, for whole rows).
    fn prune(&self, cx: &Context<'_>, newest: Address, old: &OldVersion, running: &RunningSet) -> usize {
        let is_past = |end| end <= running.min();
        let may_see = |begin, end| running.may_see(begin, end);
        self.removing.freeing.prune(cx, old.table, newest, old.end_ts, is_past, may_see)
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
        let left = self.prune(cx, newest, old, running);
        // One version for each transaction that runs, the new one and its
        // predecessor. More than that has been written since the list was made.
        if left > running.readers() + 2
            && *at < now
            && let Some(running) = cx.registry.running_set()
        {
            self.prune(cx, newest, old, &running);
            *known = Some((now, running));
        }
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.removing.add(cx, old, at, || old.end_ts.get());
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.removing.step(cx, cx.registry.watermark().get(), cx.registry.now())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.removing.make_room(cx, cx.registry.watermark().get())
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
