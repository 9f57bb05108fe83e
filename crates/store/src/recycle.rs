//! Slots that are written again one by one: what collectors do that free
//! versions and not blocks. The lists of free slots are in DRAM only; what is
//! newest recovery tells by timestamps (Zen 3.4).
//!
//! Two rules keep that safe. A slot is free only when the version in it and
//! the one that has superseded it are at or below the durable watermark, so
//! no evidence goes with it (T1) and nothing older comes back in its place.
//! And a block says on the medium, from its first moment on, that its slots
//! may be written more than once: what is cut off there is not damage.

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::Ordering;
use pantile_base::{Address, TableId, Timestamp};

use crate::block::{Block, BlockId, BlockState, Chunk};
use crate::store::{Layout, Store};
use crate::stream::class_key;
use crate::tile::Link;

impl Store {
    /// How versions lie.
    pub fn layout(&self) -> Layout {
        self.options.layout
    }

    /// Slots that can be written again now.
    pub fn free_slots(&self) -> u64 {
        self.free_slots.count()
    }

    /// Lets superseded versions of a table be overwritten: **this is where
    /// space is reclaimed version by version**. Nobody sees them nor is on the
    /// way to them; `at` is when the last of them had been superseded and was
    /// found for the last time. Tells how many slots became free; none if
    /// `at` is not yet known to be durable.
    ///
    /// # Panics
    /// If a slot is free already: it would be given to two versions.
    pub fn recycle(&self, table: TableId, versions: &[Address], at: Timestamp) -> Option<usize> {
        if at > self.durable_watermark() && !is_removed(Control::DurableBeforeRecycle) {
            return None;
        }
        let mut freed = 0;
        for &version in versions {
            let Some(chunk) = self.chunk((version.offset() / pantile_base::limits::CHUNK_BYTES) as u32)
            else {
                continue;
            };
            let (index, slot) = chunk.locate(version);
            let id = BlockId { chunk: chunk.number, index };
            let block = &chunk.blocks[index as usize];
            let mut shard = self.free_slots.shard(id).lock();
            // Under the lock: a dropped table's blocks are taken out once they
            // are marked as released.
            let is_used = matches!(block.state(), BlockState::Open | BlockState::Sealed);
            if !is_used || block.table() != table || !block.recycles() {
                continue;
            }
            assert!(block.map.is_set(slot), "a slot is freed whose version is the newest");
            let count = block.vacant.set(slot).expect("a slot is freed once");
            if count == 1 {
                let class = class_key(table, chunk.geometry.stride);
                shard.0.entry(class).or_default().push(id);
            }
            freed += 1;
        }
        self.free_slots.count.fetch_add(freed as u64, Ordering::Relaxed);
        Some(freed)
    }

    /// Takes free slots of a class, at most so many; those of a block in order.
    pub(crate) fn take_vacant(&self, class: u64, hint: usize, most: u32, out: &mut Vec<Address>) {
        if self.free_slots.count() == 0 {
            return;
        }
        let shards = &self.free_slots.shards;
        let mut left = most;
        for n in 0..shards.len() {
            let mut shard = shards[(hint + n) % shards.len()].lock();
            let Some(blocks) = shard.0.get_mut(&class) else { continue };
            while left > 0
                && let Some(&id) = blocks.last()
            {
                let (chunk, block) = self.block(id);
                left -= take_from(chunk, block, id, left, out);
                if block.vacant.count() == 0 {
                    blocks.pop();
                }
            }
            if left == 0 {
                break;
            }
        }
        self.free_slots.count.fetch_sub(u64::from(most - left), Ordering::Relaxed);
    }

    /// Gives back slots that were taken and not written.
    pub(crate) fn return_vacant(&self, class: u64, slots: &mut Vec<Address>) {
        self.free_slots.count.fetch_add(slots.len() as u64, Ordering::Relaxed);
        for address in slots.drain(..) {
            let chunk = self.chunk_of(address);
            let (index, slot) = chunk.locate(address);
            let id = BlockId { chunk: chunk.number, index };
            let mut shard = self.free_slots.shard(id).lock();
            if chunk.blocks[index as usize].vacant.set(slot) == Some(1) {
                shard.0.entry(class).or_default().push(id);
            }
        }
    }

    /// Takes a dropped table's blocks, which are marked as released, out of the lists.
    pub(crate) fn forget_vacant(&self, table: TableId) {
        for shard in &self.free_slots.shards {
            for (class, blocks) in &mut shard.lock().0 {
                if class >> 32 == class_key(table, 0) >> 32 {
                    let free: u32 = blocks.iter().map(|id| self.block(*id).1.vacant.count()).sum();
                    self.free_slots.count.fetch_sub(u64::from(free), Ordering::Relaxed);
                    blocks.clear();
                }
            }
        }
    }

    /// Takes the link of the version at `address` out if it is still this
    /// one; tells whether. Who takes it may retire what it leads to.
    pub fn take_link(&self, address: Address, link: Link) -> bool {
        let chunk = self.chunk_of(address);
        let (index, slot) = chunk.locate(address);
        chunk.blocks[index as usize].tile.take_link(slot, link)
    }

    /// Has walks go past the version that the one at `address` is linked to.
    /// The caller keeps others from changing the chain.
    pub fn skip_link(&self, address: Address, next: Option<Link>) {
        let chunk = self.chunk_of(address);
        let (index, slot) = chunk.locate(address);
        chunk.blocks[index as usize].tile.replace_link(slot, next);
    }

    /// Names the superseded versions of all blocks, by table; for collectors
    /// that begin with what an earlier run has left.
    pub fn superseded_versions(&self, mut each: impl FnMut(TableId, &[Address])) {
        let _chunks = self.chunks_lock.read();
        let mut versions = Vec::new();
        for chunk in self.all_chunks() {
            for (index, block) in (0u32..).zip(&chunk.blocks) {
                if !matches!(block.state(), BlockState::Open | BlockState::Sealed) {
                    continue;
                }
                versions.clear();
                let mut at = 0;
                while let Some(slot) = block.map.next_set(at, block.fill()) {
                    versions.push(chunk.address(index, slot));
                    at = slot + 1;
                }
                each(block.table(), &versions);
            }
        }
    }
}

fn take_from(chunk: &Chunk, block: &Block, id: BlockId, most: u32, out: &mut Vec<Address>) -> u32 {
    let (mut taken, mut at) = (0, 0);
    while taken < most
        && let Some(slot) = block.vacant.next_set(at, chunk.geometry.slots)
    {
        block.vacant.unset(slot);
        out.push(chunk.address(id.index, slot));
        (taken, at) = (taken + 1, slot + 1);
    }
    taken
}
