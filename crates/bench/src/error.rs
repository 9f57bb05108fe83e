//! What can end a benchmark early.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use pantile::TransactionError;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a benchmark could not go on. Its message is one line.
#[derive(Debug)]
pub enum Error {
    /// The engine said so.
    Engine(pantile::Error),
    /// The operating system said so.
    Io {
        /// What was tried.
        operation: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// It was told to stop before anything was measured.
    Interrupted {
        /// What was going on.
        during: &'static str,
    },
    /// A directory holds a database of another kind or size.
    OtherData {
        /// The directory.
        dir: PathBuf,
        /// What it holds, and what to do.
        detail: String,
    },
    /// A setting that makes no sense.
    Setting(String),
    /// A row that the workload relies on is not there.
    Missing {
        /// Which row.
        what: &'static str,
        /// Its key.
        key: String,
    },
    /// A transaction that stays open has read a row again and seen another one.
    Changed {
        /// Which row.
        row: String,
        /// What is different.
        how: String,
        /// How long the transaction has been open.
        after: Duration,
    },
    /// Opening the database again gave other data than it was closed with.
    Lost {
        /// Tuples that there were.
        tuples: u64,
        /// Tuples that were found.
        found: u64,
    },
    /// A client's thread panicked.
    Panicked,
    /// One of the variants of a command failed.
    Variant {
        /// Its medium, collector and protocol.
        variant: String,
        /// Why.
        source: Box<Error>,
    },
}

impl Error {
    /// An error of the operating system.
    pub fn io(operation: impl Into<String>, source: std::io::Error) -> Self {
        Error::Io { operation: operation.into(), source }
    }

    /// Whether running the transaction again can succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Error::Engine(error) if error.is_retryable())
    }
}

impl From<pantile::Error> for Error {
    fn from(error: pantile::Error) -> Self {
        Error::Engine(error)
    }
}

impl TransactionError for Error {
    fn of_database(&self) -> Option<&pantile::Error> {
        match self {
            Error::Engine(error) => Some(error),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Engine(error) => write!(f, "{error}"),
            Error::Io { operation, source } => write!(f, "cannot {operation}: {source}"),
            Error::Interrupted { during } => {
                write!(f, "interrupted while {during}; nothing was measured")
            }
            Error::OtherData { dir, detail } => write!(f, "{} {detail}", dir.display()),
            Error::Setting(reason) => f.write_str(reason),
            Error::Missing { what, key } => write!(f, "{what} {key} is not in the database"),
            Error::Changed { row, how, after } => write!(
                f,
                "a long reader saw a row change that it had read before, {:.1} s after it began: {row}: {how}",
                after.as_secs_f64()
            ),
            Error::Lost { tuples, found } => {
                write!(f, "the database was closed with {tuples} tuples and opened again with {found}")
            }
            Error::Variant { variant, source } => write!(f, "{variant}: {source}"),
            Error::Panicked => f.write_str("a client panicked; its message is above"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Engine(error) => Some(error),
            Error::Io { source, .. } => Some(source),
            Error::Variant { source, .. } => Some(source),
            _ => None,
        }
    }
}
