//! The state record: what is known to be durable (docs/format.md).
//!
//! Two places in chunk 0 are written in turn, so one of them is always whole.
//! Each place holds its record twice, so a record that was written whole
//! survives a flipped bit.
//!
//! A record makes two statements (I-9). Every transaction at or below
//! `watermark` has been decided and is durable, except the listed ones. Every
//! block opened by `taken_at` is full, except the listed ones, which are filled
//! as listed. A record is a bounded control record, a few bytes per open block,
//! and not a checkpoint of data.

use pantile_base::control::{Control, is_removed};

use crate::format::{STATE_COPY_BYTES, checksum, u32_at, u64_at};

const HEAD_BYTES: usize = 72;
const ENTRY_BYTES: usize = 16;

/// A block that was not full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PartlyFilled {
    pub chunk: u32,
    pub index: u32,
    pub fill: u32,
    /// Distinguishes the generation that is meant from later ones.
    pub opened_at: u64,
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
    pub partly_filled: Vec<PartlyFilled>,
    /// Transactions at or below `watermark` that had not been decided.
    pub undecided: Vec<u64>,
}

impl StateRecord {
    /// Bytes before the checksum.
    fn len(&self) -> usize {
        HEAD_BYTES + self.partly_filled.len() * ENTRY_BYTES + self.undecided.len() * 8
    }

    /// Whether the record is short enough to be stored.
    pub fn fits(&self) -> bool {
        (self.len() + 8) as u64 <= STATE_COPY_BYTES
    }

    pub fn encode(&self, seed: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len() + 8);
        for word in [self.sequence, self.watermark, self.taken_at, self.boot] {
            out.extend_from_slice(&word.to_le_bytes());
        }
        let flags = u64::from(self.closed) | (u64::from(self.relaxed) << 1) | (u64::from(self.emulated) << 2);
        out.extend_from_slice(&flags.to_le_bytes());
        out.extend_from_slice(&(self.partly_filled.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.carved.to_le_bytes());
        out.extend_from_slice(&(self.undecided.len() as u64).to_le_bytes());
        out.extend_from_slice(&self.used.to_le_bytes());
        for entry in &self.partly_filled {
            out.extend_from_slice(&entry.chunk.to_le_bytes());
            out.extend_from_slice(&(entry.index | (entry.fill << 16)).to_le_bytes());
            out.extend_from_slice(&entry.opened_at.to_le_bytes());
        }
        self.undecided.iter().for_each(|timestamp| out.extend_from_slice(&timestamp.to_le_bytes()));
        let sum = checksum(seed, &out);
        out.extend_from_slice(&u64::from(sum).to_le_bytes());
        out
    }

    /// The record in `place`, or `None` if no copy is whole.
    pub fn decode(place: &[u8], seed: u64) -> Option<Self> {
        let entries = usize::try_from(u64_at(place, 40)).ok()?;
        let undecided = usize::try_from(u64_at(place, 56)).ok()?;
        let filled_end = entries.checked_mul(ENTRY_BYTES)?.checked_add(HEAD_BYTES)?;
        let len = undecided.checked_mul(8)?.checked_add(filled_end)?;
        if len.checked_add(8)? > place.len() {
            return None;
        }
        let fits = checksum(seed, &place[..len]) == u32_at(place, len);
        if !fits && !is_removed(Control::StateChecksum) {
            return None;
        }
        let partly_filled = place[HEAD_BYTES..filled_end]
            .chunks_exact(ENTRY_BYTES)
            .map(|e| PartlyFilled {
                chunk: u32_at(e, 0),
                index: u32_at(e, 4) & 0xffff,
                fill: u32_at(e, 4) >> 16,
                opened_at: u64_at(e, 8),
            })
            .collect();
        let flags = u64_at(place, 32);
        Some(Self {
            sequence: u64_at(place, 0),
            watermark: u64_at(place, 8),
            taken_at: u64_at(place, 16),
            boot: u64_at(place, 24),
            closed: flags & 1 != 0,
            relaxed: flags & 2 != 0,
            emulated: flags & 4 != 0,
            carved: u64_at(place, 48),
            used: u64_at(place, 64),
            partly_filled,
            undecided: place[filled_end..len].chunks_exact(8).map(|word| u64_at(word, 0)).collect(),
        })
    }
}

#[cfg(test)]
#[path = "state_record_test.rs"]
mod tests;
