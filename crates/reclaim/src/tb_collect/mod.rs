//! TB-Collect: frees whole blocks, without walking a chain.
//!
//! This is the algorithm of Wei et al., "TB-Collect: Efficient Garbage Collection for Non-Volatile
//! Memory OLTP Engines", Electronics 2025, 14(10) 2080, sections 4.1 to 4.5, Algorithms 1 to 3.
//! When the share theta of a block has been superseded, the block waits in a `gc_pending_queue`
//! until no transaction can see the superseded versions. Then it waits in a `local_gc_queue`, or in
//! a `long_tx_gc_queue` if a long transaction bypasses it. When that queue is full, the block is
//! frozen, its survivors move, and it is freed whole. Committing threads do the work, a little
//! after each commit.
//!
//! Queues belong to shards of the database and not to threads. A committing thread works on the
//! shard of its transaction slot, and from time to time on the others. So a thread that stops
//! leaves nothing behind (T18, T19).

mod compaction;
mod emptying;
mod janitor;
mod owed;
mod pacing;
mod queues;
mod state;
mod survey;
mod turn;

use std::time::Duration;

use pantile_base::sync::atomic::Ordering;
use pantile_base::{TableId, Timestamp};
use pantile_store::{BlockState, KeptLinks, Store, StoreError, Tile};

use crate::blocks::all_blocks;
use crate::{CollectorStats, Compaction, Context, Debt, OldVersion, Reclaimer};

use queues::{Emptying, Shard};
use state::Headers;
pub use state::TbCollect;
use turn::{Effort, LONG};

/// Superseded bytes after which a commit does some of the work.
const QUANTUM: u64 = 16 << 10;
/// Survivors that one commit moves at most, in bytes.
const MOST_COPIES: u64 = 1 << 20;
/// Parts of a round that are spent on one shard.
const PARTS: u32 = 16;

impl TbCollect {
    /// Does some of a shard's work, if any is due and no other thread is doing
    /// it.
    fn work(&self, cx: &Context<'_>, shard: &Shard, effort: Effort) -> Result<(), StoreError> {
        let now = cx.registry.now();
        if !shard.is_due(now, cx.store.durable_watermark()) {
            return Ok(());
        }
        let Some(mut queues) = shard.try_lock() else { return Ok(()) };
        self.timed(cx, now, || {
            self.turn(cx, &mut queues, now, effort).map(|due| shard.set_next(due, &queues))
        })
    }

    /// Does a shard's work in short parts, until nothing is left that can be
    /// done now. Returns whether the parts were too few.
    fn work_off(&self, cx: &Context<'_>, shard: &Shard, effort: Effort) -> Result<bool, StoreError> {
        for _ in 0..PARTS {
            let mut queues = shard.lock();
            let before = (queues.frozen.len(), queues.parting.len());
            let now = cx.registry.now();
            let due = self.timed(cx, now, || self.turn(cx, &mut queues, now, effort))?;
            shard.set_next(due, &queues);
            let left = (queues.frozen.len(), queues.parting.len());
            if left == (0, 0) || left == before && !queues.frozen.front().is_some_and(Emptying::is_begun) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether nothing has come of the last rounds, although a state record
    /// has been written since.
    fn is_stuck(&self, cx: &Context<'_>) -> bool {
        let done = CollectorStats { steps: 0, pause_us_max: 0, ..self.stats(cx.store) };
        let mut progress = self.progress.lock();
        if progress.0 != done {
            *progress = (done, cx.registry.now());
        }
        cx.store.durable_watermark() > progress.1
    }

    fn work_off_all(&self, cx: &Context<'_>, effort: Effort) -> Result<bool, StoreError> {
        let mut is_more = false;
        for shard in &self.shards {
            is_more |= self.work_off(cx, shard, effort)?;
        }
        Ok(is_more)
    }
}

impl Reclaimer for TbCollect {
    #[inline]
    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        let superseded = self.note_superseded(cx.store, cx.slot.index(), old.address, at);
        self.owed.add(cx.slot, u64::from(superseded.bytes));
        if self.headers == Headers::Eagerly {
            cx.store.write_header(superseded.block)?;
            self.counters.headers_written(1);
        }
        Ok(())
    }

    /// What a transaction supersedes it owes: it moves survivors in proportion, or a later one of its
    /// slot does.
    #[inline]
    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let Some(owed) = self.owed.take(cx.slot, QUANTUM) else { return Ok(()) };
        self.pacer.owe(owed);
        if self.pacer.is_look_due() {
            self.tidy(cx, false)?;
        }
        let copies = self.pacer.copies_for(owed).clamp(Effort::COMMIT.copies, MOST_COPIES);
        let effort = Effort { copies, ..Effort::COMMIT };
        let first = cx.slot.index();
        (0..self.shards.len()).try_for_each(|n| self.work(cx, self.shard(first + n), effort))
    }

    fn bytes_between_records(&self) -> u64 {
        self.pacer.record_bytes()
    }

    fn background(&self) -> Option<Duration> {
        Some(self.options.epoch)
    }

    fn run_background(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.tidy(cx, false)?;
        let is_more = self.work_off_all(cx, Effort::ROUND)?;
        self.is_more.store(is_more, Ordering::Relaxed);
        Ok(())
    }

    fn debt(&self, cx: &Context<'_>) -> Debt {
        let Some(running) = cx.registry.running_set() else { return Debt::Payable };
        let running = running.epochs(self.epochs);
        // Nothing that began an epoch ago still runs, except this. Nor may others keep what nobody
        // reads: processes whole blocks, and prepared transactions the rows that they have locked.
        let is_free = running.min().0 + LONG >= running.future().0
            && cx.store.holds().is_empty()
            && !cx.registry.has_prepared();
        let janitor = self.janitor.lock();
        let survey = &janitor.survey;
        if self.is_more.load(Ordering::Relaxed) || survey.is_partial() {
            return Debt::More;
        }
        if survey.kept.is_stale {
            let waits_for_space = self.pacer.is_beyond() || self.pacer.is_ending();
            return if waits_for_space { Debt::Space } else { Debt::Payable };
        }
        let (mut is_emptying, mut is_pending) = (false, false);
        for shard in &self.shards {
            let queues = shard.lock();
            let capacity = if self.pacer.is_over() { 0 } else { self.pacer.capacity(self.shards.len()) };
            is_emptying |= queues.is_emptying() || queues.local.bytes > capacity;
            is_pending |= queues.pending.len() > queues.pending_open;
        }
        let is_over = self.pacer.excess() + self.pacer.chunk_excess() > 0;
        let is_choosing = is_over && !survey.is_fruitless(self.pacer.superseded());
        let is_returning = janitor.chunks.is_returning()
            || cx.store.has_spare_chunks(is_over)
            // Where little space is left, it counts towards the reserve, and stays.
            || self.pacer.chunk_excess() > 0 && !self.pacer.is_short() && cx.store.has_free_tail();
        let is_sweeping =
            janitor.sweep.is_under_way() || janitor.sweep.is_worthwhile(cx, self.sweeps_eagerly());
        let is_tidying = janitor.last_full > 0
            || !janitor.tiles.is_empty()
            || !janitor.passed.is_empty()
            || cx.store.kept_tiles() > 0;
        // Lanes that nothing is appended to are given up.
        let is_closing = self.pacer.is_calming()
            || !self.pacer.is_resting() && cx.tuples.waiting_tombstones() > 0
            || cx.store.has_spent(|info| self.is_spent(info))
            || cx.store.has_lane(|info| is_over || self.is_spent(info));
        let is_freeing =
            is_emptying || is_pending || is_choosing || is_returning || is_sweeping || is_closing;
        if is_freeing || is_tidying {
            match (is_free, self.pacer.is_beyond()) {
                (false, _) if !is_closing && self.is_stuck(cx) => Debt::Held,
                (_, true) if is_freeing => Debt::Space,
                _ => Debt::Payable,
            }
        } else if is_over && survey.is_held() || survey.kept.bytes > 0 {
            Debt::Held
        } else {
            Debt::Nothing
        }
    }

    fn compact(
        &self,
        cx: &Context<'_>,
        since: Timestamp,
        emptied: Option<Timestamp>,
    ) -> Result<Option<Compaction>, StoreError> {
        let chosen = {
            let mut janitor = self.janitor.lock();
            let _pin = cx.registry.pin(cx.slot);
            self.close_spent(cx, |_, info| info.last_append < since);
            self.choose_for_compaction(cx, &mut janitor.survey, since)
        };
        {
            let _down = cx.store.pack();
            self.work_off_all(cx, Effort { urgent: true, ..Effort::ROUND })?;
        }
        self.tidy(cx, true)?;
        cx.store.discard_free(usize::MAX, true)?;
        let waiting = self.waiting_of_before(cx, since);
        let emptied = emptied.unwrap_or(Timestamp::MAX);
        let is_returning =
            self.janitor.lock().chunks.is_returning_of(emptied) || cx.store.has_empty_chunks(emptied);
        Ok(chosen.map(|left| Compaction { blocks_left: left.blocks_left + waiting, is_returning, ..left }))
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let now = cx.registry.now();
        {
            let _pin = cx.registry.pin(cx.slot);
            self.compact_now(cx, now);
        }
        for shard in &self.shards {
            let mut queues = shard.lock();
            let due = self.turn(cx, &mut queues, now, Effort::URGENT)?;
            shard.set_next(due, &queues);
        }
        self.tidy(cx, true)
    }

    fn note_end(&self) {
        self.pacer.note_end();
    }

    fn resume(&self, store: &Store) {
        let now = store.durable_watermark();
        for (of, block) in all_blocks(store).enumerate() {
            let Some(info) = store.block_info(block) else { continue };
            let mut queues = self.shard(of).lock();
            if info.state == BlockState::Sealed && store.frozen_on_medium(block) {
                queues.frozen.push_back(Emptying::new(block, now));
            } else if info.obsolete >= self.threshold(info.slots) {
                queues.pending.push_back((block, info.max_ts));
            }
        }
    }

    fn forget(&self, store: &Store, table: TableId) {
        let _chunks = store.hold_chunks();
        for shard in &self.shards {
            shard.lock().retain(|block| store.block_info(block).is_some_and(|i| i.table != table));
        }
    }

    fn stats(&self, store: &Store) -> CollectorStats {
        let mut stats = self.counters.snapshot();
        for shard in &self.shards {
            shard.lock().add_to(&mut stats);
        }
        stats.kept_tiles = store.kept_tiles();
        stats.queue_capacity = self.pacer.capacity_blocks();
        let retired = self.retired_tiles.lock().iter().map(Tile::bytes).sum::<u64>();
        let of_janitor =
            [&self.leaving_tile_bytes, &self.sweep_bytes].map(|bytes| bytes.load(Ordering::Relaxed));
        stats.queue_bytes = retired + of_janitor.iter().sum::<u64>();
        stats
    }
}
