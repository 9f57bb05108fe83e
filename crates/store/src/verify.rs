//! Verifying checksums while a store is in use.

use pantile_base::Address;
use pantile_base::sync::atomic::{Ordering, fence};
use pantile_media::MediumExt;

use crate::block::{Block, BlockRef};
use crate::content::Content;
use crate::error::StoreError;
use crate::image::blocks::{KnownBlock, KnownBlocks};
use crate::image::read::Image;
use crate::store::Store;

impl Store {
    /// Looks whether the content at an address can be read and its checksum
    /// fits. Returns its bytes. The address came from an anchor or a link, and
    /// the caller keeps the version from being freed, as for
    /// [`Store::content`].
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the place, [`StoreError::Medium`] if it
    /// cannot be read.
    pub fn verify(&self, address: Address) -> Result<u64, StoreError> {
        let stride = self.locate(address).2.stride();
        self.medium.check_readable(address.offset(), u64::from(stride))?;
        self.verify_mapped(address)
    }

    /// As [`Store::verify`], but does not ask the medium first whether the
    /// content can be read.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the place.
    pub fn verify_mapped(&self, address: Address) -> Result<u64, StoreError> {
        match self.whole_content(address) {
            Some(content) => Ok((content.row().len() + crate::HEADER_BYTES) as u64),
            None => Err(self.rotten(address)),
        }
    }

    /// The content at an address if its checksum fits. The caller keeps it from being freed.
    pub(crate) fn whole_content(&self, address: Address) -> Option<Content<'_>> {
        let block = self.locate(address).2;
        let slot = self.bytes(address.offset(), block.stride() as usize);
        Content::valid_in(slot, self.content_seed(block.opened_at()), address)
    }

    /// The error of a damaged content.
    #[cold]
    pub fn rotten(&self, address: Address) -> StoreError {
        let (place, detail) = (self.place_of(address).to_string(), crate::scan::ROTTEN.into());
        StoreError::Damaged { place, detail }
    }

    /// Whether a content may be copied: its checksum fits. A copy gets a checksum of
    /// its own, which would hide damage for ever.
    pub(crate) fn may_be_copied(&self, address: Address) -> bool {
        let is_whole = self.whole_content(address).is_some();
        if !is_whole {
            self.note_damage([address]);
        }
        is_whole
    }

    /// Counts damaged contents, each once however often it is found.
    #[cold]
    fn note_damage(&self, found: impl IntoIterator<Item = Address>) {
        let mut known = self.damaged.lock();
        known.extend(found);
    }

    /// The blocks of an image. Recovery has not read their contents.
    pub fn unread(&self, image: &Image) -> Option<UnreadBlocks> {
        KnownBlocks::read(image).map(UnreadBlocks)
    }

    /// Looks at the checksums of the contents in block number `n`. Returns the
    /// bytes that it has read. The caller has pinned its slot, so that the block is
    /// not used again meanwhile.
    pub fn verify_unread(&self, blocks: &UnreadBlocks, n: usize) -> u64 {
        blocks.0.at(n).map_or(0, |known| self.verify_block(known))
    }

    /// Counts what is damaged in a block. Returns the bytes read.
    fn verify_block(&self, known: &KnownBlock) -> u64 {
        let name = BlockRef { id: known.id, opened_at: known.opened_at };
        let _chunks = self.hold_chunks();
        let is_used = |(_, block): &(_, &Block)| block.state().is_used();
        let Some((chunk, block)) = self.alive(name).filter(is_used) else { return 0 };
        let (start, stride) = (chunk.address(known.id.index, 0).offset(), block.stride());
        let len = u64::from(stride) * u64::from(known.fill);
        let address = |slot| chunk.address(known.id.index, slot);
        let damaged: Vec<_> = match self.medium.check_readable(start, len) {
            Err(_) => vec![address(0)],
            Ok(()) => {
                let seed = self.content_seed(known.opened_at);
                let is_bad = |at: &Address| self.valid_content(*at, stride as usize, seed).is_none();
                (0..known.fill).map(address).filter(is_bad).collect()
            }
        };
        // It may have been released meanwhile, and what was read may be another block's.
        fence(Ordering::SeqCst);
        if !damaged.is_empty() && self.alive(name).filter(is_used).is_some() {
            self.note_damage(damaged);
        }
        len
    }

    /// Contents found damaged since the store was opened.
    pub fn damaged(&self) -> u64 {
        self.damaged.lock().len() as u64
    }
}

/// Blocks whose contents recovery has not read, because an image said what they
/// hold.
#[derive(Debug)]
pub struct UnreadBlocks(KnownBlocks);

impl UnreadBlocks {
    /// Their number.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
