//! The medium of a store, which no other store uses.

use std::ops::Deref;
use std::sync::Arc;

use pantile_media::{Claim, Medium, MediumError, MediumExt};

use crate::error::StoreError;

/// A claimed medium. Its methods that change bytes are safe to call in this
/// crate, which keeps what [`Medium`] asks of callers: contents that a
/// transaction can reach do not change (I-3), a block is written to again only
/// when nobody looks into it any more (I-11, I-12), and the locks of streams,
/// of block headers and of the state record let one thread at a time write
/// what they cover.
#[derive(Debug)]
pub(crate) struct Own {
    medium: Arc<dyn Medium>,
    _claim: Claim,
}

impl Own {
    /// Claims the medium.
    ///
    /// # Errors
    /// [`MediumError::Locked`] if another store of this process uses it.
    pub fn claim(medium: Arc<dyn Medium>) -> Result<Self, StoreError> {
        let facts = medium.facts();
        let Some(claim) = facts.in_use.claim() else {
            let directory = facts.file.as_ref().and_then(|file| file.path().parent());
            let path = directory.map_or_else(|| facts.name.clone().into(), Into::into);
            return Err(MediumError::Locked { path, process: Some(std::process::id()) }.into());
        };
        Ok(Self { medium, _claim: claim })
    }

    /// The medium.
    pub fn shared(&self) -> &Arc<dyn Medium> {
        &self.medium
    }

    /// [`Medium::write`].
    pub fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: I-3, I-11, I-12, as described above.
        unsafe { self.medium.write(offset, bytes) }
    }

    /// [`MediumExt::write_flushed`].
    #[inline]
    pub fn write_flushed(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: as for `write`.
        unsafe { self.medium.write_flushed(offset, bytes) }
    }

    /// [`Medium::shrink`].
    pub fn shrink(&self, len: u64) -> Result<(), MediumError> {
        // SAFETY: as for `discard`.
        unsafe { self.medium.shrink(len) }
    }

    /// [`Medium::discard`].
    pub fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as for `write`; nobody looks into an empty chunk.
        unsafe { self.medium.discard(offset, len) }
    }

    /// [`Medium::restore`].
    pub fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as for `discard`.
        unsafe { self.medium.restore(offset, len) }
    }
}

impl Deref for Own {
    type Target = dyn Medium;

    fn deref(&self) -> &(dyn Medium + 'static) {
        &*self.medium
    }
}

/// The mapped bytes of a range.
pub(crate) fn mapped(medium: &dyn Medium, offset: u64, len: usize) -> &[u8] {
    assert!(offset + len as u64 <= medium.len(), "the range lies in the mapping");
    // SAFETY: inside the mapping. No thread writes the bytes while the caller
    // reads them (recovery runs alone).
    unsafe { std::slice::from_raw_parts(medium.base().add(offset as usize), len) }
}
