//! One turn of work on a shard: how blocks go from one queue to the next (TB-Collect 4.3 and 4.4,
//! Algorithm 1).

use pantile_base::Timestamp;
use pantile_cc::{RunningSet, Sight};
use pantile_store::{BlockInfo, BlockRef, BlockState, StoreError};

use super::TbCollect;
use super::queues::{Emptying, Queues};
use crate::Context;
use crate::options::Pacing;

/// How much one turn does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Effort {
    /// Bytes of survivors to move.
    pub copies: u64,
    /// Number of blocks to look at in each queue.
    pub looks: usize,
    /// Number of blocks to release.
    pub releases: usize,
    /// Queues need not be full, and nothing is put off.
    pub urgent: bool,
}

impl Effort {
    /// What a commit does at least.
    pub const COMMIT: Self = Self { copies: 1 << 12, looks: 256, releases: 4, urgent: false };
    /// A part of a round. It is short, since other threads wait for its pin.
    pub const ROUND: Self = Self { copies: 1 << 18, looks: 1 << 16, releases: 1 << 10, urgent: false };
    /// When there is no space left.
    pub const URGENT: Self = Self { copies: u64::MAX, looks: 1 << 16, releases: 1 << 10, urgent: true };
}

/// Epochs after which a transaction has been running for long.
pub(super) const LONG: u64 = 2;

impl TbCollect {
    /// Does a bounded part of a shard's work; returns when there will be more.
    pub(super) fn turn(
        &self,
        cx: &Context<'_>,
        queues: &mut Queues,
        now: Timestamp,
        effort: Effort,
    ) -> Result<Timestamp, StoreError> {
        let Effort { looks, urgent, .. } = effort;
        // Protects the blocks and chunks that the queues name while this turn
        // looks at them.
        let _pin = cx.registry.pin(cx.slot);
        self.free_released(cx, queues, now);
        let (epoch, durable) = (self.epochs.of(now), cx.store.durable_watermark());
        let is_new = epoch > queues.judged || durable > queues.durable || urgent;
        let is_full = queues.local.full + queues.long_tx.full > 0;
        if (is_new || is_full)
            && let Some(running) = cx.registry.running_set()
        {
            if is_new {
                queues.durable = durable;
                self.let_leave(cx, queues, &running, looks);
            }
            if epoch > queues.judged || urgent {
                queues.judged = epoch;
                let held_up = std::mem::take(&mut queues.held_up);
                queues.frozen.extend(held_up);
                self.judge_pending(cx, queues, &running, looks);
                self.judge_long_tx(cx, queues, &running, looks);
            }
            self.freeze_full(cx, queues, &running, (Sight::Obsolete, now), effort);
            self.freeze_full(cx, queues, &running, (Sight::Bypassed, now), effort);
        }
        self.release_parting(cx, queues, effort.releases)?;
        self.empty_frozen(cx, queues, effort)?;
        let more = !queues.frozen.is_empty()
            || !queues.parting.is_empty()
            || queues.local.full + queues.long_tx.full > 0;
        Ok(if more { Timestamp::ZERO } else { self.epochs.end(now) })
    }

    /// `gc_pending_queue`: a block moves to the next queue once no transaction
    /// can see the theta that had been superseded. Versions superseded since
    /// then do not delay it: the block leaves only when no transaction can see
    /// any of it.
    fn judge_pending(&self, cx: &Context<'_>, queues: &mut Queues, running: &RunningSet, looks: usize) {
        queues.pending_open = 0;
        for _ in 0..queues.pending.len().min(looks) {
            let Some((block, at)) = queues.pending.pop_front() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            let sight = running.sight(info.min_ts, at);
            match info.state {
                BlockState::Open => {
                    queues.pending_open += 1;
                    queues.pending.push_back((block, at));
                }
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
    fn judge_long_tx(&self, cx: &Context<'_>, queues: &mut Queues, running: &RunningSet, looks: usize) {
        for _ in 0..queues.long_tx.blocks.len().min(looks) {
            let Some(block) = queues.long_tx.pop() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            // The transaction that bypasses it may or may not have ended.
            if info.min_ts > running.min() {
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
        running: &RunningSet,
        (sight, now): (Sight, Timestamp),
        effort: Effort,
    ) {
        let is_over = self.options.pacing == Pacing::Adaptive && self.pacer.is_over();
        let may_wait = !effort.urgent && !is_over;
        let capacity = if may_wait { self.pacer.capacity(self.shards.len()) } else { 0 };
        let durable = cx.store.durable_watermark();
        let queue = queues.of(sight);
        if queue.full == 0 && queue.bytes > capacity {
            queue.full = queue.blocks.len();
        }
        for _ in 0..queue.full.min(effort.looks) {
            let Some(block) = queues.of(sight).pop() else { return };
            let Some(info) = cx.store.block_info(block) else { continue };
            // Survivors must not be needed as evidence (T1), and a long reader
            // of survivors must not keep the block beside its copies.
            if info.last_append <= durable && self.can_be_left(cx, running, (block, &info)) {
                queues.frozen.push_back(Emptying::new(block, now));
            } else {
                queues.of(sight).push(block, info.bytes);
            }
        }
    }

    /// Whether the block can go soon after its survivors have left: no transaction that may be
    /// looking at one of them, and no other process that may read the block, has been running for
    /// long.
    pub(super) fn can_be_left(
        &self,
        cx: &Context<'_>,
        running: &RunningSet,
        (block, info): (BlockRef, &BlockInfo),
    ) -> bool {
        let recent = self.recent(running);
        let is_seen = || info.min_ts < recent && running.may_see(info.min_ts, recent);
        info.obsolete == info.slots || !is_seen() && !cx.store.holds().keep_since(block, recent)
    }

    /// A transaction or a process that began before this has been running for long.
    pub(super) fn recent(&self, running: &RunningSet) -> Timestamp {
        self.epochs.start_before(running.future(), LONG)
    }

    /// Whether a transaction that has been running for long may see what was
    /// superseded in a block.
    pub(super) fn is_held(&self, running: &RunningSet, info: &BlockInfo) -> bool {
        running.sight(info.min_ts, info.seen_until.min(self.recent(running))) == Sight::InUse
    }
}
