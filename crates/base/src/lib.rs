//! A part of the database Pantile; applications use the crate `pantile`. It
//! holds what all other parts share: timestamps, identifiers, limits, and the
//! one source of atomics, locks and threads.
//!
//! This crate knows nothing of the others; see `docs/architecture.md` in the
//! repository.

#![allow(unsafe_code)] // growing arrays of control data

pub mod control;
mod heap;
mod ids;
pub mod limits;
pub mod os;
mod padded;
mod prefetch;
mod segments;
pub mod sync;
mod team;
mod thread_id;
mod timestamp;

pub use heap::return_free_memory;
pub use ids::{Address, TableId, TupleId};
pub use padded::Padded;
pub use prefetch::prefetch;
pub use segments::{Segments, Zeroed};
pub use team::{share_out, share_range};
pub use thread_id::thread_id;
pub use timestamp::Timestamp;
