//! Work for the whole database: tiles, orphaned tiles, tombstones, empty chunks, pacing. One thread
//! at a time does it, about once per epoch.

use pantile_base::Timestamp;
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::atomic::Ordering;
use pantile_cc::RunningEpochs;
use pantile_store::{BlockInfo, BlockRef, BlockState, KeptLinks, StoreError, Tile};

use super::TbCollect;
use super::state::Janitor;
use super::survey::{Kept, Survey};
use crate::Context;
use crate::counters::add;
use crate::tombstones::Sweep;

/// The least number of tiles examined in one turn.
const TILES: usize = 64;

/// A lane is idle if nothing has been appended to it for this many checks,
/// which are this many epochs apart: half a second.
const IDLE_ROUNDS: u32 = 2;
const IDLE_EPOCHS: u64 = 5;
/// The same while the database is being closed: nothing waits for appends that
/// do not come.
const IDLE_AT_END: (u32, u64) = (1, 1);

/// Parts of a sweep that are done in one turn.
const SWEEP_PARTS: u32 = 1024;

impl Janitor {
    /// Removes the links that walks pass and no thread is on its way to.
    fn remove_passed(&mut self, cx: &Context<'_>) {
        self.passed.retain_mut(|(grace, passed)| {
            let is_over = grace.is_over(cx.registry);
            if is_over {
                cx.store.remove_passed(passed);
            }
            !is_over
        });
        let passed = cx.store.take_passed();
        if !passed.is_empty() {
            self.passed.push((cx.registry.grace(), passed));
        }
    }
}

impl TbCollect {
    /// Does a bounded part of the work, if any is due and no other thread is
    /// doing it.
    pub(super) fn tidy(&self, cx: &Context<'_>, urgent: bool) -> Result<(), StoreError> {
        let Some(mut janitor) = self.janitor.try_lock() else { return Ok(()) };
        let janitor = &mut *janitor;
        let _pin = cx.registry.pin(cx.slot);
        let now = cx.registry.now();
        let epoch = self.epochs.of(now);
        if epoch <= janitor.done && !urgent && !self.pacer.take_outdated() {
            self.timed(cx, now, || {
                let is_due = !janitor.survey.is_partial() && self.pacer.is_look_due();
                if is_due {
                    self.look(cx, &mut janitor.survey, now);
                }
                if is_due || janitor.survey.is_partial() {
                    self.survey(cx, &mut janitor.survey, now);
                }
                self.sweep_tombstones(cx, &mut janitor.sweep);
            });
            return Ok(());
        }
        janitor.done = epoch;
        self.timed(cx, now, || {
            let (rounds, epochs) =
                if self.pacer.is_ending() { IDLE_AT_END } else { (IDLE_ROUNDS, IDLE_EPOCHS) };
            if epoch.0 >= janitor.idle_looked_for.0 + epochs {
                janitor.idle_looked_for = epoch;
                if cx.store.give_up_idle(rounds) {
                    janitor.survey.fruitless = None;
                }
                self.close_spent(cx, |_, info| self.is_spent(info));
            }
            self.look(cx, &mut janitor.survey, now);
            self.survey(cx, &mut janitor.survey, now);
            let mut kept = cx.store.take_kept_tiles(cx.registry.watermark());
            kept.append(&mut self.retired_tiles.lock());
            if !kept.is_empty() {
                janitor.tiles.push((cx.registry.grace(), kept));
            }
            janitor.remove_passed(cx);
            if let Some(running) = cx.registry.running_set() {
                let running = running.epochs(self.epochs);
                self.drop_tiles(cx, janitor, &running);
            }
            let leaving = janitor.tiles.iter().flat_map(|(_, tiles)| tiles).map(Tile::bytes).sum();
            self.leaving_tile_bytes.store(leaving, Ordering::Relaxed);
            let excess = self.pacer.chunk_excess();
            // A chunk that was emptied in this epoch may soon be filled.
            let before = self.epochs.start(now);
            janitor.chunks.advance(cx, urgent || self.pacer.is_short() || excess > 0, before)?;
            if !urgent && !self.pacer.is_short() {
                let most = excess.div_ceil(CHUNK_BYTES) as usize;
                cx.store.discard_free(most, self.pacer.is_resting())?;
            }
            self.sweep_tombstones(cx, &mut janitor.sweep);
            Ok(())
        })
    }

    /// Takes a look at the space, of which so much is kept for readers.
    pub(super) fn pace(&self, cx: &Context<'_>, kept: u64, now: Timestamp) {
        self.pacer.look(&self.options, cx.store, (cx.tuples.live_bytes(), kept), now);
    }

    fn look(&self, cx: &Context<'_>, survey: &mut Survey, now: Timestamp) {
        let kept = self.still_kept(cx, survey);
        self.pace(cx, kept, now);
        if survey.kept.is_stale && !self.pacer.is_beyond_without_kept() {
            // Whatever is still kept, there is nothing to be won.
            survey.kept = Kept::default();
        }
    }

    /// Whether few tombstones are worth a sweep.
    pub(super) fn sweeps_eagerly(&self) -> bool {
        self.pacer.is_short() || self.pacer.is_resting()
    }

    /// Whether so much of what was written to a block is obsolete that the block
    /// is worth emptying although it is not full.
    pub(super) fn is_spent(&self, info: &BlockInfo) -> bool {
        info.obsolete >= self.threshold(info.fill)
    }

    /// Closes partly filled blocks, and queues those that would have been if
    /// they had been full. Returns the others.
    pub(super) fn close_spent(
        &self,
        cx: &Context<'_>,
        is_spent: impl Fn(BlockRef, &BlockInfo) -> bool,
    ) -> Vec<BlockRef> {
        let mut closed = cx.store.close_spent(is_spent);
        closed.retain(|&block| {
            let queued = cx.store.block_info(block).filter(|info| self.is_spent(info));
            if let Some(info) = queued {
                self.enqueue(cx.store, block.spread(), block, info.max_ts);
            }
            queued.is_none()
        });
        closed
    }

    fn sweep_tombstones(&self, cx: &Context<'_>, sweep: &mut Sweep) {
        for _ in 0..SWEEP_PARTS {
            sweep.advance(cx, self.sweeps_eagerly(), |_, address| {
                self.note_superseded(cx.store, cx.slot.index(), address, cx.registry.now());
                add(&self.counters.tombstones_dropped, 1);
            });
            if !sweep.is_under_way() {
                break;
            }
        }
        self.sweep_bytes.store(sweep.bytes(), Ordering::Relaxed);
    }

    /// Drops tiles of blocks whose versions are all visible to every
    /// transaction: no walk begins there (T7: reads are remembered elsewhere).
    fn drop_tiles(&self, cx: &Context<'_>, janitor: &mut Janitor, running: &RunningEpochs) {
        janitor.tiles.retain_mut(|(grace, _)| !grace.is_over(cx.registry));
        let (mut stay, mut gone, mut full) = (Vec::new(), Vec::new(), 0);
        for block in cx.store.take_tiled(TILES + janitor.last_tiled / 8) {
            let Some(info) = cx.store.block_info(block) else { continue };
            let is_full = matches!(info.state, BlockState::Sealed | BlockState::Frozen);
            if is_full && self.epochs.of(info.last_begin) < running.min() {
                gone.extend(cx.store.take_tile(block));
            } else if info.state != BlockState::Released {
                full += usize::from(is_full);
                stay.push(block);
            }
        }
        janitor.last_full = full;
        janitor.last_tiled = cx.store.put_tiled(stay);
        if !gone.is_empty() {
            add(&self.counters.tiles_dropped, gone.len() as u64);
            janitor.tiles.push((cx.registry.grace(), gone));
        }
    }
}
