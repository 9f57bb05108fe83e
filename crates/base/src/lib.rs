//! What every room shares: timestamps, identifiers, limits, and the facade for
//! atomics, locks and threads.
//!
//! This room depends on no other; see `docs/architecture.md`.

#![allow(unsafe_code)] // growing arrays of control data

pub mod control;
mod ids;
pub mod limits;
mod prefetch;
mod segments;
pub mod sync;
mod timestamp;

pub use ids::{Address, TableId, TupleId};
pub use prefetch::prefetch;
pub use segments::{Segments, Zeroed};
pub use timestamp::Timestamp;
