//! What Linux has and macOS and Windows do not, or not in a form that is used here.

use super::{Lifetime, give_back, read_exact_at, rename_if_new};
use crate::no_dax::NoDax;
use crate::zeros::write_zeros;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;

/// Bytes read at once to find out whether they can be read.
const TRY_BYTES: usize = 64 << 10;

/// Huge pages are the system's own business.
pub(crate) const HUGE_PAGES: i32 = super::NORMAL;

/// Persistent memory is mapped on Linux only.
pub(crate) fn no_dax(error: &io::Error) -> Option<NoDax> {
    (error.kind() == io::ErrorKind::Unsupported).then_some(NoDax::System)
}

/// Gives a file another name, unless something has it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_if_new(from, to)
}

/// Whether programs may write cache lines back with `dc cvap`: unknown.
#[cfg(target_arch = "aarch64")]
pub(crate) fn has_dc_cvap() -> bool {
    false
}

/// Asks for memory of a node: the system places memory by itself.
///
/// # Safety
/// None; that of the other system.
pub(crate) unsafe fn prefer_node(_at: *mut std::ffi::c_void, _bytes: u64, _node: u32) {}

/// The processor that the calling thread is on: unknown.
pub(crate) fn cpu_here() -> Option<usize> {
    None
}

/// Whether the contents of a file are in memory, without a device: unknown.
pub(crate) fn is_in_memory(_file: &File) -> bool {
    false
}

/// Whether a store to a mapped page of a file never lacks space: unknown.
pub(crate) fn keeps_promises(_file: &File) -> bool {
    false
}

/// The holes of a file that a load through a mapping would put memory into:
/// holes are read as zeros.
pub(crate) fn holes_that_take_memory(_file: &File, _len: u64) -> Vec<Range<u64>> {
    Vec::new()
}

/// Where a file may have holes: the system is not asked.
pub(crate) fn holes(_file: &File, len: u64) -> Vec<Range<u64>> {
    std::iter::once(0..len).collect()
}

/// Makes the system find memory for `len` bytes that are mapped, now: it comes
/// with its first use.
///
/// # Errors
/// Always.
pub(crate) fn populate(_start: *const u8, _len: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes the system read `len` bytes of a file at `offset`: by reading them, which
/// returns an error where a load would end the process.
///
/// # Errors
/// What the system says of a place that cannot be read.
pub(crate) fn try_to_read(file: &File, _base: *const u8, offset: u64, len: u64) -> io::Result<()> {
    let mut buffer = vec![0; TRY_BYTES.min(len as usize)];
    let mut pieces = (offset..offset + len).step_by(TRY_BYTES);
    pieces.try_for_each(|at| {
        let wanted = (offset + len - at).min(TRY_BYTES as u64) as usize;
        read_exact_at(file, &mut buffer[..wanted], at)
    })
}

/// The system promises no space within a file. A write may find the device full.
///
/// # Errors
/// [`is_without_promises`].
pub(crate) fn promise(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether an error of [`promise`] says that the file system makes none.
pub(crate) fn is_without_promises(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}

/// Makes a part of a file read as zero, also through a mapping, and gives back
/// the space behind it if the file system can do that.
///
/// # Errors
/// What the system says.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    // That a hole shows in a mapping at once is promised nowhere.
    write_zeros(file, offset, len)?;
    // Best effort: the zeros are there.
    let _ = give_back(file, offset, len);
    Ok(())
}

/// Whether an error of [`punch`] says that there can be no holes: it writes zeros
/// then, and returns none.
pub(crate) fn is_without_holes(_error: &io::Error) -> bool {
    false
}

/// A name that leads to a file that is open, whatever its other names lead to by
/// now: there is none.
pub(crate) fn name_of_open(_file: &File) -> Option<String> {
    None
}

/// The same file, to be written past the page cache: there is no second way to
/// an open file.
pub(crate) fn open_direct(_file: &File) -> Option<File> {
    None
}

/// Whether a file that [`open_direct`] returned refuses to be written so.
pub(crate) fn is_not_direct(_error: &io::Error) -> bool {
    false
}

/// Begins to read a part of a file that will be needed: not here.
pub(crate) fn fetch(_file: &File, _offset: u64, _len: u64) {}

/// Whether [`begin_write`] does anything.
pub(crate) const BEGINS_WRITES: bool = false;

/// Begins to write a part of a file to its device: not here.
pub(crate) fn begin_write(_file: &File, _offset: u64, _len: u64) {}

/// Says how long the bytes of a file stay: the system does not take it.
pub(crate) fn expect_lifetime(_file: &File, _lifetime: Lifetime) {}

/// Locks one byte of a file, beside others that do so. The locks that there are
/// belong to a process, and end with any descriptor of the file that it closes.
///
/// # Errors
/// None.
pub(crate) fn lock_byte(_file: &File, _at: u64) -> io::Result<bool> {
    Ok(false)
}

/// The first byte of a lock that others have in a range: there are none.
///
/// # Errors
/// None.
pub(crate) fn locked_in(_file: &File, _from: u64, _len: u64) -> io::Result<Option<u64>> {
    Ok(None)
}

/// The process that has locked a file: the system does not say.
pub(crate) fn holder_of(_file: &File) -> Option<u32> {
    None
}
