//! What collectors have in common whose committing threads remove versions
//! from their own lists.

use pantile_base::{TableId, Timestamp};
use pantile_store::StoreError;

use crate::freeing::{Freeing, Marks};
use crate::lists::Lists;
use crate::{CollectorStats, Context, GcOptions, OldVersion};

/// Versions removed after one commit: more than most transactions leave.
const MOST: usize = 128;

/// The common part.
pub(crate) struct Removing {
    pub freeing: Freeing,
    lists: Lists,
}

impl Removing {
    pub fn new(options: GcOptions, marks: Marks) -> Self {
        Self { freeing: Freeing::new(options, marks), lists: Lists::default() }
    }

    /// A version has been superseded; `time` as in [`Lists::push`].
    pub fn add(&self, cx: &Context<'_>, old: &OldVersion, at: Timestamp, time: impl FnOnce() -> u64) {
        self.freeing.note(cx, old, at);
        self.lists.push(cx.slot, *old, time);
    }

    /// After a commit: removes what was superseded before `end`. The step
    /// began at `began`.
    pub fn step(&self, cx: &Context<'_>, end: u64, began: Timestamp) -> Result<(), StoreError> {
        self.lists.drain(cx.slot, end, MOST, |old| self.freeing.cut(cx, old));
        if self.freeing.step(cx)? {
            self.lists.drain_all(end, MOST, |old| self.freeing.cut(cx, old));
        }
        self.freeing.timed(cx, began);
        Ok(())
    }

    /// All of what was superseded before `end`, since there is no space left.
    pub fn make_room(&self, cx: &Context<'_>, end: u64) -> Result<(), StoreError> {
        self.lists.drain_all(end, usize::MAX, |old| self.freeing.cut(cx, old));
        self.freeing.make_room(cx)
    }

    pub fn forget(&self, table: TableId) {
        self.lists.forget(table);
        self.freeing.forget(table);
    }

    pub fn stats(&self) -> CollectorStats {
        self.freeing.stats(self.lists.len())
    }
}
