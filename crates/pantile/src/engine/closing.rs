//! Closing.

use std::time::Duration;

use pantile_base::sync::atomic::Ordering;

use crate::engine::core::Core;
use crate::types::error::{Error, Result};

impl Core {
    /// Waits for running transactions, at most for `limit`, and writes the
    /// last state record. Only the first of several calls does so.
    pub fn close(&self, limit: Duration) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        let clock = self.registry.clock();
        let deadline = clock.elapsed() + limit;
        while self.registry.running() > 0 {
            if clock.elapsed() >= deadline {
                self.closed.store(false, Ordering::Release);
                return Err(Error::Timeout(limit));
            }
            clock.sleep(Duration::from_millis(1));
        }
        self.record_state(true)
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
