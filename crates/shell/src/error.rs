//! Why a command failed.

use std::fmt;
use std::io;

/// Why a command failed. Its message is one line for people.
///
/// ```
/// # use std::sync::atomic::AtomicBool;
/// # use pantile::{MediumKind, Options};
/// use pantile_shell::{Error, Shell};
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let failed = Shell::new(&db, &AtomicBool::new(false)).run("fly", &mut Vec::new());
/// assert!(matches!(failed, Err(Error::Command(_))));
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The command is wrong.
    Command(String),
    /// The database refused.
    Database(pantile::Error),
    /// The dump of a table failed.
    Dump(pantile_transfer::Error),
    /// The load of a table failed.
    Load(pantile_transfer::LoadError),
    /// The result cannot be written.
    Write(io::Error),
    /// The script cannot be read.
    Read {
        /// The file.
        from: String,
        /// The system's error.
        source: io::Error,
    },
    /// The caller has asked to stop.
    Interrupted,
    /// A command of a script failed.
    Script {
        /// The file.
        file: String,
        /// The line, counted from 1.
        line: u64,
        /// Why.
        cause: Box<Error>,
    },
}

impl Error {
    /// A wrong command.
    pub(crate) fn command(what: impl Into<String>) -> Self {
        Error::Command(what.into())
    }

    /// Whether the reader of the result has gone.
    pub fn is_broken_pipe(&self) -> bool {
        match self {
            Error::Write(error) => error.kind() == io::ErrorKind::BrokenPipe,
            Error::Script { cause, .. } => cause.is_broken_pipe(),
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Command(what) => f.write_str(what),
            Error::Database(error) => error.fmt(f),
            Error::Dump(error) => error.fmt(f),
            Error::Load(error) => error.fmt(f),
            Error::Write(error) => {
                write!(f, "cannot print: {error}; what this command has changed is changed")
            }
            Error::Read { from, source } => write!(f, "cannot read {from}: {source}"),
            Error::Interrupted => f.write_str("interrupted; this command changed nothing"),
            Error::Script { file, line, cause } => write!(f, "{file}, line {line}: {cause}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<pantile::Error> for Error {
    fn from(error: pantile::Error) -> Self {
        Error::Database(error)
    }
}

impl From<pantile_transfer::Error> for Error {
    fn from(error: pantile_transfer::Error) -> Self {
        Error::Dump(error)
    }
}

impl From<pantile_transfer::LoadError> for Error {
    fn from(error: pantile_transfer::LoadError) -> Self {
        Error::Load(error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Error::Write(error)
    }
}
