//! macOS.
//!
//! `File::sync_data` and `File::sync_all` are `F_FULLFSYNC` here, which waits
//! until the device has written its cache. Where a file system does not know it,
//! the sync fails, and so does the commit.

use super::Protection;
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::fd::AsRawFd;

/// What SIGBUS says where it is about an address: BUS_ADRALN to BUS_OBJERR of the
/// system's `signal.h`.
pub(crate) const FAULTS: RangeInclusive<libc::c_int> = 1..=3;

/// Whether a fault says that memory has failed: none does.
pub(crate) fn is_failed_memory(_code: libc::c_int) -> bool {
    false
}

/// Where the calling thread's `errno` is.
pub(crate) fn errno_location() -> *mut libc::c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::__error() }
}

pub(super) fn sharing(protection: Protection) -> io::Result<libc::c_int> {
    match protection {
        Protection::ReadOnly | Protection::ReadWrite => Ok(libc::MAP_SHARED),
        Protection::Persistent => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Lets go of memory that is attached, which then reads as zero.
///
/// # Errors
/// What the system says; the bytes are as they were.
///
/// # Safety
/// The range is memory of a reservation, and nobody uses it.
pub(crate) unsafe fn discard_memory(at: *mut c_void, bytes: u64) -> io::Result<()> {
    let (protection, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_FIXED);
    // The advice that frees pages leaves what was in them. New ones are zero.
    // SAFETY: by the contract, fixing the mapping there replaces nothing in use.
    match unsafe { libc::mmap(at, bytes as usize, protection, flags, -1, 0) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Gives back the space behind a part of a file.
///
/// # Errors
/// What the system says: not every file system can.
pub(super) fn give_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let mut hole = libc::fpunchhole_t {
        fp_flags: 0,
        reserved: 0,
        fp_offset: offset as libc::off_t,
        fp_length: len as libc::off_t,
    };
    // SAFETY: the descriptor is open, the call reads the structure, and no thread
    // uses the bytes.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_PUNCHHOLE, &raw mut hole) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

pub(super) fn free_of(stats: &libc::statvfs) -> u64 {
    u64::from(stats.f_bavail) * stats.f_frsize
}

/// Bytes of memory that the machine has.
pub(crate) fn machine_memory() -> Option<u64> {
    // SAFETY: takes plain numbers.
    let [pages, bytes] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    (pages > 0 && bytes > 0).then(|| pages as u64 * bytes as u64)
}
