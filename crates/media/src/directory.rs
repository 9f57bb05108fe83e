//! The directory of a database, and its data file.

use crate::MediumError;
use crate::beside::{Beside, InDirectory};
use crate::data_file::{DATA_FILE, DataFile};
use crate::files::leads_to;
use crate::journal;
use crate::lock::{Lock, Sharing};
use crate::map::{Map, MapOptions, Protection};
use crate::os::{holder_of, sync_path};
use crate::place::Place;
use pantile_base::limits::GROWTH_BYTES;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

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

/// The process that has the database in a directory open, as far as the system
/// says. The database is not touched.
pub fn user_of(directory: &Path) -> Option<u32> {
    File::open(directory.join(DATA_FILE)).ok().as_ref().and_then(holder_of)
}

/// A database directory whose data file this process has locked. Dropping it
/// unlocks it.
#[derive(Debug)]
pub struct Directory {
    data: Arc<DataFile>,
    len: u64,
    lock: Lock,
    place: Arc<Place>,
    made: Made,
}

impl Directory {
    /// Opens the data file and locks it. It is left as it is, written once more after a failed sync (I-36), or gets
    /// what its journal has (I-38).
    ///
    /// # Errors
    /// Those of [`FileMedium::open`](crate::FileMedium::open). What was made
    /// is removed again.
    pub fn open(path: &Path, create: Create) -> Result<Self, MediumError> {
        if path.as_os_str().is_empty() {
            return Err(MediumError::NoPath);
        }
        let mut made = Made::default();
        match open_locked(path, create, &mut made) {
            Ok((data, lock)) => Self::over(path, data, lock, made),
            Err(error) => {
                made.remove();
                Err(error)
            }
        }
    }

    fn over(path: &Path, data: Arc<DataFile>, lock: Lock, made: Made) -> Result<Self, MediumError> {
        let looked_at = whole_pieces(&data).and_then(|len| {
            let name = fs::canonicalize(path).map_err(|error| MediumError::at("look at", path, error))?;
            // Another opener may have made it, and directories above it, and been killed before it could do this.
            if len == 0 {
                sync_directory(&name)?;
                // Of another file system, perhaps, or of one that cannot be written to.
                name.ancestors().skip(1).for_each(|above| _ = sync_path(above));
            }
            let place = Place::of(&data, name.join(DATA_FILE))
                .map_err(|error| MediumError::at("look at", data.path(), error))?;
            place.catch_up(len).map_err(|error| MediumError::at("write again", data.path(), error))?;
            let len = journal::replay(&data, place.name(), len, || place.note_failed_sync())?;
            Ok((len, Arc::new(place)))
        });
        match looked_at {
            Ok((len, place)) => Ok(Self { data, len, lock, place, made }),
            Err(error) => {
                // Before others can lock it.
                made.remove();
                lock.release(data.file());
                Err(error)
            }
        }
    }

    /// The data file.
    pub fn data(&self) -> &Arc<DataFile> {
        &self.data
    }

    /// Where the data file is.
    pub(crate) fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// Where a cache can be kept beside the data file.
    pub(crate) fn beside(&self) -> Arc<dyn Beside> {
        let directory = self.place.directory();
        Arc::new(InDirectory::new(directory, Arc::clone(&self.place)))
    }

    /// Removes what this opening has made: nothing if there was a database.
    pub(crate) fn withdraw(&self) {
        if self.lock.is_ours() && leads_to(self.data.path(), self.data.file()).unwrap_or(false) {
            self.made.remove();
        }
    }

    /// Bytes in the data file when it was opened, a multiple of `GROWTH_BYTES`.
    pub(crate) fn opened_len(&self) -> u64 {
        self.len
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        self.lock.release(self.data.file());
    }
}

/// Times that a data file may be removed or replaced while it is opened.
const REPLACED_TRIES: u32 = 100;

fn open_locked(path: &Path, create: Create, made: &mut Made) -> Result<(Arc<DataFile>, Lock), MediumError> {
    let data_path = path.join(DATA_FILE);
    prepare(path, &data_path, create, made)?;
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for _ in 0..REPLACED_TRIES {
        made.file = None;
        let data = match open_data(&data_path, create)? {
            Ok(data) => data,
            Err(error) => {
                last = error;
                continue;
            }
        };
        // If another opener has locked what this one has made, it is theirs.
        let lock = lock_alone(data.0.file(), path)?;
        // An opener that failed may have removed it before it was locked.
        match leads_to(&data_path, data.0.file()) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(MediumError::at("look at", data_path, error)),
        }
        made.file = data.1.then_some(data_path);
        return Ok((data.0, lock));
    }
    let told = format!("{last}, {REPLACED_TRIES} times; perhaps other processes keep removing it");
    Err(MediumError::at("open", data_path, io::Error::new(last.kind(), told)))
}

/// How long an opener waits for processes that open the database to read it: as long as it
/// takes to scan a large one.
const READERS_WAIT: Duration = Duration::from_secs(600);

/// Locks a data file. A process that opens the database to read it locks it as long as it
/// scans, if no other has it open.
fn lock_alone(file: &File, path: &Path) -> Result<Lock, MediumError> {
    let began = Instant::now();
    loop {
        match Lock::take(file, path, Sharing::Alone) {
            Err(MediumError::Locked { .. })
                if began.elapsed() < READERS_WAIT && Lock::is_shared_by_readers(file) =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            locked => return locked,
        }
    }
}

/// A data file, and whether it is new; or why not, where another opener may
/// have made or removed it meanwhile.
type Opened = io::Result<(Arc<DataFile>, bool)>;

/// Opens the data file, or makes it where that is asked for.
fn open_data(data_path: &Path, create: Create) -> Result<Opened, MediumError> {
    let exists = data_exists(data_path)?;
    permit(data_path, exists, create)?;
    match DataFile::open(data_path, !exists) {
        Ok(data) => Ok(Ok((data, !exists))),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::AlreadyExists) => {
            Ok(Err(error))
        }
        Err(error) => Err(MediumError::at("open", data_path, error)),
    }
}

/// What an opening has made.
#[derive(Debug, Default)]
struct Made {
    /// The outermost first.
    directories: Vec<PathBuf>,
    file: Option<PathBuf>,
}

impl Made {
    /// Removes it. Best effort: an empty data file is as good as none, and a
    /// directory that is in use stays.
    fn remove(&self) {
        if let Some(file) = &self.file {
            let _ = fs::remove_file(file);
        }
        for directory in self.directories.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
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
        map.explain_bus_errors(data.file(), data.path(), protection);
    }
    map.begin(len, |from, to| map.attach_file(data.file(), protection, from, to))?;
    Ok(map)
}

/// Makes the directory if `create` asks for it, and touches nothing otherwise.
fn prepare(path: &Path, data_path: &Path, create: Create, made: &mut Made) -> Result<(), MediumError> {
    match fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(MediumError::NotADirectory { path: path.into() }),
        Ok(_) => permit(data_path, data_exists(data_path)?, create),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(MediumError::at("look at", path, error)),
        Err(_) if path.is_symlink() => no_dangling_link(path),
        Err(_) if create == Create::MustExist => Err(MediumError::Missing { path: path.into() }),
        Err(_) => make_directory(path, made),
    }
}

/// Makes the directory and those above it that are missing.
fn make_directory(path: &Path, made: &mut Made) -> Result<(), MediumError> {
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    let outcome = match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && parent != Path::new(".") => {
            make_directory(parent, made)?;
            fs::create_dir(path)
        }
        outcome => outcome,
    };
    match outcome {
        Ok(()) => made.directories.push(path.into()),
        // Another opener has made it.
        Err(_) if path.is_dir() => {}
        Err(error) => return Err(MediumError::at("create", path, error)),
    }
    sync_directory(parent)
}

fn data_exists(data_path: &Path) -> Result<bool, MediumError> {
    match fs::metadata(data_path) {
        Ok(found) if found.is_file() => Ok(true),
        Ok(_) => Err(MediumError::NotAFile { path: data_path.into() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => no_dangling_link(data_path).map(|()| false),
        Err(error) => Err(MediumError::at("look at", data_path, error)),
    }
}

/// Fails if there is a link, when it is known that there is no file. Nothing is
/// made where it leads.
fn no_dangling_link(path: &Path) -> Result<(), MediumError> {
    if !path.is_symlink() {
        return Ok(());
    }
    let error = io::Error::new(io::ErrorKind::NotFound, "it is a link to something that does not exist");
    Err(MediumError::at("open", path, error))
}

fn permit(data_path: &Path, exists: bool, create: Create) -> Result<(), MediumError> {
    let path = data_path.to_path_buf();
    match (create, exists) {
        (Create::MustExist, false) => Err(MediumError::Missing { path }),
        (Create::MustBeNew, true) => Err(MediumError::Exists { path }),
        _ => Ok(()),
    }
}

fn whole_pieces(data: &DataFile) -> Result<u64, MediumError> {
    let path = data.path();
    let found = data.file().metadata().map_err(|error| MediumError::at("look at", path, error))?;
    match found.len() {
        len if len.is_multiple_of(GROWTH_BYTES) => Ok(len),
        len => Err(MediumError::Truncated { path: path.into(), len }),
    }
}

/// Makes the names in a directory durable.
fn sync_directory(path: &Path) -> Result<(), MediumError> {
    sync_path(path).map_err(|error| MediumError::at("sync", path, error))
}
