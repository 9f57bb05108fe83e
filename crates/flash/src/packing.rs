//! Compressing rows one by one, so that each can be read alone.

use std::io;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary, from_samples};
use zstd::zstd_safe::{CParameter, DParameter, FrameFormat};

/// Bytes that a compressed row takes beside its own: where it ends.
pub const ENTRY_BYTES: u64 = 4;

/// What rows have in common, learned from some of them.
pub struct Dictionary {
    bytes: Vec<u8>,
    encoder: EncoderDictionary<'static>,
    decoder: DecoderDictionary<'static>,
}

impl Dictionary {
    /// Learns one of at most `most_bytes` from rows. `None` if they are too few for it.
    pub fn train(rows: &[Vec<u8>], most_bytes: usize, level: i32) -> Option<Self> {
        let bytes = from_samples(rows, most_bytes).ok()?;
        let encoder = EncoderDictionary::try_copy(&bytes, level).ok()?;
        let decoder = DecoderDictionary::try_copy(&bytes).ok()?;
        Some(Self { bytes, encoder, decoder })
    }

    /// Makes what reading needs from the stored bytes, as a first reader would.
    pub fn prepare(&self) -> Option<DecoderDictionary<'static>> {
        DecoderDictionary::try_copy(&self.bytes).ok()
    }

    /// Its bytes, as they would be stored.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Rows that have been compressed. A row that does not become smaller is kept as it is.
#[derive(Debug, Clone, Default)]
pub struct PackedRows {
    bytes: Vec<u8>,
    /// Where each row ends, and its bytes when it is read.
    rows: Vec<(usize, usize)>,
}

impl PackedRows {
    /// Bytes of the rows and of their entries.
    pub fn stored_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.rows.len() as u64 * ENTRY_BYTES
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// A row as it is stored, and its bytes when it is read.
    fn stored(&self, n: usize) -> (&[u8], usize) {
        let begin = n.checked_sub(1).map_or(0, |before| self.rows[before].0);
        let (end, len) = self.rows[n];
        (&self.bytes[begin..end], len)
    }
}

/// Compresses rows.
pub struct Packer<'d> {
    compressor: Compressor<'d>,
    buffer: Vec<u8>,
}

impl<'d> Packer<'d> {
    /// With a dictionary, whose level counts, or without one.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(dictionary: Option<&'d Dictionary>, level: i32) -> io::Result<Self> {
        let mut compressor = match dictionary {
            Some(dictionary) => Compressor::with_prepared_dictionary(&dictionary.encoder)?,
            None => Compressor::new(level)?,
        };
        // The length, the dictionary and the format are known where rows are kept.
        compressor.set_parameter(CParameter::Format(FrameFormat::Magicless))?;
        compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
        compressor.set_parameter(CParameter::DictIdFlag(false))?;
        Ok(Self { compressor, buffer: Vec::new() })
    }

    /// Compresses rows, each for itself.
    ///
    /// # Errors
    /// Those of the library.
    pub fn pack(&mut self, rows: &[Vec<u8>]) -> io::Result<PackedRows> {
        let mut packed = PackedRows::default();
        for row in rows {
            self.buffer.clear();
            self.buffer.reserve(zstd::compress_bound(row.len()));
            self.compressor.compress_to_buffer(row, &mut self.buffer)?;
            let is_smaller = self.buffer.len() < row.len();
            packed.bytes.extend_from_slice(if is_smaller { &self.buffer } else { row });
            packed.rows.push((packed.bytes.len(), row.len()));
        }
        Ok(packed)
    }
}

/// Reads compressed rows.
pub struct Unpacker<'d>(Decompressor<'d>);

impl<'d> Unpacker<'d> {
    /// With the dictionary that the rows were compressed with, if there was one.
    ///
    /// # Errors
    /// Those of the library.
    pub fn new(dictionary: Option<&'d Dictionary>) -> io::Result<Self> {
        let mut unpacker = Self(match dictionary {
            Some(dictionary) => Decompressor::with_prepared_dictionary(&dictionary.decoder)?,
            None => Decompressor::new()?,
        });
        unpacker.0.set_parameter(DParameter::Format(FrameFormat::Magicless))?;
        Ok(unpacker)
    }

    /// Reads a row into a buffer.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if it has not the length that it had. Those of the library.
    pub fn row(&mut self, packed: &PackedRows, n: usize, row: &mut Vec<u8>) -> io::Result<()> {
        let (stored, len) = packed.stored(n);
        row.clear();
        if stored.len() == len {
            row.extend_from_slice(stored);
            return Ok(());
        }
        row.reserve(len);
        match self.0.decompress_to_buffer(stored, row)? {
            found if found == len => Ok(()),
            found => {
                Err(io::Error::new(io::ErrorKind::InvalidData, format!("{found} bytes instead of {len}")))
            }
        }
    }
}

#[cfg(test)]
#[path = "packing_test.rs"]
mod tests;
