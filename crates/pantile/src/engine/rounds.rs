//! When the next round of upkeep is due if committing threads do them.

use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_cc::Clock;

#[derive(Default)]
pub(crate) struct Rounds {
    /// When the next round is due, in microseconds.
    next: AtomicU64,
    /// Whether a thread of its own does the rounds.
    has_worker: AtomicBool,
    /// A round, or the collector, has panicked.
    has_ended: AtomicBool,
    /// Held during a round of the worker.
    turn: Mutex<()>,
}

impl Rounds {
    pub fn leave_to_worker(&self) {
        self.has_worker.store(true, Ordering::Relaxed);
    }

    pub fn has_worker(&self) -> bool {
        self.has_worker.load(Ordering::Relaxed)
    }

    /// A round, or the collector in another thread, has panicked. What it was at is not known, so nothing is collected
    /// any more. State records are left to committing threads.
    #[cold]
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
        self.has_worker.store(false, Ordering::Relaxed);
    }

    pub fn have_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Whether a committing thread has to do a round now.
    #[inline]
    pub fn is_due(&self, clock: &Clock, interval: Duration) -> bool {
        if self.has_worker.load(Ordering::Relaxed) {
            return false;
        }
        let now = clock.elapsed().as_micros() as u64;
        let is_due = now >= self.next.load(Ordering::Relaxed);
        if is_due {
            self.next.store(now + interval.as_micros() as u64, Ordering::Relaxed);
        }
        is_due
    }

    /// Does `work` while no round of the worker is under way, or as such a
    /// round. So the worker's slot never shows.
    pub fn apart<T>(&self, work: impl FnOnce() -> T) -> T {
        let _turn = self.turn.lock();
        work()
    }

    #[cfg(test)]
    pub fn is_under_way(&self) -> bool {
        self.turn.try_lock().is_none()
    }
}
