//! Blocks and chunks as DRAM knows them, and the life cycle of a block.

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use pantile_base::{Address, TableId};

use crate::format::BLOCK_HEADER_BYTES;
use crate::geometry::Geometry;
use crate::lines::{copy_at, line_at};
use crate::shape::Shape;
use crate::superseded_bits::SupersededBits;
use crate::tile::TileCell;

/// The state of a block.
///
/// `Free -> Open -> Sealed -> Frozen -> Released -> Free`. When a table is
/// dropped, its blocks go to `Released` from any state. A block that state
/// records continue in is `Record` and stays so.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum BlockState {
    /// Belongs to no table; its bytes mean nothing.
    Free = 0,
    /// A stream appends to it, or will append to it after a restart.
    Open = 1,
    /// Nothing more is appended to it: every slot has been written, or it was
    /// closed early.
    Sealed = 2,
    /// A collector moves its live versions out, and the frozen flag says so on
    /// the medium.
    Frozen = 3,
    /// No transaction can see into it. It becomes free when the release is
    /// durable.
    Released = 4,
    /// State records continue in it. It belongs to no table.
    Record = 5,
}

impl BlockState {
    /// The one table of transitions.
    fn may_become(self, next: Self) -> bool {
        use BlockState::{Free, Frozen, Open, Record, Released, Sealed};
        matches!(
            (self, next),
            (Free, Open | Record)
                | (Open, Sealed)
                | (Sealed, Frozen)
                | (Open | Sealed | Frozen, Released)
                | (Released, Free)
        )
    }

    /// Whether it belongs to a table.
    pub(crate) fn is_used(self) -> bool {
        !matches!(self, Self::Free | Self::Released | Self::Record)
    }

    fn from_raw(raw: u8) -> Self {
        match raw {
            0 => Self::Free,
            1 => Self::Open,
            2 => Self::Sealed,
            3 => Self::Frozen,
            4 => Self::Released,
            _ => Self::Record,
        }
    }
}

/// Names a block: its chunk and its number there.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BlockId {
    pub chunk: u32,
    pub index: u32,
}

/// When things happened to a block in its present generation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BlockTimes {
    pub min_ts: u64,
    pub last_begin: u64,
    pub last_append: u64,
    pub max_ts: u64,
    pub left_at: u64,
}

/// One generation of a block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlockRef {
    pub(crate) id: BlockId,
    pub(crate) opened_at: u64,
}

impl BlockRef {
    /// Bytes that name it to another process.
    pub const BYTES: usize = 16;

    /// Names it to another process that reads the same medium.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let place = u128::from(self.id.chunk) | u128::from(self.id.index) << 32;
        (place | u128::from(self.opened_at) << 64).to_le_bytes()
    }

    /// The block that another process has named.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        let all = u128::from_le_bytes(bytes);
        let id = BlockId { chunk: all as u32, index: (all >> 32) as u32 };
        Self { id, opened_at: (all >> 64) as u64 }
    }

    /// The number of its chunk.
    pub fn chunk(self) -> u32 {
        self.id.chunk
    }

    /// What orders blocks as they lie on the medium.
    pub fn place(self) -> impl Ord + use<> {
        self.id
    }

    /// A number that spreads blocks over a few places. It is the same in every
    /// generation.
    pub fn spread(self) -> usize {
        self.id.chunk.wrapping_mul(61).wrapping_add(self.id.index) as usize
    }
}

/// In `Block::on_medium`: the frozen flag is set.
const FROZEN: u8 = 1;
/// In `Block::on_medium`: its slots may be rewritten one by one.
const RECYCLES: u8 = 2;

/// The fields that every update of one of the block's versions needs come
/// first, on few cache lines.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Block {
    /// Rises when a generation ends, so that links to earlier generations can be recognised.
    generation: AtomicU16,
    state: AtomicU8,
    /// What the block's entries say on the medium: `FROZEN`, `RECYCLES`.
    on_medium: AtomicU8,
    table: AtomicU32,
    opened_at: AtomicU64,
    /// The [`Shape`] of this generation. Valid for a walk that has found the
    /// generation that it expects afterwards.
    stride: AtomicU32,
    slots: AtomicU32,
    /// Bytes that it counts as.
    bytes: AtomicU32,
    pub tile: TileCell,
    /// When one of its versions was last superseded (`max_ts`).
    max_ts: AtomicU64,
    pub map: SupersededBits,
    /// When a survivor last left it. Until then readers could find the survivor
    /// there.
    left_at: AtomicU64,
    /// The first and the last `begin_ts` of its versions; the first is
    /// `min_ts`.
    min_ts: AtomicU64,
    last_begin: AtomicU64,
    /// When a version was last appended, which may be long after the version
    /// began.
    last_append: AtomicU64,
    /// Slots written in this generation.
    fill: AtomicU32,
}

impl Block {
    /// A free block. `generation` is that of its first use.
    fn new(generation: u16) -> Self {
        Self {
            state: AtomicU8::new(BlockState::Free as u8),
            table: AtomicU32::new(0),
            opened_at: AtomicU64::new(0),
            // Of no use, but a walk that is too late may divide by it.
            stride: AtomicU32::new(1),
            slots: AtomicU32::new(0),
            bytes: AtomicU32::new(0),
            fill: AtomicU32::new(0),
            generation: AtomicU16::new(generation),
            on_medium: AtomicU8::new(0),
            min_ts: AtomicU64::new(u64::MAX),
            last_begin: AtomicU64::new(0),
            last_append: AtomicU64::new(0),
            max_ts: AtomicU64::new(0),
            left_at: AtomicU64::new(0),
            map: SupersededBits::default(),
            tile: TileCell::default(),
        }
    }

    pub fn state(&self) -> BlockState {
        BlockState::from_raw(self.state.load(Ordering::Acquire))
    }

    /// Changes the state of the block.
    ///
    /// # Panics
    /// If the life cycle does not allow it. A block that was freed twice would
    /// be given to two tables.
    pub fn become_(&self, next: BlockState) {
        let now = self.state();
        assert!(now.may_become(next), "a block goes from {now:?} to {next:?}");
        self.state.store(next as u8, Ordering::Release);
    }

    /// The same if the block is in this state; false if another thread has been first.
    pub fn try_become(&self, now: BlockState, next: BlockState) -> bool {
        assert!(now.may_become(next), "a block goes from {now:?} to {next:?}");
        self.state.compare_exchange(now as u8, next as u8, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub fn open(&self, table: TableId, opened_at: u64, recycles: bool, shape: Shape, bytes: u32) {
        self.bytes.store(bytes, Ordering::Relaxed);
        self.stride.store(shape.stride, Ordering::Release);
        self.slots.store(shape.slots, Ordering::Release);
        self.on_medium.store(if recycles { RECYCLES } else { 0 }, Ordering::Relaxed);
        self.table.store(table.0, Ordering::Relaxed);
        // A walk that finds it finds that the generation before has ended.
        self.opened_at.store(opened_at, Ordering::Release);
        self.fill.store(0, Ordering::Relaxed);
        self.become_(BlockState::Open);
    }

    /// Bytes from one slot to the next.
    #[inline]
    pub fn stride(&self) -> u32 {
        self.stride.load(Ordering::Acquire)
    }

    /// Number of its slots; of those that were written if it was closed early.
    #[inline]
    pub fn slots(&self) -> u32 {
        self.slots.load(Ordering::Acquire)
    }

    /// Bytes that the block counts as in this generation.
    pub fn bytes(&self) -> u64 {
        u64::from(self.bytes.load(Ordering::Relaxed))
    }

    pub fn shape(&self) -> Shape {
        Shape { stride: self.stride(), slots: self.slots() }
    }

    /// Nothing more is appended to a block that is partly filled: it has no
    /// more slots than were written.
    pub fn close_early(&self) {
        self.slots.store(self.fill(), Ordering::Release);
        self.become_(BlockState::Sealed);
    }

    /// Reserves the block for state records.
    pub fn keep_for_records(&self, opened_at: u64) {
        self.opened_at.store(opened_at, Ordering::Relaxed);
        self.become_(BlockState::Record);
    }

    /// Clears what belongs to the ending generation. The caller has taken the
    /// tile.
    pub fn free(&self) {
        self.map.clear();
        self.on_medium.store(0, Ordering::Relaxed);
        self.min_ts.store(u64::MAX, Ordering::Relaxed);
        self.last_begin.store(0, Ordering::Relaxed);
        self.last_append.store(0, Ordering::Relaxed);
        self.max_ts.store(0, Ordering::Relaxed);
        self.left_at.store(0, Ordering::Relaxed);
        self.become_(BlockState::Free);
    }

    pub fn table(&self) -> TableId {
        TableId(self.table.load(Ordering::Relaxed))
    }

    pub fn opened_at(&self) -> u64 {
        self.opened_at.load(Ordering::Acquire)
    }

    pub fn fill(&self) -> u32 {
        self.fill.load(Ordering::Relaxed)
    }

    pub fn set_fill(&self, fill: u32) {
        self.fill.store(fill, Ordering::Relaxed);
    }

    #[inline]
    pub fn generation(&self) -> u16 {
        self.generation.load(Ordering::Acquire)
    }

    pub fn end_generation(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    pub fn recycles(&self) -> bool {
        self.on_medium.load(Ordering::Relaxed) & RECYCLES != 0
    }

    pub fn is_frozen_on_medium(&self) -> bool {
        self.on_medium.load(Ordering::Relaxed) & FROZEN != 0
    }

    pub fn set_frozen_on_medium(&self) {
        self.on_medium.fetch_or(FROZEN, Ordering::Relaxed);
    }

    /// Records that versions with `begin_ts` between these were appended at
    /// this time.
    pub fn note_begins(&self, first: u64, last: u64, at: u64) {
        self.last_append.fetch_max(at, Ordering::AcqRel);
        self.min_ts.fetch_min(first, Ordering::AcqRel);
        self.last_begin.fetch_max(last, Ordering::AcqRel);
    }

    /// The same by the only one who does so now: it takes no locked instruction.
    pub fn note_begins_alone(&self, first: u64, last: u64, at: u64) {
        self.last_append.store(at.max(self.last_append()), Ordering::Release);
        self.min_ts.store(first.min(self.min_ts()), Ordering::Release);
        self.last_begin.store(last.max(self.last_begin()), Ordering::Release);
    }

    pub fn times(&self) -> BlockTimes {
        BlockTimes {
            min_ts: self.min_ts(),
            last_begin: self.last_begin(),
            last_append: self.last_append(),
            max_ts: self.max_ts(),
            left_at: self.left_at(),
        }
    }

    /// Sets the times of a block that no other thread uses.
    pub fn set_times(&self, times: BlockTimes) {
        self.min_ts.store(times.min_ts, Ordering::Relaxed);
        self.last_begin.store(times.last_begin, Ordering::Relaxed);
        self.last_append.store(times.last_append, Ordering::Relaxed);
        self.max_ts.store(times.max_ts, Ordering::Relaxed);
        self.left_at.store(times.left_at, Ordering::Release);
    }

    pub fn min_ts(&self) -> u64 {
        self.min_ts.load(Ordering::Acquire)
    }

    pub fn last_begin(&self) -> u64 {
        self.last_begin.load(Ordering::Acquire)
    }

    pub fn last_append(&self) -> u64 {
        self.last_append.load(Ordering::Acquire)
    }

    /// Everything done to the block up to this time must be durable before its
    /// generation ends (T1). Durable copies of its survivors are not enough: a
    /// state record must expect the copies, or a copy that rots would not be
    /// missed (I-9).
    pub fn evidence(&self) -> u64 {
        self.max_ts().max(self.last_append()).max(self.left_at())
    }

    pub fn max_ts(&self) -> u64 {
        self.max_ts.load(Ordering::Acquire)
    }

    pub fn left_at(&self) -> u64 {
        self.left_at.load(Ordering::Acquire)
    }

    /// Records that the version in a slot has a successor from `at` on. Returns
    /// the number of superseded versions, or `None` if this one had already
    /// been superseded.
    #[inline]
    pub fn supersede(&self, slot: u32, at: u64) -> Option<u32> {
        // Before the bit, so that a thread that finds the bit also finds the
        // time.
        self.max_ts.fetch_max(at, Ordering::AcqRel);
        self.map.set(slot)
    }

    /// Records that the version in a slot has a copy elsewhere, which readers
    /// find since `at` at the latest.
    pub fn leave(&self, slot: u32, at: u64) -> Option<u32> {
        self.left_at.fetch_max(at, Ordering::AcqRel);
        self.map.set(slot)
    }
}

/// A chunk that has been carved into blocks.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub number: u32,
    pub geometry: Geometry,
    /// The generation with which its blocks began in this division.
    pub first_generation: u16,
    pub blocks: Box<[Block]>,
    /// Tiles that are kept after their blocks have been released.
    pub kept_tiles: AtomicU32,
}

impl Chunk {
    /// A chunk without contents. No block of an earlier division of the chunk had
    /// `generation` or a later one, so no link leads here by mistake (I-13).
    pub fn new(number: u32, geometry: Geometry, generation: u16) -> Self {
        Self {
            number,
            geometry,
            first_generation: generation,
            blocks: (0..geometry.blocks).map(|_| Block::new(generation)).collect(),
            kept_tiles: AtomicU32::new(0),
        }
    }

    /// Where its header page is.
    pub fn offset(&self) -> u64 {
        u64::from(self.number) * CHUNK_BYTES + u64::from(self.geometry.start)
    }

    /// Where on the medium a block ends.
    pub fn end_of(&self, index: u32) -> u64 {
        u64::from(self.number) * CHUNK_BYTES + self.geometry.end_of(index)
    }

    /// The offset of a block descriptor.
    pub fn descriptor_offset(&self, index: u32) -> u64 {
        self.offset() + line_at(index as usize + 1) as u64
    }

    /// The offset of a block descriptor's copy.
    pub fn copy_offset(&self, index: u32) -> u64 {
        self.offset() + copy_at(index as usize + 1) as u64
    }

    /// The offset of a block header.
    pub fn header_offset(&self, index: u32) -> u64 {
        self.end_of(index) - u64::from(self.geometry.block_bytes)
    }

    /// Names a block.
    pub fn id(&self, index: u32) -> BlockId {
        BlockId { chunk: self.number, index }
    }

    /// Names the present generation of a block.
    pub fn block_ref(&self, index: u32) -> BlockRef {
        BlockRef { id: self.id(index), opened_at: self.blocks[index as usize].opened_at() }
    }

    /// Where a slot's content lies.
    pub fn address(&self, index: u32, slot: u32) -> Address {
        let stride = self.blocks[index as usize].stride();
        let slot = BLOCK_HEADER_BYTES as u64 + u64::from(slot) * u64::from(stride);
        Address::from_offset(self.header_offset(index) + slot)
    }

    /// The block of an address in this chunk, and where behind its block header
    /// the address lies.
    #[inline]
    pub fn place(&self, address: Address) -> (u32, u32) {
        let inside = (address.offset() % CHUNK_BYTES) as u32 - self.geometry.first();
        let index = inside / self.geometry.block_bytes;
        (index, inside - index * self.geometry.block_bytes - BLOCK_HEADER_BYTES as u32)
    }

    /// The same for an address that may be from an earlier division of the
    /// chunk; `None` if it is in no block now.
    pub fn find(&self, address: Address) -> Option<(u32, u32)> {
        self.geometry.find(address)
    }

    /// The first generation that no block of this division has had.
    pub fn next_generation(&self) -> u16 {
        let used = self.blocks.iter().map(|block| block.generation().wrapping_sub(self.first_generation));
        self.first_generation.wrapping_add(used.max().unwrap_or(0)).wrapping_add(1)
    }

    /// The block and slot of an address in this chunk.
    #[inline]
    pub fn locate(&self, address: Address) -> (u32, u32) {
        let (index, within) = self.place(address);
        (index, within / self.blocks[index as usize].stride())
    }
}

#[cfg(test)]
#[path = "block_test.rs"]
mod tests;
