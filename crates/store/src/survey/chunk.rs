//! Chunks and blocks as they lie on the medium.

use pantile_base::{Address, TableId, Timestamp};
use pantile_media::Medium;

use crate::block::{BlockId, Chunk};
use crate::content::{Content, HEADER_BYTES};
use crate::expectation::Expectation;
use crate::format::{
    BLOCK_HEADER_BYTES, CHUNK_HEADER_BYTES, ChunkHeader, Descriptor, ENTRY_BYTES, FrozenFlag, LINES_BYTES,
    has_lost_a_word,
};
use crate::geometry::Geometry;
use crate::lines::{Decode, Lines, copy_at, line_at};
use crate::own::mapped;
use crate::scan::{FOREIGN_MARK, LOST_ENTRY, MISSHAPEN, NONSENSE, ROTTEN, start_of};
use crate::shape::Shape;
use crate::state_record::{StateRecord, is_of_records};
use crate::survey::calls::{SurveyCalls, Surveyed};
use crate::survey::finding::{Finding, MediumLocation};

/// What a chunk is used for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ChunkUse {
    /// It is not divided.
    Free,
    /// It is divided into blocks.
    Carved {
        /// Bytes per block.
        block_bytes: u32,
    },
    /// Its use cannot be determined.
    Damaged(String),
}

/// A chunk.
#[derive(Clone, Debug)]
pub struct SurveyedChunk {
    /// Its number; chunk n lies at n times 2 MiB, the first one behind the head
    /// of the medium.
    pub number: u32,
    /// What it is used for.
    pub found: ChunkUse,
    /// Its blocks, if it is carved.
    pub blocks: Vec<SurveyedBlock>,
}

/// What a block is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockUse {
    /// It belongs to no table.
    Free,
    /// It holds contents of a table.
    Used,
    /// State records continue in it.
    Record,
    /// Its descriptor is damaged.
    Damaged,
}

/// A block.
#[derive(Clone, Debug)]
pub struct SurveyedBlock {
    /// Its number in the chunk.
    pub index: u32,
    /// The offset of its block header.
    pub offset: u64,
    /// What it is used for. Unless the block is used, the fields below are 0.
    pub found: BlockUse,
    /// Bytes from one slot to the next.
    pub stride: u32,
    /// Number of its slots.
    pub slots: u32,
    /// The table.
    pub table: u32,
    /// The start of its generation (`opened_at`).
    pub opened_at: u64,
    /// Whether its slots are written more than once.
    pub recycles: bool,
    /// If a collector is emptying it: when one of its versions was last
    /// superseded.
    pub frozen: Option<Timestamp>,
    /// Number of slots that must hold contents.
    pub expected: u32,
    /// Number of slots up to the last one that is valid or must be filled.
    pub fill: u32,
    /// Number of valid contents, except void ones.
    pub contents: u32,
    /// The bytes of these contents, content headers included.
    pub content_bytes: u64,
    /// Number of void slots.
    pub void: u32,
    /// Number of tombstones.
    pub tombstones: u32,
    /// Number of copies made by a collector.
    pub copies: u32,
    /// Contents above the durable watermark or undecided: they are committed if
    /// all contents of their transaction are there.
    pub undecided: u32,
    /// Number of slots that must hold a content and do not.
    pub damaged: u32,
    /// Number of versions whose superseded bit is set in the block header, if
    /// the header is of this generation.
    pub superseded: u32,
    /// The highest timestamp found.
    pub highest: Timestamp,
}

pub(super) struct Reader<'a> {
    pub medium: &'a dyn Medium,
    pub identity: u64,
    pub expect: &'a Expectation,
    pub state: Option<&'a StateRecord>,
    pub calls: &'a SurveyCalls<'a>,
}

impl Reader<'_> {
    pub fn chunk(&self, number: u32) -> SurveyedChunk {
        let offset = start_of(number);
        let free = SurveyedChunk { number, found: ChunkUse::Free, blocks: Vec::new() };
        if self.medium.len() < offset + CHUNK_HEADER_BYTES as u64 {
            return free;
        }
        let page = mapped(self.medium, offset, CHUNK_HEADER_BYTES);
        let lines = Lines { page, offset, identity: self.identity };
        let place = MediumLocation { chunk: Some(number), ..MediumLocation::at(offset) };
        let broken = |why: &str| {
            (self.calls.finding)(Finding::damage(place, why));
            ChunkUse::Damaged(why.to_owned())
        };
        let mut read = free;
        let header = self.first_entry(&lines, 0, ChunkHeader::decode, place);
        let geometry = match header.map(|header| header.map(|h| Geometry::of(number, h))) {
            Ok(None) => {
                self.torn(&page[..ENTRY_BYTES], place);
                return read;
            }
            Ok(Some(geometry)) if geometry.is_sound() => geometry,
            Ok(Some(_)) => {
                read.found = broken(NONSENSE);
                return read;
            }
            Err(why) => {
                read.found = broken(why);
                return read;
            }
        };
        let Geometry { block_bytes, blocks, .. } = geometry;
        read.found = ChunkUse::Carved { block_bytes };
        let chunk = Chunk::new(number, geometry, 0);
        read.blocks = (0..blocks).map(|index| self.block(&chunk, index, &lines)).collect();
        // The lines that belong to no block.
        let end = blocks as usize + 1;
        for rest in [line_at(end)..LINES_BYTES, copy_at(end)..CHUNK_HEADER_BYTES] {
            if let Some(n) = page[rest.clone()].iter().position(|&b| b != 0) {
                let place = MediumLocation { offset: offset + (rest.start + n) as u64, ..place };
                (self.calls.finding)(Finding::notice(place, "unused bytes are not zero"));
            }
        }
        read
    }

    /// Entries that were cut off. After a power failure they mean nothing, but
    /// a closed database has none.
    fn torn(&self, bytes: &[u8], place: MediumLocation) {
        let is_last = self.state.is_some_and(|state| state.closed);
        let entries = bytes.chunks(ENTRY_BYTES).enumerate();
        for (n, entry) in entries.filter(|(_, entry)| entry.iter().any(|&b| b != 0)) {
            let place = MediumLocation { offset: place.offset + (n * ENTRY_BYTES) as u64, ..place };
            let finding = match is_last && has_lost_a_word(entry) {
                true => Finding::damage(place, LOST_ENTRY),
                false => {
                    Finding::notice(place, "an entry was cut off, or bits are set where nothing was written")
                }
            };
            (self.calls.finding)(finding);
        }
    }

    /// The first entry of a line, or its copy if recovery would take that.
    fn first_entry<T>(
        &self,
        lines: &Lines<'_>,
        n: usize,
        decode: Decode<T>,
        place: MediumLocation,
    ) -> Result<Option<T>, &'static str> {
        let found = lines.read(n, decode)?;
        if found.is_some() || self.state.is_some_and(|state| state.closed) {
            return Ok(found);
        }
        let copy = lines.read_copy(n, decode)?;
        if copy.is_some() {
            let what = "the entry is not written, and its copy is: the database was not closed, or lost it";
            (self.calls.finding)(Finding::notice(place, what));
        }
        Ok(copy)
    }

    fn block(&self, chunk: &Chunk, index: u32, lines: &Lines<'_>) -> SurveyedBlock {
        let at = chunk.descriptor_offset(index);
        let n = index as usize + 1;
        let line = lines.line(n);
        let place =
            MediumLocation { chunk: Some(chunk.number), block: Some(index), ..MediumLocation::at(at) };
        let mut block = SurveyedBlock {
            index,
            offset: chunk.header_offset(index),
            found: BlockUse::Free,
            stride: 0,
            slots: 0,
            table: 0,
            opened_at: 0,
            recycles: false,
            frozen: None,
            expected: 0,
            fill: 0,
            contents: 0,
            content_bytes: 0,
            void: 0,
            tombstones: 0,
            copies: 0,
            undecided: 0,
            damaged: 0,
            superseded: 0,
            highest: Timestamp::ZERO,
        };
        match self.first_entry(lines, n, Descriptor::decode, place) {
            Ok(Some(descriptor)) if is_of_records(TableId(descriptor.table)) => {
                block.found = BlockUse::Record;
                block.opened_at = descriptor.opened_at;
            }
            Ok(Some(descriptor)) if !descriptor.shape.fits(chunk.geometry.block_bytes) => {
                block.found = BlockUse::Damaged;
                (self.calls.finding)(Finding::damage(place, MISSHAPEN));
            }
            Ok(Some(descriptor)) => {
                block.found = BlockUse::Used;
                Shape { stride: block.stride, slots: block.slots } = descriptor.shape;
                block.table = descriptor.table;
                block.opened_at = descriptor.opened_at;
                block.recycles = descriptor.recycles;
                block.highest = Timestamp::from_raw(descriptor.opened_at);
                let mark =
                    MediumLocation { offset: at + ENTRY_BYTES as u64, table: Some(block.table), ..place };
                self.frozen_flag(&mut block, &line[ENTRY_BYTES..], mark);
                self.slots(chunk, &mut block);
            }
            Ok(None) => {
                self.torn(line, place);
                self.torn(lines.copy(n), MediumLocation { offset: chunk.copy_offset(index), ..place });
            }
            Err(why) => {
                block.found = BlockUse::Damaged;
                (self.calls.finding)(Finding::damage(place, why));
            }
        }
        block
    }

    fn frozen_flag(&self, block: &mut SurveyedBlock, entry: &[u8], place: MediumLocation) {
        match FrozenFlag::decode(entry, self.identity ^ place.offset) {
            Ok(Some(flag)) if flag.opened_at == block.opened_at => {
                block.frozen = Some(Timestamp::from_raw(flag.max_ts));
            }
            Ok(Some(_)) => (self.calls.finding)(Finding::damage(place, FOREIGN_MARK)),
            Ok(None) => self.torn(entry, place),
            Err(why) => (self.calls.finding)(Finding::damage(place, why)),
        }
    }

    fn slots(&self, chunk: &Chunk, block: &mut SurveyedBlock) {
        let id = BlockId { chunk: chunk.number, index: block.index };
        let seed = self.identity.rotate_left(17) ^ block.opened_at;
        let whole = MediumLocation {
            chunk: Some(id.chunk),
            block: Some(id.index),
            table: Some(block.table),
            ..MediumLocation::at(block.offset)
        };
        let place = |slot: u32, address: Address| MediumLocation {
            slot: Some(slot),
            offset: address.offset(),
            ..whole
        };
        let (slots, stride) = (block.slots, block.stride as usize);
        let at = |slot: u32| {
            let within = BLOCK_HEADER_BYTES as u64 + u64::from(slot) * stride as u64;
            Address::from_offset(chunk.header_offset(id.index) + within)
        };
        block.expected = self.expect.of(id, block.opened_at, slots);
        block.fill = block.expected;
        let is_last = self.state.is_some_and(|state| state.closed);
        let mut contents = Vec::new();
        for slot in 0..slots {
            let address = at(slot);
            let is_there = address.offset() + stride as u64 <= self.medium.len();
            // A length that nothing durable needs may be lost with the power.
            let bytes =
                if is_there { mapped(self.medium, address.offset(), stride) } else { &[0; HEADER_BYTES][..] };
            let Some(content) = Content::valid_in(bytes, seed, address) else {
                // What was being written when the machine stopped is cut off.
                if slot < block.expected && (!block.recycles || self.expect.closed) {
                    block.damaged += 1;
                    (self.calls.finding)(Finding::damage(place(slot, address), rotten(bytes)));
                }
                continue;
            };
            if slot >= block.expected && is_last {
                let what = "a content that was not there when the database was closed";
                (self.calls.finding)(Finding::damage(place(slot, address), what));
            }
            block.fill = block.fill.max(slot + 1);
            if content.flags().is_void() {
                block.void += 1;
                continue;
            }
            let is_decided = self.expect.is_decided(&content);
            block.contents += 1;
            block.content_bytes += (content.row().len() + HEADER_BYTES) as u64;
            block.tombstones += u32::from(content.flags().is_tombstone());
            block.copies += u32::from(content.flags().is_relocated());
            block.undecided += u32::from(!is_decided);
            block.highest = block.highest.max(content.timestamp());
            contents.push(Surveyed { address, content, is_decided });
        }
        self.header(block);
        (self.calls.contents)(TableId(block.table), &contents);
    }

    /// The block header may be of an earlier generation. The timestamps of this
    /// generation lie above its beginning.
    fn header(&self, block: &mut SurveyedBlock) {
        if block.offset + BLOCK_HEADER_BYTES as u64 > self.medium.len() {
            return;
        }
        let bytes = mapped(self.medium, block.offset, 256);
        let min_ts = crate::format::u64_at(bytes, 248);
        if block.frozen.is_some() || min_ts >= block.opened_at {
            block.superseded = bytes[..240].iter().map(|b| b.count_ones()).sum();
        }
    }
}

/// What the content header says; it cannot be relied on.
fn rotten(slot: &[u8]) -> String {
    let content = Content::new(slot);
    if slot[..HEADER_BYTES].iter().all(|&b| b == 0) {
        return format!("{ROTTEN} (its content header reads as zeros)");
    }
    let (tuple, timestamp) = (content.tuple().0, content.timestamp());
    format!("{ROTTEN} (its content header says tuple {tuple}, transaction {timestamp})")
}
