//! Linux and macOS.

use super::prefer_huge_pages;
use std::ptr::{self, NonNull};

/// Maps `len` bytes of zeroed memory, which the system provides page by page as
/// they are touched. If it `is_promised`, a system that keeps account of memory
/// sets all of it aside. None if there is not enough.
pub fn map(len: usize, is_promised: bool) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON | if is_promised { 0 } else { libc::MAP_NORESERVE };
    // SAFETY: a fresh anonymous mapping touches no memory of ours.
    let base = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
}

/// As [`map`] with a promise, at a multiple of `align`, and on huge pages where
/// the system has them. Maps too much, then unmaps what lies outside.
pub fn map_aligned(len: usize, align: usize) -> Option<NonNull<u8>> {
    let wide = map(len + align, true)?;
    let before = wide.as_ptr().addr().next_multiple_of(align) - wide.as_ptr().addr();
    // SAFETY: `before < align`, because mappings are page-aligned. So
    // `base..base + len` lies inside the mapping, and the trimmed ends are ours
    // and unused.
    unsafe {
        let base = wide.add(before);
        if before > 0 {
            unmap(wide, before);
        }
        if before < align {
            unmap(base.add(len), align - before);
        }
        prefer_huge_pages(base, len);
        Some(base)
    }
}

/// Gives memory back.
///
/// # Safety
/// `base` and `len` name what [`map`] or [`map_aligned`] returned, and nobody
/// uses it any more.
pub unsafe fn unmap(base: NonNull<u8>, len: usize) {
    // SAFETY: by the contract.
    let failed = unsafe { libc::munmap(base.as_ptr().cast(), len) };
    debug_assert_eq!(failed, 0, "munmap of a mapping of ours");
}
