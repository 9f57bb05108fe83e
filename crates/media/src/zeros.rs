//! Zeros in a file.

use crate::os::write_all_at;
use std::fs::File;
use std::io;

/// Bytes of zeros written at once.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// Writes zeros over `len` bytes at `offset`.
///
/// # Errors
/// What the system says.
pub(crate) fn write_zeros(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let end = offset + len;
    for at in (offset..end).step_by(PIECE_BYTES) {
        let piece = &ZEROS[..(end - at).min(PIECE_BYTES as u64) as usize];
        write_all_at(file, piece, at)?;
    }
    Ok(())
}
