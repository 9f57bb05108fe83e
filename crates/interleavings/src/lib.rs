//! Runs models: small programs of two or three threads. A scheduler orders
//! their every access to shared memory. Each model runs again and again, in a
//! different order each time.
//!
//! The crate is empty unless it is compiled with `--cfg pantile_shuttle`, which
//! replaces the atomics and locks of all rooms; `scripts/interleave` does that.
//! The models are in `tests/models`. `docs/testing.md` says what they cover.

#[cfg(pantile_shuttle)]
mod explorer;
#[cfg(pantile_shuttle)]
mod runner;

#[cfg(pantile_shuttle)]
pub use explorer::Explorer;
#[cfg(pantile_shuttle)]
pub use runner::{Model, main};
