//! Compacting on request.

use std::ops::ControlFlow;

use pantile_base::Timestamp;
use pantile_cc::Begin;
use pantile_reclaim::Compaction;

use crate::engine::core::Core;
use crate::engine::upkeep::{Batch, Entered};
use crate::types::error::Result;

/// Epochs without progress after which compacting gives up. What is left waits
/// for running transactions then.
const PATIENCE: u32 = 50;

impl Core {
    /// Empties every block that has anything obsolete in it, beside running
    /// transactions. Returns what is left.
    pub fn compact(&self, mut progress: impl FnMut(&Compaction) -> ControlFlow<()>) -> Result<Compaction> {
        let (clock, epoch) = (self.registry.clock(), self.options.gc.epoch);
        let since = self.registry.now();
        // Survivors fill the blocks that are given up here.
        self.store.give_up_idle(0);
        let (mut last, mut waited) = ((Compaction::default(), (0, 0)), 0);
        loop {
            let mut left = self.compact_some(since, |how| self.enter(how))?;
            let state = (left, self.store.taken_bytes());
            waited = if state == last { waited + 1 } else { 0 };
            last = state;
            let is_done = left.is_done() && !self.has_dropped_tables();
            if is_done || progress(&left).is_break() {
                return Ok(left);
            }
            if waited > 2 * PATIENCE {
                left.is_held = true;
                return Ok(left);
            }
            clock.sleep(epoch / 2);
        }
    }

    pub fn compact_some(
        &self,
        since: Timestamp,
        enter: impl Fn(Begin) -> Result<Entered>,
    ) -> Result<Compaction> {
        let (permit, _) = enter(Begin::LateWriter)?;
        self.registry.set_copying(permit.slot());
        self.clean_all(permit.slot());
        let mut left = Compaction::default();
        self.with_collector(&permit, |collector, context| {
            left = collector.compact(context, since)?;
            Ok(())
        });
        self.leave(permit);
        let (permit, _) = enter(Begin::LateWriter)?;
        self.sample_and_record(&permit);
        while self.release_dropped(&permit, Batch::LARGE) {}
        self.leave(permit);
        Ok(left)
    }
}
