//! A turn at a shard: how blocks go from one queue to the next (TB-Collect 4.3
//! and 4.4, Algorithm 1).

use pantile_base::Timestamp;
use pantile_cc::{Epoch, RunningEpochs, Sight};
use pantile_store::{BlockInfo, BlockState, StoreError};

use super::TbCollect;
use super::queues::Queues;
use crate::Context;

/// Number of blocks of a queue that one turn looks at.
const MOST_LOOKED_AT: usize = 256;

impl TbCollect {
    /// Does a bounded part of a shard's work; returns when there will be more.
    /// If the turn is `urgent`, queues need not be full.
    pub(super) fn turn(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        now: Timestamp,
        urgent: bool,
    ) -> Result<Timestamp, StoreError> {
        // Protects the blocks and chunks that the queues name while this turn
        // looks at them.
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

    /// `gc_pending_queue`: a block moves to the next queue once no transaction
    /// can see the theta that had been superseded. Versions superseded since
    /// then do not delay it: the block leaves only when no transaction can see
    /// any of it.
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
                BlockState::Free | BlockState::Frozen | BlockState::Released | BlockState::Record => {}
            }
        }
    }

    /// `long_tx_gc_queue`: once the long transaction has ended, its blocks are
    /// treated like all others (Algorithm 2, lines 2 to 7).
    fn judge_long_tx(&self, cx: &Context<'_>, queues: &mut Queues, running: &RunningEpochs) {
        for _ in 0..queues.long_tx.blocks.len().min(MOST_LOOKED_AT) {
            let Some(block) = queues.long_tx.pop() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            // The transaction that bypasses it may or may not have ended.
            if self.epochs.of(info.min_ts) > running.min() {
                queues.long_tx.push(block, info.bytes);
            } else {
                queues.queue(block, &info, Sight::Obsolete);
            }
        }
    }

    /// Passes on the blocks of a full queue, some at a time (Algorithm 2, lines
    /// 8 to 12). Blocks that cannot be emptied now stay.
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
            // Survivors must not be needed as evidence (T1), and a long reader
            // of survivors must not keep the block beside its copies.
            if info.last_append <= durable && self.can_be_left(running, &info) {
                queues.frozen.push_back(block.into());
            } else {
                queues.of(sight).push(block, info.bytes);
            }
        }
    }

    /// Whether the block can go soon after its survivors have left: no
    /// transaction that may be looking at one of them has been running for
    /// long.
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
