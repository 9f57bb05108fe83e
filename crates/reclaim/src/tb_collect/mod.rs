//! TB-Collect: whole blocks, without walking a chain.
//!
//! After Wei et al., "TB-Collect: Efficient Garbage Collection for
//! Non-Volatile Memory OLTP Engines", Electronics 2025, 14(10) 2080, sections
//! 4.1 to 4.5, Algorithms 1 to 3. A block of which theta has been superseded
//! waits in a `gc_pending_queue` until nobody can see the superseded versions,
//! then in a `local_gc_queue`, or in a `long_tx_gc_queue` if a long
//! transaction runs that bypasses it. When that queue is full the block is
//! frozen, its survivors move, and it is freed whole. Committing threads do
//! the work, a little after each commit.
//!
//! Queues belong to shards of the database and not to threads: a committing
//! thread works on the shard of its transaction slot and now and then on the
//! others, so a thread that stops leaves nothing behind (T18, T19).

mod compaction;
mod emptying;
mod janitor;
mod pacing;
mod queues;

use std::cell::Cell;

use pantile_base::sync::Mutex;
use pantile_base::{Address, TableId, Timestamp};
use pantile_cc::{Clock, EpochManager};
use pantile_store::{BlockEvent, BlockRef, BlockState, KeepInstead, Store, StoreError, Tile, emit};

use crate::CollectorStats;
use crate::counters::Counters;
use crate::options::GcOptions;
use crate::{Context, OldVersion, Reclaimer};

use janitor::Janitor;
use pacing::Pacer;
use queues::Shard;

/// Calls of a thread between two in which it looks at all shards.
const OFTEN: u32 = 64;

pantile_base::sync::thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

/// When headers of blocks go to the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Headers {
    /// Once, when the block is frozen.
    Lazily,
    /// With each update of a version of the block, as published.
    Eagerly,
}

/// The collector.
pub struct TbCollect {
    options: GcOptions,
    headers: Headers,
    /// What keeps the links of bypassed blocks, if their tiles do not.
    kept_instead: Option<KeepInstead>,
    /// Tiles whose links are kept elsewhere; threads may be looking at them.
    retired_tiles: Mutex<Vec<Tile>>,
    epochs: EpochManager,
    shards: Box<[Shard]>,
    janitor: Mutex<Janitor>,
    pacer: Pacer,
    counters: Counters,
}

impl TbCollect {
    /// The collector with `shards` sets of queues.
    pub fn new(options: GcOptions, shards: usize) -> Self {
        Self {
            options,
            headers: Headers::Lazily,
            kept_instead: None,
            retired_tiles: Mutex::default(),
            epochs: EpochManager::new(options.epoch),
            shards: (0..shards.max(1)).map(|_| Shard::default()).collect(),
            janitor: Mutex::default(),
            pacer: Pacer::default(),
            counters: Counters::default(),
        }
    }

    /// As published: the header of a block is written with each update of one
    /// of its versions (TB-Collect 4.3, step 2).
    pub fn eager(options: GcOptions, shards: usize) -> Self {
        Self { headers: Headers::Eagerly, ..Self::new(options, shards) }
    }

    /// As [`TbCollect::new`], but the links of blocks that a long transaction
    /// bypasses are kept in what `instead` makes of their tiles.
    pub fn keeping_links(options: GcOptions, shards: usize, instead: KeepInstead) -> Self {
        Self { kept_instead: Some(instead), ..Self::new(options, shards) }
    }

    /// How many versions of a block must have been superseded.
    fn threshold(&self, slots: u32) -> u32 {
        ((self.options.theta * f64::from(slots)) as u32 + 1).min(slots)
    }

    fn shard(&self, of: usize) -> &Shard {
        &self.shards[of % self.shards.len()]
    }

    /// Does some of a shard's work, if it is due and no other thread is doing it.
    fn work(&self, cx: &Context<'_>, shard: &Shard) -> Result<(), StoreError> {
        let now = cx.registry.now();
        if !shard.is_due(now) {
            return Ok(());
        }
        let Some(mut queues) = shard.queues.try_lock() else { return Ok(()) };
        self.timed(cx, now, || self.turn(cx, &mut queues, now, false).map(|due| shard.set_due(due)))
    }

    fn timed<T>(&self, cx: &Context<'_>, began: Timestamp, work: impl FnOnce() -> T) -> T {
        let done = work();
        self.counters.step(Clock::duration(cx.registry.now().tick().saturating_sub(began.tick())));
        done
    }

    fn enqueue(&self, store: &Store, of: usize, block: BlockRef, at: Timestamp) {
        let shard = self.shard(of);
        shard.queues.lock().pending.push_back((block, at));
        shard.set_due(Timestamp::ZERO);
        if let Some(info) = store.block_info(block) {
            emit(BlockEvent::Pending, block, info.table);
        }
    }

    /// Notes that the version at `old` is not needed from `at` on.
    fn note_superseded(&self, store: &Store, of: usize, old: Address, at: Timestamp) -> BlockRef {
        let superseded = store.supersede(old, at);
        if superseded.count == Some(self.threshold(superseded.slots)) {
            self.enqueue(store, of, superseded.block, at);
        }
        superseded.block
    }
}

/// Every block that holds something.
fn all_blocks(store: &Store) -> impl Iterator<Item = BlockRef> + '_ {
    let blocks =
        move |chunk| (0..store.blocks_in(chunk)).filter_map(move |index| store.block_at(chunk, index));
    (1..store.chunks_end()).flat_map(blocks)
}

impl Reclaimer for TbCollect {
    #[inline]
    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        let block = self.note_superseded(cx.store, cx.slot.index(), old.address, at);
        if self.headers == Headers::Eagerly {
            cx.store.write_header(block)?;
            self.counters.headers_written(1);
        }
        Ok(())
    }

    #[inline]
    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.work(cx, self.shard(cx.slot.index()))?;
        CALLS.set(CALLS.get().wrapping_add(1));
        if CALLS.get().is_multiple_of(OFTEN) {
            self.shards.iter().try_for_each(|shard| self.work(cx, shard))?;
            self.tidy(cx, false)?;
        }
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let now = cx.registry.now();
        {
            let _pin = cx.registry.pin(cx.slot);
            self.compact_now(cx, now);
        }
        for shard in &self.shards {
            let mut queues = shard.queues.lock();
            shard.set_due(self.turn(cx, &mut queues, now, true)?);
        }
        self.tidy(cx, true)
    }

    fn resume(&self, store: &Store) {
        for (of, block) in all_blocks(store).enumerate() {
            let Some(info) = store.block_info(block) else { continue };
            let mut queues = self.shard(of).queues.lock();
            if info.state == BlockState::Sealed && store.frozen_on_medium(block) {
                queues.frozen.push_back(block.into());
            } else if info.obsolete >= self.threshold(info.slots) {
                queues.pending.push_back((block, info.max_ts));
            }
        }
    }

    fn forget(&self, store: &Store, table: TableId) {
        let _chunks = store.hold_chunks();
        for shard in &self.shards {
            shard.queues.lock().retain(|block| store.block_info(block).is_some_and(|i| i.table != table));
        }
    }

    fn stats(&self, store: &Store) -> CollectorStats {
        let mut stats = self.counters.snapshot();
        for shard in &self.shards {
            shard.queues.lock().add_to(&mut stats);
        }
        stats.kept_tiles = store.kept_tiles();
        stats.queue_capacity = self.pacer.capacity_blocks();
        stats
    }
}
