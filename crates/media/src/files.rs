//! What every operating system can do with files, and the standard library in a
//! way of its own for each.

use crate::os::{self, Lifetime};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Reads bytes at `offset`.
///
/// # Errors
/// What the system says, also if the file ends before that.
pub fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    os::read_exact_at(file, out, offset)
}

/// Writes bytes at `offset`.
///
/// # Errors
/// What the system says; any part of the bytes may have been written.
pub fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    os::write_all_at(file, bytes, offset)
}

/// Makes a new file that only its owner may read, and whatever the system gives it otherwise.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub fn create_own(path: &Path) -> io::Result<File> {
    os::create_own(path)
}

/// Lets those read a copy who may read what it is copied from; its owner may write to it. Best effort: a file system may
/// have no such thing.
pub fn allow_like(copy: &File, from: &File) {
    let _ = os::allow_like(copy, from);
}

/// Makes a directory that only its owner may look into, where the system has such.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub fn create_own_dir(path: &Path) -> io::Result<()> {
    os::create_own_dir(path)
}

/// Lets those look into a directory who may look into another. Best effort.
pub fn allow_dir_like(path: &Path, other: &Path) {
    let _ = other.metadata().and_then(|found| fs::set_permissions(path, found.permissions()));
}

/// Makes a new file that those may read who may read another, with the same owner if that can be given. What is written
/// to it is expected to stay that long.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says. There is no new file then.
pub(crate) fn create_like(path: &Path, other: &File, lifetime: Lifetime) -> io::Result<File> {
    let file = os::create_own(path)?;
    os::expect_lifetime(&file, lifetime);
    os::give_to_owner_of(other, &file);
    match os::allow_like(&file, other) {
        Ok(()) => Ok(file),
        Err(error) => {
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

/// Makes the file system promise space for bytes of a file, if it makes promises. Those that
/// are there stay.
///
/// # Errors
/// What the system says.
pub fn promise(file: &File, offset: u64, len: u64) -> io::Result<()> {
    match os::promise(file, offset, len) {
        Err(error) if os::is_without_promises(&error) => Ok(()),
        result => result,
    }
}

/// Makes a file, or the names in a directory, durable.
///
/// # Errors
/// What the system says.
pub fn sync_path(path: &Path) -> io::Result<()> {
    os::sync_path(path)
}

/// Gives a file another name, unless something has it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    os::rename_new(from, to)
}

/// Locks a directory as long as what is returned is open.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] if another has it, here or in another process;
/// what the system says otherwise.
pub fn lock_directory(path: &Path) -> io::Result<File> {
    os::lock_directory(path)
}

/// Whether a file in a directory is there because [`lock_directory`] has made it.
pub fn is_lock_of_directory(name: &OsStr) -> bool {
    os::is_lock_of_directory(name)
}

/// Whether the name leads to the open file.
///
/// # Errors
/// What the system says about either.
pub fn leads_to(name: &Path, file: &File) -> io::Result<bool> {
    Ok(os::look_at(name)?.identity == os::look(file)?.identity)
}
