//! Tombstones: they stay until no older version of their tuple can be read
//! back from the medium (T3).
//!
//! Which tombstones hide something is found without a chain: a sweep notes
//! the tombstones of free tuple ids, then goes over everything superseded
//! that is still on the medium, and whatever it meets keeps its tombstone.
//! What is left is dropped. A sweep costs one look at each superseded content,
//! so it is worth its while only once there are many tombstones; as long as
//! there are few they take little beside what they hide.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, TableId, TupleId};
use pantile_cc::Grace;
use pantile_store::HEADER_BYTES;

use crate::Context;

/// Fewest tombstones worth a sweep, and most that one deals with.
const LEAST: u64 = 256;
const MOST: usize = 1 << 18;
/// Tombstones take at least this share of what they may hide.
const WORTHWHILE: u64 = 16;
/// Contents looked at in one step.
const STEP: usize = 256;

type Waiting = HashMap<(TableId, TupleId), Address, FixedState>;

/// How far a sweep is.
#[derive(Default)]
pub(crate) enum Sweep {
    #[default]
    None,
    /// Noting tombstones; where to go on.
    Gather { waiting: Waiting, at: (u32, u32) },
    /// Waiting for threads that were copying survivors.
    Settle { waiting: Waiting, grace: Grace },
    /// Meeting what is superseded; where to go on.
    Meet { waiting: Waiting, at: (u32, u32), slot: u32 },
    /// Dropping what was not met.
    Drop { waiting: Vec<((TableId, TupleId), Address)> },
}

impl Sweep {
    /// A bounded part of a sweep, if there is one or one is worth beginning.
    /// `dropped` is told where the tombstones are that are not needed any more.
    pub fn advance(&mut self, cx: &Context<'_>, space_is_short: bool, dropped: impl FnMut(TableId, Address)) {
        *self = match std::mem::take(self) {
            Sweep::None if !is_worthwhile(cx, space_is_short) => Sweep::None,
            Sweep::None => Sweep::Gather { waiting: Waiting::default(), at: FIRST },
            Sweep::Gather { waiting, at } => gather(cx, waiting, at),
            Sweep::Settle { waiting, mut grace } => match grace.is_over(cx.registry) {
                true => Sweep::Meet { waiting, at: FIRST, slot: 0 },
                false => Sweep::Settle { waiting, grace },
            },
            Sweep::Meet { waiting, at, slot } => meet(cx, waiting, at, slot),
            Sweep::Drop { waiting } => drop_tombstones(cx, waiting, dropped),
        };
    }
}

fn is_worthwhile(cx: &Context<'_>, space_is_short: bool) -> bool {
    let waiting = cx.tuples.waiting_tombstones();
    let least = if space_is_short { LEAST / 8 } else { LEAST };
    let superseded = cx.store.used_bytes().saturating_sub(cx.tuples.live_bytes());
    waiting >= least && waiting * HEADER_BYTES as u64 * WORTHWHILE >= superseded
}

fn drop_tombstones(
    cx: &Context<'_>,
    mut waiting: Vec<((TableId, TupleId), Address)>,
    mut dropped: impl FnMut(TableId, Address),
) -> Sweep {
    for ((table, tuple), address) in waiting.split_off(waiting.len().saturating_sub(STEP)) {
        if cx.tuples.drop_tombstone(table, tuple, address) {
            dropped(table, address);
        }
    }
    if waiting.is_empty() { Sweep::None } else { Sweep::Drop { waiting } }
}

/// The first block there can be.
const FIRST: (u32, u32) = (1, 0);

/// The block after this one, whether or not it exists; `None` at the end.
fn after(cx: &Context<'_>, (chunk, index): (u32, u32)) -> Option<(u32, u32)> {
    let next = if index + 1 < cx.store.blocks_in(chunk) { (chunk, index + 1) } else { (chunk + 1, 0) };
    (next.0 < cx.store.chunks_end()).then_some(next)
}

fn gather(cx: &Context<'_>, mut waiting: Waiting, mut at: (u32, u32)) -> Sweep {
    let watermark = cx.registry.watermark();
    let mut left = STEP;
    loop {
        if let Some(block) = cx.store.block_at(at.0, at.1)
            && let Some(info) = cx.store.block_info(block).filter(|i| i.is_of_tombstones)
        {
            cx.store.tombstones(block, |address, tuple, begin| {
                left = left.saturating_sub(1);
                if begin < watermark {
                    waiting.insert((info.table, tuple), address);
                }
            });
        }
        left = left.saturating_sub(1);
        match after(cx, at).filter(|_| waiting.len() < MOST) {
            Some(next) if left == 0 => return Sweep::Gather { waiting, at: next },
            Some(next) => at = next,
            // A copy of a version that has been superseded meanwhile is not
            // marked as such before the thread that made it is done.
            None => return Sweep::Settle { waiting, grace: cx.registry.grace() },
        }
    }
}

fn meet(cx: &Context<'_>, mut waiting: Waiting, mut at: (u32, u32), mut slot: u32) -> Sweep {
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
        match (next, after(cx, at)) {
            (Some(next), _) => return Sweep::Meet { waiting, at, slot: next },
            (None, Some(next)) => (at, slot, left) = (next, 0, left.saturating_sub(1)),
            (None, None) => break,
        }
        if left == 0 {
            return Sweep::Meet { waiting, at, slot };
        }
    }
    Sweep::Drop { waiting: waiting.into_iter().collect() }
}
