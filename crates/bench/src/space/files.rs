//! What a database takes of its file system, and what its process does there,
//! as the system says.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};

/// The size of the files of a database.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Size {
    /// Bytes of the file system that they have.
    pub allocated: u64,
    /// Where they end.
    pub length: u64,
}

impl Size {
    /// Of all files in a directory.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn of(dir: &Path) -> Result<Self> {
        let files = || -> std::io::Result<Size> {
            fs::read_dir(dir)?.try_fold(Size::default(), |sum, entry| {
                let data = match entry?.metadata() {
                    // A new index image has taken the place of the last one.
                    Err(error) if error.kind() == ErrorKind::NotFound => return Ok(sum),
                    data => data?,
                };
                Ok(Size { allocated: sum.allocated + data.blocks() * 512, length: sum.length + data.len() })
            })
        };
        files().map_err(|e| Error::io(format!("look at the files in {}", dir.display()), e))
    }
}

/// What this process has written, as `/proc/self/io` counts it. Zero where the
/// system does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Written {
    /// Bytes given to system calls that write.
    pub bytes: u64,
    /// Calls.
    pub calls: u64,
}

impl Written {
    /// Up to now.
    pub fn now() -> Self {
        let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
        Self { bytes: number_after(&text, "wchar:"), calls: number_after(&text, "syscw:") }
    }

    /// What was written after `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self { bytes: self.bytes - earlier.bytes, calls: self.calls - earlier.calls }
    }
}

/// Bytes of memory of this process that are not pages of files. Zero where the
/// system does not say.
pub fn own_memory() -> u64 {
    number_after(&fs::read_to_string("/proc/self/status").unwrap_or_default(), "RssAnon:") * 1024
}

fn number_after(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_a_length_and_take_space() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), [1; 10_000]).unwrap();
        fs::write(dir.path().join("b"), [1; 5000]).unwrap();
        assert_eq!(Size::of(dir.path()).unwrap().length, 15_000);
        assert!(Size::of(&dir.path().join("none")).is_err());
    }

    #[test]
    fn numbers_stand_after_their_names() {
        let text = "rchar: 1\nwchar: 23\nRssAnon:\t    5668 kB\n";
        assert_eq!((number_after(text, "wchar:"), number_after(text, "RssAnon:")), (23, 5668));
        assert_eq!(number_after(text, "syscw:"), 0);
    }
}
