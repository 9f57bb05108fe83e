//! Persistent memory: a file on a DAX file system, stored to through its mapping.
//!
//! The mapping is made with `MAP_SYNC`. With it the kernel promises that what
//! is mapped writable is in the file, at the same offset, after any crash
//! (mmap(2)): it makes block allocations durable in the fault of the first
//! store to a page. What is left to do is to get stores out of the CPU's
//! caches: `flush` writes lines back, `fence` waits for that.
//!
//! # Space
//! A store through a mapping cannot fail but by SIGBUS, so space is found
//! before: new chunks are written with zeros ahead of their use, as on files
//! (see `prefill`), which also spares the faults of most stores an allocation,
//! and before the first store to a chunk since opening the file system is
//! asked to promise its space, which costs nothing where it is there already.
//! A copy of the file that has holes can thus be used, too. The file's length
//! and its allocations are synced before a new chunk is mapped.
//!
//! # What an earlier process has left
//! A process that is killed between store and fence leaves bytes in the caches
//! that the next one sees and a power failure takes. So opening begins with a
//! sync of the file, in which the kernel writes back every line of every page
//! that was stored to since the last one (fsync(2) covers mapped pages); what
//! is found after that is durable. That holds for bytes that another medium
//! has written, too.

use crate::directory::{Create, Directory, map_opened};
use crate::error::NoDax;
use crate::failure::Failure;
use crate::line_flush::{LINE_BYTES, LineFlush, store_fence};
use crate::map::{Map, MapOptions, Protection};
use crate::prefill::Prefill;
use crate::readable;
use crate::space;
use crate::stats::{Count, Counters};
use crate::{Medium, MediumError, MediumStats, SyncPoint};
use pantile_base::limits::CHUNK_BYTES;
use std::io;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
    /// As [`FileOptions::explain_bus_errors`](crate::FileOptions::explain_bus_errors).
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
    // Dropped in this order: the prefiller ends, then the map, then the lock.
    prefill: Prefill,
    map: Map,
    /// One bit for each chunk that the file system has promised space for.
    promised: Box<[AtomicU64]>,
    /// None where caches are persistent.
    line_flush: Option<LineFlush>,
    protection: Protection,
    failure: Arc<Failure>,
    counters: Counters,
    directory: Directory,
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
        let line_flush = match permit(&directory, protection) {
            Ok(line_flush) => line_flush,
            Err(error) => {
                directory.withdraw();
                return Err(error);
            }
        };
        sync(&directory).map_err(|error| MediumError::at("sync", directory.data_path(), error))?;
        let map = map_opened(&directory, options.map, protection, options.explain_bus_errors)?;
        let failure = Arc::new(Failure::default());
        let words = (map.limit() / CHUNK_BYTES).div_ceil(u64::from(u64::BITS));
        Ok(Arc::new(Self {
            prefill: Prefill::over(&directory, map.limit(), Arc::clone(&failure))?,
            map,
            promised: (0..words).map(|_| AtomicU64::new(0)).collect(),
            line_flush: (!options.persistent_caches).then_some(line_flush),
            protection,
            failure,
            counters: Counters::new(),
            directory,
        }))
    }

    /// The data file.
    pub fn data_path(&self) -> &Path {
        self.directory.data_path()
    }

    fn attach(&self, from: u64, to: u64) -> Result<(), MediumError> {
        self.prefill.ensure(to)?;
        // The length and the allocations; a store must not come before.
        self.sync_file()?;
        self.map.attach_file(self.directory.data(), self.protection, from, to)?;
        self.note_promised(from, to - from, true);
        Ok(())
    }

    fn sync_file(&self) -> Result<(), MediumError> {
        self.counters.add(Count::Syncs, 1);
        sync(&self.directory).map_err(|error| self.failure.latch(format!("sync: {error}")))
    }

    /// The word and the bit of a chunk.
    fn promise_of(&self, chunk: u64) -> (&AtomicU64, u64) {
        (&self.promised[(chunk / u64::from(u64::BITS)) as usize], 1 << (chunk % u64::from(u64::BITS)))
    }

    fn note_promised(&self, offset: u64, len: u64, promised: bool) {
        for chunk in offset / CHUNK_BYTES..(offset + len) / CHUNK_BYTES {
            let (word, bit) = self.promise_of(chunk);
            match promised {
                true => word.fetch_or(bit, Ordering::Release),
                false => word.fetch_and(!bit, Ordering::Release),
            };
        }
    }

    /// Has the file system promise space for the chunks of some bytes that it
    /// has not promised it for since opening.
    fn promise(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        for chunk in offset / CHUNK_BYTES..(offset + len).div_ceil(CHUNK_BYTES) {
            let (word, bit) = self.promise_of(chunk);
            if word.load(Ordering::Acquire) & bit == 0 {
                let at = chunk * CHUNK_BYTES;
                space::promise(self.directory.data(), at, CHUNK_BYTES).map_err(|error| {
                    let path = self.data_path().to_path_buf();
                    MediumError::growing("find space in", Some(path), at + CHUNK_BYTES, error)
                })?;
                self.note_promised(at, CHUNK_BYTES, true);
            }
        }
        Ok(())
    }

    fn lines_of(&self, offset: u64, len: u64) -> (u64, u64) {
        let end = offset.saturating_add(len).min(self.map.len());
        let start = offset.min(end) / LINE_BYTES * LINE_BYTES;
        match offset < end {
            true => (start, (end - start).div_ceil(LINE_BYTES)),
            false => (start, 0),
        }
    }
}

/// Fails unless the data file can be mapped as persistent memory.
fn permit(directory: &Directory, protection: Protection) -> Result<LineFlush, MediumError> {
    let path = || directory.data_path().to_path_buf();
    let refused = |reason| MediumError::NoDax { path: path(), reason };
    let line_flush = LineFlush::detect().ok_or_else(|| refused(NoDax::NoInstruction))?;
    Map::would_attach(directory.data(), protection).map_err(|error| match error.raw_os_error() {
        Some(libc::EOPNOTSUPP) => refused(NoDax::FileSystem),
        Some(libc::ENODEV) => refused(NoDax::NoMapping),
        Some(libc::EINVAL) => refused(NoDax::Kernel),
        _ => MediumError::at("map", path(), error),
    })?;
    Ok(line_flush)
}

/// Makes everything that was ever stored to the file durable, its length
/// and what it takes on the device included.
fn sync(directory: &Directory) -> io::Result<()> {
    directory.data().sync_all()
}

impl Medium for DaxMedium {
    fn name(&self) -> String {
        "dax".to_owned()
    }

    #[inline]
    fn base(&self) -> *const u8 {
        self.map.base()
    }

    #[inline]
    fn len(&self) -> u64 {
        self.map.len()
    }

    fn limit(&self) -> u64 {
        self.map.limit()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.grow(len, |from, to| self.attach(from, to))?;
        // What was there already may end in a hole.
        self.promise(len.saturating_sub(1), len.min(1))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.failure.check()?;
        let len = bytes.len() as u64;
        self.map.check(offset, len)?;
        self.promise(offset, len)
            .map_err(|error| self.failure.latch(format!("write of {len} bytes at {offset}: {error}")))?;
        // SAFETY: the range is attached and writable, and the caller of
        // `write` promises that nobody else uses these bytes meanwhile.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.at(offset).cast(), bytes.len());
        }
        self.counters.add(Count::BytesWritten, len);
        Ok(())
    }

    fn flush(&self, offset: u64, len: u64) {
        let Some(flush) = self.line_flush else { return };
        let (start, lines) = self.lines_of(offset, len);
        // SAFETY: the lines are attached.
        unsafe { flush.lines(self.map.at(start).cast(), lines) };
        self.counters.add(Count::Flushes, lines);
    }

    fn fence(&self) -> Result<(), MediumError> {
        self.counters.add(Count::Fences, 1);
        store_fence();
        self.failure.check()
    }

    /// A sync of the file: other threads' lines may still be on their way, and
    /// only the kernel can wait for all of them.
    fn sync_all(&self) -> Result<(), MediumError> {
        self.failure.check()?;
        store_fence();
        self.sync_file()
    }

    /// A fence: the point's number says how many fences are still missing
    /// before it, which is one for ever if this one failed.
    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(u64::from(self.fence().is_err()))
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        point.number() == 0
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_chunks(offset, len)?;
        self.note_promised(offset, len, false);
        space::discard(self.directory.data(), self.data_path(), offset, len)?;
        self.counters.add(Count::BytesDiscarded, len);
        Ok(())
    }

    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_chunks(offset, len)?;
        let prepare = || self.prefill.refill(offset, len);
        space::restore(self.directory.data(), self.data_path(), offset, len, prepare)?;
        self.failure.check()?;
        self.note_promised(offset, len, true);
        self.counters.add(Count::BytesRestored, len);
        Ok(())
    }

    fn check_readable(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        readable::check(&self.map, self.directory.data(), self.data_path(), offset, len)
    }

    fn stats(&self) -> MediumStats {
        self.counters.snapshot()
    }

    fn survives_exit(&self) -> bool {
        true
    }

    fn is_emulated(&self) -> bool {
        self.protection != Protection::Persistent
    }

    fn is_failed(&self) -> bool {
        self.failure.is_latched()
    }

    fn failure(&self) -> Option<String> {
        self.failure.cause().map(str::to_owned)
    }
}

#[cfg(test)]
#[path = "dax_test.rs"]
mod tests;
