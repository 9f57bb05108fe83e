//! Why a crash test could not be carried out. What the test finds is not an
//! error; it is in its [`crate::report::Report`].

use std::fmt;
use std::io;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a crash test could not continue. The message is one line.
#[derive(Debug)]
pub enum Error {
    /// An error of the engine.
    Engine(pantile::Error),
    /// An error of the operating system.
    Io {
        /// What was attempted.
        operation: String,
        /// The system's error.
        source: io::Error,
    },
    /// A line in the record of a working process cannot be parsed.
    Line(String),
    /// The working process has seen something that must not happen.
    Broken(String),
}

impl Error {
    /// For `map_err`: adds what was attempted.
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
            Error::Line(line) => write!(f, "not a line of a history: {line:?}"),
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
