//! A survey of all blocks: what it would be worth to empty each.

use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_cc::Clock;
use pantile_store::{BlockInfo, BlockRef, BlockState};

use crate::Context;
use crate::blocks::{BlockPosition, after};

/// A block that can be emptied.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub block: BlockRef,
    pub chunk: u32,
    pub worth: f64,
    pub dead: u64,
    pub alive: u64,
}

/// What is used of a chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ChunkUse {
    pub alive: u64,
    /// A block of it is being emptied.
    pub is_busy: bool,
}

/// A look at all blocks, in parts.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The place to continue at.
    pub at: BlockPosition,
    pub candidates: Vec<Candidate>,
    pub chunks: HashMap<u32, ChunkUse, FixedState>,
    /// Blocks that were chosen and are not frozen yet.
    pub chosen: HashSet<BlockRef, FixedState>,
    /// What had been superseded when the last look found nothing to do.
    pub fruitless: Option<u64>,
    /// Chunks that were emptied to no avail.
    pub vain: Vain,
    /// Whether it left out blocks that running transactions see into.
    pub is_held: bool,
    pub kept: Kept,
}

/// What is dead in blocks that cannot be left, and for whom.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub bytes: u64,
    /// When that was added up.
    pub at: Timestamp,
    /// Somebody has ended since for whom it was kept.
    pub is_stale: bool,
    /// Where those transactions read that have been running for long.
    pub readers: Vec<Timestamp>,
    /// The numbers of the holds for other processes.
    pub processes: Vec<u64>,
}

/// How often chunks have been emptied since it last brought anything: what is
/// left may fit nowhere else.
#[derive(Debug, Default)]
pub(super) struct Vain {
    superseded: u64,
    taken: u64,
    tries: u32,
}

impl Vain {
    /// Tries after which nothing will come of another, unless something has
    /// been superseded. The space of the last one may still be on its way.
    const MOST: u32 = 3;

    /// Whether it may be tried again with so much superseded and taken.
    pub fn may_try(&mut self, superseded: u64, taken: u64) -> bool {
        if superseded != self.superseded || taken < self.taken {
            *self = Self { superseded, taken, tries: 0 };
        }
        self.tries < Self::MOST
    }

    /// Notes a try, if there were blocks to empty.
    pub fn tried(&mut self, is_any: bool) {
        self.tries += u32::from(is_any);
    }
}

impl Survey {
    /// Whether a look is under way.
    pub fn is_partial(&self) -> bool {
        self.at != BlockPosition::default()
    }

    /// Whether another look would find nothing while no more than this has
    /// been superseded.
    pub fn is_fruitless(&self, superseded: u64) -> bool {
        self.fruitless == Some(superseded)
    }

    /// Whether the last look left out blocks that running transactions see
    /// into.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Forgets what a look has found so far.
    pub fn restart(&mut self, cx: &Context<'_>) {
        self.at = BlockPosition::default();
        self.candidates.clear();
        self.chunks.clear();
        self.is_held = false;
        self.chosen
            .retain(|&block| cx.store.block_info(block).is_some_and(|info| info.state == BlockState::Sealed));
    }

    pub fn examine_all(&mut self, cx: &Context<'_>, now: Timestamp) {
        let places = std::iter::successors(Some(BlockPosition::default()), |at| after(cx.store, *at));
        for (chunk, index) in places {
            if let Some(block) = cx.store.block_at(chunk, index)
                && let Some(info) = cx.store.block_info(block)
            {
                self.examine(chunk, block, &info, now);
            }
        }
    }

    pub fn examine(&mut self, chunk: u32, block: BlockRef, info: &BlockInfo, now: Timestamp) {
        let used = self.chunks.entry(chunk).or_default();
        let candidate = Candidate { chunk, ..Candidate::new(block, info, now) };
        used.alive += candidate.alive;
        match info.state {
            BlockState::Sealed if !self.chosen.contains(&block) => self.candidates.push(candidate),
            // It is closed when its chunk is emptied, unless it is being filled.
            BlockState::Open => {}
            _ => used.is_busy = true,
        }
    }
}

impl Candidate {
    pub fn new(block: BlockRef, info: &BlockInfo, now: Timestamp) -> Self {
        let share = f64::from(info.obsolete) / f64::from(info.slots);
        let dead = (info.bytes as f64 * share) as u64;
        let age = Clock::duration(now.tick().saturating_sub(info.last_append.tick()));
        Self { block, chunk: 0, worth: worth(share, age.as_secs_f64()), dead, alive: info.bytes - dead }
    }

    pub fn has_dead(&self, least: f64) -> bool {
        self.dead as f64 >= least * (self.dead + self.alive) as f64
    }
}

/// What emptying a block is worth of which `dead` has died in `age` seconds:
/// the reciprocal of the marginal price.
pub(super) fn worth(dead: f64, age: f64) -> f64 {
    if dead >= 1.0 {
        return f64::INFINITY;
    }
    let alive = 1.0 - dead;
    if dead <= 0.0 { 0.0 } else { age.max(1e-3) * (dead / (-alive.ln() * alive) - 1.0) }
}

#[cfg(test)]
mod tests {
    use super::worth;

    /// Two kinds of blocks whose versions die at different rates are worth the
    /// same exactly where their marginal prices are equal.
    #[test]
    fn worth_is_the_reciprocal_of_the_marginal_price() {
        // The cost of updates at `rate`, and the space, of a kind of which the
        // share `d` is dead when its blocks are emptied.
        let cost = |rate: f64, d: f64| rate / d;
        let space = |d: f64| -(1.0 - d).ln() / d;
        for rate in [0.1, 1.0, 30.0] {
            for d in [0.2, 0.5, 0.8, 0.95] {
                let step = 1e-6;
                let price = (cost(rate, d) - cost(rate, d + step)) / (space(d + step) - space(d));
                let age = -(1.0 - d).ln() / rate;
                let product = worth(d, age) * price;
                assert!((product - 1.0).abs() < 1e-3, "{rate} {d}: {product}");
            }
        }
    }

    #[test]
    fn what_is_dead_goes_first() {
        assert_eq!(worth(1.0, 0.0), f64::INFINITY);
        assert_eq!(worth(0.0, 1e9), 0.0);
        assert!(worth(0.6, 1.0) > worth(0.5, 1.0) && worth(0.5, 2.0) > worth(0.5, 1.0));
    }
}
