//! ERMIA: Kim, Wang, Johnson and Pandis, "ERMIA: Fast Memory-Optimized
//! Database System for Heterogeneous Workloads", SIGMOD 2016, as Steam 3 and 5
//! (Table 4) have it.
//!
//! Three epochs at a time: the open one that transactions begin in, the
//! closing one that some have yet to leave, and the closed one whose versions
//! are removed. Each commit tries to move them on, which works once nobody is
//! left in the closing one.

use std::time::Duration;

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::Marks;
use crate::removing::Removing;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Commits after which an epoch may begin (Steam, Table 4).
const THRESHOLD: u64 = 1;

/// The collector.
pub(crate) struct Ermia {
    removing: Removing,
    /// The epoch that has begun last.
    current: AtomicU64,
    commits: AtomicU64,
    threshold: u64,
    /// When the open epoch began.
    open_since: Mutex<Timestamp>,
}

impl Ermia {
    pub fn new(options: GcOptions) -> Self {
        Self {
            removing: Removing::new(options, Marks::None),
            current: AtomicU64::new(1),
            commits: AtomicU64::new(0),
            threshold: options.epoch_commits.unwrap_or(THRESHOLD),
            open_since: Mutex::default(),
        }
    }

    /// Opens an epoch if all that run began in the open one: the one that was
    /// closing is closed by that.
    fn move_on(&self, cx: &Context<'_>) {
        let Some(mut since) = self.open_since.try_lock() else { return };
        if cx.registry.refresh_watermark(Duration::ZERO) > *since {
            self.current.fetch_add(1, Ordering::AcqRel);
            *since = cx.registry.now();
        }
    }

    /// The epoch that is closed: what was superseded before it nobody needs.
    fn closed(&self) -> u64 {
        self.current.load(Ordering::Acquire).saturating_sub(2)
    }
}

impl Reclaimer for Ermia {
    fn name(&self) -> &'static str {
        "ermia"
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.removing.add(cx, old, at, || self.current.load(Ordering::Acquire));
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        if (self.commits.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(self.threshold) {
            self.move_on(cx);
        }
        self.removing.step(cx, self.closed(), began)
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.move_on(cx);
        self.removing.make_room(cx, self.closed())
    }

    fn resume(&self, store: &Store) {
        self.removing.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.removing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        self.removing.stats()
    }
}
