//! Atomics, locks and threads for the concurrent rooms.
//!
//! Normally these are the types of the standard library and of parking_lot.
//! Under `--cfg pantile_shuttle` they are the types in
//! `crates/interleavings/sync`, which let a scheduler decide before every
//! access which thread continues; see "Interleavings" in `docs/testing.md`.

// Not part of the package: only the models' build sets this.
#[cfg(pantile_shuttle)]
#[path = "../../interleavings/sync/mod.rs"]
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

    /// The part of `std::hint` that concerns threads.
    pub mod hint {
        pub use std::hint::spin_loop;
    }

    /// Announces an access to memory that is not atomic and that another
    /// protocol protects from concurrent change.
    #[inline(always)]
    pub fn plain_access() {}
}

#[cfg(not(pantile_shuttle))]
pub use native::*;
