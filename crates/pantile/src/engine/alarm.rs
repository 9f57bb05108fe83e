//! What wakes the worker.

use std::time::Duration;

use pantile_base::Padded;
use pantile_base::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use pantile_base::sync::{Condvar, Mutex};

/// When the next round is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    In(Duration),
    /// Something is owed, but running transactions may still need it.
    AfterAnEnd,
    /// Nothing is owed.
    AfterAWrite,
}

impl Due {
    /// The same, but no later than this.
    pub fn at_the_latest(self, time: Duration) -> Self {
        match self {
            Self::In(sooner) => Self::In(sooner.min(time)),
            Self::AfterAnEnd | Self::AfterAWrite => Self::In(time),
        }
    }
}

/// What the worker sleeps for.
pub(crate) const AWAKE: u32 = 0;
pub(crate) const UNTIL_A_WRITE: u32 = 1;
pub(crate) const UNTIL_AN_END: u32 = 2;
/// Nothing has begun for a second.
pub(crate) const UNTIL_A_BEGIN: u32 = 3;

/// Wakes the worker.
#[derive(Default)]
pub(crate) struct Alarm {
    /// What the worker sleeps for. Read by every transaction, seldom written.
    asleep: AtomicU32,
    /// Whether the worker is to look at once whether a state record is due.
    record: Padded<AtomicBool>,
    /// Whether the worker is to end.
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    /// Sets what the worker is about to sleep for.
    pub fn set(&self, what_for: u32) {
        self.asleep.store(what_for, Ordering::SeqCst);
    }

    /// What it sleeps for, as set, unless it has been woken.
    pub fn is_set_for(&self) -> u32 {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Ends the thread.
    pub fn end(&self) {
        *self.ended.lock() = true;
        self.changed.notify_all();
    }

    /// Whether the thread has been told to end.
    pub fn has_ended(&self) -> bool {
        *self.ended.lock()
    }

    /// A transaction has written something.
    #[inline]
    pub fn written(&self) {
        if self.asleep.load(Ordering::Relaxed) != AWAKE {
            self.wake();
        }
    }

    /// A transaction has ended, or has given up what it could read.
    #[inline]
    pub fn ended(&self) {
        if self.asleep.load(Ordering::Relaxed) >= UNTIL_AN_END {
            self.wake();
        }
    }

    /// A transaction has begun.
    #[inline]
    pub fn begun(&self) {
        if self.asleep.load(Ordering::Relaxed) == UNTIL_A_BEGIN {
            self.wake();
        }
    }

    /// A state record is due. Saying so again costs nothing until the worker has looked.
    #[inline]
    pub fn record_due(&self) {
        if !self.record.load(Ordering::Relaxed) && !self.record.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// The worker is about to look whether one is due.
    pub fn forget_record(&self) {
        self.record.swap(false, Ordering::AcqRel);
    }

    /// There may be something to do.
    pub fn look(&self) {
        if self.asleep.load(Ordering::Relaxed) != AWAKE {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let _ended = self.ended.lock();
        self.asleep.store(AWAKE, Ordering::Relaxed);
        self.changed.notify_all();
    }

    /// Sleeps for `limit`, or until someone wakes the thread. Returns whether
    /// the thread goes on.
    pub fn sleep(&self, what_for: u32, limit: Option<Duration>) -> bool {
        let mut ended = self.ended.lock();
        if self.record.load(Ordering::Acquire) {
            // A round comes in place of the sleep, so the next long one is not its second.
            self.asleep.store(AWAKE, Ordering::Relaxed);
        } else if !*ended && (what_for == AWAKE || self.asleep.load(Ordering::Relaxed) == what_for) {
            match limit {
                Some(limit) => _ = self.changed.wait_for(&mut ended, limit),
                None => self.changed.wait(&mut ended),
            }
        }
        !*ended
    }
}
