//! Databases that are larger than memory.
//!
//! [`compare()`] loads the same rows into stores, gives each the same memory by
//! a control group of its own, and measures them in turn. Each store lives in a
//! process of its own ([`worker`]), so that only what it does itself fills its
//! memory, and so that the one that waits costs the others nothing.

mod compare;
mod engine;
mod group;
mod load;
mod on_pantile;
mod usage;
mod worker;

pub use compare::{Measured, Report, Settings, Skipped, compare};
pub use engine::{Engine, Failure, Rows, VALUE_BYTES, last_byte, missing};
pub use group::MemoryGroup;
pub use load::{Load, Operation};
pub use on_pantile::OnPantile;
pub use usage::Usage;
pub use worker::{WORKER, worker};
