//! The allocator: which blocks are free. This is kept in DRAM only. Descriptors on the medium say
//! which blocks are in use, so allocating or freeing a content costs no persist operation at all
//! (Zen 3.4).

use std::collections::{BTreeSet, HashMap, VecDeque};

use foldhash::fast::FixedState;
use pantile_base::Timestamp;
use pantile_base::limits::CHUNK_BYTES;
use pantile_media::SyncPoint;
use smallvec::SmallVec;

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
    /// What it was at the last looks, and how often since it changed.
    looks: (u32, u32),
    /// Number of carved chunks.
    pub carved: usize,
    /// Number of blocks in carved chunks, and their bytes.
    pub blocks: usize,
    pub block_bytes: u64,
    /// Where the last block that was taken ends.
    pub end: u64,
    /// The bytes of the blocks of each table and stride, by `class_key`.
    by_use: HashMap<u64, u64, FixedState>,
    /// The generations with which the blocks of chunks begin that have been taken
    /// apart, in their present division or in the next.
    generations: HashMap<u32, u16, FixedState>,
    /// The live bytes of all tables when they were last counted, and the bytes
    /// of the blocks that were opened since.
    live: Option<u64>,
    opened_since: u64,
    /// Bytes that writers leave to transactions that were promised them.
    pub promised: u64,
    /// The medium does not become shorter than this.
    pub least_len: u64,
}

/// Looks, one in each of the collector's epochs, after which an end that has not
/// moved will stay for a while: 0.4 s.
const LOOKS_AT_END: u32 = 10;

impl Allocator {
    /// Takes the first free block of a class in a chunk for which `is_near` holds. The chunks at
    /// the end of the medium become empty, and the medium can become shorter.
    pub fn take(&mut self, class: Class, is_near: impl Fn(u32) -> bool) -> Option<BlockId> {
        let free = &mut self.free[class.number()];
        let mut block = *free.first()?;
        while !is_near(block.chunk) {
            let behind = BlockId { chunk: block.chunk + 1, index: 0 };
            block = *free.range(behind..).next()?;
        }
        free.remove(&block);
        if let Some(free) = self.free_by_chunk.get_mut(&block.chunk) {
            *free -= 1;
        }
        Some(block)
    }

    /// Whether a block of a class is free.
    pub fn has(&self, class: Class) -> bool {
        !self.free[class.number()].is_empty()
    }

    /// The lowest free block of a class.
    pub fn first(&self, class: Class) -> Option<BlockId> {
        self.free[class.number()].first().copied()
    }

    /// The free blocks of each class, in the order of their places.
    pub fn free_blocks_in_order(&self) -> [Vec<BlockId>; Class::COUNT] {
        std::array::from_fn(|class| self.free[class].iter().copied().collect())
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

    /// Gives out the blocks that have become durable. Returns their chunks.
    pub fn settle(&mut self, is_durable: impl Fn(SyncPoint) -> bool) -> SmallVec<[u32; 2]> {
        let mut chunks = SmallVec::new();
        while self.unsettled.front().is_some_and(|&(point, ..)| is_durable(point)) {
            if let Some((_, class, block)) = self.unsettled.pop_front() {
                self.give(class, block);
                if chunks.last() != Some(&block.chunk) {
                    chunks.push(block.chunk);
                }
            }
        }
        chunks
    }

    /// A block of a class that is not yet given out.
    pub fn first_unsettled(&self, class: Class) -> Option<BlockId> {
        self.unsettled.iter().find(|(_, of, _)| *of == class).map(|&(_, _, block)| block)
    }

    /// Takes a block that is not yet given out.
    pub fn take_unsettled(&mut self, block: BlockId) {
        self.unsettled.retain(|&(_, _, unsettled)| unsettled != block);
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
        self.generations.insert(chunk.number, chunk.next_generation());
        self.carved -= 1;
        self.blocks -= geometry.blocks as usize;
        self.block_bytes -= u64::from(geometry.blocks) * u64::from(geometry.block_bytes);
    }

    /// The generation with which the blocks of a chunk begin if it is carved now.
    pub fn first_generation(&self, chunk: u32) -> u16 {
        self.generations.get(&chunk).copied().unwrap_or(0)
    }

    /// The bytes of these chunks that lie between two places.
    pub fn bytes_between(chunks: &BTreeSet<u32>, from: u64, to: u64) -> u64 {
        let starts = chunks.iter().map(|&number| u64::from(number) * CHUNK_BYTES);
        starts.map(|start| (start + CHUNK_BYTES).min(to).saturating_sub(start.max(from))).sum()
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
        self.opened_since += bytes;
    }

    /// Notes how many bytes of all tables are alive.
    pub fn note_live(&mut self, live: u64) {
        (self.live, self.opened_since) = (Some(live), 0);
    }

    /// What a use may be thought to hold: its blocks, but no more than is alive
    /// in all tables. What passed through a table does not make it large.
    pub fn held_bytes_of(&self, of: u64) -> u64 {
        let most = self.live.map_or(u64::MAX, |live| live.saturating_add(self.opened_since));
        self.bytes_of(of).min(most)
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

    /// Counts a look. Returns whether the end has stayed where it is for a while.
    pub fn end_stays(&mut self) -> bool {
        let (at, looks) = self.looks;
        self.looks = (self.next_chunk, if at == self.next_chunk { looks + 1 } else { 0 });
        self.looks.1 >= LOOKS_AT_END
    }

    /// Number of free chunks that are worth keeping ready.
    pub fn spare(&self) -> usize {
        self.carved / 128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_moves_does_not_stay() {
        let mut allocator = Allocator::default();
        let looks = |allocator: &mut Allocator| (1..).find(|_| allocator.end_stays()).expect("it stays");
        assert_eq!(looks(&mut allocator), LOOKS_AT_END);
        assert!(allocator.end_stays());
        allocator.next_chunk += 1;
        assert_eq!(looks(&mut allocator), LOOKS_AT_END + 1);
        allocator.next_chunk -= 1;
        assert!(!allocator.end_stays());
    }
}
