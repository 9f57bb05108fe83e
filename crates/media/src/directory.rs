//! The directory of a database: its lock and its data file.

use crate::MediumError;
use crate::data_file::DataFile;
use crate::map::{Map, MapOptions, Protection};
use pantile_base::limits::GROWTH_BYTES;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The file whose lock says that the database is open.
pub const LOCK_FILE: &str = "LOCK";

/// The file that holds the contents.
pub const DATA_FILE: &str = "pantile.data";

/// What to do about a database that is not there, or is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Create {
    /// Open the database, or make an empty one.
    #[default]
    IfMissing,
    /// Fail with [`MediumError::Missing`] unless there is one.
    MustExist,
    /// Fail with [`MediumError::Exists`] if there is one.
    MustBeNew,
}

/// How to open a medium that is kept in a directory.
#[derive(Debug, Clone, Copy)]
pub struct DirectoryOptions {
    /// How large it may become.
    pub map: MapOptions,
    /// What to do about a database that is not there, or is.
    pub create: Create,
    /// Whether a read that fails is explained on stderr before SIGBUS ends
    /// the process. That takes a handler of the signal. Signals about
    /// anything else go on to the handler that was there before.
    pub explain_bus_errors: bool,
}

impl Default for DirectoryOptions {
    /// No limit, created if missing, failed reads explained.
    fn default() -> Self {
        Self { map: MapOptions::default(), create: Create::IfMissing, explain_bus_errors: true }
    }
}

/// A database directory that this process has locked. Dropping it unlocks it.
#[derive(Debug)]
pub struct Directory {
    data: Arc<DataFile>,
    len: u64,
    is_new: bool,
    _lock: File,
}

impl Directory {
    /// Locks the directory and opens its data file, which is left as it is.
    ///
    /// # Errors
    /// Those of [`FileMedium::open`](crate::FileMedium::open).
    pub fn open(path: &Path, create: Create) -> Result<Self, MediumError> {
        let data_path = path.join(DATA_FILE);
        prepare(path, &data_path, create)?;
        let lock = lock(&path.join(LOCK_FILE))?;
        // Looked at again under the lock: another opener may have been first.
        let exists = data_exists(&data_path)?;
        permit(&data_path, exists, create)?;
        let data = DataFile::open(data_path)?;
        if !exists {
            sync_directory(path)?;
        }
        let len = whole_chunks(&data)?;
        Ok(Self { data, len, is_new: !exists, _lock: lock })
    }

    /// The data file.
    pub fn data(&self) -> &Arc<DataFile> {
        &self.data
    }

    /// Removes the data file if this opening has made it.
    pub(crate) fn withdraw(self) {
        if self.is_new {
            // Best effort: an empty data file is as good as none.
            let _ = fs::remove_file(self.data.path());
        }
    }

    /// Bytes in the data file when it was opened, a multiple of the chunk size.
    pub(crate) fn opened_len(&self) -> u64 {
        self.len
    }
}

/// Reserves addresses and maps what the data file had when it was opened.
/// A limit below that is raised to it.
pub(crate) fn map_opened(
    directory: &Directory,
    options: DirectoryOptions,
    protection: Protection,
) -> Result<Map, MediumError> {
    let len = directory.opened_len();
    let mut map = Map::reserve(MapOptions {
        reserve_bytes: options.map.reserve_bytes.max(len),
        max_bytes: options.map.max_bytes.map(|max| max.max(len)),
    })?;
    let data = directory.data();
    if options.explain_bus_errors {
        map.explain_bus_errors(data.file(), data.path());
    }
    map.grow(len, |from, to| map.attach_file(data.file(), protection, from, to))?;
    Ok(map)
}

/// Makes the directory if `create` asks for it, and touches nothing otherwise.
fn prepare(path: &Path, data_path: &Path, create: Create) -> Result<(), MediumError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(MediumError::NotADirectory { path: path.into() }),
        Ok(_) => permit(data_path, data_exists(data_path)?, create),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(MediumError::at("look at", path, error)),
        Err(_) if create == Create::MustExist => Err(MediumError::Missing { path: path.into() }),
        Err(_) => make_directory(path),
    }
}

fn make_directory(path: &Path) -> Result<(), MediumError> {
    fs::create_dir_all(path).map_err(|error| MediumError::at("create", path, error))?;
    let parent = path.parent().filter(|parent| *parent != Path::new(""));
    sync_directory(parent.unwrap_or(Path::new(".")))
}

fn data_exists(data_path: &Path) -> Result<bool, MediumError> {
    match fs::metadata(data_path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(MediumError::NotAFile { path: data_path.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(MediumError::at("look at", data_path, error)),
    }
}

fn permit(data_path: &Path, exists: bool, create: Create) -> Result<(), MediumError> {
    let path = data_path.to_path_buf();
    match (create, exists) {
        (Create::MustExist, false) => Err(MediumError::Missing { path }),
        (Create::MustBeNew, true) => Err(MediumError::Exists { path }),
        _ => Ok(()),
    }
}

fn lock(path: &Path) -> Result<File, MediumError> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| MediumError::at("open", path, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(MediumError::Locked { path: path.into() }),
        Err(TryLockError::Error(error)) => Err(MediumError::at("lock", path, error)),
    }
}

fn whole_chunks(data: &DataFile) -> Result<u64, MediumError> {
    let path = data.path();
    let found = data.file().metadata().map_err(|error| MediumError::at("look at", path, error))?;
    match found.len() {
        len if len.is_multiple_of(GROWTH_BYTES) => Ok(len),
        len => Err(MediumError::Truncated { path: path.into(), len }),
    }
}

/// Makes the names in a directory durable.
fn sync_directory(path: &Path) -> Result<(), MediumError> {
    File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| MediumError::at("sync", path, error))
}
