//! Letting the collector work.

use std::time::Duration;

use pantile_cc::{Begin, Slot};
use pantile_reclaim::{Context, Reclaimer};
use pantile_store::StoreError;

use crate::engine::core::Core;
use crate::engine::view::View;

/// How long a transaction that found no space tries to make some for others.
const ROOM_TIME: Duration = Duration::from_millis(160);

impl Core {
    /// Lets the collector do something. If the medium fails meanwhile, the
    /// failure latches in the medium and shows at the next commit.
    #[inline]
    pub fn with_collector(
        &self,
        slot: Slot,
        work: impl FnOnce(&dyn Reclaimer, &Context<'_>) -> Result<(), StoreError>,
    ) {
        let tuples = View::new(self, slot);
        let context = Context { store: &self.store, registry: &self.registry, tuples: &tuples, slot };
        let _ = work(&*self.reclaimer, &context);
    }

    /// The collector's share of a commit.
    pub fn collect_step(&self, slot: Slot) {
        self.with_collector(slot, |collector, context| {
            collector.step(context)?;
            if self.is_round_due() { collector.run_background(context) } else { Ok(()) }
        });
    }

    /// Whether a round is due that no background thread does.
    fn is_round_due(&self) -> bool {
        self.options.simulated_time.is_some()
            && self
                .reclaimer
                .background()
                .is_some_and(|interval| self.rounds.is_due(self.registry.clock(), interval))
    }

    /// A round of a collector that works in the background.
    pub fn run_background(&self) {
        let Ok((slot, _)) = self.registry.begin(Begin::ReaderOrLateWriter) else { return };
        // A thread that closes the database waits for this slot, or this
        // round finds the database closed.
        if self.check_open().is_ok() {
            self.with_collector(slot, |collector, context| collector.run_background(context));
        }
        self.registry.release(slot);
    }

    /// Frees what can be freed, for a transaction that found no space and has
    /// ended. It takes some epochs, because transactions may still see what
    /// has been moved.
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
    /// slot is free for it.
    pub fn collect_hard(&self) -> bool {
        let Ok((slot, _)) = self.registry.begin(Begin::WriterAtBegin) else { return false };
        // What the collector copies must be durable before a state record
        // speaks of it. A state record waits for slots that are committing.
        self.registry.set_committing(slot);
        self.registry.refresh_watermark(Duration::ZERO);
        self.with_collector(slot, |collector, context| collector.make_room(context));
        self.registry.release(slot);
        self.advance_state();
        true
    }
}
