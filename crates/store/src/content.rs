//! Contents: the bytes of a version on the medium.

use pantile_base::control::{Control, is_removed};
use pantile_base::{Address, Timestamp, TupleId};

use crate::format::{checksum, u32_at, u64_at};

/// Size of a content header in bytes; the row follows it.
pub const HEADER_BYTES: usize = 24;

const SUM_AT: usize = 20;
const LEN_BITS: u32 = 16;

/// The length of the row, from the third word of the content header.
#[inline]
pub(crate) fn row_len(word: u32) -> usize {
    (word & ((1 << LEN_BITS) - 1)) as usize
}
const LAYOUT_BITS: u32 = 8;

/// What a content is, other than a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContentFlags(u8);

impl ContentFlags {
    /// A row.
    pub const ROW: Self = Self(0);
    /// The tuple was deleted.
    pub const TOMBSTONE: Self = Self(1);
    /// Void: recovery filled a slot whose transaction did not commit.
    pub const VOID: Self = Self(2);

    /// A copy. Its transaction was durably known to have committed when the
    /// copy was made, whichever of its other contents still exist (T1).
    const RELOCATED: Self = Self(4);

    /// A copy of a row whose transaction is known to have committed.
    pub const COPY: Self = Self::ROW.relocated();

    /// A copy of a tombstone.
    pub const COPY_OF_TOMBSTONE: Self = Self::TOMBSTONE.relocated();

    /// The same in a copy.
    pub(crate) const fn relocated(self) -> Self {
        Self(self.0 | Self::RELOCATED.0)
    }

    /// A copy that recovery treats as void. The version itself stays where it
    /// was written until its successor is known to be durable.
    pub fn superseded(self) -> Self {
        Self(self.0 | Self::VOID.0)
    }

    /// Whether it is a copy made by a collector.
    #[inline]
    pub fn is_relocated(self) -> bool {
        self.0 & Self::RELOCATED.0 != 0
    }

    /// Whether the tuple was deleted.
    #[inline]
    pub fn is_tombstone(self) -> bool {
        self.0 & Self::TOMBSTONE.0 != 0
    }

    /// Whether the content is void.
    #[inline]
    pub fn is_void(self) -> bool {
        self.0 & Self::VOID.0 != 0
    }
}

/// A content, read where it lies.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    bytes: &'a [u8],
}

impl<'a> Content<'a> {
    /// `bytes` start with a content header.
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// All of it, header and row.
    #[inline]
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The transaction that wrote it: the version's `begin_ts`.
    #[inline]
    pub fn timestamp(&self) -> Timestamp {
        Timestamp::from_raw(u64_at(self.bytes, 0))
    }

    /// The tuple that it is a version of.
    #[inline]
    pub fn tuple(&self) -> TupleId {
        TupleId(u64_at(self.bytes, 8) & ((1 << TupleId::BITS) - 1))
    }

    /// How many contents its transaction wrote: the evidence of the commit
    /// (I-8).
    #[inline]
    pub fn transaction_contents(&self) -> u64 {
        u64_at(self.bytes, 8) >> TupleId::BITS
    }

    /// What it is.
    #[inline]
    pub fn flags(&self) -> ContentFlags {
        ContentFlags((u32_at(self.bytes, 16) >> (LEN_BITS + LAYOUT_BITS)) as u8)
    }

    /// Which of the table's layouts the row has.
    #[inline]
    pub fn layout(&self) -> u8 {
        (u32_at(self.bytes, 16) >> LEN_BITS) as u8
    }

    /// The bytes of its row, which need not be there ([`Store::content_header`](crate::Store::content_header)).
    #[inline]
    pub fn row_len(&self) -> usize {
        row_len(u32_at(self.bytes, 16))
    }

    /// The row.
    #[inline]
    pub fn row(&self) -> &'a [u8] {
        &self.bytes[HEADER_BYTES..HEADER_BYTES + self.row_len()]
    }

    /// The content in a slot, if the slot holds a valid content of the block
    /// generation with this seed.
    pub(crate) fn valid_in(slot: &'a [u8], seed: u64, address: Address) -> Option<Self> {
        let len = HEADER_BYTES + Self::new(slot).row_len();
        let content = Self::new(slot.get(..len)?);
        content.is_valid(seed, address).then_some(content)
    }

    /// Whether the bytes are a content that was written at `address` in the
    /// generation of its block with this seed.
    pub(crate) fn is_valid(&self, seed: u64, address: Address) -> bool {
        let end = HEADER_BYTES + self.row_len();
        // One blank slot in 4,000 million has a checksum of zero.
        let is_blank = self.timestamp() == Timestamp::ZERO && !self.flags().is_void();
        !is_blank
            && end <= self.bytes.len()
            && (content_sum(seed, address, &self.bytes[..end]) == u32_at(self.bytes, SUM_AT)
                || is_removed(Control::ContentChecksum))
    }
}

/// The checksum covers the content's address and the generation of its block.
#[inline]
fn content_sum(seed: u64, address: Address, content: &[u8]) -> u32 {
    let head = seed ^ address.word().wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ u64_at(content, 0).rotate_left(32);
    let head = (head ^ u64_at(content, 8)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    checksum((head ^ (head >> 32)).wrapping_add(u64::from(u32_at(content, 16))), &content[HEADER_BYTES..])
}

/// A content to be written.
#[derive(Clone, Copy)]
pub(crate) struct Header {
    pub timestamp: Timestamp,
    pub tuple: TupleId,
    pub transaction_contents: u64,
    pub flags: ContentFlags,
    pub layout: u8,
}

/// Appends a content to `out`.
#[inline]
pub(crate) fn encode(header: Header, row: &[u8], seed: u64, address: Address, out: &mut Vec<u8>) {
    debug_assert!(row.len() < 1 << LEN_BITS && header.transaction_contents < 1 << 24);
    let start = out.len();
    let mut bytes = [0; HEADER_BYTES];
    bytes[..8].copy_from_slice(&header.timestamp.get().to_le_bytes());
    let word = header.tuple.0 | (header.transaction_contents << TupleId::BITS);
    bytes[8..16].copy_from_slice(&word.to_le_bytes());
    let kind = u32::from(header.layout) | (u32::from(header.flags.0) << LAYOUT_BITS);
    let word = row.len() as u32 | (kind << LEN_BITS);
    bytes[16..20].copy_from_slice(&word.to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(row);
    let sum = content_sum(seed, address, &out[start..]);
    out[start + SUM_AT..start + HEADER_BYTES].copy_from_slice(&sum.to_le_bytes());
}
