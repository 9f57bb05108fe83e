//! Which blocks are free. Kept in DRAM only: descriptors on the medium say
//! which blocks are in use, so taking or freeing a content costs no persist
//! operation at all (Zen 3.4).

use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::SyncPoint;

use crate::block::{BlockId, Chunk};
use crate::format::CHUNK_HEADER_BYTES;
use crate::geometry::{Class, Geometry};

#[derive(Debug, Default)]
pub(crate) struct Allocator {
    /// Free blocks by class, in the order of their places.
    free: [BTreeSet<BlockId>; Class::COUNT],
    /// The number of free blocks of each chunk.
    free_by_chunk: HashMap<u32, u32, FixedState>,
    /// Blocks of carved chunks that are given out once the chunk is durable.
    unsettled: VecDeque<(SyncPoint, Class, BlockId)>,
    /// Chunks below `next_chunk` that are not carved.
    pub free_chunks: BTreeSet<u32>,
    /// Like `free_chunks`, but without space behind them.
    pub discarded: BTreeSet<u32>,
    /// Carved chunks that were empty at this time, and may still be.
    pub empty: VecDeque<(u32, Timestamp)>,
    /// The first chunk behind all that are carved.
    pub next_chunk: u32,
    /// Number of carved chunks.
    pub carved: usize,
    /// Number of blocks in carved chunks, and their bytes.
    pub blocks: usize,
    pub block_bytes: u64,
    /// Where the last block that was taken ends.
    pub end: u64,
    /// The bytes of the blocks of each table and stride, by `class_key`.
    by_use: HashMap<u64, u64, FixedState>,
}

impl Allocator {
    /// Takes the first free block of a class. The chunks at the end of the
    /// medium become empty, and the medium can become shorter.
    pub fn take(&mut self, class: Class) -> Option<BlockId> {
        let block = self.free[class.number()].pop_first()?;
        if let Some(free) = self.free_by_chunk.get_mut(&block.chunk) {
            *free -= 1;
        }
        Some(block)
    }

    /// Whether a block of a class is free.
    pub fn has(&self, class: Class) -> bool {
        !self.free[class.number()].is_empty()
    }

    pub fn give(&mut self, class: Class, block: BlockId) {
        let is_new = self.free[class.number()].insert(block);
        assert!(is_new, "a block is freed twice");
        *self.free_by_chunk.entry(block.chunk).or_default() += 1;
    }

    /// Like [`Allocator::give`], once the medium has made the point durable.
    pub fn give_later(&mut self, point: SyncPoint, class: Class, block: BlockId) {
        self.unsettled.push_back((point, class, block));
    }

    /// Gives out the blocks that have become durable.
    pub fn settle(&mut self, is_durable: impl Fn(SyncPoint) -> bool) {
        while self.unsettled.front().is_some_and(|&(point, ..)| is_durable(point)) {
            if let Some((_, class, block)) = self.unsettled.pop_front() {
                self.give(class, block);
            }
        }
    }

    /// Number of free blocks of a chunk.
    pub fn free_in(&self, chunk: &Chunk) -> u32 {
        self.free_by_chunk.get(&chunk.number).copied().unwrap_or(0)
    }

    /// Where the last block of a chunk ends that is not free.
    pub fn end_in(&self, chunk: &Chunk) -> u64 {
        let free = &self.free[chunk.geometry.class().number()];
        let last = (0..chunk.geometry.blocks).rev().find(|&index| !free.contains(&chunk.id(index)));
        last.map_or(chunk.offset() + CHUNK_HEADER_BYTES as u64, |index| chunk.end_of(index))
    }

    /// Number of free blocks of all chunks.
    pub fn free_blocks(&self) -> usize {
        self.free.iter().map(BTreeSet::len).sum()
    }

    /// The bytes of these blocks.
    pub fn free_bytes(&self) -> u64 {
        let bytes = |class: Class| self.free[class.number()].len() as u64 * u64::from(class.block_bytes());
        Class::all().map(bytes).sum()
    }

    pub fn count_blocks(&mut self, geometry: &Geometry) {
        self.carved += 1;
        self.blocks += geometry.blocks as usize;
        self.block_bytes += u64::from(geometry.blocks) * u64::from(geometry.block_bytes);
    }

    /// Forgets a chunk whose blocks are all free.
    pub fn remove_chunk(&mut self, chunk: &Chunk) {
        let geometry = &chunk.geometry;
        for index in 0..geometry.blocks {
            self.free[geometry.class().number()].remove(&chunk.id(index));
        }
        self.free_by_chunk.remove(&chunk.number);
        self.carved -= 1;
        self.blocks -= geometry.blocks as usize;
        self.block_bytes -= u64::from(geometry.blocks) * u64::from(geometry.block_bytes);
    }

    /// Shortens what is taken to the chunks below `next`.
    pub fn shorten(&mut self, next: u32) {
        self.next_chunk = next;
        self.free_chunks.split_off(&next);
        self.discarded.split_off(&next);
        self.end = self.end.min(u64::from(next) * CHUNK_BYTES);
    }

    /// Counts a block for rows of a table. A use that has none left is
    /// forgotten.
    pub fn add_to(&mut self, of: u64, bytes: u64) {
        *self.by_use.entry(of).or_default() += bytes;
    }

    pub fn take_from(&mut self, of: u64, bytes: u64) {
        if let Some(left) = self.by_use.get_mut(&of) {
            *left -= bytes;
            if *left == 0 {
                self.by_use.remove(&of);
            }
        }
    }

    pub fn bytes_of(&self, of: u64) -> u64 {
        self.by_use.get(&of).copied().unwrap_or(0)
    }

    /// Number of empty chunks that keep their division; none if `all` are to go.
    pub fn spare_empty(&self, all: bool) -> usize {
        if all { 0 } else { 1 + self.carved / 128 }
    }

    /// Number of free chunks that are worth keeping ready.
    pub fn spare(&self) -> usize {
        self.carved / 128
    }
}
