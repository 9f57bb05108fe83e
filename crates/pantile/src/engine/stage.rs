//! The exclusive stage.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_base::sync::thread::{self, ThreadId};
use pantile_base::sync::{Condvar, Mutex, MutexGuard};

/// How long a transaction waits at most for one that has the stage, to have it
/// next or to begin at all.
pub(crate) const TURN: Duration = Duration::from_millis(100);

/// The exclusive stage (Zen+ 4.1.2). Without it transactions could invalidate
/// each other's reads for ever (T20). While a transaction that has failed often
/// has the stage, no other begins, and those that run soon end.
#[derive(Debug, Default)]
pub(crate) struct Stage {
    taken: AtomicBool,
    turn: Mutex<()>,
    by: Mutex<Option<ThreadId>>,
    left: Condvar,
}

impl Stage {
    /// Waits a while if another thread has the stage.
    #[inline]
    pub fn pass(&self) {
        if self.taken.load(Ordering::Relaxed) {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let mut by = self.by.lock();
        if by.is_some_and(|thread| thread != thread::current().id()) {
            self.left.wait_for(&mut by, TURN);
        }
    }

    /// Takes the stage for this thread, unless others hold it for too long, or
    /// for all of `limit`.
    pub fn enter(&self, limit: Duration) -> Option<OnStage<'_>> {
        let turn = self.turn.try_lock_for(TURN.min(limit))?;
        *self.by.lock() = Some(thread::current().id());
        self.taken.store(true, Ordering::Relaxed);
        Some(OnStage { stage: self, _turn: turn })
    }
}

/// The stage is this thread's until this is dropped.
pub(crate) struct OnStage<'s> {
    stage: &'s Stage,
    _turn: MutexGuard<'s, ()>,
}

impl Drop for OnStage<'_> {
    fn drop(&mut self) {
        self.stage.taken.store(false, Ordering::Relaxed);
        *self.stage.by.lock() = None;
        self.stage.left.notify_all();
    }
}
