//! What is done for the database besides transactions: by committing threads
//! in bounded steps, and in rounds by the worker.

use std::sync::Arc;
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_cc::{Begin, Clock, Open};
use pantile_media::MediumExt;
use pantile_reclaim::Debt;

use crate::engine::alarm::Due;
use crate::engine::cleanup::{self, Waiting};
use crate::engine::core::Core;
use crate::engine::counters::Change;
use crate::engine::entering::Entered;
use crate::engine::failure::from_medium;
use crate::engine::gate::Permit;
use crate::engine::reader_processes::LOOK;
use crate::engine::state_records::StateRecords;
use crate::engine::table::TableInner;
use crate::engine::tables::{Batch, Users};
use crate::types::error::Result;

/// A transaction that has been open for so long is a long one.
const LONG: Duration = Duration::from_secs(1);

impl Core {
    /// The upkeep that comes with a commit which has left this many `stale` index entries.
    pub fn maintain(&self, permit: &Permit, stale: usize) {
        self.clean(permit.slot(), stale);
        let is_round = self.collect_step(permit);
        self.record_step(permit, is_round);
        if self.tables.has_more_to_release() && cleanup::is_tick() {
            self.release_dropped(permit, Batch::OF_A_COMMIT);
        }
        self.alarm.written();
    }

    /// Sees that a state record is written if one is due.
    fn record_step(&self, permit: &Permit, is_round: bool) {
        let records = &self.state_records;
        let between = self.reclaimer.bytes_between_records();
        let is_due = match records.has_sample() {
            true => records.can_be_written(&self.registry),
            false => {
                StateRecords::is_due_by_bytes(&self.store, between)
                    || (is_round || cleanup::is_tick()) && self.is_state_due(Debt::Nothing)
            }
        };
        let is_late = || {
            let now = self.registry.clock().elapsed();
            records.is_late(&self.store, between, self.options.gc.epoch, now)
        };
        match is_due {
            false => {}
            true if !self.rounds.has_worker() => self.advance_state(permit),
            true if is_late() => {
                self.catch_up_if(permit, is_late);
                // Its own commit stands in the way of the record of a sample that it has taken.
                self.alarm.record_due();
            }
            true => self.alarm.record_due(),
        }
    }

    fn is_state_due(&self, debt: Debt) -> bool {
        let epoch = self.options.gc.epoch;
        self.state_records.is_due_by_time(epoch, self.registry.clock().elapsed(), debt)
    }

    /// Does a round of upkeep, and says when the next is due.
    pub fn round(&self) -> Due {
        // Also where nothing can be done: the worker would not sleep.
        self.alarm.forget_record();
        // First: where all slots are taken, the rest has to wait for those who may be the ones to end.
        let watched = if self.store.medium().is_failed() { None } else { self.watch_holders() };
        let done = self.apart_with_slots(|enter| {
            if self.store.medium().is_failed() {
                return Ok(Due::AfterAWrite);
            }
            let (debt, stale) = self.collect_round(enter)?;
            let epoch = self.options.gc.epoch;
            let (due, is_left) = self.within(enter()?.0, |permit| {
                self.load_wanted(permit);
                self.clear_stage();
                (self.settle(permit, debt, stale), self.look_at_unread(permit, epoch))
            });
            let due = if is_left { due.at_the_latest(epoch) } else { due };
            Ok(if self.look_at_earlier() { due.at_the_latest(LOOK) } else { due })
        });
        let due = done.unwrap_or(Due::AfterAWrite);
        watched.map_or(due, |time| due.at_the_latest(time))
    }

    /// Where little space is left, a long transaction is to end before others
    /// begin (Zen+ 4.1.1, β).
    fn clear_stage(&self) {
        let share = self.options.exclusive.space_left;
        if share > 0.0 {
            let (room, limit) = self.store.room();
            let is_little = (room as f64) < limit as f64 * share;
            // The watermark may be old although nobody has run for long.
            let now = self.registry.now().tick();
            let is_long = |open: Open| {
                open.keeps.is_some_and(|from| Clock::duration(now.saturating_sub(from.tick())) >= LONG)
            };
            self.stage.clear(is_little && self.registry.open().any(is_long));
        }
    }

    /// Writes a state record if one is due.
    fn settle(&self, permit: &Permit, debt: Debt, stale: Waiting) -> Due {
        let epoch = self.options.gc.epoch;
        self.forget_indexes();
        let has_dropped = self.has_dropped_tables() || self.tables.has_dropped_indexes();
        let names_too_much = self.give_up_image_if_damaged() && !self.store.is_image_in_force();
        let is_owed = self.store.appended_since_sample() > 0
            || has_dropped && self.tables.can_release(|| self.users_of_tables())
            || names_too_much
            || self.images.is_pending()
            || debt != Debt::Nothing && debt != Debt::Held;
        let is_due = StateRecords::is_due_by_bytes(&self.store, self.reclaimer.bytes_between_records());
        if is_due || is_owed && self.is_state_due(debt) {
            self.advance_state(permit);
        }
        // The record of a sample follows as soon as the commits are over that
        // were under way.
        if self.state_records.has_sample() {
            self.advance_state(permit);
        }
        self.adopt_image();
        if self.tables.has_more_to_release() && self.release_dropped(permit, Batch::LARGE) {
            return Due::In(Duration::ZERO);
        }
        let interval = self.reclaimer.background().unwrap_or(epoch);
        match debt {
            Debt::More => Due::In(Duration::ZERO),
            _ if stale == Waiting::Due => Due::In(Duration::ZERO),
            Debt::Payable | Debt::Space => Due::In(interval),
            _ if stale == Waiting::Soon || self.state_records.has_sample() || is_owed => Due::In(epoch),
            Debt::Nothing if !has_dropped => Due::AfterAWrite,
            Debt::Held | Debt::Nothing => Due::AfterAnEnd,
        }
    }

    /// Looks at the checksums of what opening has not read, at the rate that the
    /// options allow for this time. Returns whether more is left.
    fn look_at_unread(&self, permit: &Permit, time: Duration) -> bool {
        let rate = self.options.rate_of_verifying(self.store.may_wait());
        if !self.unread.is_left() || rate == 0 {
            return false;
        }
        // No block is used again meanwhile (T6).
        let _pin = self.registry.pin(permit.slot());
        self.unread.look(&self.store, (rate as f64 * time.as_secs_f64()) as u64);
        self.unread.is_left()
    }

    /// Cleans indexes and lets the collector do a round. Returns what is still
    /// owed, and which index entries wait.
    pub fn collect_round(&self, enter: &dyn Fn() -> Result<Entered>) -> Result<(Debt, Waiting)> {
        // It publishes nothing, so it does not hold back safe snapshots.
        let (permit, _) = enter()?;
        Ok(self.within(permit, |permit| {
            // What the collector copies must be durable before a state record
            // speaks of it. A state record waits for slots that are copying.
            self.registry.set_copying(permit.slot());
            let stale = self.clean_all(permit.slot());
            let mut debt = Debt::Nothing;
            self.let_collect(permit, |collector, context| {
                if collector.background().is_some() {
                    collector.run_background(context)?;
                    debt = collector.debt(context);
                }
                Ok(())
            });
            (debt, stale)
        }))
    }

    /// Moves the durable watermark on, and releases what waited for it, unless another
    /// thread is at it.
    pub fn advance_state(&self, permit: &Permit) {
        if self.state_records.advance(&self.store, &self.registry) {
            self.release_after_record(permit);
        }
    }

    /// The same, after another thread that is at it, in two steps: a sample and its record.
    pub fn catch_up_state(&self, permit: &Permit) {
        self.catch_up_if(permit, || true);
    }

    /// The same, if it is still needed after another thread has been at it.
    pub fn catch_up_if(&self, permit: &Permit, is_needed: impl FnOnce() -> bool) {
        if self.state_records.catch_up(&self.store, &self.registry, is_needed) {
            self.release_after_record(permit);
        }
    }

    /// Waits until all that is visible now is durable. Where commits do not wait for the
    /// device, this takes a state record: after a power failure, only what the last one covers is there.
    pub fn sync(&self) -> Result<()> {
        let medium = self.store.medium();
        if self.store.is_relaxed() {
            if self.store.is_unchanged() {
                // The record is there, and may not be on the device.
                return medium.sync_all().map_err(from_medium);
            }
            let all = self.registry.after_all();
            self.registry.await_passed(all);
            self.await_record(all, None)?;
        }
        medium.fence().map_err(from_medium)
    }

    /// Waits until a state record covers this time, at most `until` a moment of the clock. Before that, commits that
    /// are under way may have to end. Returns whether one does: not if the medium has failed.
    pub fn await_record(&self, time: Timestamp, until: Option<Duration>) -> Result<bool> {
        while self.store.durable_watermark() < time {
            let is_late = until.is_some_and(|until| self.registry.clock().elapsed() >= until);
            if is_late || self.store.medium().is_failed() {
                return Ok(false);
            }
            self.within(self.enter(Begin::LateWriter)?.0, |permit| self.catch_up_state(permit));
            if self.store.durable_watermark() < time {
                self.registry.clock().sleep(Duration::from_millis(1));
            }
        }
        Ok(true)
    }

    fn release_after_record(&self, permit: &Permit) {
        self.release_dropped(permit, Batch::OF_A_COMMIT);
        self.forget_indexes();
    }

    /// Forgets the dropped indexes that no transaction needs any more.
    pub fn forget_indexes(&self) {
        if self.tables.has_dropped_indexes() {
            self.registry.refresh_watermark(Duration::ZERO);
            if self.tables.forget_indexes(self.registry.writers_watermark()) {
                self.buffers.forget();
            }
        }
    }

    /// Whether dropped tables wait, even if only for running transactions.
    pub fn has_dropped_tables(&self) -> bool {
        self.tables.has_dropped()
    }

    /// Tables have been dropped: what they hold is to be given back.
    pub fn give_up(&self, gone: &[Arc<TableInner>]) {
        gone.iter().for_each(|table| self.forget_rows(table));
        self.buffers.forget();
        self.alarm.written();
    }

    /// Subtracts what has been counted of a dropped table from the gauges.
    fn forget_rows(&self, table: &TableInner) {
        self.counters.adjust(Change::default() - table.rows.take());
    }

    /// Gives back some blocks of dropped tables that no transaction can see
    /// into and whose contents are not needed as evidence (I-10). Returns
    /// whether more can go now; a failure latches in the medium and shows at the
    /// next commit.
    pub fn release_dropped(&self, _: &Permit, batch: Batch) -> bool {
        self.release_tables(batch)
    }

    /// The same before the database is open.
    pub fn release_tables(&self, batch: Batch) -> bool {
        let (look, durable) = (|| self.users_of_tables(), self.store.durable_watermark());
        // Commits that had found them before they were dropped have been counted by now.
        self.tables.take_unused(look).iter().for_each(|table| self.forget_rows(table));
        self.tables.release_dropped(look, durable, batch, |tables| {
            tables.keys().for_each(|&table| self.reclaimer.forget(&self.store, table));
            self.store.release_tables(tables, batch.blocks, self.registry.now())
        })
    }

    /// Those that may use dropped tables at this moment.
    fn users_of_tables(&self) -> Users<'_> {
        let registry = &self.registry;
        let (watermark, running) = (registry.watermark(), registry.running_set());
        Users { watermark, running, holds: self.store.holds(), registry }
    }
}
