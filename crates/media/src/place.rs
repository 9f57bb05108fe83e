//! Whether the data file is still where it was opened.
//!
//! A file that is removed, or moved away, stays open: what is written to it
//! is gone when it is closed, or is not where the next opening looks. So the
//! name is looked at while the database is open, see [`Place::check`].

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pantile_base::control::{Control, is_removed};

use crate::data_file::{DATA_FILE, DataFile};
use crate::os::{Identity, look, look_at, name_of_open};

/// The note that a sync of the data file beside it has failed.
pub(crate) const UNSYNCED: &str = "pantile.unsynced";

/// The name of a file that belongs to a data file, whose name is no link. Data files of other names, to which links
/// lead, have files of their own: several can be in one directory.
pub(crate) fn belonging(data: &Path, file: &str) -> PathBuf {
    match data.file_name() {
        Some(name) if name != DATA_FILE => {
            let mut own = name.to_owned();
            // No such name is that of a data file, nor of what belongs to another one.
            own.push(format!(".{}", file.replace('.', "-")));
            data.with_file_name(own)
        }
        _ => data.with_file_name(file),
    }
}

/// The name is looked at no more often than this, and by every sync of
/// everything.
const BETWEEN: Duration = Duration::from_millis(50);

/// Where the data file of an open database is.
#[derive(Debug)]
pub(crate) struct Place {
    data: Arc<DataFile>,
    /// The data file's name, without links to its directory. It does not
    /// depend on the current directory.
    name: PathBuf,
    /// Where a failed sync is noted: beside the data file, where it is found by any link to that, and beside the link by
    /// which it was opened, if that is elsewhere.
    notes: [PathBuf; 2],
    process: u32,
    /// The directory that the name begins at; another one after `chroot`.
    root: Option<Identity>,
    began: Instant,
    /// When the name was last looked at, in milliseconds since `began`.
    looked: AtomicU64,
}

impl Place {
    /// The place of a file that was opened at `name`.
    ///
    /// # Errors
    /// If the name leads nowhere any more.
    pub(crate) fn of(data: &Arc<DataFile>, name: PathBuf) -> io::Result<Self> {
        Ok(Self {
            data: Arc::clone(data),
            notes: [belonging(&fs::canonicalize(&name)?, UNSYNCED), name.with_file_name(UNSYNCED)],
            name,
            process: process::id(),
            root: root(),
            began: Instant::now(),
            looked: AtomicU64::new(0),
        })
    }

    /// The data file.
    pub(crate) fn data(&self) -> &File {
        self.data.file()
    }

    /// The data file's name, which does not depend on the current directory.
    pub(crate) fn name(&self) -> &Path {
        &self.name
    }

    /// The directory of the data file, without links to it.
    pub(crate) fn directory(&self) -> &Path {
        self.name.parent().unwrap_or(Path::new("/"))
    }

    /// Leaves a note beside the data file that not all of it may be on the device (I-36). It need not be
    /// durable: after a restart of the system the file shows what the device has. Best effort: the device
    /// has just failed, and a directory that has been renamed gets none.
    pub(crate) fn note_failed_sync(&self) {
        if self.problem().is_none() {
            for note in &self.notes {
                let _ = File::create(note);
            }
        }
    }

    /// Makes durable what a failed sync has left, if there is a note of one (I-36).
    ///
    /// # Errors
    /// Those of the system. The note stays then.
    pub(crate) fn catch_up(&self, len: u64) -> io::Result<()> {
        if self.notes.iter().any(|note| note.exists()) {
            self.data.write_again(len)?;
            // If one stays, the next opening does so again.
            for note in &self.notes {
                let _ = fs::remove_file(note);
            }
        }
        Ok(())
    }

    /// As [`Place::check`], unless that was done a moment ago.
    pub(crate) fn check_now_and_then(&self) -> io::Result<()> {
        if process::id() != self.process {
            return self.check();
        }
        let (now, looked) = (self.began.elapsed().as_millis() as u64, self.looked.load(Ordering::Relaxed));
        if now < looked + BETWEEN.as_millis() as u64 {
            return Ok(());
        }
        self.check()
    }

    /// Fails if the data file has been removed or replaced, if its directory
    /// has been renamed, and in a forked child of the process that opened it.
    /// A place that cannot be looked at counts as unchanged.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.looked.store(self.began.elapsed().as_millis() as u64, Ordering::Relaxed);
        match self.problem() {
            Some(problem) if !is_removed(Control::Place) => Err(io::Error::other(problem)),
            _ => Ok(()),
        }
    }

    fn problem(&self) -> Option<String> {
        let (name, process) = (self.name.display(), process::id());
        if process != self.process {
            return Some(format!(
                "process {} opened the database, and this is process {process}, a fork of it",
                self.process
            ));
        }
        let file = self.data.file();
        let open = look(file).ok()?;
        if open.links == 0 {
            let other = name_of_open(file).map_or(String::new(), |name| format!(", or {name},"));
            return Some(format!(
                "{name} was removed while the database was open, and what it holds goes when it is closed: \
                 copy the rows{other} before that"
            ));
        }
        let kept = "what was committed is in the file that was there";
        match look_at(&self.name) {
            Ok(found) if found.identity != open.identity => {
                Some(format!("{name} is another file than the one that is open: it was replaced; {kept}"))
            }
            Err(error) if is_absent(&error) && self.root == root() => {
                Some(format!("{name} is no longer there: it or its directory was renamed; {kept}"))
            }
            _ => None,
        }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn root() -> Option<Identity> {
    look_at(Path::new("/")).ok().map(|found| found.identity)
}
