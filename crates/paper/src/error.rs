//! What can end a report early.

use std::fmt;
use std::path::{Path, PathBuf};

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a report could not be produced. The message is one line.
#[derive(Debug)]
pub enum Error {
    /// No claim has this name.
    UnknownClaim(String),
    /// A file is not the record of a report.
    NoRecord {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// An error of the operating system.
    Io {
        /// What was attempted.
        operation: &'static str,
        /// The file involved.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl Error {
    /// An error of the operating system.
    pub fn io(operation: &'static str, path: &Path, source: std::io::Error) -> Self {
        Error::Io { operation, path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::UnknownClaim(id) => {
                write!(f, "there is no claim {id:?}; `pantile paper --list` lists all claims")
            }
            Error::NoRecord { path, problem } => {
                write!(f, "{} is no record of a report (claims.json): {problem}", path.display())
            }
            Error::Io { operation, path, source } => {
                write!(f, "cannot {operation} {}: {source}", path.display())
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            Error::UnknownClaim(_) | Error::NoRecord { .. } => None,
        }
    }
}
