//! HyPer: Neumann, Mühlbauer and Kemper, "Fast Serializable Multi-Version
//! Concurrency Control for Main-Memory Database Systems", SIGMOD 2015, as
//! described by Steam 4.1.
//!
//! One list of committed transactions for all threads, behind one mutex. Each
//! commit looks up the oldest running transaction and removes the versions of
//! those transactions that committed before it began.

use std::collections::VecDeque;
use std::time::Duration;

use pantile_base::TableId;
use pantile_base::sync::Mutex;
use pantile_reclaim::{Collector, Description, OldVersion};
use pantile_store::{Store, StoreError};

use crate::version_by_version::{MOST, Policy, VersionByVersion, Work};

/// HyPer: a global list of transactions, a watermark at each commit.
pub const HYPER: Collector = Collector::new(&Description {
    name: "hyper",
    about: "a global list of transactions, a watermark at each commit",
    build: |options, _| VersionByVersion::boxed(options, Hyper::default()),
});

#[derive(Default)]
struct Hyper {
    committed: Mutex<VecDeque<OldVersion>>,
}

impl Hyper {
    fn remove_oldest(&self, work: &Work<'_>, most: usize) {
        let watermark = work.cx.registry.refresh_watermark(Duration::ZERO);
        let mut obsolete = Vec::new();
        {
            let mut committed = self.committed.lock();
            while obsolete.len() < most
                && let Some(old) = committed.pop_front_if(|old| old.end_ts < watermark)
            {
                obsolete.push(old);
            }
        }
        obsolete.retain(|old| !self.remove(work, old));
        self.committed.lock().extend(obsolete);
    }
}

impl Policy for Hyper {
    fn add(&self, _: &Work<'_>, old: &OldVersion) {
        self.committed.lock().push_back(*old);
    }

    fn step(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.remove_oldest(work, MOST);
        Ok(())
    }

    fn step_for_all(&self, _: &Work<'_>) {}

    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.remove_oldest(work, usize::MAX);
        Ok(())
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.committed.lock().retain(|old| old.table != table);
    }

    fn waiting(&self) -> usize {
        self.committed.lock().len()
    }
}
