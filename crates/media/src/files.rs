//! What every operating system can do with files, and the standard library in a
//! way of its own for each.

use crate::os;
use std::ffi::OsStr;
use std::fs::File;
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
