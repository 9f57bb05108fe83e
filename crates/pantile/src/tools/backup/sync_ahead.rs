//! Making a copy durable while it is written.

use pantile_base::sync::{Condvar, Mutex};

/// A sync begins when this many bytes have been written since the last one.
const WINDOW: u64 = 32 << 20;

/// A thread syncs a file while another one writes to it. So the device works
/// all the time, and no more than three windows wait in memory.
#[derive(Default)]
pub(super) struct SyncAhead {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    written: u64,
    synced: u64,
    /// A thread syncs.
    is_served: bool,
    /// Nothing more is written.
    has_ended: bool,
}

impl SyncAhead {
    /// This many bytes have been written in all. Waits while too many are not
    /// durable.
    pub fn written(&self, bytes: u64) {
        let mut state = self.state.lock();
        state.written = bytes;
        self.changed.notify_all();
        while state.is_served && state.written > state.synced + 2 * WINDOW {
            self.changed.wait(&mut state);
        }
    }

    /// When what this returns is dropped, nothing more is written. So the thread
    /// that syncs ends, too, if the one that writes panics.
    pub fn until_dropped(&self) -> impl Drop {
        End(self)
    }

    /// Calls `sync` until the end. Stops when it returns false.
    pub fn serve(&self, sync: impl Fn() -> bool) {
        let mut state = self.state.lock();
        state.is_served = true;
        while !state.has_ended {
            if state.written < state.synced + WINDOW {
                self.changed.wait(&mut state);
                continue;
            }
            let written = state.written;
            drop(state);
            let is_synced = sync();
            state = self.state.lock();
            state.synced = written;
            self.changed.notify_all();
            if !is_synced {
                break;
            }
        }
        state.is_served = false;
        self.changed.notify_all();
    }
}

struct End<'s>(&'s SyncAhead);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use pantile_base::share_out;
    use pantile_base::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// With a thread that syncs, with one that has failed, and without one.
    #[test]
    fn writing_waits_for_syncs_only_while_there_are_any() {
        for (shares, works) in [(2, true), (2, false), (1, true)] {
            let (ahead, syncs) = (SyncAhead::default(), AtomicU64::new(0));
            share_out(shares, |n| match n {
                0 => {
                    let _end = ahead.until_dropped();
                    (1..=20).for_each(|n| ahead.written(n * WINDOW));
                }
                _ => ahead.serve(|| {
                    syncs.fetch_add(1, Ordering::Relaxed);
                    works
                }),
            });
            assert!(!ahead.state.lock().is_served);
            assert!(syncs.into_inner() <= 20);
        }
    }
}
