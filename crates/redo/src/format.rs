//! What is on the medium. All numbers are little-endian and of eight bytes.
//!
//! - The **root**, twice, at bytes 0 and 4096; the one with the higher number counts: `MAGIC`, its number, where the checkpoint begins,
//!   its length, the bytes of a row, checksum.
//! - The **checkpoint**: for each shard where its pieces begin and its number of rows, then a checksum over these; then
//!   the pieces. A piece has at most [`PIECE_ROWS`] rows of a shard, each behind its key, and a checksum.
//! - The **log** follows the checkpoint, record by record. A record is a transaction: the number of its entries,
//!   the entries (a key, 1 for a row or 0 for none, the row), and the commit, which is a checksum over all of it.
//!   The number of entries is 0 where the log ends.

use twox_hash::XxHash3_64;

pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"redolog1");

/// Where the roots are.
pub(crate) const ROOTS: [u64; 2] = [0, 4096];
pub(crate) const ROOT_BYTES: u64 = 48;

/// Where the first checkpoint begins.
pub(crate) const DATA_AT: u64 = 8192;

/// Rows of a piece of the checkpoint.
pub(crate) const PIECE_ROWS: u64 = 64;

/// The numbers of a record besides its entries, and of an entry besides its row.
pub(crate) const RECORD_BYTES: u64 = 16;
pub(crate) const ENTRY_BYTES: u64 = 16;

/// The root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Root {
    pub number: u64,
    pub checkpoint_at: u64,
    pub checkpoint_bytes: u64,
    pub row_bytes: u64,
}

impl Root {
    pub fn encode(self) -> Vec<u8> {
        let Self { number, checkpoint_at, checkpoint_bytes, row_bytes } = self;
        let mut bytes = words(&[MAGIC, number, checkpoint_at, checkpoint_bytes, row_bytes]);
        seal(&mut bytes, 0);
        bytes
    }

    /// `None` if it was not written whole.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let word = |n: usize| word_at(bytes, 8 * n);
        let root =
            Self { number: word(1), checkpoint_at: word(2), checkpoint_bytes: word(3), row_bytes: word(4) };
        (is_sealed(bytes, 0) && word(0) == MAGIC).then_some(root)
    }

    /// Where the log begins.
    pub fn log_at(self) -> u64 {
        self.checkpoint_at + self.checkpoint_bytes
    }

    /// What a checksum at an offset begins with: records of older logs do not fit.
    pub fn seed(self, offset: u64) -> u64 {
        (self.number << 48) ^ offset
    }
}

pub(crate) fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The number at a byte.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Appends the checksum.
pub(crate) fn seal(bytes: &mut Vec<u8>, seed: u64) {
    let sum = XxHash3_64::oneshot_with_seed(seed, bytes);
    bytes.extend(sum.to_le_bytes());
}

/// Whether the checksum at the end fits.
pub(crate) fn is_sealed(bytes: &[u8], seed: u64) -> bool {
    let (body, sum) = bytes.split_at(bytes.len() - 8);
    XxHash3_64::oneshot_with_seed(seed, body) == word_at(sum, 0)
}
