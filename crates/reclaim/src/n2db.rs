//! N2DB: Cai, Chen, Liu, Liu, Wu and Zheng, "Garbage collection and data
//! recovery for N2DB", Tsinghua Science and Technology 27(3), 2021, as
//! TB-Collect 2.3.1 and 5.1 have it: timely pruning of the chains that a
//! commit makes longer, with fewer writes to the medium.
//!
//! A committing transaction cuts what lies below the watermark off the chains
//! of the tuples it writes. Which slots are free is told to the medium, for
//! many versions at a time.

use pantile_base::{Address, TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::freeing::Marks;
use crate::removing::Removing;
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// The collector.
pub(crate) struct N2db {
    removing: Removing,
}

impl N2db {
    pub fn new(options: GcOptions) -> Self {
        Self { removing: Removing::new(options, Marks::Batched) }
    }
}

impl Reclaimer for N2db {
    fn name(&self) -> &'static str {
        "n2db"
    }

    fn prunes(&self) -> bool {
        true
    }

    fn extended(&self, cx: &Context<'_>, newest: Address, old: &OldVersion) {
        let watermark = cx.registry.watermark();
        let is_past = |end| end < watermark;
        self.removing.freeing.prune(cx, old.table, newest, old.end_ts, is_past, |_, _| true);
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.removing.add(cx, old, at, || old.end_ts.get());
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.removing.step(cx, cx.registry.watermark().get(), cx.registry.now())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.removing.make_room(cx, cx.registry.watermark().get())
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
