//! Windows: files.
//!
//! `File::sync_data` and `File::sync_all` are `FlushFileBuffers` here. The data
//! file is written by `WriteFile`, never through its views, so that no view has
//! to be flushed before.

use super::{Found, Identity, Limit, punch};
use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::windows::fs::{FileExt, OpenOptionsExt};
use std::os::windows::io::AsRawHandle;
use std::path::Path;
use std::ptr;
use windows_sys::Win32::Foundation::{
    ERROR_COMMITMENT_LIMIT, ERROR_NO_SYSTEM_RESOURCES, ERROR_SHARING_VIOLATION, ERROR_TOO_MANY_OPEN_FILES,
    ERROR_USER_MAPPED_FILE, HANDLE,
};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_FLAG_DELETE_ON_CLOSE, FILE_ID_INFO, FILE_INFO_BY_HANDLE_CLASS,
    FILE_REMOTE_PROTOCOL_INFO, FILE_STANDARD_INFO, FileIdInfo, FileRemoteProtocolInfo, FileStandardInfo,
    GetDiskFreeSpaceExW, GetFileInformationByHandleEx, GetFinalPathNameByHandleW,
};
use windows_sys::Win32::System::IO::DeviceIoControl;
use windows_sys::Win32::System::Ioctl::{FILE_ZERO_DATA_INFORMATION, FSCTL_SET_SPARSE, FSCTL_SET_ZERO_DATA};
use windows_sys::Win32::System::SystemInformation::{GlobalMemoryStatusEx, MEMORYSTATUSEX};

/// Characters of the longest path.
const LONGEST_PATH: usize = 1 << 15;

pub(super) fn handle(file: &File) -> HANDLE {
    file.as_raw_handle().cast()
}

fn has_code(error: &io::Error, codes: &[u32]) -> bool {
    error.raw_os_error().is_some_and(|code| codes.contains(&(code as u32)))
}

/// No process is forked here.
#[inline]
pub(crate) fn forks() -> u32 {
    0
}

pub(crate) fn watch_forks() -> u32 {
    0
}

/// Reads bytes at `offset`.
pub(crate) fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match file.seek_read(out, offset) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => (out, offset) = (&mut out[read..], offset + read as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes bytes at `offset`. A view of the file shows them.
pub(crate) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => (bytes, offset) = (&bytes[written..], offset + written as u64),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Opens a data file to read and write, or makes it if it is to be new. A new one
/// may have holes, if the file system knows them.
///
/// # Errors
/// What the system says, and for a file on another machine: its views would not
/// show what is written.
pub(crate) fn open_data(path: &Path, is_new: bool) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(is_new).open(path)?;
    let fit = refuse_remote(&file);
    if is_new {
        if fit.is_err() {
            // Best effort: an empty data file is as good as none.
            let _ = std::fs::remove_file(path);
        }
        let _ = control::<()>(&file, FSCTL_SET_SPARSE, None);
    }
    fit.map(|()| file)
}

fn refuse_remote(file: &File) -> io::Result<()> {
    match information::<FILE_REMOTE_PROTOCOL_INFO>(file, FileRemoteProtocolInfo) {
        Ok(_) => Err(io::Error::new(
            ErrorKind::Unsupported,
            "it is on another machine, where a view of a file need not show what is written to it; \
             put the database on a disk of this machine",
        )),
        Err(_) => Ok(()),
    }
}

fn information<T>(file: &File, class: FILE_INFO_BY_HANDLE_CLASS) -> io::Result<T> {
    let mut found = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the handle is open, and the call writes no more than it is told.
    let done = unsafe {
        GetFileInformationByHandleEx(handle(file), class, found.as_mut_ptr().cast(), size_of::<T>() as u32)
    };
    match done {
        0 => Err(io::Error::last_os_error()),
        // SAFETY: the call has filled it in, and all of them are plain numbers.
        _ => Ok(unsafe { found.assume_init() }),
    }
}

/// Makes the file system do something with a file.
fn control<T>(file: &File, code: u32, what: Option<&T>) -> io::Result<()> {
    let (input, len) = what.map_or((ptr::null(), 0), |what| (ptr::from_ref(what), size_of::<T>() as u32));
    let mut returned = 0;
    // SAFETY: the handle is open and waits for what it asks; the call reads `what`
    // and writes to `returned`.
    let done = unsafe {
        let (out, waits) = (ptr::null_mut(), ptr::null_mut());
        DeviceIoControl(handle(file), code, input.cast(), len, out, 0, &raw mut returned, waits)
    };
    if done == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Gives back the space behind a part of a file.
///
/// # Errors
/// What the system says: not every file system can, and not every file may have holes.
pub(super) fn give_back(file: &File, offset: u64, len: u64) -> io::Result<()> {
    let (from, end) = (offset as i64, (offset + len) as i64);
    let range = FILE_ZERO_DATA_INFORMATION { FileOffset: from, BeyondFinalZero: end };
    control(file, FSCTL_SET_ZERO_DATA, Some(&range))
}

/// Makes a data file shorter. One of which any part is mapped cannot be: its end
/// becomes zeros without space behind them.
pub(crate) fn cut(file: &File, len: u64) -> io::Result<()> {
    match file.set_len(len) {
        Err(error) if has_code(&error, &[ERROR_USER_MAPPED_FILE]) => {
            let all = file.metadata()?.len();
            punch(file, len, all.saturating_sub(len))
        }
        result => result,
    }
}

/// Whether a user could be trusted with a file: there are no connections that would have to be.
pub(crate) fn is_trusted(_user: u32, _file: &File) -> bool {
    false
}

/// Makes a directory.
pub(crate) fn create_own_dir(path: &Path) -> io::Result<()> {
    std::fs::create_dir(path)
}

/// Gives a copy the rights of what it is copied from: here it has those of its directory.
pub(crate) fn allow_like(_copy: &File, _from: &File) -> io::Result<()> {
    Ok(())
}

/// Makes a new file, which those may read who may read the directory.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`]; what the system says.
pub(crate) fn create_own(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).open(path)
}

/// Gives a file to the owner of another: not here, where files have those of their directory.
pub(crate) fn give_to_owner_of(_from: &File, _to: &File) {}

/// Makes a file, or the names in a directory, durable. The system asks for the
/// right to write what is flushed, and for a flag where it is a directory.
pub(crate) fn sync_path(path: &Path) -> io::Result<()> {
    let options = OpenOptions::new().write(true).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).to_owned();
    options.open(path).and_then(|file| file.sync_all())
}

/// The file that says that a directory is locked. A directory itself cannot be.
const LOCK_FILE: &str = "pantile.lock";

/// Whether a file is there because [`lock_directory`] has made it.
pub(crate) fn is_lock_of_directory(name: &OsStr) -> bool {
    name == LOCK_FILE
}

/// Locks a directory as long as what is returned is open: by a file that nobody
/// else can open, and that ends with its handle. `WouldBlock` if another has it.
pub(crate) fn lock_directory(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    options.open(path.join(LOCK_FILE)).map_err(|error| match has_code(&error, &[ERROR_SHARING_VIOLATION]) {
        true => ErrorKind::WouldBlock.into(),
        false => error,
    })
}

/// What an open file is.
pub(crate) fn look(file: &File) -> io::Result<Found> {
    let id: FILE_ID_INFO = information(file, FileIdInfo)?;
    let known: FILE_STANDARD_INFO = information(file, FileStandardInfo)?;
    let identity: Identity = (id.VolumeSerialNumber, u128::from_le_bytes(id.FileId.Identifier));
    let links = if known.DeletePending { 0 } else { u64::from(known.NumberOfLinks) };
    Ok(Found { identity, links })
}

/// What there is of this name.
pub(crate) fn look_at(path: &Path) -> io::Result<Found> {
    let options = OpenOptions::new().access_mode(0).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).to_owned();
    options.open(path).and_then(|file| look(&file))
}

/// Bytes that are free for this user on the file system of a file.
pub(crate) fn free_bytes(file: &File) -> Option<u64> {
    let mut name = vec![0_u16; LONGEST_PATH];
    // SAFETY: the handle is open, and the call writes no more than there is room for.
    let len = unsafe { GetFinalPathNameByHandleW(handle(file), name.as_mut_ptr(), LONGEST_PATH as u32, 0) }
        as usize;
    // The directory, with a zero at its end.
    let end = name.get(..len)?.iter().rposition(|&unit| unit == u16::from(b'\\'))? + 1;
    name[end] = 0;
    let mut free = 0;
    // SAFETY: the name ends with a zero, and the call writes to `free` alone.
    let done = unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, ptr::null_mut(), ptr::null_mut()) };
    (done != 0).then_some(free)
}

/// Bytes of memory that the machine has.
pub(crate) fn machine_memory() -> Option<u64> {
    // SAFETY: plain numbers; the call fills in what it is told the length of.
    unsafe {
        let mut found: MEMORYSTATUSEX = std::mem::zeroed();
        found.dwLength = size_of::<MEMORYSTATUSEX>() as u32;
        (GlobalMemoryStatusEx(&raw mut found) != 0).then_some(found.ullTotalPhys)
    }
}

/// Whether an error says that there is no memory.
pub(crate) fn is_out_of_memory(error: &io::Error) -> bool {
    error.kind() == ErrorKind::OutOfMemory
        || has_code(error, &[ERROR_COMMITMENT_LIMIT, ERROR_NO_SYSTEM_RESOURCES])
}

/// Whether an error says that the process has too many files open.
pub(crate) fn is_out_of_files(error: &io::Error) -> bool {
    has_code(error, &[ERROR_TOO_MANY_OPEN_FILES])
}

/// The limit that the process has: the system sets none of these.
pub(crate) fn limit(_of: Limit) -> Option<u64> {
    None
}
