//! Tiles that outlive their blocks, for the chains of long transactions
//! (TB-Collect 4.4).
//!
//! A block that a long transaction bypasses is released, but walks still need
//! the links of its versions. They find the links by the block's name and the
//! number of the generation that the links belong to.
//!
//! What is kept grows with the number of rows, not with the time for which a transaction runs. When
//! a block is released, its links are joined with those that were kept before (`joining.rs`), and
//! links that no walk comes to any more are removed.

use std::collections::HashMap;

use foldhash::fast::FixedState;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_base::sync::{Mutex, RwLock};
use pantile_base::{Address, TableId, Timestamp};

use crate::block::{Block, BlockId};
use crate::tile::{KeepInstead, KeptLinks, Link, Tile};

const SHARDS: usize = 16;

/// How to keep the links of a released block.
#[derive(Clone, Copy, Debug)]
pub struct KeepLinks<'a> {
    /// Needed by walks of transactions that began before this time.
    pub until: Timestamp,
    /// What to keep in place of the block's tile; `None` keeps the tile itself.
    pub instead: Option<KeepInstead>,
    /// Whether the links are joined with those that are kept already. Since the
    /// caller pinned its transaction slot, a transaction must have run that
    /// began before every version of the block.
    pub joins: bool,
    /// The versions that have moved elsewhere. No walk comes to them here.
    pub moved: &'a [Address],
}

/// A place at which a kept link begins. If it is passed, no walk comes to it any
/// more, and threads may be on their way to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassedLink {
    pub(crate) id: BlockId,
    pub(crate) generation: u16,
    /// Bytes behind the block header.
    pub(crate) within: u32,
}

#[derive(Debug)]
struct Kept {
    links: Links,
    /// That of the block.
    table: TableId,
    /// Number of the links that walks may come to.
    needed: usize,
    /// Bytes from one slot to the next in the generation that has ended.
    stride: u32,
    /// Transactions that began later do not walk through the tile.
    until: Timestamp,
}

#[derive(Debug)]
enum Links {
    Tile(Tile),
    /// What is left of a tile of which few links are needed, by slot.
    Few(Vec<(u32, Link)>),
    Other(Box<dyn KeptLinks>),
}

/// A tile of which less than this share is needed is kept as a list, whose
/// entries take twice as much.
const FEW: usize = 4;

impl Links {
    fn link(&self, slot: u32) -> Option<Link> {
        match self {
            Links::Tile(tile) => tile.link(slot),
            Links::Few(links) => links.binary_search_by_key(&slot, |l| l.0).ok().map(|at| links[at].1),
            Links::Other(links) => links.link(slot),
        }
    }

    fn bytes(&self) -> u64 {
        match self {
            Links::Tile(tile) => tile.bytes(),
            Links::Few(links) => (links.capacity() * size_of::<(u32, Link)>()) as u64,
            Links::Other(links) => links.bytes(),
        }
    }

    /// Removes the link of a slot; returns whether there was one.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Links::Tile(tile) => tile.clear(slot),
            Links::Few(links) => {
                let found = links.binary_search_by_key(&slot, |l| l.0).ok();
                found.map(|at| links.remove(at)).is_some()
            }
            Links::Other(_) => false,
        }
    }

    /// Makes a list of a tile of which few links are needed, and a shorter one
    /// of a list. Returns the tile.
    fn shrink(&mut self, needed: usize) -> Option<Tile> {
        match self {
            Links::Tile(tile) if needed < tile.slots() / FEW => {
                let few = Links::Few(tile.links().collect::<Box<[_]>>().into_vec());
                match std::mem::replace(self, few) {
                    Links::Tile(tile) => Some(tile),
                    Links::Few(_) | Links::Other(_) => None,
                }
            }
            Links::Few(links) if links.len() < links.capacity() / 2 => {
                links.shrink_to_fit();
                None
            }
            _ => None,
        }
    }
}

/// The generation of a block of which nothing is kept any more, and the tile that was.
type Gone = ((BlockId, u16), Option<Tile>);

type Shard = HashMap<(BlockId, u16), Kept, FixedState>;

fn kept_link(shard: &Shard, place: PassedLink) -> Option<Link> {
    let kept = shard.get(&(place.id, place.generation))?;
    kept.links.link(place.within / kept.stride)
}

/// The tiles that are kept.
#[derive(Debug, Default)]
pub(crate) struct KeptTiles {
    shards: [RwLock<Shard>; SHARDS],
    count: AtomicU64,
    bytes: AtomicU64,
    /// No kept tile can be dropped before the watermark has passed this.
    first: AtomicU64,
    /// Whether links are joined.
    joins: AtomicBool,
    /// Links that walks pass, since [`KeptTiles::take_passed`] was last called.
    passed: Mutex<Vec<PassedLink>>,
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

    /// Ends the generation of a block and keeps its links, if it has any.
    /// Returns whether links are kept, and the tile if it is not what is kept.
    /// A thread that looks for a link meanwhile waits at the shard.
    pub fn take_over(&self, id: BlockId, block: &Block, keep: KeepLinks<'_>) -> (bool, Option<Tile>) {
        let mut shard = self.shard(id).write();
        let generation = block.generation();
        let (table, stride) = (block.table(), block.stride());
        let tile = block.tile.take();
        block.end_generation();
        let Some(tile) = tile else { return (false, None) };
        let needed = tile.links().count();
        if needed == 0 {
            return (false, Some(tile));
        }
        let (mut links, mut left) = match keep.instead {
            None => (Links::Tile(tile), None),
            Some(instead) => (Links::Other(instead(&tile)), Some(tile)),
        };
        left = left.or(links.shrink(needed));
        self.bytes.fetch_add(links.bytes(), Ordering::Relaxed);
        let old = shard.insert((id, generation), Kept { links, table, needed, stride, until: keep.until });
        assert!(old.is_none(), "the links of a generation are kept once");
        if self.count.fetch_add(1, Ordering::AcqRel) == 0 {
            self.first.store(u64::MAX, Ordering::Release);
        }
        self.first.fetch_min(keep.until.get(), Ordering::AcqRel);
        (true, left)
    }

    /// Whether links are joined. Then what is passed is removed in time.
    pub fn joins(&self) -> bool {
        self.joins.load(Ordering::Relaxed)
    }

    /// From now on links are joined.
    pub fn set_joins(&self) {
        self.joins.store(true, Ordering::Relaxed);
    }

    /// Notes that no walk comes to a link any more.
    pub fn pass(&self, passed: PassedLink) {
        self.passed.lock().push(passed);
    }

    /// The links that were passed since the last call.
    pub fn take_passed(&self) -> Vec<PassedLink> {
        std::mem::take(&mut *self.passed.lock())
    }

    /// Removes links that no thread is on its way to. Returns the generations of
    /// blocks of which nothing is kept any more.
    pub fn remove(&self, passed: &[PassedLink]) -> Vec<(BlockId, u16)> {
        let mut gone = Vec::new();
        for &PassedLink { id, generation, within } in passed {
            let mut shard = self.shard(id).write();
            let Some(kept) = shard.get_mut(&(id, generation)) else { continue };
            let before = kept.links.bytes();
            if kept.links.remove(within / kept.stride) {
                kept.needed -= 1;
            }
            // The pins that were waited for began before the tile was kept.
            drop(kept.links.shrink(kept.needed));
            let after = if kept.needed == 0 { 0 } else { kept.links.bytes() };
            self.bytes.fetch_sub(before - after, Ordering::Relaxed);
            if kept.needed == 0 {
                shard.remove(&(id, generation));
                gone.push((id, generation));
            }
        }
        self.count.fetch_sub(gone.len() as u64, Ordering::AcqRel);
        gone
    }

    /// The link that begins at a place of this block, wherever it is kept: the
    /// generation may be ending.
    pub fn link_of(&self, block: &Block, place: PassedLink) -> Option<Link> {
        let shard = self.shard(place.id).read();
        if block.generation() == place.generation {
            return block.tile.link(place.within / block.stride());
        }
        kept_link(&shard, place)
    }

    /// The link that begins at a place in a block whose generation has ended.
    pub fn link(&self, place: PassedLink) -> Option<Link> {
        kept_link(&self.shard(place.id).read(), place)
    }

    /// Removes the links that no reader at or above `watermark` needs. Returns
    /// the generations of blocks that they belonged to, and the tiles.
    pub fn take_below(&self, watermark: Timestamp) -> Vec<Gone> {
        if self.count() == 0 || self.first.load(Ordering::Acquire) >= watermark.get() {
            return Vec::new();
        }
        let (gone, first) = self.take(|kept| kept.until < watermark);
        // Links that were kept meanwhile may be missed. The next call finds
        // them.
        self.first.store(first.min(watermark).get(), Ordering::Release);
        gone
    }

    /// The same for all links of the versions of some tables.
    pub fn take_of(&self, is_of: impl Fn(TableId) -> bool) -> Vec<Gone> {
        if self.count() == 0 { Vec::new() } else { self.take(|kept| is_of(kept.table)).0 }
    }

    /// Removes some of what is kept. Returns also the time before which nothing that is left
    /// can go.
    fn take(&self, goes: impl Fn(&Kept) -> bool) -> (Vec<Gone>, Timestamp) {
        let (mut gone, mut first) = (Vec::new(), Timestamp::MAX);
        for shard in &self.shards {
            let mut shard = shard.write();
            for (of, kept) in shard.extract_if(|_, kept| goes(kept)) {
                self.bytes.fetch_sub(kept.links.bytes(), Ordering::Relaxed);
                gone.push(match kept.links {
                    Links::Tile(tile) => (of, Some(tile)),
                    Links::Few(_) | Links::Other(_) => (of, None),
                });
            }
            first = shard.values().map(|kept| kept.until).fold(first, Timestamp::min);
        }
        self.count.fetch_sub(gone.len() as u64, Ordering::AcqRel);
        (gone, first)
    }

    /// Calls `each` with the time until which something is kept, and its bytes.
    pub fn each(&self, mut each: impl FnMut(Timestamp, u64)) {
        for shard in &self.shards {
            shard.read().values().for_each(|kept| each(kept.until, kept.links.bytes()));
        }
    }

    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
