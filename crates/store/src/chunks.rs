//! Chunks: taking them, dividing them, and giving them back.
//!
//! Some are held in reserve, since collecting needs space to make space (T14).
//! Writers are refused while there is still room for deletes, and deletes while
//! there is still room for the collector.

use pantile_base::Timestamp;
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::sync::atomic::Ordering;
use pantile_media::{MediumError, MediumExt, SyncPoint};

use crate::allocator::Allocator;
use crate::block::{BlockId, Chunk};
use crate::error::StoreError;
use crate::format::{CHUNK_HEADER_BYTES, ChunkHeader, DESCRIPTOR_BYTES};
use crate::geometry::Geometry;
use crate::store::Store;
use crate::stream::Urgency;

/// Chunks held in reserve: a share of all chunks, within these bounds (less on
/// a tiny medium).
const RESERVE_SHARE: usize = 128;
const LEAST_RESERVE: usize = 3;
const MOST_RESERVE: usize = 8;
/// How many of the reserved chunks are for the collector alone, if there are
/// that many.
const FOR_COLLECTOR: usize = 2;

/// An empty chunk that is being taken apart. Threads may still be looking at
/// its description.
#[derive(Debug)]
pub struct RetiredChunk {
    chunk: Box<Chunk>,
    at: Timestamp,
    forgotten: Option<SyncPoint>,
}

impl Store {
    /// Takes a chunk and divides it. The blocks are not yet durable and must
    /// be given out only after the caller's fence.
    pub(crate) fn carve(
        &self,
        allocator: &mut Allocator,
        stride: u32,
        urgency: Urgency,
    ) -> Result<Vec<BlockId>, MediumError> {
        let number = self.take_chunk(allocator, urgency)?;
        let geometry = Geometry::new(stride, self.options.block_slots);
        let header = ChunkHeader {
            stride,
            slots: geometry.slots,
            block_bytes: geometry.block_bytes,
            blocks: geometry.blocks,
        };
        let chunk = Chunk::new(number, geometry);
        let mut page = vec![0; CHUNK_HEADER_BYTES];
        let header = header.encode(self.identity ^ chunk.offset());
        page[..header.len()].copy_from_slice(&header);
        self.medium.write(chunk.offset(), &page)?;
        self.medium.flush(chunk.offset(), DESCRIPTOR_BYTES as u64);
        self.add_chunk(chunk);
        allocator.carved += 1;
        allocator.count_blocks(&geometry);
        Ok((0..geometry.blocks).map(|index| BlockId { chunk: number, index }).collect())
    }

    fn take_chunk(&self, allocator: &mut Allocator, urgency: Urgency) -> Result<u32, MediumError> {
        let floor = match urgency {
            Urgency::Write => usize::MAX,
            Urgency::Delete => FOR_COLLECTOR.min(self.wanted_reserve(allocator).saturating_sub(1)),
            Urgency::Collect => 0,
        };
        match self.fresh_chunk(allocator) {
            Ok(number) => match self.fill_reserve(allocator) {
                Err(error) if urgency == Urgency::Write => {
                    allocator.free_chunks.push(number);
                    Err(error)
                }
                _ => Ok(number),
            },
            Err(error) if allocator.reserve.len() <= floor => Err(error),
            Err(error) => allocator.reserve.pop().ok_or(error),
        }
    }

    /// A chunk that holds nothing and has space behind it.
    fn fresh_chunk(&self, allocator: &mut Allocator) -> Result<u32, MediumError> {
        if let Some(number) = allocator.free_chunks.pop() {
            return Ok(number);
        }
        if let Some(&number) = allocator.discarded.last() {
            self.medium.restore(u64::from(number) * CHUNK_BYTES, CHUNK_BYTES)?;
            allocator.discarded.pop();
            return Ok(number);
        }
        let number = allocator.next_chunk;
        self.medium.grow((u64::from(number) + 1) * CHUNK_BYTES)?;
        allocator.next_chunk += 1;
        Ok(number)
    }

    fn wanted_reserve(&self, allocator: &Allocator) -> usize {
        let limit = (self.medium.facts().limit / CHUNK_BYTES) as usize;
        let least = LEAST_RESERVE.min(limit / 8);
        (allocator.carved / RESERVE_SHARE).clamp(least, MOST_RESERVE)
    }

    /// Fills the reserve up to its size.
    pub(crate) fn fill_reserve(&self, allocator: &mut Allocator) -> Result<(), MediumError> {
        while self.lacking(allocator) > 0 {
            let number = self.fresh_chunk(allocator)?;
            allocator.reserve.push(number);
        }
        Ok(())
    }

    /// Adds a block to the free ones, and notes its chunk if that is now empty.
    pub(crate) fn free_block(&self, chunk: &Chunk, id: BlockId, now: Timestamp) {
        let mut allocator = self.allocator.lock();
        self.block(id).1.free();
        self.used_bytes.fetch_sub(u64::from(chunk.geometry.block_bytes), Ordering::Relaxed);
        allocator.give(chunk.geometry.stride, id);
        if allocator.free_in(chunk) == chunk.geometry.blocks {
            // From now, not from the last time it was empty.
            allocator.empty.retain(|&(number, _)| number != chunk.number);
            allocator.empty.push_back((chunk.number, now));
        }
    }

    /// Takes apart a chunk that has been empty since before every running
    /// transaction began, if there are more than a few such chunks or `all` are
    /// to go. `is_over` returns whether everything that ran at a given time has
    /// ended.
    pub fn retire_chunk(
        &self,
        all: bool,
        now: impl Fn() -> Timestamp,
        is_over: impl Fn(Timestamp) -> bool,
    ) -> Option<RetiredChunk> {
        let mut allocator = self.allocator.lock();
        let spare = allocator.spare_empty(all);
        if allocator.empty.len() <= spare || !allocator.empty.front().is_some_and(|&(_, at)| is_over(at)) {
            return None;
        }
        let (number, at) = allocator.empty.pop_front()?;
        let chunk = self.chunk(number)?;
        if allocator.free_in(chunk) < chunk.geometry.blocks {
            return None;
        }
        if chunk.kept_tiles.load(Ordering::Acquire) > 0 {
            allocator.empty.push_back((number, at));
            return None;
        }
        allocator.remove_chunk(chunk);
        let chunk = self.remove_chunk(number)?;
        // A state record that was sampled earlier still counts this chunk, so
        // it must not be taken for a later one.
        Some(RetiredChunk { chunk, at: now(), forgotten: None })
    }

    /// Erases the chunk header from the medium; returns whether that is
    /// durable. A state record must first say that there is one chunk less, or
    /// the next recovery would miss the chunk.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn forget_chunk(&self, retired: &mut RetiredChunk) -> Result<bool, StoreError> {
        if let Some(forgotten) = retired.forgotten {
            return Ok(self.medium.is_durable(forgotten));
        }
        if self.durable_watermark() > retired.at {
            self.assert_open();
            let offset = retired.chunk.offset();
            self.medium.write_flushed(offset, &[0; DESCRIPTOR_BYTES])?;
            retired.forgotten = Some(self.medium.sync_point());
        }
        Ok(false)
    }

    /// Makes the chunk available again, or hands its space back to the system
    /// if enough is free. No thread may be looking at its description.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn return_chunk(&self, retired: RetiredChunk) -> Result<(), StoreError> {
        self.assert_open();
        let number = retired.chunk.number;
        {
            let _chunks = self.chunks_lock.write();
            drop(retired.chunk);
        }
        let mut allocator = self.allocator.lock();
        if self.fill_reserve(&mut allocator).is_ok() && allocator.free_chunks.len() >= allocator.spare() {
            let outcome = self.medium.discard(u64::from(number) * CHUNK_BYTES, CHUNK_BYTES);
            // Even if the system refused: the chunk can be restored, whatever
            // is left of it.
            allocator.discarded.push(number);
            outcome?;
        } else {
            allocator.free_chunks.push(number);
        }
        Ok(())
    }

    /// Average size of a block in bytes.
    pub fn mean_block_bytes(&self) -> u64 {
        let allocator = self.allocator.lock();
        allocator.block_bytes / (allocator.blocks as u64).max(1)
    }

    /// Bytes that writers can still take, in whole chunks, and the upper limit
    /// of that number.
    pub fn room(&self) -> (u64, u64) {
        let limit = self.medium.facts().limit / CHUNK_BYTES;
        let allocator = self.allocator.lock();
        let is_empty = |&&(number, _): &&(u32, Timestamp)| {
            self.chunk(number).is_some_and(|chunk| allocator.free_in(chunk) == chunk.geometry.blocks)
        };
        let empty = allocator.empty.iter().filter(is_empty).count() as u64;
        let chunks = limit.saturating_sub(u64::from(allocator.next_chunk))
            + (allocator.free_chunks.len() + allocator.discarded.len()) as u64
            + empty;
        (chunks.saturating_sub(self.lacking(&allocator) as u64) * CHUNK_BYTES, limit * CHUNK_BYTES)
    }

    /// Hands free chunks back to the system, at most this many.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn discard_free(&self, most: usize) -> Result<(), StoreError> {
        self.assert_open();
        let mut allocator = self.allocator.lock();
        for _ in 0..most {
            let Some(number) = allocator.free_chunks.pop() else { break };
            // Even if the system refuses, as in `return_chunk`.
            allocator.discarded.push(number);
            self.medium.discard(u64::from(number) * CHUNK_BYTES, CHUNK_BYTES)?;
        }
        Ok(())
    }

    /// Bytes of the medium that are taken, and how many of them are kept ready:
    /// the reserve and a few free chunks, with the first chunk.
    pub fn taken_bytes(&self) -> (u64, u64) {
        let allocator = self.allocator.lock();
        let taken = u64::from(allocator.next_chunk) - allocator.discarded.len() as u64;
        let ready = 1 + self.wanted_reserve(&allocator) + allocator.spare();
        (taken * CHUNK_BYTES, ready as u64 * CHUNK_BYTES)
    }

    /// Number of chunks that may be empty.
    pub fn empty_chunks(&self) -> usize {
        self.allocator.lock().empty.len()
    }

    /// Whether [`Store::retire_chunk`] has chunks to take apart, now or once
    /// running transactions have ended.
    pub fn has_spare_chunks(&self, all: bool) -> bool {
        let allocator = self.allocator.lock();
        let empty = allocator.empty.iter().filter(|&&(number, _)| {
            self.chunk(number).is_some_and(|chunk| allocator.free_in(chunk) == chunk.geometry.blocks)
        });
        empty.count() > allocator.spare_empty(all)
    }

    /// The bytes of a chunk's blocks.
    pub fn block_bytes_in(&self, chunk: u32) -> u64 {
        let _chunks = self.chunks_lock.read();
        self.chunk(chunk)
            .map_or(0, |chunk| u64::from(chunk.geometry.blocks) * u64::from(chunk.geometry.block_bytes))
    }

    /// Whether writers can have a chunk without the medium growing, and how
    /// many blocks are free besides.
    pub fn available(&self) -> (bool, usize) {
        let allocator = self.allocator.lock();
        (allocator.free_chunks.len() > self.lacking(&allocator), allocator.free_blocks())
    }

    /// Number of chunks that the reserve lacks.
    fn lacking(&self, allocator: &Allocator) -> usize {
        self.wanted_reserve(allocator).saturating_sub(allocator.reserve.len())
    }
}
