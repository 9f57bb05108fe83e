//! The input, line by line.

use std::io::{self, BufRead, BufReader, Read};

use crate::error::{Error, Place};

/// Bytes that are read at once.
const AT_ONCE: usize = 256 << 10;

/// What is loaded.
pub struct Input<R> {
    reader: BufReader<R>,
    pub file: Option<String>,
    /// Lines that have been read.
    pub lines: u64,
    /// Bytes that have been read.
    pub bytes: u64,
    /// Whether the line that was read last has an end.
    pub ends_with_line: bool,
}

impl<R: Read> Input<R> {
    pub fn new(input: R, file: Option<String>) -> Self {
        Self {
            reader: BufReader::with_capacity(AT_ONCE, input),
            file,
            lines: 0,
            bytes: 0,
            ends_with_line: true,
        }
    }

    /// The first byte of the next line, or `None` at the end.
    pub fn peek(&mut self) -> Result<Option<u8>, Error> {
        loop {
            match self.reader.fill_buf() {
                Ok(bytes) => return Ok(bytes.first().copied()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    /// Appends the next line. Returns whether it has an end.
    pub fn line(&mut self, to: &mut Vec<u8>) -> Result<bool, Error> {
        let read = self.reader.read_until(b'\n', to).map_err(|source| self.failed(source))?;
        self.bytes += read as u64;
        self.lines += u64::from(read > 0);
        let has_end = read > 0 && to.last() == Some(&b'\n');
        self.ends_with_line = has_end || read == 0 && self.ends_with_line;
        Ok(has_end)
    }

    /// The line that was read last.
    pub fn place(&self) -> Place {
        self.place_of(self.lines.max(1))
    }

    pub fn place_of(&self, line: u64) -> Place {
        Place { file: self.file.clone(), line }
    }

    pub fn damaged(&self, detail: impl Into<String>) -> Error {
        Error::Damaged { at: self.place(), detail: detail.into() }
    }

    pub fn failed(&self, source: io::Error) -> Error {
        let from = self.file.clone().unwrap_or_else(|| "the input".into());
        Error::Read { from, source }
    }
}
