//! The interface of `base/src/sync.rs`, backed by the model checker shuttle.
//!
//! All threads of a model run on one thread of the system, one at a time. The
//! scheduler may switch threads before every access to an atomic or a lock.
//! Memory is sequentially consistent, whatever `Ordering` says. Atomics are the
//! plain words of the standard library, because the engine finds them in memory
//! that it maps, zero-fills and reuses.
//!
//! Time is simulated: each access advances it, and so does a sleep.

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
    /// Simulated nanoseconds. Only differences matter, so executions do not
    /// reset it.
    static NOW: Cell<u64> = const { Cell::new(0) };
    /// Whether a model runs on this thread, so that threads may be switched.
    static ACTIVE: Cell<bool> = const { Cell::new(false) };
    /// Whether the next access both reads and writes.
    static UPDATES: Cell<bool> = const { Cell::new(false) };
}

/// Atomics whose accesses are scheduling points.
pub mod atomic {
    pub use super::atomics::*;
    pub use std::sync::atomic::Ordering;
}

/// Waiting without sleeping.
pub mod hint {
    /// Lets the other threads of the model run, because one of them does what
    /// this thread waits for.
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
        Builder, JoinHandle, Scope, ScopedJoinHandle, Thread, ThreadId, current, panicking, park, scope,
        spawn,
    };

    /// Lets other threads run.
    pub fn yield_now() {
        super::advance(Duration::ZERO);
        if super::is_active() {
            shuttle::thread::yield_now();
        }
    }

    /// Advances time and lets other threads run.
    pub fn sleep(length: Duration) {
        super::advance(length);
        yield_now();
    }

    /// As in the standard library, but always two.
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

    /// The moment after this length of time, if there is one.
    pub fn checked_add(&self, length: Duration) -> Option<Self> {
        self.0.checked_add(length).map(Self)
    }

    /// How much time has passed since.
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

/// A thread-local variable of the model.
#[derive(Debug)]
pub struct LocalKey<T: 'static>(#[doc(hidden)] pub shuttle::thread::LocalKey<T>);

impl<T: Copy + 'static> LocalKey<Cell<T>> {
    /// Its value.
    pub fn get(&'static self) -> T {
        self.0.with(Cell::get)
    }

    /// Sets its value.
    pub fn set(&'static self, value: T) {
        self.0.with(|cell| cell.set(value));
    }
}

#[doc(hidden)]
pub use shuttle::thread::LocalKey as Inner;

/// As in the standard library, for variables with a constant initial value.
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

/// Runs a model. From here on, threads may be switched at every access. What
/// was created before, was created without switches.
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

/// Advances simulated time.
pub fn advance(length: Duration) {
    NOW.set(NOW.get() + STEP_NS + length.as_nanos() as u64);
}

fn is_active() -> bool {
    ACTIVE.get() && !std::thread::panicking()
}

/// Announces an access to memory that is not atomic and that another protocol
/// protects from concurrent change. A scheduling point.
#[inline]
pub fn plain_access() {
    step();
}

/// For schedulers: returns whether the thread to be switched out is about to
/// read and write in one step (compare and exchange, add). Such steps decide
/// protocols.
pub fn is_before_update() -> bool {
    UPDATES.get()
}

/// A scheduling point.
fn step() {
    exchange(false);
}

/// A scheduling point before an access that both reads and writes.
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
