//! Windows.

use std::ptr::{self, NonNull};
use windows_sys::Win32::System::Memory::{
    MEM_COMMIT, MEM_RELEASE, MEM_RESERVE, MEMORY_BASIC_INFORMATION, PAGE_NOACCESS, PAGE_READWRITE,
    VirtualAlloc, VirtualFree, VirtualQuery,
};
use windows_sys::Win32::System::Threading::GetCurrentThreadId;

/// Maps `len` bytes of zeroed memory, which the system provides page by page as
/// they are touched. It always keeps account of memory, also where nothing
/// `is_promised`. None if there is not enough.
pub fn map(len: usize, _is_promised: bool) -> Option<NonNull<u8>> {
    // SAFETY: memory at an address of the system's choice touches none of ours.
    NonNull::new(unsafe { VirtualAlloc(ptr::null(), len, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE).cast() })
}

/// As [`map`], at a multiple of `align`. Reserves too many addresses and keeps
/// them, which costs no memory.
pub fn map_aligned(len: usize, align: usize) -> Option<NonNull<u8>> {
    // SAFETY: as in `map`.
    let wide = unsafe { VirtualAlloc(ptr::null(), len + align, MEM_RESERVE, PAGE_NOACCESS) };
    let wide = NonNull::new(wide.cast::<u8>())?;
    let before = wide.as_ptr().addr().next_multiple_of(align) - wide.as_ptr().addr();
    // SAFETY: `before < align`, so `len` bytes from there are in what was reserved.
    let base = unsafe {
        let base = wide.add(before);
        VirtualAlloc(base.as_ptr().cast(), len, MEM_COMMIT, PAGE_READWRITE)
    };
    if base.is_null() {
        // SAFETY: reserved above, and nobody has it.
        unsafe { unmap(wide, len + align) };
    }
    NonNull::new(base.cast())
}

/// Gives memory back, and the addresses around it.
///
/// # Safety
/// `base` and `len` name what [`map`] or [`map_aligned`] returned, and nobody
/// uses it any more.
pub unsafe fn unmap(base: NonNull<u8>, _len: usize) {
    // SAFETY: the structure is plain data that the call fills in; by the
    // contract the whole reservation is ours and unused.
    unsafe {
        let mut found: MEMORY_BASIC_INFORMATION = std::mem::zeroed();
        VirtualQuery(base.as_ptr().cast(), &mut found, size_of::<MEMORY_BASIC_INFORMATION>());
        let done = VirtualFree(found.AllocationBase, 0, MEM_RELEASE);
        debug_assert_ne!(done, 0, "memory of ours is given back");
    }
}

/// Does nothing: large pages need a privilege.
///
/// # Safety
/// `base` and `len` name memory that [`map`] returned, or a part.
pub unsafe fn prefer_huge_pages(_base: NonNull<u8>, _len: usize) {}

/// Does nothing: what is decommitted may not be read.
///
/// # Safety
/// `base` and `len` name memory that [`map`] returned, or a part.
pub unsafe fn discard(_base: NonNull<u8>, _len: usize) {}

/// The system's number of the calling thread.
pub fn thread_id() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { GetCurrentThreadId() }
}

/// Does nothing: the allocator gives memory back by itself.
pub fn return_free_memory() {}
