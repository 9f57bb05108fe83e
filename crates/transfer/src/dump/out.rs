//! Where a dump goes, and how much of it has been written.

use std::io::Write;
use std::ops::ControlFlow;

use serde::Serialize;

use crate::error::Error;
use crate::progress::Progress;

/// Bytes after which the buffer is written.
const FULL: usize = 128 << 10;

/// What was written.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dumped {
    /// Tables.
    pub tables: u64,
    /// Rows of all tables.
    pub rows: u64,
    /// Bytes of text.
    pub bytes: u64,
}

/// The output, with a buffer.
pub struct Out<'o, W> {
    to: W,
    pub buffer: Vec<u8>,
    bytes: u64,
    rows: u64,
    progress: &'o dyn Fn(&Progress<'_>) -> ControlFlow<()>,
}

impl<'o, W: Write> Out<'o, W> {
    pub fn new(to: W, progress: &'o dyn Fn(&Progress<'_>) -> ControlFlow<()>) -> Self {
        Self { to, buffer: Vec::with_capacity(FULL + FULL / 8), bytes: 0, rows: 0, progress }
    }

    /// Rows that have been written.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Writes a line of JSON.
    pub fn line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.buffer, line).map_err(|error| cannot_write(error.into()))?;
        self.buffer.push(b'\n');
        Ok(())
    }

    /// Counts a row that has been put into the buffer.
    pub fn row(&mut self, table: &str) -> Result<(), Error> {
        self.rows += 1;
        if self.buffer.len() >= FULL { self.note(table) } else { Ok(()) }
    }

    /// Writes the buffer, and asks whether to go on.
    pub fn note(&mut self, table: &str) -> Result<(), Error> {
        self.flush()?;
        match (self.progress)(&Progress { table, rows: self.rows, bytes: self.bytes }) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::Interrupted),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.to.write_all(&self.buffer).map_err(cannot_write)?;
        self.bytes += self.buffer.len() as u64;
        self.buffer.clear();
        // What one long value has needed is not kept.
        self.buffer.shrink_to(2 * FULL);
        Ok(())
    }

    /// Writes the rest.
    pub fn finish(mut self, tables: u64) -> Result<Dumped, Error> {
        self.flush()?;
        self.to.flush().map_err(cannot_write)?;
        Ok(Dumped { tables, rows: self.rows, bytes: self.bytes })
    }
}

fn cannot_write(source: std::io::Error) -> Error {
    Error::Write { to: "the output".into(), source }
}
