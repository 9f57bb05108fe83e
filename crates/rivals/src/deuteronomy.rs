//! Deuteronomy: Levandoski, Lomet, Sengupta, Stutsman and Wang, "High
//! Performance Transactions in Deuteronomy", CIDR 2015, as described by Steam
//! 3 and 5 (Table 4).
//!
//! Epochs follow one another without end. A new one begins when a number of
//! transactions have committed in the last. Versions superseded in an epoch are
//! removed when every transaction that began before the end of the epoch has
//! ended.

use std::collections::VecDeque;
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_reclaim::{Collector, Context, Description, GcOptions, OldVersion};
use pantile_store::StoreError;

use crate::version_by_version::{MOST, Policy, VersionByVersion, Work};

/// Deuteronomy: epochs without end, a new one every 100 transactions.
pub const DEUTERONOMY: Collector = Collector::new(&Description {
    name: "deuteronomy",
    about: "epochs without end, a new one every 100 transactions",
    build: |options, _| VersionByVersion::boxed(options, Deuteronomy::new(options)),
});

/// Commits of an epoch (Steam, Table 4).
const THRESHOLD: u64 = 100;

struct Deuteronomy {
    /// The number of the latest epoch.
    current: AtomicU64,
    commits: AtomicU64,
    threshold: u64,
    /// The ends of the epochs that some transaction is still in, each with the
    /// number of the next epoch.
    ended: Mutex<VecDeque<(u64, Timestamp)>>,
    /// No transaction is in an earlier epoch.
    over: AtomicU64,
}

impl Deuteronomy {
    fn new(options: GcOptions) -> Self {
        Self {
            current: AtomicU64::new(1),
            commits: AtomicU64::new(0),
            threshold: options.epoch_commits.unwrap_or(THRESHOLD),
            ended: Mutex::default(),
            over: AtomicU64::new(0),
        }
    }

    /// Ends the epoch, and determines which earlier epochs are over.
    fn end_epoch(&self, cx: &Context<'_>) {
        let mut ended = self.ended.lock();
        let next = self.current.fetch_add(1, Ordering::AcqRel) + 1;
        ended.push_back((next, cx.registry.now()));
        let watermark = cx.registry.refresh_watermark(Duration::ZERO);
        while let Some((next, _)) = ended.pop_front_if(|(_, end)| *end < watermark) {
            self.over.store(next, Ordering::Release);
        }
    }
}

impl Policy for Deuteronomy {
    fn time(&self, _: &OldVersion) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    fn end(&self, _: &Context<'_>) -> u64 {
        self.over.load(Ordering::Acquire)
    }

    fn step(&self, work: &Work<'_>) -> Result<(), StoreError> {
        if (self.commits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.threshold) {
            self.end_epoch(work.cx);
        }
        work.lists.drain(work.cx.slot, self.end(work.cx), MOST, |old| self.remove(work, old));
        Ok(())
    }

    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.end_epoch(work.cx);
        self.remove_all(work, usize::MAX);
        Ok(())
    }
}
