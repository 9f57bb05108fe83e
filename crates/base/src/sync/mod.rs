//! Where concurrent rooms take their atomics, locks and threads from.
//!
//! As a rule these are the types of the standard library and of parking_lot
//! themselves. Under `--cfg pantile_shuttle` they are the ones in `model.rs`,
//! which let a scheduler decide before every access which thread goes on; see
//! "Interleavings" in `docs/testing.md`.

#[cfg(pantile_shuttle)]
pub mod model;

#[cfg(pantile_shuttle)]
pub use model::{
    Condvar, Instant, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, hint,
    plain_access, thread, thread_local,
};

#[cfg(not(pantile_shuttle))]
mod native {
    pub use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
    pub use std::sync::atomic;
    pub use std::time::Instant;
    pub use std::{thread, thread_local};

    /// What the standard library has under this name, as far as it concerns threads.
    pub mod hint {
        pub use std::hint::spin_loop;
    }

    /// Says that memory is about to be read or written which is not atomic
    /// and which another protocol keeps others from changing.
    #[inline(always)]
    pub fn plain_access() {}
}

#[cfg(not(pantile_shuttle))]
pub use native::*;
