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

use crate::commit_lists::CommitLists;
use crate::freeing::{Freeing, Marks};
use crate::{CollectorStats, Context, GcOptions, OldVersion, Reclaimer};

/// Versions removed after one commit: more than most transactions leave.
const MOST: usize = 128;

/// The collector.
pub(crate) struct N2db {
    freeing: Freeing,
    lists: CommitLists,
}

impl N2db {
    pub fn new(options: GcOptions) -> Self {
        Self { freeing: Freeing::new(options, Marks::Batched), lists: CommitLists::default() }
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
        self.freeing.prune_below(cx, old.table, newest, old.end_ts, cx.registry.watermark());
    }

    fn superseded(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp) -> Result<(), StoreError> {
        self.freeing.note(cx, old, at);
        self.lists.push(cx.slot, *old);
        Ok(())
    }

    fn step(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        let began = cx.registry.now();
        let watermark = cx.registry.watermark();
        self.lists.drain(cx.slot, watermark, MOST, |old| self.freeing.cut(cx, old));
        if self.freeing.step(cx)? {
            self.lists.drain_all(watermark, MOST, |old| self.freeing.cut(cx, old));
        }
        self.freeing.timed(cx, began);
        Ok(())
    }

    fn make_room(&self, cx: &Context<'_>) -> Result<(), StoreError> {
        self.lists.drain_all(cx.registry.watermark(), usize::MAX, |old| self.freeing.cut(cx, old));
        self.freeing.make_room(cx)
    }

    fn resume(&self, store: &Store) {
        self.freeing.resume(store);
    }

    fn forget(&self, _: &Store, table: TableId) {
        self.lists.forget(table);
        self.freeing.forget(table);
    }

    fn stats(&self, _: &Store) -> CollectorStats {
        self.freeing.stats(self.lists.len())
    }
}
