//! Tiles that outlive their blocks, for the chains of long transactions
//! (TB-Collect 4.4).
//!
//! A block that a long transaction bypasses is released, but walks still need
//! the links of its versions. They find the links by the block's name and the
//! number of the generation that the links belong to.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_base::sync::RwLock;
use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::block::{Block, BlockId};
use crate::tile::{KeepInstead, KeptLinks, Link, Tile};

const SHARDS: usize = 16;

/// How to keep the links of a released block.
#[derive(Clone, Copy, Debug)]
pub struct KeepLinks {
    /// Needed by walks of transactions that began before this time.
    pub until: Timestamp,
    /// What to keep in place of the block's tile; `None` keeps the tile itself.
    pub instead: Option<KeepInstead>,
}

#[derive(Debug)]
struct Kept {
    links: Links,
    /// Bytes from one slot to the next in the generation that has ended.
    stride: u32,
    /// Transactions that began later do not walk through the tile.
    until: Timestamp,
}

#[derive(Debug)]
enum Links {
    Tile(Tile),
    Other(Box<dyn KeptLinks>),
}

impl Links {
    fn get(&self) -> &dyn KeptLinks {
        match self {
            Links::Tile(tile) => tile,
            Links::Other(links) => &**links,
        }
    }
}

type Shard = HashMap<(BlockId, u16), Kept, FixedState>;

/// The tiles that are kept.
#[derive(Debug, Default)]
pub(crate) struct KeptTiles {
    shards: [RwLock<Shard>; SHARDS],
    count: AtomicU64,
    bytes: AtomicU64,
    /// No kept tile can be dropped before the watermark has passed this.
    first: AtomicU64,
}

impl KeptTiles {
    fn shard(&self, id: BlockId) -> &RwLock<Shard> {
        &self.shards[(id.chunk.wrapping_mul(61).wrapping_add(id.index)) as usize % SHARDS]
    }

    /// Whether the links of this generation are kept. If so, the generation's
    /// number cannot be used again.
    pub fn has(&self, id: BlockId, generation: u16) -> bool {
        self.shard(id).read().contains_key(&(id, generation))
    }

    /// Ends the generation of a block and keeps its links, if it has a tile.
    /// Returns whether links are kept, and the tile if something else is kept
    /// in its place. A thread that looks for a link meanwhile waits at the
    /// shard.
    pub fn take_over(&self, id: BlockId, block: &Block, keep: KeepLinks) -> (bool, Option<Tile>) {
        let mut shard = self.shard(id).write();
        let generation = block.generation();
        let stride = block.stride();
        let tile = block.tile.take();
        block.end_generation();
        let Some(tile) = tile else { return (false, None) };
        let (links, left) = match keep.instead {
            None => (Links::Tile(tile), None),
            Some(instead) => (Links::Other(instead(&tile)), Some(tile)),
        };
        self.bytes.fetch_add(links.get().bytes(), Ordering::Relaxed);
        let old = shard.insert((id, generation), Kept { links, stride, until: keep.until });
        assert!(old.is_none(), "the links of a generation are kept once");
        if self.count.fetch_add(1, Ordering::AcqRel) == 0 {
            self.first.store(u64::MAX, Ordering::Release);
        }
        self.first.fetch_min(keep.until.get(), Ordering::AcqRel);
        (true, left)
    }

    /// The link of the version `within` bytes behind the block header, of this
    /// generation of the block, wherever the link is kept.
    pub fn link(&self, id: BlockId, block: &Block, generation: u16, within: u32) -> Option<Link> {
        let shard = self.shard(id).read();
        if block.generation() == generation {
            return block.tile.link(within / block.stride());
        }
        let kept = shard.get(&(id, generation))?;
        kept.links.get().link(within / kept.stride)
    }

    /// Removes the links that no reader at or above `watermark` needs. Returns
    /// the blocks that they belonged to, and the tiles.
    pub fn take_below(&self, watermark: Timestamp) -> Vec<(BlockId, Option<Tile>)> {
        let mut gone = Vec::new();
        if self.count() == 0 || self.first.load(Ordering::Acquire) >= watermark.get() {
            return gone;
        }
        let mut first = u64::MAX;
        for shard in &self.shards {
            let mut shard = shard.write();
            for ((id, _), kept) in shard.extract_if(|_, kept| kept.until < watermark) {
                self.bytes.fetch_sub(kept.links.get().bytes(), Ordering::Relaxed);
                gone.push(match kept.links {
                    Links::Tile(tile) => (id, Some(tile)),
                    Links::Other(_) => (id, None),
                });
            }
            first = shard.values().map(|kept| kept.until.get()).fold(first, u64::min);
        }
        // Links that were kept meanwhile may be missed. The next call finds
        // them.
        self.first.store(first.min(watermark.get()), Ordering::Release);
        self.count.fetch_sub(gone.len() as u64, Ordering::AcqRel);
        gone
    }

    /// Calls `each` with the time until which something is kept, and its bytes.
    pub fn each(&self, mut each: impl FnMut(Timestamp, u64)) {
        for shard in &self.shards {
            shard.read().values().for_each(|kept| each(kept.until, kept.links.get().bytes()));
        }
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
