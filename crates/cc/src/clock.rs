//! The clock that timestamps are drawn from (trap T22).
//!
//! Where the CPU's cycle counter is invariant, trusted by the kernel and in
//! step on all cores, a tick costs one `rdtscp` and no shared write. Elsewhere,
//! or once the counter has been seen to run backwards, ticks come from one
//! shared counter that follows the system's monotonic clock.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_base::sync::{Instant, thread};

#[cfg(test)]
use crate::clock::tests::cycles;
#[cfg(not(test))]
use crate::trust::cycles;
use crate::trust::{self, TICK_NS};

/// Where ticks come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ClockSource {
    /// The CPU's cycle counter.
    CycleCounter,
    /// A counter shared by all cores.
    SharedCounter,
}

/// Time that advances only on request, so that a single-threaded run can be
/// repeated exactly. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SimulatedTime(Arc<Simulated>);

#[derive(Default)]
struct Simulated {
    now: AtomicU64,
    skew: u64,
    /// How far the clock of the running core is ahead.
    ahead: AtomicU64,
    on_pause: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Simulated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { now, skew, ahead, .. } = self;
        let mut shown = f.debug_struct("Simulated");
        shown.field("now", now).field("skew", skew).field("ahead", ahead).finish_non_exhaustive()
    }
}

impl SimulatedTime {
    /// Time on cores whose clocks differ by up to `skew`. Each reading of a
    /// clock then takes a moment, since programs wait until others have caught
    /// up.
    pub fn with_skew(skew: Duration) -> Self {
        Self(Arc::new(Simulated { skew: skew.as_nanos() as u64, ..Simulated::default() }))
    }

    /// Sets how far the clock of the core is ahead that runs from now on.
    ///
    /// # Panics
    /// If that is more than clocks differ by.
    pub fn run_ahead(&self, by: Duration) {
        let by = by.as_nanos() as u64;
        assert!(by <= self.0.skew, "clocks differ by {} ns at most", self.0.skew);
        self.0.ahead.store(by, Ordering::SeqCst);
    }

    /// Sets what is called whenever a thread pauses for a length of time, once
    /// that has passed. The call may let other threads run. Only the first
    /// setting counts.
    pub fn on_pause(&self, call: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.on_pause.set(Box::new(call));
    }

    fn pause(&self, length: Duration) {
        self.advance(length);
        if let Some(call) = self.0.on_pause.get() {
            call();
        }
    }

    /// Advances the time.
    pub fn advance(&self, by: Duration) {
        self.0.now.fetch_add(by.as_nanos() as u64, Ordering::SeqCst);
    }

    /// The time that has passed.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.0.now.load(Ordering::SeqCst))
    }

    /// Reads the running core's clock, in ticks; `None` if all show the same.
    fn read_skewed(&self) -> Option<u64> {
        (self.0.skew > 0).then(|| {
            let now = self.0.now.fetch_add(TICK_NS, Ordering::SeqCst) + TICK_NS;
            (now + self.0.ahead.load(Ordering::SeqCst)) / TICK_NS
        })
    }
}

/// The time for deadlines and pauses, and for ticks without a cycle counter.
#[derive(Debug)]
enum Time {
    System(Instant),
    Simulated(SimulatedTime),
}

/// How much time a simulated yield takes.
const SIMULATED_YIELD: Duration = Duration::from_micros(100);

/// Ticks of 32 ns since an origin that is chosen on opening.
#[derive(Debug)]
pub struct Clock {
    shared_mode: AtomicBool,
    /// Highest tick known to have passed. A cycle counter below it by more than cores differ has run
    /// backwards.
    floor: AtomicU64,
    /// The tick by the time that had passed when the floor was last raised.
    floor_passed: AtomicU64,
    /// The shared counter.
    counter: AtomicU64,
    /// How far its ticks are ahead of the time that has passed: the cycle counter that it took over
    /// from had run faster.
    ahead: AtomicU64,
    origin_tick: u64,
    origin_cycles: u64,
    origin_time: Duration,
    time: Time,
    /// Ticks per cycle, times 2^32.
    rate: u64,
    /// How far the clocks of two cores can differ, in ticks.
    skew: u64,
}

/// How far below the present a snapshot may lie that no writer can precede any
/// more, besides the skew.
pub(crate) const MARGIN: u64 = 2;

/// How long a thread may be held up between a reading of the counter and one of the time: 10 ms.
const HELD_UP: u64 = 10_000_000 / TICK_NS;

/// The first tick of a clock. A snapshot that is taken at once lies above
/// `after`, too.
fn first_tick(after: u64, skew: u64) -> u64 {
    after + 1 + skew + MARGIN
}

impl Clock {
    /// A clock whose ticks are all above `after`. Uses the best source that can
    /// be trusted on this machine.
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

    /// As [`Clock::new`], but from a given source. The cycle counter is used
    /// only where it can be trusted.
    pub fn with_source(after: u64, source: ClockSource) -> Self {
        let trusted = trust::cycle_counter().filter(|_| source == ClockSource::CycleCounter);
        let skew = trust::cycle_counter().map_or(0, |t| t.skew_ticks);
        let first = first_tick(after, skew);
        Self {
            shared_mode: AtomicBool::new(trusted.is_none()),
            floor: AtomicU64::new(first),
            floor_passed: AtomicU64::new(first),
            counter: AtomicU64::new(first),
            ahead: AtomicU64::new(0),
            origin_tick: first,
            origin_cycles: cycles(),
            origin_time: Duration::ZERO,
            time: Time::System(Instant::now()),
            rate: trusted.map_or(0, |t| t.ticks_per_cycle),
            skew,
        }
    }

    /// A clock whose ticks are all above `after` and follow a simulated time.
    pub fn simulated(after: u64, time: SimulatedTime) -> Self {
        let skew = time.0.skew.div_ceil(TICK_NS);
        let first = first_tick(after, skew);
        Self {
            shared_mode: AtomicBool::new(true),
            floor: AtomicU64::new(first),
            floor_passed: AtomicU64::new(first),
            counter: AtomicU64::new(first),
            ahead: AtomicU64::new(0),
            origin_tick: first,
            origin_cycles: 0,
            origin_time: time.now(),
            rate: 0,
            skew,
            time: Time::Simulated(time),
        }
    }

    /// A tick above `after` at or below which nobody will read or write any more.
    pub(crate) fn start(&self) -> u64 {
        self.origin_tick.saturating_sub(self.skew + MARGIN)
    }

    /// The time since the clock was created, for deadlines.
    pub fn elapsed(&self) -> Duration {
        match &self.time {
            Time::System(origin) => origin.elapsed(),
            Time::Simulated(time) => time.now().saturating_sub(self.origin_time),
        }
    }

    /// Waits for this length of time.
    pub fn sleep(&self, length: Duration) {
        match &self.time {
            Time::System(_) => thread::sleep(length),
            Time::Simulated(time) => time.pause(length),
        }
    }

    /// Lets other threads run.
    pub fn yield_now(&self) {
        match &self.time {
            Time::System(_) => thread::yield_now(),
            Time::Simulated(time) => time.pause(SIMULATED_YIELD),
        }
    }

    /// Where ticks currently come from.
    pub fn source(&self) -> ClockSource {
        if self.shared_mode.load(Ordering::Relaxed) {
            ClockSource::SharedCounter
        } else {
            ClockSource::CycleCounter
        }
    }

    /// How far the clocks of two cores can differ, in ticks.
    #[inline]
    pub fn skew(&self) -> u64 {
        self.skew
    }

    /// The current tick. Returns `None` if the cycle counter has run backwards;
    /// the caller must then call [`Clock::fall_back`].
    #[inline]
    pub fn try_tick(&self) -> Option<u64> {
        if self.shared_mode.load(Ordering::Relaxed) {
            return Some(self.next_shared());
        }
        self.checked(|| self.cycle_tick())
    }

    /// A reading of the counter, unless it is below a tick that had passed before by more
    /// than cores differ. The floor comes first: a thread that is held up between the two
    /// would find a floor that others have raised since its reading.
    #[inline]
    fn checked(&self, read: impl FnOnce() -> u64) -> Option<u64> {
        let floor = self.floor.load(Ordering::Acquire);
        let tick = read();
        (tick + self.skew >= floor).then_some(tick)
    }

    #[inline]
    fn cycle_tick(&self) -> u64 {
        // A counter that was set back below the origin must appear low, not
        // high.
        let cycles = cycles().saturating_sub(self.origin_cycles);
        let ticks = (u128::from(cycles) * u128::from(self.rate)) >> 32;
        self.origin_tick + ticks as u64
    }

    fn next_shared(&self) -> u64 {
        if let Time::Simulated(time) = &self.time
            && let Some(ticks) = time.read_skewed()
        {
            return self.origin_tick + ticks - self.origin_time.as_nanos() as u64 / TICK_NS;
        }
        let now = self.passed() + self.ahead.load(Ordering::Relaxed);
        let mut last = self.counter.load(Ordering::Relaxed);
        loop {
            let next = now.max(last + 1);
            match self.counter.compare_exchange_weak(last, next, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return next,
                Err(seen) => last = seen,
            }
        }
    }

    /// The tick by the time that has passed.
    fn passed(&self) -> u64 {
        self.origin_tick + self.elapsed().as_nanos() as u64 / TICK_NS
    }

    /// Records that `tick` has passed, so that a counter below it, by more than cores differ, is noticed.
    pub fn raise_floor(&self, tick: u64) {
        self.floor.fetch_max(tick, Ordering::Relaxed);
        self.floor_passed.fetch_max(self.passed(), Ordering::Relaxed);
    }

    /// Abandons the cycle counter for good. Later ticks are above `drawn`, the
    /// highest tick that any transaction has drawn, and go on from there with the time.
    /// They are also above what a thread has read since the floor was raised and not noted yet: the
    /// time that has passed since then, and a thousandth of it by which the counter may have run ahead.
    pub fn fall_back(&self, drawn: u64) {
        let since = self.passed().saturating_sub(self.floor_passed.load(Ordering::Relaxed)) + HELD_UP;
        let above = drawn.max(self.floor.load(Ordering::Relaxed) + since + since / 1000) + 1;
        self.counter.fetch_max(above, Ordering::SeqCst);
        self.ahead.fetch_max(above.saturating_sub(self.passed()), Ordering::SeqCst);
        self.shared_mode.store(true, Ordering::SeqCst);
    }

    /// The length of a number of ticks.
    pub fn duration(ticks: u64) -> Duration {
        Duration::from_nanos(ticks.saturating_mul(TICK_NS))
    }

    /// The number of ticks in a length of time.
    pub fn ticks(length: Duration) -> u64 {
        length.as_nanos() as u64 / TICK_NS
    }
}

#[cfg(test)]
#[path = "clock_test.rs"]
pub(crate) mod tests;
