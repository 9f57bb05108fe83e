//! How the command ends: one table of exit statuses for all verbs.

use std::fmt::Display;
use std::process::ExitCode;

/// An exit status. Scripts rely on these numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Exit {
    Success = 0,
    Failure = 1,
    Misuse = 2,
    /// Ctrl-C was pressed: twice, where the first one stops the work cleanly.
    Killed = 130,
}

/// What `--help` says about them.
pub const STATUSES: [(Exit, &str); 4] = [
    (Exit::Success, "the verb did what it was asked to do, and found nothing wrong"),
    (Exit::Failure, "it failed, or it found damage, a loss or an inconsistency"),
    (Exit::Misuse, "the command line is wrong"),
    (Exit::Killed, "Ctrl-C ended it at once: a verb that only reads, or one that was asked to stop before"),
];

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// Why a verb did not succeed: an exit status, and one line for people.
#[derive(PartialEq, Eq, Debug)]
pub struct Failure {
    pub exit: Exit,
    pub line: String,
}

impl Failure {
    /// The command line asks for something impossible.
    pub fn misuse(why: impl Display) -> Self {
        Self { exit: Exit::Misuse, line: one_line(&why.to_string()) }
    }

    /// The verb failed, or found something wrong.
    pub fn failed(why: impl Display) -> Self {
        Self { exit: Exit::Failure, line: one_line(&why.to_string()) }
    }
}

impl From<pantile_bench::Error> for Failure {
    fn from(error: pantile_bench::Error) -> Self {
        let why = match &error {
            pantile_bench::Error::Variant { source, .. } => source,
            other => other,
        };
        match why {
            pantile_bench::Error::Setting(_) => Failure::misuse(error),
            _ => Failure::failed(error),
        }
    }
}

impl From<pantile_paper::Error> for Failure {
    fn from(error: pantile_paper::Error) -> Self {
        match error {
            pantile_paper::Error::UnknownClaim(_) | pantile_paper::Error::NoRecord { .. } => {
                Failure::misuse(error)
            }
            pantile_paper::Error::Io { .. } => Failure::failed(error),
        }
    }
}

impl From<pantile_crash::Error> for Failure {
    fn from(error: pantile_crash::Error) -> Self {
        Failure::failed(error)
    }
}

impl From<pantile_transfer::Error> for Failure {
    fn from(error: pantile_transfer::Error) -> Self {
        Failure::failed(error)
    }
}

impl From<pantile_transfer::LoadError> for Failure {
    fn from(error: pantile_transfer::LoadError) -> Self {
        Failure::failed(error)
    }
}

impl From<pantile::Error> for Failure {
    fn from(error: pantile::Error) -> Self {
        match error {
            pantile::Error::InvalidOption(_) => Failure::misuse(error),
            other => Failure::failed(other),
        }
    }
}

/// A message without its line ends.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
