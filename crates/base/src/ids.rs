/// Identifies a table for the life of a database. Never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableId(pub u32);

/// Identifies a tuple within its table. Reused after the tuple is gone.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TupleId(pub u64);

impl TupleId {
    /// Tuple ids fit in this many bits.
    pub const BITS: u32 = 40;
}

/// Where a content lies: its byte offset on the medium.
///
/// The papers use the pair (block, slot): the quotient and the remainder of
/// this offset by the block's geometry. With the offset, one addition leads
/// from a tuple to its newest content.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Address(u64);

impl Address {
    /// No content. Offset 0 is the superblock, so no content lies there.
    pub const NONE: Self = Self(0);

    /// Addresses fit in this many bits, as offsets in words of 8 bytes.
    pub const BITS: u32 = 48;

    /// The content at byte `offset`, a multiple of 8.
    #[inline]
    pub const fn from_offset(offset: u64) -> Self {
        debug_assert!(offset.is_multiple_of(8));
        Self(offset / 8)
    }

    /// From the word number that [`Address::word`] gave.
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self(word)
    }

    /// Byte offset on the medium.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.0 * 8
    }

    /// Offset in words of 8 bytes, at most [`Address::BITS`] bits.
    #[inline]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// Whether this is [`Address::NONE`].
    #[inline]
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }
}
