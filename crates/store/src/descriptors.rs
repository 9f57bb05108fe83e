//! Writing and zeroing chunk headers and block descriptors, each at its two
//! places, and reading them after a stop (I-29).

use pantile_base::control::{Control, is_removed};
use pantile_media::MediumError;

use crate::block::Chunk;
use crate::error::StoreError;
use crate::expectation::Expectation;
use crate::format::{DESCRIPTOR_BYTES, Descriptor, ENTRY_BYTES};
use crate::lines::{Decode, Lines, Lost, copy_at, line_at};
use crate::store::Store;

impl Store {
    /// Writes what a block is used for, twice.
    pub(crate) fn write_descriptor(
        &self,
        chunk: &Chunk,
        index: u32,
        descriptor: &Descriptor,
    ) -> Result<(), MediumError> {
        let offset = chunk.descriptor_offset(index);
        let entry = descriptor.encode(self.identity ^ offset);
        self.medium.write_flushed(offset, &entry)?;
        self.medium.write_flushed(chunk.copy_offset(index), &entry)
    }

    pub(crate) fn zero_descriptor(&self, chunk: &Chunk, index: u32) -> Result<(), StoreError> {
        self.begin_write()?;
        self.medium.write_flushed(chunk.descriptor_offset(index), &[0; DESCRIPTOR_BYTES])?;
        Ok(self.medium.write_flushed(chunk.copy_offset(index), &[0; ENTRY_BYTES])?)
    }

    /// Erases what a chunk without blocks in use says about itself.
    pub(crate) fn zero_chunk_header(&self, chunk: &Chunk) -> Result<(), StoreError> {
        self.begin_write()?;
        self.medium.write_flushed(chunk.offset(), &[0; DESCRIPTOR_BYTES])?;
        Ok(self.medium.write_flushed(chunk.offset() + copy_at(0) as u64, &[0; ENTRY_BYTES])?)
    }

    /// The first entry of a line, or its copy if the line has lost it. Notes
    /// which of the two is to be written again. A closed database has lost
    /// neither, or else is damaged.
    pub(crate) fn first_entry<T>(
        &self,
        lines: &Lines<'_>,
        n: usize,
        decode: Decode<T>,
        expect: &Expectation,
        lost: &mut Vec<Lost>,
    ) -> Result<Option<T>, &'static str> {
        let entry = lines.read(n, decode);
        if (expect.closed || is_removed(Control::Copies)) && !self.is_damaged {
            return entry;
        }
        let copy = lines.read_copy(n, decode);
        let [line_at, copy_at] = [line_at(n), copy_at(n)].map(|at| lines.offset + at as u64);
        match (entry, copy) {
            (Ok(Some(entry)), Ok(Some(_))) => Ok(Some(entry)),
            (Ok(Some(entry)), _) => {
                lost.push(Lost { at: copy_at, is_at: line_at });
                Ok(Some(entry))
            }
            (_, Ok(Some(copy))) if self.is_damaged => Ok(Some(copy)),
            (Ok(None), Ok(Some(copy))) => {
                lost.push(Lost { at: line_at, is_at: copy_at });
                Ok(Some(copy))
            }
            (Ok(None), Err(why)) if !self.is_damaged => Err(why),
            (entry, _) => entry,
        }
    }

    /// Writes entries again that are lost at one of their two places.
    pub(crate) fn write_again(&self, lost: &[Lost]) -> Result<(), StoreError> {
        for lost in lost {
            let entry = self.bytes(lost.is_at, ENTRY_BYTES).to_vec();
            self.medium.write_flushed(lost.at, &entry)?;
        }
        Ok(())
    }
}
