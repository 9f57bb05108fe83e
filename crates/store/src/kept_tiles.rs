//! Tiles that outlive their blocks, for the chains of long transactions
//! (TB-Collect 4.4).
//!
//! A block that a long transaction has been passed over by is given away, and
//! its versions' links must still be found. They are found by the block's
//! name and the number of the life that they belong to.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_base::sync::RwLock;
use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::block::{Block, BlockId};
use crate::tile::{Link, Tile, tile_bytes};

const SHARDS: usize = 16;

#[derive(Debug)]
struct Kept {
    tile: Tile,
    /// Whoever began later does not walk through it.
    until: Timestamp,
}

type Shard = RwLock<HashMap<(BlockId, u16), Kept, FixedState>>;

/// The tiles kept.
#[derive(Debug, Default)]
pub(crate) struct KeptTiles {
    shards: [Shard; SHARDS],
    count: AtomicU64,
    bytes: AtomicU64,
    /// No tile can go before the watermark has passed this.
    first: AtomicU64,
}

impl KeptTiles {
    fn shard(&self, id: BlockId) -> &Shard {
        &self.shards[(id.chunk.wrapping_mul(61).wrapping_add(id.index)) as usize % SHARDS]
    }

    /// Whether the tile of this life is kept: then the life's number cannot
    /// be given again.
    pub fn has(&self, id: BlockId, life: u16) -> bool {
        self.shard(id).read().contains_key(&(id, life))
    }

    /// Ends the life of a block and keeps its tile, if it has one; tells
    /// whether. Who looks for a link meanwhile waits at the shard.
    pub fn take_over(&self, id: BlockId, block: &Block, until: Timestamp) -> bool {
        let mut shard = self.shard(id).write();
        let life = block.life();
        let tile = block.tile.take();
        block.end_life();
        let Some(tile) = tile else { return false };
        let bytes = tile_bytes(tile.0.len());
        let old = shard.insert((id, life), Kept { tile, until });
        assert!(old.is_none(), "a life of a block has one tile");
        if self.count.fetch_add(1, Ordering::AcqRel) == 0 {
            self.first.store(u64::MAX, Ordering::Release);
        }
        self.first.fetch_min(until.get(), Ordering::AcqRel);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        true
    }

    /// The link of a version of this life of the block, wherever its tile is.
    pub fn link(&self, id: BlockId, block: &Block, life: u16, slot: u32) -> Option<Link> {
        let shard = self.shard(id).read();
        if block.life() == life {
            return block.tile.link(slot);
        }
        shard.get(&(id, life))?.tile.0.get(slot as usize)?.link()
    }

    /// Takes out the tiles that nobody needs who reads at `watermark` or
    /// later, with the blocks that they belonged to.
    pub fn take_below(&self, watermark: Timestamp) -> Vec<(BlockId, Tile)> {
        let mut gone = Vec::new();
        if self.count() == 0 || self.first.load(Ordering::Acquire) >= watermark.get() {
            return gone;
        }
        let mut first = u64::MAX;
        for shard in &self.shards {
            let mut shard = shard.write();
            let old: Vec<_> =
                shard.iter().filter(|(_, kept)| kept.until < watermark).map(|(key, _)| *key).collect();
            for key in old {
                if let Some(kept) = shard.remove(&key) {
                    self.bytes.fetch_sub(tile_bytes(kept.tile.0.len()), Ordering::Relaxed);
                    gone.push((key.0, kept.tile));
                }
            }
            first = shard.values().map(|kept| kept.until.get()).fold(first, u64::min);
        }
        // What has been kept meanwhile may be missed, and is found next time.
        self.first.store(first.min(watermark.get()), Ordering::Release);
        self.count.fetch_sub(gone.len() as u64, Ordering::AcqRel);
        gone
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
