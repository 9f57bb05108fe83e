//! Long values, piece by piece.

use pantile_base::{TableId, Timestamp};

use crate::types::error::{Error, Result};

/// Bytes of a piece of a value out of line; the last one may be shorter.
pub(crate) const PIECE: usize = 60_000;

/// Where values out of line are.
pub(crate) trait OutOfLine {
    /// A piece of the value with this id, of a table's row that was read at `at`.
    ///
    /// # Errors
    /// [`Error::Damaged`] if there is none, and errors of a read.
    fn piece(&self, of: TableId, id: u64, piece: usize, at: Timestamp) -> Result<&[u8]>;
}

/// The reference of a row to a value out of line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub table: TableId,
    pub id: u64,
    pub len: u64,
    /// When the row was read.
    pub at: Timestamp,
}

impl Reference {
    fn count(&self) -> usize {
        (self.len as usize).div_ceil(PIECE)
    }

    fn piece<'t>(&self, values: &'t dyn OutOfLine, piece: usize) -> Result<&'t [u8]> {
        let bytes = values.piece(self.table, self.id, piece, self.at)?;
        let from = piece as u64 * PIECE as u64;
        let expected = (self.len - from).min(PIECE as u64);
        match bytes.len() as u64 == expected {
            true => Ok(bytes),
            false => Err(self.wrong_length(from + bytes.len() as u64)),
        }
    }

    /// The whole value.
    pub fn read(&self, values: &dyn OutOfLine) -> Result<Vec<u8>> {
        let mut value = Vec::new();
        // The last piece is looked at first: memory is taken for no length that is damaged.
        if let Some(last) = self.count().checked_sub(1) {
            self.piece(values, last)?;
            value.reserve_exact(self.len as usize);
        }
        (0..self.count()).try_for_each(|piece| {
            value.extend_from_slice(self.piece(values, piece)?);
            Ok(())
        })?;
        Ok(value)
    }

    #[cold]
    fn wrong_length(&self, found: u64) -> Error {
        let (id, len) = (self.id, self.len);
        Error::Damaged {
            place: format!("value {id} out of line"),
            detail: format!("it has {found} of {len} bytes"),
        }
    }
}

/// The bytes of a string or of bytes, piece by piece; see [`Row::pieces`](crate::Row::pieces).
#[derive(Clone)]
pub struct Pieces<'t>(Source<'t>);

#[derive(Clone)]
enum Source<'t> {
    InLine(Option<&'t [u8]>),
    OutOfLine { reference: Reference, values: &'t dyn OutOfLine, next: usize },
}

impl<'t> Pieces<'t> {
    pub(crate) fn in_line(bytes: &'t [u8]) -> Self {
        Self(Source::InLine(Some(bytes).filter(|bytes| !bytes.is_empty())))
    }

    pub(crate) fn out_of_line(reference: Reference, values: &'t dyn OutOfLine) -> Self {
        Self(Source::OutOfLine { reference, values, next: 0 })
    }

    /// The number of bytes in all pieces that are left.
    pub fn bytes_left(&self) -> u64 {
        match &self.0 {
            Source::InLine(bytes) => bytes.map_or(0, |bytes| bytes.len() as u64),
            Source::OutOfLine { reference, next, .. } => reference.len.saturating_sub((*next * PIECE) as u64),
        }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Result<&'t [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.0 {
            Source::InLine(bytes) => bytes.take().map(Ok),
            Source::OutOfLine { reference, values, next } => {
                let piece = *next;
                (piece < reference.count()).then(|| {
                    *next += 1;
                    reference.piece(*values, piece)
                })
            }
        }
    }
}

impl std::fmt::Debug for Pieces<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pieces").field("bytes_left", &self.bytes_left()).finish()
    }
}
