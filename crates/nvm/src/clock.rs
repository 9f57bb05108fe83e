//! The time that emulated devices run by.

use std::fmt::Debug;
use std::hint;
use std::time::Instant;

/// A source of time in picoseconds: a unit takes tens of nanoseconds, and
/// rounding each to a whole one would be off by more than a hundredth.
pub(crate) trait Clock: Debug + Send + Sync {
    /// Picoseconds since some fixed point.
    fn now(&self) -> u64;

    /// Returns once `now() >= time`, with the picoseconds that this took.
    fn wait_until(&self, time: u64) -> u64;
}

/// Real time. Waiting spins, for the waits are shorter than a thread switch.
#[derive(Debug)]
pub(crate) struct RealClock {
    start: Instant,
}

impl RealClock {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Clock for RealClock {
    #[inline]
    fn now(&self) -> u64 {
        // 64 bits of picoseconds last 213 days.
        self.start.elapsed().as_nanos() as u64 * 1000
    }

    #[inline]
    fn wait_until(&self, time: u64) -> u64 {
        let began = self.now();
        let mut now = began;
        while now < time {
            hint::spin_loop();
            now = self.now();
        }
        now - began
    }
}

/// Time that passes only by waiting for it.
#[cfg(test)]
#[derive(Debug, Clone, Default)]
pub(crate) struct ManualClock(pub(crate) std::sync::Arc<std::sync::atomic::AtomicU64>);

#[cfg(test)]
impl Clock for ManualClock {
    fn now(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::SeqCst)
    }

    fn wait_until(&self, time: u64) -> u64 {
        time.saturating_sub(self.0.fetch_max(time, std::sync::atomic::Ordering::SeqCst))
    }
}
