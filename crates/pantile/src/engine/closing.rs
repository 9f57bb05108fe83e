//! Closing.

use std::time::Duration;

use pantile_cc::Begin;
use pantile_media::MediumExt;
use pantile_reclaim::{Debt, Pacing};

use crate::engine::compacting::IN_VAIN;
use crate::engine::core::Core;
use crate::engine::failure::from_medium;
use crate::engine::tables::Batch;
use crate::types::error::{Error, Result};

/// How long closing brings the space down at most, if more is taken than
/// promised.
const SPACE_TIME: Duration = Duration::from_secs(1);
/// The longest pause between two rounds, however long an epoch is.
const PAUSE: Duration = Duration::from_millis(10);

/// A database that takes at most this, and so much more than the space target,
/// is compacted when it is closed. A process that opens it for a few commits
/// has no other time to do it.
const SMALL: u64 = 32 << 20;
const SPARE: u64 = 1 << 20;
/// How many times as long as what it takes its file may be.
const APART: u64 = 4;
/// Rounds of that. Not every layout can come down to the target.
const ROUNDS: u32 = 16;

impl Core {
    /// Waits for running transactions, at most for `limit`, and writes the
    /// last state record. Only the first of several calls does so. `let_go` ends
    /// prepared transactions that nobody has in hand, once all others have ended, and
    /// returns whether it has.
    ///
    /// Nothing touches the medium afterwards (I-20): no thread has a permit,
    /// and none gets one.
    pub fn close(&self, limit: Duration, let_go: impl Fn() -> bool) -> Result<()> {
        if !self.gate.begin_closing() {
            return Err(Error::Closed);
        }
        if !self.await_end_of_all(limit, let_go) {
            let error = self.still_open(limit);
            self.gate.open();
            return Err(error);
        }
        self.images.stop();
        let recorded = if self.options.is_read_only() { Ok(()) } else { self.record_last() };
        self.gate.close();
        self.insight.publisher.end();
        recorded
    }

    fn record_last(&self) -> Result<()> {
        // A failure shows when the record is written.
        let _ = self.bring_space_down();
        if self.store.close_unchanged() {
            // The data file must still be in its place.
            return self.store.medium().sync_all().map_err(from_medium);
        }
        self.write_last_image();
        let recorded = self.state_records.record_last(&self.store, &self.registry);
        self.adopt_image();
        recorded.map_err(|e| self.store_error(e))
    }

    /// Waits until no transaction runs, at most for `limit`. Those that run can
    /// go on and commit, and none begins ([`Core::enter`]). Returns whether
    /// there is none.
    fn await_end_of_all(&self, limit: Duration, let_go: impl Fn() -> bool) -> bool {
        // A round of the worker that is under way may be at a sync. None begins any more.
        self.rounds.apart(|| ());
        let clock = self.registry.clock();
        let began = clock.elapsed();
        while self.registry.running() > 0 && !let_go() {
            if clock.elapsed().saturating_sub(began) >= limit {
                return false;
            }
            clock.sleep(Duration::from_millis(1));
        }
        true
    }

    /// Brings the space down to what is promised, and that of a small database
    /// to little more than the target.
    fn bring_space_down(&self) -> Result<()> {
        self.reclaimer.note_end();
        let clock = self.registry.clock();
        let deadline = clock.elapsed() + SPACE_TIME;
        let enter = || self.enter_closing(Begin::LateWriter);
        // Nothing is given back on a medium that has failed.
        let may_go_on = || clock.elapsed() < deadline && !self.store.medium().is_failed();
        let is_owed = |debt: Debt| debt.is_of_space() || self.has_dropped_tables();
        // What other processes read stays.
        while is_owed(self.collect_round(&enter)?.0) && may_go_on() && self.store.holds().is_empty() {
            self.within(enter()?.0, |permit| {
                self.catch_up_state(permit);
                while self.release_dropped(permit, Batch::LARGE) && may_go_on() {}
            });
            clock.sleep(self.pause());
        }
        // The published policy has no target.
        let has_target = self.options.gc.pacing == Pacing::Adaptive;
        let may_compact = has_target && self.store.holds().is_empty();
        if may_compact && self.is_small_and_loose() { self.compact_small() } else { Ok(()) }
    }

    fn compact_small(&self) -> Result<()> {
        let (mut since, mut least, mut in_vain) = (None, (u64::MAX, u64::MAX), 0);
        for _ in 0..ROUNDS {
            let begun = *since.get_or_insert_with(|| {
                self.store.give_up_idle(0);
                self.registry.now()
            });
            let left = self.compact_some(begun, None, &|| self.enter_closing(Begin::LateWriter))?;
            if left.is_some_and(|left| left.is_held) || in_vain == IN_VAIN || !self.is_small_and_loose() {
                break;
            }
            if left.is_some_and(|left| left.is_done()) {
                // What was moved leaves room for more, or was in the way.
                let extent = self.extent();
                in_vain = if extent < least { 0 } else { in_vain + 1 };
                (least, since) = (least.min(extent), None);
            }
            self.registry.clock().sleep(self.pause());
        }
        Ok(())
    }

    fn pause(&self) -> Duration {
        (self.options.gc.epoch / 4).min(PAUSE)
    }

    /// Whether the database is small, and takes more than it should and more than
    /// its layout needs, or lies far apart in its file. Rounds that can win nothing are
    /// not begun.
    fn is_small_and_loose(&self) -> bool {
        let (taken, ready) = self.store.taken_bytes();
        let target = (self.options.gc.space_target * self.counters.live_bytes() as f64) as u64;
        let spare = taken.saturating_sub(ready + SPARE);
        let is_far_apart = !self.store.is_unchanged() && self.store.end() > APART * taken.max(SPARE);
        taken <= SMALL && (is_far_apart || spare > target && spare > self.store.least_bytes())
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // No handle is left. A failure here makes the next opening slower,
        // and has no other effect.
        let _ = self.close(Duration::ZERO, || false);
    }
}
