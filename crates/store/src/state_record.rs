//! The state record: what is known to be durable (docs/format.md).
//!
//! Two places in the head of the medium are written in turn, so one of them is
//! always whole. Each place holds its record twice, so a record that was
//! written whole survives a flipped bit.
//!
//! Entries that do not fit in a place continue in blocks that are reserved for that place, again
//! twice. Such a block is reserved *before* the partly filled block that needs it is opened, so
//! every record has room (I-19).
//!
//! A record makes two statements (I-9). Every transaction at or below
//! `watermark` has been decided and is durable, except the listed ones. Every
//! block opened by `taken_at` is full, except the listed ones, which are filled
//! as listed. A record is a bounded control record, a few bytes per open block,
//! and not a checkpoint of data.

use pantile_base::TableId;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{STATE_COPY_BYTES, STATE_RECORDS, TRANSACTION_SLOTS};
use pantile_media::{Medium, MediumError};

use crate::block::BlockId;
use crate::format::{RECORD_TABLE, checksum, u32_at, u64_at};
use crate::geometry::{Class, Geometry};
use crate::image::ImageName;
use crate::own::Own;
use crate::own::mapped;

const HEAD_BYTES: usize = 80;
const ENTRY_BYTES: usize = 16;
const PART_BYTES: usize = 16;
/// Bits of the word that holds flags. The rest of it names an index image.
const FLAG_BITS: u32 = u64::BITS - ImageName::BITS;
const SUM_BYTES: usize = 8;

/// Most blocks that a record continues in.
pub(crate) const MOST_PARTS: usize = 256;
/// Entries that a record has room for in its place, whatever else it says.
pub(crate) const IN_PLACE: usize =
    (STATE_COPY_BYTES as usize - HEAD_BYTES - SUM_BYTES - TRANSACTION_SLOTS * 8 - MOST_PARTS * PART_BYTES)
        / ENTRY_BYTES;

/// Entries that fit one copy in a block.
fn entries_per_block() -> usize {
    copy_in_block() as usize / ENTRY_BYTES
}

/// Bytes from one copy to the next in a block.
fn copy_in_block() -> u64 {
    (u64::from(Class::OF_RECORDS.block_bytes()) / 2) & !63
}

/// Number of entries that a record with this many blocks of its own has room for.
pub(crate) fn capacity(blocks: usize) -> u64 {
    (IN_PLACE + blocks * entries_per_block()) as u64
}

/// A block that was not full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PartlyFilled {
    pub chunk: u32,
    pub index: u32,
    pub fill: u32,
    /// Distinguishes the generation that is meant from later ones.
    pub opened_at: u64,
}

impl PartlyFilled {
    pub fn id(&self) -> BlockId {
        BlockId { chunk: self.chunk, index: self.index }
    }
}

/// The record.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct StateRecord {
    /// Rises with each record; its parity selects the place.
    pub sequence: u64,
    pub watermark: u64,
    pub taken_at: u64,
    /// Identifies the boot of the machine during which the record was written.
    pub boot: u64,
    /// Whether the database was closed: nothing was written after this record.
    pub closed: bool,
    /// Whether commits were acknowledged before they were durable.
    pub relaxed: bool,
    /// Whether the medium was emulated: fences lasted only as long as the
    /// machine ran.
    pub emulated: bool,
    /// Number of carved chunks. There are never fewer.
    pub carved: u64,
    /// Number of blocks in use if the database was closed, else 0.
    pub used: u64,
    /// The index image of this state, if the database was closed and has one.
    pub image: Option<ImageName>,
    pub partly_filled: Vec<PartlyFilled>,
    /// Transactions at or below `watermark` that had not been decided.
    pub undecided: Vec<u64>,
}

/// Where a part of the entries is, and what it must be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    block: BlockId,
    sum: u32,
    entries: u32,
}

/// A record as it was read, and the blocks that it continues in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StateCopy {
    pub record: StateRecord,
    pub blocks: Vec<BlockId>,
}

impl PartlyFilled {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.chunk.to_le_bytes());
        out.extend_from_slice(&(self.index | (self.fill << 16)).to_le_bytes());
        out.extend_from_slice(&self.opened_at.to_le_bytes());
    }

    fn decode(entry: &[u8]) -> Self {
        let word = u32_at(entry, 4);
        Self { chunk: u32_at(entry, 0), index: word & 0xffff, fill: word >> 16, opened_at: u64_at(entry, 8) }
    }
}

impl StateRecord {
    /// The number of its place.
    pub fn place(&self) -> usize {
        (self.sequence % 2) as usize
    }

    /// Writes the record to its place, and what has no room there to `blocks`.
    /// It is durable after the next sync, and torn before: the record at the
    /// other place then counts.
    ///
    /// # Errors
    /// [`MediumError::Failed`].
    pub fn write(&self, medium: &Own, seed: u64, blocks: &[BlockId]) -> Result<(), MediumError> {
        let (in_place, rest) = self.partly_filled.split_at(self.partly_filled.len().min(IN_PLACE));
        let mut parts = Vec::new();
        for (entries, &block) in rest.chunks(entries_per_block()).zip(blocks) {
            let mut bytes = Vec::with_capacity(entries.len() * ENTRY_BYTES);
            entries.iter().for_each(|entry| entry.encode(&mut bytes));
            parts.push(Part { block, sum: self.part_sum(seed, &bytes), entries: entries.len() as u32 });
            for copy in offsets_in(block) {
                medium.write_flushed(copy, &bytes)?;
            }
        }
        let written = in_place.len() + parts.iter().map(|part| part.entries as usize).sum::<usize>();
        if written < self.partly_filled.len() && is_removed(Control::RoomForRecords) {
            return Ok(());
        }
        assert_eq!(written, self.partly_filled.len(), "every record has room (I-19)");
        let bytes = self.encode(seed, in_place, &parts);
        let place = STATE_RECORDS[self.place()];
        for at in [place, place + STATE_COPY_BYTES] {
            medium.write_flushed(at, &bytes)?;
        }
        medium.fence()
    }

    fn part_sum(&self, seed: u64, bytes: &[u8]) -> u32 {
        checksum(seed ^ self.sequence.rotate_left(32), bytes)
    }

    fn encode(&self, seed: u64, in_place: &[PartlyFilled], parts: &[Part]) -> Vec<u8> {
        let mut out = Vec::with_capacity(STATE_COPY_BYTES as usize);
        let flags = u64::from(self.closed) | (u64::from(self.relaxed) << 1) | (u64::from(self.emulated) << 2);
        let flags = flags | self.image.map_or(0, |image| image.get() << FLAG_BITS);
        let words = [
            self.sequence,
            self.watermark,
            self.taken_at,
            self.boot,
            flags,
            in_place.len() as u64,
            self.carved,
            self.undecided.len() as u64,
            self.used,
            parts.len() as u64,
        ];
        words.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        in_place.iter().for_each(|entry| entry.encode(&mut out));
        self.undecided.iter().for_each(|timestamp| out.extend_from_slice(&timestamp.to_le_bytes()));
        for part in parts {
            for word in [part.block.chunk, part.block.index, part.sum, part.entries] {
                out.extend_from_slice(&word.to_le_bytes());
            }
        }
        let sum = checksum(seed, &out);
        out.extend_from_slice(&u64::from(sum).to_le_bytes());
        assert!(out.len() as u64 <= STATE_COPY_BYTES, "every record has room (I-19)");
        out
    }

    /// The four copies, those of the first place first.
    pub fn copies(medium: &dyn Medium, seed: u64) -> [Option<StateCopy>; 4] {
        [0, 1, 2, 3].map(|n| Self::read(medium, Self::copy_at(n), seed))
    }

    /// The offset of copy `n` of the four.
    pub fn copy_at(n: usize) -> u64 {
        STATE_RECORDS[n / 2] + (n % 2) as u64 * STATE_COPY_BYTES
    }

    /// The record at an offset, or `None` if it is not whole.
    pub fn read(medium: &dyn Medium, offset: u64, seed: u64) -> Option<StateCopy> {
        let (mut record, parts) = Self::decode(mapped(medium, offset, STATE_COPY_BYTES as usize), seed)?;
        for part in &parts {
            let len = part.entries as usize * ENTRY_BYTES;
            let is_whole = |offset: &u64| {
                let end = offset.checked_add(len as u64);
                end.is_some_and(|end| end <= medium.len())
                    && record.part_sum(seed, mapped(medium, *offset, len)) == part.sum
            };
            let copy = offsets_in(part.block).into_iter().find(is_whole)?;
            let entries = mapped(medium, copy, len).chunks_exact(ENTRY_BYTES).map(PartlyFilled::decode);
            record.partly_filled.extend(entries);
        }
        Some(StateCopy { record, blocks: parts.iter().map(|part| part.block).collect() })
    }

    /// What is in the place itself.
    fn decode(place: &[u8], seed: u64) -> Option<(Self, Vec<Part>)> {
        let counts = [40, 56, 72].map(|at| usize::try_from(u64_at(place, at)).ok());
        let [entries, undecided, parts] = [counts[0]?, counts[1]?, counts[2]?];
        let filled_end = entries.checked_mul(ENTRY_BYTES)?.checked_add(HEAD_BYTES)?;
        let undecided_end = undecided.checked_mul(8)?.checked_add(filled_end)?;
        let len = parts.checked_mul(PART_BYTES)?.checked_add(undecided_end)?;
        if len.checked_add(SUM_BYTES)? > place.len() {
            return None;
        }
        let fits = checksum(seed, &place[..len]) == u32_at(place, len);
        if !fits && !is_removed(Control::StateChecksum) {
            return None;
        }
        let flags = u64_at(place, 32);
        let filled = place[HEAD_BYTES..filled_end].chunks_exact(ENTRY_BYTES).map(PartlyFilled::decode);
        let part = |bytes: &[u8]| Part {
            block: BlockId { chunk: u32_at(bytes, 0), index: u32_at(bytes, 4) },
            sum: u32_at(bytes, 8),
            entries: u32_at(bytes, 12),
        };
        let record = Self {
            sequence: u64_at(place, 0),
            watermark: u64_at(place, 8),
            taken_at: u64_at(place, 16),
            boot: u64_at(place, 24),
            closed: flags & 1 != 0,
            relaxed: flags & 2 != 0,
            emulated: flags & 4 != 0,
            carved: u64_at(place, 48),
            used: u64_at(place, 64),
            image: ImageName::new(flags >> FLAG_BITS),
            partly_filled: filled.collect(),
            undecided: place[filled_end..undecided_end].chunks_exact(8).map(|word| u64_at(word, 0)).collect(),
        };
        Some((record, place[undecided_end..len].chunks_exact(PART_BYTES).map(part).collect()))
    }
}

/// Where the two copies in a block are. A record that is not whole may name any
/// block.
fn offsets_in(block: BlockId) -> [u64; 2] {
    let geometry = Geometry::new(block.chunk, Class::OF_RECORDS);
    let chunk = u64::from(block.chunk) * pantile_base::limits::CHUNK_BYTES;
    let start =
        chunk + u64::from(geometry.first()) + u64::from(block.index) * u64::from(geometry.block_bytes);
    [start, start + copy_in_block()]
}

/// The table in the descriptors of blocks that state records continue in.
pub(crate) fn is_of_records(table: TableId) -> bool {
    table.0 == RECORD_TABLE
}

#[cfg(test)]
#[path = "state_record_test.rs"]
mod tests;
