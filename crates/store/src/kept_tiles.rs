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

/// How the links of a block that is given away are kept, for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeepLinks {
    /// In its tile, for walks of transactions that began before this time.
    InTile(Timestamp),
    /// In a hash index, one by one (the chain consolidation of OneShotGC,
    /// which TB-Collect 5.5 compares with).
    InIndex(Timestamp),
}

#[derive(Debug)]
struct Kept {
    links: Links,
    /// Whoever began later does not walk through it.
    until: Timestamp,
}

#[derive(Debug)]
enum Links {
    Tile(Tile),
    /// The slots of the versions in the index.
    Index(Box<[u32]>),
}

impl Links {
    fn bytes(&self) -> u64 {
        match self {
            Links::Tile(tile) => tile_bytes(tile.0.len()),
            Links::Index(slots) => (slots.len() * (size_of::<(Version, Link)>() + size_of::<u32>())) as u64,
        }
    }
}

/// A version by the life of the block that it lay in.
type Version = (BlockId, u16, u32);

#[derive(Debug, Default)]
struct Shard {
    lives: HashMap<(BlockId, u16), Kept, FixedState>,
    index: HashMap<Version, Link, FixedState>,
}

/// The tiles kept.
#[derive(Debug, Default)]
pub(crate) struct KeptTiles {
    shards: [RwLock<Shard>; SHARDS],
    count: AtomicU64,
    bytes: AtomicU64,
    /// No tile can go before the watermark has passed this.
    first: AtomicU64,
}

impl KeptTiles {
    fn shard(&self, id: BlockId) -> &RwLock<Shard> {
        &self.shards[(id.chunk.wrapping_mul(61).wrapping_add(id.index)) as usize % SHARDS]
    }

    /// Whether the links of this life are kept: then the life's number cannot
    /// be given again.
    pub fn has(&self, id: BlockId, life: u16) -> bool {
        self.shard(id).read().lives.contains_key(&(id, life))
    }

    /// Ends the life of a block and keeps its links, if it has a tile; tells
    /// whether, and gives the tile back if it is not needed for that. Who
    /// looks for a link meanwhile waits at the shard.
    pub fn take_over(&self, id: BlockId, block: &Block, keep: KeepLinks) -> (bool, Option<Tile>) {
        let mut shard = self.shard(id).write();
        let life = block.life();
        let tile = block.tile.take();
        block.end_life();
        let Some(tile) = tile else { return (false, None) };
        let (links, until, left) = match keep {
            KeepLinks::InTile(until) => (Links::Tile(tile), until, None),
            KeepLinks::InIndex(until) => {
                let linked = (0u32..).zip(&tile.0).filter_map(|(slot, header)| Some((slot, header.link()?)));
                let mut slots = Vec::new();
                for (slot, link) in linked {
                    shard.index.insert((id, life, slot), link);
                    slots.push(slot);
                }
                (Links::Index(slots.into()), until, Some(tile))
            }
        };
        self.bytes.fetch_add(links.bytes(), Ordering::Relaxed);
        let old = shard.lives.insert((id, life), Kept { links, until });
        assert!(old.is_none(), "the links of a life are kept once");
        if self.count.fetch_add(1, Ordering::AcqRel) == 0 {
            self.first.store(u64::MAX, Ordering::Release);
        }
        self.first.fetch_min(until.get(), Ordering::AcqRel);
        (true, left)
    }

    /// The link of a version of this life of the block, wherever it is kept.
    pub fn link(&self, id: BlockId, block: &Block, life: u16, slot: u32) -> Option<Link> {
        let shard = self.shard(id).read();
        if block.life() == life {
            return block.tile.link(slot);
        }
        match &shard.lives.get(&(id, life))?.links {
            Links::Tile(tile) => tile.0.get(slot as usize)?.link(),
            Links::Index(_) => shard.index.get(&(id, life, slot)).copied(),
        }
    }

    /// Takes out what nobody needs who reads at `watermark` or later: the
    /// blocks that it belonged to, and their tiles if they were kept whole.
    pub fn take_below(&self, watermark: Timestamp) -> Vec<(BlockId, Option<Tile>)> {
        let mut gone = Vec::new();
        if self.count() == 0 || self.first.load(Ordering::Acquire) >= watermark.get() {
            return gone;
        }
        let mut first = u64::MAX;
        for shard in &self.shards {
            let mut shard = shard.write();
            let Shard { lives, index } = &mut *shard;
            for ((id, life), kept) in lives.extract_if(|_, kept| kept.until < watermark) {
                self.bytes.fetch_sub(kept.links.bytes(), Ordering::Relaxed);
                gone.push(match kept.links {
                    Links::Tile(tile) => (id, Some(tile)),
                    Links::Index(slots) => {
                        for slot in slots {
                            index.remove(&(id, life, slot));
                        }
                        (id, None)
                    }
                });
            }
            first = lives.values().map(|kept| kept.until.get()).fold(first, u64::min);
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
