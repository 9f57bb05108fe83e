//! An ordinary file: reads through a mapping, writes by `pwrite`.
//!
//! A buffered `pwrite` is coherent with a shared mapping of the same file, and
//! cheaper to make durable than stores through the mapping, which need
//! `msync`. A sync costs least over bytes that were written before, so files
//! that are synced grow by chunks already filled with zeros (see `prefill`).

use crate::directory::{Create, Directory, map_opened};
use crate::failure::Failure;
use crate::group_sync::{GroupSync, SyncCall};
use crate::map::{DEFAULT_RESERVE_BYTES, Map, MapOptions, Protection};
use crate::prefill::Prefill;
use crate::readable;
use crate::space::{self, allocate};
use crate::stats::{Count, Counters};
use crate::{Medium, MediumError, MediumStats, SyncPoint};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a page, the unit in which a file is written to its device.
const PAGE_BYTES: u64 = 4096;

/// What a fence of the file medium promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Durable on return; concurrent fences share a sync.
    #[default]
    Sync,
    /// Durable on return; the leader of a sync waits a little for companions.
    Group,
    /// Nothing: a killed process loses nothing, a machine that stops may lose
    /// everything since the last `sync_all`, in any order.
    None,
}

/// How to open a [`FileMedium`].
#[derive(Debug, Clone, Copy)]
pub struct FileOptions {
    /// What `fence` promises.
    pub durability: Durability,
    /// Longest time a leader waits for companions under [`Durability::Group`].
    /// It waits only for as many as were at work when the last sync ended, so
    /// that a lone committer never waits.
    pub group_window: Duration,
    /// Most bytes the data file may have; `None` is `reserve_bytes`.
    pub max_bytes: Option<u64>,
    /// Bytes of address space to reserve, see [`MapOptions::reserve_bytes`].
    pub reserve_bytes: u64,
    /// What to do about a database that is not there, or is.
    pub create: Create,
    /// Whether a read that fails is explained on stderr before the process
    /// ends of SIGBUS, which takes a handler of that signal. Signals about
    /// anything else go on to the handler that was there before.
    pub explain_bus_errors: bool,
}

impl Default for FileOptions {
    /// Durable fences, a window of 500 µs, no limit, created if missing.
    fn default() -> Self {
        Self {
            durability: Durability::Sync,
            group_window: Duration::from_micros(500),
            max_bytes: None,
            reserve_bytes: DEFAULT_RESERVE_BYTES,
            create: Create::IfMissing,
            explain_bus_errors: true,
        }
    }
}

/// A medium in a file of its own directory, held under an exclusive lock.
#[derive(Debug)]
pub struct FileMedium {
    // Dropped in this order: the prefiller ends, then the map, then the lock.
    prefill: Option<Prefill>,
    sync: GroupSync,
    map: Map,
    failure: Arc<Failure>,
    counters: Counters,
    durability: Durability,
    directory: Directory,
}

impl FileMedium {
    /// Opens the database in `path`, or makes an empty one as
    /// [`FileOptions::create`] says.
    ///
    /// # Errors
    /// [`MediumError::Locked`] when it is open already, here or in another
    /// process; [`MediumError::Missing`], [`MediumError::Exists`],
    /// [`MediumError::NotADirectory`], [`MediumError::NotAFile`] when it is
    /// not there or should not be; [`MediumError::Truncated`] when the data
    /// file does not hold whole chunks; [`MediumError::Full`] when it is
    /// larger than the addresses that can be reserved; [`MediumError::Io`]
    /// otherwise. An existing data file is untouched in every case.
    pub fn open(path: impl AsRef<Path>, options: FileOptions) -> Result<Arc<Self>, MediumError> {
        let directory = Directory::open(path.as_ref(), options.create)?;
        let data = clone_of(directory.data(), directory.data_path())?;
        Self::over(directory, options, Box::new(move || data.sync_data()))
    }

    /// As [`FileMedium::open`], with another call in place of the file's sync.
    #[cfg(test)]
    pub(crate) fn open_with_sync(
        path: &Path,
        options: FileOptions,
        call: SyncCall,
    ) -> Result<Arc<Self>, MediumError> {
        Self::over(Directory::open(path, options.create)?, options, call)
    }

    fn over(directory: Directory, options: FileOptions, call: SyncCall) -> Result<Arc<Self>, MediumError> {
        let sizes = MapOptions { reserve_bytes: options.reserve_bytes, max_bytes: options.max_bytes };
        let map = map_opened(&directory, sizes, Protection::ReadOnly, options.explain_bus_errors)?;
        let failure = Arc::new(Failure::default());
        let prefill = match options.durability {
            Durability::None => None,
            _ => Some(Prefill::over(&directory, map.limit(), Arc::clone(&failure))?),
        };
        let window = match options.durability {
            Durability::Group => options.group_window,
            _ => Duration::ZERO,
        };
        Ok(Arc::new(Self {
            prefill,
            sync: GroupSync::new(call, Arc::clone(&failure), window),
            map,
            failure,
            counters: Counters::new(),
            durability: options.durability,
            directory,
        }))
    }

    /// What `fence` promises.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// The data file.
    pub fn data_path(&self) -> &Path {
        self.directory.data_path()
    }

    fn attach(&self, from: u64, to: u64) -> Result<(), MediumError> {
        match &self.prefill {
            Some(prefill) => prefill.ensure(to)?,
            None => allocate(self.directory.data(), self.data_path(), from, to)?,
        }
        self.map.attach_file(self.directory.data(), Protection::ReadOnly, from, to)
    }

    fn prepare(&self, offset: u64, len: u64) -> io::Result<()> {
        match &self.prefill {
            Some(prefill) => prefill.refill(offset, len),
            None => Ok(()),
        }
    }

    fn shared_sync(&self) -> Result<(), MediumError> {
        if self.sync.sync()? {
            self.counters.add(Count::Syncs, 1);
        }
        Ok(())
    }
}

pub(crate) fn clone_of(file: &File, path: &Path) -> Result<File, MediumError> {
    file.try_clone().map_err(|error| MediumError::at("open", path, error))
}

fn pages(offset: u64, len: u64) -> u64 {
    match len {
        0 => 0,
        len => (offset + len - 1) / PAGE_BYTES - offset / PAGE_BYTES + 1,
    }
}

impl Medium for FileMedium {
    fn name(&self) -> String {
        "file".to_owned()
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
        self.map.grow(len, |from, to| self.attach(from, to))
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.failure.check()?;
        let len = bytes.len() as u64;
        self.map.check(offset, len)?;
        self.directory
            .data()
            .write_all_at(bytes, offset)
            .map_err(|error| self.failure.latch(format!("write of {len} bytes at {offset}: {error}")))?;
        self.counters.add(Count::BytesWritten, len);
        self.counters.add(Count::UnitsWritten, pages(offset, len));
        Ok(())
    }

    fn flush(&self, _offset: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediumError> {
        self.counters.add(Count::Fences, 1);
        match self.durability {
            Durability::None => self.failure.check(),
            Durability::Sync | Durability::Group => self.shared_sync(),
        }
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        self.shared_sync()
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(self.sync.next())
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.sync.is_done(point.number())
    }

    fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_chunks(offset, len)?;
        space::discard(self.directory.data(), self.data_path(), offset, len)?;
        self.counters.add(Count::BytesDiscarded, len);
        Ok(())
    }

    fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_chunks(offset, len)?;
        let prepare = || self.prepare(offset, len);
        space::restore(self.directory.data(), self.data_path(), offset, len, prepare)?;
        self.failure.check()?;
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

    fn is_failed(&self) -> bool {
        self.failure.is_latched()
    }

    fn failure(&self) -> Option<String> {
        self.failure.cause().map(str::to_owned)
    }
}

#[cfg(test)]
#[path = "file_test.rs"]
mod tests;
