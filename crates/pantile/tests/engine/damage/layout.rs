//! Where things lie in a data file, read from its bytes according to
//! `docs/format.md` alone, and checksums that are made to fit again.

use std::ops::Range;

use twox_hash::XxHash3_64;

pub const CHUNK: usize = 2 << 20;
/// Where the first chunk begins; the length of a file is a multiple of it.
pub const HEAD: usize = 64 << 10;
const RECORDS: [usize; 4] = [4 << 10, 18 << 10, 32 << 10, 46 << 10];
const RECORD_BYTES: usize = 14 << 10;
const PAGE: usize = 12_288;
const LINES: usize = 8192;

/// What some bytes are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum What {
    Superblock,
    Record,
    ChunkHeader,
    Descriptor,
    /// The copy of the part before it.
    Copy,
    FrozenFlag,
    Content,
}

/// Bytes that have a meaning.
#[derive(Clone, Debug)]
pub struct Part {
    pub what: What,
    pub bytes: Range<usize>,
    /// The seed of its checksum.
    seed: u64,
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b))
}

fn sum(seed: u64, bytes: &[u8]) -> u32 {
    let hash = XxHash3_64::oneshot_with_seed(seed, bytes);
    (hash ^ (hash >> 32)) as u32
}

fn entry_fits(entry: &[u8], seed: u64) -> bool {
    let is_whole = entry[..32].chunks(8).all(|word| number(word) != 0);
    is_whole && number(&entry[24..32]) == u64::from(sum(seed, &entry[..24])) | 3 << 62
}

fn content_sum(seed: u64, offset: usize, content: &[u8]) -> u32 {
    let address = (offset as u64 / 8).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let head = seed ^ address ^ number(&content[..8]).rotate_left(32);
    let head = (head ^ number(&content[8..16])).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    sum((head ^ (head >> 32)).wrapping_add(number(&content[16..20])), &content[24..])
}

/// The parts of a data file. A part with a wrong checksum is skipped, and so is
/// everything that is found through it.
pub fn parts(data: &[u8]) -> Vec<Part> {
    let mut parts = Vec::new();
    if data.len() < HEAD {
        return parts;
    }
    let identity = number(&data[16..24]);
    parts.push(Part { what: What::Superblock, bytes: 0..64, seed: u64::from_le_bytes(*b"PANTILE\x01") });
    for at in RECORDS {
        let counted = |from: usize, bytes: u64| number(&data[at + from..at + from + 8]).saturating_mul(bytes);
        let len = counted(40, 16).saturating_add(counted(56, 8)).saturating_add(counted(72, 16));
        let len = len.saturating_add(80);
        let is_there = number(&data[at..at + 8]) != 0 && len <= RECORD_BYTES as u64 - 8;
        if is_there {
            // The high half of the checksum has no meaning.
            parts.push(Part { what: What::Record, bytes: at..at + len as usize + 4, seed: identity });
        }
    }
    for start in (0..data.len()).step_by(CHUNK) {
        let at = start.max(HEAD);
        if at + PAGE <= data.len() {
            chunk(data, at, identity, &mut parts);
        }
    }
    parts
}

fn chunk(data: &[u8], at: usize, identity: u64, parts: &mut Vec<Part>) {
    let seed = identity ^ at as u64;
    if !entry_fits(&data[at..], seed) {
        return;
    }
    // One entry, and the zeros that must follow it.
    parts.push(Part { what: What::ChunkHeader, bytes: at..at + 64, seed });
    let copy = |n: usize| at + LINES + 32 * n..at + LINES + 32 * (n + 1);
    if entry_fits(&data[copy(0)], seed) {
        parts.push(Part { what: What::Copy, bytes: copy(0), seed });
    }
    let field = |n: usize| number(&data[at + 8 + 4 * n..][..4]) as usize;
    let (block_bytes, blocks) = (field(0), field(1));
    for block in 0..blocks {
        let line = at + 64 * (block + 1);
        let seed = identity ^ line as u64;
        if !entry_fits(&data[line..], seed) {
            continue;
        }
        parts.push(Part { what: What::Descriptor, bytes: line..line + 32, seed });
        if entry_fits(&data[copy(block + 1)], seed) {
            parts.push(Part { what: What::Copy, bytes: copy(block + 1), seed });
        }
        let (mark, mark_seed) = (line + 32, !(identity ^ (line as u64 + 32)));
        if entry_fits(&data[mark..], mark_seed) {
            parts.push(Part { what: What::FrozenFlag, bytes: mark..mark + 32, seed: mark_seed });
        }
        let seed = identity.rotate_left(17) ^ !number(&data[line..line + 8]);
        let how = number(&data[line + 16..line + 24]) as usize;
        let (slots, stride) = (how >> 1 & 0x7fff, (how >> 16 & 0xffff) * 8);
        let first = at + PAGE + block * block_bytes + 256;
        for slot in (0..slots).map(|n| first + n * stride).take_while(|slot| slot + stride <= data.len()) {
            let end = slot + 24 + number(&data[slot + 16..slot + 19]) as usize;
            let fits = end <= slot + stride
                && content_sum(seed, slot, &data[slot..end]) == number(&data[slot + 20..slot + 24]) as u32;
            if fits && (number(&data[slot..slot + 8]) != 0 || data[slot + 19] & 2 != 0) {
                parts.push(Part { what: What::Content, bytes: slot..end, seed });
            }
        }
    }
}

impl Part {
    /// Makes the checksum fit the changed bytes. Of tuple ids only the low 17
    /// bits are kept: ids may go up to 2^40, and recovery takes memory for as
    /// many tuples as there seem to be.
    pub fn seal(&self, data: &mut [u8]) {
        let bytes = &mut data[self.bytes.clone()];
        let len = bytes.len();
        match self.what {
            What::Superblock => {
                let sum = sum(self.seed, &bytes[..60]);
                bytes[60..].copy_from_slice(&sum.to_le_bytes());
            }
            What::Record => {
                let sum = sum(self.seed, &bytes[..len - 4]);
                bytes[len - 4..].copy_from_slice(&sum.to_le_bytes());
            }
            What::ChunkHeader | What::Descriptor | What::Copy | What::FrozenFlag => {
                let sum = u64::from(sum(self.seed, &bytes[..24])) | 3 << 62;
                bytes[24..32].copy_from_slice(&sum.to_le_bytes());
            }
            What::Content => {
                bytes[10] &= 1;
                bytes[11..13].fill(0);
                // The part was found by its length.
                bytes[16..19].copy_from_slice(&((len - 24) as u32).to_le_bytes()[..3]);
                let sum = content_sum(self.seed, self.bytes.start, bytes);
                bytes[20..24].copy_from_slice(&sum.to_le_bytes());
            }
        }
    }
}
