//! Which blocks are free. Kept in DRAM only: descriptors on the medium say
//! which blocks are in use, so taking or freeing a content costs no persist
//! operation at all (Zen 3.4).

use std::collections::HashMap;

use foldhash::fast::RandomState;

use crate::block::BlockId;

#[derive(Debug, Default)]
pub(crate) struct Allocator {
    /// Free blocks by stride.
    free: HashMap<u32, Vec<BlockId>, RandomState>,
    /// Chunks that are not carved, below `next_chunk`.
    pub free_chunks: Vec<u32>,
    /// The first chunk that has never been taken.
    pub next_chunk: u32,
}

impl Allocator {
    pub fn take(&mut self, stride: u32) -> Option<BlockId> {
        self.free.get_mut(&stride)?.pop()
    }

    pub fn give(&mut self, stride: u32, block: BlockId) {
        self.free.entry(stride).or_default().push(block);
    }
}
