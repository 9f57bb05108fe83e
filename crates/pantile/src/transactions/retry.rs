//! Running transactions again after conflicts.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::thread;

use crate::engine::core::Core;
use crate::engine::stage::{OnStage, Play, TURN};
use crate::types::error::Error;

pantile_base::sync::thread_local! {
    /// Rows that the last transaction of this thread had read and written when it
    /// was rolled back, and how long it had been open.
    static IN_VAIN: Cell<(u64, Duration)> = const { Cell::new((0, Duration::ZERO)) };
}

/// A transaction of this thread has been rolled back.
pub(super) fn note_in_vain(rows: u64, length: Duration) {
    IN_VAIN.set((rows, length));
}

fn take_in_vain() -> (u64, Duration) {
    let noted = IN_VAIN.get();
    IN_VAIN.set((0, Duration::ZERO));
    noted
}

/// Attempts on the stage that a long transaction has even after its time. The first
/// may meet others that were running when it took the stage.
const LAST_TRIES: u32 = 3;

/// The longest sleep is below 2^14 microseconds, and below 2^10 for a
/// transaction that has the stage: those in its way end soon.
const LONGEST_BITS: u32 = 14;
const LONGEST_BITS_ON_STAGE: u32 = 10;

/// Decides whether and when to run a failed transaction again.
///
/// [`Database::run`](crate::Database::run) uses it. Use it directly to see each attempt. All
/// attempts must be made by one thread.
///
/// Between attempts it sleeps for a random time that grows, up to 16 milliseconds. After each
/// eighth failure, other writers wait until the `Retry` is dropped, at most a tenth of a second.
/// After much work or time in vain, they wait until it is dropped, at most for as long as
/// [`Options::begin_wait`](crate::Options::begin_wait) says
/// ([`ExclusiveStage`](crate::ExclusiveStage)). So drop it when the transaction has succeeded.
///
/// It gives up when the time of [`Options::retry_for`](crate::Options::retry_for) is over. A
/// transaction with so much work in vain is then still tried, until it has run without other
/// writers three times.
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
/// drop(retry);
/// outcome?;
/// # Ok::<(), Error>(())
/// ```
pub struct Retry<'d> {
    core: &'d Core,
    began: Duration,
    tries: u32,
    /// Failures since it had the stage last.
    unstaged: u32,
    /// Rows that all attempts have accessed.
    wasted: u64,
    /// How long those took that failed because others came first.
    spent: Duration,
    /// The exclusive stage, and since when it has it if only for a turn.
    stage: Option<(OnStage<'d>, Option<Duration>)>,
    /// Attempts that had it until they ended.
    on_stage: u32,
    random: u64,
    /// The stage is a thread's.
    of_thread: PhantomData<*const ()>,
}

impl std::fmt::Debug for Retry<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Retry").field("tries", &self.tries).finish_non_exhaustive()
    }
}

impl<'d> Retry<'d> {
    pub(crate) fn new(core: &'d Core) -> Self {
        let began = core.registry.clock().elapsed();
        Self {
            core,
            began,
            tries: 0,
            unstaged: 0,
            wasted: 0,
            spent: Duration::ZERO,
            stage: None,
            on_stage: 0,
            random: began.as_nanos() as u64 | 1,
            of_thread: PhantomData,
        }
    }

    /// How many times the transaction has failed.
    pub fn tries(&self) -> u32 {
        self.tries
    }

    /// Returns whether to run the transaction again after `error`: it can succeed, and there is
    /// time for it. If so, the call returns when it is time to run it.
    pub fn again(&mut self, error: &Error) -> bool {
        if !error.is_retryable() {
            return false;
        }
        if is_removed(Control::RetryTime) && self.tries >= 1000 {
            return false;
        }
        self.tries += 1;
        let (rows, length) = take_in_vain();
        self.wasted = self.wasted.saturating_add(rows);
        if error.came_too_late() {
            self.spent = self.spent.saturating_add(length);
        }
        let is_over = self.time_left().is_zero();
        if is_over && !(error.came_too_late() && self.may_go_on()) {
            return false;
        }
        self.settle_stage();
        let is_left_alone = matches!(self.stage, Some((_, None)));
        self.on_stage += u32::from(is_left_alone);
        if is_over && !is_left_alone {
            return false;
        }
        self.back_off();
        true
    }

    fn time_left(&self) -> Duration {
        let spent = self.core.registry.clock().elapsed().saturating_sub(self.began);
        self.core.options.time_to_retry().saturating_sub(spent)
    }

    /// Whether so much was in vain that it may have the stage until it has ended.
    fn is_long(&self) -> bool {
        let when = &self.core.options.exclusive;
        self.wasted >= when.wasted || self.spent >= when.spent
    }

    /// Whether it is tried although its time is over.
    fn may_go_on(&self) -> bool {
        let retries = !self.core.options.time_to_retry().is_zero();
        retries && self.is_long() && self.on_stage < LAST_TRIES && !is_removed(Control::LastOnStage)
    }

    /// Asks for the exclusive stage after many failures, and leaves it when
    /// others have waited for their time.
    fn settle_stage(&mut self) {
        let elapsed = || self.core.registry.clock().elapsed();
        let play = if self.is_long() { Play::Whole } else { Play::Turn };
        let is_over = |since: &Option<Duration>| {
            since.is_some_and(|since| play == Play::Whole || elapsed().saturating_sub(since) >= TURN)
        };
        if self.stage.as_ref().is_some_and(|(_, since)| is_over(since)) {
            self.stage = None;
            self.unstaged = 0;
        }
        self.unstaged += 1;
        if self.stage.is_none() && (play == Play::Whole || self.unstaged >= self.core.options.exclusive.tries)
        {
            let entered = self.core.stage.enter(play, self.time_for_stage());
            self.stage = entered.map(|stage| (stage, (play == Play::Turn).then(elapsed)));
        }
    }

    /// How long it waits for others that have the stage. Once its time is over there is
    /// no attempt without.
    fn time_for_stage(&self) -> Duration {
        let (left, longest) = (self.time_left(), self.core.options.wait_to_begin().max(TURN));
        if left.is_zero() { longest } else { longest.min(left) }
    }

    /// Sleeps for a random time that grows with the failures. Only the first
    /// retry comes at once.
    fn back_off(&mut self) {
        if self.tries == 1 || is_removed(Control::RetryTime) && self.stage.is_some() {
            return thread::yield_now();
        }
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let longest = if self.stage.is_some() { LONGEST_BITS_ON_STAGE } else { LONGEST_BITS };
        let micros = self.random % (1 << (self.tries + 1).min(longest));
        let pause = Duration::from_micros(micros);
        let left = self.time_left();
        // After its time it is on the stage, where pauses are short.
        self.core.registry.clock().sleep(if left.is_zero() { pause } else { pause.min(left) });
    }
}
