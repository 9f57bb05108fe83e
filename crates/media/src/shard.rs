//! A place for each thread, where it counts and keeps notes without locked
//! instructions: those would wait for every load that the thread has started.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

/// Threads that can have a place of their own at one time; others share one.
pub const OWN_PLACES: usize = 64;

/// One bit for each place that a running thread owns.
static OWNED: AtomicU64 = AtomicU64::new(0);

/// The place of the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShardIndex {
    /// No other running thread has this number, which is below [`OWN_PLACES`].
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

/// The calling thread's place. It stays the same while the thread runs, and
/// another thread may get it afterwards.
#[inline]
pub fn place() -> ShardIndex {
    SEAT.try_with(Seat::place).unwrap_or(ShardIndex::Shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_place_and_hands_it_on() {
        let mine = place();
        assert_eq!(mine, place());
        for _ in 0..4 * OWN_PLACES {
            let other = std::thread::spawn(place).join().expect("thread");
            assert!(other != mine || other == ShardIndex::Shared);
        }
    }
}
