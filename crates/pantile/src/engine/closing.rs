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
    /// Nothing touches the medium afterwards (I-15): no thread has a permit,
    /// and none gets one.
    pub fn close(&self, limit: Duration) -> Result<()> {
        if !self.gate.begin_closing() {
            return Err(Error::Closed);
        }
        let clock = self.registry.clock();
        let deadline = clock.elapsed() + limit;
        while self.registry.running() > 0 {
            if clock.elapsed() >= deadline {
                self.gate.open();
                return Err(Error::Timeout(limit));
            }
            clock.sleep(Duration::from_millis(1));
        }
        self.bring_space_down();
        let recorded = self.state_records.record_now(&self.store, &self.registry, true);
        self.gate.close();
        recorded.map_err(|e| self.store_error(e))
    }

    fn bring_space_down(&self) {
        let clock = self.registry.clock();
        let deadline = clock.elapsed() + SPACE_TIME;
        let enter = |how| self.enter_closing(how);
        while let Ok((Debt::Space | Debt::More, _)) = self.collect_round(enter)
            && clock.elapsed() < deadline
        {
            let Ok((permit, _)) = enter(Begin::ReaderOrLateWriter) else { return };
            // Once for the sample, once for the record.
            self.advance_state(&permit);
            self.advance_state(&permit);
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
