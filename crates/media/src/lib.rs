//! Media: the places where the contents of a database survive.
//!
//! This crate is a part of the database Pantile; applications use the crate `pantile`.
//!
//! The trait [`Medium`] is the interface: a mapping to read through, and calls to write, flush,
//! fence and sync. [`DramMedium`] is plain memory, [`FileMedium`] an ordinary file, and
//! [`DaxMedium`] persistent memory. [`ViewMedium`] is a file that must not be changed. It can also
//! be the file of a [`ReaderFile`], which another process has open. [`MediumFactory`] is for media
//! of other crates, which are made of [`parts`].
//!
//! This crate knows nothing of tuples or transactions; see
//! `docs/architecture.md` in the repository.

// Mapping memory, storing to it and flushing its lines is what this room is
// for, and none of that can be said without `unsafe`. Every block names what
// makes it sound.
#![allow(unsafe_code)]

mod ahead;
mod beside;
#[cfg(unix)]
mod bus_error;
mod contents;
mod data_file;
mod dax;
mod directory;
mod dram;
mod error;
mod failure;
mod file;
pub mod files;
mod group_sync;
mod journal;
mod limits;
mod line_flush;
mod lock;
mod map;
mod medium;
mod memory;
mod no_dax;
mod nodes;
mod os;
mod pieces;
mod place;
mod prefill;
mod reader_mark;
mod shard;
mod stats;
mod stores;
#[cfg(any(test, feature = "unshared"))]
pub mod unshared;
mod view;
mod writeback;
mod zeros;

pub use beside::{Beside, BesideFile, IMAGE_FILE};
pub use data_file::{DATA_FILE, DataFile};
pub use dax::{DaxMedium, DaxOptions};
pub use directory::{Create, DirectoryOptions, user_of};
pub use dram::DramMedium;
pub use error::{FullReason, MediumError, NoDax, User};
pub use file::{Durability, FileMedium, FileOptions};
pub use journal::JOURNAL_FILE;
pub use limits::{Explained, check_file_size};
pub use map::{DEFAULT_RESERVE_BYTES, MapOptions};
pub use medium::{
    Charges, Claim, Facts, InUse, Medium, MediumExt, MediumFactory, MediumStatus, Reads, SyncPoint,
};
pub use memory::available_memory;
pub use nodes::Nodes;
pub use os::Identity;
#[cfg(target_os = "linux")]
pub use os::peer_of;
pub use stats::MediumStats;
pub use view::{ReaderFile, ViewMedium};

/// Parts for media of other crates, such as `pantile-nvm`.
///
/// A medium has [`Contents`](parts::Contents), in memory or in the data file of a locked
/// [`Directory`](parts::Directory). It forwards calls to them, except those that it implements in
/// its own way.
pub mod parts {
    pub use crate::ahead::Ahead;
    pub use crate::contents::Contents;
    pub use crate::directory::Directory;
    pub use crate::failure::Failure;
    pub use crate::line_flush::{LINE_BYTES, LineFlush, store_fence};
    pub use crate::map::{Map, Protection};
    pub use crate::shard::{OWN_PLACES, ShardIndex, place};
    pub use crate::stats::{Count, Counters};
}
