//! The system's number of a thread.

use std::cell::Cell;

crate::sync::thread_local!(static ID: Cell<u32> = const { Cell::new(0) });

/// The system's number of the calling thread, under which `/proc` and debuggers
/// know it.
#[inline]
pub fn thread_id() -> u32 {
    match ID.get() {
        0 => ask(),
        id => id,
    }
}

#[cold]
fn ask() -> u32 {
    #[cfg(not(miri))]
    let id = crate::os::thread_id();
    #[cfg(miri)]
    let id = 1;
    ID.set(id);
    id
}
