//! Finding out that a file cannot be read without dying of it.

use crate::MediumError;
use crate::map::Map;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes tried at once when a failure is looked for.
const PAGE_BYTES: u64 = 4096;

/// Has the system read `len` bytes at `offset` of a mapped file, so that
/// loads find them. Does nothing before Linux 5.14.
///
/// # Errors
/// [`MediumError::Unreadable`] with the first byte that cannot be had.
pub(crate) fn check(map: &Map, file: &File, path: &Path, offset: u64, len: u64) -> Result<(), MediumError> {
    map.check(offset, len)?;
    let from = offset / PAGE_BYTES * PAGE_BYTES;
    let bytes = (offset + len - from) as usize;
    // SAFETY: the range is attached; reading ahead changes no bytes, and where
    // loads would be answered by a signal the call returns an error.
    let status = unsafe { libc::madvise(map.at(from), bytes, libc::MADV_POPULATE_READ) };
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EFAULT | libc::EHWPOISON) if status != 0 && bytes > 0 => {
            let (offset, source) = first_failure(file, from, bytes as u64).unwrap_or((from, error));
            Err(MediumError::Unreadable { path: path.to_owned(), offset, source })
        }
        _ => Ok(()),
    }
}

/// Where reading fails, and what the system says to it.
fn first_failure(file: &File, from: u64, len: u64) -> Option<(u64, io::Error)> {
    let mut page = [0; PAGE_BYTES as usize];
    (from..from + len).step_by(PAGE_BYTES as usize).find_map(|at| {
        let wanted = (from + len - at).min(PAGE_BYTES) as usize;
        file.read_exact_at(&mut page[..wanted], at).err().map(|error| (at, error))
    })
}
