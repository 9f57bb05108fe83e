//! A place for each thread, where it counts and keeps notes without locked
//! instructions: those would wait for every load that the thread has started.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Threads that can have a place of their own at one time; others share one.
pub(crate) const OWN_PLACES: usize = 64;

/// One bit for each place that a running thread owns.
static OWNED: AtomicU64 = AtomicU64::new(0);

/// The place of the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// No other running thread has this number, which is below [`OWN_PLACES`].
    Own(usize),
    /// Any number of threads are here.
    Shared,
}

struct Seat(Cell<Option<Place>>);

thread_local! {
    static SEAT: Seat = const { Seat(Cell::new(None)) };
}

impl Seat {
    #[inline]
    fn place(&self) -> Place {
        self.0.get().unwrap_or_else(|| self.take())
    }

    #[cold]
    fn take(&self) -> Place {
        let place = take_free().map_or(Place::Shared, Place::Own);
        self.0.set(Some(place));
        place
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if let Some(Place::Own(index)) = self.0.get() {
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

/// The calling thread's place. It stays the same while the thread runs, and
/// another thread may get it afterwards.
#[inline]
pub(crate) fn place() -> Place {
    SEAT.try_with(Seat::place).unwrap_or(Place::Shared)
}

/// Keeps its contents off neighbours' cache lines; two, because CPUs fetch
/// lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Padded<T>(pub T);

/// A `T` for each thread.
pub struct PerThread<T> {
    own: Box<[Padded<UnsafeCell<T>>]>,
    shared: Mutex<T>,
}

// SAFETY: an owned place is touched by its owner only, and ownership passes
// from thread to thread by release and acquire of its bit in OWNED; the shared
// place is under a lock. `T` moves between threads, hence `Send`.
unsafe impl<T: Send> Sync for PerThread<T> {}

impl<T> PerThread<T> {
    /// Makes one for each place.
    pub fn new(make: impl Fn() -> T) -> Self {
        Self {
            own: (0..OWN_PLACES).map(|_| Padded(UnsafeCell::new(make()))).collect(),
            shared: Mutex::new(make()),
        }
    }

    /// Calls `with` on the calling thread's value.
    ///
    /// # Safety
    /// `with` must not come here again on the same object.
    #[inline]
    pub unsafe fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        match place() {
            // SAFETY: no other thread has this place, and the caller promises that
            // this thread is not in `with` already: the reference is the only one.
            Place::Own(index) => with(unsafe { &mut *self.own[index].0.get() }),
            Place::Shared => with(&mut self.shared.lock()),
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
            assert!(other != mine || other == Place::Shared);
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
                    // SAFETY: it only adds.
                    (0..100).for_each(|_| unsafe { notes.with(|note| *note += 1) });
                });
            }
        });
        let PerThread { own, shared } = notes;
        let own: u64 = own.into_iter().map(|place| place.0.into_inner()).sum();
        assert_eq!(own + shared.into_inner(), 100 * threads as u64);
    }
}
