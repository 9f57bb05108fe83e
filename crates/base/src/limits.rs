//! Sizes that formats and data structures depend on.

/// Bytes of a chunk. The medium is allocated in chunks (Zen 3.4).
pub const CHUNK_BYTES: u64 = 2 << 20;

/// Most contents in one block (TB-Collect 4.1); also the number of bits of its
/// superseded bits.
pub const BLOCK_SLOTS: usize = 1920;

/// Most transactions that can be open at once. The low bits of every timestamp
/// name the slot that drew it, which keeps timestamps unique.
///
/// Few under model checkers, which create all of them anew in each execution.
pub const TRANSACTION_SLOTS: usize = if cfg!(any(pantile_shuttle, miri)) { 16 } else { 1 << SLOT_BITS };

/// Bits of a timestamp that name a transaction slot.
pub const SLOT_BITS: u32 = 10;

/// Bytes of the largest row that is stored in line.
pub const MAX_ROW_BYTES: usize = 64 << 10;
