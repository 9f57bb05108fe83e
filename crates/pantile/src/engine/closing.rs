//! Closing.

use std::time::Duration;

use pantile_cc::Begin;
use pantile_reclaim::Debt;

use crate::engine::core::Core;
use crate::engine::upkeep::Batch;
use crate::types::error::{Error, Result};

/// How long closing brings the space down at most, if more is taken than
/// promised.
const SPACE_TIME: Duration = Duration::from_secs(1);

/// What may be taken beyond the space target before closing frees what is
/// obsolete, and the rounds that it does so for at most. A process that opens
/// the database for a few commits never has another time to do it.
const SPARE: u64 = 512 << 10;
const ROUNDS: u32 = 8;

impl Core {
    /// Waits for running transactions, at most for `limit`, and writes the
    /// last state record. Only the first of several calls does so.
    ///
    /// Nothing touches the medium afterwards (I-20): no thread has a permit,
    /// and none gets one.
    pub fn close(&self, limit: Duration) -> Result<()> {
        if !self.gate.begin_closing() {
            return Err(Error::Closed);
        }
        if !self.await_end_of_all(limit) {
            let error = self.still_open(limit);
            self.gate.open();
            return Err(error);
        }
        // What is salvaged is only read.
        let recorded = if self.options.salvage.is_none() { self.record_last() } else { Ok(()) };
        self.gate.close();
        recorded
    }

    fn record_last(&self) -> Result<()> {
        self.bring_space_down();
        let recorded = self.state_records.record_now(&self.store, &self.registry, true);
        recorded.map_err(|e| self.store_error(e))
    }

    /// Waits until no transaction runs, at most for `limit`. Those that run can
    /// go on and commit, and none begins ([`Core::enter`]). Returns whether
    /// there is none.
    fn await_end_of_all(&self, limit: Duration) -> bool {
        let clock = self.registry.clock();
        let began = clock.elapsed();
        while self.registry.running() > 0 {
            if clock.elapsed().saturating_sub(began) >= limit {
                return false;
            }
            clock.sleep(Duration::from_millis(1));
        }
        true
    }

    fn bring_space_down(&self) {
        let clock = self.registry.clock();
        let deadline = clock.elapsed() + SPACE_TIME;
        let enter = |how| self.enter_closing(how);
        let mut rounds = 0;
        while let Ok((debt, _)) = self.collect_round(enter)
            && self.is_paid_at_close(debt, rounds)
            && clock.elapsed() < deadline
        {
            let Ok((permit, _)) = enter(Begin::LateWriter) else { return };
            self.sample_and_record(&permit);
            while self.release_dropped(&permit, Batch::LARGE) && clock.elapsed() < deadline {}
            self.leave(permit);
            clock.sleep(self.options.gc.epoch / 4);
            rounds += 1;
        }
    }

    fn is_paid_at_close(&self, debt: Debt, rounds: u32) -> bool {
        let target = self.options.gc.space_target * self.counters.live_bytes() as f64;
        let is_payable = debt.is_payable() && rounds < ROUNDS;
        debt.is_of_space()
            || self.has_dropped_tables()
            || is_payable && self.store.used_bytes().saturating_sub(SPARE) as f64 > target
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // No handle is left. A failure here makes the next opening slower,
        // and has no other effect.
        let _ = self.close(Duration::ZERO);
    }
}
