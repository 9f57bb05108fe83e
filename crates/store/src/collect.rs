//! Operations of collectors on blocks. A collector chooses the blocks. The code here decides what
//! is allowed, from the contents and from what is durable, so a bad policy costs space and never a
//! row.

use pantile_base::control::{Control, is_removed};
use pantile_base::sync::atomic::Ordering;
use pantile_base::{Address, TableId, Timestamp, TupleId};
use pantile_media::SyncPoint;
use smallvec::SmallVec;

use crate::block::{Block, BlockRef, BlockState, Chunk};
use crate::content::Content;
use crate::error::StoreError;
use crate::event::{BlockEvent, emit};
use crate::format::{BLOCK_HEADER_BYTES, ENTRY_BYTES, FrozenFlag};
use crate::kept_tiles::KeepLinks;
use crate::store::Store;
use crate::stream::NewContent;
use crate::stream::Urgency;
use crate::tile::Tile;

/// The outcome of superseding a version.
#[derive(Clone, Copy, Debug)]
pub struct Superseded {
    /// The block that the version is in.
    pub block: BlockRef,
    /// How many of the block's versions have been superseded; `None` if this
    /// version had already been superseded.
    pub count: Option<u32>,
    /// Number of the block's slots.
    pub slots: u32,
    /// The bytes of the version's slot.
    pub bytes: u32,
}

/// What is known about a block.
#[derive(Clone, Copy, Debug)]
pub struct BlockInfo {
    /// Its state.
    pub state: BlockState,
    /// The table it belongs to.
    pub table: TableId,
    /// Its size in bytes.
    pub bytes: u64,
    /// Bytes from one slot to the next.
    pub stride: u32,
    /// Number of its slots.
    pub slots: u32,
    /// Number of slots written.
    pub fill: u32,
    /// How many of those slots are void or hold a superseded version.
    pub obsolete: u32,
    /// When its first version began (`min_ts`).
    pub min_ts: Timestamp,
    /// When its last version began.
    pub last_begin: Timestamp,
    /// When a version was last appended to it.
    pub last_append: Timestamp,
    /// When one of its versions was last superseded (`max_ts`).
    pub max_ts: Timestamp,
    /// Until when readers could find something in it: `max_ts`, or the time at
    /// which the last survivor left.
    pub seen_until: Timestamp,
    /// Whether all its contents are tombstones.
    pub is_of_tombstones: bool,
    /// Everything done to it up to this time must be durable before its
    /// generation ends (T1).
    pub evidence: Timestamp,
}

/// A version that is to be moved.
#[derive(Clone, Copy, Debug)]
pub struct Survivor<'s> {
    /// Its address.
    pub address: Address,
    /// The version.
    pub content: Content<'s>,
}

/// How far the versions of a block have been looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Visited {
    /// The slot to go on with; `None` at the end.
    pub next: Option<u32>,
    /// Whether one of these is damaged.
    pub is_damaged: bool,
}

/// Why a block cannot be released now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It is not frozen, or its generation has ended.
    NotFrozen,
    /// Some of its versions have no successor and no copy.
    Alive(u32),
    /// What would be lost is not known to be durable elsewhere.
    NotDurable,
    /// Its next generation is one of which tiles are kept, of this block or of another one of its chunk.
    GenerationsUsedUp,
    /// Another process may be reading it (I-27).
    Held,
    /// The slot now belongs to another table, or its block is not one whose
    /// slots are rewritten one by one.
    NotReusable,
}

impl Block {
    /// What is known about it.
    pub(crate) fn info(&self) -> BlockInfo {
        let ts = Timestamp::from_raw;
        BlockInfo {
            state: self.state(),
            table: self.table(),
            bytes: self.bytes(),
            stride: self.stride(),
            slots: self.slots(),
            fill: self.fill(),
            obsolete: self.map.count(),
            min_ts: ts(self.min_ts()),
            last_begin: ts(self.last_begin()),
            last_append: ts(self.last_append()),
            max_ts: ts(self.max_ts()),
            seen_until: ts(self.max_ts().max(self.left_at())),
            is_of_tombstones: self.shape().is_of_tombstones(),
            evidence: ts(self.evidence()),
        }
    }
}

impl Store {
    /// The block, or `None` if the requested generation has ended.
    pub(crate) fn alive(&self, block: BlockRef) -> Option<(&Chunk, &Block)> {
        let chunk = self.chunk(block.id.chunk)?;
        let found = chunk.blocks.get(block.id.index as usize)?;
        (found.opened_at() == block.opened_at && found.state() != BlockState::Free).then_some((chunk, found))
    }

    /// Records that a committed transaction has superseded the version at
    /// `old`, which no reader at or above `at` sees. `at` is not before the
    /// present.
    #[inline]
    pub fn supersede(&self, old: Address, at: Timestamp) -> Superseded {
        let (chunk, index, block, slot) = self.locate(old);
        let count = block.supersede(slot, at.get());
        let found = BlockRef { id: chunk.id(index), opened_at: block.opened_at() };
        Superseded { block: found, count, slots: block.slots(), bytes: block.stride() }
    }

    /// Records that the version at `old` has a copy, and that readers find only
    /// the copy since `at` at the latest.
    pub fn leave(&self, old: Address, at: Timestamp) {
        let (_, _, block, slot) = self.locate(old);
        block.leave(slot, at.get());
    }

    /// What is known about a block; `None` if its generation has ended.
    pub fn block_info(&self, block: BlockRef) -> Option<BlockInfo> {
        self.alive(block).map(|(_, found)| found.info())
    }

    /// Decides that a block will be emptied, and writes that to the medium, so
    /// that the work goes on after a crash (TB-Collect 4.5). This is the only
    /// time that the block header with its `superseded_bits` is written.
    /// Returns whether the block was full and not yet frozen.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn freeze(&self, block: BlockRef) -> Result<bool, StoreError> {
        let Some((chunk, found)) = self.alive(block) else { return Ok(false) };
        // The block may have been chosen by several threads.
        if !found.try_become(BlockState::Sealed, BlockState::Frozen) {
            return Ok(false);
        }
        emit(BlockEvent::Frozen, block, found.table());
        if !found.is_frozen_on_medium() {
            self.write_header(block)?;
            let offset = chunk.descriptor_offset(block.id.index) + ENTRY_BYTES as u64;
            let flag = FrozenFlag { opened_at: block.opened_at, max_ts: found.max_ts() };
            self.medium.write_flushed(offset, &flag.encode(self.identity ^ offset))?;
            found.set_frozen_on_medium();
        }
        Ok(true)
    }

    /// Writes a block header as it is now.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn write_header(&self, block: BlockRef) -> Result<(), StoreError> {
        self.begin_write()?;
        let Some((chunk, found)) = self.alive(block) else { return Ok(()) };
        // Two threads must not write the same bytes at the same time.
        let _turn = self.header_locks[block.spread() % self.header_locks.len()].lock();
        let mut bytes = [0; BLOCK_HEADER_BYTES];
        let (map, times) = bytes.split_at_mut(BLOCK_HEADER_BYTES - 16);
        found.map.write_to(map);
        times[..8].copy_from_slice(&found.max_ts().to_le_bytes());
        times[8..].copy_from_slice(&found.min_ts().to_le_bytes());
        Ok(self.medium.write_flushed(chunk.header_offset(block.id.index), &bytes)?)
    }

    /// Starting at a slot, adds to `out` at most `most` versions of a frozen
    /// block that have not been superseded. Damaged ones stay where they are;
    /// [`Store::damaged`] counts them.
    pub fn survivors<'s>(
        &'s self,
        block: BlockRef,
        from: u32,
        most: usize,
        out: &mut Vec<Survivor<'s>>,
    ) -> Visited {
        let Some((chunk, found)) = self.alive(block) else { return Visited::default() };
        if from == 0 && self.may_wait() {
            self.fetch_survivors(chunk, block.id.index);
        }
        let mut at = from;
        let mut addresses = SmallVec::<[Address; 64]>::new();
        while addresses.len() < most
            && let Some(slot) = found.map.next_clear(at, found.slots())
        {
            addresses.push(chunk.address(block.id.index, slot));
            self.prefetch(addresses[addresses.len() - 1]);
            at = slot + 1;
        }
        let next = found.map.next_clear(at, found.slots());
        let all = addresses.len();
        addresses.retain(|address| self.may_be_copied(*address));
        let is_damaged = addresses.len() < all;
        out.extend(addresses.into_iter().map(|address| Survivor { address, content: self.content(address) }));
        Visited { next, is_damaged }
    }

    /// Begins to read what is alive in a block, which is usually cold.
    #[cold]
    fn fetch_survivors(&self, chunk: &Chunk, index: u32) {
        let block = &chunk.blocks[index as usize];
        let mut alive = Vec::new();
        let mut at = 0;
        while let Some(slot) = block.map.next_clear(at, block.slots()) {
            alive.push(chunk.address(index, slot));
            at = slot + 1;
        }
        self.fetch(&self.extents(&mut alive));
    }

    /// Copies survivors to other blocks, apart from new versions (T23). No
    /// reader finds the copies yet, and no thread waits until they are durable. They stay on the node of the first.
    ///
    /// # Errors
    /// [`StoreError::Medium`]; if it is `Full`, nothing was written.
    pub fn copy_survivors(
        &self,
        hint: usize,
        survivors: &[(TableId, Survivor<'_>)],
        now: impl Fn() -> Timestamp,
        addresses: &mut Vec<Address>,
    ) -> Result<SyncPoint, StoreError> {
        let contents = survivors.iter().map(|(table, Survivor { content, .. })| {
            NewContent::copy_of(*table, content, content.flags().relocated())
        });
        let first = survivors.first().map(|(_, first)| first.address);
        let node = first.and_then(|first| self.nodes.of(first));
        let spends = first.map_or(Urgency::Collect, |first| {
            let (chunk, index, ..) = self.locate(first);
            self.holds.look().urgency_of_copies(chunk.block_ref(index))
        });
        self.append_survivors(hint, (node, spends), contents, now, addresses)
    }

    /// Ends the generation of a frozen block that no transaction can see into
    /// any more (I-10). The medium forgets the block with the caller's next
    /// sync point. After that, [`Store::free`] makes the space available.
    ///
    /// With `keep`, the block's links are kept for walks that may pass through
    /// them. If a tile is returned, the caller drops it when no thread is
    /// looking at it.
    ///
    /// A full block whose slots are rewritten one by one need not be frozen,
    /// because nothing is moved out of it.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn release(
        &self,
        block: BlockRef,
        copies: Option<SyncPoint>,
        keep: Option<KeepLinks<'_>>,
    ) -> Result<Result<Option<Tile>, Refused>, StoreError> {
        let Some((chunk, found)) = self.alive(block) else { return Ok(Err(Refused::NotFrozen)) };
        let state = found.state();
        if !(state == BlockState::Frozen || state == BlockState::Sealed && found.recycles()) {
            return Ok(Err(Refused::NotFrozen));
        }
        // Nobody begins to read meanwhile.
        let held = self.holds.look();
        if held.covers(block) {
            return Ok(Err(Refused::Held));
        }
        let alive = found.slots() - found.map.count();
        if alive > 0 {
            return Ok(Err(Refused::Alive(alive)));
        }
        let evidence_is_needed = found.evidence() > self.durable_watermark().get();
        if evidence_is_needed && !is_removed(Control::WatermarkAtRelease) {
            return Ok(Err(Refused::NotDurable));
        }
        let copies_are_durable = copies.is_none_or(|point| self.medium.is_durable(point));
        if !copies_are_durable && !is_removed(Control::CopiesDurable) {
            return Ok(Err(Refused::NotDurable));
        }
        let next = found.generation().wrapping_add(1);
        let begins_again = next == chunk.first_generation && chunk.kept_tiles.load(Ordering::Acquire) > 0;
        if begins_again || self.kept.has(block.id, next) || self.past.have(block.id.chunk, next) {
            return Ok(Err(Refused::GenerationsUsedUp));
        }
        if !found.try_become(state, BlockState::Released) {
            return Ok(Err(Refused::NotFrozen));
        }
        let tile = match keep.filter(|_| !is_removed(Control::TilesKept)) {
            Some(keep) => {
                if keep.joins {
                    self.join_links(chunk, found, keep.moved);
                }
                let (is_kept, tile) = self.kept.take_over(block.id, found, keep);
                if is_kept {
                    chunk.kept_tiles.fetch_add(1, Ordering::AcqRel);
                }
                tile
            }
            None => {
                found.end_generation();
                found.tile.take()
            }
        };
        self.zero_descriptor(chunk, block.id.index)?;
        emit(BlockEvent::Released, block, found.table());
        Ok(Ok(tile))
    }

    /// Makes the space of a released block available: **this is where space is
    /// reclaimed**. The medium must durably have forgotten the block.
    pub fn free(&self, block: BlockRef, now: Timestamp) {
        let (chunk, found) = self.block(block.id);
        emit(BlockEvent::Freed, block, found.table());
        self.free_block(chunk, block.id, now);
    }

    /// Returns, oldest first, at most `most` blocks whose tiles were made since
    /// the last call.
    pub fn take_tiled(&self, most: usize) -> Vec<BlockRef> {
        let mut tiled = self.tiled.lock();
        let len = tiled.len().min(most);
        tiled.drain(..len).collect()
    }

    /// Puts blocks back on the list of those that have tiles; returns the
    /// length of the list.
    pub fn put_tiled(&self, blocks: impl IntoIterator<Item = BlockRef>) -> usize {
        let mut tiled = self.tiled.lock();
        tiled.extend(blocks);
        tiled.len()
    }

    /// Takes the tile of a block whose versions are all visible to every
    /// present and future reader. The caller drops it when no thread is looking
    /// at it.
    pub fn take_tile(&self, block: BlockRef) -> Option<Tile> {
        self.alive(block)?.1.tile.take()
    }

    /// Takes the orphaned tiles that no reader at or above `watermark` needs. The
    /// caller drops them when no thread is looking at them.
    pub fn take_kept_tiles(&self, watermark: Timestamp) -> Vec<Tile> {
        let gone = self.kept.take_below(watermark);
        self.keep_fewer(gone.iter().map(|(id, _)| *id));
        gone.into_iter().filter_map(|(_, tile)| tile).collect()
    }

    /// Number of orphaned tiles.
    pub fn kept_tiles(&self) -> u64 {
        self.kept.count()
    }

    /// Number of blocks in a chunk; 0 if the chunk is not carved.
    pub fn blocks_in(&self, chunk: u32) -> u32 {
        let _chunks = self.chunks_lock.read();
        self.chunk(chunk).map_or(0, |chunk| chunk.geometry.blocks)
    }

    /// A block of a chunk, if the block holds something.
    #[inline]
    pub fn block_at(&self, chunk: u32, index: u32) -> Option<BlockRef> {
        let _chunks = self.chunks_lock.read();
        let chunk = self.chunk(chunk)?;
        let block = chunk.blocks.get(index as usize)?;
        (!matches!(block.state(), BlockState::Free | BlockState::Record))
            .then(|| BlockRef { id: chunk.id(index), opened_at: block.opened_at() })
    }

    /// Every chunk number is below this one.
    pub fn chunks_end(&self) -> u32 {
        self.allocator.lock().next_chunk
    }

    /// Whether the block was being emptied when the database was last used.
    pub fn frozen_on_medium(&self, block: BlockRef) -> bool {
        self.alive(block).is_some_and(|(_, found)| found.is_frozen_on_medium())
    }

    /// The tombstones of a block that have not been superseded, with their
    /// addresses.
    pub fn tombstones(&self, block: BlockRef, mut each: impl FnMut(Address, TupleId, Timestamp)) {
        let _chunks = self.chunks_lock.read();
        let Some((chunk, found)) = self.alive(block) else { return };
        let mut at = 0;
        while let Some(slot) = found.map.next_clear(at, found.fill()) {
            let address = chunk.address(block.id.index, slot);
            let content = self.content_header(address);
            each(address, content.tuple(), content.timestamp());
            at = slot + 1;
        }
    }

    /// Starting at a slot, calls `each` with the tuples of at most `most`
    /// superseded contents of a block. Returns the slot to continue with.
    pub fn superseded_tuples(
        &self,
        block: BlockRef,
        from: u32,
        most: usize,
        mut each: impl FnMut(TupleId),
    ) -> Option<u32> {
        let _chunks = self.chunks_lock.read();
        let (chunk, found) = self.alive(block)?;
        let mut at = from;
        for _ in 0..most {
            let slot = found.map.next_set(at, found.fill())?;
            let content = self.content_header(chunk.address(block.id.index, slot));
            if !content.flags().is_void() {
                each(content.tuple());
            }
            at = slot + 1;
        }
        Some(at)
    }
}
