//! Memory that the allocator keeps.

/// Makes the system's allocator give free memory back to the system. After a
/// large buffer has been freed, glibc serves later ones of up to 32 MB from its
/// heap, where it keeps what they leave. Does nothing elsewhere.
pub fn return_free_memory() {
    crate::os::return_free_memory();
}
