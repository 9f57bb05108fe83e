//! The state of the collector, and the functions that all its parts use.

use pantile_base::sync::Mutex;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64};
use pantile_base::{Address, Timestamp};
use pantile_cc::{Clock, Epoch, EpochManager, Grace};
use pantile_store::{BlockEvent, BlockRef, KeepInstead, PassedLink, Store, Superseded, Tile, emit};

use super::owed::Owed;
use super::pacing::Pacer;
use super::queues::Shard;
use super::survey::Survey;
use crate::counters::Counters;
use crate::empty_chunks::EmptyChunks;
use crate::options::GcOptions;
use crate::tombstones::Sweep;
use crate::{CollectorStats, Context};

/// When block headers are written to the medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Headers {
    /// Once, when the block is frozen.
    Lazily,
    /// With each update of one of the block's versions, as published.
    Eagerly,
}

/// The collector.
pub struct TbCollect {
    pub(super) options: GcOptions,
    pub(super) headers: Headers,
    /// What keeps the links of bypassed blocks in place of their tiles.
    pub(super) kept_instead: Option<KeepInstead>,
    /// Tiles whose links are kept elsewhere; threads may be looking at the
    /// tiles.
    pub(super) retired_tiles: Mutex<Vec<Tile>>,
    /// Bytes of the janitor's tiles.
    pub(super) leaving_tile_bytes: AtomicU64,
    /// Bytes of what its sweep has noted.
    pub(super) sweep_bytes: AtomicU64,
    pub(super) epochs: EpochManager,
    pub(super) shards: Box<[Shard]>,
    pub(super) janitor: Mutex<Janitor>,
    pub(super) pacer: Pacer,
    pub(super) owed: Owed,
    /// Whether the last round had more to do than it did.
    pub(super) is_more: AtomicBool,
    /// What had been done when `Reclaimer::debt` was last asked and something
    /// had been, and when that was.
    pub(super) progress: Mutex<(CollectorStats, Timestamp)>,
    pub(super) counters: Counters,
}

impl TbCollect {
    /// The collector with `shards` sets of queues.
    pub fn new(options: GcOptions, shards: usize) -> Self {
        Self {
            options,
            headers: Headers::Lazily,
            kept_instead: None,
            retired_tiles: Mutex::default(),
            leaving_tile_bytes: AtomicU64::new(0),
            sweep_bytes: AtomicU64::new(0),
            epochs: EpochManager::new(options.epoch),
            shards: (0..shards.max(1)).map(|_| Shard::default()).collect(),
            janitor: Mutex::default(),
            pacer: Pacer::default(),
            owed: Owed::default(),
            is_more: AtomicBool::new(false),
            progress: Mutex::default(),
            counters: Counters::default(),
        }
    }

    /// As published: every update of a version writes the header of its block
    /// (TB-Collect 4.3, step 2).
    pub fn eager(options: GcOptions, shards: usize) -> Self {
        Self { headers: Headers::Eagerly, ..Self::new(options, shards) }
    }

    /// Like [`TbCollect::new`], but `instead` makes of the tiles of blocks that
    /// a long transaction bypasses what keeps their links.
    pub fn keeping_links(options: GcOptions, shards: usize, instead: KeepInstead) -> Self {
        Self { kept_instead: Some(instead), ..Self::new(options, shards) }
    }

    /// The number of a block's versions that must have been superseded.
    pub(super) fn threshold(&self, slots: u32) -> u32 {
        ((self.options.theta * f64::from(slots)) as u32 + 1).min(slots)
    }

    pub(super) fn shard(&self, of: usize) -> &Shard {
        &self.shards[of % self.shards.len()]
    }

    pub(super) fn timed<T>(&self, cx: &Context<'_>, began: Timestamp, work: impl FnOnce() -> T) -> T {
        let done = work();
        self.counters.step(Clock::duration(cx.registry.now().tick().saturating_sub(began.tick())));
        done
    }

    pub(super) fn enqueue(&self, store: &Store, of: usize, block: BlockRef, at: Timestamp) {
        self.shard(of).push(block, at);
        if let Some(info) = store.block_info(block) {
            emit(BlockEvent::Pending, block, info.table);
        }
    }

    /// Notes that no transaction needs the version at `old` from `at` on.
    pub(super) fn note_superseded(
        &self,
        store: &Store,
        of: usize,
        old: Address,
        at: Timestamp,
    ) -> Superseded {
        let superseded = store.supersede(old, at);
        if superseded.count == Some(self.threshold(superseded.slots)) {
            self.enqueue(store, of, superseded.block, at);
        }
        superseded
    }
}

/// Work in progress for the whole database (`janitor.rs`).
#[derive(Default)]
pub(super) struct Janitor {
    pub done: Epoch,
    pub idle_looked_for: Epoch,
    /// Number of blocks with tiles at the last look.
    pub last_tiled: usize,
    /// Number of those whose block is full.
    pub last_full: usize,
    /// Tiles taken from their blocks; threads may be looking at them.
    pub tiles: Vec<(Grace, Vec<Tile>)>,
    /// Kept links that walks pass; threads may be on their way to them.
    pub passed: Vec<(Grace, Vec<PassedLink>)>,
    pub chunks: EmptyChunks,
    pub sweep: Sweep,
    pub survey: Survey,
}
