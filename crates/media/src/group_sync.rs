//! One sync for many committers.
//!
//! A fence is served by any sync that *started* after the fence was called.
//! Syncs are numbered; a caller needs the number after the last one started.
//! A caller that finds no leader becomes the leader and syncs outside the
//! lock; the others park until their number is done. A leader wakes all callers
//! that are done and one that is not, each by itself and without the lock: with
//! a condition variable they would queue for the lock, and each would run only
//! after the one before it.

use crate::MediumError;
use crate::failure::Failure;
use crate::limits::Explained;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::sync::thread::{self, Thread};
use pantile_base::sync::{Condvar, Instant, Mutex, MutexGuard};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The longest time for which a sync waits for companions.
const LONGEST_WINDOW: Duration = Duration::from_secs(1);

/// The call that makes bytes durable; tests put their own in its place.
pub(crate) type SyncCall = Box<dyn Fn() -> io::Result<()> + Send + Sync>;

#[derive(Debug, Default)]
struct State {
    /// A leader gathers a group or syncs.
    led: bool,
    /// Callers that will be served by the sync after the last one started.
    waiting: u64,
    /// The callers that are parked until a sync has ended.
    parked: Vec<Parked>,
    /// Callers to expect in the next group: as many as were active when the
    /// last sync ended.
    expected: u64,
}

#[derive(Debug)]
struct Parked {
    /// The sync for which it waits.
    number: u64,
    thread: Thread,
}

/// Shares syncs among the threads that call it.
pub(crate) struct GroupSync {
    call: SyncCall,
    failure: Arc<Failure>,
    window: Duration,
    state: Mutex<State>,
    /// Number of the last sync that started. Changes under the lock.
    started: AtomicU64,
    /// Number of the last sync that ended well. Changes under the lock.
    done: AtomicU64,
    joined: Condvar,
}

impl fmt::Debug for GroupSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSync")
            .field("window", &self.window)
            .field("state", &self.state)
            .field("started", &self.started)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}

impl GroupSync {
    /// Shares calls of `call`. A leader waits up to `window` for as many
    /// companions as were last seen; zero means not to wait at all.
    pub(crate) fn new(call: SyncCall, failure: Arc<Failure>, window: Duration) -> Self {
        Self {
            call,
            failure,
            window,
            state: Mutex::default(),
            started: AtomicU64::new(0),
            done: AtomicU64::new(0),
            joined: Condvar::new(),
        }
    }

    /// Returns once a sync that started after this call has ended well, and
    /// whether this thread made it.
    ///
    /// # Errors
    /// [`MediumError::Failed`] once a sync has failed, this one or any before.
    pub(crate) fn sync(&self) -> Result<bool, MediumError> {
        self.reach(self.next())
    }

    /// Returns once sync `number`, which [`GroupSync::next`] has returned, or one
    /// after it has ended well, and whether this thread made it.
    ///
    /// # Errors
    /// As for [`GroupSync::sync`].
    pub(crate) fn reach(&self, number: u64) -> Result<bool, MediumError> {
        let mut is_counted = false;
        // A sync that ended well serves its group even if a later one failed.
        while !self.is_done(number) {
            let mut state = self.state.lock();
            let me = thread::current();
            state.parked.retain(|parked| parked.thread.id() != me.id());
            if number > self.started.load(Ordering::SeqCst) && !is_counted {
                is_counted = true;
                state.waiting += 1;
                self.joined.notify_one();
            }
            if self.is_done(number) {
                break;
            }
            if let Err(failed) = self.failure.check() {
                // The failure may not be a leader's, and a leader that ends well
                // wakes only one of the callers that it has not served.
                let parked = std::mem::take(&mut state.parked);
                drop(state);
                wake(&parked);
                return Err(failed);
            }
            if !state.led {
                return self.lead(state).map(|()| true);
            }
            state.parked.push(Parked { number, thread: me });
            drop(state);
            thread::park();
        }
        Ok(false)
    }

    /// Number of the first sync that will cover all that was written before this call.
    pub(crate) fn next(&self) -> u64 {
        // The leader counts its sync before it makes it: a sync that is not counted here
        // sees what was written.
        self.started.load(Ordering::SeqCst) + 1
    }

    /// Whether sync `number`, or one after it, has ended well.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.done.load(Ordering::SeqCst) >= number
    }

    fn lead(&self, mut state: MutexGuard<'_, State>) -> Result<(), MediumError> {
        state.led = true;
        self.gather(&mut state);
        let number = self.started.fetch_add(1, Ordering::SeqCst) + 1;
        let served = std::mem::take(&mut state.waiting);
        let result = MutexGuard::unlocked(&mut state, || (self.call)());
        state.led = false;
        state.expected = served + state.waiting;
        let result = result.map_err(|error| self.failure.latch_sync(format!("sync: {}", Explained(&error))));
        let woken = if result.is_ok() {
            self.done.store(number, Ordering::SeqCst);
            take_served(&mut state.parked, number)
        } else {
            std::mem::take(&mut state.parked)
        };
        drop(state);
        wake(&woken);
        result
    }

    /// Waits for the companions last seen, but no longer than the window.
    fn gather(&self, state: &mut MutexGuard<'_, State>) {
        if self.window.is_zero() {
            return;
        }
        let deadline = Instant::now() + self.window.min(LONGEST_WINDOW);
        while state.waiting < state.expected {
            if self.joined.wait_until(state, deadline).timed_out() {
                return;
            }
        }
    }
}

fn wake(parked: &[Parked]) {
    parked.iter().for_each(|parked| parked.thread.unpark());
}

/// One that sync `done` has not served, to lead the next, and those that it has. The device rests until the next leader
/// runs, so that one is woken first.
fn take_served(parked: &mut Vec<Parked>, done: u64) -> Vec<Parked> {
    let next = parked.iter().position(|parked| parked.number > done).map(|n| parked.remove(n));
    next.into_iter().chain(parked.extract_if(.., |parked| parked.number <= done)).collect()
}

#[cfg(test)]
#[path = "group_sync_test.rs"]
mod tests;
