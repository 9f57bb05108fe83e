//! The index image: a file beside the medium with what recovery would find
//! (docs/design.md, "Index image").
//!
//! It is a cache. The last state record names it by the checksum of its
//! directory, which holds the checksums of all pages. So what is read from an
//! image is what was written for that record, or it is not taken at all.

pub(crate) mod blocks;
pub(crate) mod read;
pub(crate) mod write;

use twox_hash::XxHash3_64;

/// Most words of 8 bytes in a page. A page is read and verified as a whole.
pub const PAGE_WORDS: usize = 8192;

const MAGIC: u64 = u64::from_le_bytes(*b"PANIMAGE");
/// Rises when the bytes change, and when the encoding of keys does.
const VERSION: u64 = 4;
/// Words of the directory before its list of sections.
const HEAD_WORDS: usize = 5;
/// Words behind the directory, at the end of the file.
const TRAILER_WORDS: usize = 4;

/// The name of an image in a state record: the checksum of its directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImageName(u64);

impl ImageName {
    pub(crate) const BITS: u32 = 61;

    /// `None` if no image has this name.
    pub(crate) fn new(name: u64) -> Option<Self> {
        (name != 0).then_some(Self(name))
    }

    /// The image with this directory.
    fn of(identity: u64, directory: &[u8]) -> Self {
        Self((sum(seed_of(identity), directory) >> (u64::BITS - Self::BITS)).max(1))
    }

    pub(crate) fn get(self) -> u64 {
        self.0
    }
}

/// What a section of an image is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Section {
    /// The kind, which the caller chooses. 0 is the store's own.
    pub kind: u32,
    /// The table that it is of.
    pub table: u32,
    /// The number of the table's index that it is of.
    pub index: u32,
    /// One of several sections of the same.
    pub part: u32,
}

impl Section {
    /// The blocks in use.
    const BLOCKS: Self = Self { kind: 0, table: 0, index: 0, part: 0 };
}

fn sum(seed: u64, bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, bytes)
}

/// The seed of everything in an image.
fn seed_of(identity: u64) -> u64 {
    identity ^ MAGIC
}

/// The seed of what is at an offset.
fn seed_at(seed: u64, offset: u64) -> u64 {
    seed ^ offset.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn to_bytes(words: &[u64], bytes: &mut Vec<u8>) {
    bytes.clear();
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn to_words(bytes: &[u8], words: &mut Vec<u64>) {
    words.clear();
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    words.extend(bytes.chunks_exact(8).map(word));
}
