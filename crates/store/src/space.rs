//! Where the space goes.

use pantile_base::limits::CHUNK_BYTES;

use crate::block::BlockState;
use crate::store::Store;
use crate::tile::tile_bytes;

/// Space by use. Bytes unless said otherwise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Space {
    /// The medium, as far as it is taken in chunks.
    pub medium_bytes: u64,
    /// DRAM of tiles.
    pub tile_bytes: u64,
    /// Contents appended since opening, headers included.
    pub payload_bytes: u64,
    /// Number of contents appended since opening.
    pub contents_appended: u64,
    /// Number of blocks that streams append to.
    pub open_blocks: u64,
    /// Number of full blocks.
    pub sealed_blocks: u64,
    /// Number of blocks that belong to no table.
    pub free_blocks: u64,
}

impl Store {
    /// Adds up where the space goes; looks at every block.
    pub fn space(&self) -> Space {
        let mut space = Space::default();
        for stream in &self.streams {
            let stream = stream.lock();
            space.payload_bytes += stream.payload_bytes;
            space.contents_appended += stream.contents;
        }
        for chunk in self.all_chunks() {
            for block in &chunk.blocks {
                match block.state() {
                    BlockState::Open => space.open_blocks += 1,
                    BlockState::Sealed => space.sealed_blocks += 1,
                    BlockState::Free | BlockState::Released => space.free_blocks += 1,
                }
                if block.tile.exists() {
                    space.tile_bytes += tile_bytes(chunk.geometry.slots as usize);
                }
            }
        }
        space.medium_bytes = u64::from(self.allocator.lock().next_chunk) * CHUNK_BYTES;
        space
    }
}
