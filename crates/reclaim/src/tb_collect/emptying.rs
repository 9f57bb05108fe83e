//! Emptying blocks and freeing them (TB-Collect 4.3, Algorithm 2).
//!
//! A survivor is copied, and the copy gets its link. Then one compare-and-swap of the tuple's
//! anchor makes all readers find the copy. If a writer was faster, the copy is garbage at once. No
//! step waits until another is durable: the block stays as it is until the copies are durable, and
//! for recovery two contents of one version are as good as one (T12).

use pantile_base::control::{Control, is_removed};
use pantile_base::{TableId, Timestamp};
use pantile_cc::{RunningSet, Sight};
use pantile_store::{BlockEvent, BlockInfo, KeepLinks, Refused, StoreError, Survivor, emit};

use super::TbCollect;
use super::queues::{Emptying, Leaving, Parting, Queues, Released};
use super::turn::Effort;
use crate::Context;
use crate::counters::add;

/// Number of survivors moved at once.
const MOST_MOVED: usize = 64;

impl TbCollect {
    /// Moves some survivors of frozen blocks. The caller has pinned its
    /// transaction slot.
    pub(super) fn empty_frozen(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        effort: Effort,
    ) -> Result<(), StoreError> {
        let mut budget = effort.copies;
        let mut blocks = queues.frozen.len().min(effort.looks);
        while blocks > 0
            && budget > 0
            && let Some(mut emptying) = queues.frozen.pop_front()
        {
            let Some(info) = cx.store.block_info(emptying.block) else { continue };
            if !cx.tuples.exists(info.table) {
                continue;
            }
            match self.go_on(cx, &mut emptying, &info, &mut budget) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    // It may pass.
                    queues.frozen.push_back(emptying);
                    return Err(error);
                }
            }
            if emptying.slot.is_some() {
                queues.frozen.push_front(emptying);
                break;
            }
            if emptying.is_damaged {
                // What cannot be copied stays, and so does the block, until the database
                // is next opened.
            } else if std::mem::take(&mut emptying.left_behind) {
                // Writers hold the locks of these tuples. Either they supersede
                // the versions, or the versions can be moved later.
                queues.held_up.push_back(emptying);
            } else {
                emit(BlockEvent::Relocated, emptying.block, info.table);
                let Emptying { block, copies, moved, since, .. } = emptying;
                queues.leaving.push_back(Leaving { block, copies, moved, since });
            }
            blocks -= 1;
        }
        Ok(())
    }

    /// Moves some survivors of a block. Returns false if another thread is emptying it.
    fn go_on(
        &self,
        cx: &Context<'_>,
        emptying: &mut Emptying,
        info: &BlockInfo,
        budget: &mut u64,
    ) -> Result<bool, StoreError> {
        let is_ours = self.begin_pass(cx, emptying)?;
        if is_ours {
            self.move_some(cx, emptying, info, budget)?;
        }
        Ok(is_ours)
    }

    /// Freezes the next block. Returns false if another thread is emptying it.
    fn begin_pass(&self, cx: &Context<'_>, emptying: &mut Emptying) -> Result<bool, StoreError> {
        if !emptying.is_frozen {
            // A block that is already frozen was queued twice.
            if !cx.store.freeze(emptying.block)? {
                return Ok(false);
            }
            self.counters.headers_written(1);
            emptying.is_frozen = true;
        }
        emptying.slot.get_or_insert(0);
        Ok(true)
    }

    fn move_some(
        &self,
        cx: &Context<'_>,
        emptying: &mut Emptying,
        info: &BlockInfo,
        budget: &mut u64,
    ) -> Result<(), StoreError> {
        let (table, stride) = (info.table, u64::from(info.stride));
        let mut survivors = Vec::new();
        while let Some(slot) = emptying.slot.filter(|_| *budget > 0) {
            let most = (*budget / stride).clamp(1, MOST_MOVED as u64) as usize;
            survivors.clear();
            let visited = cx.store.survivors(emptying.block, slot, most, &mut survivors);
            emptying.slot = visited.next;
            emptying.is_damaged |= visited.is_damaged;
            // An empty block costs something, too.
            *budget = budget.saturating_sub(survivors.len().max(1) as u64 * stride);
            let found = survivors.len();
            survivors.iter().for_each(|s| cx.tuples.prefetch(table, s.content.tuple()));
            survivors.retain(|s| cx.tuples.is_newest(table, s.content.tuple(), s.address));
            emptying.left_behind |= survivors.len() < found;
            self.move_survivors(cx, emptying, table, &survivors)?;
        }
        Ok(())
    }

    fn move_survivors(
        &self,
        cx: &Context<'_>,
        emptying: &mut Emptying,
        table: TableId,
        survivors: &[Survivor<'_>],
    ) -> Result<(), StoreError> {
        if survivors.is_empty() {
            return Ok(());
        }
        let copied: Vec<_> = survivors.iter().map(|&s| (table, s)).collect();
        let mut addresses = Vec::with_capacity(copied.len());
        let now = || cx.registry.draw_unread(cx.slot);
        let copies = match cx.store.copy_survivors(cx.slot.index(), &copied, now, &mut addresses) {
            Err(StoreError::Medium(full)) if full.is_full() => {
                // Other blocks may need less room, or make some. For this one, that is all for now.
                (emptying.left_behind, emptying.slot) = (true, None);
                return Ok(());
            }
            other => other?,
        };
        emptying.copies = Some(copies);
        let watermark = cx.registry.watermark();
        for (survivor, &to) in survivors.iter().zip(&addresses) {
            // Older versions are needed only by readers that do not see this
            // one.
            if survivor.content.timestamp() >= watermark
                && let Some(link) = cx.store.link(survivor.address)
            {
                cx.store.copy_link(to, link);
            }
            if cx.tuples.relocate(table, survivor.content.tuple(), survivor.address, to) {
                // Above every reader that may have found the original.
                cx.store.leave(survivor.address, cx.registry.after_all());
                emptying.moved.push(survivor.address);
            } else {
                // No walk begins at the copy.
                cx.store.skip_link(to, None);
                self.note_superseded(cx.store, cx.slot.index(), to, cx.registry.after_all());
                emptying.left_behind = true;
            }
        }
        Ok(())
    }

    /// Empty blocks that no transaction can see into begin to wait for threads
    /// that may be looking at them.
    pub(super) fn let_leave(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        running: &RunningSet,
        looks: usize,
    ) {
        for _ in 0..queues.leaving.len().min(looks) {
            let Some(leaving) = queues.leaving.pop_front() else { return };
            let Some(info) = cx.store.block_info(leaving.block) else { continue };
            let sight = running.sight(info.min_ts, info.seen_until);
            if sight == Sight::Obsolete || sight == Sight::Bypassed && self.options.bypass {
                queues.parting.push_back(Parting { leaving, grace: cx.registry.grace(), sight });
            } else {
                queues.leaving.push_back(leaving);
            }
        }
    }

    /// Releases blocks that no thread is looking at any more.
    pub(super) fn release_parting(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        most: usize,
    ) -> Result<(), StoreError> {
        let mut released = Vec::new();
        while released.len() < most
            && queues.parting.front_mut().is_some_and(|parting| parting.grace.is_over(cx.registry))
            && let Some(Parting { leaving, sight, .. }) = queues.parting.pop_front()
        {
            match self.release(cx, &leaving, sight)? {
                Ok(()) => released.push((leaving.block, leaving.since)),
                // It belongs to a dropped table, and no longer to this queue.
                Err(Refused::NotFrozen) => {}
                // Tried again in the next epoch.
                Err(_) => queues.leaving.push_back(leaving),
            }
        }
        if !released.is_empty() {
            let forgotten = cx.store.medium().sync_point();
            queues.released.extend(released.into_iter().map(|(block, since)| Released {
                block,
                forgotten,
                since,
            }));
        }
        Ok(())
    }

    fn release(
        &self,
        cx: &Context<'_>,
        leaving: &Leaving,
        sight: Sight,
    ) -> Result<Result<(), Refused>, StoreError> {
        let Some(info) = cx.store.block_info(leaving.block) else { return Ok(Err(Refused::NotFrozen)) };
        let moved = leaving.moved.len() as u32;
        // Links are joined where a reader from before the block is sure to run
        // (I-13).
        let joins = || {
            let is_published = self.kept_instead.is_some();
            !is_published && cx.registry.running_set().is_some_and(|set| set.is_any_below(info.min_ts))
        };
        let keep = (sight == Sight::Bypassed).then(|| KeepLinks {
            until: info.seen_until,
            instead: self.kept_instead,
            joins: joins(),
            moved: &leaving.moved,
        });
        match cx.store.release(leaving.block, leaving.copies, keep)? {
            Err(refused) => return Ok(Err(refused)),
            // No transaction looks at it any more, but one who counts the versions of chains may.
            Ok(tile) => self.retired_tiles.lock().extend(tile),
        }
        add(&self.counters.blocks_reclaimed, 1);
        add(&self.counters.blocks_bypassed, u64::from(sight == Sight::Bypassed));
        let threshold = self.threshold(info.slots);
        add(&self.counters.blocks_compacted, u64::from(info.slots - moved < threshold));
        add(&self.counters.versions_reclaimed, u64::from(info.slots - moved));
        add(&self.counters.survivors_relocated, u64::from(moved));
        Ok(Ok(()))
    }

    /// Frees the blocks that the medium has durably forgotten.
    pub(super) fn free_released(&self, cx: &Context<'_>, queues: &mut Queues, now: Timestamp) {
        let is_forgotten = |released: &Released| {
            cx.store.medium().is_durable(released.forgotten) || is_removed(Control::ForgottenDurable)
        };
        while queues.released.front().is_some_and(is_forgotten) {
            if let Some(released) = queues.released.pop_front() {
                cx.store.free(released.block, now);
                self.pacer.note_delay(released.since, now);
            }
        }
    }
}
