//! Compaction: when space is short, blocks below theta are emptied too.
//!
//! Blocks that stay between half and theta for long hold space that will not
//! come back by itself. They are emptied too, but only when space is short (the
//! hybrid of TB-Collect 6.2). The best bargain comes first, by the cost-benefit
//! rule of log-structured file systems (Rosenblum and Ousterhout 1992, section
//! 3.6): the space won, times the time for which the block has been left alone,
//! divided by the cost of moving the rest.
//!
//! Waiting "for long" keeps compaction out of the way. Under heavy writes,
//! blocks pass from half to theta before the wait is over. Otherwise there is
//! time to wait.

use pantile_base::Timestamp;
use pantile_cc::{Clock, Sight};
use pantile_store::{BlockInfo, BlockRef, BlockState};

use super::TbCollect;
use super::state::Survey;
use crate::Context;
use crate::blocks::{after, all_blocks};

/// Number of epochs for which at least half of a block must have been obsolete.
const LONG: u32 = 50;
/// Number of blocks examined in one step.
const STEP: u32 = 128;
/// Number of blocks chosen after all have been examined.
const MOST: usize = 8;
/// Share of a block that must be obsolete when no space is left at all.
const LEAST_OBSOLETE: f64 = 0.125;

impl TbCollect {
    /// Examines some blocks, and chooses some when all have been examined.
    pub(super) fn survey(&self, cx: &Context<'_>, survey: &mut Survey, now: Timestamp) {
        for _ in 0..STEP {
            if let Some(block) = cx.store.block_at(survey.at.0, survey.at.1) {
                survey.bargains.extend(self.bargain(cx, block, now));
            }
            let next = after(cx.store, survey.at);
            survey.at = next.unwrap_or_default();
            if next.is_none() {
                let bargains = std::mem::take(&mut survey.bargains);
                if self.pacer.is_compaction_due() {
                    self.choose(cx, bargains, MOST, now);
                }
                return;
            }
        }
    }

    fn bargain(&self, cx: &Context<'_>, block: BlockRef, now: Timestamp) -> Option<(f64, BlockRef)> {
        let info = cx.store.block_info(block)?;
        if !self.is_compactable(&info) || info.obsolete * 2 < info.slots {
            return None;
        }
        let Some(since) = info.half_since else {
            cx.store.note_half(block, now);
            return None;
        };
        let age = Clock::duration(now.tick().saturating_sub(since.tick()));
        (age >= self.options.epoch * LONG).then(|| (worth(&info, age.as_secs_f64()), block))
    }

    fn is_compactable(&self, info: &BlockInfo) -> bool {
        info.state == BlockState::Sealed && info.obsolete < self.threshold(info.slots)
    }

    /// Chooses blocks to empty when no space is left at all.
    pub(super) fn compact_now(&self, cx: &Context<'_>, now: Timestamp) {
        let bargains = all_blocks(cx.store).filter_map(|block| {
            let info = cx.store.block_info(block).filter(|info| self.is_compactable(info))?;
            let enough = f64::from(info.obsolete) >= LEAST_OBSOLETE * f64::from(info.slots);
            enough.then(|| (worth(&info, 1.0), block))
        });
        self.choose(cx, bargains.collect(), 2 * MOST, now);
    }

    fn choose(&self, cx: &Context<'_>, mut bargains: Vec<(f64, BlockRef)>, most: usize, now: Timestamp) {
        let Some(running) = cx.registry.running_set() else { return };
        let running = running.epochs(self.epochs);
        bargains.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = most;
        for (_, block) in bargains {
            let info = cx.store.block_info(block).filter(|info| self.can_be_left(&running, info));
            let Some(info) = info else { continue };
            // A block that has to wait is not chosen again soon.
            cx.store.note_half(block, now);
            let shard = self.shard(cx.slot.index() + left);
            shard.queues.lock().queue(block, &info, Sight::Obsolete);
            shard.set_due(Timestamp::ZERO);
            left -= 1;
            if left == 0 {
                return;
            }
        }
    }
}

fn worth(info: &BlockInfo, age: f64) -> f64 {
    let obsolete = f64::from(info.obsolete) / f64::from(info.slots);
    obsolete * age / (2.0 - obsolete)
}
