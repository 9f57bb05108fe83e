//! The worker: a thread that does the work that no commit does.
//!
//! It sleeps while nothing is owed, so an idle database does not wake up.
//! Commits wake it, and so does the end of a transaction if that is what the
//! rest of the work waits for.

use std::sync::{Arc, Weak};
use std::time::Duration;

use pantile_base::sync::atomic::{AtomicU32, Ordering};
use pantile_base::sync::{Condvar, Mutex, thread};

use crate::engine::core::Core;

/// When the next round is due.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    In(Duration),
    /// Something is owed, but running transactions may still need it.
    AfterAnEnd,
    /// Nothing is owed.
    AfterAWrite,
}

const AWAKE: u32 = 0;
const UNTIL_A_WRITE: u32 = 1;
const UNTIL_AN_END: u32 = 2;

/// Wakes the worker.
#[derive(Default)]
pub(crate) struct Alarm {
    /// What the worker sleeps for. Read by every transaction, seldom written.
    asleep: AtomicU32,
    /// Whether the worker is to end.
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Alarm {
    /// A transaction has written something.
    #[inline]
    pub fn written(&self) {
        if self.asleep.load(Ordering::Relaxed) != AWAKE {
            self.wake();
        }
    }

    /// A transaction has ended.
    #[inline]
    pub fn ended(&self) {
        if self.asleep.load(Ordering::Relaxed) == UNTIL_AN_END {
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
    fn sleep(&self, what_for: u32, limit: Option<Duration>) -> bool {
        let mut ended = self.ended.lock();
        if !*ended && (what_for == AWAKE || self.asleep.load(Ordering::Relaxed) == what_for) {
            match limit {
                Some(limit) => _ = self.changed.wait_for(&mut ended, limit),
                None => self.changed.wait(&mut ended),
            }
        }
        !*ended
    }
}

/// The thread. It runs as long as there are handles of the database.
pub(crate) struct Worker {
    alarm: Arc<Alarm>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Worker {
    /// Starts the thread. If the system refuses it, and where time is
    /// simulated, committing threads do its rounds.
    pub fn start(core: &Arc<Core>) -> Option<Self> {
        if core.options.simulated_time.is_some() || core.options.without_worker {
            return None;
        }
        let (alarm, weak) = (Arc::clone(&core.alarm), Arc::downgrade(core));
        let builder = thread::Builder::new().name("pantile-worker".into());
        let thread = builder.spawn(move || work(&weak, &alarm)).ok()?;
        core.rounds.leave_to_worker();
        Some(Self { alarm: Arc::clone(&core.alarm), thread: Some(thread) })
    }
}

fn work(core: &Weak<Core>, alarm: &Alarm) {
    // What the last round left the thread to sleep for.
    let mut last = AWAKE;
    loop {
        // `Worker::drop` waits for the last round while its handle still has
        // the core, so this is never the last reference.
        let Some(core) = core.upgrade() else { return };
        let due = core.round();
        let epoch = core.options.gc.epoch;
        drop(core);
        let (what_for, limit) = match due {
            Due::In(time) => (AWAKE, Some(time)),
            Due::AfterAnEnd => (UNTIL_AN_END, Some(epoch)),
            Due::AfterAWrite => (UNTIL_A_WRITE, Some(epoch)),
        };
        // Before a long sleep comes one of an epoch with the alarm set, and
        // another round. So whatever was done by a thread that did not yet see
        // the alarm is noticed, and that thread need not issue a fence.
        let limit = limit.filter(|_| what_for == AWAKE || what_for != last);
        if what_for != last || what_for == AWAKE {
            alarm.asleep.store(what_for, Ordering::SeqCst);
        }
        if !alarm.sleep(what_for, limit) {
            return;
        }
        last = alarm.asleep.load(Ordering::Relaxed);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        *self.alarm.ended.lock() = true;
        self.alarm.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A round that panicked has already said so on stderr.
            let _ = thread.join();
        }
    }
}
