//! Errors of the lower rooms in the words of the engine.

use std::path::Path;

use pantile_media::MediumError;
use pantile_store::StoreError;

use crate::types::error::Error;

/// The error of a lower room about the database in `path`.
pub(crate) fn from_store(error: StoreError, path: &Path) -> Error {
    match error {
        StoreError::Medium(error) => from_medium(error),
        StoreError::Blank => Error::NoDatabase(path.to_owned()),
        StoreError::Foreign(detail) => Error::NotADatabase { path: path.to_owned(), detail },
        StoreError::Version(found) => {
            Error::FormatVersion { found, supported: pantile_store::FORMAT_VERSION }
        }
        StoreError::Damaged { place, detail } => Error::Damaged { place, detail },
    }
}

pub(crate) fn from_medium(error: MediumError) -> Error {
    match error {
        MediumError::Locked { path, process } => Error::AlreadyOpen { path, process },
        MediumError::NoPath => Error::InvalidOption(MediumError::NoPath.to_string()),
        MediumError::Missing { path } => Error::NoDatabase(path),
        MediumError::Stopped => Error::Cancelled,
        MediumError::Truncated { path, len } => Error::NotADatabase {
            path,
            detail: format!(
                "its {len} bytes are not whole pieces of 64 KB; it was truncated, or bytes were added"
            ),
        },
        MediumError::NotADirectory { path } => {
            Error::NotADatabase { path, detail: "it is not a directory".into() }
        }
        MediumError::NotAFile { path } => {
            Error::NotADatabase { path, detail: "it is not an ordinary file".into() }
        }
        MediumError::Failed { cause } => Error::MediumFailed { cause },
        refused @ MediumError::NoDax { .. } => Error::UnfitMedium { detail: refused.to_string() },
        MediumError::Unreadable { path, offset, source } => Error::Damaged {
            place: format!("byte {offset} of {}", path.display()),
            detail: format!("it cannot be read ({source})"),
        },
        full if full.is_full() => Error::StorageFull { detail: full.to_string(), holder: None },
        MediumError::Io { operation, path, source } => {
            let path = path.map_or_else(|| "memory".to_owned(), |p| p.display().to_string());
            Error::Io { operation: format!("{operation} {path}"), source }
        }
        other => Error::Io { operation: "use the medium".into(), source: std::io::Error::other(other) },
    }
}
