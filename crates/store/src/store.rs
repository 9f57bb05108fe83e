//! The store itself: finding contents and links, opening and closing.

use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use pantile_base::limits::CHUNK_BYTES;
use pantile_base::{Address, Segments, TableId, Timestamp};
use pantile_media::{Medium, MediumError};
use parking_lot::Mutex;

use crate::allocator::Allocator;
use crate::append::{Stream, resume_key};
use crate::block::{Block, BlockId, BlockState, Chunk};
use crate::content::{Content, HEADER_BYTES};
use crate::error::StoreError;
use crate::format::{
    CHUNK_HEADER_BYTES, ChunkHeader, DESCRIPTOR_BYTES, FORMAT_VERSION, STATE_COPY_BYTES, STATE_RECORD_BYTES,
    STATE_RECORDS, Superblock, Unreadable,
};
use crate::geometry::Geometry;
use crate::state_record::{PartlyFilled, StateRecord};
use crate::tile::Link;

/// How to open a store.
#[derive(Clone, Copy, Debug)]
pub struct StoreOptions {
    /// Append streams: commits that can append at the same time.
    pub streams: usize,
    /// Identifies this boot of the machine.
    pub boot: u64,
    /// Commits will be acknowledged before they are durable.
    pub relaxed: bool,
}

/// Contents in blocks on a medium.
#[derive(Debug)]
pub struct Store {
    pub(crate) medium: Arc<dyn Medium>,
    /// Start of the mapping, as a number so that the store can be shared.
    base: usize,
    pub(crate) identity: u64,
    pub(crate) options: StoreOptions,
    chunks: Segments<AtomicPtr<Chunk>>,
    pub(crate) allocator: Mutex<Allocator>,
    pub(crate) streams: Box<[Mutex<Stream>]>,
    /// Partly filled blocks found at opening, which streams take up first.
    pub(crate) resumable: Mutex<std::collections::HashMap<u64, Vec<BlockId>>>,
    pub(crate) state: Mutex<StateRecord>,
    /// Bytes appended since the state record was last taken.
    pub(crate) appended: AtomicU64,
}

impl Store {
    /// Makes a store on a medium that is empty, or opens the one that is
    /// there; [`Store::recover`] must follow.
    ///
    /// # Errors
    /// [`StoreError::Foreign`], [`StoreError::Version`], [`StoreError::Damaged`]
    /// with the medium untouched; [`StoreError::Medium`].
    pub fn open(medium: Arc<dyn Medium>, options: StoreOptions, identity: u64) -> Result<Self, StoreError> {
        if is_blank(&*medium) {
            medium.grow(CHUNK_BYTES)?;
            let superblock = Superblock { version: FORMAT_VERSION, identity };
            let state = StateRecord { sequence: 2, boot: options.boot, ..StateRecord::default() };
            write_state(&*medium, &state, identity)?;
            medium.sync_all()?;
            medium.write(0, &superblock.encode())?;
            medium.flush(0, 64);
            medium.fence()?;
            medium.sync_all()?;
        }
        let superblock = Superblock::decode(mapped(&*medium, 0, 4096)).map_err(unreadable)?;
        let state = newest_state(&*medium, superblock.identity)?;
        Ok(Self {
            base: medium.base() as usize,
            medium,
            identity: superblock.identity,
            options,
            chunks: Segments::default(),
            allocator: Mutex::default(),
            streams: (0..options.streams.max(1)).map(|_| Mutex::default()).collect(),
            resumable: Mutex::default(),
            state: Mutex::new(state),
            appended: AtomicU64::new(0),
        })
    }

    /// The medium.
    pub fn medium(&self) -> &Arc<dyn Medium> {
        &self.medium
    }

    /// The content at an address that a version's anchor or link gave.
    ///
    /// The bytes stay as they are while a transaction that can see the
    /// version runs (I-3), which the caller must outlive the content by.
    #[inline]
    pub fn content(&self, address: Address) -> Content<'_> {
        let start = (self.base + address.offset() as usize) as *const u8;
        // SAFETY: the address is of a content that was written whole before
        // it was published, inside the mapping; contents do not change while
        // they can be reached (I-3).
        unsafe {
            let len = u32::from_le(start.add(16).cast::<u32>().read()) & 0x00ff_ffff;
            let bytes = std::slice::from_raw_parts(start, HEADER_BYTES + len as usize);
            if self.medium.charges_reads() {
                self.medium.charge_read(address.offset(), bytes.len() as u64);
            }
            Content::new(bytes)
        }
    }

    /// Asks the CPU to fetch a content that will be read soon.
    #[inline]
    pub fn prefetch(&self, address: Address) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a hint that never faults.
        unsafe {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let start = (self.base + address.offset() as usize) as *const i8;
            _mm_prefetch(start, _MM_HINT_T0);
            _mm_prefetch(start.wrapping_add(64), _MM_HINT_T0);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = address;
    }

    /// The link from the version at `address` to the one before it.
    #[inline]
    pub fn link(&self, address: Address) -> Option<Link> {
        let (block, slot) = self.chunk_of(address).locate(address);
        block.tile.link(slot)
    }

    /// Sets the link of a version that has been appended but not published.
    #[inline]
    pub fn set_link(&self, address: Address, link: Link) {
        let (block, slot) = self.chunk_of(address).locate(address);
        block.tile.set(slot, link);
    }

    #[inline]
    fn chunk_of(&self, address: Address) -> &Chunk {
        self.chunk((address.offset() / CHUNK_BYTES) as u32).expect("addresses lie in carved chunks")
    }

    #[inline]
    pub(crate) fn chunk(&self, number: u32) -> Option<&Chunk> {
        let chunk = self.chunks.get(u64::from(number))?.load(Ordering::Acquire);
        // SAFETY: published whole by `add_chunk`, freed only with the store.
        unsafe { chunk.as_ref() }
    }

    pub(crate) fn add_chunk(&self, chunk: Chunk) {
        let cell = self.chunks.get_or_grow(u64::from(chunk.number));
        let old = cell.swap(Box::into_raw(Box::new(chunk)), Ordering::AcqRel);
        assert!(old.is_null(), "a chunk is carved once");
    }

    pub(crate) fn block(&self, id: BlockId) -> (&Chunk, &Block) {
        let chunk = self.chunk(id.chunk).expect("a block lies in a carved chunk");
        (chunk, &chunk.blocks[id.index as usize])
    }

    /// All carved chunks.
    pub(crate) fn all_chunks(&self) -> impl Iterator<Item = &Chunk> {
        let end = self.allocator.lock().next_chunk;
        (1..end).filter_map(|number| self.chunk(number))
    }

    /// Seeds the checksums of contents of a block's life.
    #[inline]
    pub(crate) fn content_seed(&self, opened_at: u64) -> u64 {
        self.identity.rotate_left(17) ^ opened_at
    }

    /// The mapped bytes of a range.
    pub(crate) fn bytes(&self, offset: u64, len: usize) -> &[u8] {
        mapped(&*self.medium, offset, len)
    }

    /// Takes a new chunk and divides it. The blocks are not yet durable and
    /// must be given out only after the caller's fence.
    pub(crate) fn carve(&self, allocator: &mut Allocator, stride: u32) -> Result<Vec<BlockId>, MediumError> {
        let number = match allocator.free_chunks.last() {
            Some(&number) => number,
            None => allocator.next_chunk,
        };
        let end = (u64::from(number) + 1) * CHUNK_BYTES;
        self.medium.grow(end)?;
        let geometry = Geometry::of_stride(stride);
        let header = ChunkHeader {
            stride,
            slots: geometry.slots,
            block_bytes: geometry.block_bytes,
            blocks: geometry.blocks,
        };
        let chunk = Chunk::new(number, geometry);
        let mut page = vec![0; CHUNK_HEADER_BYTES];
        page[..DESCRIPTOR_BYTES].copy_from_slice(&header.encode(self.identity ^ chunk.offset()));
        self.medium.write(chunk.offset(), &page)?;
        self.medium.flush(chunk.offset(), DESCRIPTOR_BYTES as u64);
        if allocator.free_chunks.pop().is_none() {
            allocator.next_chunk += 1;
        }
        self.add_chunk(chunk);
        Ok((0..geometry.blocks).map(|index| BlockId { chunk: number, index }).collect())
    }

    /// Gives back every block of a dropped table.
    ///
    /// No transaction may be able to see into the table any more, and a state
    /// record whose watermark covers all its transactions must be durable (T1).
    pub fn release_table(&self, table: TableId) -> Result<(), StoreError> {
        for stream in &self.streams {
            stream.lock().forget(table);
        }
        self.resumable.lock().retain(|key, _| resume_key(table, 0) >> 32 != key >> 32);
        let mut released = Vec::new();
        for chunk in self.all_chunks() {
            for (index, block) in chunk.blocks.iter().enumerate() {
                let used = matches!(block.state(), BlockState::Open | BlockState::Sealed);
                if used && block.table() == table {
                    block.become_(BlockState::Released);
                    let offset = chunk.descriptor_offset(index as u32);
                    self.medium.write(offset, &[0; DESCRIPTOR_BYTES])?;
                    self.medium.flush(offset, DESCRIPTOR_BYTES as u64);
                    released.push((chunk, BlockId { chunk: chunk.number, index: index as u32 }, block));
                }
            }
        }
        self.medium.fence()?;
        // Even where fences promise nothing: bytes of the blocks' next life
        // must not be there before the end of this one is.
        self.medium.sync_all()?;
        let mut allocator = self.allocator.lock();
        for (chunk, id, block) in released {
            block.tile.clear();
            block.become_(BlockState::Free);
            allocator.give(chunk.geometry.stride, id);
        }
        Ok(())
    }

    /// The blocks that streams append to, with their fill: one half of a new
    /// state record. Every block opened by `taken_at` is among them or full.
    pub fn sample(&self, taken_at: Timestamp) -> StateSample {
        // All at once, or a block that is taken up meanwhile would be missed.
        let streams: Vec<_> = self.streams.iter().map(|stream| stream.lock()).collect();
        let resumable = self.resumable.lock();
        let open = streams.iter().flat_map(|stream| stream.partly_filled());
        let waiting = resumable.values().flatten().map(|id| (*id, self.block(*id).1.fill()));
        let partly_filled = open.chain(waiting).map(|(id, fill)| {
            let opened_at = self.block(id).1.opened_at();
            PartlyFilled { chunk: id.chunk, index: id.index, fill, opened_at }
        });
        self.appended.store(0, Ordering::Relaxed);
        let carved = self.all_chunks().count() as u64;
        StateSample { taken_at, carved, partly_filled: partly_filled.collect() }
    }

    /// Bytes appended since the last sample.
    pub fn appended_since_sample(&self) -> u64 {
        self.appended.load(Ordering::Relaxed)
    }

    /// Writes a state record from a sample. Every transaction at or below the
    /// sample's `taken_at` must have been decided, and every one that had
    /// appended when the sample was taken.
    ///
    /// # Errors
    /// [`StoreError::Medium`]; the previous record stays valid.
    pub fn record_state(&self, sample: StateSample, closed: bool) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let next = StateRecord {
            sequence: state.sequence + 1,
            watermark: sample.taken_at.get(),
            taken_at: sample.taken_at.get(),
            boot: self.options.boot,
            closed,
            relaxed: self.options.relaxed,
            carved: sample.carved,
            partly_filled: sample.partly_filled,
        };
        if !next.fits() {
            return Ok(());
        }
        self.medium.sync_all()?;
        write_state(&*self.medium, &next, self.identity)?;
        self.medium.sync_all()?;
        *state = next;
        Ok(())
    }

    /// The durable watermark: transactions at or below it need no evidence.
    pub fn durable_watermark(&self) -> Timestamp {
        Timestamp::from_raw(self.state.lock().watermark)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // All that recovery may have got to, also if it failed.
        for number in 0..=(self.medium.len() / CHUNK_BYTES) {
            if let Some(cell) = self.chunks.get(number) {
                let chunk = cell.swap(std::ptr::null_mut(), Ordering::AcqRel);
                if !chunk.is_null() {
                    // SAFETY: made by `add_chunk`; nobody else is left.
                    drop(unsafe { Box::from_raw(chunk) });
                }
            }
        }
    }
}

/// Fills of open blocks at one time; see [`Store::sample`].
#[derive(Clone, Debug)]
pub struct StateSample {
    taken_at: Timestamp,
    carved: u64,
    partly_filled: Vec<PartlyFilled>,
}

impl StateSample {
    /// When it was taken.
    pub fn taken_at(&self) -> Timestamp {
        self.taken_at
    }
}

fn mapped(medium: &dyn Medium, offset: u64, len: usize) -> &[u8] {
    assert!(offset + len as u64 <= medium.len(), "the range lies in the mapping");
    // SAFETY: inside the mapping; the caller reads bytes that nobody writes
    // meanwhile (recovery runs alone).
    unsafe { std::slice::from_raw_parts(medium.base().add(offset as usize), len) }
}

/// Whether nothing has ever been acknowledged here: the medium is empty, or
/// its making was cut short before the superblock was whole.
fn is_blank(medium: &dyn Medium) -> bool {
    medium.is_empty() || Superblock::is_unwritten(mapped(medium, 0, 64)) && all_zero_beyond_records(medium)
}

fn all_zero_beyond_records(medium: &dyn Medium) -> bool {
    let records_end = STATE_RECORDS[1] + STATE_RECORD_BYTES;
    let zero = |from: u64, to: u64| mapped(medium, from, (to - from) as usize).iter().all(|&b| b == 0);
    zero(64, STATE_RECORDS[0]) && zero(records_end, medium.len())
}

fn unreadable(reason: Unreadable) -> StoreError {
    match reason {
        Unreadable::Foreign => StoreError::Foreign("it does not start with Pantile's magic number".into()),
        Unreadable::Version(found) => StoreError::Version(found),
        Unreadable::Damaged => StoreError::Damaged {
            place: "offset 0, the superblock".into(),
            detail: "its checksum does not fit".into(),
        },
    }
}

fn newest_state(medium: &dyn Medium, seed: u64) -> Result<StateRecord, StoreError> {
    STATE_RECORDS
        .into_iter()
        .flat_map(|at| [at, at + STATE_COPY_BYTES])
        .filter_map(|at| StateRecord::decode(mapped(medium, at, STATE_COPY_BYTES as usize), seed))
        .max_by_key(|record| record.sequence)
        .ok_or_else(|| StoreError::Damaged {
            place: format!("offsets {} and {}, the state records", STATE_RECORDS[0], STATE_RECORDS[1]),
            detail: "no checksum fits".into(),
        })
}

fn write_state(medium: &dyn Medium, state: &StateRecord, seed: u64) -> Result<(), MediumError> {
    let bytes = state.encode(seed);
    let place = STATE_RECORDS[(state.sequence % 2) as usize];
    for at in [place, place + STATE_COPY_BYTES] {
        medium.write(at, &bytes)?;
        medium.flush(at, bytes.len() as u64);
    }
    medium.fence()
}
