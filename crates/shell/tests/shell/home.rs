//! Databases to try on, and what commands print.

use std::sync::atomic::AtomicBool;

use pantile::{Database, MediumKind, Options};
use pantile_shell::{Error, Shell};

/// Nobody stops these.
pub static GO_ON: AtomicBool = AtomicBool::new(false);

/// A new database in memory.
pub fn new() -> Database {
    Options::new().medium(MediumKind::Dram).open("unused").expect("memory")
}

/// What a command prints, or why it fails.
pub fn run(shell: &mut Shell<'_>, line: &str) -> Result<String, Error> {
    let mut out = Vec::new();
    shell.run(line, &mut out)?;
    Ok(String::from_utf8(out).expect("UTF-8"))
}

/// Runs a command that succeeds.
#[track_caller]
pub fn done(shell: &mut Shell<'_>, line: &str) -> String {
    run(shell, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

/// The message of a command that fails.
#[track_caller]
pub fn refused(shell: &mut Shell<'_>, line: &str) -> String {
    run(shell, line).map_or_else(|error| error.to_string(), |text| panic!("{line}: {text}"))
}
