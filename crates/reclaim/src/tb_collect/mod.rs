//! TB-Collect: frees whole blocks, without walking a chain.
//!
//! After Wei et al., "TB-Collect: Efficient Garbage Collection for Non-Volatile
//! Memory OLTP Engines", Electronics 2025, 14(10) 2080, sections 4.1 to 4.5,
//! Algorithms 1 to 3. A block of which theta has been superseded waits in a
//! `gc_pending_queue` until no transaction can see the superseded versions.
//! Then it waits in a `local_gc_queue`, or in a `long_tx_gc_queue` if a long
//! transaction bypasses it. When that queue is full the block is frozen, its
//! survivors move, and it is freed whole. Committing threads do the work, a
//! little after each commit.
//!
//! Queues belong to shards of the database and not to threads. A committing
//! thread works on the shard of its transaction slot and from time to time on
//! the others, so a thread that stops leaves nothing behind (T18, T19).

mod compaction;
mod emptying;
mod janitor;
mod pacing;
mod queues;
mod state;
mod turn;

use std::cell::Cell;

use pantile_base::{TableId, Timestamp};
use pantile_store::{BlockState, Store, StoreError};

use crate::blocks::all_blocks;
use crate::{CollectorStats, Context, OldVersion, Reclaimer};

use queues::Shard;
use state::Headers;
pub use state::TbCollect;

/// Calls of a thread between two calls that look at all shards.
const OFTEN: u32 = 64;

pantile_base::sync::thread_local!(static CALLS: Cell<u32> = const { Cell::new(0) });

impl TbCollect {
    /// Does some of a shard's work, if any is due and no other thread is doing
    /// it.
    fn work(&self, cx: &Context<'_>, shard: &Shard) -> Result<(), StoreError> {
        let now = cx.registry.now();
        if !shard.is_due(now) {
            return Ok(());
        }
        let Some(mut queues) = shard.queues.try_lock() else { return Ok(()) };
        self.timed(cx, now, || self.turn(cx, &mut queues, now, false).map(|due| shard.set_due(due)))
    }
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
