//! Limits that the system sets for a process, in words: which one an error of the
//! system is about, and what to do.

use crate::os::{self, Limit};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, Write};

/// Why a medium can grow no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FullReason {
    /// The configured limit, in bytes.
    Limit(u64),
    /// Bytes of addresses that the process got when the medium was opened, which
    /// were fewer than asked for.
    Addresses(u64),
    /// The system gives the process no more memory or addresses.
    Memory,
    /// The bytes beyond which the process may write no file, or what the file system
    /// takes, if that is less.
    FileSize(Option<u64>),
    /// The quota of disk space is used up.
    Quota,
    /// The device (disk, memory) has no room left.
    Device,
}

impl FullReason {
    /// What stands in the way of `needed` bytes of a medium, if the system refuses
    /// them for want of room.
    pub(crate) fn of(error: &io::Error, needed: u64) -> Option<Self> {
        match error.kind() {
            ErrorKind::StorageFull => Some(Self::Device),
            ErrorKind::QuotaExceeded => Some(Self::Quota),
            ErrorKind::FileTooLarge => {
                Some(Self::FileSize(os::limit(Limit::FileSize).filter(|limit| *limit < needed)))
            }
            _ => os::is_out_of_memory(error).then_some(Self::Memory),
        }
    }
}

/// An error of the system, and the limit behind it if there is one.
///
/// ```
/// # use pantile_media::Explained;
/// let full = std::io::Error::from(std::io::ErrorKind::QuotaExceeded);
/// assert!(Explained(&full).to_string().ends_with("free some of it, or raise the quota"));
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Explained<'e>(pub &'e io::Error);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(error) = self;
        write!(f, "{error}")?;
        match FullReason::of(error, u64::MAX) {
            Some(reason) => write!(f, "; {}; {}", Cause(reason), reason.advice()),
            None if os::is_out_of_files(error) => {
                let most = os::limit(Limit::Files).unwrap_or(u64::MAX);
                write!(
                    f,
                    "; the process has {most} files open, as many as it may (`ulimit -n`); close some, or \
                     raise the limit"
                )
            }
            None => Ok(()),
        }
    }
}

/// Why there is no more, as a sentence.
pub(crate) struct Cause(pub(crate) FullReason);

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            FullReason::Limit(limit) => write!(f, "{limit} are allowed"),
            FullReason::Addresses(reserved) => write!(
                f,
                "the process got addresses for {reserved} bytes when it opened the database{}",
                Limited(Limit::Addresses)
            ),
            FullReason::Memory => {
                f.write_str("the system gives the process no more memory or addresses")?;
                write!(f, "{}{}", Limited(Limit::Addresses), Limited(Limit::Memory))
            }
            FullReason::FileSize(Some(limit)) => {
                write!(f, "the process may write no file beyond {limit} bytes (`ulimit -f`)")
            }
            FullReason::FileSize(None) => f.write_str("the file system has no files as large as that"),
            FullReason::Quota => f.write_str("the quota of disk space is used up"),
            FullReason::Device => f.write_str("the device is full"),
        }
    }
}

impl FullReason {
    /// What to do about it.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Limit(_) | Self::FileSize(Some(_)) => "raise the limit",
            Self::Addresses(_) => "raise the limit of the process and open the database again",
            Self::Memory => "give it more",
            Self::FileSize(None) => "use another file system",
            Self::Quota => "free some of it, or raise the quota",
            Self::Device => "free space on it",
        }
    }
}

/// A limit of the process in parentheses, if it has one.
struct Limited(Limit);

impl fmt::Display for Limited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (os::limit(self.0), self.0) {
            (Some(bytes), Limit::Addresses) => write!(f, " (it may have {bytes} bytes of them, `ulimit -v`)"),
            (Some(bytes), Limit::Memory) => {
                write!(f, " (it may have {bytes} bytes of private memory, `ulimit -d`)")
            }
            _ => Ok(()),
        }
    }
}

/// Fails where the process may not write a file up to this many bytes. The system
/// would not return the error, but end the process (SIGXFSZ).
///
/// # Errors
/// [`ErrorKind::FileTooLarge`].
pub fn check_file_size(bytes: u64) -> io::Result<()> {
    check_within(bytes, most_of_file())
}

/// Bytes up to which the process may write a file now.
pub(crate) fn most_of_file() -> u64 {
    os::limit(Limit::FileSize).unwrap_or(u64::MAX)
}

/// As [`check_file_size`], if the process may write as many bytes as `most`.
pub(crate) fn check_within(bytes: u64, most: u64) -> io::Result<()> {
    if bytes <= most { Ok(()) } else { Err(ErrorKind::FileTooLarge.into()) }
}

/// A new file that is written from its beginning, within the limit of the process.
pub(crate) struct NewFile {
    file: File,
    len: u64,
}

impl NewFile {
    pub(crate) fn over(file: File) -> Self {
        Self { file, len: 0 }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_file_size(self.len + bytes.len() as u64)?;
        let written = self.file.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_named() {
        let text = |kind: ErrorKind| Explained(&kind.into()).to_string();
        assert!(text(ErrorKind::StorageFull).contains("the device is full; free space on it"));
        assert!(text(ErrorKind::QuotaExceeded).contains("quota of disk space"));
        assert!(text(ErrorKind::FileTooLarge).contains("no files as large as that; use another file system"));
        assert_eq!(text(ErrorKind::NotFound), "entity not found");
        let files = io::Error::from_raw_os_error(if cfg!(windows) { 4 } else { libc::EMFILE });
        assert!(Explained(&files).to_string().contains("files open, as many as it may"), "{files}");
    }
}
