//! Media: where contents survive.
//!
//! The [`Medium`] trait is the seam: a mapping to read through, and calls to
//! write, flush, fence and sync. [`DramMedium`] is plain memory,
//! [`FileMedium`] an ordinary file, [`NvmMedium`] emulated persistent memory.
//!
//! This room knows nothing of tuples or transactions; see `docs/architecture.md`.

// Mapping memory, storing to it and flushing its lines is what this room is
// for, and none of that can be said without `unsafe`. Every block names what
// makes it sound.
#![allow(unsafe_code)]

mod ahead;
mod directory;
mod dram;
mod error;
mod failure;
mod file;
mod group_sync;
mod map;
mod medium;
mod nvm;
mod prefill;
mod shard;
mod space;
mod stats;
mod view;

pub use directory::{Create, DATA_FILE, LOCK_FILE};
pub use dram::DramMedium;
pub use error::{FullReason, MediumError};
pub use file::{Durability, FileMedium, FileOptions};
pub use map::{DEFAULT_RESERVE_BYTES, MapOptions};
pub use medium::{Medium, SyncPoint};
pub use nvm::{Measured, NvmConfig, NvmMedium, NvmOptions, measure};
pub use stats::MediumStats;
pub use view::ViewMedium;
