//! The file that holds the contents: how it grows, shrinks, gets space and is
//! read without dying of it.
//!
//! Not every file system can promise space or take a part of it back. Where
//! one cannot, files keep what they have, and still work.

use crate::MediumError;
use crate::files::{allow_like, promise};
use crate::limits::{check_within, most_of_file};
use crate::os::{self, Identity, Lifetime};
use crate::reader_mark;
use crate::zeros::write_zeros;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The file that holds the contents. Its lock says that the database is open.
pub const DATA_FILE: &str = "pantile.data";

/// Bytes tried at once to find the place of a failed read.
const PAGE_BYTES: u64 = 4096;

/// Bytes that are written once more at a time.
const AGAIN_BYTES: usize = 64 << 10;

/// A data file that is open, and its path.
#[derive(Debug)]
pub struct DataFile {
    path: PathBuf,
    file: File,
    /// Bytes up to which the process may write files, when that was last looked at.
    permitted: AtomicU64,
}

impl DataFile {
    /// Opens the file, or makes it if it is to be new.
    pub(crate) fn open(path: &Path, is_new: bool) -> io::Result<Arc<Self>> {
        let file = os::open_data(path, is_new)?;
        os::expect_lifetime(&file, Lifetime::Long);
        Ok(Self::over(path.into(), file))
    }

    /// A file that is only read.
    pub(crate) fn read_only(path: PathBuf, file: File) -> Arc<Self> {
        Self::over(path, file)
    }

    fn over(path: PathBuf, file: File) -> Arc<Self> {
        Arc::new(Self { path, file, permitted: AtomicU64::new(0) })
    }

    /// The path it was opened at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are free on the file system of the file, as far as it says.
    pub fn free_bytes(&self) -> Option<u64> {
        os::free_bytes(&self.file)
    }

    /// The file itself. Only this crate has it: what is mapped changes with it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Which file it is, whatever it is called: its device and its number there.
    ///
    /// # Errors
    /// What the system says.
    pub fn identity(&self) -> io::Result<Identity> {
        os::look(&self.file).map(|found| found.identity)
    }

    /// The marks of the processes that read the file beside this one, see
    /// [`ReaderFile`](crate::ReaderFile). A file system without such marks has no readers.
    ///
    /// # Errors
    /// [`MediumError::Io`]: it is not known who reads the file.
    pub fn readers(&self) -> Result<Vec<u64>, MediumError> {
        match reader_mark::all(&self.file) {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput) => {
                Ok(Vec::new())
            }
            marks => marks.map_err(|error| MediumError::at("look for readers of", &self.path, error)),
        }
    }

    /// Lets those read a copy who may read this file, see [`allow_like`](crate::files::allow_like).
    pub fn allow_copy(&self, copy: &Path) {
        if let Ok(copy) = File::open(copy) {
            allow_like(&copy, &self.file);
        }
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
            len if len < to => self.permit(to).and_then(|()| self.file.set_len(to)),
            _ => Ok(()),
        }
    }

    /// Writes bytes at `offset`. A mapping of the file shows them.
    ///
    /// # Errors
    /// What the system says; any part may be written.
    pub(crate) fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let end = offset + bytes.len() as u64;
        if end > self.permitted.load(Ordering::Relaxed) {
            self.permit(end)?;
        }
        os::write_all_at(&self.file, bytes, offset)
    }

    /// Fails if the process may not write the file up to `end`, see [`check_file_size`](crate::check_file_size).
    fn permit(&self, end: u64) -> io::Result<()> {
        let most = most_of_file();
        self.permitted.store(most, Ordering::Relaxed);
        check_within(end, most)
    }

    /// Makes the file no longer than `len` bytes. Best effort: a process that reads the file and
    /// looks behind its end does not live on, so as long as there may be one the file stays.
    pub(crate) fn shorten(&self, len: u64) {
        let is_longer = self.file.metadata().is_ok_and(|found| found.len() > len);
        if is_longer && self.readers().is_ok_and(|readers| readers.is_empty()) {
            let _ = self.file.set_len(len);
        }
    }

    /// Makes the file no longer than `len` bytes.
    ///
    /// # Errors
    /// [`MediumError::Io`]; the file is as long as it was.
    pub(crate) fn cut(&self, len: u64) -> Result<(), MediumError> {
        let cut = self.file.metadata().and_then(|found| match found.len() > len {
            true => os::cut(&self.file, len),
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
            Err(error) if os::is_without_holes(&error) => write_zeros(&self.file, offset, len),
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
        self.permit(offset + len)?;
        promise(&self.file, offset, len)
    }

    /// Finds space behind the holes in the first `len` bytes, but for those in `except`,
    /// which are in order.
    ///
    /// # Errors
    /// [`MediumError::Full`] or [`MediumError::Io`]; some may have got space.
    pub(crate) fn fill_holes(&self, len: u64, except: &[Range<u64>]) -> Result<(), MediumError> {
        for hole in os::holes(&self.file, len) {
            let mut from = hole.start;
            let parts = except.iter().filter(|part| part.start < hole.end && part.end > hole.start);
            for part in parts.cloned().chain(std::iter::once(hole.end..hole.end)) {
                if from < part.start {
                    let filled = self.promise(from, part.start - from);
                    filled.map_err(|error| self.refused("find space in", part.start, error))?;
                }
                from = from.max(part.end);
            }
        }
        Ok(())
    }

    fn punch(&self, offset: u64, len: u64) -> io::Result<()> {
        os::punch(&self.file, offset, len)
    }

    /// Writes the first `len` bytes once more, and syncs. After a failed sync the system shows bytes that the
    /// device has not got, and no later sync writes them: it takes them for written.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn write_again(&self, len: u64) -> io::Result<()> {
        let mut from = 0;
        for hole in os::holes(&self.file, len).into_iter().chain(std::iter::once(len..len)) {
            self.write_part_again(from..hole.start, false)?;
            // What is only in the system's memory may count as a hole.
            self.write_part_again(hole.clone(), true)?;
            from = hole.end;
        }
        self.file.sync_all()
    }

    fn write_part_again(&self, part: Range<u64>, without_zeros: bool) -> io::Result<()> {
        let mut piece = vec![0; AGAIN_BYTES];
        for at in part.clone().step_by(AGAIN_BYTES) {
            let piece = &mut piece[..(part.end - at).min(AGAIN_BYTES as u64) as usize];
            os::read_exact_at(&self.file, piece, at)?;
            if !without_zeros || piece.iter().any(|byte| *byte != 0) {
                self.write(piece, at)?;
            }
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
        os::try_to_read(&self.file, base, from, bytes).map_err(|error| {
            let (offset, source) = self.first_failure(from, bytes).unwrap_or((from, error));
            MediumError::Unreadable { path: self.path.clone(), offset, source }
        })
    }

    /// Whether bytes are zero, as far as reading the file, and not a mapping of it,
    /// shows.
    pub(crate) fn is_zero(&self, offset: u64, len: u64) -> bool {
        let mut bytes = vec![0; len as usize];
        os::read_exact_at(&self.file, &mut bytes, offset).is_ok() && bytes.iter().all(|byte| *byte == 0)
    }

    /// The place at which reading fails, and the system's error.
    fn first_failure(&self, from: u64, len: u64) -> Option<(u64, io::Error)> {
        let mut page = [0; PAGE_BYTES as usize];
        (from..from + len).step_by(PAGE_BYTES as usize).find_map(|at| {
            let wanted = (from + len - at).min(PAGE_BYTES) as usize;
            os::read_exact_at(&self.file, &mut page[..wanted], at).err().map(|error| (at, error))
        })
    }
}

#[cfg(test)]
#[path = "data_file_test.rs"]
mod tests;
