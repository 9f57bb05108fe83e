//! A place of its own for each thread, to count and to keep notes in without
//! locked instructions: those would wait for every load the thread has under
//! way.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Threads that can have a place of their own at one time; others share one.
pub(crate) const OWN_PLACES: usize = 64;

/// One bit for each place that a living thread owns.
static OWNED: AtomicU64 = AtomicU64::new(0);

/// Where the calling thread keeps things.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ShardIndex {
    /// No other living thread has this number, which is below [`OWN_PLACES`].
    Own(usize),
    /// Any number of threads are here.
    Shared,
}

struct Seat(Cell<Option<ShardIndex>>);

thread_local! {
    static SEAT: Seat = const { Seat(Cell::new(None)) };
}

impl Seat {
    #[inline]
    fn place(&self) -> ShardIndex {
        self.0.get().unwrap_or_else(|| self.take())
    }

    #[cold]
    fn take(&self) -> ShardIndex {
        let place = take_free().map_or(ShardIndex::Shared, ShardIndex::Own);
        self.0.set(Some(place));
        place
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(ShardIndex::Own(index)) = self.0.get() {
            // Release: the next owner sees what this one left.
            OWNED.fetch_and(!(1 << index), Ordering::Release);
        }
    }
}

fn take_free() -> Option<usize> {
    let lowest = |owned: u64| !owned & owned.wrapping_add(1);
    OWNED
        .fetch_update(Ordering::Acquire, Ordering::Relaxed, |owned| {
            (owned != u64::MAX).then(|| owned | lowest(owned))
        })
        .ok()
        .map(|owned| lowest(owned).trailing_zeros() as usize)
}

/// The calling thread's place. It stays the same while the thread lives, and
/// is handed on when it ends.
#[inline]
pub(crate) fn place() -> ShardIndex {
    SEAT.try_with(Seat::place).unwrap_or(ShardIndex::Shared)
}

/// Keeps its contents off neighbours' cache lines; two, because CPUs fetch
/// lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// A `T` for each thread.
pub(crate) struct PerThread<T> {
    own: Box<[Padded<UnsafeCell<T>>]>,
    shared: Mutex<T>,
}

// SAFETY: an owned place is touched by its owner only, and ownership passes
// from thread to thread by release and acquire of its bit in OWNED; the shared
// place is under a lock. `T` moves between threads, hence `Send`.
unsafe impl<T: Send> Sync for PerThread<T> {}

impl<T> PerThread<T> {
    /// Makes all of them.
    pub(crate) fn new(make: impl Fn() -> T) -> Self {
        Self {
            own: (0..OWN_PLACES).map(|_| Padded(UnsafeCell::new(make()))).collect(),
            shared: Mutex::new(make()),
        }
    }

    /// Calls `with` on the calling thread's. `with` must not come here again:
    /// it is a few lines in this crate that call nobody back.
    #[inline]
    pub(crate) fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        match place() {
            // SAFETY: no other thread has this place, and this thread is not
            // inside `with` already, so the reference is the only one.
            ShardIndex::Own(index) => with(unsafe { &mut *self.own[index].0.get() }),
            ShardIndex::Shared => with(&mut self.shared.lock()),
        }
    }
}

impl<T> fmt::Debug for PerThread<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerThread").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn a_thread_keeps_its_place_and_hands_it_on() {
        let mine = place();
        assert_eq!(mine, place());
        for _ in 0..4 * OWN_PLACES {
            let other = std::thread::spawn(place).join().expect("thread");
            assert!(other != mine || other == ShardIndex::Shared);
        }
    }

    #[test]
    fn nothing_is_lost_when_threads_are_more_than_places() {
        let threads = 2 * OWN_PLACES;
        let (notes, together) = (PerThread::new(|| 0u64), Barrier::new(threads));
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    place();
                    together.wait();
                    (0..100).for_each(|_| notes.with(|note| *note += 1));
                });
            }
        });
        let PerThread { own, shared } = notes;
        let own: u64 = own.into_iter().map(|place| place.0.into_inner()).sum();
        assert_eq!(own + shared.into_inner(), 100 * threads as u64);
    }
}
