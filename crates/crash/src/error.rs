//! Why a crash test could not be carried out. What it finds is no error, but
//! its [`crate::report::Report`].

use std::fmt;
use std::io;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a crash test could not go on. Its message is one line.
#[derive(Debug)]
pub enum Error {
    /// The engine said so.
    Engine(pantile::Error),
    /// The operating system said so.
    Io {
        /// What was tried.
        operation: String,
        /// The system's error.
        source: io::Error,
    },
    /// A line that tells of what was done cannot be understood.
    Line(String),
    /// The process that works has seen something that must not be.
    Broken(String),
}

impl Error {
    /// For `map_err`, with what was tried.
    pub fn io(operation: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let operation = operation.into();
        move |source| Error::Io { operation, source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Engine(error) => error.fmt(f),
            Error::Io { operation, source } => write!(f, "cannot {operation}: {source}"),
            Error::Line(line) => write!(f, "no line of a history: {line:?}"),
            Error::Broken(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<pantile::Error> for Error {
    fn from(error: pantile::Error) -> Self {
        Error::Engine(error)
    }
}
