//! A file beside the medium, for a cache.

use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::place::Place;

/// The file in which a database keeps what makes its next opening fast.
pub const IMAGE_FILE: &str = "pantile.image";

/// A file beside a medium. It holds a cache and no data. A crash leaves the old
/// file, the new one, parts of either, or none, so a reader must know the file
/// by a checksum that is kept elsewhere.
pub trait Beside: Send + Sync + Debug {
    /// Replaces the file by what `write` writes to it. Nothing of it need be
    /// durable.
    ///
    /// # Errors
    /// What `write` returns and what the system says. There is no file then, or
    /// the one of before.
    fn replace(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()>;

    /// Opens the file, if there is one. What is open stays as it is when the
    /// file is replaced.
    ///
    /// # Errors
    /// What the system says.
    fn open(&self) -> io::Result<Option<Arc<dyn BesideFile>>>;
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
const BUFFER: usize = 1 << 20;

/// A file in the directory of the data file.
#[derive(Debug)]
pub(crate) struct InDirectory {
    place: Arc<Place>,
    path: PathBuf,
}

impl InDirectory {
    pub fn new(directory: &Path, place: Arc<Place>) -> Self {
        Self { place, path: directory.join(IMAGE_FILE) }
    }

    fn write_new(
        &self,
        path: &Path,
        write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(BUFFER, File::create(path)?);
        write(&mut out)?;
        out.flush()
    }
}

impl Beside for InDirectory {
    fn replace(&self, write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        // If the directory was renamed, its path may lead to another database.
        self.place.check()?;
        // Both at once would take twice the space.
        let _ = fs::remove_file(&self.path);
        let new = self.path.with_extension("image.new");
        let written = self.write_new(&new, write).and_then(|()| fs::rename(&new, &self.path));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }

    fn open(&self) -> io::Result<Option<Arc<dyn BesideFile>>> {
        open_file(&self.path)
    }
}

/// Opens a file beside a data file, if there is one.
pub(crate) fn open_file(path: &Path) -> io::Result<Option<Arc<dyn BesideFile>>> {
    match File::open(path) {
        Ok(file) => Ok(Some(Arc::new(Opened { len: file.metadata()?.len(), file }))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
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
        self.file.read_exact_at(out, offset)
    }
}
