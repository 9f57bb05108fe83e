//! Habits of the file system that the tests run on. Where it lacks one, what
//! depends on it is not asserted.

use pantile_base::limits::CHUNK_BYTES;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that a file takes on its device.
pub(crate) fn taken(path: &Path) -> u64 {
    std::fs::metadata(path).expect("file").blocks() * 512
}

/// Whether a file in this directory takes less once it has a hole, as on ext4,
/// xfs and tmpfs. Asks the system and not this crate, whose calls are tested.
pub(crate) fn frees_holes(directory: &Path) -> bool {
    let mut file = tempfile::NamedTempFile::new_in(directory).expect("file");
    file.write_all(&vec![7; 2 * CHUNK_BYTES as usize]).expect("write");
    file.as_file().sync_all().expect("sync");
    let before = taken(file.path());
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: the descriptor is open.
    let status = unsafe { libc::fallocate(file.as_raw_fd(), mode, 0, CHUNK_BYTES as libc::off_t) };
    let frees = status == 0 && taken(file.path()) + CHUNK_BYTES <= before;
    if !frees {
        println!("{}: holes take space here", directory.display());
    }
    frees
}

/// Whether space that is only promised counts as a hole here.
pub(crate) fn tells_promised_space(directory: &Path) -> bool {
    let file = tempfile::tempfile_in(directory).expect("file");
    // SAFETY: the descriptor is open.
    let promised = unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, CHUNK_BYTES as libc::off_t) == 0 };
    promised && !starts_with_data(&file)
}

/// Whether the first bytes of a file were ever written. Space that was only
/// promised counts as a hole, unless it is cached.
pub(crate) fn starts_with_data(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor is open; neither call changes a byte.
    unsafe {
        libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
        libc::lseek(descriptor, 0, libc::SEEK_DATA) == 0
    }
}
