//! Closing.

use std::time::Duration;

use pantile_base::sync::atomic::Ordering;

use crate::engine::core::Core;
use crate::types::error::{Error, Result};

impl Core {
    /// Waits for running transactions, at most for `limit`, and writes the
    /// last state record. Only the first of several calls does so.
    pub fn close(&self, limit: Duration) -> Result<()> {
        self.check_open()?;
        if self.closing.swap(true, Ordering::SeqCst) {
            return Err(Error::Closed);
        }
        if !self.await_end_of_all(limit) {
            let error = self.still_open(limit);
            self.closing.store(false, Ordering::SeqCst);
            return Err(error);
        }
        self.closed.store(true, Ordering::SeqCst);
        self.record_state(true)
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
}

impl Drop for Core {
    fn drop(&mut self) {
        // No handle is left. A failure here makes the next opening slower,
        // and has no other effect.
        if !self.closed.load(Ordering::Acquire) {
            let _ = self.close(Duration::ZERO);
        }
    }
}
