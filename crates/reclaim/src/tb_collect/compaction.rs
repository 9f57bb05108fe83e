//! Compaction: empties the blocks that are most worth it, when more space is taken than promised,
//! or when little is left.
//!
//! Emptying a block with the dead share `d` copies `(1 - d) / d` bytes for each byte that it frees.
//! This price falls if the collector waits. The block itself shows how fast: the share `d` has died
//! in the time since its last append. For a given space, the cost is least if all blocks are
//! emptied at the same *marginal* price. The rule `worth` follows from this (`docs/design.md`,
//! "Space"). Cost-benefit (Rosenblum and Ousterhout 1992, section 3.6) comes near it where space is
//! scarce.
//!
//! The space of emptied blocks may be scattered. If nothing else helps, whole chunks are emptied,
//! so that they can go back to the system.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_base::limits::CHUNK_BYTES;
use pantile_cc::{RunningSet, Sight};
use pantile_store::BlockState;

use super::TbCollect;
use super::survey::{Candidate, ChunkUse, Kept, Survey};
use crate::blocks::after;
use crate::{Compaction, Context};

/// Number of blocks examined in one round.
const STEP: u32 = 1 << 14;
/// Share of a block that must be dead. Below it, ten bytes and more would be
/// written for each byte won.
const LEAST_DEAD: f64 = 0.1;
/// The same when no space is left at all, and the number of blocks then.
const LEAST_DEAD_WHEN_FULL: f64 = 0.125;
const MOST_WHEN_FULL: usize = 16;
/// Survivors that blocks being emptied may have, at least and as a share of the
/// used bytes: their copies take space before the blocks are free.
const LEAST_COPIES: u64 = 16 << 20;
const COPIES_SHARE: u64 = 8;
/// Share of a chunk that may have to be copied to empty the chunk.
const MOST_OF_CHUNK: f64 = 0.75;
/// Epochs for which what is kept may be out of date, at least: a survey looks at all blocks.
const STALE_FOR: u64 = 5;
/// Bytes that emptying chunks must bring.
const LEAST_WON: u64 = CHUNK_BYTES / 4 * 3;

/// The bytes of the blocks in the queues.
#[derive(Default)]
struct Queued {
    /// What those bring that will be emptied, and what is copied for it.
    dead: u64,
    alive: u64,
    /// What is dead in those that stay.
    kept: u64,
}

impl TbCollect {
    /// Examines blocks if space is to be won, and chooses some when all have
    /// been examined.
    pub(super) fn survey(&self, cx: &Context<'_>, survey: &mut Survey, now: Timestamp) {
        let is_old = || self.epochs.of(now).0 >= self.epochs.of(survey.kept.at).0 + STALE_FOR;
        let is_stale = survey.kept.is_stale && (self.pacer.is_ending() || is_old());
        let is_due = self.pacer.excess() + self.pacer.chunk_excess() > 0 || is_stale;
        if !is_due && !survey.is_partial() {
            (survey.fruitless, survey.is_held) = (None, false);
            return;
        }
        for _ in 0..STEP {
            if let Some(block) = cx.store.block_at(survey.at.0, survey.at.1)
                && let Some(info) = cx.store.block_info(block)
            {
                survey.examine(survey.at.0, block, &info, now);
            }
            let next = after(cx.store, survey.at);
            survey.at = next.unwrap_or_default();
            if next.is_none() {
                self.choose(cx, survey, now);
                survey.candidates.clear();
                survey.chunks.clear();
                return;
            }
        }
    }

    /// Chooses blocks to empty, the most worthwhile first, until enough space
    /// is on its way.
    fn choose(&self, cx: &Context<'_>, survey: &mut Survey, now: Timestamp) {
        let Some(running) = cx.registry.running_set() else { return };
        survey.is_held = false;
        survey
            .chosen
            .retain(|&block| cx.store.block_info(block).is_some_and(|info| info.state == BlockState::Sealed));
        let Queued { dead: coming, alive: copies, kept } = self.queued(cx, &running);
        let known = survey.kept.bytes;
        survey.kept = self.kept(cx, &running, &survey.candidates, kept);
        if survey.kept.bytes != known {
            self.pace(cx, survey.kept.bytes, now);
        }
        let mut wanted = self.pacer.excess().saturating_sub(coming);
        let chunks = self.pacer.chunk_excess();
        let most_copies = (cx.store.used_bytes() / COPIES_SHARE).max(LEAST_COPIES);
        let mut room = most_copies.saturating_sub(copies);
        let mut candidates = std::mem::take(&mut survey.candidates);
        candidates.sort_unstable_by(|a, b| b.worth.total_cmp(&a.worth));
        let (mut dead, mut alive) = (0, 0);
        for candidate in candidates.iter().filter(|c| c.has_dead(LEAST_DEAD)) {
            if wanted == 0 || room == 0 {
                break;
            }
            if self.choose_block(cx, survey, &running, candidate) {
                wanted = wanted.saturating_sub(candidate.dead);
                room = room.saturating_sub(candidate.alive);
                (dead, alive) = (dead + candidate.dead, alive + candidate.alive);
            }
        }
        if dead > 0 {
            self.pacer.note_price(dead, alive);
        } else if coming == 0 {
            let is_emptying = chunks > 0 && self.empty_chunks(cx, survey, &running, &candidates, chunks);
            survey.fruitless = (!is_emptying).then(|| self.pacer.superseded());
        }
    }

    /// Chooses the blocks of the chunks with the fewest live bytes. Returns
    /// whether there are any.
    fn empty_chunks(
        &self,
        cx: &Context<'_>,
        survey: &mut Survey,
        running: &RunningSet,
        candidates: &[Candidate],
        wanted: u64,
    ) -> bool {
        let most = (CHUNK_BYTES as f64 * MOST_OF_CHUNK) as u64;
        // The first one stays in any case.
        let is_idle = |number: u32, used: &ChunkUse| number > 0 && !used.is_busy && used.alive <= most;
        let idle = survey.chunks.iter().filter(|&(&number, used)| is_idle(number, used));
        let mut chunks: Vec<_> = idle.map(|(&number, used)| (used.alive, number)).collect();
        chunks.sort_unstable();
        // Emptying chunks fills others in part.
        let (mut won, mut chosen) = (0, HashSet::<_, FixedState>::default());
        for (alive, number) in chunks {
            if won >= wanted {
                break;
            }
            won += CHUNK_BYTES - alive;
            chosen.insert(number);
        }
        let (taken, _) = cx.store.taken_bytes();
        if won < LEAST_WON || !survey.vain.may_try(self.pacer.superseded(), taken) {
            return false;
        }
        let closed = self.close_spent(cx, |block, _| chosen.contains(&block.chunk()));
        let closed = closed.into_iter().filter_map(|block| {
            cx.store.block_info(block).map(|info| Candidate::new(block, &info, Timestamp::ZERO))
        });
        let sealed = candidates.iter().filter(|c| chosen.contains(&c.chunk)).copied();
        let blocks = sealed.chain(closed.collect::<Vec<_>>());
        let is_any = blocks.filter(|c| self.choose_block(cx, survey, running, c)).count() > 0;
        survey.vain.tried(is_any);
        is_any
    }

    fn choose_block(
        &self,
        cx: &Context<'_>,
        survey: &mut Survey,
        running: &RunningSet,
        candidate: &Candidate,
    ) -> bool {
        let block = candidate.block;
        let Some(info) = cx.store.block_info(block) else { return false };
        if info.state != BlockState::Sealed || info.obsolete >= self.threshold(info.slots) {
            return false;
        }
        if !self.can_be_left(cx, running, (block, &info)) {
            survey.is_held = true;
            return false;
        }
        let shard = self.shard(survey.chosen.len());
        shard.lock().queue(block, &info, Sight::Obsolete);
        shard.set_due(Timestamp::ZERO);
        survey.chosen.insert(block)
    }

    /// The bytes of the blocks in the queues.
    fn queued(&self, cx: &Context<'_>, running: &RunningSet) -> Queued {
        let (mut of, mut met) = (Queued::default(), HashSet::<_, FixedState>::default());
        let recent = self.recent(running);
        for shard in &self.shards {
            shard.lock().for_each(|block, is_pending| {
                // A block that is chosen to be emptied may come to theta meanwhile, and is queued twice.
                let Some(info) = cx.store.block_info(block).filter(|_| met.insert(block)) else { return };
                let candidate = Candidate::new(block, &info, Timestamp::ZERO);
                let stays = || {
                    !self.can_be_left(cx, running, (block, &info))
                        || is_pending && self.is_held(running, &info)
                };
                let is_held = cx.store.holds().cover_since(block, recent);
                if is_held || info.state == BlockState::Sealed && stays() {
                    of.kept += candidate.dead;
                } else if !is_pending || info.state != BlockState::Open {
                    of.dead += candidate.dead;
                    of.alive += candidate.alive;
                }
            });
        }
        of
    }

    /// What is kept as long as those go on who have been running for long: so much of the blocks in
    /// the queues, and what is dead in others.
    fn kept(&self, cx: &Context<'_>, running: &RunningSet, others: &[Candidate], of_queued: u64) -> Kept {
        let recent = self.recent(running);
        let mut kept = Kept {
            bytes: 0,
            at: cx.registry.now(),
            is_stale: false,
            readers: running.below(recent).into(),
            processes: cx.store.holds().of_before(recent),
        };
        if kept.readers.is_empty() && kept.processes.is_empty() {
            return kept;
        }
        kept.bytes = of_queued;
        for candidate in others.iter().filter(|candidate| candidate.dead > 0) {
            let info = cx.store.block_info(candidate.block);
            let stays = info.is_some_and(|info| {
                info.obsolete < self.threshold(info.slots)
                    && !self.can_be_left(cx, running, (candidate.block, &info))
            });
            kept.bytes += if stays { candidate.dead } else { 0 };
        }
        kept
    }

    /// How many bytes are kept, as far as the last survey has seen. If somebody has ended who kept them, there will be
    /// another one soon.
    pub(super) fn still_kept(&self, cx: &Context<'_>, survey: &mut Survey) -> u64 {
        if survey.kept.bytes > 0
            && let Some(running) = cx.registry.running_set()
        {
            let recent = self.recent(&running);
            let (readers, processes) = (running.below(recent), cx.store.holds().of_before(recent));
            let goes_on = survey.kept.readers.iter().all(|at| readers.contains(at))
                && survey.kept.processes.iter().all(|number| processes.contains(number));
            survey.kept.is_stale |= !goes_on;
        }
        survey.kept.bytes
    }

    /// Number of blocks of before `since` that are queued to be emptied or are being
    /// emptied.
    pub(super) fn waiting_of_before(&self, cx: &Context<'_>, since: Timestamp) -> u64 {
        let _pin = cx.registry.pin(cx.slot);
        let mut waiting = 0;
        for shard in &self.shards {
            shard.lock().for_each(|block, is_pending| {
                let info = cx.store.block_info(block).filter(|_| !is_pending);
                waiting += u64::from(info.is_some_and(|info| info.last_append < since));
            });
        }
        waiting
    }

    /// Chooses blocks to empty when no space is left at all.
    pub(super) fn compact_now(&self, cx: &Context<'_>, now: Timestamp) {
        let Some(running) = cx.registry.running_set() else { return };
        let mut survey = Survey::default();
        survey.examine_all(cx, now);
        let mut candidates = std::mem::take(&mut survey.candidates);
        candidates.retain(|c| c.has_dead(LEAST_DEAD_WHEN_FULL));
        candidates.sort_unstable_by_key(|c| std::cmp::Reverse(c.dead));
        let chosen = candidates.iter().filter(|c| self.choose_block(cx, &mut survey, &running, c));
        let _ = chosen.take(MOST_WHEN_FULL).count();
    }

    /// Chooses blocks to empty because the database is being compacted: those
    /// of before `since` that have anything dead, and those whose contents fit
    /// into free blocks below them, unless a long reader sees them. Returns what
    /// is left to choose; `None` if a transaction is just beginning, so that
    /// nothing could be chosen.
    pub(super) fn choose_for_compaction(
        &self,
        cx: &Context<'_>,
        survey: &mut Survey,
        since: Timestamp,
    ) -> Option<Compaction> {
        let mut left = Compaction::default();
        let running = cx.registry.running_set()?;
        survey.restart(cx);
        survey.examine_all(cx, cx.registry.now());
        let mut candidates = std::mem::take(&mut survey.candidates);
        candidates.retain(|c| cx.store.block_info(c.block).is_some_and(|i| i.last_append < since));
        // From the end of the medium down. What is copied for other reasons takes
        // free blocks as well.
        candidates.sort_unstable_by_key(|c| std::cmp::Reverse(c.block.place()));
        let copies = self.queued(cx, &running).alive;
        let places = cx.store.free_places();
        let of_dead = candidates.iter().filter(|c| c.dead > 0).map(|c| c.alive).sum::<u64>();
        let mut moved = copies + of_dead;
        // What a long reader sees would stay beside its copies.
        let is_free = |c: &Candidate| {
            let info = cx.store.block_info(c.block);
            info.is_some_and(|info| self.can_be_left(cx, &running, (c.block, &info)))
        };
        candidates.retain(|c| {
            let fits = || moved + c.alive <= cx.store.free_below(&places, c.block);
            let goes_down = c.dead == 0 && is_free(c) && fits();
            moved += if goes_down { c.alive } else { 0 };
            goes_down || c.dead > 0
        });
        let mut room = (cx.store.used_bytes() / COPIES_SHARE).max(LEAST_COPIES).saturating_sub(copies);
        for candidate in &candidates {
            if room == 0 || !self.choose_block(cx, survey, &running, candidate) {
                left.blocks_left += 1;
                left.bytes_left += candidate.dead + candidate.alive;
            } else {
                room = room.saturating_sub(candidate.alive);
            }
        }
        Some(left)
    }
}
