//! Closing.

use std::time::Duration;

use pantile_cc::Begin;
use pantile_reclaim::Debt;

use crate::engine::core::Core;
use crate::types::error::{Error, Result};

/// How long closing brings the space down at most, if more is taken than
/// promised.
const SPACE_TIME: Duration = Duration::from_secs(1);

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
        while let Ok((Debt::Space | Debt::More, _)) = self.collect_round(enter)
            && clock.elapsed() < deadline
        {
            let Ok((permit, _)) = enter(Begin::LateWriter) else { return };
            self.sample_and_record(&permit);
            self.leave(permit);
            clock.sleep(self.options.gc.epoch / 4);
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // No handle is left. A failure here makes the next opening slower,
        // and has no other effect.
        let _ = self.close(Duration::ZERO);
    }
}
