//! The header page of a chunk: its lines, and a copy of what they say.
//!
//! A line is 64 bytes, so a medium can lose it as a whole. A lost line reads as zeros, like a line
//! that was never written. So the first entry of each line has a copy in another page. While a
//! database is open, both are written and zeroed together, and made durable by the same sync. So
//! after an unclean stop a block is in use if either of them is whole. If a power failure leaves
//! only one of the two, then either the block was being opened, and nobody has been told of that,
//! or it was being released, and the release can be repeated (I-29).

use crate::format::{DESCRIPTOR_BYTES, ENTRY_BYTES, LINES_BYTES};

/// Where line `n` lies in its chunk's header page. Line 0 is the chunk header.
pub(crate) fn line_at(n: usize) -> usize {
    n * DESCRIPTOR_BYTES
}

/// Where the copy of the first entry of line `n` lies.
pub(crate) fn copy_at(n: usize) -> usize {
    LINES_BYTES + n * ENTRY_BYTES
}

/// Reads an entry with a seed: `None` if it is not written, an error if it is
/// damaged.
pub(crate) type Decode<T> = fn(&[u8], u64) -> Result<Option<T>, &'static str>;

/// An entry that is lost at one of its two places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lost {
    /// The offset at which it is lost.
    pub at: u64,
    /// The offset at which it is whole.
    pub is_at: u64,
}

/// The header page of a chunk.
#[derive(Clone, Copy)]
pub(crate) struct Lines<'p> {
    pub page: &'p [u8],
    /// Where it lies on the medium.
    pub offset: u64,
    pub identity: u64,
}

impl<'p> Lines<'p> {
    /// A whole line.
    pub fn line(&self, n: usize) -> &'p [u8] {
        &self.page[line_at(n)..][..DESCRIPTOR_BYTES]
    }

    /// The copy of a line's first entry.
    pub fn copy(&self, n: usize) -> &'p [u8] {
        &self.page[copy_at(n)..][..ENTRY_BYTES]
    }

    pub fn seed(&self, n: usize) -> u64 {
        self.identity ^ (self.offset + line_at(n) as u64)
    }

    pub fn read<T>(&self, n: usize, decode: Decode<T>) -> Result<Option<T>, &'static str> {
        decode(self.line(n), self.seed(n))
    }

    pub fn read_copy<T>(&self, n: usize, decode: Decode<T>) -> Result<Option<T>, &'static str> {
        decode(self.copy(n), self.seed(n))
    }
}
