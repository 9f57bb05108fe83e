//! An ordinary file: reads through a mapping, writes by `pwrite`, and small ones by
//! stores where commits do not wait for the device (see `stores`).
//!
//! A buffered `pwrite` is coherent with a shared mapping of the same file, and
//! cheaper to make durable than stores through the mapping. A sync costs least over bytes that were written before, so files
//! that are synced grow by space already filled with zeros (see `prefill`). Few bytes are made durable by a sync
//! of the journal instead (see `journal`).

use crate::contents::Contents;
use crate::data_file::DataFile;
use crate::directory::{Create, Directory, DirectoryOptions};
use crate::group_sync::{GroupSync, SyncCall};
use crate::journal::Journal;
use crate::limits::Explained;
use crate::map::{DEFAULT_RESERVE_BYTES, MapOptions, Protection, is_memory};
use crate::memory::available_memory;
use crate::os;
use crate::prefill::Prefill;
use crate::stats::Count;
use crate::stores::Stores;
use crate::writeback::Writeback;
use crate::{Facts, Medium, MediumError, MediumStatus, Reads, SyncPoint};
use parking_lot::Mutex;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};
use std::time::Duration;

/// Bytes of a page: the unit in which the system writes a file to its device.
const PAGE_BYTES: u64 = 4096;

/// What a commit promises once it is acknowledged.
///
/// A killed process loses no acknowledged commit with any of these. They differ in what a power
/// failure, or a crash of the operating system, can lose.
///
/// The enum is exhaustive, so a program can match on it. Another durability would come with a new
/// major version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power failure loses no acknowledged commit. Concurrent commits share a sync of the file.
    #[default]
    Sync,
    /// The same guarantee as [`Durability::Sync`]. A commit may wait a little, so that more commits
    /// share a sync.
    Group,
    /// Commits do not wait for the device. After a power failure, the database is in a consistent
    /// earlier state: it has every commit up to some moment, and none after it. The moment is that
    /// of the last state record; see "Recovery" in `docs/design.md`. `Database::sync` makes it the present one. What else
    /// waits for durability does not wait here: commits, `InFlight::wait`, `prepare`, `create_table` and other definitions.
    ///
    /// On ext4 and tmpfs, small writes are stores through a mapping, without a system call. Such a
    /// store fails if the device cannot read the page that it changes, if the file system has
    /// become read-only, or if another program has truncated the file. A failed store ends the
    /// process with an explanation, as a failed read does. On other file systems, and for larger
    /// writes, the commit returns an error instead.
    None,
}

/// How to open a [`FileMedium`].
#[derive(Debug, Clone, Copy)]
pub struct FileOptions {
    /// What `fence` promises.
    pub durability: Durability,
    /// Longest time a leader waits for companions under [`Durability::Group`].
    /// It waits only for as many as were active when the last sync ended, so
    /// that a lone committer never waits.
    pub group_window: Duration,
    /// Most bytes the data file may have; `None` is `reserve_bytes`.
    pub max_bytes: Option<u64>,
    /// Bytes of address space to reserve, see [`MapOptions::reserve_bytes`].
    pub reserve_bytes: u64,
    /// What to do about a database that is not there, or is.
    pub create: Create,
    /// See [`DirectoryOptions::explain_bus_errors`].
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
    // Dropped first: its thread writes to the file.
    prefill: Option<Prefill>,
    /// Only where the system can be asked.
    writeback: Option<Writeback>,
    /// Only where commits are not synced: a page that was is slower to store to than to write.
    stores: Option<Stores>,
    /// Only where commits are synced, and where a sync writes to a device.
    journal: Option<Arc<Journal>>,
    sync: GroupSync,
    file: Arc<DataFile>,
    contents: Contents,
    durability: Durability,
    /// Bytes written and syncs made when the file last grew.
    last_growth: Mutex<Option<[u64; 2]>>,
}

/// Where commits write less than this, new space is written with zeros before it
/// is used. Zeros cost as much as what they make room for, and only those who
/// sync often get it back.
const SMALL_COMMIT: u64 = 4096;

impl FileMedium {
    /// Opens the database in `path`, or makes an empty one as
    /// [`FileOptions::create`] says.
    ///
    /// # Errors
    /// [`MediumError::Locked`] when it is open already, here or in another
    /// process; [`MediumError::NoPath`], [`MediumError::Missing`], [`MediumError::Exists`],
    /// [`MediumError::NotADirectory`], [`MediumError::NotAFile`] when it is
    /// not there or should not be; [`MediumError::Truncated`] when the data
    /// file does not hold whole chunks; [`MediumError::Full`] when it is
    /// larger than the addresses that can be reserved; [`MediumError::Io`]
    /// otherwise. An existing data file has the bytes that it had in every case, and what
    /// was made for a new one is removed.
    pub fn open(path: impl AsRef<Path>, options: FileOptions) -> Result<Arc<Self>, MediumError> {
        let directory = Directory::open(path.as_ref(), options.create)?;
        let file = Arc::clone(directory.data());
        let has_journal = options.durability != Durability::None && !os::is_in_memory(file.file());
        Self::over(directory, options, Box::new(move || file.file().sync_data()), has_journal)
    }

    /// As [`FileMedium::open`], with another call in place of the file's sync.
    #[cfg(test)]
    pub(crate) fn open_with_sync(
        path: &Path,
        options: FileOptions,
        sync_data: SyncCall,
        has_journal: bool,
    ) -> Result<Arc<Self>, MediumError> {
        Self::over(Directory::open(path, options.create)?, options, sync_data, has_journal)
    }

    fn over(
        directory: Directory,
        options: FileOptions,
        sync_data: SyncCall,
        has_journal: bool,
    ) -> Result<Arc<Self>, MediumError> {
        let FileOptions { durability, max_bytes, reserve_bytes, create, explain_bus_errors, group_window } =
            options;
        let map = MapOptions { reserve_bytes, max_bytes };
        let (file, filled) = (Arc::clone(directory.data()), directory.opened_len());
        let place = Arc::clone(directory.place());
        let options = DirectoryOptions { map, create, explain_bus_errors };
        let mut contents = Contents::in_directory("file", directory, options, Protection::ReadOnly)?;
        if !is_memory(file.file(), Protection::ReadOnly) {
            contents.facts.cached_in = available_memory();
        }
        let (is_synced, limit) = (durability != Durability::None, contents.facts.limit);
        let prefill = || Prefill::over(&file, filled, limit, &contents.failure);
        let stores = || Stores::over(&file, filled, limit, explain_bus_errors);
        let journal = has_journal.then(|| Arc::new(Journal::of(&file, &place, &contents.counters)));
        let through = journal.clone();
        let call: SyncCall = Box::new(move || {
            through.as_ref().map_or_else(&sync_data, |journal| journal.sync(&sync_data))?;
            place.check_now_and_then()
        });
        let window = if durability == Durability::Group { group_window } else { Duration::ZERO };
        Ok(Arc::new(Self {
            prefill: is_synced.then(prefill),
            writeback: Writeback::over(&file),
            stores: if is_synced { None } else { stores() },
            journal,
            sync: GroupSync::new(call, Arc::clone(&contents.failure), window),
            file,
            contents,
            durability,
            last_growth: Mutex::default(),
        }))
    }

    /// The data file.
    pub fn data_path(&self) -> &Path {
        self.file.path()
    }

    fn attach(&self, from: u64, to: u64) -> Result<(), MediumError> {
        let found = match &self.prefill {
            Some(prefill) => {
                let is_synced_often = !self.journal.as_ref().is_some_and(|journal| journal.is_used());
                prefill.ensure(to, is_synced_often && self.commits_are_small())
            }
            None => self.file.allocate(from, to),
        };
        self.need_data();
        found?;
        self.stores.iter().for_each(|stores| stores.grow(to));
        self.contents.map.attach_file(self.file.file(), Protection::ReadOnly, from, to)
    }

    /// The next sync has to be one of the data file.
    fn need_data(&self) {
        self.journal.iter().for_each(|journal| journal.need_data());
    }

    /// Whether they have been since the file last grew, each with its share of a
    /// sync. A file that grows without one is growing for a large transaction.
    fn commits_are_small(&self) -> bool {
        let counters = &self.contents.counters;
        let now = [Count::BytesWritten, Count::Syncs].map(|count| counters.total(count));
        let last = self.last_growth.lock().replace(now);
        last.is_none_or(|[bytes, syncs]| {
            let [bytes, syncs] = [now[0] - bytes, now[1] - syncs];
            syncs > 0 && bytes <= syncs * SMALL_COMMIT
        })
    }

    fn shared_sync(&self) -> Result<(), MediumError> {
        let is_leader = self.sync.sync()?;
        self.note_sync(is_leader);
        Ok(())
    }

    fn note_sync(&self, is_leader: bool) {
        if is_leader {
            self.contents.counters.add(Count::Syncs, 1);
        }
    }
}

impl Drop for FileMedium {
    fn drop(&mut self) {
        // A forked child fails here: the file is its parent's.
        if self.contents.failure.check().is_ok() {
            self.journal.iter().for_each(|journal| journal.remove());
        }
    }
}

fn pages(offset: u64, len: u64) -> u64 {
    match len {
        0 => 0,
        len => (offset + len - 1) / PAGE_BYTES - offset / PAGE_BYTES + 1,
    }
}

// SAFETY: the mapping lasts as long as `contents` and never shrinks. Its file is
// written by `write`, `discard` and `restore`, beyond `len` by the prefiller,
// and by nobody who does not go around the lock of the database.
unsafe impl Medium for FileMedium {
    fn facts(&self) -> &Facts {
        &self.contents.facts
    }

    #[inline]
    fn len(&self) -> u64 {
        self.contents.map.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.contents.failure.check()?;
        self.contents.map.grow(len, |from, to| self.attach(from, to))
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        let len = bytes.len() as u64;
        self.contents.check(offset, len)?;
        // A reader in another process sees first what was stored first, also before a call.
        fence(Ordering::Release);
        // SAFETY: as the caller promises.
        let is_stored = self.stores.as_ref().is_some_and(|stores| unsafe { stores.store(offset, bytes) });
        if !is_stored {
            self.file.write(bytes, offset).map_err(|error| {
                let why = Explained(&error);
                self.contents.failure.latch(format!("write of {len} bytes at {offset}: {why}"))
            })?;
            self.writeback.iter().for_each(|writeback| writeback.note(offset, len));
        }
        self.journal.iter().for_each(|journal| journal.note(offset, bytes));
        self.contents.counters.add(Count::BytesWritten, len);
        self.contents.counters.add(Count::UnitsWritten, pages(offset, len));
        Ok(())
    }

    fn flush(&self, _offset: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediumError> {
        self.begin_fence()?.map_or(Ok(()), |point| self.end_fence(point))
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        // A fork has no thread that gives locks back.
        self.contents.failure.check()?;
        self.stores.iter().for_each(Stores::let_go);
        self.need_data();
        self.shared_sync()?;
        self.contents.check_place()
    }

    fn begin_fence(&self) -> Result<Option<SyncPoint>, MediumError> {
        self.contents.counters.add(Count::Fences, 1);
        self.contents.failure.check()?;
        Ok(match self.durability {
            Durability::None => None,
            Durability::Sync | Durability::Group => Some(self.sync_point()),
        })
    }

    fn end_fence(&self, point: SyncPoint) -> Result<(), MediumError> {
        let is_leader = self.sync.reach(point.number())?;
        self.note_sync(is_leader);
        Ok(())
    }

    fn sync_point(&self) -> SyncPoint {
        SyncPoint::new(self.sync.next())
    }

    fn is_durable(&self, point: SyncPoint) -> bool {
        self.sync.is_done(point.number())
    }

    fn advise(&self, reads: Reads) {
        match reads {
            _ if self.contents.facts.cached_in.is_none() => {}
            Reads::AtRandom => self.contents.map.expect(os::AT_RANDOM),
            Reads::Soon { offset, len } => self.contents.map.fetch(offset, len),
        }
    }

    unsafe fn shrink(&self, len: u64) -> Result<(), MediumError> {
        let forget = |left| {
            self.prefill.iter().for_each(|prefill| prefill.shrink(left));
            self.stores.iter().for_each(|stores| stores.shrink(left));
        };
        // SAFETY: as the caller promises.
        let done = unsafe { self.contents.shrink(len, forget) };
        self.need_data();
        done
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let forget = || self.stores.iter().for_each(|stores| stores.forget(offset, len));
        // SAFETY: as the caller promises.
        let done = unsafe { self.contents.discard(offset, len, forget) };
        self.need_data();
        done
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        let prepare = || self.prefill.as_ref().map_or(Ok(()), |prefill| prefill.refill(offset, len));
        // SAFETY: as the caller promises.
        let done = unsafe { self.contents.restore(offset, len, prepare) };
        self.need_data();
        done
    }

    fn fill_holes(&self, except: &[Range<u64>]) -> Result<(), MediumError> {
        let done = self.contents.fill_holes(except);
        self.need_data();
        done
    }

    fn status(&self) -> MediumStatus {
        self.contents.status()
    }

    fn withdraw(&self) {
        self.contents.withdraw();
    }
}

#[cfg(test)]
#[path = "file_test.rs"]
mod tests;
