//! A medium that one store has for itself.

use pantile_media::{Claim, Medium, MediumError, MediumExt};
use std::sync::Arc;

/// Bytes for which a read is charged at once.
const PIECE_BYTES: u64 = 64 << 10;

/// A claimed medium.
#[derive(Debug)]
pub(crate) struct Memory {
    medium: Arc<dyn Medium>,
    _claim: Claim,
}

impl Memory {
    /// Claims the medium; `None` if another store has it.
    pub fn claim(medium: Arc<dyn Medium>) -> Option<Self> {
        let claim = medium.facts().in_use.claim()?;
        Some(Self { medium, _claim: claim })
    }

    /// Bytes that the medium has.
    pub fn len(&self) -> u64 {
        self.medium.len()
    }

    /// Grows to at least this many bytes.
    pub fn grow(&self, len: u64) -> Result<(), MediumError> {
        if len > self.medium.len() { self.medium.grow(len) } else { Ok(()) }
    }

    /// Writes bytes that are durable after the next fence. Nobody has a reference to what was there.
    #[allow(unsafe_code, reason = "a medium is written to")]
    pub fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.grow(offset + bytes.len() as u64)?;
        // SAFETY: the medium is claimed, and what `mapped` returns borrows `self`.
        unsafe { self.medium.write_flushed(offset, bytes) }
    }

    pub fn fence(&self) -> Result<(), MediumError> {
        self.medium.fence()
    }

    /// Bytes that are read for the first time; `None` beyond the end.
    pub fn read(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let bytes = self.mapped(offset, len)?;
        if let Some(charges) = &self.medium.facts().charges {
            let pieces = (0..len).step_by(PIECE_BYTES as usize);
            pieces.for_each(|at| charges.read(offset + at, PIECE_BYTES.min(len - at)));
        }
        Some(bytes)
    }

    /// The same without a charge, for what was read a moment ago.
    #[allow(unsafe_code, reason = "a mapping is read")]
    pub fn mapped(&self, offset: u64, len: u64) -> Option<&[u8]> {
        self.medium.check_range(offset, len).ok()?;
        // SAFETY: the range is inside the mapping, which lasts as long as the medium, and it only changes
        // through `write`, which needs `self` alone.
        Some(unsafe { std::slice::from_raw_parts(self.medium.base().add(offset as usize), len as usize) })
    }
}
