//! Size classes of contents, classes of blocks, and how both divide a chunk.
//!
//! A chunk is divided into equal blocks of one of eight classes, from 16 KB to
//! a whole chunk. A block is divided into equal slots when it is opened, so a
//! free block serves any table and any size of row that it can hold. Small
//! tables use small blocks, and large tables large ones.

use pantile_base::Address;
use pantile_base::limits::{BLOCK_SLOTS, CHUNK_BYTES, HEAD_BYTES};

use crate::content::HEADER_BYTES;
use crate::format::{BLOCK_HEADER_BYTES, CHUNK_HEADER_BYTES, ChunkHeader, MAX_BLOCKS_PER_CHUNK};
use crate::shape::Shape;

/// Bytes from one slot to the next for contents of `len` bytes, content header
/// included.
///
/// Multiples of 8 up to 256 bytes, then eight steps to a doubling: at most
/// 1/8 of a slot is lost to rounding, or 7 bytes.
pub(crate) fn stride_for(len: usize) -> u32 {
    debug_assert!(len >= HEADER_BYTES);
    let step = if len <= 256 { 8 } else { (len - 1).next_power_of_two() / 16 };
    len.next_multiple_of(step) as u32
}

/// Bytes that a row of `len` bytes takes with its content header and what is lost to rounding.
#[inline]
pub fn slot_bytes(len: usize) -> u64 {
    u64::from(stride_for(HEADER_BYTES + len))
}

/// A class of blocks: how many of them a chunk has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Class(u8);

/// The number of blocks of a chunk, by class.
const BLOCKS: [u32; Class::COUNT] = [127, 63, 32, 16, 8, 4, 2, 1];
const USABLE: u32 = CHUNK_BYTES as u32 - CHUNK_HEADER_BYTES as u32;

/// A new block is at most this share of the blocks that hold such rows already.
/// A table has a few open blocks for rows of one size, and all of them together
/// should stay a small part.
const SHARE: u64 = 16;

impl Class {
    pub const COUNT: usize = 8;
    pub const SMALLEST: Self = Self(0);
    /// The class of the blocks that state records continue in.
    pub const OF_RECORDS: Self = Self(2);

    /// All classes, the smallest first.
    pub fn all() -> impl DoubleEndedIterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// Its number, the smallest is 0.
    pub fn number(self) -> usize {
        usize::from(self.0)
    }

    pub fn block_bytes(self) -> u32 {
        (USABLE / BLOCKS[self.number()]) & !63
    }

    /// The class whose blocks have this many bytes.
    pub fn of_bytes(block_bytes: u32) -> Option<Self> {
        Self::all().find(|class| class.block_bytes() == block_bytes)
    }

    /// Whether blocks of the class hold contents of this stride.
    pub fn holds(self, stride: u32) -> bool {
        Shape::new(stride, BLOCK_SLOTS as u32, self.block_bytes()).is_some()
    }

    /// The class of the smallest blocks that hold contents of this stride.
    pub fn least(stride: u32) -> Option<Self> {
        Self::all().find(|class| class.holds(stride))
    }

    /// The class for the next block of rows that have blocks of `bytes` already.
    pub fn for_next(stride: u32, most_slots: u32, bytes: u64) -> Self {
        let wanted = bytes / SHARE;
        let best = Self::best(stride, most_slots);
        let small_enough = |class: &Self| u64::from(class.block_bytes()) <= wanted && *class <= best;
        let least = Self::least(stride).unwrap_or(best);
        Self::all().rev().find(small_enough).map_or(least, |class| class.max(least))
    }

    /// The class of which a chunk holds most slots. Of classes that are about
    /// as good, that of the largest blocks.
    fn best(stride: u32, most_slots: u32) -> Self {
        let slots = |class: Self| {
            let shape = Shape::new(stride, most_slots, class.block_bytes());
            BLOCKS[class.number()] * shape.map_or(0, |shape| shape.slots)
        };
        let most = Self::all().map(slots).max().unwrap_or(0);
        let about_as_good = |class: &Self| slots(*class) >= most - most / 32;
        Self::all().rev().find(about_as_good).unwrap_or(Self::SMALLEST)
    }
}

impl Shape {
    /// As many slots as a block has room for, within the bounds; `None` if not
    /// a single one fits.
    pub fn new(stride: u32, most_slots: u32, block_bytes: u32) -> Option<Self> {
        let slots = ((block_bytes - BLOCK_HEADER_BYTES as u32) / stride).min(most_slots);
        (slots > 0).then_some(Self { stride, slots })
    }

    /// Whether a block of this size can be divided in this way.
    pub fn fits(self, block_bytes: u32) -> bool {
        self.stride as usize >= HEADER_BYTES
            && self.stride.is_multiple_of(8)
            && (1..=BLOCK_SLOTS as u32).contains(&self.slots)
            && u64::from(self.stride) * u64::from(self.slots) + BLOCK_HEADER_BYTES as u64
                <= u64::from(block_bytes)
    }

    /// Bytes that a block counts as: its own, or those of its slots if an
    /// option keeps blocks small.
    pub fn counted_bytes(self, most_slots: u32, block_bytes: u32) -> u32 {
        let slots = BLOCK_HEADER_BYTES as u32 + self.stride * self.slots;
        if most_slots < BLOCK_SLOTS as u32 { slots } else { block_bytes }
    }

    /// Whether only tombstones are this small: no row is empty.
    pub fn is_of_tombstones(self) -> bool {
        self.stride as usize == HEADER_BYTES
    }
}

/// How a chunk is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub block_bytes: u32,
    pub blocks: u32,
    /// Bytes from the chunk's multiple of [`CHUNK_BYTES`] to its header page.
    pub start: u32,
}

impl Geometry {
    /// Chunk `number`, divided into blocks of a class. The first chunk has less
    /// room: the medium's head comes before it.
    pub fn new(number: u32, class: Class) -> Self {
        let start = Self::start_of(number);
        let block_bytes = class.block_bytes();
        Self { block_bytes, blocks: (USABLE - start) / block_bytes, start }
    }

    /// Chunk `number`, divided as its header says.
    pub fn of(number: u32, header: ChunkHeader) -> Self {
        let ChunkHeader { block_bytes, blocks } = header;
        Self { block_bytes, blocks, start: Self::start_of(number) }
    }

    /// Where in its [`CHUNK_BYTES`] a chunk begins.
    pub fn start_of(number: u32) -> u32 {
        if number == 0 { HEAD_BYTES as u32 } else { 0 }
    }

    pub fn class(&self) -> Class {
        Class::of_bytes(self.block_bytes).expect("blocks are of a class")
    }

    /// Whether a chunk can be divided in this way.
    pub fn is_sound(&self) -> bool {
        Class::of_bytes(self.block_bytes).is_some()
            && (1..=MAX_BLOCKS_PER_CHUNK as u32).contains(&self.blocks)
            && u64::from(self.first()) + u64::from(self.blocks) * u64::from(self.block_bytes) <= CHUNK_BYTES
    }

    /// Bytes from the chunk's multiple of [`CHUNK_BYTES`] to its first block.
    #[inline]
    pub fn first(&self) -> u32 {
        self.start + CHUNK_HEADER_BYTES as u32
    }

    /// The block of an address in this chunk, and where behind its block header
    /// the address lies; `None` if it is in no block.
    pub fn find(&self, address: Address) -> Option<(u32, u32)> {
        let inside = ((address.offset() % CHUNK_BYTES) as u32).checked_sub(self.first())?;
        let (index, within) = (inside / self.block_bytes, inside % self.block_bytes);
        let within = within.checked_sub(BLOCK_HEADER_BYTES as u32)?;
        (index < self.blocks).then_some((index, within))
    }

    /// Where in the chunk block `index` ends.
    pub fn end_of(&self, index: u32) -> u64 {
        u64::from(self.first()) + (u64::from(index) + 1) * u64::from(self.block_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: u32 = BLOCK_SLOTS as u32;

    #[test]
    fn every_class_divides_a_chunk_soundly() {
        for class in Class::all() {
            for number in [0, 1] {
                let geometry = Geometry::new(number, class);
                // The first chunk is always of the smallest class.
                assert!(geometry.is_sound() || number == 0, "{geometry:?}");
                assert_eq!((geometry.class(), Class::of_bytes(geometry.block_bytes)), (class, Some(class)));
            }
        }
        assert!(Geometry::new(0, Class::SMALLEST).is_sound());
        assert!(Class::SMALLEST.block_bytes() < 17 << 10);
    }

    #[test]
    fn large_tables_waste_no_more_than_a_fifth_whatever_their_rows() {
        for row in (8..=65_535).step_by(3).chain([8, 100, 65_535]) {
            let content = row + HEADER_BYTES;
            let stride = stride_for(content);
            for most in [MOST, 8] {
                let class = Class::for_next(stride, most, u64::MAX);
                assert!(
                    Shape::new(stride, most, class.block_bytes())
                        .is_some_and(|s| s.fits(class.block_bytes()))
                );
            }
            let class = Class::for_next(stride, MOST, u64::MAX);
            let shape = Shape::new(stride, MOST, class.block_bytes()).expect("a slot");
            let used = u64::from(shape.slots * BLOCKS[class.number()]) * content as u64;
            assert!(used * 5 >= CHUNK_BYTES * 4, "rows of {row} bytes use {used} of a chunk: {class:?}");
        }
    }

    #[test]
    fn blocks_grow_with_their_table() {
        let class = |bytes: u64| Class::for_next(128, MOST, bytes).number();
        assert_eq!([0, 256 << 10, 1 << 20, 4 << 20, 1 << 30].map(class), [0, 0, 2, 3, 3]);
        let wide = |bytes: u64| Class::for_next(1088, MOST, bytes).number();
        assert_eq!([0, 1 << 20, 1 << 30].map(wide), [0, 2, 7]);
        // At least one slot fits.
        assert_eq!(Class::for_next(73_728, MOST, 0).number(), 3);
    }
}
