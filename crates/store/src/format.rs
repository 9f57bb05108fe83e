//! The bytes of the superblock, of chunk headers and of block descriptors
//! (docs/format.md). All numbers are little-endian.

use pantile_base::TableId;
use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{
    CHUNK_BYTES, HEAD_BYTES, STATE_COPY_BYTES, STATE_RECORDS, SUPERBLOCK_COPY, TRANSACTION_SLOTS,
};
use twox_hash::XxHash3_64;

use crate::shape::Shape;

/// The format that this build writes and reads.
pub const FORMAT_VERSION: u32 = 3;

/// The most contents that one transaction can write; a field of 24 bits counts
/// them.
pub const MAX_CONTENTS_PER_TRANSACTION: u64 = (1 << 24) - 1;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"PANTILE\x01");
const CHUNK_MAGIC: u64 = u64::from_le_bytes(*b"PANCHUNK");

/// The header page of a chunk: lines, then copies of their first entries.
pub(crate) const CHUNK_HEADER_BYTES: usize = LINES_BYTES + COPIES_BYTES;
pub(crate) const LINES_BYTES: usize = 8192;
const COPIES_BYTES: usize = LINES_BYTES / 2;
pub(crate) const BLOCK_HEADER_BYTES: usize = 256;
/// A block's line in its chunk's header page: two entries.
pub(crate) const DESCRIPTOR_BYTES: usize = 64;
pub(crate) const ENTRY_BYTES: usize = DESCRIPTOR_BYTES / 2;
pub(crate) const MAX_BLOCKS_PER_CHUNK: usize = LINES_BYTES / DESCRIPTOR_BYTES - 1;

/// A place of a state record, with both copies. What does not fit there is in blocks of its own
/// (`state_record.rs`).
pub(crate) const STATE_RECORD_BYTES: u64 = 2 * STATE_COPY_BYTES;
/// The table id in the descriptors of blocks that state records continue in.
pub(crate) const RECORD_TABLE: u32 = u32::MAX;

/// The table of contents that list the commits on which their own transactions
/// depend (I-25). Their rows are timestamps, 8 bytes each.
pub const DEPENDENCIES: TableId = TableId(1);

const SUPERBLOCK_BYTES: usize = 64;

const _: () = assert!(SUPERBLOCK_BYTES as u64 <= STATE_RECORDS[0]);
const _: () = assert!(STATE_RECORDS[0] + STATE_RECORD_BYTES <= STATE_RECORDS[1]);
const _: () = assert!(STATE_RECORDS[1] + STATE_RECORD_BYTES <= SUPERBLOCK_COPY);
const _: () = assert!(SUPERBLOCK_COPY + SUPERBLOCK_BYTES as u64 <= HEAD_BYTES);
/// The timestamps of undecided transactions must leave room for other things.
const _: () = assert!(TRANSACTION_SLOTS * 8 <= STATE_COPY_BYTES as usize * 2 / 3);
const _: () = assert!(BLOCK_HEADER_BYTES == pantile_base::limits::BLOCK_SLOTS / 8 + 16);

/// A seeded hash of `bytes`, as stored in the formats.
#[inline]
pub(crate) fn checksum(seed: u64, bytes: &[u8]) -> u32 {
    let hash = XxHash3_64::oneshot_with_seed(seed, bytes);
    (hash ^ (hash >> 32)) as u32
}

#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"))
}

#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("eight bytes"))
}

/// The start of the medium, written once when the database is created.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Superblock {
    pub version: u32,
    /// Seeds every checksum, so that bytes of another database are never
    /// accepted.
    pub identity: u64,
    pub lineage: Lineage,
}

/// Where what a database holds comes from: numbers that no other database has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lineage {
    /// The database in which it began. Backups and what is restored from them
    /// have the origin of their source.
    pub origin: u64,
    /// This database. What is restored is another one.
    pub history: u64,
    /// The history that a backup is of, or 0.
    pub source: u64,
}

impl Lineage {
    /// That of a database that begins with nothing.
    pub(crate) fn new(identity: u64) -> Self {
        Self { origin: identity, history: identity, source: 0 }
    }

    /// That of a backup of this database.
    pub(crate) fn of_backup(self, identity: u64) -> Self {
        Self { origin: self.origin, history: identity, source: self.history }
    }
}

impl Superblock {
    pub fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&(CHUNK_BYTES as u32).to_le_bytes());
        bytes[16..24].copy_from_slice(&self.identity.to_le_bytes());
        // 0 stands for the identity. A database that begins with nothing has zeros
        // here, as `is_unwritten` expects.
        let Lineage { origin, history, source } = self.lineage;
        let words = [origin, history].map(|word| if word == self.identity { 0 } else { word });
        for (at, word) in [(24, words[0]), (32, words[1]), (40, source)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let sum = checksum(MAGIC, &bytes[..SUPERBLOCK_BYTES - 4]);
        bytes[SUPERBLOCK_BYTES - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Whether writing the superblock never began or was cut off: a word of it
    /// is missing, and none of the bytes belongs to anything else.
    pub fn is_unwritten(bytes: &[u8]) -> bool {
        let words = [0, 8, 16, SUPERBLOCK_BYTES - 8].map(|at| u64_at(bytes, at));
        let rest = bytes[24..SUPERBLOCK_BYTES - 8].iter().all(|&b| b == 0);
        rest && matches!(words[0], 0 | MAGIC) && words.contains(&0)
    }

    /// Version and identity as they are stored, whatever the other fields hold.
    pub fn fields(bytes: &[u8]) -> (u32, u64) {
        (u32_at(bytes, 8), u64_at(bytes, 16))
    }

    /// Whether the bytes are a changed Pantile superblock: of its three parts
    /// (magic and version, identity and lineage, checksum) only one is wrong.
    pub fn resembles(bytes: &[u8]) -> bool {
        let ours = Self { version: FORMAT_VERSION, ..Self::read(bytes) }.encode();
        bytes[..16] == ours[..16] || bytes[16..SUPERBLOCK_BYTES] == ours[16..]
    }

    /// Reads a superblock. The version is checked before anything else is
    /// believed, so that later formats may differ in everything after it.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        if bytes.len() < SUPERBLOCK_BYTES || u64_at(bytes, 0) != MAGIC {
            return Err(Unreadable::Foreign);
        }
        let version = u32_at(bytes, 8);
        if version != FORMAT_VERSION {
            return Err(Unreadable::Version(version));
        }
        if checksum(MAGIC, &bytes[..SUPERBLOCK_BYTES - 4]) != u32_at(bytes, SUPERBLOCK_BYTES - 4) {
            return Err(Unreadable::Damaged);
        }
        Ok(Self::read(bytes))
    }

    /// The fields as they are stored.
    fn read(bytes: &[u8]) -> Self {
        let identity = u64_at(bytes, 16);
        let other = |at: usize| match u64_at(bytes, at) {
            0 => identity,
            word => word,
        };
        let lineage = Lineage { origin: other(24), history: other(32), source: u64_at(bytes, 40) };
        Self { version: u32_at(bytes, 8), identity, lineage }
    }
}

/// Makes the head of a database, its first 64 KiB, that of another one with the
/// same contents. What is damaged in it stays damaged.
pub fn begin_history(head: &mut [u8], history: u64) {
    for at in [0, SUPERBLOCK_COPY as usize] {
        let Some(bytes) = head.get_mut(at..at + SUPERBLOCK_BYTES) else { continue };
        if let Ok(superblock) = Superblock::decode(bytes) {
            let lineage = Lineage { origin: superblock.lineage.origin, history, source: 0 };
            bytes.copy_from_slice(&Superblock { lineage, ..superblock }.encode());
        }
    }
}

/// Why a superblock cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unreadable {
    Foreign,
    Version(u32),
    Damaged,
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unreadable::Foreign => f.write_str("it does not start with Pantile's magic number"),
            Unreadable::Version(found) => write!(f, "format version {found}"),
            Unreadable::Damaged => f.write_str("its checksum does not fit"),
        }
    }
}

/// The first line of a chunk, which says how the chunk is divided. Written once
/// per carving.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ChunkHeader {
    pub block_bytes: u32,
    pub blocks: u32,
}

impl ChunkHeader {
    pub fn encode(&self, seed: u64) -> [u8; ENTRY_BYTES] {
        let division = u64::from(self.block_bytes) | (u64::from(self.blocks) << 32);
        sealed([CHUNK_MAGIC, division, WRITTEN], seed)
    }

    /// `None` if the chunk has not been carved, an error if it is damaged. Takes
    /// the line, or the copy of its first entry.
    pub fn decode(bytes: &[u8], seed: u64) -> Result<Option<Self>, &'static str> {
        if is_unwritten(bytes) {
            return Ok(None);
        }
        let rest = &bytes[ENTRY_BYTES..];
        if u64_at(bytes, 0) != CHUNK_MAGIC || !is_sealed(bytes, seed) || rest.iter().any(|&b| b != 0) {
            return Err("the chunk header's checksum does not fit");
        }
        Ok(Some(Self { block_bytes: u32_at(bytes, 8), blocks: u32_at(bytes, 12) }))
    }
}

/// What a block is used for: the first half of its line. Written when the block
/// is opened for a table. The whole line is zeroed when the block is released.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Descriptor {
    pub table: u32,
    /// The timestamp at which the block's present generation began. It seeds
    /// the checksums of the block's contents, so bytes of an earlier generation
    /// are never valid (T2).
    pub opened_at: u64,
    /// Whether its slots are written more than once in this generation.
    pub recycles: bool,
    /// How it is divided in this generation.
    pub shape: Shape,
}

/// Bits of a descriptor's last word: whether slots are rewritten, the number of
/// slots, and the stride in units of 8 bytes.
const SLOTS_SHIFT: u32 = 1;
const STRIDE_SHIFT: u32 = 16;
const STRIDE_UNIT: u32 = 8;

impl Descriptor {
    pub fn encode(&self, seed: u64) -> [u8; ENTRY_BYTES] {
        // Inverted: a time has few set bits, and must not become zero by losing
        // one.
        let slots = u64::from(self.shape.slots) << SLOTS_SHIFT;
        let stride = u64::from(self.shape.stride / STRIDE_UNIT) << STRIDE_SHIFT;
        let how = WRITTEN | u64::from(self.recycles) | slots | stride;
        sealed([!self.opened_at, u64::from(self.table) | WRITTEN, how], seed)
    }

    /// `None` if the block is free, an error if the descriptor is damaged.
    pub fn decode(bytes: &[u8], seed: u64) -> Result<Option<Self>, &'static str> {
        if is_unwritten(bytes) {
            return Ok(None);
        }
        if !is_sealed(bytes, seed) {
            return Err("the block descriptor's checksum does not fit");
        }
        let how = u64_at(bytes, 16);
        let slots = (how >> SLOTS_SHIFT) as u32 & ((1 << (STRIDE_SHIFT - SLOTS_SHIFT)) - 1);
        let stride = ((how >> STRIDE_SHIFT) as u32 & 0xffff) * STRIDE_UNIT;
        Ok(Some(Self {
            opened_at: !u64_at(bytes, 0),
            table: u32_at(bytes, 8),
            recycles: how & 1 == 1,
            shape: Shape { stride, slots },
        }))
    }
}

/// The frozen flag of a block: the second half of its line. The durable
/// `local_gc_queue_frozen` is the set of these flags (TB-Collect 4.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FrozenFlag {
    /// When the generation that the flag belongs to began.
    pub opened_at: u64,
    /// When a version of the block was last superseded.
    pub max_ts: u64,
}

impl FrozenFlag {
    pub fn encode(&self, seed: u64) -> [u8; ENTRY_BYTES] {
        sealed([!self.opened_at, !self.max_ts, WRITTEN], !seed)
    }

    /// `None` if the block is not frozen, an error if the flag is damaged.
    pub fn decode(bytes: &[u8], seed: u64) -> Result<Option<Self>, &'static str> {
        if is_unwritten(bytes) {
            return Ok(None);
        }
        if !is_sealed(bytes, !seed) {
            return Err("the checksum of the block's frozen flag does not fit");
        }
        Ok(Some(Self { opened_at: !u64_at(bytes, 0), max_ts: !u64_at(bytes, 8) }))
    }
}

/// Bits that keep a written word from being zero, even if one of its bits
/// flips.
const WRITTEN: u64 = 0b11 << 62;

/// Words of an entry: three fields and the checksum.
const LINE_WORDS: [usize; 4] = [0, 8, 16, 24];

fn sealed(fields: [u64; 3], seed: u64) -> [u8; ENTRY_BYTES] {
    let mut bytes = [0; ENTRY_BYTES];
    for (at, field) in LINE_WORDS.into_iter().zip(fields) {
        bytes[at..at + 8].copy_from_slice(&field.to_le_bytes());
    }
    let sum = u64::from(checksum(seed, &bytes[..24])) | WRITTEN;
    bytes[24..32].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn is_sealed(bytes: &[u8], seed: u64) -> bool {
    let fits = checksum(seed, &bytes[..24]) == u32_at(bytes, 24) || is_removed(Control::LineSeal);
    fits && u64_at(bytes, 24) >> 32 == WRITTEN >> 32
}

/// Whether an entry that contains a zero word was written whole. A bit that
/// flips among zeros makes no word as entries are written.
pub(crate) fn has_lost_a_word(entry: &[u8]) -> bool {
    let words = || LINE_WORDS.into_iter().map(|at| u64_at(entry, at));
    words().any(|word| word == 0) && words().any(|word| word >= WRITTEN || word == CHUNK_MAGIC)
}

/// Entries are written over zeros and zeroed again (recovery zeroes those that
/// were cut off), and words are atomic on every medium. So an entry that a
/// power failure cut off has a word that is zero, and an entry with a flipped
/// bit has none.
fn is_unwritten(bytes: &[u8]) -> bool {
    LINE_WORDS.into_iter().any(|at| u64_at(bytes, at) == 0)
}
