//! Completing an index image: finds which of its anchors still lead to a content, and scans what
//! the image does not know.

use std::ops::Range;

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::atomic::{AtomicUsize, Ordering};
use pantile_base::{Address, share_out};
use pantile_media::Reads;

use crate::block::{Block, BlockId, Chunk};
use crate::expectation::Expectation;
use crate::image::blocks::KnownBlocks;
use crate::scan::{Found, Scan, Seen};
use crate::store::Store;

/// Bytes that are soon read, with an image or without.
const SOON_READ: u64 = 16 << 20;

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

    /// Scans what an image does not know.
    pub(crate) fn scan_left(&self, scan: &Scan<'_>, expect: &Expectation, all: &mut Seen) {
        let left = std::mem::take(&mut all.left);
        let next = AtomicUsize::new(0);
        let work = |_| {
            let mut seen = Seen::default();
            while let Some(&(id, from)) = left.get(next.fetch_add(1, Ordering::Relaxed)) {
                let chunk = self.block(id).0;
                let (offset, end) = (chunk.address(id.index, from).offset(), chunk.end_of(id.index));
                self.medium.advise(Reads::Soon { offset, len: end - offset });
                self.scan_block(chunk, id, from, scan, expect, &mut seen);
            }
            seen
        };
        share_out(scan.threads.min(left.len()), work).into_iter().for_each(|part| all.merge(part));
    }

    /// Makes a block what an image says, and notes what it does not say.
    pub(crate) fn restore_block(
        &self,
        chunk: &Chunk,
        id: BlockId,
        known: &KnownBlocks,
        expect: &Expectation,
        seen: &mut Seen,
    ) {
        let block = &chunk.blocks[id.index as usize];
        let Some(known) = known.get(id).filter(|known| known.opened_at == block.opened_at()) else {
            return seen.leave(chunk, id, 0);
        };
        let expected = expect.of(id, block.opened_at(), block.slots());
        // What has been cut off is missed by the scan.
        let end = chunk.address(id.index, known.fill).offset();
        if end > self.medium.len() || !block.restore(known, expected) {
            seen.strange += 1;
            return;
        }
        seen.known += 1;
        seen.known_bytes += end - chunk.address(id.index, 0).offset();
        // After the last record of a closed database nothing was appended.
        let end = if expect.closed { expected } else { block.slots() };
        if known.fill < end {
            seen.leave(chunk, id, known.fill);
        }
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

impl Seen {
    /// Leaves a block to be scanned from a slot on.
    fn leave(&mut self, chunk: &Chunk, id: BlockId, from: u32) {
        self.left.push((id, from));
        self.left_bytes += chunk.end_of(id.index) - chunk.address(id.index, from).offset();
    }

    /// Whether to read what an image does not know takes less than to read
    /// everything. Where it does not know most, its anchors and the merge with its
    /// indexes cost more than it saves.
    pub fn is_image_worth_it(&self) -> bool {
        self.left_bytes <= self.known_bytes.max(SOON_READ)
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
