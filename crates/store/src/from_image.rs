//! Bringing an image up to date that does not say everything: which of its
//! anchors still lead to something.

use std::ops::Range;

use pantile_base::Address;
use pantile_base::limits::CHUNK_BYTES;

use crate::block::Block;
use crate::image::blocks::KnownBlocks;
use crate::scan::{Found, Scan, Seen};
use crate::store::Store;

impl Store {
    /// Takes everything that the image knows as superseded. [`Claims::claim`]
    /// says what is not.
    pub fn forget_superseded(&self) {
        for chunk in (0..self.chunks_on_medium()).filter_map(|number| self.chunk(number)) {
            chunk.blocks.iter().filter(|block| block.state().is_used()).for_each(Block::forget_bits);
        }
    }

    /// To say which contents of the image are alive; see [`Claims::claim`].
    pub fn claims(&self) -> Claims<'_> {
        Claims { nearby: self.nearby(), block: None, word: 0, bits: 0 }
    }

    /// To find the blocks of many addresses.
    pub fn nearby(&self) -> Nearby<'_> {
        Nearby { store: self, block: None, inside: 0..0 }
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

/// Finds the blocks of addresses, one after the other. Most lie in the same block
/// as the one before, so it is not looked up again. Nothing may be released
/// meanwhile.
pub struct Nearby<'s> {
    store: &'s Store,
    /// The block of the last address.
    block: Option<&'s Block>,
    /// Where its slots lie.
    inside: Range<u64>,
}

impl<'s> Nearby<'s> {
    /// Bytes of the slot of a row; `None` if there is a tombstone at the address.
    ///
    /// # Panics
    /// If the address is in no block.
    #[inline]
    pub fn row_slot_bytes(&mut self, address: Address) -> Option<u64> {
        let (block, _) = self.find(address).expect("addresses lie in blocks");
        (!block.shape().is_of_tombstones()).then(|| u64::from(block.stride()))
    }

    /// The block of an address, and where behind its block header the address
    /// lies; `None` if it is in no block now.
    #[inline]
    fn find(&mut self, address: Address) -> Option<(&'s Block, u32)> {
        let offset = address.offset();
        let block = match self.block {
            Some(block) if self.inside.contains(&offset) => block,
            _ => self.look_up(address)?,
        };
        Some((block, (offset - self.inside.start) as u32))
    }

    fn look_up(&mut self, address: Address) -> Option<&'s Block> {
        let chunk = self.store.chunk((address.offset() / CHUNK_BYTES) as u32)?;
        let (index, within) = chunk.find(address)?;
        self.inside = address.offset() - u64::from(within)..chunk.end_of(index);
        self.block = chunk.blocks.get(index as usize);
        self.block
    }
}

/// Takes contents of an image as alive. Says so to their blocks by the word, the
/// last one when it is dropped.
pub struct Claims<'s> {
    nearby: Nearby<'s>,
    /// The block that has not been told of `bits` yet, which begin at slot
    /// `64 * word`.
    block: Option<&'s Block>,
    word: u32,
    bits: u64,
}

impl Claims<'_> {
    /// Whether the image knows the content at an address, and its block is still
    /// in the same generation. It counts as alive then. What has been appended
    /// later is for the scan to find.
    #[inline]
    pub fn claim(&mut self, address: Address) -> bool {
        let Some((block, within)) = self.nearby.find(address) else { return false };
        let (slot, rest) = (within / block.stride(), within % block.stride());
        let is_known = block.state().is_used() && rest == 0 && slot < block.fill();
        if is_known {
            if slot / 64 != self.word || self.block.is_none_or(|last| !std::ptr::eq(last, block)) {
                self.tell();
                (self.block, self.word) = (Some(block), slot / 64);
            }
            self.bits |= 1 << (slot % 64);
        }
        is_known
    }

    fn tell(&mut self) {
        if let Some(block) = self.block.take() {
            block.map.unset_some(self.word, std::mem::take(&mut self.bits));
        }
    }
}

impl Drop for Claims<'_> {
    fn drop(&mut self) {
        self.tell();
    }
}
