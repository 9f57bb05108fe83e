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
    /// Where the next one begins to note tombstones: not at the first block, if there are more than one handles.
    from: BlockPosition,
    /// What was there when sweeps of all tombstones began that dropped nothing: they would not again.
    fruitless: Option<There>,
    /// Of the sweeps since the one that began at the first block: what they have dropped, and what was there.
    dropped: u64,
    began: There,
}

/// The progress of a sweep.
#[derive(Default)]
enum Stage {
    #[default]
    None,
    /// Noting tombstones, from this place on.
    Gather { waiting: Waiting, at: BlockPosition },
    /// Waiting for threads that were copying survivors. Tombstones from `next` on are not noted.
    Settle { waiting: Waiting, grace: Grace, next: BlockPosition },
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
                if self.from == BlockPosition::default() {
                    (self.dropped, self.began) = (0, there(cx));
                }
                Stage::Gather { waiting: Waiting::default(), at: self.from }
            }
            Stage::Gather { waiting, at } => gather(cx, waiting, at),
            Stage::Settle { waiting, mut grace, next } => match grace.is_over(cx.registry) {
                true => {
                    self.from = next;
                    Stage::Meet { waiting, at: BlockPosition::default(), slot: 0 }
                }
                false => Stage::Settle { waiting, grace, next },
            },
            Stage::Meet { waiting, at, slot } => meet(cx, waiting, at, slot),
            Stage::Drop { waiting } => drop_tombstones(cx, waiting, |table, address| {
                self.dropped += 1;
                dropped(table, address);
            }),
        };
        if was_under_way && !self.is_under_way() {
            let are_all = self.from == BlockPosition::default();
            self.fruitless = (are_all && self.dropped == 0).then_some(self.began);
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
        let is_fruitless = self.fruitless.is_some_and(|before| is_like(before, there(cx), is_eager));
        is_worthwhile(cx, is_eager) && !is_fruitless
    }
}

/// What a sweep depends on: the tombstones that wait, the blocks in use, and the
/// versions in them that have been overwritten.
type There = (u64, u64, u64);

fn there(cx: &Context<'_>) -> There {
    (cx.tuples.waiting_tombstones(), cx.store.used_bytes(), cx.store.overwritten())
}

/// Whether a sweep that was fruitless before would be now. Beside a long reader much is written, and nothing of
/// what waits may go: a sweep looks at all that is superseded, so an eighth is to have changed; if it is
/// eager, anything.
fn is_like(before: There, now: There, is_eager: bool) -> bool {
    let is_near = |before: u64, now: u64| before.abs_diff(now) <= if is_eager { 0 } else { before / 8 };
    is_near(before.0, now.0) && is_near(before.1, now.1) && is_near(before.2, now.2)
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
        match after(cx.store, at) {
            Some(next) if waiting.len() < MOST => at = next,
            // The superseded bit of a copy whose original was superseded
            // meanwhile is set only when the thread that made the copy is done.
            next => {
                return Stage::Settle { waiting, grace: cx.registry.grace(), next: next.unwrap_or_default() };
            }
        }
        if left == 0 {
            return Stage::Gather { waiting, at };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fruitless_sweep_is_repeated_once_much_has_changed() {
        let before = (8_000, 64_000, 800);
        for (now, is_seldom, is_eager) in [
            (before, true, true),
            ((8_001, 64_000, 800), true, false),
            ((9_000, 60_000, 890), true, false),
            ((9_001, 64_000, 800), false, false),
            ((8_000, 55_999, 800), false, false),
            ((8_000, 64_000, 0), false, false),
        ] {
            assert_eq!(is_like(before, now, false), is_seldom, "{now:?}");
            assert_eq!(is_like(before, now, true), is_eager, "{now:?}");
        }
    }
}
