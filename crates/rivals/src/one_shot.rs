//! OneShotGC: Raza, Chrysogelos, Anadiotis and Ailamaki, "One-shot Garbage
//! Collection for In-memory OLTP through Temporality-aware Version Storage",
//! Proceedings of the ACM on Management of Data 1(1), 2023, on delta storage,
//! as described by TB-Collect 2.2 and 2.3.3.
//!
//! New versions go to slots of the main heap, which are rewritten again and
//! again. A commit copies the versions that it supersedes to the current
//! partition. A partition is freed whole once no transaction reads in its time.
//! If transactions that began before the whole partition still run, a hash
//! index keeps the links that lead through it.

use std::collections::VecDeque;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_cc::{EpochManager, Grace, Sight};
use pantile_media::SyncPoint;
use pantile_reclaim::parts::add;
use pantile_reclaim::{Collector, CollectorStats, Description, GcOptions, LongerChain, OldVersion};
use pantile_store::{BlockRef, KeepLinks, Refused, Store, StoreError, Tile};

use crate::link_index::LinkIndex;
use crate::version_by_version::{MOST, Policy, VersionByVersion, Work};

/// OneShotGC: old versions in time partitions that are freed at once.
pub const ONE_SHOT: Collector = Collector::new(&Description {
    name: "one-shot",
    about: "old versions in time partitions that are freed at once",
    build: |options, _| VersionByVersion::boxed(options, OneShot::new(options)),
});

/// The lists hold the places of superseded versions in the main heap. Rows are
/// borrowed from their slots, so a slot is free only when no transaction reads
/// its version.
struct OneShot {
    epochs: EpochManager,
    partitions: Mutex<Partitions>,
}

#[derive(Default)]
struct Partitions {
    /// Blocks that have become full in this epoch.
    open: Vec<BlockRef>,
    since: Timestamp,
    /// Partitions of past epochs, oldest first.
    closed: VecDeque<Partition>,
    /// Partitions that no transaction sees into; threads may still be on their
    /// way there.
    parting: VecDeque<(Grace, Vec<(BlockRef, Sight)>)>,
    /// Partitions that the medium will have forgotten at a sync point.
    released: VecDeque<(SyncPoint, Vec<BlockRef>)>,
    /// Partitions whose links are in the index; threads may be looking at the
    /// links.
    tiles: Vec<(Grace, Vec<Tile>)>,
}

struct Partition {
    blocks: Vec<BlockRef>,
    /// When it was closed. All its versions had been superseded by then.
    end: Timestamp,
}

impl OneShot {
    fn new(options: GcOptions) -> Self {
        Self { epochs: EpochManager::new(options.epoch), partitions: Mutex::default() }
    }

    /// Advances every partition by one step.
    fn turn(&self, work: &Work<'_>, partitions: &mut Partitions, urgent: bool) -> Result<(), StoreError> {
        let cx = work.cx;
        let now = cx.registry.now();
        let is_over = self.epochs.of(now) > self.epochs.of(partitions.since);
        if !partitions.open.is_empty() && (is_over || urgent) {
            let blocks = std::mem::take(&mut partitions.open);
            partitions.closed.push_back(Partition { blocks, end: now });
        }
        if is_over || urgent {
            partitions.since = now;
            self.find_unseen(work, partitions);
            partitions.tiles.retain_mut(|(grace, _)| !grace.is_over(cx.registry));
            let kept = cx.store.take_kept_tiles(cx.registry.watermark());
            debug_assert!(kept.is_empty(), "links are kept in the index");
        }
        while partitions.parting.front_mut().is_some_and(|(grace, _)| grace.is_over(cx.registry))
            && let Some((grace, blocks)) = partitions.parting.pop_front()
        {
            self.release(work, partitions, grace, blocks)?;
            if !urgent {
                break;
            }
        }
        while partitions
            .released
            .front()
            .is_some_and(|(forgotten, _)| cx.store.medium().is_durable(*forgotten))
            && let Some((_, blocks)) = partitions.released.pop_front()
        {
            blocks.into_iter().for_each(|block| cx.store.free(block, now));
        }
        Ok(())
    }

    /// Partitions that, as is durably known, no transaction sees into begin to
    /// wait for threads that may be looking at them.
    fn find_unseen(&self, work: &Work<'_>, partitions: &mut Partitions) {
        let cx = work.cx;
        let Some(running) = cx.registry.running_set() else { return };
        let running = running.epochs(self.epochs);
        let durable = cx.store.durable_watermark();
        let parting = &mut partitions.parting;
        partitions.closed.retain_mut(|partition| {
            if partition.end > durable {
                return true;
            }
            let infos = partition.blocks.iter().filter_map(|block| cx.store.block_info(*block));
            let begin = infos.map(|info| info.min_ts).min().unwrap_or(partition.end);
            let sight = running.sight(self.epochs.of(begin), self.epochs.of(partition.end));
            if sight == Sight::InUse {
                return true;
            }
            let blocks = partition.blocks.drain(..).map(|block| (block, sight)).collect();
            parting.push_back((cx.registry.grace(), blocks));
            false
        });
    }

    fn release(
        &self,
        work: &Work<'_>,
        partitions: &mut Partitions,
        grace: Grace,
        blocks: Vec<(BlockRef, Sight)>,
    ) -> Result<(), StoreError> {
        let cx = work.cx;
        let counters = &work.freeing.counters;
        let (mut released, mut again, mut tiles) = (Vec::new(), Vec::new(), Vec::new());
        for (block, sight) in blocks {
            let Some(info) = cx.store.block_info(block) else { continue };
            let keep = (sight == Sight::Bypassed).then_some(KeepLinks {
                until: info.seen_until,
                instead: Some(LinkIndex::of),
                joins: false,
                moved: &[],
            });
            match cx.store.release(block, None, keep)? {
                Ok(tile) => {
                    tiles.extend(tile);
                    released.push(block);
                    add(&counters.blocks_reclaimed, 1);
                    add(&counters.blocks_bypassed, u64::from(keep.is_some()));
                    add(&counters.versions_reclaimed, u64::from(info.slots));
                }
                // It belongs to a dropped table, and no longer to this
                // partition.
                Err(Refused::NotFrozen) => {}
                Err(_) => again.push((block, sight)),
            }
        }
        if !tiles.is_empty() {
            partitions.tiles.push((cx.registry.grace(), tiles));
        }
        if !released.is_empty() {
            partitions.released.push_back((cx.store.medium().sync_point(), released));
        }
        if !again.is_empty() {
            partitions.parting.push_back((grace, again));
        }
        Ok(())
    }
}

impl Policy for OneShot {
    fn remove(&self, work: &Work<'_>, old: &OldVersion) -> bool {
        work.freeing.retire(work.cx, old.table, old.address);
        true
    }

    fn step(&self, work: &Work<'_>) -> Result<(), StoreError> {
        work.lists.drain(work.cx.slot, self.end(work.cx), MOST, |old| self.remove(work, old));
        match self.partitions.try_lock() {
            Some(mut partitions) => self.turn(work, &mut partitions, false),
            None => Ok(()),
        }
    }

    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.remove_all(work, usize::MAX);
        self.turn(work, &mut self.partitions.lock(), true)
    }

    fn wants_chains(&self) -> bool {
        true
    }

    /// Copies the superseded versions, and links the new ones to the copies.
    /// Without space for copies, versions stay where they are in the chain.
    /// They also stay if the transaction only deletes; otherwise a full medium
    /// could accept no deletes (T14).
    fn extended(&self, work: &Work<'_>, chains: &[LongerChain]) {
        let (store, registry, slot) = (work.cx.store, work.cx.registry, work.cx.slot);
        let is_delete = |chain: &LongerChain| store.content_header(chain.newest).flags().is_tombstone();
        if chains.iter().all(is_delete) {
            return;
        }
        let versions = chains.iter().map(|chain| (chain.old.table, chain.old.address));
        let mut copies = Vec::with_capacity(chains.len());
        let now = || registry.draw_unread(slot);
        // If the medium has failed, it latches, and the next commit reports the
        // error.
        if store.copy_superseded(slot.index(), versions, now, &mut copies).is_err() {
            return;
        }
        add(&work.freeing.counters.survivors_relocated, copies.len() as u64);
        for (LongerChain { newest, old }, copy) in chains.iter().zip(copies) {
            if let Some(link) = store.link(old.address) {
                store.copy_link(copy, link);
            }
            store.set_link(*newest, copy, old.begin_ts);
            let superseded = store.supersede(copy, registry.now().max(old.end_ts));
            if superseded.count == Some(superseded.slots) {
                self.partitions.lock().open.push(superseded.block);
            }
        }
    }

    fn forget(&self, store: &Store, table: TableId) {
        let _chunks = store.hold_chunks();
        let mut partitions = self.partitions.lock();
        let stays = |block: &BlockRef| store.block_info(*block).is_some_and(|info| info.table != table);
        partitions.open.retain(stays);
        partitions.closed.iter_mut().for_each(|partition| partition.blocks.retain(stays));
        for (_, blocks) in &mut partitions.parting {
            blocks.retain(|(block, _)| stays(block));
        }
    }

    fn add_stats(&self, store: &Store, stats: &mut CollectorStats) {
        let partitions = self.partitions.lock();
        let closed = partitions.closed.iter().map(|partition| partition.blocks.len());
        let parting = partitions.parting.iter().map(|(_, blocks)| blocks.len());
        stats.pending_blocks = (partitions.open.len() + closed.sum::<usize>()) as u64;
        stats.queued_blocks = parting.sum::<usize>() as u64;
        stats.kept_tiles = store.kept_tiles();
    }
}
