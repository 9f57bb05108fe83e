//! The queues of a shard, and how blocks go from one to the next (TB-Collect
//! 4.3 and 4.4, Algorithm 1).

use std::collections::VecDeque;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::{Epoch, RunningEpochs, Sight};
use pantile_store::{BlockEvent, BlockInfo, BlockRef, BlockState, StoreError, emit};

use super::TbCollect;
use super::emptying::{Emptying, Leaving, Parting, Released};
use crate::CollectorStats;
use crate::Context;

/// Blocks of a queue that one turn looks at.
const MOST_LOOKED_AT: usize = 256;

/// One shard: queues, and when there is something to do.
#[derive(Default)]
pub(super) struct Shard {
    due: AtomicU64,
    pub queues: Mutex<Queues>,
}

impl Shard {
    #[inline]
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.due.load(Ordering::Relaxed) <= now.get()
    }

    pub fn set_due(&self, at: Timestamp) {
        self.due.store(at.get(), Ordering::Relaxed);
    }
}

/// Blocks that wait until the queue is full (`local_gc_queue`, `long_tx_gc_queue`).
#[derive(Default)]
struct Waiting {
    blocks: VecDeque<(BlockRef, u64)>,
    bytes: u64,
    /// When the queue was last full it had this many blocks, which are being handed on.
    full: usize,
}

impl Waiting {
    fn push(&mut self, block: BlockRef, bytes: u64) {
        self.blocks.push_back((block, bytes));
        self.bytes += bytes;
    }

    fn pop(&mut self) -> Option<BlockRef> {
        let (block, bytes) = self.blocks.pop_front()?;
        self.bytes -= bytes;
        self.full = self.full.saturating_sub(1);
        Some(block)
    }

    fn retain(&mut self, keep: impl Fn(BlockRef) -> bool) {
        self.blocks.retain(|&(block, _)| keep(block));
        self.bytes = self.blocks.iter().map(|(_, bytes)| bytes).sum();
        self.full = self.full.min(self.blocks.len());
    }
}

/// The queues.
#[derive(Default)]
pub(super) struct Queues {
    /// `gc_pending_queue`: theta of the block had been superseded by this time.
    pub pending: VecDeque<(BlockRef, Timestamp)>,
    /// `local_gc_queue`: nobody can see what has been superseded.
    local: Waiting,
    /// `long_tx_gc_queue`: the same, while a long transaction bypasses the block.
    long_tx: Waiting,
    /// `local_gc_queue_frozen`: being emptied.
    pub frozen: VecDeque<Emptying>,
    /// As `frozen`, with survivors that could not be moved in this epoch.
    pub held_up: VecDeque<Emptying>,
    /// Empty; waiting until nobody can see into them.
    pub leaving: VecDeque<Leaving>,
    /// The same; waiting until no thread is looking.
    pub parting: VecDeque<Parting>,
    /// Released; waiting until that is durable.
    pub released: VecDeque<Released>,
    /// When blocks were last judged.
    judged: Epoch,
}

impl Queues {
    /// Keeps the blocks of which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(BlockRef) -> bool) {
        self.pending.retain(|&(b, _)| keep(b));
        self.local.retain(&keep);
        self.long_tx.retain(&keep);
        self.frozen.retain(|e| keep(e.block));
        self.held_up.retain(|e| keep(e.block));
        self.leaving.retain(|l| keep(l.block));
        self.parting.retain(|p| keep(p.leaving.block));
    }

    pub fn add_to(&self, stats: &mut CollectorStats) {
        stats.pending_blocks += self.pending.len() as u64;
        stats.queued_blocks += self.local.blocks.len() as u64;
        stats.long_tx_blocks += self.long_tx.blocks.len() as u64;
        let emptying = self.frozen.len() + self.held_up.len();
        stats.frozen_blocks +=
            (emptying + self.leaving.len() + self.parting.len() + self.released.len()) as u64;
    }

    fn queue(&mut self, block: BlockRef, info: &BlockInfo, sight: Sight) {
        let (queue, event) = match sight {
            Sight::Bypassed => (&mut self.long_tx, BlockEvent::Bypassed),
            Sight::Obsolete | Sight::InUse => (&mut self.local, BlockEvent::Queued),
        };
        queue.push(block, info.bytes);
        emit(event, block, info.table);
    }

    pub fn queue_for_compaction(&mut self, block: BlockRef, info: &BlockInfo) {
        self.queue(block, info, Sight::Obsolete);
    }

    fn of(&mut self, sight: Sight) -> &mut Waiting {
        if sight == Sight::Bypassed { &mut self.long_tx } else { &mut self.local }
    }
}

impl TbCollect {
    /// Does a bounded part of a shard's work; returns when there will be more. If
    /// it is `urgent`, queues need not be full.
    pub(super) fn turn(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        now: Timestamp,
        urgent: bool,
    ) -> Result<Timestamp, StoreError> {
        // Keeps blocks and chunks that the queues name while we look at them.
        let _pin = cx.registry.pin(cx.slot);
        self.free_released(cx, queues, now);
        let epoch = self.epochs.of(now);
        let is_full = queues.local.full + queues.long_tx.full > 0;
        if (epoch > queues.judged || is_full || urgent)
            && let Some(running) = cx.registry.running_set()
        {
            let running = running.epochs(self.epochs);
            if epoch > queues.judged || urgent {
                queues.judged = epoch;
                let held_up = std::mem::take(&mut queues.held_up);
                queues.frozen.extend(held_up);
                self.judge_pending(cx, queues, &running);
                self.judge_long_tx(cx, queues, &running);
                self.let_leave(cx, queues, &running);
            }
            self.freeze_full(cx, queues, &running, Sight::Obsolete, urgent);
            self.freeze_full(cx, queues, &running, Sight::Bypassed, urgent);
        }
        self.release_parting(cx, queues)?;
        self.empty_frozen(cx, queues, urgent)?;
        let more = !queues.frozen.is_empty()
            || !queues.parting.is_empty()
            || queues.local.full + queues.long_tx.full > 0;
        Ok(if more { Timestamp::ZERO } else { self.epochs.end(now) })
    }

    /// `gc_pending_queue`: a block goes on to the next queue once nobody can see
    /// the theta that had been superseded. Versions superseded since then do not
    /// delay it: the block leaves only when nobody can see any of it.
    fn judge_pending(&self, cx: &Context<'_>, queues: &mut Queues, running: &RunningEpochs) {
        for _ in 0..queues.pending.len().min(MOST_LOOKED_AT) {
            let Some((block, at)) = queues.pending.pop_front() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            let sight = running.sight(self.epochs.of(info.min_ts), self.epochs.of(at));
            match info.state {
                BlockState::Open => queues.pending.push_back((block, at)),
                BlockState::Sealed => match sight {
                    Sight::InUse => queues.pending.push_back((block, at)),
                    Sight::Bypassed if !self.options.bypass => queues.pending.push_back((block, at)),
                    sight => queues.queue(block, &info, sight),
                },
                BlockState::Free | BlockState::Frozen | BlockState::Released => {}
            }
        }
    }

    /// `long_tx_gc_queue`: blocks are like any other once the long
    /// transaction has ended (Algorithm 2, lines 2 to 7).
    fn judge_long_tx(&self, cx: &Context<'_>, queues: &mut Queues, running: &RunningEpochs) {
        for _ in 0..queues.long_tx.blocks.len().min(MOST_LOOKED_AT) {
            let Some(block) = queues.long_tx.pop() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            // The transaction that bypasses it has ended, or not.
            if self.epochs.of(info.min_ts) > running.min() {
                queues.long_tx.push(block, info.bytes);
            } else {
                queues.queue(block, &info, Sight::Obsolete);
            }
        }
    }

    /// Hands on the blocks of a full queue, some at a time (Algorithm 2, lines 8
    /// to 12). Blocks that cannot be emptied now stay.
    fn freeze_full(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        running: &RunningEpochs,
        sight: Sight,
        urgent: bool,
    ) {
        let capacity = if urgent { 0 } else { self.pacer.capacity(self.shards.len()) };
        let durable = cx.store.durable_watermark();
        let queue = queues.of(sight);
        if queue.full == 0 && queue.bytes > capacity {
            queue.full = queue.blocks.len();
        }
        for _ in 0..queue.full.min(MOST_LOOKED_AT) {
            let Some(block) = queues.of(sight).pop() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            // Survivors must not be needed as evidence (T1), and a long reader of
            // survivors must not keep the block beside its copies.
            if info.last_append <= durable && self.can_be_left(running, &info) {
                queues.frozen.push_back(block.into());
            } else {
                queues.of(sight).push(block, info.bytes);
            }
        }
    }

    /// Whether the block can go soon after its survivors have left: no
    /// transaction that may be looking at one of them has been running for long.
    pub(super) fn can_be_left(&self, running: &RunningEpochs, info: &BlockInfo) -> bool {
        const LONG: u64 = 2;
        if info.obsolete == info.slots {
            return true;
        }
        let recent = Epoch(running.future().0.saturating_sub(LONG));
        let min = self.epochs.of(info.min_ts);
        min > recent || running.next(min) >= recent
    }
}
