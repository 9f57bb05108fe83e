//! Hekaton: Diaconu et al., "Hekaton: SQL Server's Memory-Optimized OLTP
//! Engine", SIGMOD 2013, as described by Steam 3 and 5 (Table 4).
//!
//! A background thread determines which transactions' versions are obsolete and
//! hands them to committing threads, which remove them after their own
//! transactions.

use std::collections::VecDeque;
use std::time::Duration;

use pantile_base::TableId;
use pantile_base::sync::Mutex;
use pantile_reclaim::{Collector, Description, OldVersion};
use pantile_store::{Store, StoreError};

use crate::version_by_version::{Policy, VersionByVersion, Work};

/// Hekaton: versions found in the background, removed in the foreground.
pub const HEKATON: Collector = Collector::new(&Description {
    name: "hekaton",
    about: "versions found in the background, removed by commits",
    build: |options, _| VersionByVersion::boxed(options, Hekaton::default()),
});

/// Number of versions given to a worker at a time.
const TASK: usize = 64;
/// Number of tasks that a committing thread does.
const TASKS: usize = 2;

#[derive(Default)]
struct Hekaton {
    /// Obsolete versions, for any thread to remove.
    tasks: Mutex<VecDeque<Vec<OldVersion>>>,
}

impl Hekaton {
    fn work_off(&self, work: &Work<'_>, most: usize) {
        for _ in 0..most {
            let Some(mut task) = self.tasks.lock().pop_front() else { return };
            task.retain(|old| !self.remove(work, old));
            if !task.is_empty() {
                self.tasks.lock().push_back(task);
            }
        }
    }
}

impl Policy for Hekaton {
    const IN_BACKGROUND: bool = true;

    fn step(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.work_off(work, TASKS);
        Ok(())
    }

    fn step_for_all(&self, _: &Work<'_>) {}

    fn background(&self, work: &Work<'_>) {
        let watermark = work.cx.registry.refresh_watermark(Duration::ZERO);
        // Held, so that a thread that counts or forgets versions finds each in
        // one of the two places.
        let mut tasks = self.tasks.lock();
        let mut obsolete = Vec::new();
        work.lists.drain_all(watermark.get(), usize::MAX, |old| {
            obsolete.push(*old);
            true
        });
        tasks.extend(obsolete.chunks(TASK).map(<[_]>::to_vec));
    }

    fn make_room(&self, work: &Work<'_>) -> Result<(), StoreError> {
        self.background(work);
        let tasks = self.tasks.lock().len();
        self.work_off(work, tasks);
        Ok(())
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.tasks.lock().iter_mut().for_each(|task| task.retain(|old| old.table != table));
    }

    fn waiting(&self) -> usize {
        self.tasks.lock().iter().map(Vec::len).sum()
    }
}
