//! For tests: writing to a medium that nobody else uses.

use crate::{Medium, MediumError, MediumExt};

/// The unsafe methods of a medium, for a test that alone has it, or that
/// orders those who have it. No product crate uses them.
pub trait Unshared: Medium {
    /// [`Medium::write`].
    ///
    /// # Errors
    /// Those of the method.
    fn put(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        // SAFETY: see the trait.
        unsafe { self.write(offset, bytes) }
    }

    /// [`MediumExt::read`].
    ///
    /// # Errors
    /// Those of the method.
    fn get(&self, offset: u64, out: &mut [u8]) -> Result<(), MediumError> {
        // SAFETY: see the trait.
        unsafe { self.read(offset, out) }
    }

    /// [`Medium::discard`].
    ///
    /// # Errors
    /// Those of the method.
    fn give_back(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: see the trait.
        unsafe { self.discard(offset, len) }
    }

    /// [`Medium::restore`].
    ///
    /// # Errors
    /// Those of the method.
    fn take_back(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: see the trait.
        unsafe { self.restore(offset, len) }
    }
}

impl<M: Medium + ?Sized> Unshared for M {}
