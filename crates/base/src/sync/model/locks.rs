//! Shuttle's locks with parking_lot's interface.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use super::{Instant, advance, thread};

/// A wait with a limit from here on never ends by it, so that a wake-up that
/// gets lost shows as a deadlock. A shorter one ends at once.
const FOR_EVER: Duration = Duration::from_secs(1);

/// Tries of a lock that is waited for with a limit.
const TRIES: u32 = 32;

/// A lock.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// Holds a lock.
pub struct MutexGuard<'m, T> {
    /// There but while a condition is waited for.
    inner: Option<shuttle::sync::MutexGuard<'m, T>>,
    mutex: &'m Mutex<T>,
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<T> Mutex<T> {
    /// An open lock.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        advance(Duration::ZERO);
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner: Some(inner), mutex: self }
    }

    /// Takes the lock if nobody has it.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        advance(Duration::ZERO);
        let inner = match self.0.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { inner: Some(inner), mutex: self })
    }

    /// Takes the lock if it can be had before long.
    pub fn try_lock_for(&self, _limit: Duration) -> Option<MutexGuard<'_, T>> {
        for _ in 0..TRIES {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            thread::yield_now();
        }
        None
    }

    /// The value, without locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    /// Opens the lock while `work` runs.
    pub fn unlocked<R>(guard: &mut Self, work: impl FnOnce() -> R) -> R {
        drop(guard.inner.take());
        let done = work();
        guard.inner = guard.mutex.lock().inner.take();
        done
    }
}

impl<T> fmt::Debug for MutexGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutexGuard").finish_non_exhaustive()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("the lock is held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("the lock is held")
    }
}

/// A lock that many may hold to read.
#[derive(Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

/// Holds a lock to read.
pub type RwLockReadGuard<'l, T> = shuttle::sync::RwLockReadGuard<'l, T>;

/// Holds a lock to write.
pub type RwLockWriteGuard<'l, T> = shuttle::sync::RwLockWriteGuard<'l, T>;

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

impl<T> RwLock<T> {
    /// An open lock.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }

    /// Waits for the lock, to read.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        advance(Duration::ZERO);
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the lock, to write.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        advance(Duration::ZERO);
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a wait has ended without a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it has.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// Something to wait for under a lock.
#[derive(Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

impl Condvar {
    /// Nobody waits.
    pub const fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    /// Opens the lock until woken.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        advance(Duration::ZERO);
        let inner = guard.inner.take().expect("the lock is held");
        guard.inner = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// Opens the lock until woken, or for a while.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        if limit >= FOR_EVER {
            self.wait(guard);
            return WaitTimeoutResult(false);
        }
        MutexGuard::unlocked(guard, || thread::sleep(limit));
        WaitTimeoutResult(true)
    }

    /// Opens the lock until woken, or until a moment.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> WaitTimeoutResult {
        self.wait_for(guard, deadline - Instant::now())
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) -> bool {
        self.0.notify_one();
        true
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) -> usize {
        self.0.notify_all();
        0
    }
}
