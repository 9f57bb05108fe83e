//! Trying transactions again.

use std::time::Duration;

use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_base::sync::thread::{self, ThreadId};
use pantile_base::sync::{Condvar, Mutex, MutexGuard};

use crate::api::database::Database;
use crate::engine::core::Core;
use crate::types::error::Error;

/// Tries after which a transaction gets the stage for itself.
const PATIENCE: u32 = 8;

/// How long others wait at most for one that has the stage, be it to have it
/// next or to begin at all.
const TURN: Duration = Duration::from_millis(100);

/// The exclusive stage (Zen+ 4.1.2), without which transactions could keep
/// invalidating each other's reads for ever (T20): while one that has failed
/// often has it, no other transaction begins, and those that run soon end.
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

    fn enter(&self) -> Option<OnStage<'_>> {
        let turn = self.turn.try_lock_for(TURN)?;
        *self.by.lock() = Some(thread::current().id());
        self.taken.store(true, Ordering::Relaxed);
        Some(OnStage { stage: self, _turn: turn })
    }
}

/// The stage is this transaction's.
struct OnStage<'s> {
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

/// Decides whether and when a transaction that failed is run again.
///
/// [`Database::run`] does all of this; use it directly to see each attempt.
/// Retries back off for a growing, random time. One that has failed eight
/// times has others wait until it has succeeded, for a tenth of a second at most.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # fn attempt(db: &Database) -> Result<()> { db.begin()?.commit().map(|_| ()) }
/// let mut retry = db.retry();
/// let outcome = loop {
///     match attempt(&db) {
///         Err(error) if retry.again(&error) => {}
///         outcome => break outcome,
///     }
/// };
/// outcome?;
/// # Ok::<(), Error>(())
/// ```
pub struct Retry<'d> {
    core: &'d Core,
    tries: u32,
    stage: Option<OnStage<'d>>,
    random: u64,
}

impl std::fmt::Debug for Retry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retry").field("tries", &self.tries).finish_non_exhaustive()
    }
}

impl Database {
    /// For a transaction that is about to be tried for the first time.
    pub fn retry(&self) -> Retry<'_> {
        let core = &*self.core;
        Retry { core, tries: 0, stage: None, random: core.registry.now().get() | 1 }
    }
}

impl Retry<'_> {
    /// How often the transaction has failed.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Whether running the transaction again can help after `error`; if so,
    /// returns when it is time to.
    pub fn again(&mut self, error: &Error) -> bool {
        if !error.is_retryable() {
            return false;
        }
        self.tries += 1;
        if self.tries >= PATIENCE && self.stage.is_none() {
            self.stage = self.core.stage.enter();
        }
        match self.stage {
            Some(_) => thread::yield_now(),
            None => self.back_off(),
        }
        true
    }

    fn back_off(&mut self) {
        if self.tries == 1 {
            return;
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let most = 2u64 << self.tries.min(10);
        let micros = self.random % most;
        if micros < 20 {
            thread::yield_now();
        } else {
            self.core.registry.clock().sleep(Duration::from_micros(micros));
        }
    }
}
