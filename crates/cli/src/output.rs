//! The one place that prints. Results go to stdout, messages to stderr.

use std::fs::File;
use std::io::{ErrorKind, Write, stderr, stdout};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::exit::Failure;

/// Prints a result for people.
pub fn print(text: &str) -> Result<(), Failure> {
    put(&mut stdout(), text)
}

/// Prints one line on stderr. A failure to do so cannot be reported anywhere.
pub fn note(line: &str) {
    let _ = put(&mut stderr(), &format!("{line}\n"));
}

/// Creates a file to write to.
pub fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

/// The failure to write a file.
pub fn cannot_write(path: &Path, error: &std::io::Error) -> Failure {
    Failure::failed(format!("cannot write {}: {error}", path.display()))
}

/// Where a verb's text and record go, as `--json` asks.
pub enum Output {
    /// The text goes to stdout; no record is wanted.
    Text,
    /// The text goes to stdout, the record to a file.
    File(File, PathBuf),
    /// The record goes to stdout, where a script reads it, and the text to stderr.
    Stdout,
}

impl Output {
    /// Opens the file at once, so that a long run does not end with a file that cannot be written. What is in it stays
    /// until then.
    pub fn open(json: Option<&Path>) -> Result<Self, Failure> {
        match json {
            None => Ok(Output::Text),
            Some(path) if path == Path::new("-") => Ok(Output::Stdout),
            Some(path) => {
                let file = File::options().write(true).create(true).truncate(false).open(path);
                Ok(Output::File(file.map_err(|error| cannot_write(path, &error))?, path.to_owned()))
            }
        }
    }

    /// Writes the text and the record.
    pub fn write(&mut self, text: &str, record: &impl Serialize) -> Result<(), Failure> {
        let record = || serde_json::to_string_pretty(record).map(|json| json + "\n").map_err(Failure::failed);
        match self {
            Output::Text => print(text),
            Output::Stdout => put(&mut stderr(), text).and_then(|()| print(&record()?)),
            Output::File(file, path) => {
                let printed = print(text);
                let record = record()?;
                let written = replace(file, record.as_bytes());
                written.map_err(|error| cannot_write(path, &error)).and(printed)
            }
        }
    }
}

impl Output {
    /// The same after the work itself was `done`, which a report that cannot be written does not hide.
    pub fn write_after(&mut self, done: &str, text: &str, record: &impl Serialize) -> Result<(), Failure> {
        let said = |failure: Failure| Failure { line: format!("{done}, but {}", failure.line), ..failure };
        self.write(text, record).map_err(said)
    }
}

/// Writes to a file in place of what it holds. One that cannot be cut, as a pipe, holds nothing.
fn replace(file: &mut File, bytes: &[u8]) -> std::io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    file.write_all(bytes)
}

fn put(to: &mut dyn Write, text: &str) -> Result<(), Failure> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        // The reader has seen enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::failed(format!("cannot print: {error}"))),
        Ok(()) => Ok(()),
    }
}

/// Names come from programs, and may hold what a terminal takes for commands.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
