//! Iterating over all blocks, at once or in parts.

use pantile_store::{BlockRef, Store};

/// A chunk and the number of a block in it. The default comes before all blocks.
pub type BlockPosition = (u32, u32);

/// The position after this one, whether or not a block is there; `None` at the
/// end.
pub fn after(store: &Store, (chunk, index): BlockPosition) -> Option<BlockPosition> {
    if index + 1 < store.blocks_in(chunk) {
        return Some((chunk, index + 1));
    }
    (chunk + 1 < store.chunks_end()).then_some((chunk + 1, 0))
}

/// Every block that holds something.
pub fn all_blocks(store: &Store) -> impl Iterator<Item = BlockRef> + '_ {
    let places = std::iter::successors(Some(BlockPosition::default()), |at| after(store, *at));
    places.filter_map(|(chunk, index)| store.block_at(chunk, index))
}
