//! The one collector behind those that free versions one by one. It owns the
//! lists of superseded versions and the freeing, keeps statistics and time, and
//! asks a [`Policy`] what to remove and when.

use std::sync::Arc;
use std::time::Duration;

use pantile_base::{TableId, Timestamp};
use pantile_reclaim::{CollectorStats, Context, GcOptions, LongerChain, OldVersion, Reclaimer};
use pantile_store::{SlotReuse, Store, StoreError};

use crate::freeing::{Freeing, Marks};
use crate::lists::Lists;

/// Versions removed after one commit: more than most transactions leave behind.
pub(crate) const MOST: usize = 128;

/// What a policy works with.
pub(crate) struct Work<'w> {
    pub cx: &'w Context<'w>,
    pub freeing: &'w Freeing,
    pub lists: &'w Lists,
}

/// What distinguishes one such collector from another. By default a committing
/// thread removes the versions that its own list places below the watermark.
pub(crate) trait Policy: Send + Sync + 'static {
    /// Whether block headers say which slots are free.
    const MARKS: Marks = Marks::None;
    /// Whether committing threads remove versions.
    const IN_COMMITS: bool = true;
    /// Whether a background thread calls [`Policy::background`].
    const IN_BACKGROUND: bool = false;

    /// The time under which a version that has just been superseded is listed.
    fn time(&self, old: &OldVersion) -> u64 {
        old.end_ts.get()
    }

    /// Versions with times below this can be removed now.
    fn end(&self, cx: &Context<'_>) -> u64 {
        cx.registry.watermark().get()
    }

    /// Removes a version; returns false to be called again later.
    fn remove(&self, work: &Work<'_>, old: &OldVersion) -> bool {
        work.freeing.cut(work.cx, old)
    }

    /// Called when a version has been superseded.
    fn add(&self, work: &Work<'_>, old: &OldVersion) {
        work.lists.push(work.cx.slot, *old, || self.time(old));
    }

    /// Called after a commit.
    fn step(&self, work: &Work<'_>) -> Result<(), StoreError> {
        work.lists.drain(work.cx.slot, self.end(work.cx), MOST, |old| self.remove(work, old));
        Ok(())
    }

    /// Called from time to time after a commit, for the lists of all threads.
    fn step_for_all(&self, work: &Work<'_>) {
        self.remove_all(work, MOST);
    }

    /// One round of background work.
    fn background(&self, _work: &Work<'_>) {}

    /// Called when space is short.
    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.remove_all(work, usize::MAX);
        Ok(())
    }

    /// Like [`Reclaimer::wants_chains`].
    fn wants_chains(&self) -> bool {
        false
    }

    /// Like [`Reclaimer::extended`].
    fn extended(&self, _work: &Work<'_>, _chains: &[LongerChain]) {}

    /// Forgets what it holds for a dropped table outside the lists.
    fn forget(&self, _store: &Store, _table: TableId) {}

    /// Number of versions that have left the lists and wait elsewhere.
    fn waiting(&self) -> usize {
        0
    }

    /// Adds statistics that only this collector counts.
    fn add_stats(&self, _store: &Store, _stats: &mut CollectorStats) {}

    /// Removes at most `most` versions of each list.
    fn remove_all(&self, work: &Work<'_>, most: usize) {
        work.lists.drain_all(self.end(work.cx), most, |old| self.remove(work, old));
    }
}

/// The collector.
pub(crate) struct VersionByVersion<P> {
    policy: P,
    freeing: Freeing,
    lists: Lists,
    interval: Duration,
}

impl<P: Policy> VersionByVersion<P> {
    pub fn boxed(options: GcOptions, policy: P) -> Box<dyn Reclaimer> {
        let freeing = Freeing::new(options, P::MARKS);
        Box::new(Self { policy, freeing, lists: Lists::default(), interval: options.interval })
    }

    fn work<'w>(&'w self, cx: &'w Context<'_>) -> Work<'w> {
        Work { cx, freeing: &self.freeing, lists: &self.lists }
    }
}

impl<P: Policy> Reclaimer for VersionByVersion<P> {
    fn slot_reuse(&self) -> Option<Arc<dyn SlotReuse>> {
        Some(self.freeing.slots())
    }

    fn wants_chains(&self) -> bool {
        self.policy.wants_chains()
    }

    fn extended(&self, cx: &Context<'_>, chains: &[LongerChain]) {
        self.policy.extended(&self.work(cx), chains);
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        cx.store.supersede(old.address, at);
        if old.begin_ts == old.end_ts {
            // Nobody has seen it, and nothing leads to it.
            self.freeing.retire(cx, old.table, old.address);
        } else {
            self.policy.add(&self.work(cx), old);
        }
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        if !P::IN_COMMITS {
            return Ok(());
        }
        let began = cx.registry.now();
        let work = self.work(cx);
        self.policy.step(&work)?;
        if self.freeing.step(cx)? {
            self.policy.step_for_all(&work);
        }
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn background(&self) -> Option<Duration> {
        P::IN_BACKGROUND.then_some(self.interval)
    }

    fn run_background(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        self.policy.background(&self.work(cx));
        if !P::IN_COMMITS {
            self.freeing.run(cx)?;
            self.freeing.timed(cx, began);
        }
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.policy.make_room(&self.work(cx))?;
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, store: &Store, table: TableId) {
        self.lists.forget(table);
        self.policy.forget(store, table);
        self.freeing.forget(table);
    }

    fn stats(&self, store: &Store) -> CollectorStats {
        // In the order in which versions move on, so that none is missed.
        let listed = self.lists.len();
        let mut stats = self.freeing.stats(listed + self.policy.waiting());
        self.policy.add_stats(store, &mut stats);
        stats
    }
}
