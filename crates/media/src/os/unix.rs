//! Linux and macOS.

use super::{Found, Identity, Limit, Protection, free_of, sharing};
use std::ffi::{OsStr, c_void};
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};

const RESERVE_FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANON | libc::MAP_NORESERVE;

/// How what is mapped will be read.
pub(crate) const NORMAL: i32 = libc::MADV_NORMAL;
pub(crate) const AT_RANDOM: i32 = libc::MADV_RANDOM;
pub(crate) const SOON: i32 = libc::MADV_WILLNEED;
pub(crate) const LET_GO: i32 = libc::MADV_DONTNEED;

fn access(protection: Protection) -> libc::c_int {
    match protection {
        Protection::ReadOnly => libc::PROT_READ,
        Protection::ReadWrite | Protection::Persistent => libc::PROT_READ | libc::PROT_WRITE,
    }
}

/// Reserves addresses without memory behind them.
pub(crate) fn reserve(bytes: u64) -> io::Result<*mut c_void> {
    // SAFETY: a new mapping at an address of the system's choice touches no other.
    let region =
        unsafe { libc::mmap(ptr::null_mut(), bytes as usize, libc::PROT_NONE, RESERVE_FLAGS, -1, 0) };
    match region {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        region => Ok(region),
    }
}

/// Gives a reservation back with all that is attached to it.
///
/// # Safety
/// It is what [`reserve`] returned, and nobody uses it any more.
pub(crate) unsafe fn release(region: *mut c_void, bytes: usize) {
    // SAFETY: by the contract.
    unsafe { libc::munmap(region, bytes) };
}

/// Takes what is attached to a part of a reservation away. A refused mapping
/// may leave a hole that other mappings could fall into; this fills it.
///
/// # Safety
/// The range is inside a reservation and nobody uses it.
pub(crate) unsafe fn detach(at: *mut c_void, bytes: u64) {
    // SAFETY: by the contract, fixing the mapping there replaces nothing in use.
    unsafe { libc::mmap(at, bytes as usize, libc::PROT_NONE, RESERVE_FLAGS | libc::MAP_FIXED, -1, 0) };
}

/// Puts zeroed memory behind a part of a reservation, `offset` bytes from its beginning.
///
/// # Safety
/// The range is inside a reservation and not used yet.
pub(crate) unsafe fn attach_memory(at: *mut c_void, bytes: u64, _offset: u64) -> io::Result<()> {
    // SAFETY: by the contract.
    match unsafe { libc::mprotect(at, bytes as usize, libc::PROT_READ | libc::PROT_WRITE) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Puts bytes of a file, from `offset` on, behind a part of a reservation.
///
/// # Safety
/// The range is inside a reservation and not used yet.
pub(crate) unsafe fn attach_file(
    at: *mut c_void,
    bytes: u64,
    file: &File,
    offset: u64,
    protection: Protection,
) -> io::Result<()> {
    let flags = sharing(protection)? | libc::MAP_FIXED;
    // SAFETY: by the contract, fixing the mapping there replaces nothing but reserve.
    unsafe { map_fixed(at, bytes, access(protection), flags, file.as_raw_fd(), offset) }
}

/// Puts the first bytes of a file in the place of memory; what is stored there
/// does not reach the file.
///
/// # Safety
/// The range is attached, and no other thread has it yet.
pub(crate) unsafe fn attach_private(at: *mut c_void, bytes: u64, file: &File) -> io::Result<()> {
    let flags = libc::MAP_PRIVATE | libc::MAP_NORESERVE | libc::MAP_FIXED;
    // SAFETY: by the contract.
    unsafe { map_fixed(at, bytes, access(Protection::ReadWrite), flags, file.as_raw_fd(), 0) }
}

/// Puts zeros in the place of bytes that [`attach_private`] has put there and
/// that cannot be read.
///
/// # Safety
/// As for [`attach_private`].
pub(crate) unsafe fn replace_private(at: *mut c_void, bytes: u64) -> io::Result<()> {
    let flags = RESERVE_FLAGS | libc::MAP_FIXED;
    // SAFETY: by the contract.
    unsafe { map_fixed(at, bytes, access(Protection::ReadWrite), flags, -1, 0) }
}

/// # Safety
/// Nothing that is in use may be in the range.
unsafe fn map_fixed(
    at: *mut c_void,
    bytes: u64,
    access: libc::c_int,
    flags: libc::c_int,
    file: libc::c_int,
    offset: u64,
) -> io::Result<()> {
    // SAFETY: by the contract.
    match unsafe { libc::mmap(at, bytes as usize, access, flags, file, offset as libc::off_t) } {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Tries to map the first bytes of a file. It may be shorter. Nothing stays mapped.
pub(crate) fn would_attach(file: &File, bytes: u64, protection: Protection) -> io::Result<()> {
    let (access, sharing, file) = (access(protection), sharing(protection)?, file.as_raw_fd());
    // SAFETY: the address is the system's choice, and no thread uses it.
    unsafe {
        let mapped = libc::mmap(ptr::null_mut(), bytes as usize, access, sharing, file, 0);
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        libc::munmap(mapped, bytes as usize);
    }
    Ok(())
}

/// Says how a range will be used. A system that does not know the advice does
/// what it would do without.
///
/// # Safety
/// The range is inside a reservation, and the advice is one of this room's.
pub(crate) unsafe fn advise(at: *mut c_void, bytes: u64, advice: i32) {
    // SAFETY: by the contract; advice changes no bytes.
    unsafe { libc::madvise(at, bytes as usize, advice) };
}

/// Reads bytes at `offset`.
pub(crate) fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    file.read_exact_at(out, offset)
}

/// Writes bytes at `offset`. A mapping of the file shows them.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

/// Opens a data file to read and write, or makes it if it is to be new.
pub(crate) fn open_data(path: &Path, is_new: bool) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(is_new).open(path)
}

/// Makes a data file shorter that is mapped no further than that.
pub(crate) fn cut(file: &File, len: u64) -> io::Result<()> {
    file.set_len(len)
}

/// Whether a user could be trusted with a file before it was asked for anything: the superuser, the one of this process,
/// and the owner of the file.
pub(crate) fn is_trusted(user: u32, file: &File) -> bool {
    // SAFETY: the call only returns a number.
    let own = unsafe { libc::geteuid() };
    user == 0 || user == own || file.metadata().is_ok_and(|found| found.uid() == user)
}

/// Makes a directory that only its owner may look into.
pub(crate) fn create_own_dir(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Gives a copy the rights of what it is copied from, and its owner those to read and write it. If it cannot have the
/// same group, its group has the rights of all others.
pub(crate) fn allow_like(copy: &File, from: &File) -> io::Result<()> {
    let found = from.metadata()?;
    let _ = std::os::unix::fs::fchown(copy, None, Some(found.gid()));
    let mut mode = found.mode() & 0o777 | 0o600;
    if copy.metadata()?.gid() != found.gid() {
        mode &= !0o070 | (mode & 0o007) << 3;
    }
    copy.set_permissions(Permissions::from_mode(mode))
}

/// Makes a new file that only its owner may read.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// Gives a file to the owner and the group of another. Best effort: not everybody may.
pub(crate) fn give_to_owner_of(from: &File, to: &File) {
    if let Ok(found) = from.metadata() {
        let _ = std::os::unix::fs::fchown(to, Some(found.uid()), Some(found.gid()));
    }
}

/// Makes a file, or the names in a directory, durable.
pub(crate) fn sync_path(path: &Path) -> io::Result<()> {
    File::open(path).and_then(|file| file.sync_all())
}

/// Whether a file is there because [`lock_directory`] has made it: it makes none.
pub(crate) fn is_lock_of_directory(_name: &OsStr) -> bool {
    false
}

/// Locks a directory as long as what is returned is open. `WouldBlock` if
/// another has it.
pub(crate) fn lock_directory(path: &Path) -> io::Result<File> {
    let directory = File::open(path)?;
    match directory.try_lock() {
        Ok(()) => Ok(directory),
        Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

static FORKS: AtomicU32 = AtomicU32::new(0);

/// How many forks lie between this process and the one that first called [`watch_forks`].
#[inline]
pub(crate) fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// Counts forks from here on, in each child. Returns [`forks`].
pub(crate) fn watch_forks() -> u32 {
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static WATCHED: Once = Once::new();
    // SAFETY: the function is there as long as the process, and does what is safe in a child.
    WATCHED.call_once(|| _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    forks()
}

/// What an open file is.
pub(crate) fn look(file: &File) -> io::Result<Found> {
    file.metadata().map(|found| found_of(&found))
}

/// What there is of this name.
pub(crate) fn look_at(path: &Path) -> io::Result<Found> {
    fs::metadata(path).map(|found| found_of(&found))
}

fn found_of(found: &Metadata) -> Found {
    let identity: Identity = (found.dev(), u128::from(found.ino()));
    Found { identity, links: found.nlink() }
}

/// Bytes that are free on the file system of a file.
pub(crate) fn free_bytes(file: &File) -> Option<u64> {
    let mut stats = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and the call writes to what it is given.
    let done = unsafe { libc::fstatvfs(file.as_raw_fd(), stats.as_mut_ptr()) };
    // SAFETY: the call has filled it in.
    (done == 0).then(|| free_of(unsafe { stats.assume_init_ref() }))
}

/// The limit that the process has now, if it has one.
pub(crate) fn limit(of: Limit) -> Option<u64> {
    let resource = match of {
        Limit::Addresses => libc::RLIMIT_AS,
        Limit::Memory => libc::RLIMIT_DATA,
        Limit::FileSize => libc::RLIMIT_FSIZE,
        Limit::Files => libc::RLIMIT_NOFILE,
    };
    let mut found = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the resource is one of the system's, and the call writes to `found` alone.
    let done = unsafe { libc::getrlimit(resource, &raw mut found) };
    (done == 0 && found.rlim_cur != libc::RLIM_INFINITY).then_some(found.rlim_cur)
}

/// Whether an error says that there is no memory.
pub(crate) fn is_out_of_memory(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// Whether an error says that the process has too many files open.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMFILE)
}
