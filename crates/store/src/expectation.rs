//! What a state record says about the blocks of the medium (I-9).

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::Timestamp;

use crate::block::BlockId;
use crate::content::Content;
use crate::state_record::{PartlyFilled, StateRecord};

/// What must be found in a block (I-9).
#[derive(Debug)]
pub(crate) struct Expectation {
    taken_at: u64,
    /// Contents of transactions at or below this need no evidence,
    watermark: u64,
    /// except these.
    undecided: Vec<u64>,
    listed: HashMap<BlockId, PartlyFilled, FixedState>,
    /// Nothing was written after the record, so all listed blocks are in use.
    pub closed: bool,
}

impl Expectation {
    pub fn new(state: &StateRecord) -> Self {
        let named = |p: &PartlyFilled| (p.id(), *p);
        Self {
            // No block was opened after a record that was the last one.
            taken_at: if state.closed { u64::MAX } else { state.taken_at },
            watermark: state.watermark,
            undecided: state.undecided.clone(),
            listed: state.partly_filled.iter().map(named).collect(),
            closed: state.closed,
        }
    }

    /// Blocks that must be in use and are not. `opened_at` looks up the
    /// generation of a block.
    pub fn missing(&self, opened_at: impl Fn(BlockId) -> Option<u64>) -> Vec<BlockId> {
        let is_missing = |(id, listed): &(&BlockId, &PartlyFilled)| opened_at(**id) != Some(listed.opened_at);
        let listed = self.listed.iter().filter(|_| self.closed);
        let mut missing: Vec<_> = listed.filter(is_missing).map(|(id, _)| *id).collect();
        missing.sort_unstable_by_key(|id| (id.chunk, id.index));
        missing
    }

    /// Whether a content is known to belong to a committed transaction.
    pub fn is_decided(&self, content: &Content<'_>) -> bool {
        content.flags().is_relocated() || self.is_over(content.timestamp())
    }

    /// Whether a transaction is known to have been durable, if it committed.
    pub fn is_over(&self, transaction: Timestamp) -> bool {
        transaction.get() <= self.watermark && !self.undecided.contains(&transaction.get())
    }

    /// How many of a block's slots must hold contents.
    pub fn of(&self, id: BlockId, opened_at: u64, slots: u32) -> u32 {
        match self.listed.get(&id) {
            Some(listed) if listed.opened_at == opened_at => listed.fill.min(slots),
            _ if opened_at <= self.taken_at => slots,
            _ => 0,
        }
    }
}
