//! Compacting on request.

use std::ops::ControlFlow;

use pantile_base::Timestamp;
use pantile_reclaim::Compaction;

use crate::engine::core::Core;
use crate::engine::entering::Entered;
use crate::engine::tables::Batch;
use crate::types::error::{Error, Result};

/// Epochs without progress after which compacting gives up. What is left waits
/// for running transactions then.
const PATIENCE: u32 = 50;
/// Times in a row that going over all blocks wins nothing before that is all.
pub(crate) const IN_VAIN: u32 = 2;

impl Core {
    /// Empties every block that has anything obsolete in it, and moves down what
    /// fits further down, beside running transactions. What is moved leaves room
    /// for more, so it goes over all blocks until that brings nothing. Returns
    /// what is left.
    pub fn compact(&self, mut progress: impl FnMut(&Compaction) -> ControlFlow<()>) -> Result<Compaction> {
        let mut left = Compaction::default();
        let (mut least, mut in_vain) = ((u64::MAX, u64::MAX), 0);
        loop {
            left = self.compact_once(left, &mut progress)?;
            let extent = self.extent();
            in_vain = if extent < least { 0 } else { in_vain + 1 };
            least = least.min(extent);
            // One goes to work on what the one before has only made obsolete, or has
            // moved together at the end, where a last block was in the way.
            if !left.is_done() || in_vain == IN_VAIN {
                return Ok(left);
            }
        }
    }

    /// Bytes that are taken, and where they end.
    pub fn extent(&self) -> (u64, u64) {
        (self.store.taken_bytes().0, self.store.end())
    }

    /// Goes over all blocks of before the call once. Writers beside it neither add to
    /// what is left nor count as progress.
    fn compact_once(
        &self,
        mut left: Compaction,
        progress: &mut impl FnMut(&Compaction) -> ControlFlow<()>,
    ) -> Result<Compaction> {
        let (clock, epoch) = (self.registry.clock(), self.options.gc.epoch);
        let since = self.registry.now();
        // Survivors fill the blocks that are given up here.
        self.store.give_up_idle(0);
        let (mut least, mut waited, mut emptied) = ((usize::MAX, u64::MAX), 0, None);
        loop {
            // A round that takes long would look like a reader of what is to go down.
            let known = self.apart_with_slots(|enter| self.compact_some(since, emptied, enter))?;
            left = known.unwrap_or(left);
            if let Some(left) = known {
                emptied = (left.blocks_left == 0).then(|| emptied.unwrap_or_else(|| self.registry.now()));
            }
            let (blocks, bytes) = (self.store.blocks_before(since), self.store.taken_bytes().0);
            waited = if blocks < least.0 || bytes < least.1 { 0 } else { waited + 1 };
            least = (least.0.min(blocks), least.1.min(bytes));
            let is_over = known.is_some_and(|left| left.is_done() || left.is_held);
            if is_over && !self.tables.has_dropped_before(since) || progress(&left).is_break() {
                return Ok(left);
            }
            if waited > 2 * PATIENCE {
                left.is_held = true;
                return Ok(left);
            }
            clock.sleep(epoch / 2);
        }
    }

    /// Returns what is left, or `None` if that is not known just now.
    pub fn compact_some(
        &self,
        since: Timestamp,
        emptied: Option<Timestamp>,
        enter: &dyn Fn() -> Result<Entered>,
    ) -> Result<Option<Compaction>> {
        self.within(enter()?.0, |permit| self.clean_all(permit.slot()));
        let mut left = Ok(None);
        self.within(enter()?.0, |permit| {
            self.registry.set_copying(permit.slot());
            self.let_collect(permit, |collector, context| {
                left = collector.compact(context, since, emptied);
                Ok(())
            });
        });
        let left = left.map_err(|error| self.store_error(error))?;
        self.within(enter()?.0, |permit| {
            self.catch_up_state(permit);
            while self.release_dropped(permit, Batch::LARGE) {}
        });
        // State records do not say that the medium has failed.
        match self.store.medium().status().failure {
            Some(cause) => Err(Error::MediumFailed { cause }),
            None => Ok(left),
        }
    }
}

#[cfg(test)]
#[path = "compacting_test.rs"]
mod tests;
