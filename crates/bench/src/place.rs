//! Where the databases of a command go.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::error::{Error, Result};

/// The temporary directories that are there.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// How the names of these begin. All that are called so are locked while they are used.
const PREFIX: &str = "pantile-bench.";

/// The age from which a directory that nobody holds was left by a process that is
/// gone: one that has just been made may not be held yet.
const ABANDONED: Duration = Duration::from_secs(60);

/// How often to try to remove a directory in which the run still makes files.
const TRIES: u32 = 10;

fn temporary() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the process at once, and removes its temporary directories, best effort.
pub fn exit(status: i32) -> ! {
    // As long as the list is locked, no other directory is made.
    let paths = temporary();
    for path in paths.iter() {
        let _ = (0..TRIES).any(|_| fs::remove_dir_all(path).is_ok());
    }
    std::process::exit(status)
}

/// A directory for a database, removed when dropped unless it was asked for.
#[derive(Debug)]
pub struct DatabaseDir {
    path: PathBuf,
    temporary: Option<TempDir>,
    /// Locked, so that nobody takes the directory for one that was left.
    _held: Option<File>,
}

impl DatabaseDir {
    /// A directory of the user's choice; it is created if missing, and stays.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn chosen(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        fs::create_dir_all(&path)
            .map_err(|e| Error::io(format!("create the directory {}", path.display()), e))?;
        Ok(Self { path, temporary: None, _held: None })
    }

    /// A new directory, in memory if that is wanted and the system has a
    /// place for it.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn temporary(in_memory: bool) -> Result<Self> {
        let memory = Path::new("/dev/shm");
        let parent = if in_memory && memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        Self::temporary_in(Some(&parent))
    }

    /// A new directory in `parent`, or among the system's temporary files. Removes
    /// those there that processes have left which were killed.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn temporary_in(parent: Option<&Path>) -> Result<Self> {
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_owned);
        remove_abandoned(&parent, ABANDONED);
        let mut paths = temporary();
        let dir = TempDir::with_prefix_in(PREFIX, &parent)
            .map_err(|e| Error::io(format!("create a directory in {}", parent.display()), e))?;
        paths.push(dir.path().to_owned());
        Ok(Self { path: dir.path().to_owned(), _held: hold(dir.path()), temporary: Some(dir) })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it will be removed.
    pub fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }
}

/// Locks a directory, unless someone else has locked it.
fn hold(dir: &Path) -> Option<File> {
    let dir = File::open(dir).ok()?;
    dir.try_lock().ok().map(|()| dir)
}

/// Removes temporary directories of this age that nobody holds, best effort.
fn remove_abandoned(parent: &Path, age: Duration) {
    for dir in fs::read_dir(parent).into_iter().flatten().flatten() {
        let is_ours = dir.file_name().to_string_lossy().starts_with(PREFIX);
        let changed = dir.metadata().and_then(|metadata| metadata.modified());
        let is_old = changed.is_ok_and(|at| at.elapsed().is_ok_and(|elapsed| elapsed >= age));
        if is_ours && is_old && hold(&dir.path()).is_some() {
            let _ = fs::remove_dir_all(dir.path());
        }
    }
}

impl Drop for DatabaseDir {
    fn drop(&mut self) {
        if let Some(dir) = self.temporary.take() {
            let mut paths = temporary();
            drop(dir);
            paths.retain(|path| *path != self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temporary_directory_is_removed_with_what_is_in_it() {
        let place = DatabaseDir::temporary(true).unwrap();
        let path = place.path().to_owned();
        fs::write(path.join("file"), "content").unwrap();
        assert!(place.is_temporary() && temporary().contains(&path));
        drop(place);
        assert!(!path.exists() && !temporary().contains(&path));
    }

    #[test]
    fn what_a_killed_process_has_left_is_removed() {
        let parent = TempDir::new().unwrap();
        let held = DatabaseDir::temporary_in(Some(parent.path())).unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        let other = parent.path().join("other");
        for dir in [&left, &other] {
            fs::create_dir(dir).unwrap();
            fs::write(dir.join("file"), "content").unwrap();
        }
        // It may have just been made.
        remove_abandoned(parent.path(), ABANDONED);
        assert!(left.exists());
        remove_abandoned(parent.path(), Duration::ZERO);
        assert!(!left.exists() && other.exists() && held.path().exists());
    }

    #[test]
    fn a_chosen_directory_stays() {
        let outer = TempDir::new().unwrap();
        let path = outer.path().join("a/b");
        drop(DatabaseDir::chosen(&path).unwrap());
        assert!(path.is_dir());
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let error = DatabaseDir::chosen("/proc/none/such").unwrap_err().to_string();
        assert!(error.contains("/proc/none/such"), "{error}");
    }
}
