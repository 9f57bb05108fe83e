//! Directories of backups that are no databases: those that have begun and not
//! been completed, and incremental ones.

use std::fs;
use std::path::{Path, PathBuf};

use pantile_media::DATA_FILE;

use crate::types::error::{Error, Result};

/// Where a backup is written until it is whole, in the directory that it is
/// for. Its data file then moves up, which is one step.
pub(crate) const INCOMPLETE: &str = "pantile.incomplete";

/// Where what is restored is until it is whole, in the directory that it is for. A part of a
/// backup may be the work of hours, and is gone on with; this one begins anew.
pub const RESTORING: &str = "pantile.restoring";

/// Where an incremental backup is, in the directory that was named for it.
pub(crate) const INCREMENT: &str = "pantile.increment";

/// Refuses a directory that holds a part of a backup, or of what is restored, and
/// no database.
pub(crate) fn refuse(path: &Path) -> Result<()> {
    if path.join(DATA_FILE).exists() {
        return Ok(());
    }
    if path.join(INCREMENT).is_dir() {
        return Err(Error::IncrementalBackup(path.to_owned()));
    }
    match [INCOMPLETE, RESTORING].iter().any(|part| path.join(part).is_dir()) {
        true => Err(Error::IncompleteBackup(path.to_owned())),
        false => Ok(()),
    }
}

/// Refuses the part itself, under whatever name.
pub(crate) fn refuse_part(path: &Path) -> Result<()> {
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let refused = |error: fn(PathBuf) -> Error| Err(error(path.parent().unwrap_or(path).to_owned()));
    match path.file_name() {
        Some(name) if name == INCOMPLETE || name == RESTORING => refused(Error::IncompleteBackup),
        Some(name) if name == INCREMENT => refused(Error::IncrementalBackup),
        _ => Ok(()),
    }
}
