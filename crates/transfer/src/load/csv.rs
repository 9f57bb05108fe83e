//! CSV as in RFC 4180, row by row.

use std::io::Read;

use crate::batch::Lines;
use crate::error::Error;
use crate::load::input::Input;

/// What some programs write in front of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads the rows of a CSV file.
pub struct Csv<'i, R> {
    input: &'i mut Input<R>,
    /// The line that is being read.
    line: Vec<u8>,
    at: usize,
    /// The line of the last quote that opened a field.
    opened: u64,
    /// The most bytes that a field in quotes may have. Behind a quote that is not closed, all of the rest is one field.
    pub longest: usize,
}

/// As much as a name takes.
const LONGEST_OF_HEADER: usize = 64 << 10;

impl<'i, R: Read> Csv<'i, R> {
    pub fn new(input: &'i mut Input<R>) -> Self {
        Self { input, line: Vec::new(), at: 0, opened: 0, longest: LONGEST_OF_HEADER }
    }

    /// Appends the fields of the next row without their quotes, and where each
    /// ends. Returns the lines of the row, or `None` at the end.
    pub fn row(&mut self, bytes: &mut Vec<u8>, ends: &mut Vec<usize>) -> Result<Option<Lines>, Error> {
        // Empty lines are no rows.
        while self.is_at_end() {
            if !self.next_line()? {
                return Ok(None);
            }
            if self.input.lines == 1 && self.line.starts_with(MARK) {
                self.at = MARK.len();
            }
        }
        let first = self.input.lines;
        loop {
            if self.line.get(self.at) == Some(&b'"') {
                self.quoted(bytes)?;
            } else {
                let rest = &self.line[self.at..];
                let len = rest.iter().position(|c| matches!(c, b',' | b'\r' | b'\n')).unwrap_or(rest.len());
                bytes.extend_from_slice(&rest[..len]);
                self.at += len;
            }
            ends.push(bytes.len());
            if self.line.get(self.at) == Some(&b',') {
                self.at += 1;
            } else if self.is_at_end() {
                self.at = self.line.len();
                return Ok(Some(Lines { first, last: self.input.lines }));
            } else {
                return Err(self.not_csv());
            }
        }
    }

    /// What has been read of it.
    pub fn input(&self) -> &Input<R> {
        self.input
    }

    /// Whether nothing is left of the line but its end.
    fn is_at_end(&self) -> bool {
        matches!(&self.line[self.at..], [] | [b'\n'] | [b'\r', b'\n'])
    }

    fn next_line(&mut self) -> Result<bool, Error> {
        self.line.clear();
        self.at = 0;
        self.input.line(&mut self.line)?;
        Ok(!self.line.is_empty())
    }

    /// Why a field does not end where it should. Without quotes, only a CR is in the way.
    fn not_csv(&self) -> Error {
        if self.line[self.at] == b'\r' {
            return self.input.damaged("a CR is neither in quotes nor before a LF");
        }
        let text = "there is text behind a closing quote";
        // The quote to mend may be far above, as all between two quotes is one field.
        match self.opened == self.input.lines {
            true => self.input.damaged(text),
            false => self.input.damaged(format!("{text}; the one that it closes is in line {}", self.opened)),
        }
    }

    /// Appends the field whose quote is next, up to the quote that closes it.
    fn quoted(&mut self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        self.opened = self.input.lines;
        self.at += 1;
        let start = bytes.len();
        loop {
            let rest = &self.line[self.at..];
            let Some(len) = rest.iter().position(|c| *c == b'"') else {
                bytes.extend_from_slice(rest);
                let is_too_long = bytes.len() - start > self.longest;
                if !is_too_long && self.next_line()? {
                    continue;
                }
                let detail = match is_too_long {
                    true => "a quote is not closed, or the field is longer than every column takes",
                    false => "a quote is not closed",
                };
                let at = self.input.place_of(self.opened);
                return Err(Error::Damaged { at, detail: detail.into() });
            };
            bytes.extend_from_slice(&rest[..len]);
            self.at += len + 1;
            if self.line.get(self.at) != Some(&b'"') {
                return Ok(());
            }
            bytes.push(b'"');
            self.at += 1;
        }
    }
}
