//! Runs models: small programs of two or three threads whose every access to
//! shared memory a scheduler orders, again and again, each time differently.
//!
//! Everything is empty unless it is compiled with `--cfg pantile_shuttle`,
//! which exchanges the atomics and locks of all rooms; `scripts/interleave`
//! does that. The models are in `tests/models`, and what they cover is in
//! `docs/testing.md`.

#[cfg(pantile_shuttle)]
mod explorer;
#[cfg(pantile_shuttle)]
mod runner;

#[cfg(pantile_shuttle)]
pub use explorer::Explorer;
#[cfg(pantile_shuttle)]
pub use runner::{Model, main};
