//! OneShotGC: Raza, Chrysogelos, Anadiotis and Ailamaki, "One-shot Garbage
//! Collection for In-memory OLTP through Temporality-aware Version Storage",
//! Proceedings of the ACM on Management of Data 1(1), 2023, on delta storage,
//! as TB-Collect 2.2 and 2.3.3 describe it.
//!
//! A commit copies the versions that it supersedes to the partition of the
//! moment, and writes the new ones to the main heap. A partition is freed
//! whole once nobody reads in its time. If only transactions do that began
//! before all of it, a hash index keeps the links that lead through it.

use std::collections::VecDeque;

use pantile_base::sync::Mutex;
use pantile_base::{TableId, Timestamp};
use pantile_cc::{EpochManager, Grace, Sight};
use pantile_media::SyncPoint;
use pantile_store::{BlockRef, KeepLinks, Refused, Store, StoreError, Tile};

use crate::counters::add;
use crate::freeing::{Freeing, Marks};
use crate::lists::Lists;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Slots of the main heap given back after one commit: more than most leave.
const MOST: usize = 128;

/// The collector.
pub(crate) struct OneShot {
    freeing: Freeing,
    epochs: EpochManager,
    /// Where superseded versions lay in the main heap. Rows are borrowed where
    /// they lie, so the slot is free when nobody reads the version any more.
    main: Lists,
    partitions: Mutex<Partitions>,
}

#[derive(Default)]
struct Partitions {
    /// Blocks that have become full in this epoch.
    open: Vec<BlockRef>,
    since: Timestamp,
    /// Past epochs', oldest first.
    closed: VecDeque<Partition>,
    /// Nobody sees into them; threads may be on their way.
    parting: VecDeque<(Grace, Vec<(BlockRef, Sight)>)>,
    /// The medium is about to have forgotten them.
    released: VecDeque<(SyncPoint, Vec<BlockRef>)>,
    /// Whose links are in the index; threads may be looking at them.
    tiles: Vec<(Grace, Vec<Tile>)>,
}

struct Partition {
    blocks: Vec<BlockRef>,
    /// When it was closed: all its versions had been superseded.
    end: Timestamp,
}

impl OneShot {
    pub fn new(options: GcOptions) -> Self {
        Self {
            freeing: Freeing::new(options, Marks::None),
            epochs: EpochManager::new(options.epoch),
            main: Lists::default(),
            partitions: Mutex::default(),
        }
    }

    fn free_main(&self, cx: &Context<'_>, all: bool) {
        let watermark = cx.registry.watermark();
        let retire = |old: &OldVersion| {
            self.freeing.retire(cx, old.table, old.address);
            true
        };
        if all {
            self.main.drain_all(watermark.get(), usize::MAX, retire);
        } else {
            self.main.drain(cx.slot, watermark.get(), MOST, retire);
        }
    }

    /// One step of every partition on its way.
    fn turn(&self, cx: &Context<'_>, partitions: &mut Partitions, urgent: bool) -> Result<(), StoreError> {
        let now = cx.registry.now();
        let is_over = self.epochs.of(now) > self.epochs.of(partitions.since);
        if !partitions.open.is_empty() && (is_over || urgent) {
            let blocks = std::mem::take(&mut partitions.open);
            partitions.closed.push_back(Partition { blocks, end: now });
        }
        if is_over || urgent {
            partitions.since = now;
            self.find_unseen(cx, partitions);
            partitions.tiles.retain_mut(|(grace, _)| !grace.is_over(cx.registry));
            let kept = cx.store.take_kept_tiles(cx.registry.watermark());
            debug_assert!(kept.is_empty(), "links are kept in the index");
        }
        while partitions.parting.front_mut().is_some_and(|(grace, _)| grace.is_over(cx.registry))
            && let Some((grace, blocks)) = partitions.parting.pop_front()
        {
            self.release(cx, partitions, grace, blocks)?;
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

    /// Partitions that nobody sees into, and is durably known not to need,
    /// begin to wait for the threads that may be looking.
    fn find_unseen(&self, cx: &Context<'_>, partitions: &mut Partitions) {
        let Some(running) = cx.registry.running_set() else { return };
        let running = running.epochs(self.epochs);
        let durable = cx.store.durable_watermark();
        let parting = &mut partitions.parting;
        partitions.closed.retain_mut(|partition| {
            if partition.end > durable {
                return true;
            }
            let infos = partition.blocks.iter().filter_map(|block| cx.store.block_info(*block));
            let begin = infos.map(|info| info.min_txnid).min().unwrap_or(partition.end);
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
        cx: &Context<'_>,
        partitions: &mut Partitions,
        grace: Grace,
        blocks: Vec<(BlockRef, Sight)>,
    ) -> Result<(), StoreError> {
        let (mut released, mut again, mut tiles) = (Vec::new(), Vec::new(), Vec::new());
        for (block, sight) in blocks {
            let Some(info) = cx.store.block_info(block) else { continue };
            let keep = (sight == Sight::PassedOver).then_some(KeepLinks::InIndex(info.seen_until));
            match cx.store.release(block, None, keep)? {
                Ok(tile) => {
                    tiles.extend(tile);
                    released.push(block);
                    add(&self.freeing.counters.blocks_reclaimed, 1);
                    add(&self.freeing.counters.blocks_passed_over, u64::from(keep.is_some()));
                    add(&self.freeing.counters.versions_reclaimed, u64::from(info.slots));
                }
                // A dropped table's, and not ours any more.
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

impl Reclaimer for OneShot {
    fn name(&self) -> &'static str {
        "one-shot"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.main.push(cx.slot, *old, || old.end_ts.get());
        if !old.copy.is_none() {
            let copy = cx.store.supersede(old.copy, at);
            if copy.count == Some(copy.slots) {
                self.partitions.lock().open.push(copy.block);
            }
        }
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        self.free_main(cx, false);
        if self.freeing.step(cx)? {
            self.free_main(cx, true);
        }
        if let Some(mut partitions) = self.partitions.try_lock() {
            self.turn(cx, &mut partitions, false)?;
        }
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.free_main(cx, true);
        self.freeing.make_room(cx)?;
        let mut partitions = self.partitions.lock();
        self.turn(cx, &mut partitions, true)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, store: &Store, table: TableId) {
        self.main.forget(table);
        self.freeing.forget(table);
        let _chunks = store.hold_chunks();
        let mut partitions = self.partitions.lock();
        let stays = |block: &BlockRef| store.block_info(*block).is_some_and(|info| info.table != table);
        partitions.open.retain(stays);
        partitions.closed.iter_mut().for_each(|partition| partition.blocks.retain(stays));
        for (_, blocks) in &mut partitions.parting {
            blocks.retain(|(block, _)| stays(block));
        }
    }

    fn stats(&self, store: &Store) -> CollectorStats {
        let mut stats = self.freeing.stats(self.main.len());
        let partitions = self.partitions.lock();
        let closed = partitions.closed.iter().map(|partition| partition.blocks.len());
        let parting = partitions.parting.iter().map(|(_, blocks)| blocks.len());
        stats.pending_blocks = (partitions.open.len() + closed.sum::<usize>()) as u64;
        stats.queued_blocks = parting.sum::<usize>() as u64;
        stats.kept_tiles = store.kept_tiles();
        stats
    }
}
