//! Size classes of contents, and how blocks of a class share a chunk.

use pantile_base::limits::{BLOCK_SLOTS, CHUNK_BYTES};

use crate::content::HEADER_BYTES;
use crate::format::{BLOCK_HEADER_BYTES, CHUNK_HEADER_BYTES, ChunkHeader, MAX_BLOCKS_PER_CHUNK};

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

/// How a chunk is divided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Geometry {
    pub stride: u32,
    pub slots: u32,
    pub block_bytes: u32,
    pub blocks: u32,
}

impl From<ChunkHeader> for Geometry {
    fn from(header: ChunkHeader) -> Self {
        let ChunkHeader { stride, slots, block_bytes, blocks } = header;
        Self { stride, slots, block_bytes, blocks }
    }
}

impl Geometry {
    /// Blocks of this many slots, if the chunk divides well into them or if
    /// blocks are meant to be small. Otherwise the largest smaller blocks that
    /// fill the chunk evenly.
    pub fn new(stride: u32, most_slots: u32) -> Self {
        let usable = CHUNK_BYTES as u32 - CHUNK_HEADER_BYTES as u32;
        let header = BLOCK_HEADER_BYTES as u32;
        let full = align64(header + stride * most_slots);
        let whole = (usable / full).min(MAX_BLOCKS_PER_CHUNK as u32);
        let is_small = most_slots < BLOCK_SLOTS as u32;
        if whole > 0 && (is_small || usable - whole * full <= usable / 8) {
            return Self { stride, slots: most_slots, block_bytes: full, blocks: whole };
        }
        let blocks = usable.div_ceil(full);
        let block_bytes = (usable / blocks) & !63;
        let slots = ((block_bytes - header) / stride).min(most_slots);
        Self { stride, slots, block_bytes, blocks }
    }

    /// Whether a chunk can be divided in this way.
    pub fn is_sound(&self) -> bool {
        let contents = u64::from(self.stride) * u64::from(self.slots);
        self.stride as usize >= HEADER_BYTES
            && self.stride.is_multiple_of(8)
            && self.block_bytes.is_multiple_of(64)
            && (1..=BLOCK_SLOTS as u32).contains(&self.slots)
            && (1..=MAX_BLOCKS_PER_CHUNK as u32).contains(&self.blocks)
            && contents + BLOCK_HEADER_BYTES as u64 <= u64::from(self.block_bytes)
            && CHUNK_HEADER_BYTES as u64 + u64::from(self.blocks) * u64::from(self.block_bytes) <= CHUNK_BYTES
    }

    /// Whether only tombstones are this small: no row is empty.
    pub fn is_of_tombstones(&self) -> bool {
        self.stride as usize == HEADER_BYTES
    }
}

const fn align64(bytes: u32) -> u32 {
    bytes.next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_wastes_more_than_a_quarter() {
        for row in (8..=65_535).step_by(3).chain([8, 100, 65_535]) {
            let content = row + HEADER_BYTES;
            let geometry = Geometry::new(stride_for(content), BLOCK_SLOTS as u32);
            assert!(geometry.is_sound() && Geometry::new(stride_for(content), 8).is_sound());
            let used = u64::from(geometry.slots * geometry.blocks) * content as u64;
            assert!(used * 4 >= CHUNK_BYTES * 3, "rows of {row} bytes use {used} of a chunk: {geometry:?}");
            let blocks = geometry.blocks * geometry.block_bytes;
            assert!(u64::from(blocks) + CHUNK_HEADER_BYTES as u64 <= CHUNK_BYTES);
            assert!(
                geometry.blocks as usize <= MAX_BLOCKS_PER_CHUNK && geometry.slots as usize <= BLOCK_SLOTS
            );
        }
    }
}
