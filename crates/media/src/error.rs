//! What can go wrong with a medium, and what is still true when it does.

pub use crate::limits::FullReason;
use crate::limits::{Cause, Explained};
pub use crate::no_dax::NoDax;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// An operation of a medium failed.
#[derive(Debug)]
pub enum MediumError {
    /// The operating system refused `operation`.
    Io {
        /// What was attempted, as in "open" or "map".
        operation: &'static str,
        /// The file or directory, or `None` where only memory is involved.
        path: Option<PathBuf>,
        /// What the operating system said.
        source: io::Error,
    },
    /// The medium cannot grow to `needed` bytes; it stays as it was.
    Full {
        /// Bytes the medium would have had.
        needed: u64,
        /// The data file, or `None` where only memory is involved.
        path: Option<PathBuf>,
        /// What stands in the way.
        reason: FullReason,
    },
    /// Another process, or this one, already has the database open.
    Locked {
        /// The database's directory.
        path: PathBuf,
        /// The process that has it open, if the system says which.
        process: Option<u32>,
    },
    /// The path of the database is empty.
    NoPath,
    /// The data file does not consist of whole chunks; it was left untouched.
    Truncated {
        /// The data file.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    /// There is no database where one must exist.
    Missing {
        /// The directory or file that is not there.
        path: PathBuf,
    },
    /// There is a database where none may exist.
    Exists {
        /// The data file found.
        path: PathBuf,
    },
    /// The database path names something that is not a directory.
    NotADirectory {
        /// The path given.
        path: PathBuf,
    },
    /// The data file is not an ordinary file; it was left untouched.
    NotAFile {
        /// The path of the data file.
        path: PathBuf,
    },
    /// The place cannot serve as persistent memory; nothing was made or changed.
    NoDax {
        /// The data file, or what was to become it.
        path: PathBuf,
        /// What is missing.
        reason: NoDax,
    },
    /// Bytes that the data file should have cannot be read.
    Unreadable {
        /// The data file.
        path: PathBuf,
        /// The first page that cannot be read, in bytes.
        offset: u64,
        /// What the operating system said.
        source: io::Error,
    },
    /// A write or a sync failed before; the medium takes no more writes.
    Failed {
        /// The first failure, in words.
        cause: String,
    },
    /// The caller has stopped the work.
    Stopped,
    /// A range reaches beyond the end of the medium.
    OutOfRange {
        /// First byte of the range.
        offset: u64,
        /// Bytes in the range.
        len: u64,
        /// Bytes the medium has.
        size: u64,
    },
}

impl MediumError {
    /// An operating system's refusal; one for want of room becomes [`MediumError::Full`].
    pub(crate) fn growing(
        operation: &'static str,
        path: Option<PathBuf>,
        needed: u64,
        source: io::Error,
    ) -> Self {
        match FullReason::of(&source, needed) {
            Some(reason) => Self::Full { needed, path, reason },
            None => Self::Io { operation, path, source },
        }
    }

    /// The same, for the whole of a growth of which a part failed.
    pub(crate) fn needing(self, needed: u64) -> Self {
        match self {
            Self::Full { path, reason, .. } => Self::Full { needed, path, reason },
            other => other,
        }
    }

    /// An operating system's refusal that concerns `path`.
    pub(crate) fn at(operation: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Self::Io { operation, path: Some(path.into()), source }
    }

    /// Whether this is [`MediumError::Full`]: writers must wait for space, readers may go on.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }
}

/// The process that has a database open, as words.
#[derive(Debug, Clone, Copy)]
pub struct User(pub Option<u32>);

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(process) if process == std::process::id() => f.write_str("in this process"),
            Some(process) => match command_of(process) {
                Some(command) => write!(f, "in process {process} ({command})"),
                None => write!(f, "in process {process}"),
            },
            None => f.write_str("here or in another process"),
        }
    }
}

/// The name of a process's command, without its arguments, which may hold secrets.
fn command_of(process: u32) -> Option<String> {
    let command = std::fs::read_to_string(format!("/proc/{process}/comm")).ok()?;
    Some(command.trim_end().escape_debug().to_string())
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { operation, path: Some(path), source } => {
                write!(f, "cannot {operation} {}: {}", path.display(), Explained(source))
            }
            Self::Io { operation, path: None, source } => {
                write!(f, "cannot {operation} memory: {}", Explained(source))
            }
            Self::Full { needed, path, reason } => {
                match path {
                    Some(path) => write!(f, "{} is full", path.display())?,
                    None => f.write_str("the medium is full")?,
                }
                let (cause, advice) = (Cause(*reason), reason.advice());
                write!(f, ": {needed} bytes are needed, {cause}; nothing was changed; {advice}")
            }
            Self::Locked { path, process } => {
                let user = User(*process);
                write!(f, "the database in {} is open already {user}; close it there first", path.display())
            }
            Self::NoPath => f.write_str(
                "the path of the database is empty; name a directory, \".\" for the current one; nothing was made",
            ),
            Self::Truncated { path, len } => write!(
                f,
                "{} is {len} bytes long, which is not a multiple of {} bytes: \
                 it was truncated or is not a Pantile data file; it was left untouched; \
                 restore it from a copy",
                path.display(),
                pantile_base::limits::GROWTH_BYTES
            ),
            Self::Missing { path } => write!(
                f,
                "no database here: {} does not exist; check the path or allow creation",
                path.display()
            ),
            Self::Exists { path } => write!(
                f,
                "{} exists already and was left untouched; choose another directory",
                path.display()
            ),
            Self::Stopped => f.write_str("the caller has stopped the work; nothing was changed"),
            Self::NotADirectory { path } => {
                write!(f, "{} is not a directory; a database lives in a directory of its own", path.display())
            }
            Self::NotAFile { path } => {
                write!(f, "{} is not an ordinary file and was left untouched", path.display())
            }
            Self::NoDax { path, reason } => write!(
                f,
                "{} cannot be used as persistent memory: {reason}; nothing was changed; put the \
                 database on a persistent-memory device (an fsdax namespace) with ext4 or xfs \
                 mounted with dax=always, or use the medium \"file\"",
                path.display()
            ),
            Self::Unreadable { path, offset, source } => write!(
                f,
                "{} cannot be read at byte {offset}: {source}; nothing was changed; check the \
                 device, then the database, and restore from a copy what is damaged",
                path.display()
            ),
            Self::Failed { cause } => write!(
                f,
                "the medium failed earlier ({cause}) and takes no more writes; what was \
                 acknowledged as durable before is in the data file, and reads go on; see to the cause, \
                 copying the rows first if the file itself is gone, then close the database and open it again"
            ),
            Self::OutOfRange { offset, len, size } => write!(
                f,
                "bytes {offset}..{offset}+{len} lie beyond the medium's {size} bytes; \
                 nothing was changed"
            ),
        }
    }
}

impl std::error::Error for MediumError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } | Self::Unreadable { source, .. } => Some(source),
            _ => None,
        }
    }
}
