//! When a collector that works in the background does so in simulated time.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_cc::Clock;

/// When the next round is due, in microseconds of simulated time. In real time
/// a thread does the rounds.
#[derive(Default)]
pub(crate) struct Rounds(AtomicU64);

impl Rounds {
    /// Whether a round is due; the caller does it then.
    pub fn is_due(&self, clock: &Clock, interval: Duration) -> bool {
        let now = clock.elapsed().as_micros() as u64;
        let is_due = now >= self.0.load(Ordering::Relaxed);
        if is_due {
            self.0.store(now + interval.as_micros() as u64, Ordering::Relaxed);
        }
        is_due
    }
}
