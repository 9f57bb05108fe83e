//! Regions of zeroed memory that nodes are carved from.

use std::alloc::{Layout, handle_alloc_error};
use std::ptr::NonNull;

/// Regions of this size and above are aligned to it, and request huge pages.
pub(crate) const HUGE_PAGE: usize = 2 << 20;

/// One region of zeroed memory, unmapped on drop.
pub(crate) struct Region {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a region is plain memory that is not tied to a thread. It only hands
// out addresses, and the words behind them are atomics (I1).
unsafe impl Send for Region {}

impl Region {
    /// Maps `len` bytes, if there is memory.
    pub(crate) fn map(len: usize) -> Option<Self> {
        os::map(len).map(|base| Self { base, len })
    }

    /// The same. Aborts the process if memory runs out, as `Vec` does.
    pub(crate) fn map_or_abort(len: usize) -> Self {
        let layout = Layout::from_size_align(len, HUGE_PAGE).expect("region sizes are small");
        Self::map(len).unwrap_or_else(|| handle_alloc_error(layout))
    }

    /// The address of the first byte. Its provenance is exposed for nodes.
    pub(crate) fn start(&self) -> usize {
        self.base.as_ptr().expose_provenance()
    }

    /// Gives the memory back to the system. Each page is as before or zero from now on.
    pub(crate) fn discard(&self) {
        // SAFETY: mapped by `os::map`, with this length.
        unsafe { os::discard(self.base, self.len) };
    }

    /// The length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: `os::map` returned `base` and `len`. By I1 the arena drops
        // its regions only when no index is left.
        unsafe { os::unmap(self.base, self.len) };
    }
}

#[cfg(not(miri))]
mod os {
    use super::HUGE_PAGE;
    pub(super) use pantile_base::os::{discard, unmap};
    use pantile_base::os::{map as anonymous, map_aligned};
    use std::ptr::NonNull;

    pub(super) fn map(len: usize) -> Option<NonNull<u8>> {
        if len < HUGE_PAGE { anonymous(len, true) } else { map_aligned(len, HUGE_PAGE) }
    }
}

#[cfg(miri)]
mod os {
    use std::alloc::{Layout, alloc_zeroed, dealloc};
    use std::ptr::NonNull;

    fn layout(len: usize) -> Layout {
        Layout::from_size_align(len, 4096).expect("region sizes are small")
    }

    pub(super) fn map(len: usize) -> Option<NonNull<u8>> {
        // SAFETY: regions are never empty.
        NonNull::new(unsafe { alloc_zeroed(layout(len)) })
    }

    /// # Safety
    /// `base` came from [`map`] with the same `len`.
    pub(super) unsafe fn discard(_base: NonNull<u8>, _len: usize) {}

    /// # Safety
    /// `base` came from [`map`] with the same `len`.
    pub(super) unsafe fn unmap(base: NonNull<u8>, len: usize) {
        // SAFETY: by the contract.
        unsafe { dealloc(base.as_ptr(), layout(len)) };
    }
}
