//! Recovery: one parallel pass over the medium finds what was committed.
//!
//! It follows Zen 3.3.3, with two differences. First, a content says how many contents its
//! transaction wrote, so a commit is evident from the contents themselves and needs no flag that is
//! flushed after them (I-8). Second, contents at or below the durable watermark are known to be
//! committed, so only the few above it are counted. Recovery changes only slots of transactions
//! that did not commit, and a second recovery finds the same (idempotent).

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::CHUNK_BYTES;
use pantile_base::share_out;
use pantile_base::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use pantile_base::{Address, TableId, Timestamp};
use pantile_media::{MediumError, MediumExt, Reads};

use crate::block::{Block, BlockId, BlockState, Chunk};
use crate::content::{Content, HEADER_BYTES};
use crate::error::StoreError;
use crate::expectation::Expectation;
use crate::format::{CHUNK_HEADER_BYTES, ChunkHeader, Descriptor, ENTRY_BYTES, FrozenFlag, has_lost_a_word};
use crate::geometry::{Class, Geometry};
use crate::image::blocks::KnownBlocks;
use crate::image::read::Image;
use crate::lines::{Lines, Lost};
use crate::state_record::{StateRecord, is_of_records};
use crate::store::Store;
use crate::stream::class_key;

pub(crate) const ROTTEN: &str = "the checksum of a committed content does not fit";
pub(crate) const NONSENSE: &str = "the chunk header is not valid";
pub(crate) const FOREIGN_MARK: &str = "a frozen flag of another generation";
pub(crate) const LOST_BLOCK: &str = "the block was partly filled, and its descriptor is lost";
pub(crate) const MISSHAPEN: &str = "the block descriptor is not valid";
pub(crate) const LOST_RECORD: &str = "the state record continues in the block, whose descriptor is lost";
pub(crate) const LOST_ENTRY: &str = "a word of the entry is lost";

/// Header pages of chunks that are worth another thread.
const PAGES_PER_THREAD: usize = 256;

/// A committed content.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// Its address.
    pub address: Address,
    /// The content.
    pub content: Content<'a>,
}

/// The progress of the scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ScanProgress {
    /// Bytes of the medium scanned.
    pub done: u64,
    /// Bytes to scan.
    pub total: u64,
}

/// How to scan, and what to call. Calls come from several threads.
pub struct Scan<'a> {
    /// Threads to scan with, at least 1.
    pub threads: usize,
    /// Called with committed contents of one table, in no particular order.
    pub found: &'a (dyn Fn(TableId, &[Found<'_>]) + Sync),
    /// Called from time to time.
    pub progress: &'a (dyn Fn(ScanProgress) + Sync),
}

/// Whether an image says everything about the database, or something has changed
/// since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IsWhole {
    /// Nothing is left to be scanned.
    Yes,
    /// What it says is to be brought up to date.
    No,
}

/// What the scan found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ScanSummary {
    /// Contents of committed transactions.
    pub contents: u64,
    /// The bytes of these contents, content headers included.
    pub content_bytes: u64,
    /// Contents of transactions that did not commit; they are void now.
    pub discarded: u64,
    /// The highest timestamp anywhere on the medium (T5).
    pub highest: Timestamp,
    /// Whether the database had been closed.
    pub was_closed: bool,
    /// Whether an index image has said what most blocks hold. These contents
    /// have not been read then.
    pub from_image: bool,
}

/// A content above the watermark. The contents of its transaction are to be
/// counted.
pub(crate) struct Uncertain {
    pub block: BlockId,
    pub slot: u32,
}

/// What one thread has found.
#[derive(Default)]
pub(crate) struct Seen {
    pub summary: ScanSummary,
    pub uncertain: Vec<Uncertain>,
    pub holes: Vec<Uncertain>,
    /// Slots behind the last content of a block that are not empty.
    pub behind: Vec<Uncertain>,
    /// The place of each damage, and what is wrong there.
    damage: Vec<(String, String)>,
    /// The error of a read that the medium could not do.
    unreadable: Option<MediumError>,
    free_chunks: Vec<u32>,
    /// Blocks that state records continue in.
    record_blocks: Vec<BlockId>,
    /// Offsets of the entries in chunk pages that were cut off.
    pub torn: Vec<u64>,
    /// Entries of chunk pages that are whole at one of their two places.
    pub lost: Vec<Lost>,
    /// Blocks that an image knows, what it knows of them in bytes, and those that
    /// cannot be what it knows.
    pub known: usize,
    pub known_bytes: u64,
    pub strange: usize,
    /// Blocks of which an image does not say everything, each with the first slot
    /// that is to be scanned.
    pub left: Vec<(BlockId, u32)>,
    pub left_bytes: u64,
}

impl Store {
    /// Scans the medium; must be called once, before anything is appended.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if something that was durable has changed; the
    /// scan has then changed nothing.
    pub fn recover(&self, scan: &Scan<'_>) -> Result<ScanSummary, StoreError> {
        self.recover_from(scan, None, |_| true)
    }

    /// As [`Store::recover`]. If the image fits what is on the medium, only what
    /// it does not know is scanned. `take` is asked before that: whether the
    /// caller takes the image. It is told whether the image says everything.
    /// Contents can be verified by then.
    ///
    /// # Errors
    /// As [`Store::recover`].
    pub fn recover_from(
        &self,
        scan: &Scan<'_>,
        image: Option<&Image>,
        take: impl Fn(IsWhole) -> bool,
    ) -> Result<ScanSummary, StoreError> {
        // The scan fetches what it reads in order, and looks up older versions
        // of what it finds, which lie anywhere.
        self.medium.advise(Reads::AtRandom);
        let state = self.state.lock().clone();
        let known = image.filter(|_| self.options.reuse.is_none()).and_then(KnownBlocks::read);
        let expectation = Expectation::new(&state);
        let chunks = self.chunks_on_medium();
        let mut all = self.scan_chunks(scan, chunks, &expectation, known.as_ref());
        if let (Some(known), Some(image)) = (&known, image) {
            let fits = all.strange == 0 && all.damage.is_empty() && all.unreadable.is_none();
            let is_whole = all.left.is_empty() && all.known == known.len();
            let is_taken =
                fits && all.is_image_worth_it() && take(if is_whole { IsWhole::Yes } else { IsWhole::No });
            if !is_taken {
                self.forget_chunks(chunks);
                return self.recover(scan);
            }
            *self.image.lock() = Some(image.name());
            self.scan_left(scan, &expectation, &mut all);
            // Also if it is whole: it may have been made beside a transaction that did not commit.
            self.find_unclaimed_tombstones(scan, known, &mut all);
            all.summary.from_image = true;
            all.summary.highest = all.summary.highest.max(Timestamp::from_raw(image.highest()));
        }
        if let Some(error) = all.unreadable {
            return Err(error.into());
        }
        self.expect_whole(&state, &expectation, &mut all);
        if let Some(error) = all.first_damage().filter(|_| !self.is_damaged) {
            return Err(error);
        }
        let carved = self.carved() as u64;
        if carved < state.carved && !self.is_damaged {
            return Err(StoreError::Damaged {
                place: format!("{carved} of {} chunks", state.carved),
                detail: "the others are missing: the medium has been truncated or overwritten".into(),
            });
        }
        let lost_tail = state.relaxed && state.boot != self.options.boot;
        self.settle(scan, &expectation, &mut all, lost_tail, state.closed)?;
        if !state.closed && !is_removed(Control::EmptyBlocks) {
            self.release_empty(chunks)?;
        }
        self.keep_record_blocks(all.record_blocks);
        self.take_stock(chunks, all.free_chunks);
        self.make_ready()?;
        all.summary.highest =
            all.summary.highest.max(Timestamp::from_raw(state.watermark.max(state.taken_at)));
        all.summary.was_closed = state.closed;
        if all.summary.from_image && state.closed {
            // Nothing has been decided, so nothing was written.
            self.stay_closed(all.summary.highest);
        }
        Ok(all.summary)
    }

    /// Number of chunks that are on the medium, at least in part.
    pub(crate) fn chunks_on_medium(&self) -> u32 {
        self.medium.len().div_ceil(CHUNK_BYTES) as u32
    }

    /// Chunks that the scan has found.
    fn carved(&self) -> usize {
        (0..self.chunks_on_medium()).filter(|&n| self.chunk(n).is_some()).count()
    }

    fn blocks_in_use(&self) -> u64 {
        let used = |chunk: &Chunk| chunk.blocks.iter().filter(|b| b.state().is_used()).count();
        (0..self.chunks_on_medium()).filter_map(|n| self.chunk(n)).map(used).sum::<usize>() as u64
    }

    /// Checks the descriptors against a record that was the last one written.
    fn expect_whole(&self, state: &StateRecord, expect: &Expectation, all: &mut Seen) {
        let opened_at = |id: BlockId| {
            let block = self.chunk(id.chunk)?.blocks.get(id.index as usize)?;
            (block.state() != BlockState::Free).then(|| block.opened_at())
        };
        let used = self.blocks_in_use();
        // If chunks are missing, that is already reported.
        let is_short = (self.carved() as u64) < state.carved;
        if used < state.used && !is_short {
            let place = format!("{used} of {} blocks", state.used);
            all.damage.push((place, "the descriptors of the others are lost".into()));
        }
        let missing = expect.missing(opened_at).into_iter().map(|id| (id, LOST_BLOCK));
        // A table that took the block would be overwritten by the record after the next.
        let is_of_record = |id: &BlockId| {
            let block = self.chunk(id.chunk).and_then(|chunk| chunk.blocks.get(id.index as usize));
            block.is_some_and(|block| block.state() == BlockState::Record)
        };
        let record_blocks = self.record_blocks.lock();
        let of_record = record_blocks[state.place()].iter().filter(|id| !is_of_record(id));
        let lost = missing.chain(of_record.map(|id| (*id, LOST_RECORD)));
        for (id, what) in lost.filter(|_| !is_short) {
            all.damage.push((format!("block {}.{}", id.chunk, id.index), what.into()));
        }
        let is_lost = |offset: &&u64| {
            let number = (**offset / CHUNK_BYTES) as u32;
            // In a chunk that is not carved only the first line counts.
            let counts = self.chunk(number).is_some() || **offset == start_of(number);
            state.closed && counts && has_lost_a_word(self.bytes(**offset, ENTRY_BYTES))
        };
        for offset in all.torn.iter().filter(is_lost) {
            all.damage.push((format!("offset {offset}"), LOST_ENTRY.into()));
        }
    }

    fn scan_chunks(
        &self,
        scan: &Scan<'_>,
        chunks: u32,
        expect: &Expectation,
        known: Option<&KnownBlocks>,
    ) -> Seen {
        // A descriptor page is no work for a thread of its own.
        let threads = match known {
            Some(_) => scan.threads.min(1 + chunks as usize / PAGES_PER_THREAD),
            None => scan.threads,
        };
        let next = AtomicU32::new(0);
        let done = AtomicU64::new(0);
        let total = u64::from(chunks) * CHUNK_BYTES;
        let work = || {
            let mut seen = Seen::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= chunks {
                    return seen;
                }
                self.scan_chunk(number, scan, expect, known, &mut seen);
                let done = done.fetch_add(CHUNK_BYTES, Ordering::Relaxed) + CHUNK_BYTES;
                (scan.progress)(ScanProgress { done, total });
            }
        };
        let mut all = Seen::default();
        share_out(threads, |_| work()).into_iter().for_each(|part| all.merge(part));
        all
    }

    /// Forgets what a scan has found.
    fn forget_chunks(&self, chunks: u32) {
        (0..chunks).for_each(|number| drop(self.remove_chunk(number)));
        self.used_bytes.store(0, Ordering::Relaxed);
        self.used_blocks.store(0, Ordering::Relaxed);
    }

    fn scan_chunk(
        &self,
        number: u32,
        scan: &Scan<'_>,
        expect: &Expectation,
        known: Option<&KnownBlocks>,
        seen: &mut Seen,
    ) {
        let offset = start_of(number);
        if self.medium.len() < offset + CHUNK_HEADER_BYTES as u64 {
            return seen.free_chunks.push(number);
        }
        // Of a block that is in the image, only the descriptor is read.
        let len = if known.is_some() { CHUNK_HEADER_BYTES as u64 } else { CHUNK_BYTES };
        self.medium.advise(Reads::Soon { offset, len });
        match self.check_header(offset) {
            Ok(true) => {}
            Ok(false) => return seen.free_chunks.push(number),
            Err(error) => return seen.note_unreadable(error),
        }
        let lines = Lines { page: self.bytes(offset, CHUNK_HEADER_BYTES), offset, identity: self.identity };
        let lost = || if self.is_damaged { self.division(&lines, number) } else { None };
        let geometry = match self.first_entry(&lines, 0, ChunkHeader::decode, expect, &mut seen.lost) {
            Ok(Some(header)) => Geometry::of(number, header),
            Ok(None) => match lost() {
                Some(geometry) => geometry,
                None => {
                    seen.torn_entries(lines.page, offset);
                    return seen.free_chunks.push(number);
                }
            },
            Err(why) => match lost() {
                Some(geometry) => geometry,
                None => return seen.damage.push((format!("offset {offset}"), why.into())),
            },
        };
        if !geometry.is_sound() {
            return seen.damage.push((format!("offset {offset}"), NONSENSE.into()));
        }
        self.add_chunk(Chunk::new(number, geometry, 0));
        let chunk = self.chunk(number).expect("just added");
        for index in 0..geometry.blocks {
            let at = chunk.descriptor_offset(index);
            let n = index as usize + 1;
            let decode = |line: &[u8]| Descriptor::decode(line, lines.seed(n)).ok()?;
            let mend = |why| self.mended(lines.line(n), &decode).map(Some).ok_or(why);
            match self.first_entry(&lines, n, Descriptor::decode, expect, &mut seen.lost).or_else(mend) {
                Ok(Some(descriptor)) if is_of_records(TableId(descriptor.table)) => {
                    chunk.blocks[index as usize].keep_for_records(descriptor.opened_at);
                    seen.record_blocks.push(chunk.id(index));
                }
                Ok(Some(descriptor)) => {
                    if !descriptor.shape.fits(geometry.block_bytes) {
                        let place = format!("offset {at}, block {number}.{index}");
                        seen.damage.push((place, MISSHAPEN.into()));
                        continue;
                    }
                    let block = &chunk.blocks[index as usize];
                    self.open_in_dram(block, &descriptor, geometry.block_bytes);
                    self.scan_frozen_flag(
                        block,
                        &lines.line(n)[ENTRY_BYTES..],
                        at + ENTRY_BYTES as u64,
                        seen,
                    );
                    match known {
                        Some(known) => self.restore_block(chunk, chunk.id(index), known, expect, seen),
                        None => self.scan_block(chunk, chunk.id(index), 0, scan, expect, seen),
                    }
                }
                Ok(None) => {
                    seen.torn_entries(lines.line(n), at);
                    seen.torn_entries(lines.copy(n), chunk.copy_offset(index));
                }
                Err(why) => seen.damage.push((format!("offset {at}, block {number}.{index}"), why.into())),
            }
        }
    }

    /// Checks the header page of a chunk before it is read: an unreadable page is an
    /// error here; reading it would end the process. Returns whether there is
    /// anything but a hole.
    pub(crate) fn check_header(&self, offset: u64) -> Result<bool, MediumError> {
        let len = CHUNK_HEADER_BYTES as u64;
        match self.medium.check_readable(offset, len) {
            Ok(()) => Ok(true),
            Err(_) if self.medium.is_hole(offset, len) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn scan_frozen_flag(&self, block: &Block, entry: &[u8], at: u64, seen: &mut Seen) {
        match FrozenFlag::decode(entry, self.identity ^ at) {
            Ok(Some(flag)) if flag.opened_at == block.opened_at() => block.set_frozen_on_medium(),
            Ok(Some(_)) => seen.damage.push((format!("offset {at}, a frozen flag"), FOREIGN_MARK.into())),
            Ok(None) => seen.torn_entries(entry, at),
            Err(why) => seen.damage.push((format!("offset {at}, a frozen flag"), why.into())),
        }
    }

    /// Scans a block from a slot on, if it can be read.
    pub(crate) fn scan_block(
        &self,
        chunk: &Chunk,
        id: BlockId,
        from: u32,
        scan: &Scan<'_>,
        expect: &Expectation,
        seen: &mut Seen,
    ) {
        let block = &chunk.blocks[id.index as usize];
        let start =
            if from == 0 { chunk.header_offset(id.index) } else { chunk.address(id.index, from).offset() };
        let len = chunk.end_of(id.index).min(self.medium.len()).saturating_sub(start);
        if let Err(error) = self.medium.check_readable(start.min(self.medium.len()), len) {
            return seen.note_unreadable(error);
        }
        self.charge_read(start, len);
        let seed = self.content_seed(block.opened_at());
        let (slots, stride) = (block.slots(), block.stride() as usize);
        let expected = expect.of(id, block.opened_at(), slots);
        let may_be_torn = block.recycles() && !expect.closed;
        let mut fill = expected.max(from);
        let mut holes = Vec::new();
        let mut committed = Vec::new();
        seen.summary.highest = seen.summary.highest.max(Timestamp::from_raw(block.opened_at()));
        for slot in from..slots {
            let address = chunk.address(id.index, slot);
            let Some(content) = self.valid_content(address, stride, seed) else {
                if slot < expected && !may_be_torn {
                    seen.damage.push((place(chunk, block, id, slot), ROTTEN.into()));
                }
                holes.push(slot);
                continue;
            };
            fill = fill.max(slot + 1);
            if content.flags().is_void() {
                block.map.set(slot);
                continue;
            }
            seen.summary.highest = seen.summary.highest.max(content.timestamp());
            if is_removed(Control::HeadersAreHints) && self.is_superseded_by_header(chunk, id, slot) {
                continue;
            }
            if expect.is_decided(&content) {
                note_committed(block, &content);
                committed.push(Found { address, content });
            } else {
                seen.uncertain.push(Uncertain { block: id, slot });
            }
        }
        seen.committed(scan, block.table(), &committed);
        block.set_fill(fill);
        let (inside, behind): (Vec<_>, Vec<_>) = holes.into_iter().partition(|&slot| slot < fill);
        let uncertain = |slot| Uncertain { block: id, slot };
        seen.holes.extend(inside.into_iter().map(uncertain));
        // Slots behind the last valid content hold nothing of this generation, or what was
        // cut off.
        let may_be_cut_off = !expect.closed && !is_removed(Control::Wiping);
        let behind = behind
            .into_iter()
            .filter(|&slot| may_be_cut_off && self.has_header(chunk.address(id.index, slot)));
        seen.behind.extend(behind.map(uncertain));
    }

    /// What the block header on the medium says. Recovery must not rely on it
    /// (T4).
    fn is_superseded_by_header(&self, chunk: &Chunk, id: BlockId, slot: u32) -> bool {
        let byte = self.bytes(chunk.header_offset(id.index) + u64::from(slot / 8), 1)[0];
        byte >> (slot % 8) & 1 == 1
    }

    /// The content in a slot. What lies beyond the end of the medium reads as
    /// zeros.
    pub(crate) fn valid_content(&self, address: Address, stride: usize, seed: u64) -> Option<Content<'_>> {
        if address.offset() + stride as u64 > self.medium.len() {
            return None;
        }
        let slot = self.bytes(address.offset(), stride);
        Content::valid_in(slot, seed, address)
    }

    /// Sorts the blocks into free, partly filled and sealed.
    fn take_stock(&self, chunks: u32, free_chunks: Vec<u32>) {
        let mut resumable = self.resumable.lock();
        let mut allocator = self.allocator.lock();
        // It is not known whether there is space behind them. Those beyond the last
        // chunk in use may have been discarded as well, and not yet cut off.
        allocator.discarded = free_chunks.into_iter().collect();
        allocator.next_chunk = chunks;
        for number in 0..chunks {
            let Some(chunk) = self.chunk(number) else { continue };
            let (class, bytes) = (chunk.geometry.class(), u64::from(chunk.geometry.block_bytes));
            allocator.count_blocks(&chunk.geometry);
            for (index, block) in (0..).zip(&chunk.blocks) {
                let id = chunk.id(index);
                if block.state() == BlockState::Free {
                    allocator.give(class, id);
                    continue;
                }
                allocator.end = allocator.end.max(chunk.end_of(index));
                if !block.state().is_used() {
                    continue;
                }
                allocator.add_to(class_key(block.table(), block.stride()), bytes);
                if block.fill() == block.slots() {
                    block.become_(BlockState::Sealed);
                } else {
                    self.listed.fetch_add(1, Ordering::Relaxed);
                    resumable.entry(class_key(block.table(), block.stride())).or_default().push(id);
                }
            }
            self.note_empty(&mut allocator, chunk, Timestamp::ZERO);
        }
    }

    /// Frees the blocks without any committed content: they were opened by
    /// transactions that did not commit. After a clean stop there are none, and
    /// nothing may change before the next state record.
    fn release_empty(&self, chunks: u32) -> Result<(), StoreError> {
        let mut empty = Vec::new();
        for chunk in (0..chunks).filter_map(|number| self.chunk(number)) {
            for (index, block) in (0..).zip(&chunk.blocks) {
                if block.state().is_used() && block.last_append() == 0 {
                    self.zero_descriptor(chunk, index)?;
                    empty.push(block);
                }
            }
        }
        if empty.is_empty() {
            return Ok(());
        }
        // Nothing may be written there before the medium has forgotten it
        // (I-12).
        self.medium.fence()?;
        self.medium.sync_all()?;
        for block in empty {
            block.become_(BlockState::Released);
            block.end_generation();
            self.free_in_dram(block);
        }
        Ok(())
    }

    /// Carves the first chunk of a new database, and reserves what the next
    /// state records need. The next record makes this durable.
    fn make_ready(&self) -> Result<(), StoreError> {
        let mut allocator = self.allocator.lock();
        // A length that nothing durable needs may be lost with the power.
        self.medium.grow(allocator.end)?;
        // What finds no space now is a failure of the medium when it is written to, as it was.
        let discarded = allocator.discarded.iter().filter_map(|number| self.on_medium(*number));
        let discarded: Vec<_> = discarded.map(|(offset, len)| offset..offset + len).collect();
        let _ = self.medium.fill_holes(&discarded);
        if self.chunk(0).is_none() {
            // A process that was killed may have left the superblock in the page cache only. Without it, what follows
            // would be a part of nothing.
            self.medium.sync_all()?;
            let chunk = Chunk::new(0, Geometry::new(0, Class::SMALLEST), 0);
            self.medium.grow(chunk.end_of(0))?;
            self.write_chunk_page(&chunk)?;
            allocator.count_blocks(&chunk.geometry);
            (0..chunk.geometry.blocks).for_each(|index| allocator.give(Class::SMALLEST, chunk.id(index)));
            allocator.next_chunk = allocator.next_chunk.max(1);
            allocator.discarded.remove(&0);
            self.add_chunk(chunk);
        }
        self.reserve_records(&mut allocator)?;
        // So may it have left the zeros in place of the descriptors there: without them, the blocks would be missing.
        Ok(self.shorten_after(&mut allocator, false, || self.medium.sync_all())?)
    }
}

impl Seen {
    pub fn committed(&mut self, scan: &Scan<'_>, table: TableId, found: &[Found<'_>]) {
        self.summary.contents += found.len() as u64;
        self.summary.content_bytes +=
            found.iter().map(|f| (f.content.row().len() + HEADER_BYTES) as u64).sum::<u64>();
        (scan.found)(table, found);
    }

    fn torn_entries(&mut self, bytes: &[u8], offset: u64) {
        let entries =
            bytes.chunks(ENTRY_BYTES).enumerate().filter(|(_, entry)| entry.iter().any(|&b| b != 0));
        self.torn.extend(entries.map(|(n, _)| offset + (n * ENTRY_BYTES) as u64));
    }

    pub fn note_damage(&mut self, place: String, what: &str) {
        self.damage.push((place, what.into()));
    }

    pub fn note_unreadable(&mut self, error: MediumError) {
        self.unreadable.get_or_insert(error);
    }

    /// What could not be read, or else what was found damaged.
    pub fn take_error(&mut self) -> Option<StoreError> {
        self.unreadable.take().map(StoreError::from).or_else(|| self.first_damage())
    }

    /// The error of what was found damaged.
    pub fn first_damage(&self) -> Option<StoreError> {
        let (place, what) = self.damage.first()?;
        let more = self.damage.len() - 1;
        let more = if more == 0 { String::new() } else { format!(" (and {more} more places)") };
        Some(StoreError::Damaged { place: place.clone(), detail: format!("{what}{more}") })
    }

    pub fn merge(&mut self, mut other: Self) {
        self.summary.contents += other.summary.contents;
        self.summary.content_bytes += other.summary.content_bytes;
        self.summary.highest = self.summary.highest.max(other.summary.highest);
        self.uncertain.append(&mut other.uncertain);
        self.holes.append(&mut other.holes);
        self.behind.append(&mut other.behind);
        self.damage.append(&mut other.damage);
        self.unreadable = self.unreadable.take().or(other.unreadable);
        self.free_chunks.append(&mut other.free_chunks);
        self.record_blocks.append(&mut other.record_blocks);
        self.torn.append(&mut other.torn);
        self.lost.append(&mut other.lost);
        self.known += other.known;
        self.known_bytes += other.known_bytes;
        self.strange += other.strange;
        self.left.append(&mut other.left);
        self.left_bytes += other.left_bytes;
    }
}

pub(crate) fn note_committed(block: &Block, content: &Content<'_>) {
    let begin = content.timestamp().get();
    block.note_begins(begin, begin, begin);
}

/// Where the header page of a chunk is.
pub(crate) fn start_of(number: u32) -> u64 {
    u64::from(number) * CHUNK_BYTES + u64::from(Geometry::start_of(number))
}

pub(crate) fn place(chunk: &Chunk, block: &Block, id: BlockId, slot: u32) -> String {
    let offset = chunk.address(id.index, slot).offset();
    format!("offset {offset}, block {}.{}, slot {slot}, table {}", id.chunk, id.index, block.table().0)
}
