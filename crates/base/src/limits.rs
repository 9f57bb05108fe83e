//! Sizes that formats and data structures depend on.

/// Bytes of a chunk. The medium is divided into chunks (Zen 3.4), each at a
/// multiple of its size.
pub const CHUNK_BYTES: u64 = 2 << 20;

/// The medium grows and gives back space in multiples of this many bytes. The
/// last chunk may be there only in part.
pub const GROWTH_BYTES: u64 = 64 << 10;

/// Bytes at the start of the medium that hold the superblock and the state
/// records. The first chunk begins behind them.
pub const HEAD_BYTES: u64 = 64 << 10;

/// The places of the two state records in the head of the medium. Each begins with its sequence number.
pub const STATE_RECORDS: [u64; 2] = [4 << 10, 32 << 10];

/// Each place holds the same record twice, this far apart; a flipped bit spoils only one copy.
pub const STATE_COPY_BYTES: u64 = 14 << 10;

/// Where the copy of the superblock lies, which is read if the first is damaged.
pub const SUPERBLOCK_COPY: u64 = 60 << 10;

const _: () = assert!(CHUNK_BYTES.is_multiple_of(GROWTH_BYTES) && HEAD_BYTES.is_multiple_of(GROWTH_BYTES));

/// Most contents in one block (TB-Collect 4.1); also the number of bits of its
/// superseded bits.
pub const BLOCK_SLOTS: usize = 1920;

/// Most transactions that can be open at once. The low bits of every timestamp
/// name the slot that drew it, which keeps timestamps unique.
///
/// Few under model checkers, which create all of them anew in each execution.
pub const TRANSACTION_SLOTS: usize = if cfg!(any(pantile_shuttle, miri)) { 16 } else { 1 << SLOT_BITS };

/// Most transactions that may write, of those that can be open at once. The other
/// slots are for transactions that only read, for the engine's own work, and for the
/// one that has the exclusive stage, however many writers are open.
pub const WRITER_SLOTS: usize = TRANSACTION_SLOTS - TRANSACTION_SLOTS / 16;

/// Bits of a timestamp that name a transaction slot.
pub const SLOT_BITS: u32 = 10;

/// Bytes of the largest row that is stored in line.
pub const MAX_ROW_BYTES: usize = 64 << 10;
