//! Tombstones. They stay until no older version of their tuple can be read back
//! from the medium (T3).
//!
//! No chain is needed to find out which tombstones hide something. A sweep
//! notes the tombstones of free tuple ids and then looks at every superseded
//! version that is still on the medium. The tombstones of those tuples stay;
//! the others are dropped. A sweep looks once at each superseded content, so it
//! pays only when there are many tombstones. A few take little space beside
//! what they hide.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_cc::Grace;
use pantile_store::HEADER_BYTES;

use crate::Context;
use crate::blocks::{BlockPosition, after};

/// The fewest tombstones that are worth a sweep, and the most that one sweep
/// handles.
const LEAST: u64 = 256;
const MOST: usize = 1 << 18;
/// Tombstones are worth a sweep if they take this share of the space that they
/// may hide.
const WORTHWHILE: u64 = 16;
/// Superseded bytes that an eager sweep looks at for the sake of one tombstone,
/// which may keep a block.
const LITTLE: u64 = 16 << 20;
/// Contents examined in one step.
const STEP: usize = 256;

/// Tombstones, by their places and the timestamps of their writers. While a sweep
/// goes on, the id of a tuple may be used again, and its next tombstone be written
/// to the place of the last.
type Waiting = HashMap<(TableId, TupleId), (Address, Timestamp), FixedState>;

/// A sweep, done in bounded parts.
#[derive(Default)]
pub struct Sweep {
    stage: Stage,
    /// What was there when a sweep began that dropped nothing: it would not again.
    fruitless: Option<There>,
    dropped: u64,
    /// What was there when the sweep began.
    began: There,
}

/// The progress of a sweep.
#[derive(Default)]
enum Stage {
    #[default]
    None,
    /// Noting tombstones, from this place on.
    Gather { waiting: Waiting, at: BlockPosition },
    /// Waiting for threads that were copying survivors.
    Settle { waiting: Waiting, grace: Grace },
    /// Looking at superseded versions, from this place on.
    Meet { waiting: Waiting, at: BlockPosition, slot: u32 },
    /// Dropping the tombstones that hide none of those versions.
    Drop { waiting: Vec<((TableId, TupleId), (Address, Timestamp))> },
}

impl Sweep {
    /// Does a bounded part of a sweep, if a sweep is under way or worth
    /// beginning. Calls `dropped` with each tombstone that is no longer needed. The
    /// caller has pinned its transaction slot.
    pub fn advance(&mut self, cx: &Context<'_>, is_eager: bool, mut dropped: impl FnMut(TableId, Address)) {
        let was_under_way = self.is_under_way();
        self.stage = match std::mem::take(&mut self.stage) {
            Stage::None if !self.is_worthwhile(cx, is_eager) => Stage::None,
            Stage::None => {
                (self.dropped, self.began) = (0, there(cx));
                Stage::Gather { waiting: Waiting::default(), at: BlockPosition::default() }
            }
            Stage::Gather { waiting, at } => gather(cx, waiting, at),
            Stage::Settle { waiting, mut grace } => match grace.is_over(cx.registry) {
                true => Stage::Meet { waiting, at: BlockPosition::default(), slot: 0 },
                false => Stage::Settle { waiting, grace },
            },
            Stage::Meet { waiting, at, slot } => meet(cx, waiting, at, slot),
            Stage::Drop { waiting } => drop_tombstones(cx, waiting, |table, address| {
                self.dropped += 1;
                dropped(table, address);
            }),
        };
        if was_under_way && !self.is_under_way() {
            self.fruitless = (self.dropped == 0).then_some(self.began);
        }
    }

    /// Bytes of what it has noted: a slot and a byte for each place of the table.
    pub fn bytes(&self) -> u64 {
        let slot = size_of::<((TableId, TupleId), (Address, Timestamp))>();
        let bytes = match &self.stage {
            Stage::None => 0,
            Stage::Gather { waiting, .. } | Stage::Settle { waiting, .. } | Stage::Meet { waiting, .. } => {
                // Seven of eight places may be taken.
                waiting.capacity() * 8 / 7 * (slot + 1)
            }
            Stage::Drop { waiting } => waiting.capacity() * slot,
        };
        bytes as u64
    }

    /// Whether a sweep has begun and not ended.
    pub fn is_under_way(&self) -> bool {
        !matches!(self.stage, Stage::None)
    }

    /// Whether a sweep is likely to drop tombstones that take much of the space
    /// that they may hide.
    pub fn is_worthwhile(&self, cx: &Context<'_>, is_eager: bool) -> bool {
        is_worthwhile(cx, is_eager) && self.fruitless != Some(there(cx))
    }
}

/// What a sweep depends on: the tombstones that wait, the blocks in use, and the
/// versions in them that have been overwritten.
type There = (u64, u64, u64);

fn there(cx: &Context<'_>) -> There {
    (cx.tuples.waiting_tombstones(), cx.store.used_bytes(), cx.store.overwritten())
}

fn is_worthwhile(cx: &Context<'_>, is_eager: bool) -> bool {
    let waiting = cx.tuples.waiting_tombstones();
    let superseded = cx.store.used_bytes().saturating_sub(cx.tuples.live_bytes());
    let are_many = waiting >= LEAST && waiting * HEADER_BYTES as u64 * WORTHWHILE >= superseded;
    are_many || is_eager && waiting > 0 && superseded <= LITTLE
}

fn drop_tombstones(
    cx: &Context<'_>,
    mut waiting: Vec<((TableId, TupleId), (Address, Timestamp))>,
    mut dropped: impl FnMut(TableId, Address),
) -> Stage {
    for ((table, tuple), (address, begin)) in waiting.split_off(waiting.len().saturating_sub(STEP)) {
        if cx.tuples.drop_tombstone(table, tuple, address, begin) {
            dropped(table, address);
        }
    }
    if waiting.is_empty() { Stage::None } else { Stage::Drop { waiting } }
}

fn gather(cx: &Context<'_>, mut waiting: Waiting, mut at: BlockPosition) -> Stage {
    // Deletions before this have told the store what the tombstone
    // superseded.
    let watermark = cx.registry.writers_watermark();
    let mut left = STEP;
    loop {
        if let Some(block) = cx.store.block_at(at.0, at.1)
            && let Some(info) = cx.store.block_info(block).filter(|i| i.is_of_tombstones)
        {
            cx.store.tombstones(block, |address, tuple, begin| {
                left = left.saturating_sub(1);
                if begin < watermark {
                    waiting.insert((info.table, tuple), (address, begin));
                }
            });
        }
        left = left.saturating_sub(1);
        match after(cx.store, at).filter(|_| waiting.len() < MOST) {
            Some(next) if left == 0 => return Stage::Gather { waiting, at: next },
            Some(next) => at = next,
            // The superseded bit of a copy whose original was superseded
            // meanwhile is set only when the thread that made the copy is done.
            None => return Stage::Settle { waiting, grace: cx.registry.grace() },
        }
    }
}

fn meet(cx: &Context<'_>, mut waiting: Waiting, mut at: BlockPosition, mut slot: u32) -> Stage {
    let mut left = STEP;
    while !waiting.is_empty() && !is_removed(Control::TombstonesStay) {
        let block = cx.store.block_at(at.0, at.1);
        let info = block.and_then(|b| cx.store.block_info(b)).filter(|i| !i.is_of_tombstones);
        let next = block.zip(info).and_then(|(block, info)| {
            cx.store.superseded_tuples(block, slot, left, |tuple| {
                left -= 1;
                waiting.remove(&(info.table, tuple));
            })
        });
        match (next, after(cx.store, at)) {
            (Some(next), _) => return Stage::Meet { waiting, at, slot: next },
            (None, Some(next)) => (at, slot, left) = (next, 0, left.saturating_sub(1)),
            (None, None) => break,
        }
        if left == 0 {
            return Stage::Meet { waiting, at, slot };
        }
    }
    Stage::Drop { waiting: waiting.into_iter().collect() }
}
