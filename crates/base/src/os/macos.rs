//! macOS.

use std::ptr::NonNull;

/// Does nothing: the system has no such advice.
///
/// # Safety
/// `base` and `len` name memory that [`map`](super::map) returned, or a part.
pub unsafe fn prefer_huge_pages(_base: NonNull<u8>, _len: usize) {}

/// Does nothing: the system has no such advice that takes effect at once.
///
/// # Safety
/// `base` and `len` name memory that [`map`](super::map) returned, or a part.
pub unsafe fn discard(_base: NonNull<u8>, _len: usize) {}

/// The lower half of the system's number of the calling thread.
pub fn thread_id() -> u32 {
    let mut id = 0;
    // SAFETY: 0 is the calling thread, and the call writes to `id` alone.
    unsafe { libc::pthread_threadid_np(0, &mut id) };
    id as u32
}

/// Does nothing: the allocator keeps little.
pub fn return_free_memory() {}
