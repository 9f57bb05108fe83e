//! What the media over a [`Map`] share: facts, counters, the failure latch and
//! the directory.

use crate::MediumError;
use crate::data_file::DataFile;
use crate::directory::{Directory, DirectoryOptions, map_opened};
use crate::failure::Failure;
use crate::limits::Explained;
use crate::map::{Map, MapOptions, Protection};
use crate::medium::{Facts, MediumStatus};
use crate::stats::{Count, Counters};
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

/// Mapped contents, in memory or in the data file of a directory. Dropping
/// them takes the mapping down, then unlocks the directory.
#[derive(Debug)]
pub struct Contents {
    /// What stays the same.
    pub facts: Facts,
    /// The mapping.
    pub map: Arc<Map>,
    /// Closed by the first write or sync that fails.
    pub failure: Arc<Failure>,
    /// What has been done so far.
    pub counters: Counters,
    directory: Option<Directory>,
}

impl Contents {
    /// Nothing yet, in memory.
    ///
    /// # Errors
    /// [`MediumError::Io`] when no addresses can be reserved.
    pub fn in_memory(name: impl Into<String>, options: MapOptions) -> Result<Self, MediumError> {
        Ok(Self::over(name, Map::reserve(options)?, None))
    }

    /// What the data file of a directory has.
    ///
    /// # Errors
    /// [`MediumError::Full`] without addresses for it, [`MediumError::Io`] otherwise.
    pub fn in_directory(
        name: impl Into<String>,
        directory: Directory,
        options: DirectoryOptions,
        protection: Protection,
    ) -> Result<Self, MediumError> {
        match map_opened(&directory, options, protection) {
            Ok(map) => Ok(Self::over(name, map, Some(directory))),
            Err(error) => {
                directory.withdraw();
                Err(error)
            }
        }
    }

    fn over(name: impl Into<String>, map: Map, directory: Option<Directory>) -> Self {
        let file = directory.as_ref().map(|directory| Arc::clone(directory.data()));
        let beside = directory.as_ref().map(Directory::beside);
        let survives_exit = file.is_some();
        let facts = Facts {
            survives_exit,
            mapped: file.clone(),
            file,
            beside,
            ..Facts::new(name, map.base(), map.limit())
        };
        let failure = directory.as_ref().map_or_else(Failure::default, |d| Failure::of_file(d.place()));
        Self { facts, map: Arc::new(map), failure: Arc::new(failure), counters: Counters::new(), directory }
    }

    /// The data file, if there is one.
    pub fn file(&self) -> Option<&Arc<DataFile>> {
        self.facts.file.as_ref()
    }

    /// Grows to at least `len` bytes, and no further.
    ///
    /// # Errors
    /// Those of [`Medium::grow`](crate::Medium::grow).
    pub fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.map.grow(len, |from, to| attach(&self.map, self.file(), from, to))
    }

    /// Fails once the latch is closed, or if there are no `len` bytes at `offset`.
    #[inline]
    pub fn check(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check(offset, len)
    }

    /// Stores through the mapping.
    ///
    /// # Safety
    /// The range is attached and writable, and no other thread uses it meanwhile.
    #[inline]
    pub unsafe fn store(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: as the caller promises.
        unsafe {
            ptr::copy_nonoverlapping(bytes.as_ptr(), self.map.at(offset).cast(), bytes.len());
        }
        self.counters.add(Count::BytesWritten, bytes.len() as u64);
    }

    /// Fails, and closes the latch, if the data file is no longer where it was
    /// opened.
    ///
    /// # Errors
    /// [`MediumError::Failed`].
    pub fn check_place(&self) -> Result<(), MediumError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        directory.place().check().map_err(|moved| self.failure.latch(moved.to_string()))
    }

    /// [`Medium::withdraw`](crate::Medium::withdraw).
    pub fn withdraw(&self) {
        if let Some(directory) = &self.directory {
            directory.withdraw();
        }
    }

    /// Syncs the file's contents; `also_records` syncs its length and what it
    /// takes on the device, too. A failure closes the latch.
    ///
    /// # Errors
    /// [`MediumError::Failed`].
    pub fn sync_file(&self, file: &DataFile, also_records: bool) -> Result<(), MediumError> {
        self.counters.add(Count::Syncs, 1);
        let synced = if also_records { file.file().sync_all() } else { file.file().sync_data() };
        synced.map_err(|error| self.failure.latch_sync(format!("sync: {}", Explained(&error))))
    }

    /// [`Medium::shrink`](crate::Medium::shrink); `forget` is told how much is left.
    ///
    /// # Errors
    /// Those of the method.
    ///
    /// # Safety
    /// No thread uses the bytes beyond.
    pub unsafe fn shrink(&self, len: u64, forget: impl FnOnce(u64)) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.shrink(len, |left| {
            forget(left);
            self.file().map_or(Ok(()), |file| file.cut(left))
        })
    }

    /// [`Medium::discard`](crate::Medium::discard); `forget` is called before anything is
    /// given back.
    ///
    /// # Errors
    /// Those of the method.
    ///
    /// # Safety
    /// That of the method.
    pub unsafe fn discard(&self, offset: u64, len: u64, forget: impl FnOnce()) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_aligned(offset, len)?;
        forget();
        match self.file() {
            Some(file) => file.discard(offset, len)?,
            None => self.map.discard_memory(offset, len),
        }
        self.counters.add(Count::BytesDiscarded, len);
        Ok(())
    }

    /// [`Medium::restore`](crate::Medium::restore); `prepare` makes a file's
    /// new space ready for use, and may close the latch.
    ///
    /// # Errors
    /// Those of the method.
    ///
    /// # Safety
    /// That of the method.
    pub unsafe fn restore(
        &self,
        offset: u64,
        len: u64,
        prepare: impl FnOnce() -> io::Result<()>,
    ) -> Result<(), MediumError> {
        self.failure.check()?;
        self.map.check_aligned(offset, len)?;
        if let Some(file) = self.file() {
            file.restore(offset, len, prepare)?;
            self.failure.check()?;
        }
        self.counters.add(Count::BytesRestored, len);
        Ok(())
    }

    /// [`Medium::fill_holes`](crate::Medium::fill_holes).
    ///
    /// # Errors
    /// Those of the method.
    pub fn fill_holes(&self, except: &[Range<u64>]) -> Result<(), MediumError> {
        self.file().map_or(Ok(()), |file| file.fill_holes(self.map.len(), except))
    }

    /// [`Medium::status`](crate::Medium::status).
    pub fn status(&self) -> MediumStatus {
        MediumStatus { stats: self.counters.snapshot(), failure: self.failure.cause() }
    }
}

/// Puts memory behind a range of a map, or new space of the file.
pub(crate) fn attach(map: &Map, file: Option<&Arc<DataFile>>, from: u64, to: u64) -> Result<(), MediumError> {
    match file {
        Some(file) => {
            file.allocate(from, to)?;
            map.attach_file(file.file(), Protection::ReadWrite, from, to)
        }
        None => map.attach_memory(from, to),
    }
}
