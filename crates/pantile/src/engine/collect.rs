//! Letting the collector work.

use std::time::Duration;

use pantile_cc::Begin;
use pantile_reclaim::{Context, Reclaimer};
use pantile_store::StoreError;

use crate::engine::core::Core;
use crate::engine::gate::Permit;
use crate::engine::rounds::Rounds;
use crate::engine::view::View;

/// How long a transaction that found no space tries to make some for others.
const ROOM_TIME: Duration = Duration::from_millis(160);

/// Ends the rounds when it is dropped.
struct Unwinding<'c>(&'c Rounds);

impl Drop for Unwinding<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Core {
    /// Lets the collector do something. If the medium fails meanwhile, the
    /// failure latches in the medium and shows at the next commit. If the collector panics, its rounds end.
    #[inline]
    pub fn with_collector(
        &self,
        permit: &Permit,
        work: impl FnOnce(&dyn Reclaimer, &Context<'_>) -> Result<(), StoreError>,
    ) {
        let slot = permit.slot();
        let tuples = View::new(self, slot);
        let context = Context { store: &self.store, registry: &self.registry, tuples: &tuples, slot };
        let unwinding = Unwinding(&self.rounds);
        let _ = work(&*self.reclaimer, &context);
        std::mem::forget(unwinding);
    }

    /// The same for what can be left undone. It is left so once the rounds have ended.
    #[inline]
    pub fn let_collect(
        &self,
        permit: &Permit,
        work: impl FnOnce(&dyn Reclaimer, &Context<'_>) -> Result<(), StoreError>,
    ) {
        if !self.rounds.have_ended() {
            self.with_collector(permit, work);
        }
    }

    /// The collector's share of a commit. Without a worker it includes a round
    /// if one is due. Returns whether it did one.
    pub fn collect_step(&self, permit: &Permit) -> bool {
        let interval = self.reclaimer.background();
        let is_round = interval.is_some_and(|interval| self.rounds.is_due(self.registry.clock(), interval));
        self.let_collect(permit, |collector, context| {
            collector.step(context)?;
            if is_round { collector.run_background(context) } else { Ok(()) }
        });
        is_round
    }

    /// Frees what can be freed, for a transaction that found no space and has
    /// ended. It takes some epochs, because transactions may still see what
    /// has been moved. It ends at once if the database is closed meanwhile.
    pub fn make_room(&self) {
        let clock = self.registry.clock();
        let until = clock.elapsed() + ROOM_TIME.max(self.options.gc.epoch * 4);
        let (_, before) = self.store.available();
        let has_room = || {
            let (has_chunk, free_blocks) = self.store.available();
            has_chunk || free_blocks > before
        };
        while !has_room() && clock.elapsed() < until {
            if !self.collect_hard() {
                return;
            }
            clock.sleep(ROOM_TIME / 32);
        }
    }

    /// One round of the collector that defers nothing. Returns false if no
    /// slot is free for it or the database is closed.
    pub fn collect_hard(&self) -> bool {
        let Ok((permit, _)) = self.enter(Begin::LateWriter) else { return false };
        self.within(permit, |permit| {
            // What the collector copies must be durable before a state record
            // speaks of it. A state record waits for slots that are copying.
            self.registry.set_copying(permit.slot());
            self.registry.refresh_watermark(Duration::ZERO);
            self.let_collect(permit, |collector, context| collector.make_room(context));
        });
        let Ok((permit, _)) = self.enter(Begin::LateWriter) else { return false };
        // Several that wait for room need one record.
        let before = self.store.durable_watermark();
        self.within(permit, |permit| self.catch_up_if(permit, || self.store.durable_watermark() == before));
        true
    }
}
