//! The file that holds the contents: how it grows, shrinks, gets space and is
//! read without dying of it.
//!
//! Not every file system can promise space or take a part of it back. Where
//! one cannot, files keep what they have, and still work.

use crate::MediumError;
use crate::map::populate;
use crate::reader_mark;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of zeros written at once.
const PIECE_BYTES: usize = 64 << 10;

static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// Bytes tried at once to find the place of a failed read.
const PAGE_BYTES: u64 = 4096;

/// A file, whatever it is called: its device and its number there.
pub(crate) type Identity = (u64, u64);

pub(crate) fn identity(found: &Metadata) -> Identity {
    (found.dev(), found.ino())
}

/// A data file that is open for reading and writing, and its path.
#[derive(Debug)]
pub struct DataFile {
    path: PathBuf,
    file: File,
}

impl DataFile {
    /// Opens the file, or makes it if it is to be new.
    pub(crate) fn open(path: &Path, is_new: bool) -> io::Result<Arc<Self>> {
        let file = OpenOptions::new().read(true).write(true).create_new(is_new).open(path)?;
        Ok(Arc::new(Self { path: path.into(), file }))
    }

    /// The path it was opened at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are free on the file system of the file, as far as it says.
    pub fn free_bytes(&self) -> Option<u64> {
        let mut stats = std::mem::MaybeUninit::<libc::statvfs>::uninit();
        // SAFETY: the descriptor is open, and the call writes to what it is given.
        let done = unsafe { libc::fstatvfs(self.file.as_raw_fd(), stats.as_mut_ptr()) };
        // SAFETY: the call has filled it in.
        let stats = (done == 0).then(|| unsafe { stats.assume_init() })?;
        Some(stats.f_bavail * stats.f_frsize)
    }

    /// The file itself. Only this crate has it: what is mapped changes with it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Which file it is, whatever it is called: its device and its number there.
    ///
    /// # Errors
    /// What the system says.
    pub fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|found| identity(&found))
    }

    /// The marks of the processes that read the file beside this one, see
    /// [`ReaderFile`](crate::ReaderFile).
    ///
    /// # Errors
    /// What the system says.
    pub fn readers(&self) -> io::Result<Vec<u64>> {
        reader_mark::all(&self.file)
    }

    /// Whether the process with this mark still reads the file.
    ///
    /// # Errors
    /// What the system says.
    pub fn is_read_by(&self, mark: u64) -> io::Result<bool> {
        reader_mark::is_set(&self.file, mark)
    }

    /// Makes the file `to` bytes long with space behind bytes `from..to` where the
    /// file system can promise that, and a hole where it cannot.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Io`]; the file is as before.
    pub(crate) fn allocate(&self, from: u64, to: u64) -> Result<(), MediumError> {
        let grown = self.lengthen(from, to).and_then(|()| self.promise(from, to - from));
        grown.map_err(|error| {
            // What stays is whole chunks that read as zero.
            self.shorten(from);
            self.refused("extend", to, error)
        })
    }

    /// An error for a growth to `needed` bytes that the system refused.
    pub(crate) fn refused(&self, operation: &'static str, needed: u64, error: io::Error) -> MediumError {
        MediumError::growing(operation, Some(self.path.clone()), needed, error)
    }

    /// Makes the file `to` bytes long. Fails if another program has cut it
    /// below `from`: the bytes between would come back as zeros, and be read
    /// as contents.
    ///
    /// # Errors
    /// What the system says, or how short the file is.
    pub(crate) fn lengthen(&self, from: u64, to: u64) -> io::Result<()> {
        match self.file.metadata()?.len() {
            len if len < from => Err(io::Error::other(format!(
                "another program has cut it from at least {from} bytes to {len}; close the database and \
                 restore it from a copy"
            ))),
            len if len < to => self.file.set_len(to),
            _ => Ok(()),
        }
    }

    /// Makes the file no longer than `len` bytes. Best effort.
    pub(crate) fn shorten(&self, len: u64) {
        if self.file.metadata().is_ok_and(|found| found.len() > len) {
            let _ = self.file.set_len(len);
        }
    }

    /// Makes the file no longer than `len` bytes.
    ///
    /// # Errors
    /// [`MediumError::Io`]; the file is as long as it was.
    pub(crate) fn cut(&self, len: u64) -> Result<(), MediumError> {
        let cut = self.file.metadata().and_then(|found| match found.len() > len {
            true => self.file.set_len(len),
            false => Ok(()),
        });
        cut.map_err(|error| MediumError::at("shorten", &self.path, error))
    }

    /// Gives back the space behind a part of the file, which then reads as zero.
    ///
    /// # Errors
    /// [`MediumError::Io`]; any part of the range may read as zero.
    pub(crate) fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let discarded = match self.punch(offset, len) {
            Err(error) if is_unsupported(&error) => self.write_zeros(offset, len),
            result => result,
        };
        discarded.map_err(|error| MediumError::at("discard a part of", &self.path, error))
    }

    /// Finds space for a discarded part of the file, and calls `prepare` to
    /// make it ready for use.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Io`]; the part is still discarded.
    pub(crate) fn restore(
        &self,
        offset: u64,
        len: u64,
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), MediumError> {
        self.promise(offset, len).and_then(|()| prepare()).map_err(|error| {
            // Best effort: what stays reads as zero.
            let _ = self.punch(offset, len);
            self.refused("find space again in", offset + len, error)
        })
    }

    /// Makes the file system promise space, if it makes promises. Bytes that are there stay.
    pub(crate) fn promise(&self, offset: u64, len: u64) -> io::Result<()> {
        match self.fallocate(0, offset, len) {
            Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Ok(()),
            result => result,
        }
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        self.fallocate(libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len)
    }

    /// The system takes an empty range for a mistake.
    fn fallocate(&self, mode: libc::c_int, offset: u64, len: u64) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: the descriptor is open. Mode 0 changes no bytes that exist, and
        // no thread uses those in which a hole is made.
        let status = unsafe {
            libc::fallocate(self.file.as_raw_fd(), mode, offset as libc::off_t, len as libc::off_t)
        };
        match status {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        let end = offset + len;
        for at in (offset..end).step_by(PIECE_BYTES) {
            let piece = &ZEROS[..(end - at).min(PIECE_BYTES as u64) as usize];
            self.file.write_all_at(piece, at)?;
        }
        Ok(())
    }

    /// Makes the system read `len` bytes at `offset` of this file, mapped at
    /// `base`, so that loads find them. Does nothing before Linux 5.14.
    ///
    /// # Errors
    /// [`MediumError::Unreadable`] with the first byte that cannot be read.
    pub(crate) fn check_readable(&self, base: *const u8, offset: u64, len: u64) -> Result<(), MediumError> {
        let from = offset / PAGE_BYTES * PAGE_BYTES;
        let bytes = offset + len - from;
        // Where a load would end the process, this returns an error.
        match populate(base.wrapping_add(from as usize), bytes, libc::MADV_POPULATE_READ) {
            Err(error) if matches!(error.raw_os_error(), Some(libc::EFAULT | libc::EHWPOISON)) => {
                let (offset, source) = self.first_failure(from, bytes).unwrap_or((from, error));
                Err(MediumError::Unreadable { path: self.path.clone(), offset, source })
            }
            _ => Ok(()),
        }
    }

    /// The place at which reading fails, and the system's error.
    fn first_failure(&self, from: u64, len: u64) -> Option<(u64, io::Error)> {
        let mut page = [0; PAGE_BYTES as usize];
        (from..from + len).step_by(PAGE_BYTES as usize).find_map(|at| {
            let wanted = (from + len - at).min(PAGE_BYTES) as usize;
            self.file.read_exact_at(&mut page[..wanted], at).err().map(|error| (at, error))
        })
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL))
}

#[cfg(test)]
#[path = "data_file_test.rs"]
mod tests;
