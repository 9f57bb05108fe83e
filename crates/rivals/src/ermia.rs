//! ERMIA: Kim, Wang, Johnson and Pandis, "ERMIA: Fast Memory-Optimized
//! Database System for Heterogeneous Workloads", SIGMOD 2016, as described by
//! Steam 3 and 5 (Table 4).
//!
//! Three epochs exist at a time: the open one, in which transactions begin; the
//! closing one, which some transactions have yet to leave; and the closed one,
//! whose versions are removed. Each commit tries to advance them. That succeeds
//! once no transaction is left in the closing one.

use std::time::Duration;

use pantile_base::Timestamp;
use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_reclaim::{Collector, Context, Description, GcOptions, OldVersion};
use pantile_store::StoreError;

use crate::version_by_version::{MOST, Policy, VersionByVersion, Work};

/// ERMIA: epochs in three phases.
pub const ERMIA: Collector = Collector::new(&Description {
    name: "ermia",
    about: "epochs in three phases",
    build: |options, _| VersionByVersion::boxed(options, Ermia::new(options)),
});

/// Commits after which an epoch may begin (Steam, Table 4).
const THRESHOLD: u64 = 1;

struct Ermia {
    /// The number of the latest epoch.
    current: AtomicU64,
    commits: AtomicU64,
    threshold: u64,
    /// When the open epoch began.
    open_since: Mutex<Timestamp>,
}

impl Ermia {
    fn new(options: GcOptions) -> Self {
        Self {
            current: AtomicU64::new(1),
            commits: AtomicU64::new(0),
            threshold: options.epoch_commits.unwrap_or(THRESHOLD),
            open_since: Mutex::default(),
        }
    }

    /// Opens a new epoch if every running transaction began in the open one.
    /// The epoch that was closing is closed then.
    fn move_on(&self, cx: &Context<'_>) {
        let Some(mut since) = self.open_since.try_lock() else { return };
        if cx.registry.refresh_watermark(Duration::ZERO) > *since {
            self.current.fetch_add(1, Ordering::AcqRel);
            *since = cx.registry.now();
        }
    }
}

impl Policy for Ermia {
    fn time(&self, _: &OldVersion) -> u64 {
        self.current.load(Ordering::Acquire)
    }

    /// The closed epoch: no transaction needs what was superseded before it.
    fn end(&self, _: &Context<'_>) -> u64 {
        self.current.load(Ordering::Acquire).saturating_sub(2)
    }

    fn step(&self, work: &Work<'_>) -> Result<(), StoreError> {
        if (self.commits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.threshold) {
            self.move_on(work.cx);
        }
        work.lists.drain(work.cx.slot, self.end(work.cx), MOST, |old| self.remove(work, old));
        Ok(())
    }

    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.move_on(work.cx);
        self.remove_all(work, usize::MAX);
        Ok(())
    }
}
