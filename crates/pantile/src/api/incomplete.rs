//! Directories in which a backup has begun and not been completed.

use std::path::Path;

use pantile_media::DATA_FILE;

use crate::types::error::{Error, Result};

/// Where a backup is written until it is whole, in the directory that it is
/// for. Its data file then moves up, which is one step.
pub(crate) const INCOMPLETE: &str = "pantile.incomplete";

/// Refuses a directory that holds a part of a backup and no database.
pub(crate) fn refuse(path: &Path) -> Result<()> {
    match path.join(INCOMPLETE).is_dir() && !path.join(DATA_FILE).exists() {
        true => Err(Error::IncompleteBackup(path.to_owned())),
        false => Ok(()),
    }
}

/// Refuses the part itself.
pub(crate) fn refuse_part(path: &Path) -> Result<()> {
    match path.file_name().is_some_and(|name| name == INCOMPLETE) {
        true => Err(Error::IncompleteBackup(path.parent().unwrap_or(path).to_owned())),
        false => Ok(()),
    }
}
