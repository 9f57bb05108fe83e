//! A data file as it is, for readers that must not change it.
//!
//! The file is opened for reading and mapped privately: what is written stays
//! in this process, so that recovery can be tried on it and seen to work.

use crate::beside::{BesideFile, Kept, open_files};
use crate::contents::Contents;
use crate::data_file::{DATA_FILE, DataFile};
use crate::journal;
use crate::lock::{Lock, Sharing};
use crate::map::{Map, MapOptions, Protection, round_up};
use crate::os::{self, Identity, read_exact_at};
use crate::reader_mark;
use crate::{Facts, Medium, MediumError, MediumStatus};
use pantile_base::sync::Mutex;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::Arc;

/// The unit in which a device is read, and in which unreadable places are reported.
const PAGE_BYTES: u64 = 4096;

/// Bytes read at once to find out whether the file can be read.
const TRY_BYTES: u64 = 1 << 20;

/// Chunks that writes to a view may add to it.
const ROOM_CHUNKS: u64 = 64;

/// The data file of a database that another process may have open. It is marked
/// as being read as long as this is open.
#[derive(Debug)]
pub struct ReaderFile {
    directory: PathBuf,
    /// The data file's own name, which does not depend on the current directory.
    name: PathBuf,
    data: File,
    mark: Option<u64>,
    lock: Option<Lock>,
}

impl ReaderFile {
    /// Opens and marks the data file of the database in the directory `path`.
    ///
    /// # Errors
    /// [`MediumError::NoPath`], [`MediumError::Missing`], [`MediumError::NotADirectory`],
    /// [`MediumError::NotAFile`]; [`MediumError::Io`] otherwise.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, MediumError> {
        let path = path.as_ref();
        let data = open_data(path)?;
        let mark = reader_mark::set(&data);
        let mark =
            mark.map_err(|error| MediumError::at("mark as being read", path.join(DATA_FILE), error))?;
        let name = path.join(DATA_FILE);
        let name = name.canonicalize().map_err(|error| MediumError::at("look at", &name, error))?;
        Ok(Self { directory: path.into(), name, data, mark, lock: None })
    }

    /// Its mark, by which [`DataFile`](crate::DataFile) knows it. None where the
    /// system has no marks: nobody may open the database while this is read.
    pub fn mark(&self) -> Option<u64> {
        self.mark
    }

    /// Which file it is, whatever it is called: its device and its number there.
    ///
    /// # Errors
    /// [`MediumError::Io`].
    pub fn identity(&self) -> Result<Identity, MediumError> {
        let found = os::look(&self.data).map(|found| found.identity);
        found.map_err(|error| MediumError::at("look at", &self.directory, error))
    }

    /// Whether a process of this user that answers for the one that has the file open may be believed: anybody can
    /// listen in its place, and what is read must not be changed meanwhile.
    pub fn is_served_by(&self, (process, user): (u32, u32)) -> bool {
        os::is_trusted(user, &self.data) || os::holder_of(&self.data) == Some(process)
    }

    /// Locks the database against openers, until the view is told to
    /// [admit them](ViewMedium::admit_openers).
    ///
    /// # Errors
    /// [`MediumError::Locked`] when another process has it open.
    pub fn lock(&mut self) -> Result<(), MediumError> {
        self.lock = Some(Lock::take(&self.data, &self.directory, Sharing::WithReaders)?);
        Ok(())
    }

    /// The file as it is now. If it is not locked, the process that has it open
    /// must not change what is read.
    ///
    /// # Errors
    /// As [`ViewMedium::open`], without [`MediumError::Locked`].
    pub fn view(self) -> Result<Arc<ViewMedium>, MediumError> {
        let data_path = self.directory.join(DATA_FILE);
        let has_no_writer = self.lock.is_some();
        let mut view = ViewMedium::over(&self.directory, self.data, self.lock)?;
        if let Some(map) = Arc::get_mut(&mut view.contents.map) {
            map.explain_bus_errors(view.data.file(), &data_path, Protection::ReadOnly);
        }
        if has_no_writer {
            view.add_journal(&self.name)?;
        }
        Ok(Arc::new(view))
    }
}

/// A data file that is read and never written, whatever is written to this medium.
///
/// The database is locked against openers as long as the view is open; there
/// can be any number of views. A file that does not end with a whole chunk
/// reads as if zeros followed. A view of a [`ReaderFile`] is not locked, or not for long.
#[derive(Debug)]
pub struct ViewMedium {
    contents: Contents,
    file_len: u64,
    unreadable: Vec<u64>,
    journal_problem: Option<String>,
    data: Arc<DataFile>,
    images: Vec<Arc<dyn BesideFile>>,
    lock: Mutex<Option<Lock>>,
}

/// Opens the data file of the database in a directory.
fn open_data(path: &Path) -> Result<File, MediumError> {
    if path.as_os_str().is_empty() {
        return Err(MediumError::NoPath);
    }
    let found = path.metadata().map_err(|error| missing("look at", path, error))?;
    if !found.is_dir() {
        return Err(MediumError::NotADirectory { path: path.into() });
    }
    let data_path = path.join(DATA_FILE);
    let found = data_path.metadata().map_err(|error| missing("look at", &data_path, error))?;
    if !found.is_file() {
        return Err(MediumError::NotAFile { path: data_path });
    }
    File::open(&data_path).map_err(|error| missing("open", &data_path, error))
}

impl ViewMedium {
    /// Opens the database in the directory `path`. Reads the whole file once,
    /// so that a place that the device cannot read is known and does not end
    /// the process later. Calls `progress` with the bytes read and to be read, until it returns `Break`.
    ///
    /// # Errors
    /// [`MediumError::Locked`] when it is open, here or in another process;
    /// [`MediumError::NoPath`], [`MediumError::Missing`], [`MediumError::NotADirectory`],
    /// [`MediumError::NotAFile`]; [`MediumError::Full`] when the file is larger
    /// than the addresses that can be had; [`MediumError::Stopped`] by `progress`; [`MediumError::Io`] otherwise.
    pub fn open(
        path: impl AsRef<Path>,
        progress: &dyn Fn(u64, u64) -> ControlFlow<()>,
    ) -> Result<Arc<Self>, MediumError> {
        let path = path.as_ref();
        let data = open_data(path)?;
        let lock = Lock::take(&data, path, Sharing::WithReaders)?;
        let mut view = Self::over(path, data, Some(lock))?;
        view.images = open_files(path).into_iter().flatten().collect();
        view.fill_holes()?;
        view.try_pages(progress)?;
        view.journal_problem = view.add_journal(&path.join(DATA_FILE)).err().map(|error| error.to_string());
        Ok(Arc::new(view))
    }

    fn over(directory: &Path, data: File, lock: Option<Lock>) -> Result<Self, MediumError> {
        let data_path = directory.join(DATA_FILE);
        let found = data.metadata().map_err(|error| MediumError::at("look at", &data_path, error))?;
        let file_len = found.len();
        let reserve_bytes = round_up(file_len) + ROOM_CHUNKS * pantile_base::limits::CHUNK_BYTES;
        let mut contents = Contents::in_memory("view", MapOptions { reserve_bytes, max_bytes: None })?;
        contents.facts.survives_exit = true;
        let short = |error| match error {
            // Nothing is to be written, so nothing is full.
            MediumError::Full { .. } => MediumError::at("map", &data_path, ErrorKind::OutOfMemory.into()),
            other => other,
        };
        contents.grow(file_len).map_err(short)?;
        contents.map.attach_private(&data, file_len).map_err(short)?;
        let data = DataFile::read_only(data_path, data);
        contents.facts.mapped = Some(Arc::clone(&data));
        let (unreadable, images) = (Vec::new(), Vec::new());
        let lock = Mutex::new(lock);
        Ok(Self { contents, file_len, unreadable, journal_problem: None, data, images, lock })
    }

    /// Adds what the journal has to what is seen, as opening does to the file (I-38). No other thread has the view yet.
    fn add_journal(&self, name: &Path) -> Result<(), MediumError> {
        let Some(found) = journal::Found::beside(name)? else { return Ok(()) };
        found.check_fits(self.data.file())?;
        let mut differs = false;
        for (offset, bytes) in found.writes() {
            let mut there = vec![0; bytes.len()];
            let is_read = read_exact_at(self.data.file(), &mut there, offset).is_ok();
            // After a kill the file has all of it, and its pages stay shared with the page cache.
            differs |= !is_read || there != bytes;
            if differs {
                self.contents.grow(offset + bytes.len() as u64)?;
                // SAFETY: the range is attached and writable, and nobody else uses it.
                unsafe { self.contents.store(offset, bytes) };
            }
        }
        Ok(())
    }

    /// Lets others open the database. They must leave what this view reads as it
    /// is, and know of it by the mark of the [`ReaderFile`].
    pub fn admit_openers(&self) {
        if let Some(lock) = self.lock.lock().take() {
            lock.release(self.data.file());
        }
    }

    /// Bytes of the file, which may not be whole chunks.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// Offsets of the pages that the device cannot read; they read as zeros here.
    pub fn unreadable(&self) -> &[u64] {
        &self.unreadable
    }

    /// Adds what the journal has to a copy of the file.
    ///
    /// # Errors
    /// [`MediumError::Io`], also if the journal cannot be used.
    pub fn add_journal_to(&self, copy: &File) -> Result<(), MediumError> {
        let Some(found) = journal::Found::beside(self.data.path())? else { return Ok(()) };
        found.check_fits(self.data.file())?;
        found.write_to(copy).map_err(|error| MediumError::at("copy", self.data.path(), error))
    }

    /// Why the journal beside the file is left out, if it is.
    pub fn journal_problem(&self) -> Option<&str> {
        self.journal_problem.as_deref()
    }

    /// The index images beside the file: none, one, or one with its successor.
    pub fn images(&self) -> &[Arc<dyn BesideFile>] {
        &self.images
    }

    /// The same file once more, apart from what has been written to this view, and with the index images beside
    /// it, as opening finds them. This view must stay, for it has the lock.
    ///
    /// # Errors
    /// As [`ViewMedium::open`], without [`MediumError::Locked`].
    pub fn with_images(&self) -> Result<Arc<Self>, MediumError> {
        let path = self.data.path();
        let data = self.data.file().try_clone().map_err(|error| missing("open", path, error))?;
        let mut view = Self::over(path.parent().unwrap_or(Path::new("")), data, None)?;
        view.contents.facts.beside = Some(Arc::new(Kept(self.images.clone())));
        view.fill_holes()?;
        view.unreadable.clone_from(&self.unreadable);
        view.unreadable.iter().try_for_each(|at| view.contents.map.replace(*at, PAGE_BYTES))?;
        if self.journal_problem.is_none() {
            view.add_journal(path)?;
        }
        Ok(Arc::new(view))
    }

    /// Makes holes read as zeros where a load would put memory into them. Nothing
    /// changes the file meanwhile.
    fn fill_holes(&self) -> Result<(), MediumError> {
        let mut holes = os::holes_that_take_memory(self.data.file(), self.file_len).into_iter();
        holes.try_for_each(|hole| {
            let from = hole.start.next_multiple_of(PAGE_BYTES);
            self.contents.map.replace(from, hole.end.next_multiple_of(PAGE_BYTES).saturating_sub(from))
        })
    }

    fn try_pages(&mut self, progress: &dyn Fn(u64, u64) -> ControlFlow<()>) -> Result<(), MediumError> {
        let mut buffer = vec![0; TRY_BYTES as usize];
        for at in (0..self.file_len).step_by(TRY_BYTES as usize) {
            let len = TRY_BYTES.min(self.file_len - at);
            if read_exact_at(self.data.file(), &mut buffer[..len as usize], at).is_err() {
                self.try_each_page(at, len)?;
            }
            if progress(at + len, self.file_len).is_break() {
                return Err(MediumError::Stopped);
            }
        }
        Ok(())
    }

    fn try_each_page(&mut self, at: u64, len: u64) -> Result<(), MediumError> {
        let mut page = [0; PAGE_BYTES as usize];
        for at in (at..at + len).step_by(PAGE_BYTES as usize) {
            let len = PAGE_BYTES.min(self.file_len - at) as usize;
            if read_exact_at(self.data.file(), &mut page[..len], at).is_err() {
                self.contents.map.replace(at, PAGE_BYTES)?;
                self.unreadable.push(at);
            }
        }
        Ok(())
    }
}

fn missing(operation: &'static str, path: &Path, error: io::Error) -> MediumError {
    match error.kind() {
        ErrorKind::NotFound => MediumError::Missing { path: path.into() },
        _ => MediumError::at(operation, path, error),
    }
}

impl Map {
    /// Puts the `len` bytes of `file` behind the first bytes, which are
    /// attached; what is stored there does not reach the file.
    fn attach_private(&self, file: &File, len: u64) -> Result<(), MediumError> {
        if len == 0 {
            return Ok(());
        }
        let len = len.next_multiple_of(PAGE_BYTES);
        // SAFETY: the range is attached to a view that no other thread has yet.
        let attached = unsafe { os::attach_private(self.at(0), len, file) };
        attached.map_err(|error| MediumError::growing("map", None, len, error))
    }

    /// Puts zeros in place of attached pages.
    fn replace(&self, at: u64, len: u64) -> Result<(), MediumError> {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: as in `attach_private`.
        let replaced = unsafe { os::replace_private(self.at(at), len) };
        replaced.map_err(|error| MediumError::growing("map", None, at + len, error))
    }
}

impl Drop for ViewMedium {
    fn drop(&mut self) {
        self.admit_openers();
    }
}

// SAFETY: the mapping lasts as long as `contents` and never shrinks. Only
// `write`, `discard` and `restore` store to it. The lock keeps openers
// from changing the file; without it they leave alone what is read (I-27).
unsafe impl Medium for ViewMedium {
    fn facts(&self) -> &Facts {
        &self.contents.facts
    }

    fn len(&self) -> u64 {
        self.contents.map.len()
    }

    fn grow(&self, len: u64) -> Result<(), MediumError> {
        self.contents.grow(len)
    }

    unsafe fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), MediumError> {
        self.contents.map.check(offset, bytes.len() as u64)?;
        // SAFETY: the range is attached and writable, and the caller of
        // `write` promises that no other thread uses these bytes meanwhile.
        unsafe { self.contents.store(offset, bytes) };
        Ok(())
    }

    fn flush(&self, _offset: u64, _len: u64) {}

    fn fence(&self) -> Result<(), MediumError> {
        Ok(())
    }

    fn sync_all(&self) -> Result<(), MediumError> {
        Ok(())
    }

    unsafe fn discard(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        self.contents.map.check_aligned(offset, len)?;
        // SAFETY: as for `write`. Giving the pages back would bring the file's.
        unsafe { ptr::write_bytes(self.contents.map.at(offset).cast::<u8>(), 0, len as usize) };
        Ok(())
    }

    unsafe fn restore(&self, offset: u64, len: u64) -> Result<(), MediumError> {
        // SAFETY: as the caller promises.
        unsafe { self.contents.restore(offset, len, || Ok(())) }
    }

    fn status(&self) -> MediumStatus {
        self.contents.status()
    }
}

#[cfg(test)]
#[path = "view_test.rs"]
mod tests;
