//! Running transactions again after conflicts.

use std::time::Duration;

use pantile_base::sync::thread;

use crate::engine::core::Core;
use crate::engine::stage::OnStage;
use crate::types::error::Error;

/// Failures after which a transaction asks for the exclusive stage.
const PATIENCE: u32 = 8;

/// Decides whether and when to run a failed transaction again.
///
/// [`Database::run`](crate::Database::run) uses it; use it directly to see each
/// attempt. Retries back off for a growing, random time. After eight failures
/// others wait until the transaction has succeeded, at most a tenth of a second.
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

    /// How many times the transaction has failed.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Returns whether the transaction can succeed if it is run again after
    /// `error`. If so, the call returns when it is time to run it.
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
