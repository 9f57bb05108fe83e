//! Bringing an image up to date that does not say everything: which of its
//! anchors still lead to something.

use pantile_base::Address;
use pantile_base::limits::CHUNK_BYTES;

use crate::block::Block;
use crate::image::blocks::KnownBlocks;
use crate::scan::{Found, Scan, Seen};
use crate::store::Store;

impl Store {
    /// Takes everything that the image knows as superseded. [`Store::claim`]
    /// says what is not.
    pub fn forget_superseded(&self) {
        for chunk in (0..self.chunks_on_medium()).filter_map(|number| self.chunk(number)) {
            chunk.blocks.iter().filter(|block| block.state().is_used()).for_each(Block::forget_bits);
        }
    }

    /// Whether the image knows the content at an address, and its block is still
    /// in the same generation. It counts as alive then. What has been appended
    /// later is for the scan to find.
    pub fn claim(&self, address: Address) -> bool {
        let number = (address.offset() / CHUNK_BYTES) as u32;
        let Some(chunk) = self.chunk(number) else { return false };
        let Some((index, within)) = chunk.find(address) else { return false };
        let block = &chunk.blocks[index as usize];
        let (slot, rest) = (within / block.stride(), within % block.stride());
        let is_known = block.state().is_used() && rest == 0 && slot < block.fill();
        if is_known {
            block.map.unset(slot);
        }
        is_known
    }

    /// Bytes of the slot at an address.
    pub fn slot_bytes(&self, address: Address) -> u64 {
        u64::from(self.locate(address).2.stride())
    }

    /// Finds the tombstones that no anchor of the image has named: while a
    /// transaction is using a tuple id again, its anchor names nothing. If it did
    /// not commit, the tombstone is still needed (I-14).
    pub(crate) fn find_unclaimed_tombstones(&self, scan: &Scan<'_>, known: &KnownBlocks, seen: &mut Seen) {
        for known in known.iter() {
            let Some(chunk) = self.chunk(known.id.chunk) else { continue };
            let Some(block) = chunk.blocks.get(known.id.index as usize) else { continue };
            let is_same = block.state().is_used() && block.opened_at() == known.opened_at;
            if !is_same || !block.shape().is_of_tombstones() {
                continue;
            }
            for slot in (0..known.fill).filter(|&slot| known.is_alive(slot) && block.map.is_set(slot)) {
                let address = chunk.address(known.id.index, slot);
                let seed = self.content_seed(known.opened_at);
                if let Some(content) = self.valid_content(address, block.stride() as usize, seed) {
                    block.map.unset(slot);
                    seen.committed(scan, block.table(), &[Found { address, content }]);
                }
            }
        }
    }
}
