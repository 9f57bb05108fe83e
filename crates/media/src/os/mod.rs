//! What the operating systems do in different ways: one file for each, all with the same functions.
//!
//! A function says here what it is for and in the file of a system what it does there. What a
//! system cannot do returns an error, unless a caller is as well off without it.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod linux_locks;
#[cfg(target_os = "macos")]
mod macos;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(windows)]
mod windows_faults;
#[cfg(windows)]
mod windows_map;

#[cfg(unix)]
pub(crate) use crate::bus_error::{Watch, watch};
#[cfg(target_os = "linux")]
pub use linux_locks::peer_of;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;
#[cfg(not(target_os = "linux"))]
pub(crate) use other::*;
#[cfg(unix)]
pub(crate) use unix::*;
#[cfg(target_os = "linux")]
pub(crate) use {linux::*, linux_locks::*};
#[cfg(windows)]
pub(crate) use {windows::*, windows_faults::*, windows_map::*};

use std::path::Path;
use std::{fs, io};

/// A file, whatever it is called: its device and its number there.
pub type Identity = (u64, u128);

/// What is known of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found {
    pub(crate) identity: Identity,
    /// Names that it has. Without any, it ends with the last process that has it open.
    pub(crate) links: u64,
}

/// Gives a file another name, unless something had it a moment before.
fn rename_if_new(from: &Path, to: &Path) -> io::Result<()> {
    match to.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

/// A limit that the system sets for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// Bytes of addresses, whatever is behind them.
    Addresses,
    /// Bytes of memory that is private to it and can be written.
    Memory,
    /// Bytes of a file up to which it may write.
    FileSize,
    /// Files that it may have open.
    Files,
}

/// How long what is written to a file stays, compared with what is written to the other files of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// It is overwritten again and again.
    Short,
    /// It goes as a whole before long.
    Medium,
    /// It stays as long as nobody changes it.
    Long,
}

/// Whether a mapped file may be stored to through the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protection {
    /// Not at all.
    ReadOnly,
    /// Stored to; the system writes it to the file when it likes.
    ReadWrite,
    /// Stored to, and what is stored is in the file once its lines have been
    /// written back (`MAP_SYNC`). Only file systems that map persistent memory
    /// as it is take this.
    Persistent,
}
