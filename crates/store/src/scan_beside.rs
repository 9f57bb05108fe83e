//! Reading a medium that another process is writing to.
//!
//! The other process has said up to which timestamp everything is decided and durable. It holds all
//! blocks that were opened by then, except dead ones (I-27). So the contents of such a block do not
//! change below its expected fill. Everything else may change at any moment and is not believed.

use std::collections::HashSet;

use foldhash::fast::FixedState;
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::atomic::{AtomicU32, Ordering};
use pantile_base::sync::thread;
use pantile_base::{TableId, Timestamp, share_out};
use pantile_media::Reads;

use crate::block::{BlockRef, Chunk};
use crate::error::StoreError;
use crate::expectation::Expectation;
use crate::format::{CHUNK_HEADER_BYTES, ChunkHeader, DESCRIPTOR_BYTES, Descriptor};
use crate::geometry::Geometry;
use crate::scan::{
    Found, MISSHAPEN, NONSENSE, ROTTEN, Scan, ScanProgress, ScanSummary, Seen, note_committed, place,
    start_of,
};
use crate::state_record::is_of_records;
use crate::store::Store;

/// What a process may read beside the one that writes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Beside {
    /// Every transaction at or below it is decided, and durable if it committed.
    pub timestamp: Timestamp,
    /// Whether all that had been acknowledged when this was asked for is at or below it.
    pub is_current: bool,
    /// All contents of these transactions are in blocks that were opened by then,
    /// and those are held.
    pub opened_by: Timestamp,
    /// Blocks that are not held for long. Everything in them has been superseded or
    /// moved, so there is nothing to be found.
    pub dead: HashSet<BlockRef, FixedState>,
}

/// How often a line is read that is being written.
const READ_AGAIN: usize = 1000;

impl Store {
    /// Finds what had been committed at a time, in place of [`Store::recover`].
    /// Nothing is written.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something that was durable has changed.
    pub fn scan_beside(&self, scan: &Scan<'_>, beside: &Beside) -> Result<ScanSummary, StoreError> {
        self.medium.advise(Reads::AtRandom);
        let expectation = Expectation::new(&self.state.lock());
        let chunks = self.chunks_on_medium();
        let (next, done) = (AtomicU32::new(0), AtomicU32::new(0));
        let total = u64::from(chunks) * CHUNK_BYTES;
        let work = |_| {
            let mut seen = Seen::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= chunks {
                    return seen;
                }
                self.scan_chunk_beside(number, scan, beside, &expectation, &mut seen);
                let done = u64::from(done.fetch_add(1, Ordering::Relaxed) + 1) * CHUNK_BYTES;
                (scan.progress)(ScanProgress { done, total });
            }
        };
        let mut all = Seen::default();
        share_out(scan.threads, work).into_iter().for_each(|part| all.merge(part));
        if let Some(error) = all.take_error() {
            return Err(error);
        }
        all.summary.highest = beside.timestamp.max(beside.opened_by);
        Ok(all.summary)
    }

    fn scan_chunk_beside(
        &self,
        number: u32,
        scan: &Scan<'_>,
        beside: &Beside,
        expect: &Expectation,
        seen: &mut Seen,
    ) {
        let offset = start_of(number);
        if self.medium.len() < offset + CHUNK_HEADER_BYTES as u64 {
            return;
        }
        self.medium.advise(Reads::Soon { offset, len: CHUNK_BYTES });
        match self.check_header(offset) {
            Ok(true) => {}
            Ok(false) => return,
            Err(error) => return seen.note_unreadable(error),
        }
        let header = self.line(offset, |line| ChunkHeader::decode(line, self.identity ^ offset));
        let geometry = match header {
            Ok(Some(header)) => Geometry::of(number, header),
            Ok(None) => return,
            Err(why) => return seen.note_damage(format!("offset {offset}"), why),
        };
        if !geometry.is_sound() {
            return seen.note_damage(format!("offset {offset}"), NONSENSE);
        }
        self.add_chunk(Chunk::new(number, geometry, 0));
        let chunk = self.chunk(number).expect("just added");
        for index in 0..geometry.blocks {
            self.scan_block_beside(chunk, index, scan, beside, expect, seen);
        }
    }

    fn scan_block_beside(
        &self,
        chunk: &Chunk,
        index: u32,
        scan: &Scan<'_>,
        beside: &Beside,
        expect: &Expectation,
        seen: &mut Seen,
    ) {
        let (id, at) = (chunk.id(index), chunk.descriptor_offset(index));
        let block_place = || format!("offset {at}, block {}.{index}", id.chunk);
        let descriptor = match self.line(at, |line| Descriptor::decode(line, self.identity ^ at)) {
            Ok(Some(descriptor)) => descriptor,
            Ok(None) => return,
            Err(why) => return seen.note_damage(block_place(), why),
        };
        let is_later = descriptor.opened_at > beside.opened_by.get();
        let is_dead = beside.dead.contains(&BlockRef { id, opened_at: descriptor.opened_at });
        if is_later || is_dead || is_of_records(TableId(descriptor.table)) {
            return;
        }
        if !descriptor.shape.fits(chunk.geometry.block_bytes) {
            return seen.note_damage(block_place(), MISSHAPEN);
        }
        let block = &chunk.blocks[index as usize];
        self.open_in_dram(block, &descriptor, chunk.geometry.block_bytes);
        let (seed, slots) = (self.content_seed(block.opened_at()), block.slots());
        let expected = expect.of(id, block.opened_at(), slots);
        let mut committed = Vec::new();
        for slot in 0..slots {
            let address = chunk.address(index, slot);
            match self.valid_content(address, block.stride() as usize, seed) {
                None if slot < expected => seen.note_damage(place(chunk, block, id, slot), ROTTEN),
                Some(content) if content.flags().is_void() => _ = block.map.set(slot),
                Some(content) if content.timestamp() <= beside.timestamp => {
                    note_committed(block, &content);
                    committed.push(Found { address, content });
                }
                _ => {}
            }
        }
        block.set_fill(slots);
        seen.committed(scan, block.table(), &committed);
    }

    /// What a line says. One that is being written is read again.
    fn line<T>(
        &self,
        offset: u64,
        decode: impl Fn(&[u8]) -> Result<Option<T>, &'static str>,
    ) -> Result<Option<T>, &'static str> {
        let mut found = Ok(None);
        for _ in 0..READ_AGAIN {
            let line = self.bytes(offset, DESCRIPTOR_BYTES).to_vec();
            found = decode(&line);
            if found.is_ok() {
                break;
            }
            thread::yield_now();
        }
        found
    }
}
