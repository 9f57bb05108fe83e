//! The space that files take, on file systems that say so at once.

// Giving space back and asking for what is written takes system calls.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes in which space is counted. What a file system needs for itself is less.
const CHUNK: u64 = 2 << 20;

/// Measures the space of files in a directory.
///
/// Some file systems count space later, compress what is written, or do not
/// give space back. A file of its own tells the gauge whether this one does;
/// there the gauge measures nothing, and says so.
#[derive(Debug)]
pub struct SpaceGauge {
    counts: bool,
    tells_written: bool,
}

impl SpaceGauge {
    /// Tries the file system of a directory.
    ///
    /// # Panics
    /// If no file can be made there.
    pub fn of(directory: &Path) -> Self {
        let path = directory.join("gauge");
        let file = OpenOptions::new().create_new(true).read(true).write(true).open(&path).expect("a file");
        let gauge = Self { counts: counts(&file), tells_written: tells_written(&file) };
        drop(file);
        std::fs::remove_file(&path).expect("the file is there");
        if !gauge.counts || !gauge.tells_written {
            println!(
                "{} has another way with space, which is not measured there: {gauge:?}",
                directory.display()
            );
        }
        gauge
    }

    /// Whole chunks of 2 MiB that a file takes, where that can be told.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn chunks(&self, file: &Path) -> Option<u64> {
        let blocks = std::fs::metadata(file).expect("the file is there").blocks();
        self.counts.then_some(blocks * 512 / CHUNK)
    }

    /// Asserts that a file takes this many chunks, where that can be told.
    ///
    /// # Panics
    /// If it does not.
    #[track_caller]
    pub fn assert_chunks(&self, file: &Path, expected: u64) {
        if let Some(chunks) = self.chunks(file) {
            assert_eq!(chunks, expected, "chunks of {}", file.display());
        }
    }

    /// Asserts that the beginning of a file has been written, or that it only
    /// has space, where that can be told.
    ///
    /// # Panics
    /// If it is the other way.
    #[track_caller]
    pub fn assert_written(&self, file: &File, expected: bool) {
        if self.tells_written {
            assert_eq!(starts_with_data(file), expected, "whether it has been written");
        }
    }
}

fn allocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> bool {
    // SAFETY: the descriptor is open; the call changes nothing but the file.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as i64, len as i64) == 0 }
}

/// Whether space is counted as soon as it is taken, written and given back.
fn counts(file: &File) -> bool {
    let has = |chunks: u64| file.metadata().is_ok_and(|data| data.blocks() * 512 / CHUNK == chunks);
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    let write = || (&mut &*file).write_all(&vec![7; 2 * CHUNK as usize]).is_ok();
    file.set_len(4 * CHUNK).is_ok()
        && has(0)
        && allocate(file, 0, 0, 3 * CHUNK)
        && has(3)
        && write()
        && has(3)
        && allocate(file, punch, CHUNK, CHUNK)
        && has(2)
}

/// Whether space that was only taken can be told from zeros that were written.
fn tells_written(file: &File) -> bool {
    let mut writer = file;
    let empty = file.set_len(0).is_ok() && allocate(file, 0, 0, CHUNK) && !starts_with_data(file);
    let rewind = std::io::Seek::rewind(&mut writer).is_ok();
    empty
        && rewind
        && writer.write_all(&[0; 4096]).is_ok()
        && file.sync_all().is_ok()
        && starts_with_data(file)
}

/// Whether the first bytes were ever written. Space that was only taken counts
/// as a hole, unless it is cached.
fn starts_with_data(file: &File) -> bool {
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor is open; neither call changes a byte.
    unsafe {
        libc::posix_fadvise(descriptor, 0, 0, libc::POSIX_FADV_DONTNEED);
        libc::lseek(descriptor, 0, libc::SEEK_DATA) == 0
    }
}
