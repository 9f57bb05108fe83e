//! What committing threads do for the database, in bounded steps.

use pantile_cc::Slot;

use crate::engine::cleanup;
use crate::engine::core::Core;
use crate::engine::state_records::StateRecords;
use crate::types::error::Result;

/// What one commit gives back of dropped tables. The rest waits for later ones.
const TABLES_AT_A_TIME: usize = 8;
const BLOCKS_AT_A_TIME: usize = 128;

impl Core {
    /// The upkeep that comes with a commit.
    pub fn maintain(&self, slot: Slot) {
        self.clean(slot);
        self.collect_step(slot);
        if StateRecords::is_due_by_bytes(&self.store) || self.is_state_due() {
            self.advance_state();
        }
        if self.tables.has_more_to_release() && cleanup::is_tick() {
            self.release_dropped();
        }
    }

    fn is_state_due(&self) -> bool {
        let epoch = self.options.gc.epoch;
        cleanup::is_tick() && self.state_records.is_due_by_time(epoch, self.registry.clock().elapsed())
    }

    /// Moves the durable watermark on, and releases what waited for it.
    pub fn advance_state(&self) {
        if self.state_records.advance(&self.store, &self.registry) {
            self.release_dropped();
            self.forget_indexes();
        }
    }

    /// Forgets the dropped indexes that no transaction needs any more.
    pub fn forget_indexes(&self) {
        if self.tables.forget_indexes(self.registry.watermark()) {
            self.buffers.forget();
        }
    }

    /// Writes a state record now. No transaction may be running.
    pub fn record_state(&self, closed: bool) -> Result<()> {
        let recorded = self.state_records.record_now(&self.store, &self.registry, closed);
        recorded.map_err(|e| self.store_error(e))
    }

    /// Gives back some blocks of dropped tables that no transaction can see
    /// into and whose contents are not needed as evidence (I-10). Returns
    /// whether there are more.
    pub fn release_dropped(&self) -> bool {
        let (watermark, durable) = (self.registry.watermark(), self.store.durable_watermark());
        let now = self.registry.now();
        self.tables.release_dropped(watermark, durable, now, TABLES_AT_A_TIME, |tables| {
            tables.iter().for_each(|&table| self.reclaimer.forget(&self.store, table));
            // A failure latches in the medium and shows at the next commit.
            self.store.release_tables(tables, BLOCKS_AT_A_TIME, now).unwrap_or(false)
        })
    }
}
