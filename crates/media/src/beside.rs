//! A file beside the medium, for a cache.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::files::create_like;
use crate::limits::NewFile;
use crate::os::{Lifetime, read_exact_at};
use crate::place::Place;

/// The file in which a database keeps what makes its next opening fast.
pub const IMAGE_FILE: &str = "pantile.image";

/// A new one that does not count yet.
const NEW_FILE: &str = "pantile.image.new";

/// A file beside a medium, and its successor. They hold a cache and no data. A
/// crash leaves each whole, in parts or not at all, so a reader must know a file
/// by a checksum that is kept elsewhere.
pub trait Beside: Send + Sync + Debug {
    /// Writes a successor. The file stays as it is. Nothing of it need be
    /// durable.
    ///
    /// # Errors
    /// What `write` returns and what the system says. There is no successor then.
    fn write(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()>;

    /// Puts the successor in the place of the file.
    ///
    /// # Errors
    /// What the system says. Both stay as they were then.
    fn adopt(&self) -> io::Result<()>;

    /// Opens the file and its successor, if they are there. What is open stays as
    /// it is when the file is replaced.
    fn open(&self) -> [Option<Arc<dyn BesideFile>>; 2];

    /// Whether one of them is there, also if it cannot be opened.
    fn is_any(&self) -> bool {
        self.open().iter().any(Option::is_some)
    }
}

/// An open file beside a medium.
pub trait BesideFile: Send + Sync + Debug {
    /// Its length in bytes.
    fn len(&self) -> u64;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads bytes at `offset`.
    ///
    /// # Errors
    /// What the system says, also if the file ends before that.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()>;
}

/// Bytes that are handed to the system at once.
const BUFFER: usize = 256 << 10;

/// Files beside a medium that is only read.
#[derive(Debug)]
pub(crate) struct Kept(pub Vec<Arc<dyn BesideFile>>);

impl Beside for Kept {
    fn write(&self, _: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn adopt(&self) -> io::Result<()> {
        Err(ErrorKind::ReadOnlyFilesystem.into())
    }

    fn open(&self) -> [Option<Arc<dyn BesideFile>>; 2] {
        [0, 1].map(|n| self.0.get(n).cloned())
    }
}

/// A file in the directory of the data file.
#[derive(Debug)]
pub(crate) struct InDirectory {
    place: Arc<Place>,
    directory: PathBuf,
}

impl InDirectory {
    pub fn new(directory: &Path, place: Arc<Place>) -> Self {
        Self { place, directory: directory.to_owned() }
    }

    fn write_new(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        // One that was left. A reader of it goes on.
        let _ = fs::remove_file(path);
        // It has keys, so nobody else may read it.
        let file = create_like(path, self.place.data(), Lifetime::Medium)?;
        let mut out = BufWriter::with_capacity(BUFFER, NewFile::over(file));
        write(&mut out)?;
        out.flush()
    }
}

impl Beside for InDirectory {
    fn write(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        // If the directory was renamed, its path may lead to another database.
        self.place.check()?;
        let new = self.directory.join(NEW_FILE);
        let written = self.write_new(&new, write);
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn adopt(&self) -> io::Result<()> {
        self.place.check()?;
        fs::rename(self.directory.join(NEW_FILE), self.directory.join(IMAGE_FILE))
    }

    fn open(&self) -> [Option<Arc<dyn BesideFile>>; 2] {
        open_files(&self.directory)
    }

    fn is_any(&self) -> bool {
        let is_absent = |found: io::Result<_>| found.is_err_and(|error| error.kind() == ErrorKind::NotFound);
        [IMAGE_FILE, NEW_FILE].iter().any(|name| !is_absent(self.directory.join(name).symlink_metadata()))
    }
}

/// Opens the files beside a data file, if they are there.
pub(crate) fn open_files(directory: &Path) -> [Option<Arc<dyn BesideFile>>; 2] {
    let open = |name: &str| {
        let file = File::open(directory.join(name)).ok()?;
        let len = file.metadata().ok()?.len();
        Some(Arc::new(Opened { file, len }) as Arc<dyn BesideFile>)
    };
    [IMAGE_FILE, NEW_FILE].map(open)
}

#[derive(Debug)]
struct Opened {
    file: File,
    len: u64,
}

impl BesideFile for Opened {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        read_exact_at(&self.file, out, offset)
    }
}
