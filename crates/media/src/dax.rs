//! Persistent memory: a file on a DAX file system, stored to through its mapping.
//!
//! The mapping is made with `MAP_SYNC`. With it the kernel promises that what
//! is mapped writable is in the file, at the same offset, after any crash
//! (mmap(2)): it makes block allocations durable in the fault of the first
//! store to a page. What is left to do is to get stores out of the CPU's
//! caches: `flush` writes lines back, `fence` waits for that.
//!
//! # Space
//! A store through a mapping can fail only by SIGBUS, so space is found
//! before. New chunks are written with zeros ahead of their use, as on files
//! (see `prefill`). Most stores then need no allocation in their page fault.
//! Before the first store to a piece since opening, the file system is asked
//! to promise its space (see `pieces`). The file's length and its
//! allocations are synced before a new piece is mapped.
//!
//! # What an earlier process has left
//! A process that is killed between store and fence leaves bytes in the caches
//! that the next process sees and a power failure takes. So opening begins
//! with a sync of the file. In it the kernel writes back every line of every
//! page that was stored to since the last sync (fsync(2) covers mapped pages),
//! also of pages that another medium has written. What is found after that is
//! durable.

use crate::contents::Contents;
use crate::data_file::DataFile;
use crate::directory::{Create, Directory, DirectoryOptions};
use crate::error::NoDax;
use crate::line_flush::{LINE_BYTES, LineFlush, store_fence};
use crate::map::{Map, MapOptions, Protection};
use crate::os::no_dax;
use crate::pieces::Promised;
use crate::prefill::Prefill;
use crate::stats::Count;
use crate::{Facts, Medium, MediumError, MediumStatus};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// How to open a [`DaxMedium`].
#[derive(Debug, Clone, Copy)]
pub struct DaxOptions {
    /// How large it may become.
    pub map: MapOptions,
    /// What to do about a database that is not there, or is.
    pub create: Create,
    /// Whether the platform saves the CPU's caches when power fails (eADR):
    /// lines are then not written back, and a fence is all that a commit
    /// costs. **On a platform that does not, a power failure takes commits
    /// that were acknowledged.**
    pub persistent_caches: bool,
    /// See [`DirectoryOptions::explain_bus_errors`].
    pub explain_bus_errors: bool,
}

impl Default for DaxOptions {
    /// No limit, created if missing, lines written back, failed reads explained.
    fn default() -> Self {
        Self {
            map: MapOptions::default(),
            create: Create::IfMissing,
            persistent_caches: false,
            explain_bus_errors: true,
        }
    }
}

/// A medium in a file on persistent memory, held under an exclusive lock.
#[derive(Debug)]
pub struct DaxMedium {
    // Dropped first: its thread writes to the file.
    prefill: Prefill,
    promised: Promised,
    /// None where caches are persistent.
    line_flush: Option<LineFlush>,
    protection: Protection,
    file: Arc<DataFile>,
    contents: Contents,
}

impl DaxMedium {
    /// Opens the database in `path`, or makes an empty one as
    /// [`DaxOptions::create`] says. It may have been made on another medium
    /// that is kept in a directory.
    ///
    /// # Errors
    /// [`MediumError::NoDax`] where the file system or the CPU cannot do it;
    /// no data file has been made then. Otherwise those of
    /// [`FileMedium::open`](crate::FileMedium::open).
    pub fn open(path: impl AsRef<Path>, options: DaxOptions) -> Result<Arc<Self>, MediumError> {
        Self::open_as(path.as_ref(), options, Protection::Persistent)
    }

    /// As [`DaxMedium::open`], on any file system: **what is fenced outlives
    /// the process, but not the machine.** For tests of everything else.
    ///
    /// # Errors
    /// As for [`DaxMedium::open`].
    #[cfg(any(test, feature = "dax-without-persistence"))]
    #[doc(hidden)]
    pub fn open_without_persistence(
        path: impl AsRef<Path>,
        options: DaxOptions,
    ) -> Result<Arc<Self>, MediumError> {
        Self::open_as(path.as_ref(), options, Protection::ReadWrite)
    }

    fn open_as(path: &Path, options: DaxOptions, protection: Protection) -> Result<Arc<Self>, MediumError> {
        let directory = Directory::open(path, options.create)?;
        let permitted = permit(directory.data(), protection).and_then(|line_flush| {
            let file = directory.data();
            file.file().sync_all().map_err(|error| {
                // Nobody is told of it again (I-36).
                directory.place().note_failed_sync();
                MediumError::at("sync", file.path(), error)
            })?;
            Ok(line_flush)
        });
        let line_flush = match permitted {
            Ok(line_flush) => line_flush,
            Err(error) => {
                directory.withdraw();
                return Err(error);
            }
        };
        let (file, filled) = (Arc::clone(directory.data()), directory.opened_len());
        let DaxOptions { map, create, persistent_caches, explain_bus_errors } = options;
        let options = DirectoryOptions { map, create, explain_bus_errors };
        let mut contents = Contents::in_directory("dax", directory, options, protection)?;
        contents.facts.emulated = protection != Protection::Persistent;
        let limit = contents.facts.limit;
        Ok(Arc::new(Self {
            prefill: Prefill::over(&file, filled, limit, &contents.failure),
            promised: Promised::default(),
            line_flush: (!persistent_caches).then_some(line_flush),
            protection,
            file,
            contents,
        }))
    }

    fn attach(&self, from: u64, to: u64) -> Result<(), MediumError> {
        self.prefill.ensure(to, true)?;
        // The length and the allocations; a store must not come before.
        self.contents.sync_file(&self.file, true)?;
        self.contents.map.attach_file(self.file.file(), self.protection, from, to)?;
        self.promised.note(from, to - from, true);
        Ok(())
    }

    /// Makes the file system promise space for the pieces of some bytes, unless it has promised it since opening.
    fn promise(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let promised = self.promised.ensure(&self.file, offset, len);
        promised.map_err(|(end, error)| self.file.refused("find space in", end, error))
    }

    fn lines_of(&self, offset: u64, len: u64) -> (u64, u64) {
        let end = offset.saturating_add(len).min(self.contents.map.len());
        let start = offset.min(end) / LINE_BYTES * LINE_BYTES;
        match offset < end {
            true => (start, (end - start).div_ceil(LINE_BYTES)),
            false => (start, 0),
        }
    }
}

/// Fails unless the data file can be mapped as persistent memory.
fn permit(file: &DataFile, protection: Protection) -> Result<LineFlush, MediumError> {
    let refused = |reason| MediumError::NoDax { path: file.path().into(), reason };
    if !cfg!(target_os = "linux") {
        return Err(refused(NoDax::System));
    }
    let line_flush = LineFlush::detect().ok_or_else(|| refused(NoDax::NoInstruction))?;
    Map::would_attach(file.file(), protection).map_err(|error| match no_dax(&error) {
        Some(reason) => refused(reason),
        None => MediumError::at("map", file.path(), error),
    })?;
    Ok(line_flush)
}

// SAFETY: as for `FileMedium`.
unsafe impl Medium for DaxMedium {
    fn facts(&self) -> &Facts {
        &self.contents.facts
    }

    #[inline]
    fn len(&self) -> u64 {
        self.contents.map.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.contents.failure.check()?;
        self.contents.map.grow(len, |from, to| self.attach(from, to))?;
        // What was there already may end in a hole.
        self.promise(len.saturating_sub(1), len.min(1))
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let len = bytes.len() as u64;
        self.contents.check(offset, len)?;
        self.promise(offset, len).map_err(|error| {
            self.contents.failure.latch(format!("write of {len} bytes at {offset}: {error}"))
        })?;
        // SAFETY: the range is attached and writable, and the caller of
        // `write` promises that no other thread uses these bytes meanwhile.
        unsafe { self.contents.store(offset, bytes) };
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) {
        let Some(flush) = self.line_flush else { return };
        let (start, lines) = self.lines_of(offset, len);
        // SAFETY: the lines are attached.
        unsafe { flush.lines(self.contents.map.at(start).cast(), lines) };
        self.contents.counters.add(Count::Flushes, lines);
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.contents.counters.add(Count::Fences, 1);
        store_fence();
        self.contents.failure.check()
    }

    /// A sync of the file: other threads' lines may still be on their way, and
    /// only the kernel can wait for all of them.
    fn sync_all(&self) -> Result<(), MediumError> {
        self.contents.failure.check()?;
        store_fence();
        self.contents.sync_file(&self.file, true)?;
        self.contents.check_place()
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        let before = self.contents.map.len();
        let forget = |left| {
            self.promised.note(left, before - left, false);
            self.prefill.shrink(left);
        };
        // SAFETY: as the caller promises.
        unsafe { self.contents.shrink(len, forget) }
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.contents.discard(offset, len, || self.promised.note(offset, len, false)) }
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.contents.restore(offset, len, || self.prefill.refill(offset, len))? };
        self.promised.note(offset, len, true);
        Ok(())
    }

    fn fill_holes(&self, except: &[Range<u64>]) -> Result<(), MediumError> {
        self.contents.fill_holes(except)
    }

    fn status(&self) -> MediumStatus {
        self.contents.status()
    }

    fn withdraw(&self) {
        self.contents.withdraw();
    }
}

#[cfg(test)]
#[path = "dax_test.rs"]
mod tests;
