//! Linux.

use std::ptr::NonNull;

/// Asks for huge pages. Only advice: without them memory works, but slower.
///
/// # Safety
/// `base` and `len` name memory that [`map`](super::map) returned, or a part.
pub unsafe fn prefer_huge_pages(base: NonNull<u8>, len: usize) {
    // SAFETY: by the contract; advice changes no bytes.
    unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
}

/// Gives memory back, and keeps its addresses. Its bytes are as before or zero from now on.
///
/// # Safety
/// `base` and `len` name memory that [`map`](super::map) returned, or whole pages of it.
pub unsafe fn discard(base: NonNull<u8>, len: usize) {
    // SAFETY: by the contract; private anonymous pages are replaced by zeros.
    unsafe { libc::madvise(base.as_ptr().cast(), len, libc::MADV_DONTNEED) };
}

/// The system's number of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Makes the allocator give free memory back to the system, if it is glibc's.
pub fn return_free_memory() {
    #[cfg(all(target_env = "gnu", not(miri)))]
    // SAFETY: concerns free memory only, and may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}
