//! Trying transactions again.

use std::time::Duration;

use pantile_base::sync::thread;

use crate::engine::core::Core;
use crate::engine::stage::OnStage;
use crate::types::error::Error;

/// Tries after which a transaction gets the stage for itself.
const PATIENCE: u32 = 8;

/// Decides whether and when a transaction that failed is run again.
///
/// [`crate::Database::run`] does all of this; use it directly to see each attempt.
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

impl<'d> Retry<'d> {
    pub(crate) fn new(core: &'d Core) -> Self {
        Self { core, tries: 0, stage: None, random: core.registry.now().get() | 1 }
    }

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
