//! Blocks and chunks as DRAM knows them, and the life cycle of a block.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::{Address, TableId};

use crate::format::{BLOCK_HEADER_BYTES, CHUNK_HEADER_BYTES, DESCRIPTOR_BYTES};
use crate::geometry::Geometry;
use crate::tile::TileCell;

/// Where a block is in its life.
///
/// `Free -> Open -> Sealed -> Released -> Free`, and `Open -> Released` when
/// a table is dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum BlockState {
    /// Belongs to no table; its bytes mean nothing.
    Free = 0,
    /// A stream appends to it, or will when it finds it again after a restart.
    Open = 1,
    /// Full: every slot has been written.
    Sealed = 2,
    /// No transaction can see into it; it becomes free once that is durable.
    Released = 3,
}

impl BlockState {
    /// The one table of transitions.
    fn may_become(self, next: Self) -> bool {
        use BlockState::{Free, Open, Released, Sealed};
        matches!((self, next), (Free, Open) | (Open, Sealed) | (Open | Sealed, Released) | (Released, Free))
    }

    fn from_raw(raw: u8) -> Self {
        match raw {
            0 => Self::Free,
            1 => Self::Open,
            2 => Self::Sealed,
            _ => Self::Released,
        }
    }
}

/// Names a block: its chunk and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct BlockId {
    pub chunk: u32,
    pub index: u32,
}

#[derive(Debug)]
pub(crate) struct Block {
    state: AtomicU8,
    table: AtomicU32,
    opened_at: AtomicU64,
    /// Slots written in this life.
    fill: AtomicU32,
    pub tile: TileCell,
}

impl Block {
    fn new(slots: u32) -> Self {
        Self {
            state: AtomicU8::new(BlockState::Free as u8),
            table: AtomicU32::new(0),
            opened_at: AtomicU64::new(0),
            fill: AtomicU32::new(0),
            tile: TileCell::new(slots as usize),
        }
    }

    pub fn state(&self) -> BlockState {
        BlockState::from_raw(self.state.load(Ordering::Acquire))
    }

    /// Moves the block on in its life.
    ///
    /// # Panics
    /// If the life cycle does not allow it: a block freed twice would be
    /// given to two tables.
    pub fn become_(&self, next: BlockState) {
        let now = self.state();
        assert!(now.may_become(next), "a block goes from {now:?} to {next:?}");
        self.state.store(next as u8, Ordering::Release);
    }

    pub fn open(&self, table: TableId, opened_at: u64, fill: u32) {
        self.table.store(table.0, Ordering::Relaxed);
        self.opened_at.store(opened_at, Ordering::Relaxed);
        self.fill.store(fill, Ordering::Relaxed);
        self.become_(BlockState::Open);
    }

    pub fn table(&self) -> TableId {
        TableId(self.table.load(Ordering::Relaxed))
    }

    pub fn opened_at(&self) -> u64 {
        self.opened_at.load(Ordering::Relaxed)
    }

    pub fn fill(&self) -> u32 {
        self.fill.load(Ordering::Relaxed)
    }

    pub fn set_fill(&self, fill: u32) {
        self.fill.store(fill, Ordering::Relaxed);
    }
}

/// A chunk that has been carved into blocks.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub number: u32,
    pub geometry: Geometry,
    pub blocks: Box<[Block]>,
}

impl Chunk {
    pub fn new(number: u32, geometry: Geometry) -> Self {
        Self { number, geometry, blocks: (0..geometry.blocks).map(|_| Block::new(geometry.slots)).collect() }
    }

    pub fn offset(&self) -> u64 {
        u64::from(self.number) * CHUNK_BYTES
    }

    /// Where the descriptor of a block lies.
    pub fn descriptor_offset(&self, index: u32) -> u64 {
        self.offset() + (u64::from(index) + 1) * DESCRIPTOR_BYTES as u64
    }

    /// Where a slot's content lies.
    pub fn address(&self, index: u32, slot: u32) -> Address {
        let block = CHUNK_HEADER_BYTES as u64 + u64::from(index) * u64::from(self.geometry.block_bytes);
        let slot = BLOCK_HEADER_BYTES as u64 + u64::from(slot) * u64::from(self.geometry.stride);
        Address::from_offset(self.offset() + block + slot)
    }

    /// The block and slot of an address in this chunk.
    #[inline]
    pub fn locate(&self, address: Address) -> (&Block, usize) {
        let inside = (address.offset() % CHUNK_BYTES) as u32 - CHUNK_HEADER_BYTES as u32;
        let index = inside / self.geometry.block_bytes;
        let slot =
            (inside - index * self.geometry.block_bytes - BLOCK_HEADER_BYTES as u32) / self.geometry.stride;
        (&self.blocks[index as usize], slot as usize)
    }
}

#[cfg(test)]
#[path = "block_test.rs"]
mod tests;
