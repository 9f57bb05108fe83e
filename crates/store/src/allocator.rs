//! Which blocks are free. Kept in DRAM only: descriptors on the medium say
//! which blocks are in use, so taking or freeing a content costs no persist
//! operation at all (Zen 3.4).

use std::collections::{HashMap, VecDeque};

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_media::SyncPoint;

use crate::block::{BlockId, Chunk};
use crate::geometry::Geometry;

#[derive(Debug, Default)]
pub(crate) struct Allocator {
    /// Free blocks by stride.
    free: HashMap<u32, Vec<BlockId>, FixedState>,
    /// The number of free blocks of each chunk.
    free_by_chunk: HashMap<u32, u32, FixedState>,
    /// Blocks of carved chunks that are given out once the chunk is durable.
    unsettled: VecDeque<(SyncPoint, u32, BlockId)>,
    /// Chunks that are not carved, below `next_chunk`.
    pub free_chunks: Vec<u32>,
    /// Like `free_chunks`, but without space behind them.
    pub discarded: Vec<u32>,
    /// Like `free_chunks`, but reserved for certain callers (T14).
    pub reserve: Vec<u32>,
    /// Carved chunks that were empty at this time, and may still be.
    pub empty: VecDeque<(u32, Timestamp)>,
    /// The first chunk that has never been taken.
    pub next_chunk: u32,
    /// Number of carved chunks.
    pub carved: usize,
    /// Number of blocks in carved chunks, and their bytes.
    pub blocks: usize,
    pub block_bytes: u64,
}

impl Allocator {
    /// Takes a block from the chunk with the fewest free blocks, of the few
    /// that are examined. The other chunks become empty sooner, and can be used
    /// for something else.
    pub fn take(&mut self, stride: u32) -> Option<BlockId> {
        /// Number of blocks examined.
        const MOST: usize = 64;
        let free = self.free.get_mut(&stride)?;
        let first = free.len().saturating_sub(MOST);
        let by_chunk = &self.free_by_chunk;
        let at = (first..free.len()).min_by_key(|&n| by_chunk.get(&free[n].chunk).copied())?;
        let block = free.swap_remove(at);
        if let Some(free) = self.free_by_chunk.get_mut(&block.chunk) {
            *free -= 1;
        }
        Some(block)
    }

    pub fn give(&mut self, stride: u32, block: BlockId) {
        self.free.entry(stride).or_default().push(block);
        *self.free_by_chunk.entry(block.chunk).or_default() += 1;
    }

    /// Like [`Allocator::give`], once the medium has made the point durable.
    pub fn give_later(&mut self, point: SyncPoint, stride: u32, block: BlockId) {
        self.unsettled.push_back((point, stride, block));
    }

    /// Gives out the blocks that have become durable.
    pub fn settle(&mut self, is_durable: impl Fn(SyncPoint) -> bool) {
        while self.unsettled.front().is_some_and(|&(point, ..)| is_durable(point)) {
            if let Some((_, stride, block)) = self.unsettled.pop_front() {
                self.give(stride, block);
            }
        }
    }

    /// Number of free blocks of a chunk.
    pub fn free_in(&self, chunk: &Chunk) -> u32 {
        self.free_by_chunk.get(&chunk.number).copied().unwrap_or(0)
    }

    /// Number of free blocks of all chunks.
    pub fn free_blocks(&self) -> usize {
        self.free.values().map(Vec::len).sum()
    }

    pub fn count_blocks(&mut self, geometry: &Geometry) {
        self.blocks += geometry.blocks as usize;
        self.block_bytes += u64::from(geometry.blocks) * u64::from(geometry.block_bytes);
    }

    /// Forgets a chunk whose blocks are all free.
    pub fn remove_chunk(&mut self, chunk: &Chunk) {
        if let Some(free) = self.free.get_mut(&chunk.geometry.stride) {
            free.retain(|id| id.chunk != chunk.number);
        }
        self.free_by_chunk.remove(&chunk.number);
        self.carved -= 1;
        self.blocks -= chunk.geometry.blocks as usize;
        self.block_bytes -= u64::from(chunk.geometry.blocks) * u64::from(chunk.geometry.block_bytes);
    }

    /// Number of empty chunks that keep their division; none if `all` are to go.
    pub fn spare_empty(&self, all: bool) -> usize {
        if all { 0 } else { 1 + self.carved / 128 }
    }

    /// Number of free chunks that are worth keeping ready.
    pub fn spare(&self) -> usize {
        2 + self.carved / 128
    }
}
