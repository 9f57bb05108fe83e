//! Space that a file system is asked for, and that it gets back.
//!
//! Not every file system can promise space or take a part of it back. Where
//! one cannot, files keep what they have, and work all the same.

use crate::MediumError;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes of zeros written at once.
const PIECE_BYTES: usize = 64 << 10;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// Makes the file `to` bytes long with space behind bytes `from..to` where the
/// file system can promise that, and a hole where it cannot.
///
/// # Errors
/// [`MediumError::Full`] or [`MediumError::Io`]; the file is as before.
pub(crate) fn allocate(file: &File, path: &Path, from: u64, to: u64) -> Result<(), MediumError> {
    let grown = lengthen(file, from, to).and_then(|()| promise(file, from, to - from));
    grown.map_err(|error| {
        // What stays is whole chunks that read as zero.
        shorten(file, from);
        MediumError::growing("extend", Some(path.to_path_buf()), to, error)
    })
}

/// Makes the file `to` bytes long, unless another program has cut it below
/// `from`: what was there would come back as zeros, and be read as such.
///
/// # Errors
/// What the system says, or how short it is.
pub(crate) fn lengthen(file: &File, from: u64, to: u64) -> io::Result<()> {
    match file.metadata()?.len() {
        len if len < from => Err(io::Error::other(format!(
            "another program has cut it from at least {from} bytes to {len}; close the database and \
             restore it from a copy"
        ))),
        len if len < to => file.set_len(to),
        _ => Ok(()),
    }
}

/// Makes the file no longer than `len` bytes, as far as the system lets us.
pub(crate) fn shorten(file: &File, len: u64) {
    if file.metadata().is_ok_and(|found| found.len() > len) {
        let _ = file.set_len(len);
    }
}

/// Gives back the space behind a part of the file, which then reads as zero.
///
/// # Errors
/// [`MediumError::Io`]; any part of the range may read as zero.
pub(crate) fn discard(file: &File, path: &Path, offset: u64, len: u64) -> Result<(), MediumError> {
    let discarded = match punch(file, offset, len) {
        Err(error) if is_unsupported(&error) => write_zeros(file, offset, len),
        result => result,
    };
    discarded.map_err(|error| MediumError::at("discard a part of", path, error))
}

/// Has space found for a discarded part of the file, and `prepare` make it
/// ready for use.
///
/// # Errors
/// [`MediumError::Full`] or [`MediumError::Io`]; the part is still discarded.
pub(crate) fn restore(
    file: &File,
    path: &Path,
    offset: u64,
    len: u64,
    prepare: impl FnOnce() -> io::Result<()>,
) -> Result<(), MediumError> {
    promise(file, offset, len).and_then(|()| prepare()).map_err(|error| {
        // Best effort: what stays reads as zero.
        let _ = punch(file, offset, len);
        MediumError::growing("find space again in", Some(path.to_path_buf()), offset + len, error)
    })
}

/// Has the file system promise space, if it makes promises. Bytes that are there stay.
pub(crate) fn promise(file: &File, offset: u64, len: u64) -> io::Result<()> {
    match fallocate(file, 0, offset, len) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
        result => result,
    }
}

fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    fallocate(file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len)
}

/// The system takes an empty range for a mistake.
fn fallocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    // SAFETY: the descriptor is open. Mode 0 changes no bytes that exist, and
    // nobody uses those in which a hole is made.
    let status =
        unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, len as libc::off_t) };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}

fn write_zeros(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let end = offset + len;
    for at in (offset..end).step_by(PIECE_BYTES) {
        let piece = &ZEROS[..(end - at).min(PIECE_BYTES as u64) as usize];
        file.write_all_at(piece, at)?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "space_test.rs"]
mod tests;
