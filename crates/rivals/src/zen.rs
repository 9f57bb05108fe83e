//! Zen: Liu, Chen and Chen, "Zen+: a robust NUMA-aware OLTP engine optimized
//! for non-volatile main memory", VLDB Journal 32, 2023, sections 3.3.2
//! (Maintenance) and 3.4, with the background scan of TB-Collect 2.3.2.
//!
//! What a commit has superseded goes to its thread's garbage queue with its
//! timestamp. A background thread scans the queues and frees what lies below
//! the minimum of all transactions. No chain is walked: no reader follows a
//! link from a version that every transaction sees.

use std::time::Duration;

use pantile_reclaim::{Collector, Context, Description, OldVersion};

use crate::version_by_version::{Policy, VersionByVersion, Work};

/// Zen: per-thread queues, scanned in the background.
pub const ZEN: Collector = Collector::new(&Description {
    name: "zen",
    about: "per-thread queues, scanned in the background",
    build: |options, _| VersionByVersion::boxed(options, Zen),
});

/// Versions taken from one queue at a time, so that its thread need not wait.
const MOST: usize = 4096;

struct Zen;

impl Policy for Zen {
    const IN_COMMITS: bool = false;
    const IN_BACKGROUND: bool = true;

    fn end(&self, cx: &Context<'_>) -> u64 {
        cx.registry.refresh_watermark(Duration::ZERO).get()
    }

    fn remove(&self, work: &Work<'_>, old: &OldVersion) -> bool {
        work.freeing.retire(work.cx, old.table, old.address);
        true
    }

    fn background(&self, work: &Work<'_>) {
        self.remove_all(work, MOST);
    }
}
