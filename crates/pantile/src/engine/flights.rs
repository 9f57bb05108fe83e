//! Commits in flight: published, and not yet durable.
//!
//! Where threads share syncs, a commit publishes its versions once it has got
//! the point at which they will be durable, and waits for that point afterwards.
//! So a row is locked for microseconds, and many commits on it share a sync. A
//! transaction that meets such a version depends on the commit (I-25).

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_media::SyncPoint;

/// A commit that has been published and may not be durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flight {
    /// Names the transaction: its versions have this timestamp.
    pub timestamp: Timestamp,
    /// When it will be durable.
    pub point: SyncPoint,
}

/// All commits in flight. Where fences are not shared there are none.
#[derive(Debug)]
pub(crate) struct Flights {
    /// At or below the timestamps of all of them.
    lowest: AtomicU64,
    list: Mutex<Vec<Flight>>,
}

impl Default for Flights {
    fn default() -> Self {
        Self { lowest: AtomicU64::new(u64::MAX), list: Mutex::default() }
    }
}

impl Flights {
    /// Enters a commit, before the first of its versions is published.
    pub fn enter(&self, flight: Flight) {
        let mut list = self.list.lock();
        list.push(flight);
        self.lowest.fetch_min(flight.timestamp.get(), Ordering::SeqCst);
    }

    /// A commit is durable. One that will never be stays for ever.
    pub fn land(&self, timestamp: Timestamp) {
        let mut list = self.list.lock();
        list.retain(|flight| flight.timestamp != timestamp);
        let lowest = list.iter().map(|flight| flight.timestamp.get()).min();
        self.lowest.store(lowest.unwrap_or(u64::MAX), Ordering::SeqCst);
    }

    /// Whether a version with this timestamp, which an anchor has led to, may be of
    /// a commit in flight.
    #[inline]
    pub fn may_have(&self, timestamp: Timestamp) -> bool {
        timestamp.get() >= self.lowest.load(Ordering::Acquire)
    }

    /// The commit in flight that has written a version with this timestamp, unless
    /// its point `is_durable`: then it has only not been noticed yet.
    pub fn find(&self, timestamp: Timestamp, is_durable: impl Fn(SyncPoint) -> bool) -> Option<Flight> {
        let found = self.list.lock().iter().find(|flight| flight.timestamp == timestamp).copied();
        found.filter(|flight| !is_durable(flight.point))
    }

    /// When all are durable that are in flight now and visible at `at`. A reader
    /// that waits once may meet them all.
    pub fn last_at(&self, at: Timestamp) -> Option<SyncPoint> {
        let list = self.list.lock();
        list.iter().filter(|flight| flight.timestamp <= at).map(|flight| flight.point).max()
    }

    /// Keeps those that are still in flight.
    pub fn retain(&self, flights: &mut Vec<Flight>, is_durable: impl Fn(SyncPoint) -> bool) {
        let list = self.list.lock();
        flights.retain(|flight| list.contains(flight) && !is_durable(flight.point));
    }
}
