//! Looking at checksums while a store is in use.

use pantile_base::Address;
use pantile_media::MediumExt;

use crate::content::Content;
use crate::error::StoreError;
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
        let block = self.locate(address).2;
        let stride = block.stride();
        self.medium.check_readable(address.offset(), u64::from(stride))?;
        let slot = self.bytes(address.offset(), stride as usize);
        match Content::valid_in(slot, self.content_seed(block.opened_at()), address) {
            Some(content) => Ok((content.row().len() + crate::HEADER_BYTES) as u64),
            None => Err(StoreError::Damaged {
                place: self.place_of(address).to_string(),
                detail: crate::scan::ROTTEN.into(),
            }),
        }
    }
}
