//! The clock that timestamps come from (trap T22).
//!
//! Where the CPU's cycle counter is invariant, trusted by the kernel and in
//! step on all cores, a tick costs one `rdtscp` and no shared write.
//! Elsewhere, or once it has been seen to run backwards, ticks come from one
//! shared counter that follows the system's monotonic clock.

use std::time::Duration;

use pantile_base::sync::Instant;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::trust;

/// Nanoseconds of one tick.
pub(crate) const TICK_NS: u64 = 32;

/// Where ticks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClockSource {
    /// The CPU's cycle counter.
    CycleCounter,
    /// A counter shared by all cores.
    SharedCounter,
}

/// Ticks of 32 ns since an origin that the opener chooses.
#[derive(Debug)]
pub struct Clock {
    shared_mode: AtomicBool,
    /// Highest tick known to have been passed; a cycle counter below it has
    /// run backwards.
    floor: AtomicU64,
    /// The shared counter.
    counter: AtomicU64,
    origin_tick: u64,
    origin_cycles: u64,
    origin_instant: Instant,
    /// Ticks per cycle, times 2^32.
    rate: u64,
}

impl Clock {
    /// A clock whose ticks are all above `after`, from the best source that
    /// this machine can be trusted with.
    pub fn new(after: u64) -> Self {
        Self::with_source(
            after,
            if trust::cycle_counter().is_some() {
                ClockSource::CycleCounter
            } else {
                ClockSource::SharedCounter
            },
        )
    }

    /// As [`Clock::new`] from a given source. The cycle counter is used only
    /// where it can be trusted.
    pub fn with_source(after: u64, source: ClockSource) -> Self {
        let trusted = trust::cycle_counter().filter(|_| source == ClockSource::CycleCounter);
        Self {
            shared_mode: AtomicBool::new(trusted.is_none()),
            floor: AtomicU64::new(after + 1),
            counter: AtomicU64::new(after + 1),
            origin_tick: after + 1,
            origin_cycles: trust::cycles(),
            origin_instant: Instant::now(),
            rate: trusted.map_or(0, |t| t.ticks_per_cycle),
        }
    }

    /// Where ticks come from at present.
    pub fn source(&self) -> ClockSource {
        if self.shared_mode.load(Ordering::Relaxed) {
            ClockSource::SharedCounter
        } else {
            ClockSource::CycleCounter
        }
    }

    /// How far the clocks of two cores can differ, in ticks.
    pub fn skew(&self) -> u64 {
        trust::cycle_counter().map_or(0, |t| t.skew_ticks)
    }

    /// The present tick, or `None` when the cycle counter has just been found
    /// to run backwards and the caller must call [`Clock::fall_back`].
    #[inline]
    pub fn try_tick(&self) -> Option<u64> {
        if self.shared_mode.load(Ordering::Relaxed) {
            return Some(self.next_shared());
        }
        let tick = self.cycle_tick();
        (tick >= self.floor.load(Ordering::Relaxed)).then_some(tick)
    }

    #[inline]
    fn cycle_tick(&self) -> u64 {
        // A counter that was set back below the origin must show as low, not as high.
        let cycles = trust::cycles().saturating_sub(self.origin_cycles);
        let ticks = (u128::from(cycles) * u128::from(self.rate)) >> 32;
        self.origin_tick + ticks as u64
    }

    fn next_shared(&self) -> u64 {
        let now = self.origin_tick + self.origin_instant.elapsed().as_nanos() as u64 / TICK_NS;
        let mut last = self.counter.load(Ordering::Relaxed);
        loop {
            let next = now.max(last + 1);
            match self.counter.compare_exchange_weak(last, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(seen) => last = seen,
            }
        }
    }

    /// Remembers that `tick` has passed, so that a counter below it is noticed.
    pub fn raise_floor(&self, tick: u64) {
        self.floor.fetch_max(tick, Ordering::Relaxed);
    }

    /// Leaves the cycle counter for good; later ticks are above `drawn`, the
    /// highest tick that anybody has drawn.
    pub fn fall_back(&self, drawn: u64) {
        let above = drawn.max(self.floor.load(Ordering::Relaxed)) + 1;
        self.counter.fetch_max(above, Ordering::SeqCst);
        self.shared_mode.store(true, Ordering::SeqCst);
    }

    /// The length of a number of ticks.
    pub fn duration(ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(TICK_NS))
    }

    /// The number of ticks of a length of time.
    pub fn ticks(length: Duration) -> u64 {
        length.as_nanos() as u64 / TICK_NS
    }
}

#[cfg(test)]
#[path = "clock_test.rs"]
mod tests;
