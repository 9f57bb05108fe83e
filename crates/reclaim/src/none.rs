use pantile_base::{TableId, Timestamp};
use pantile_store::{Store, StoreError};

use crate::{CollectorStats, Context, OldVersion, Reclaimer};

/// No collector: the baseline of every comparison (TB-Collect 5.1, "NoGC").
#[derive(Clone, Copy, Debug, Default)]
pub struct NoGc;

impl Reclaimer for NoGc {
    fn notes_superseded(&self) -> bool {
        false
    }

    fn superseded(&self, _: &Context<'_>, _: &OldVersion, _: Timestamp) -> Result<(), StoreError> {
        Ok(())
    }

    fn step(&self, _: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn make_room(&self, _: &Context<'_>) -> Result<(), StoreError> {
        Ok(())
    }

    fn resume(&self, _: &Store) {}

    fn forget(&self, _: &Store, _: TableId) {}

    fn stats(&self, _: &Store) -> CollectorStats {
        CollectorStats::default()
    }
}
