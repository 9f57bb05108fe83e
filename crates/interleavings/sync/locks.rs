//! Shuttle's locks with parking_lot's interface.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{PoisonError, TryLockError};
use std::time::Duration;

use super::{Instant, advance, thread};

/// Waits with this limit or a longer one never time out, so that a lost wake-up
/// shows as a deadlock. A wait with a shorter limit ends at once.
const FOR_EVER: Duration = Duration::from_secs(1);

/// Attempts at a lock when the caller sets a time limit.
const TRIES: u32 = 32;

/// A mutual exclusion lock.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// Holds the lock until dropped.
pub struct MutexGuard<'m, T> {
    /// `None` only while the thread waits for a condition.
    inner: Option<shuttle::sync::MutexGuard<'m, T>>,
    mutex: &'m Mutex<T>,
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mutex").finish_non_exhaustive()
    }
}

impl<T> Mutex<T> {
    /// Creates an unlocked mutex.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// Waits for the lock.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        advance(Duration::ZERO);
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        MutexGuard { inner: Some(inner), mutex: self }
    }

    /// Takes the lock if it is free.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        advance(Duration::ZERO);
        let inner = match self.0.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { inner: Some(inner), mutex: self })
    }

    /// Takes the lock if it becomes free soon.
    pub fn try_lock_for(&self, _limit: Duration) -> Option<MutexGuard<'_, T>> {
        for _ in 0..TRIES {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            thread::yield_now();
        }
        None
    }

    /// The value. Needs no locking.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    /// Releases the lock while `work` runs.
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

/// A lock that many readers or one writer can hold.
#[derive(Default)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

/// Holds the lock for reading until dropped.
pub type RwLockReadGuard<'l, T> = shuttle::sync::RwLockReadGuard<'l, T>;

/// Holds the lock for writing until dropped.
pub type RwLockWriteGuard<'l, T> = shuttle::sync::RwLockWriteGuard<'l, T>;

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RwLock").finish_non_exhaustive()
    }
}

impl<T> RwLock<T> {
    /// Creates an unlocked lock.
    pub const fn new(value: T) -> Self {
        Self(shuttle::sync::RwLock::new(value))
    }

    /// Waits for the lock and takes it for reading.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        advance(Duration::ZERO);
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`RwLock::read`]: the scheduler's lock lets readers pass those who wait to write.
    pub fn read_recursive(&self) -> RwLockReadGuard<'_, T> {
        self.read()
    }

    /// Waits for the lock and takes it for writing.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        advance(Duration::ZERO);
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a wait ended without a wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// Whether it did.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// A condition to wait for while holding a lock.
#[derive(Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl fmt::Debug for Condvar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Condvar").finish_non_exhaustive()
    }
}

impl Condvar {
    /// Creates a condition without waiters.
    pub const fn new() -> Self {
        Self(shuttle::sync::Condvar::new())
    }

    /// Releases the lock until woken.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        advance(Duration::ZERO);
        let inner = guard.inner.take().expect("the lock is held");
        guard.inner = Some(self.0.wait(inner).unwrap_or_else(PoisonError::into_inner));
    }

    /// Releases the lock until woken, or for at most `limit`.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) -> WaitTimeoutResult {
        if limit >= FOR_EVER {
            self.wait(guard);
            return WaitTimeoutResult(false);
        }
        MutexGuard::unlocked(guard, || thread::sleep(limit));
        WaitTimeoutResult(true)
    }

    /// Releases the lock until woken, or until `deadline`.
    pub fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, deadline: Instant) -> WaitTimeoutResult {
        self.wait_for(guard, deadline - Instant::now())
    }

    /// Wakes one waiter.
    pub fn notify_one(&self) -> bool {
        self.0.notify_one();
        true
    }

    /// Wakes all waiters.
    pub fn notify_all(&self) -> usize {
        self.0.notify_all();
        0
    }
}
