//! Linux.

use super::{Lifetime, Protection, rename_if_new};
use crate::no_dax::NoDax;
use std::ffi::{CString, c_void};
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::{Range, RangeInclusive};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

pub(crate) const HUGE_PAGES: i32 = libc::MADV_HUGEPAGE;

/// What SIGBUS says where it is about an address.
pub(crate) const FAULTS: RangeInclusive<libc::c_int> = libc::BUS_ADRALN..=libc::BUS_MCEERR_AO;

/// Whether a fault says that memory has failed.
pub(crate) fn is_failed_memory(code: libc::c_int) -> bool {
    code == libc::BUS_MCEERR_AR || code == libc::BUS_MCEERR_AO
}

/// Where the calling thread's `errno` is.
pub(crate) fn errno_location() -> *mut libc::c_int {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::__errno_location() }
}

pub(super) fn sharing(protection: Protection) -> io::Result<libc::c_int> {
    Ok(match protection {
        Protection::ReadOnly | Protection::ReadWrite => libc::MAP_SHARED,
        // MAP_SHARED alone would ignore the flag where it is not known.
        Protection::Persistent => libc::MAP_SHARED_VALIDATE | libc::MAP_SYNC,
    })
}

/// Why a file cannot be mapped as persistent memory, if the error says so.
pub(crate) fn no_dax(error: &io::Error) -> Option<NoDax> {
    match error.raw_os_error()? {
        libc::EOPNOTSUPP => Some(NoDax::FileSystem),
        libc::ENODEV => Some(NoDax::NoMapping),
        libc::EINVAL => Some(NoDax::Kernel),
        _ => None,
    }
}

/// Gives a file another name, unless something has it.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub(crate) fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    let [from_name, to_name] =
        [from, to].map(|path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from));
    let (from_name, to_name) = (from_name?, to_name?);
    let here = libc::AT_FDCWD;
    // SAFETY: both are strings that end with a zero byte.
    let renamed = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            here,
            from_name.as_ptr(),
            here,
            to_name.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    match renamed {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // The file system has no such renaming.
            error if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS)) => {
                rename_if_new(from, to)
            }
            error => Err(error),
        },
    }
}

/// Whether programs may write cache lines back with `dc cvap`.
#[cfg(target_arch = "aarch64")]
pub(crate) fn has_dc_cvap() -> bool {
    // SAFETY: the call reads a vector that the kernel gave the process.
    let capabilities = unsafe { libc::getauxval(libc::AT_HWCAP) };
    capabilities & libc::HWCAP_DCPOP != 0
}

/// Lets go of memory that is attached, which then reads as zero.
///
/// # Errors
/// What the system says; the bytes are as they were.
///
/// # Safety
/// The range is memory of a reservation, and nobody uses it.
pub(crate) unsafe fn discard_memory(at: *mut c_void, bytes: u64) -> io::Result<()> {
    // SAFETY: by the contract. The bytes are private to this process, so that
    // they become zero.
    match unsafe { libc::madvise(at, bytes as usize, libc::MADV_DONTNEED) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Nodes that a mask has bits for: as many as Linux can have.
const MOST_NODES: usize = 1024;

/// Asks for memory of this node behind a range that has no memory yet, and for that of others only where it is
/// used up. A system that refuses costs speed only.
///
/// # Safety
/// The range is memory of a reservation.
pub(crate) unsafe fn prefer_node(at: *mut c_void, bytes: u64, node: u32) {
    let bits = u64::BITS as usize;
    let mut mask = [0u64; MOST_NODES / u64::BITS as usize];
    let Some(word) = mask.get_mut(node as usize / bits) else { return };
    *word |= 1 << (node as usize % bits);
    // The kernel leaves the last of these bits out.
    let (mode, most) = (libc::MPOL_PREFERRED, MOST_NODES + 1);
    // SAFETY: by the contract. The call reads the mask and changes no bytes of the range.
    unsafe { libc::syscall(libc::SYS_mbind, at, bytes, mode, mask.as_ptr(), most, 0) };
}

/// The processor that the calling thread is on.
pub(crate) fn cpu_here() -> Option<usize> {
    // SAFETY: takes nothing.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

/// Whether the contents of a file are in memory, without a device.
pub(crate) fn is_in_memory(file: &File) -> bool {
    kind_of_file_system(file) == Some(libc::TMPFS_MAGIC)
}

/// Whether the file system overwrites in place and keeps what [`promise`] has promised, so
/// that a store to a mapped page of it never lacks space. So do tmpfs, and ext4 for files
/// that have extents: ext2 and ext3, which share its number, have none and promise nothing. Btrfs writes
/// elsewhere, and XFS where a file shares its space with a copy (reflink).
pub(crate) fn keeps_promises(file: &File) -> bool {
    match kind_of_file_system(file) {
        Some(libc::TMPFS_MAGIC) => true,
        Some(libc::EXT4_SUPER_MAGIC) => has_extents(file),
        _ => false,
    }
}

/// The flag of a file with extents (`EXT4_EXTENTS_FL`).
const EXTENTS: libc::c_int = 0x8_0000;

fn has_extents(file: &File) -> bool {
    let mut flags: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the call writes one `int`.
    let found = unsafe { libc::ioctl(file.as_raw_fd(), libc::FS_IOC_GETFLAGS, &raw mut flags) };
    found == 0 && flags & EXTENTS != 0
}

fn kind_of_file_system(file: &File) -> Option<libc::__fsword_t> {
    // SAFETY: the numbers of the structure may be zero, and the descriptor is open.
    unsafe {
        let mut found: libc::statfs = std::mem::zeroed();
        (libc::fstatfs(file.as_raw_fd(), &raw mut found) == 0).then_some(found.f_type)
    }
}

/// The holes of a file of `len` bytes that a load through a mapping would put
/// memory into. On tmpfs it does, and ends the process when there is none.
pub(crate) fn holes_that_take_memory(file: &File, len: u64) -> Vec<Range<u64>> {
    if is_in_memory(file) { holes(file, len) } else { Vec::new() }
}

/// The holes of a file of `len` bytes, as far as the system knows.
pub(crate) fn holes(file: &File, len: u64) -> Vec<Range<u64>> {
    // SAFETY: the descriptor is open; its position counts for nothing here.
    let seek = |at: u64, whence| unsafe { libc::lseek(file.as_raw_fd(), at as libc::off_t, whence) };
    let mut holes = Vec::new();
    let mut at = 0;
    while at < len {
        // The end of the file counts as a hole, and there may be no data behind one.
        let hole = u64::try_from(seek(at, libc::SEEK_HOLE)).unwrap_or(len).min(len);
        at = u64::try_from(seek(hole, libc::SEEK_DATA)).unwrap_or(len).min(len);
        holes.extend((hole < at).then_some(hole..at));
    }
    holes
}

/// Makes the system find memory for `len` bytes that are mapped, now.
///
/// # Errors
/// What the system says. Kernels before Linux 5.14 do not know the call.
pub(crate) fn populate(start: *const u8, len: u64) -> io::Result<()> {
    advise_now(start, len, libc::MADV_POPULATE_WRITE)
}

/// Makes the system read `len` bytes of a file at `offset`, mapped at `base`.
/// Where a load would end the process, this returns an error. Does nothing
/// before Linux 5.14.
///
/// # Errors
/// What the system says of a place that cannot be read.
pub(crate) fn try_to_read(_file: &File, base: *const u8, offset: u64, len: u64) -> io::Result<()> {
    match advise_now(base.wrapping_add(offset as usize), len, libc::MADV_POPULATE_READ) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EFAULT | libc::EHWPOISON)) => Err(error),
        _ => Ok(()),
    }
}

/// Unlike a load or store this returns an error for what is not there.
fn advise_now(start: *const u8, len: u64, advice: libc::c_int) -> io::Result<()> {
    // SAFETY: the call changes no bytes, and checks the addresses itself.
    match unsafe { libc::madvise(start.cast_mut().cast(), len as usize, advice) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the file system promise space. Bytes that are there stay.
///
/// # Errors
/// [`is_without_promises`], or what the system says.
pub(crate) fn promise(file: &File, offset: u64, len: u64) -> io::Result<()> {
    fallocate(file, 0, offset, len)
}

/// Whether an error of [`promise`] says that the file system makes none.
pub(crate) fn is_without_promises(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EOPNOTSUPP)
}

/// Gives back the space behind a part of a file, which then reads as zero.
///
/// # Errors
/// [`is_without_holes`], or what the system says.
pub(crate) fn punch(file: &File, offset: u64, len: u64) -> io::Result<()> {
    fallocate(file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len)
}

/// Whether an error of [`punch`] says that there can be no holes.
pub(crate) fn is_without_holes(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}

/// The system takes an empty range for a mistake.
fn fallocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> io::Result<()> {
    if len == 0 {
        return Ok(());
    }
    loop {
        // SAFETY: the descriptor is open. Mode 0 changes no bytes that exist, and
        // no thread uses those in which a hole is made.
        let done =
            unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, len as libc::off_t) };
        let error = io::Error::last_os_error();
        match done {
            0 => return Ok(()),
            // A signal of the program has come.
            _ if error.kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(error),
        }
    }
}

pub(super) fn free_of(stats: &libc::statvfs) -> u64 {
    stats.f_bavail * stats.f_frsize
}

/// A name that leads to a file that is open, whatever its other names lead to
/// by now.
pub(crate) fn name_of_open(file: &File) -> Option<String> {
    Some(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()))
}

/// The same file, to be written past the page cache.
pub(crate) fn open_direct(file: &File) -> Option<File> {
    let same = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(libc::O_DIRECT).open(same).ok()
}

/// Whether a file that [`open_direct`] returned refuses to be written so.
pub(crate) fn is_not_direct(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// Begins to read a part of a file that will be needed.
pub(crate) fn fetch(file: &File, offset: u64, len: u64) {
    let (offset, len) = (offset as libc::off_t, len as libc::off_t);
    // SAFETY: the descriptor is open; advice changes no bytes.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), offset, len, libc::POSIX_FADV_WILLNEED) };
}

/// Whether [`begin_write`] does anything.
pub(crate) const BEGINS_WRITES: bool = true;

/// Makes the system begin to write a part of a file to its device, and waits for nothing but room in the device's queue.
pub(crate) fn begin_write(file: &File, offset: u64, len: u64) {
    let (offset, len) = (offset as libc::off64_t, len as libc::off64_t);
    // SAFETY: the descriptor is open; the call changes no bytes. What cannot be written is told to the next sync.
    unsafe { libc::sync_file_range(file.as_raw_fd(), offset, len, libc::SYNC_FILE_RANGE_WRITE) };
}

/// `F_SET_RW_HINT` of `linux/fcntl.h`, which the crate `libc` lacks.
const SET_LIFETIME: libc::c_int = 1036;

/// Says how long the bytes of a file stay, so that a file system or a device can keep apart what goes at different
/// times. It belongs to the file while that is open anywhere. Where it is not taken, nothing depends on it.
pub(crate) fn expect_lifetime(file: &File, lifetime: Lifetime) {
    let hint = number_of(lifetime);
    // SAFETY: the descriptor is open, and the call reads one number of 64 bits.
    unsafe { libc::fcntl(file.as_raw_fd(), SET_LIFETIME, &raw const hint) };
}

/// `RWH_WRITE_LIFE_SHORT`, `RWH_WRITE_LIFE_MEDIUM` and `RWH_WRITE_LIFE_LONG`.
fn number_of(lifetime: Lifetime) -> u64 {
    match lifetime {
        Lifetime::Short => 2,
        Lifetime::Medium => 3,
        Lifetime::Long => 4,
    }
}

/// Whether a file is expected to have this lifetime; none if the system does not say.
#[cfg(test)]
pub(crate) fn has_lifetime(file: &File, lifetime: Lifetime) -> Option<bool> {
    /// `F_GET_RW_HINT`.
    const GET_LIFETIME: libc::c_int = 1035;
    let mut hint = 0_u64;
    // SAFETY: the descriptor is open, and the call writes one number of 64 bits.
    let found = unsafe { libc::fcntl(file.as_raw_fd(), GET_LIFETIME, &raw mut hint) };
    (found == 0).then_some(hint == number_of(lifetime))
}

/// Bytes of memory that the machine has.
pub(crate) fn machine_memory() -> Option<u64> {
    std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text))
}

fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_some() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:       24684404 kB\n"), Some(24_684_404 << 10));
        assert!(machine_memory().is_some_and(|bytes| bytes > 1 << 20));
    }
}
