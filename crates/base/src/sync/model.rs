//! The same interface, for the model checker shuttle.
//!
//! All threads of a model run on one thread of the system, one at a time, and
//! may be exchanged before every access to an atomic or a lock: memory is
//! sequentially consistent, whatever `Ordering` says. Atomics are the plain
//! words of the standard library, because the engine finds them in memory
//! that it maps, fills with zeros and uses again.
//!
//! Time is simulated: it goes on with each access, and a sleep moves it on.

mod atomics;
mod locks;

use std::cell::Cell;
use std::time::Duration;

pub use locks::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, WaitTimeoutResult};

#[doc(inline)]
pub use crate::model_thread_local as thread_local;

/// Simulated nanoseconds that an access takes.
const STEP_NS: u64 = 40;

std::thread_local! {
    /// Simulated nanoseconds. Only differences are ever looked at, so nobody
    /// sets it back between executions.
    static NOW: Cell<u64> = const { Cell::new(0) };
    /// A model runs on this thread, and threads may be exchanged.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// The access that is about to be made reads and writes at once.
    static UPDATES: Cell<bool> = const { Cell::new(false) };
}

/// Atomics that are scheduling points.
pub mod atomic {
    pub use super::atomics::*;
    pub use std::sync::atomic::Ordering;
}

/// Waiting without sleeping.
pub mod hint {
    /// Lets other threads of the model run: what is waited for, they do.
    pub fn spin_loop() {
        super::thread::yield_now();
    }
}

/// Threads of the model.
pub mod thread {
    use std::io;
    use std::num::NonZero;
    use std::time::Duration;

    pub use shuttle::thread::{
        Builder, JoinHandle, Scope, ScopedJoinHandle, Thread, ThreadId, current, panicking, scope, spawn,
    };

    /// Lets other threads run.
    pub fn yield_now() {
        super::advance(Duration::ZERO);
        if super::is_active() {
            shuttle::thread::yield_now();
        }
    }

    /// Lets time pass and other threads run.
    pub fn sleep(length: Duration) {
        super::advance(length);
        yield_now();
    }

    /// What the standard library has under this name: here always two.
    ///
    /// # Errors
    /// None.
    pub fn available_parallelism() -> io::Result<NonZero<usize>> {
        Ok(NonZero::new(2).expect("two is not zero"))
    }
}

/// A moment of simulated time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Instant(Duration);

impl Instant {
    /// The present.
    pub fn now() -> Self {
        Self(Duration::from_nanos(NOW.get()))
    }

    /// How long ago it was.
    pub fn elapsed(&self) -> Duration {
        Self::now().0.saturating_sub(self.0)
    }
}

impl std::ops::Add<Duration> for Instant {
    type Output = Self;

    fn add(self, length: Duration) -> Self {
        Self(self.0 + length)
    }
}

impl std::ops::Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

/// A variable of each thread of the model.
#[derive(Debug)]
pub struct LocalKey<T: 'static>(#[doc(hidden)] pub shuttle::thread::LocalKey<T>);

impl<T: Copy + 'static> LocalKey<Cell<T>> {
    /// Its value.
    pub fn get(&'static self) -> T {
        self.0.with(Cell::get)
    }

    /// Gives it a value.
    pub fn set(&'static self, value: T) {
        self.0.with(|cell| cell.set(value));
    }
}

#[doc(hidden)]
pub use shuttle::thread::LocalKey as Inner;

/// As in the standard library, for variables with a constant first value.
#[macro_export]
macro_rules! model_thread_local {
    ($(#[$attr:meta])* $vis:vis static $name:ident: $t:ty = const { $init:expr } $(;)?) => {
        $(#[$attr])* $vis static $name: $crate::sync::model::LocalKey<$t> =
            $crate::sync::model::LocalKey($crate::sync::model::Inner {
                init: || $init,
                _p: ::std::marker::PhantomData,
            });
    };
}

/// Runs a model: from here on threads may be exchanged at every access.
/// What has been made before was made without.
pub fn explore<R>(model: impl FnOnce() -> R) -> R {
    struct Quiet(bool);
    impl Drop for Quiet {
        fn drop(&mut self) {
            ACTIVE.set(self.0);
        }
    }
    let _quiet = Quiet(ACTIVE.replace(true));
    model()
}

/// Moves simulated time on.
pub fn advance(length: Duration) {
    NOW.set(NOW.get() + STEP_NS + length.as_nanos() as u64);
}

fn is_active() -> bool {
    ACTIVE.get() && !std::thread::panicking()
}

/// Says that memory is about to be read or written which is not atomic and
/// which another protocol keeps others from changing: a scheduling point.
#[inline]
pub fn plain_access() {
    step();
}

/// For schedulers: whether the thread that is to be exchanged is about to read
/// and write at once (to compare and exchange, to add): there protocols are
/// decided.
pub fn is_before_update() -> bool {
    UPDATES.get()
}

/// A scheduling point.
fn step() {
    exchange(false);
}

/// One before an access that reads and writes at once.
fn update() {
    exchange(true);
}

fn exchange(updates: bool) {
    advance(Duration::ZERO);
    if is_active() {
        UPDATES.set(updates);
        shuttle_engine::runtime::thread::switch();
        UPDATES.set(false);
    }
}
