//! A value for each thread, without a lock.

use pantile_base::Padded;
use pantile_media::parts::{OWN_PLACES, ShardIndex, place};
use parking_lot::Mutex;
use std::cell::UnsafeCell;
use std::fmt;

/// A `T` for each thread.
pub(crate) struct PerThread<T> {
    own: Box<[Padded<UnsafeCell<T>>]>,
    shared: Mutex<T>,
}

// SAFETY: an owned place is used by its owner only, and ownership passes
// from thread to thread by release and acquire; the shared place is under a
// lock. `T` moves between threads, hence `Send`.
unsafe impl<T: Send> Sync for PerThread<T> {}

impl<T> PerThread<T> {
    /// Makes one for each place.
    pub(crate) fn new(make: impl Fn() -> T) -> Self {
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
    pub(crate) unsafe fn with<R>(&self, with: impl FnOnce(&mut T) -> R) -> R {
        match place() {
            // SAFETY: no other thread has this place, and the caller promises that
            // this thread is not in `with` already: the reference is the only one.
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
