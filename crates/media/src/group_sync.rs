//! One sync for many committers.
//!
//! A fence is served by any sync that *started* after the fence was called.
//! Syncs are numbered; a caller needs the number after the last one started.
//! A caller that finds no leader becomes the leader and syncs outside the
//! lock; the others park until their number is done. Callers wait for the
//! running sync or for the next, never for a later one. So two condition
//! variables, taken in turn, wake all callers that are done and one that is
//! not.

use crate::MediumError;
use crate::failure::Failure;
use crate::limits::Explained;
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
    /// Number of the last sync that started.
    started: u64,
    /// Number of the last sync that ended well.
    done: u64,
    /// A leader gathers a group or syncs.
    led: bool,
    /// Callers that will be served by sync `started + 1`.
    waiting: u64,
    /// Callers to expect in the next group: as many as were active when the
    /// last sync ended.
    expected: u64,
}

/// Shares syncs among the threads that call it.
pub(crate) struct GroupSync {
    call: SyncCall,
    failure: Arc<Failure>,
    window: Duration,
    state: Mutex<State>,
    done: [Condvar; 2],
    joined: Condvar,
}

impl fmt::Debug for GroupSync {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupSync")
            .field("window", &self.window)
            .field("state", &self.state)
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
            done: [Condvar::new(), Condvar::new()],
            joined: Condvar::new(),
        }
    }

    /// Returns once a sync that started after this call has ended well, and
    /// whether this thread made it.
    ///
    /// # Errors
    /// [`MediumError::Failed`] once a sync has failed, this one or any before.
    pub(crate) fn sync(&self) -> Result<bool, MediumError> {
        let state = self.state.lock();
        let next = state.started + 1;
        self.reach_from(state, next)
    }

    /// Returns once sync `number`, which [`GroupSync::next`] has returned, or one
    /// after it has ended well, and whether this thread made it.
    ///
    /// # Errors
    /// As for [`GroupSync::sync`].
    pub(crate) fn reach(&self, number: u64) -> Result<bool, MediumError> {
        self.reach_from(self.state.lock(), number)
    }

    fn reach_from(&self, mut state: MutexGuard<'_, State>, ticket: u64) -> Result<bool, MediumError> {
        if ticket > state.started {
            state.waiting += 1;
            self.joined.notify_one();
        }
        loop {
            // A sync that ended well serves its group even if a later one failed.
            if state.done >= ticket {
                return Ok(false);
            }
            if let Err(failed) = self.failure.check() {
                // The failure may not be a leader's, and a leader that ends well
                // wakes only one of the callers that it has not served.
                for done in &self.done {
                    done.notify_all();
                }
                return Err(failed);
            }
            if !state.led {
                return self.lead(state).map(|()| true);
            }
            self.done[(ticket % 2) as usize].wait(&mut state);
        }
    }

    /// Number of the first sync that will cover all that was written before this call.
    pub(crate) fn next(&self) -> u64 {
        self.state.lock().started + 1
    }

    /// Whether sync `number`, or one after it, has ended well.
    pub(crate) fn is_done(&self, number: u64) -> bool {
        self.state.lock().done >= number
    }

    fn lead(&self, mut state: MutexGuard<'_, State>) -> Result<(), MediumError> {
        state.led = true;
        self.gather(&mut state);
        state.started += 1;
        let number = state.started;
        let served = std::mem::take(&mut state.waiting);
        let result = MutexGuard::unlocked(&mut state, || (self.call)());
        state.led = false;
        state.expected = served + state.waiting;
        let result = result.map_err(|error| self.failure.latch(format!("sync: {}", Explained(&error))));
        if result.is_ok() {
            state.done = number;
        }
        self.wake(number, result.is_err());
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

    /// Wakes all callers that were served, and one other to lead. On failure
    /// wakes all.
    fn wake(&self, number: u64, failed: bool) {
        let (served, next) = ((number % 2) as usize, ((number + 1) % 2) as usize);
        self.done[served].notify_all();
        if failed {
            self.done[next].notify_all();
        } else {
            self.done[next].notify_one();
        }
    }
}

#[cfg(test)]
#[path = "group_sync_test.rs"]
mod tests;
