//! A directory with a file for each table.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::dump::out::Dumped;
use crate::error::Error;
use crate::format::Format;

/// The file with the definitions.
pub const SCHEMA: &str = "schema.jsonl";

/// Names of tables that are longer in a file's name are replaced.
const LONGEST: usize = 200;

/// The directory.
pub struct Files<'f> {
    dir: &'f Path,
}

impl<'f> Files<'f> {
    pub fn create(dir: &'f Path) -> Result<Self, Error> {
        match fs::create_dir(dir) {
            Ok(()) => Ok(Self { dir }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Exists(dir.to_owned())),
            Err(source) => Err(cannot_write(dir, source)),
        }
    }

    /// Makes a file that is durable.
    pub fn write(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> Result<Dumped, Error>,
    ) -> Result<Dumped, Error> {
        let path = self.dir.join(name);
        let mut file = File::create_new(&path).map_err(|source| cannot_write(&path, source))?;
        let written = write(&mut file).map_err(|error| match error {
            Error::Write { source, .. } => cannot_write(&path, source),
            other => other,
        })?;
        file.sync_all().map_err(|source| cannot_write(&path, source))?;
        Ok(written)
    }

    /// Makes the names of the files durable, and that of the directory.
    pub fn sync(&self) -> Result<(), Error> {
        let sync = |dir: &Path| open_to_sync(dir).and_then(|dir| dir.sync_all());
        let sync_above = || match fs::canonicalize(self.dir)?.parent().map(sync) {
            // One may be allowed to make files there, and not to open it.
            Some(Err(error)) if error.kind() != io::ErrorKind::PermissionDenied => Err(error),
            _ => Ok(()),
        };
        sync(self.dir).and_then(|()| sync_above()).map_err(|source| cannot_write(self.dir, source))
    }

    /// Removes what is not whole. Without the schema nobody takes it for a dump.
    pub fn remove(&self) {
        let _ = fs::remove_dir_all(self.dir);
    }
}

#[cfg(unix)]
fn open_to_sync(dir: &Path) -> io::Result<File> {
    File::open(dir)
}

/// Windows asks for the right to write what is flushed, and for
/// `FILE_FLAG_BACKUP_SEMANTICS` where it is a directory.
#[cfg(windows)]
fn open_to_sync(dir: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    File::options().write(true).custom_flags(0x0200_0000).open(dir)
}

fn cannot_write(path: &Path, source: io::Error) -> Error {
    Error::Write { to: path.display().to_string(), source }
}

/// The name of a table's file: the table's name where files can have it, with
/// other characters as `%` and two hexadecimal digits for each byte.
pub fn name(table: &str, number: usize, format: Format) -> String {
    let mut name = String::new();
    for (n, byte) in table.bytes().enumerate() {
        let is_plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-') || byte == b'.' && n > 0;
        if is_plain && !(n == 0 && table.eq_ignore_ascii_case("schema")) {
            name.push(byte.into());
        } else {
            name += &format!("%{byte:02x}");
        }
    }
    if name.len() > LONGEST {
        name = format!("%table{number}");
    }
    format!("{name}.{}", format.extension())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_are_plain_and_distinct() {
        for (table, file) in [
            ("orders", "orders.csv"),
            ("a b/c", "a%20b%2fc.csv"),
            ("../x", "%2e.%2fx.csv"),
            ("schema", "%73chema.csv"),
            ("%73chema", "%2573chema.csv"),
            ("ö", "%c3%b6.csv"),
        ] {
            assert_eq!(name(table, 0, Format::Csv), file);
            assert_eq!(Format::of_file(file), Some(Format::Csv));
        }
        assert_eq!(name(&"x".repeat(255), 7, Format::JsonLines), "%table7.jsonl");
        for wrong in ["../x.csv", ".csv", "x.txt", "csv", "a/b.jsonl"] {
            assert_eq!(Format::of_file(wrong), None, "{wrong}");
        }
    }
}
