//! Chunks: taking them, dividing them, and giving them back.
//!
//! Some space is held in reserve, because collecting takes space before it frees space (T14).
//! Writers are refused while there is still room for deletes, and deletes while there is still room
//! for the collector.

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{CHUNK_BYTES, GROWTH_BYTES, HEAD_BYTES};
use pantile_base::sync::atomic::Ordering;
use pantile_base::{TableId, Timestamp};
use pantile_media::{MediumError, MediumExt, SyncPoint};

use crate::allocator::Allocator;
use crate::append::Reservation;
use crate::block::{Block, BlockId, Chunk};
use crate::error::StoreError;
use crate::format::{CHUNK_HEADER_BYTES, ChunkHeader, DESCRIPTOR_BYTES, ENTRY_BYTES};
use crate::geometry::{Class, Geometry, slot_bytes};
use crate::lines::copy_at;
use crate::scan::start_of;
use crate::store::Store;
use crate::stream::{Urgency, class_key};

/// Bytes held in reserve behind the last block.
const RESERVE_BYTES: u64 = 256 << 10;
/// Whole chunks are held in reserve, which serve blocks of any size: one for so
/// many bytes of blocks, up to a few, and beyond that a share of all chunks.
const BYTES_PER_CHUNK: u64 = 8 << 20;
const FEW_CHUNKS: u64 = 3;
const RESERVE_SHARE: u64 = 128;
const MOST_CHUNKS: u64 = 8;

/// How many of the last discarded chunks are tried where the system has no space for the first: as
/// many as the reserve has, and as many as may be ready behind it.
const LAST_TRIED: usize = 16;

/// What writers leave to others.
#[derive(Clone, Copy)]
struct Reserve {
    bytes: u64,
    chunks: u64,
    /// The part of either that was promised to transactions.
    promised: (u64, u64),
}

impl Reserve {
    /// All of it, in bytes. The bytes are part of the chunks if there are any.
    fn total(self) -> u64 {
        self.bytes.max(self.chunks * CHUNK_BYTES)
    }

    /// What is left to callers that are more urgent than this one.
    fn left_by(self, urgency: Urgency) -> Self {
        let Self { bytes, chunks, promised } = self;
        let half = |of: u64, promised: u64| (of - promised) / 2 + promised;
        match urgency {
            Urgency::Write => self,
            Urgency::Delete => {
                Self { bytes: half(bytes, promised.0), chunks: half(chunks, promised.1), promised }
            }
            Urgency::Promised | Urgency::Collect => Self { bytes: 0, chunks: 0, promised },
        }
    }
}

/// Bytes for contents with rows of these lengths.
fn promised(lengths: impl Iterator<Item = usize>) -> u64 {
    let bytes = lengths.map(slot_bytes).sum();
    if is_removed(Control::Promises) { 0 } else { bytes }
}

/// An empty chunk that is being taken apart. Threads may still be looking at
/// its description.
#[derive(Debug)]
pub struct RetiredChunk {
    chunk: Box<Chunk>,
    at: Timestamp,
    /// When it became empty.
    emptied: Timestamp,
    forgotten: Option<SyncPoint>,
}

impl RetiredChunk {
    /// When it became empty.
    pub fn emptied(&self) -> Timestamp {
        self.emptied
    }
}

impl Store {
    /// Takes a free block that holds contents of a table with this stride, or
    /// carves a chunk for it. If there is no space for a block of the size that
    /// suits the table, any other that holds the contents will do.
    pub(crate) fn take_block(
        &self,
        allocator: &mut Allocator,
        table: TableId,
        stride: u32,
        reservation: &mut Reservation,
    ) -> Result<BlockId, MediumError> {
        let bytes = allocator.held_bytes_of(class_key(table, stride));
        let suited = Class::for_next(stride, self.options.block_slots, bytes);
        // A second chunk would double what a small database takes.
        let is_small = allocator.carved == 1 && Class::SMALLEST.holds(stride);
        let suited = if is_small && allocator.has(Class::SMALLEST) { Class::SMALLEST } else { suited };
        let is_copy = reservation.is_of_copies();
        let packed = is_copy.then(|| self.packed_class(allocator, suited, stride)).flatten();
        let suited = packed.unwrap_or(suited);
        if is_copy && self.packing.load(Ordering::Relaxed) > 0 {
            // Wherever the lowest one is.
            reservation.node = None;
        }
        let refused = match self.take_of_class(allocator, suited, reservation) {
            Err(error) if error.is_full() => error,
            other => return other,
        };
        let others = Class::all().filter(|class| *class != suited && class.holds(stride));
        for class in others {
            match self.take_of_class(allocator, class, reservation) {
                Err(error) if error.is_full() => {}
                other => return other,
            }
        }
        Err(refused)
    }

    pub(crate) fn take_of_class(
        &self,
        allocator: &mut Allocator,
        class: Class,
        reservation: &mut Reservation,
    ) -> Result<BlockId, MediumError> {
        match self.take_on(allocator, class, reservation.node, reservation) {
            // Space of another node is better than none.
            Err(error) if error.is_full() && reservation.node.is_some() => {
                self.take_on(allocator, class, None, reservation)
            }
            taken => taken,
        }
    }

    fn take_on(
        &self,
        allocator: &mut Allocator,
        class: Class,
        node: Option<usize>,
        reservation: &mut Reservation,
    ) -> Result<BlockId, MediumError> {
        if let Some(id) = allocator.take(class, |chunk| self.nodes.is_near(chunk, node)) {
            let end = self.block(id).0.end_of(id.index);
            let left = self.leave_chunks(allocator, reservation.spends);
            let backed = left.and_then(|()| self.back(allocator, end, reservation.spends));
            if backed.is_err() {
                allocator.give(class, id);
            }
            return backed.map(|()| id);
        }
        // Copies become durable later than what was carved for copies before.
        // Otherwise they would carve a chunk at each step until the next sync.
        if reservation.is_of_copies()
            && let Some(id) = allocator.first_unsettled(class)
        {
            self.back(allocator, self.block(id).0.end_of(id.index), reservation.spends)?;
            allocator.take_unsettled(id);
            return Ok(id);
        }
        let is_fitting =
            |id: &BlockId| self.block(*id).0.geometry.class() == class && self.nodes.is_near(id.chunk, node);
        let at = match reservation.carved.iter().position(is_fitting) {
            Some(at) => at,
            None => {
                let first = reservation.carved.len();
                reservation.carved.append(&mut self.carve(allocator, class, node, reservation.spends)?);
                first
            }
        };
        let id = reservation.carved[at];
        self.back(allocator, self.block(id).0.end_of(id.index), reservation.spends)?;
        Ok(reservation.carved.remove(at))
    }

    /// Takes a chunk and divides it. The blocks are not yet durable and must
    /// be given out only after the caller's fence.
    fn carve(
        &self,
        allocator: &mut Allocator,
        class: Class,
        node: Option<usize>,
        urgency: Urgency,
    ) -> Result<Vec<BlockId>, MediumError> {
        let number = self.take_chunk(allocator, class, node, urgency)?;
        let chunk = Chunk::new(number, Geometry::new(number, class), allocator.first_generation(number));
        self.write_chunk_page(&chunk)?;
        let blocks = (0..chunk.geometry.blocks).map(|index| chunk.id(index)).collect();
        allocator.count_blocks(&chunk.geometry);
        self.add_chunk(chunk);
        Ok(blocks)
    }

    /// Writes the header page of a chunk without blocks in use.
    pub(crate) fn write_chunk_page(&self, chunk: &Chunk) -> Result<(), MediumError> {
        let Geometry { block_bytes, blocks, .. } = chunk.geometry;
        let mut page = vec![0; CHUNK_HEADER_BYTES];
        let header = ChunkHeader { block_bytes, blocks }.encode(self.identity ^ chunk.offset());
        page[..header.len()].copy_from_slice(&header);
        page[copy_at(0)..][..header.len()].copy_from_slice(&header);
        self.medium.write(chunk.offset(), &page)?;
        self.medium.flush(chunk.offset(), DESCRIPTOR_BYTES as u64);
        self.medium.flush(chunk.offset() + copy_at(0) as u64, ENTRY_BYTES as u64);
        Ok(())
    }

    /// A chunk that holds nothing and has space behind its first block.
    fn take_chunk(
        &self,
        allocator: &mut Allocator,
        class: Class,
        node: Option<usize>,
        urgency: Urgency,
    ) -> Result<u32, MediumError> {
        let number = self.choose_chunk(allocator, node, urgency)?;
        let end = u64::from(number) * CHUNK_BYTES + Geometry::new(number, class).end_of(0);
        if let Err(error) = self.back(allocator, end, urgency) {
            if number + 1 == allocator.next_chunk {
                allocator.next_chunk = number;
            } else {
                allocator.discarded.insert(number);
            }
            return Err(error);
        }
        Ok(number)
    }

    fn choose_chunk(
        &self,
        allocator: &mut Allocator,
        node: Option<usize>,
        urgency: Urgency,
    ) -> Result<u32, MediumError> {
        let is_near = |number: &u32| self.nodes.is_near(*number, node);
        let reserve = self.wanted_reserve(allocator).left_by(urgency);
        if reserve.chunks > 0 {
            self.back_chunks(allocator, 1 + reserve.chunks)?;
        }
        if !allocator.free_chunks.iter().any(&is_near) {
            self.restore_one(allocator, node)?;
        }
        if let Some(number) = allocator.free_chunks.iter().copied().find(&is_near) {
            allocator.free_chunks.remove(&number);
            return Ok(number);
        }
        let next = allocator.next_chunk;
        let number = (next..).find(&is_near).expect("each node has chunks");
        if number > next {
            // Those of other nodes before it stay free, with space behind them.
            self.medium.grow(u64::from(number) * CHUNK_BYTES)?;
            allocator.free_chunks.extend(next..number);
        }
        allocator.next_chunk = number + 1;
        Ok(number)
    }

    /// Finds space for others where whole chunks are the reserve. Free blocks
    /// are part of it: the chunk that a delete or the collector carves must not
    /// go to writers.
    fn leave_chunks(&self, allocator: &mut Allocator, urgency: Urgency) -> Result<(), MediumError> {
        let reserve = self.wanted_reserve(allocator).left_by(urgency);
        let in_blocks = allocator.free_bytes() / CHUNK_BYTES;
        self.back_chunks(allocator, reserve.chunks.saturating_sub(in_blocks))
    }

    /// Finds space behind as many whole chunks that are not carved.
    fn back_chunks(&self, allocator: &mut Allocator, wanted: u64) -> Result<(), MediumError> {
        loop {
            let beyond = (self.medium.len() / CHUNK_BYTES).saturating_sub(u64::from(allocator.next_chunk));
            if allocator.free_chunks.len() as u64 + beyond >= wanted {
                return Ok(());
            }
            if !self.restore_one(allocator, None)? {
                self.medium.grow((u64::from(allocator.next_chunk) + beyond + 1) * CHUNK_BYTES)?;
            }
        }
    }

    /// Finds space behind a discarded chunk, of a node if that matters: the first one or, if the
    /// system has no space for that, one of the last ones. Those may have kept theirs: when a
    /// database is opened again, the reserve is among them. Returns whether one was found.
    fn restore_one(&self, allocator: &mut Allocator, node: Option<usize>) -> Result<bool, MediumError> {
        let is_near = |number: &u32| self.nodes.is_near(*number, node);
        let discarded = allocator.discarded.iter().copied();
        let first = discarded.clone().find(is_near);
        let last = discarded.rev().filter(is_near).filter(|number| Some(*number) != first).take(LAST_TRIED);
        let tried: Vec<_> = first.into_iter().chain(last).collect();
        for number in tried {
            let restored = match self.on_medium(number) {
                Some((offset, len)) => self.medium.restore(offset, len),
                None => Ok(()),
            };
            match restored {
                Ok(()) => {
                    allocator.discarded.remove(&number);
                    allocator.free_chunks.insert(number);
                    return Ok(true);
                }
                Err(error) if error.is_full() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    /// The part of a chunk that the medium has: offset and length.
    pub(crate) fn on_medium(&self, number: u32) -> Option<(u64, u64)> {
        let offset = u64::from(number) * CHUNK_BYTES;
        let len = self.medium.len().saturating_sub(offset).min(CHUNK_BYTES);
        (len > 0).then_some((offset, len))
    }

    /// Finds space behind what is taken up to `end`, and behind as many more
    /// bytes as a caller of this urgency leaves to others.
    fn back(&self, allocator: &mut Allocator, end: u64, urgency: Urgency) -> Result<(), MediumError> {
        let reserve = self.wanted_reserve(allocator).left_by(urgency);
        // Where whole chunks are left to others, they are there.
        if end <= allocator.end && reserve.chunks > 0 {
            return Ok(());
        }
        let end = end.max(allocator.end);
        self.medium.grow(end)?;
        let lacking = reserve.bytes.saturating_sub(self.backed_bytes(allocator, end));
        if lacking > 0 {
            self.medium.grow(self.medium.len() + lacking)?;
        }
        allocator.end = end;
        self.note_size();
        Ok(())
    }

    /// Free bytes with space behind them, if blocks are taken up to `end`.
    fn backed_bytes(&self, allocator: &Allocator, end: u64) -> u64 {
        let tail = (u64::from(allocator.next_chunk) * CHUNK_BYTES).saturating_sub(end);
        let len = self.medium.len();
        len.saturating_sub(end) - Allocator::bytes_between(&allocator.discarded, end, len.max(end))
            + allocator.free_chunks.len() as u64 * CHUNK_BYTES
            + allocator.free_bytes().saturating_sub(tail)
    }

    fn wanted_reserve(&self, allocator: &Allocator) -> Reserve {
        let most = self.medium.facts().limit / 8;
        let few = (allocator.block_bytes / BYTES_PER_CHUNK).min(FEW_CHUNKS);
        let share = (allocator.carved as u64 / RESERVE_SHARE).min(MOST_CHUNKS);
        let chunks = few.max(share).min(most / CHUNK_BYTES);
        let in_chunks = if chunks > 0 { allocator.promised.div_ceil(CHUNK_BYTES) } else { 0 };
        let promised = (allocator.promised, in_chunks);
        Reserve { bytes: RESERVE_BYTES.min(most) + promised.0, chunks: chunks + promised.1, promised }
    }

    /// Keeps space for contents with rows of these lengths, which [`Urgency::Promised`] may take
    /// and other writers may not. Returns the bytes, for [`Store::end_promise`].
    ///
    /// # Errors
    /// [`StoreError::Medium`] if there is not as much.
    pub fn promise(&self, lengths: impl Iterator<Item = usize>) -> Result<u64, StoreError> {
        self.begin_write()?;
        let bytes = promised(lengths);
        let mut allocator = self.allocator.lock();
        allocator.promised += bytes;
        let end = allocator.end;
        let left = self.leave_chunks(&mut allocator, Urgency::Write);
        let kept = left.and_then(|()| self.back(&mut allocator, end, Urgency::Write));
        if kept.is_err() {
            allocator.promised -= bytes;
        }
        kept.map(|()| bytes).map_err(StoreError::from)
    }

    /// The same for what was promised before the store was opened: it is kept as far as
    /// there is space.
    pub fn promise_again(&self, lengths: impl Iterator<Item = usize>) -> u64 {
        let bytes = promised(lengths);
        let mut allocator = self.allocator.lock();
        allocator.promised += bytes;
        let end = allocator.end;
        let left = self.leave_chunks(&mut allocator, Urgency::Write);
        // Writers are refused until there is as much.
        let _ = left.and_then(|()| self.back(&mut allocator, end, Urgency::Write));
        bytes
    }

    /// Ends a promise: the space was taken, or nobody needs it any more.
    pub fn end_promise(&self, bytes: u64) {
        self.allocator.lock().promised -= bytes;
    }

    /// Adds a block to the free ones, and notes its chunk if that is now empty.
    pub(crate) fn free_block(&self, chunk: &Chunk, id: BlockId, now: Timestamp) {
        let bytes = u64::from(chunk.geometry.block_bytes);
        let block = &chunk.blocks[id.index as usize];
        if block.fill() < block.slots() || self.closed_early.lock().remove(&id) {
            self.listed.fetch_sub(1, Ordering::Relaxed);
        }
        let class = class_key(block.table(), block.stride());
        let mut allocator = self.allocator.lock();
        self.free_in_dram(block);
        allocator.take_from(class, bytes);
        allocator.give(chunk.geometry.class(), id);
        self.note_empty(&mut allocator, chunk, now);
    }

    pub(crate) fn free_in_dram(&self, block: &Block) {
        self.used_bytes.fetch_sub(block.bytes(), Ordering::Relaxed);
        self.used_blocks.fetch_sub(1, Ordering::Relaxed);
        block.free();
    }

    /// Notes a chunk that may have become empty. The first chunk stays.
    pub(crate) fn note_empty(&self, allocator: &mut Allocator, chunk: &Chunk, now: Timestamp) {
        if chunk.number > 0 && allocator.free_in(chunk) == chunk.geometry.blocks {
            // From now, not from the last time it was empty.
            allocator.empty.retain(|&(number, _)| number != chunk.number);
            allocator.empty.push_back((chunk.number, now));
        }
    }

    /// Makes blocks available that were carved and not opened, if they have become
    /// durable. So a chunk that hardly anything was put into can be taken apart.
    pub fn settle_carved(&self, now: Timestamp) {
        self.give_settled(&mut self.allocator.lock(), now);
    }

    pub(crate) fn give_settled(&self, allocator: &mut Allocator, now: Timestamp) {
        for number in allocator.settle(|point| self.medium.is_durable(point)) {
            if let Some(chunk) = self.chunk(number) {
                self.note_empty(allocator, chunk, now);
            }
        }
    }

    /// Takes apart a chunk that has been empty since `before`, if there are more
    /// than a few such chunks or `all` are to go.
    ///
    /// It waits for no transaction: none sees into free blocks, and links that are
    /// kept of them are found without the chunk (I-11, I-13). Threads may be looking at the
    /// chunk's description; the caller waits for those that are pinned.
    pub fn retire_chunk(
        &self,
        all: bool,
        before: Timestamp,
        now: impl Fn() -> Timestamp,
    ) -> Option<RetiredChunk> {
        let mut allocator = self.allocator.lock();
        let spare = allocator.spare_empty(all);
        if allocator.empty.len() <= spare || allocator.empty.front().is_none_or(|&(_, at)| at >= before) {
            return None;
        }
        let (number, emptied) = allocator.empty.pop_front()?;
        let chunk = self.chunk(number)?;
        if allocator.free_in(chunk) < chunk.geometry.blocks {
            return None;
        }
        let generation = chunk.next_generation();
        if self.past.have(number, generation) {
            // The next division would have generations of a past one.
            allocator.empty.push_back((number, now()));
            return None;
        }
        allocator.remove_chunk(chunk);
        // Before walks find the chunk no more.
        self.past.note(chunk, generation);
        let chunk = self.remove_chunk(number)?;
        // A state record that was sampled earlier still counts this chunk, so
        // it must not be taken for a later one.
        Some(RetiredChunk { chunk, at: now(), emptied, forgotten: None })
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
            self.zero_chunk_header(&retired.chunk)?;
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
        self.begin_write()?;
        let number = retired.chunk.number;
        {
            let _chunks = self.chunks_lock.write();
            drop(retired.chunk);
        }
        let mut allocator = self.allocator.lock();
        if allocator.free_chunks.len() < allocator.spare() {
            allocator.free_chunks.insert(number);
            return Ok(());
        }
        self.discard_chunk(&mut allocator, number)?;
        if number + 1 < allocator.next_chunk {
            // The end stays, and what the medium has made ready behind it.
            return Ok(());
        }
        Ok(self.shorten(&mut allocator, false)?)
    }

    /// Hands the space behind a chunk back to the system. Even if the system
    /// refuses: the chunk can be restored, whatever is left of it.
    fn discard_chunk(&self, allocator: &mut Allocator, number: u32) -> Result<(), MediumError> {
        allocator.discarded.insert(number);
        match self.on_medium(number) {
            Some((offset, len)) => self.medium.discard(offset, len),
            None => Ok(()),
        }
    }

    /// Makes the medium shorter if its last chunks are not carved, and with
    /// `tail` by the free blocks at the end of the last one that is. Those may
    /// soon be taken again.
    pub(crate) fn shorten(&self, allocator: &mut Allocator, tail: bool) -> Result<(), MediumError> {
        self.shorten_after(allocator, tail, || Ok(()))
    }

    /// The same, after `before` if the medium becomes shorter.
    pub(crate) fn shorten_after(
        &self,
        allocator: &mut Allocator,
        tail: bool,
        before: impl FnOnce() -> Result<(), MediumError>,
    ) -> Result<(), MediumError> {
        // A process that looks behind the end of a file does not live on.
        let held = self.holds.look();
        if held.is_scanned() {
            return Ok(());
        }
        let is_unused = |allocator: &Allocator, number| {
            allocator.free_chunks.contains(&number) || allocator.discarded.contains(&number)
        };
        let mut next = allocator.next_chunk;
        while next > 1 && is_unused(allocator, next - 1) {
            next -= 1;
        }
        let mut end = allocator.end.min(u64::from(next) * CHUNK_BYTES);
        if let Some(chunk) = self.chunk(next.max(1) - 1).filter(|_| tail) {
            end = end.min(allocator.end_in(chunk));
        }
        // The last chunk may have no block in use, and is carved all the same.
        let end = end.max(start_of(next.max(1) - 1) + CHUNK_HEADER_BYTES as u64);
        let Reserve { bytes, chunks, .. } = self.wanted_reserve(allocator);
        let reserved = if chunks > 0 { (u64::from(next) + chunks) * CHUNK_BYTES } else { end + bytes };
        let reserved = reserved.max(allocator.least_len);
        if reserved < self.medium.len() {
            before()?;
        }
        // Also if the system refuses to shorten the file: nothing lies there any more.
        let shrunk = self.medium.shrink(reserved);
        // Only what is gone can be forgotten: the rest may have no space behind
        // it.
        let left = self.medium.len().div_ceil(CHUNK_BYTES) as u32;
        allocator.shorten(next.max(left).min(allocator.next_chunk));
        allocator.end = if tail { end } else { allocator.end }.min(self.medium.len());
        shrunk
    }

    /// Makes the medium take this many bytes more, and keep them as long as the store is open. What is
    /// timed then has no part in the system's work for them.
    ///
    /// # Errors
    /// Those of [`Medium::grow`](pantile_media::Medium::grow).
    pub fn take_ahead(&self, bytes: u64) -> Result<(), MediumError> {
        let len = {
            let mut allocator = self.allocator.lock();
            allocator.least_len = self.medium.len() + bytes;
            allocator.least_len
        };
        self.medium.shared().preallocate(len)
    }

    /// Average size of a block in use, in bytes.
    pub fn mean_block_bytes(&self) -> u64 {
        self.used_bytes() / self.used_blocks.load(Ordering::Relaxed).max(1)
    }

    /// Bytes that writers can still take without a free block, and the upper
    /// limit of that number.
    pub fn room(&self) -> (u64, u64) {
        let limit = self.medium.facts().limit;
        let allocator = self.allocator.lock();
        let empty = self.still_empty(&allocator, Timestamp::MAX);
        let unused = [&allocator.free_chunks, &allocator.discarded]
            .map(|chunks| Allocator::bytes_between(chunks, 0, allocator.end));
        let free = limit.saturating_sub(allocator.end) + unused[0] + unused[1] + empty as u64 * CHUNK_BYTES;
        (free.saturating_sub(self.wanted_reserve(&allocator).total()), limit)
    }

    /// Number of chunks that became empty by this time and still are.
    fn still_empty(&self, allocator: &Allocator, by: Timestamp) -> usize {
        let is_empty = |number: u32| {
            self.chunk(number).is_some_and(|chunk| allocator.free_in(chunk) == chunk.geometry.blocks)
        };
        allocator.empty.iter().filter(|&&(number, at)| at <= by && is_empty(number)).count()
    }

    /// Hands free chunks back to the system, at most this many, and if there is
    /// any to hand back what is free at the end of the last chunk in use. What the
    /// medium has made ready behind the end goes too, but while the end moves only
    /// `at_once`: it would be made ready again.
    ///
    /// # Errors
    /// [`StoreError::Medium`].
    pub fn discard_free(&self, most: usize, at_once: bool) -> Result<(), StoreError> {
        // A database that is only read stays as it was closed, which is short.
        let is_any = most > 0 && !self.allocator.lock().free_chunks.is_empty();
        if !is_any && self.is_unchanged() {
            return Ok(());
        }
        self.begin_write()?;
        // Threads that find blocks by their names may be reading one that has become free since. They
        // would not live on if the medium ended before it.
        let _chunks = (most > 0).then(|| self.chunks_lock.write());
        let mut allocator = self.allocator.lock();
        if most == 0 && !allocator.end_stays() && !at_once {
            return Ok(());
        }
        for _ in 0..most {
            let Some(number) = allocator.free_chunks.pop_last() else { break };
            self.discard_chunk(&mut allocator, number)?;
        }
        Ok(self.shorten(&mut allocator, most > 0)?)
    }

    /// Bytes of the medium that are taken, and how many of them are kept ready:
    /// the head, the reserve and a few free chunks.
    pub fn taken_bytes(&self) -> (u64, u64) {
        let allocator = self.allocator.lock();
        let reserve = self.wanted_reserve(&allocator).total();
        // What the medium finds ahead of use is not taken.
        let end = (allocator.end + reserve).min(self.medium.len());
        let taken = end - Allocator::bytes_between(&allocator.discarded, 0, end);
        (taken, HEAD_BYTES + reserve + allocator.spare() as u64 * CHUNK_BYTES)
    }

    /// Where what is used of the medium ends.
    pub fn end(&self) -> u64 {
        self.allocator.lock().end
    }

    /// Notes how many bytes of all tables are alive. New blocks are as large as
    /// suits that.
    pub fn note_live_bytes(&self, live: u64) {
        self.allocator.lock().note_live(live);
    }

    /// Number of chunks that may be empty.
    pub fn empty_chunks(&self) -> usize {
        self.allocator.lock().empty.len()
    }

    /// Whether [`Store::retire_chunk`] has chunks to take apart, now or once
    /// running transactions have ended.
    pub fn has_spare_chunks(&self, all: bool) -> bool {
        let allocator = self.allocator.lock();
        self.still_empty(&allocator, Timestamp::MAX) > allocator.spare_empty(all)
    }

    /// Whether chunks that became empty by this time wait to be taken apart.
    pub fn has_empty_chunks(&self, by: Timestamp) -> bool {
        self.still_empty(&self.allocator.lock(), by) > 0
    }

    /// Whether blocks are free at the end of the last chunk.
    pub fn has_free_tail(&self) -> bool {
        let allocator = self.allocator.lock();
        let last = self.chunk(allocator.next_chunk.max(1) - 1);
        last.is_some_and(|chunk| allocator.end_in(chunk) < allocator.end)
    }

    /// Whether writers can have a block without the medium growing, and how
    /// many blocks are free.
    pub fn available(&self) -> (bool, usize) {
        let allocator = self.allocator.lock();
        let Reserve { bytes, chunks, .. } = self.wanted_reserve(&allocator);
        let backed = self.backed_bytes(&allocator, allocator.end);
        let whole = self.medium.len() / CHUNK_BYTES + allocator.free_chunks.len() as u64;
        let has_chunk = whole > u64::from(allocator.next_chunk) + chunks;
        let has_room = backed >= bytes + GROWTH_BYTES && (chunks == 0 || has_chunk);
        (has_room, allocator.free_blocks())
    }
}
