//! The directory that takes a backup or what is restored from one.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use pantile_media::files::{
    allow_dir_like, create_own_dir, is_lock_of_directory, leads_to, lock_directory, rename_new, sync_path,
};
use pantile_media::{DATA_FILE, Explained};

use crate::api::incomplete::{INCOMPLETE, INCREMENT, RESTORING};
use crate::types::error::{Error, Result};

/// What a fresh file system may have in its topmost directory.
const NOT_OURS: &str = "lost+found";

/// How often a directory that has just gone is made and locked again.
const TRIES: usize = 100;

/// What a directory is filled with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// A backup. What an earlier call has left is gone on with.
    OfBackup,
    /// What is restored. It begins anew.
    OfRestored,
}

/// A directory that this process alone fills. Until [`Target::complete`] what
/// it holds does not count, and dropping it removes what was made, unless it is
/// to be kept.
pub(super) struct Target {
    directory: PathBuf,
    /// Where the data file is until it is whole.
    part: PathBuf,
    /// The directory is locked through this, which ends with the process.
    lock: File,
    /// Directories that were made, the topmost first.
    made: Vec<PathBuf>,
    stays: bool,
}

impl Target {
    /// Makes the directory if there is none, and locks it.
    ///
    /// # Errors
    /// [`Error::NotEmpty`]; [`Error::IncompleteBackup`] if there is a part of the
    /// other kind; [`Error::BeingFilled`];
    /// [`Error::InvalidOption`] if there is no path; [`Error::Io`].
    pub fn claim(directory: &Path, kind: Part) -> Result<Self> {
        if directory.as_os_str().is_empty() {
            return Err(Error::InvalidOption("the path of the directory is empty".into()));
        }
        let (mut made, mut locked) = (make(directory)?, lock(directory));
        for _ in 0..TRIES {
            // Another call that failed may have removed the directory before this one had locked it.
            let is_there = match &locked {
                Ok(lock) => !is_gone(directory, lock),
                Err(_) => directory.symlink_metadata().is_ok(),
            };
            if is_there {
                break;
            }
            (made, locked) = (make(directory)?, lock(directory));
        }
        match locked {
            Ok(lock) => {
                let (ours, other) = match kind {
                    Part::OfBackup => (INCOMPLETE, RESTORING),
                    Part::OfRestored => (RESTORING, INCOMPLETE),
                };
                let (directory, part) = (directory.to_owned(), directory.join(ours));
                let mut target = Self { directory, part, lock, made, stays: true };
                target.prepare(kind, other).map(|()| target)
            }
            // Another call has it, and is about to fill it.
            Err(error @ Error::BeingFilled(_)) => Err(error),
            Err(error) => {
                remove_empty(&made);
                Err(error)
            }
        }
    }

    fn prepare(&mut self, kind: Part, other: &str) -> Result<()> {
        let entries = fs::read_dir(&self.directory).map_err(io_error("read", &self.directory))?;
        let (mut ours, mut others) = (false, false);
        for entry in entries {
            let name = entry.map_err(io_error("read", &self.directory))?.file_name();
            if Some(name.as_os_str()) == self.part.file_name() {
                ours = true;
            } else if name == other {
                others = true;
            } else if name != NOT_OURS && !is_lock_of_directory(&name) {
                return Err(Error::NotEmpty(self.directory.clone()));
            }
        }
        if others {
            return Err(Error::IncompleteBackup(self.directory.clone()));
        }
        if ours && kind == Part::OfBackup {
            return Ok(());
        }
        self.stays = false;
        if ours {
            fs::remove_dir_all(&self.part).map_err(io_error("remove", &self.part))?;
        }
        // Nobody else may read what is on its way.
        create_own_dir(&self.part).map_err(io_error("create", &self.part))?;
        sync(&self.directory)
    }

    /// Where the data file is to be written, and nothing else.
    pub fn part(&self) -> &Path {
        &self.part
    }

    /// Keeps what was written until another call goes on with it.
    pub fn keep(&mut self, stays: bool) {
        self.stays = stays;
    }

    /// Makes what was written count: as a database, or as an incremental backup.
    /// It must be closed. Returns where the data file is.
    pub fn complete(mut self, is_incremental: bool) -> Result<PathBuf> {
        let data = self.part.join(DATA_FILE);
        if let Err(error) = sync(&data) {
            // What another call would find there may not be on the device.
            self.stays = false;
            return Err(error);
        }
        for (directory, is_made) in self.above()? {
            sync(&directory).or_else(|error| if is_made { Err(error) } else { Ok(()) })?;
        }
        // From here on it is there, and before it was not.
        let (from, to) = match is_incremental {
            true => (&self.part, self.directory.join(INCREMENT)),
            false => (&data, self.directory.join(DATA_FILE)),
        };
        if is_incremental {
            allow_dir_like(&self.part, &self.directory);
            sync(&self.part)?;
        }
        // A database may have been made there meanwhile.
        rename_new(from, &to).map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => Error::NotEmpty(self.directory.clone()),
            _ => io_error("rename", from)(error),
        })?;
        self.stays = true;
        sync(&self.directory)?;
        // What is left there says nothing any more.
        let _ = fs::remove_dir_all(&self.part);
        Ok(if is_incremental { to.join(DATA_FILE) } else { to })
    }
}

impl Target {
    /// The directories above this one, and of each whether this call has made
    /// something in it. An earlier call, which was interrupted, may have done so in
    /// any of them that can be read.
    fn above(&self) -> Result<Vec<(PathBuf, bool)>> {
        let find = |path: &Path| fs::canonicalize(path).map_err(io_error("look at", path));
        let made: Vec<PathBuf> = self.made.iter().map(|path| find(path)).collect::<Result<_>>()?;
        let is_made = |above: &Path| made.iter().any(|made| made.parent() == Some(above));
        let directory = find(&self.directory)?;
        Ok(directory.ancestors().skip(1).map(|above| (above.to_owned(), is_made(above))).collect())
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        if !self.stays {
            // Best effort: a part is not taken for a whole.
            let _ = fs::remove_dir_all(&self.part);
        }
        remove_empty(&self.made);
        let _ = self.lock.unlock();
    }
}

/// Makes the directory and those above it. Returns those that were not there.
fn make(directory: &Path) -> Result<Vec<PathBuf>> {
    let is_missing = |path: &&Path| !path.as_os_str().is_empty() && path.symlink_metadata().is_err();
    let mut made: Vec<_> = directory.ancestors().take_while(is_missing).map(Path::to_owned).collect();
    made.reverse();
    fs::create_dir_all(directory).map_err(|error| {
        remove_empty(&made);
        io_error("create", directory)(error)
    })?;
    Ok(made)
}

fn remove_empty(made: &[PathBuf]) {
    for directory in made.iter().rev() {
        let _ = fs::remove_dir(directory);
    }
}

/// Whether what was locked is a directory that has this name no more.
fn is_gone(directory: &Path, lock: &File) -> bool {
    lock.metadata().is_ok_and(|found| found.is_dir()) && !leads_to(directory, lock).unwrap_or(false)
}

fn lock(directory: &Path) -> Result<File> {
    lock_directory(directory).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock => Error::BeingFilled(directory.to_owned()),
        _ => io_error("open and lock", directory)(error),
    })
}

/// Makes a file or a directory durable.
fn sync(path: &Path) -> Result<()> {
    sync_path(path).map_err(io_error("sync", path))
}

/// The system's refusal. A device without room is [`Error::StorageFull`].
pub(super) fn io_error(operation: &str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            let detail = format!("{operation} {}: {}", path.display(), Explained(&source));
            Error::StorageFull { detail, holder: None }
        }
        _ => Error::Io { operation: format!("{operation} {}", path.display()), source },
    }
}

#[cfg(test)]
mod tests {
    use pantile_testkit::ScratchDir;

    use super::*;

    /// A call that goes on syncs what the interrupted one has made directories in.
    #[test]
    fn directories_of_an_earlier_call_become_durable() {
        let place = ScratchDir::new();
        let place = fs::canonicalize(place.path()).expect("a path");
        for is_made in [true, false] {
            let mut target = Target::claim(&place.join("a/b"), Part::OfBackup).expect("claim");
            target.keep(true);
            let above = target.above().expect("directories");
            assert_eq!(above[..2], [(place.join("a"), is_made), (place.clone(), is_made)]);
            assert!(above[2..].iter().all(|(_, is_made)| !is_made), "{above:?}");
        }
    }

    #[test]
    fn a_database_that_was_made_there_meanwhile_stays() {
        let place = ScratchDir::new();
        let data = place.path().join(DATA_FILE);
        let claim = || {
            let target = Target::claim(place.path(), Part::OfRestored).expect("claim");
            fs::write(target.part().join(DATA_FILE), b"copied").expect("written");
            target
        };
        let target = claim();
        fs::write(&data, b"another").expect("written");
        assert!(matches!(target.complete(false), Err(Error::NotEmpty(_))));
        assert_eq!(fs::read(&data).expect("it is there"), b"another");
        fs::remove_file(&data).expect("removed");
        claim().complete(false).expect("there is nothing");
        assert_eq!(fs::read(&data).expect("it is there"), b"copied");
        assert!(!place.path().join(RESTORING).exists());
    }
}
