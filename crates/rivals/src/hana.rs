//! SAP HANA: Lee et al., "Hybrid Garbage Collection for Multi-Version
//! Concurrency Control in SAP HANA", SIGMOD 2016, as described by Steam 4.3.2
//! and 5 (Table 4).
//!
//! A background thread looks at every version that was superseded since the
//! oldest running transaction began. It removes those that no running
//! transaction sees, from the end of their chains or from the middle.

use std::time::Duration;

use pantile_base::TableId;
use pantile_base::sync::Mutex;
use pantile_reclaim::{Collector, Description, OldVersion};
use pantile_store::{Store, StoreError};

use crate::version_by_version::{Policy, VersionByVersion, Work};

/// SAP HANA: versions found by intervals and removed in the background.
pub const HANA: Collector = Collector::new(&Description {
    name: "hana",
    about: "versions found by intervals and removed in the background",
    build: |options, _| VersionByVersion::boxed(options, Hana::default()),
});

#[derive(Default)]
struct Hana {
    /// Versions that a transaction sees, or whose tuples a writer has locked;
    /// for the next round.
    needed: Mutex<Vec<OldVersion>>,
}

impl Policy for Hana {
    const IN_COMMITS: bool = false;
    const IN_BACKGROUND: bool = true;

    fn background(&self, work: &Work<'_>) {
        let registry = work.cx.registry;
        let mut versions = self.needed.lock();
        work.lists.drain_all(u64::MAX, usize::MAX, |old| {
            versions.push(*old);
            true
        });
        registry.refresh_watermark(Duration::ZERO);
        let Some(running) = registry.running_set() else { return };
        versions.retain(|old| {
            if old.end_ts < registry.watermark() {
                !self.remove(work, old)
            } else {
                let is_seen = running.may_see(old.begin_ts, old.end_ts);
                is_seen || !old.linked || !work.freeing.excise(work.cx, old)
            }
        });
    }

    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.background(work);
        Ok(())
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.needed.lock().retain(|old| old.table != table);
    }

    fn waiting(&self) -> usize {
        self.needed.lock().len()
    }
}
