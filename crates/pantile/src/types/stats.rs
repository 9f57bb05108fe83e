//! Counters, gauges and measurements.

use pantile_media::MediumStats;
use pantile_reclaim::CollectorStats;

/// What a database has done since it was opened, and what it takes.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// Transactions committed, read-only ones included.
    pub commits: u64,
    /// Transactions rolled back, for any reason.
    pub aborts: u64,
    /// Transactions running now.
    pub running: u64,
    /// The one of them that has been running for longest, and what it keeps.
    pub oldest: Option<Oldest>,
    /// Contents written by commits.
    pub contents_written: u64,
    /// Their bytes, headers included. Write amplification is relative to them.
    pub payload_bytes: u64,
    /// Bytes of live versions that the collector has copied, headers included.
    pub copied_bytes: u64,
    /// What the medium has done.
    pub medium: MediumStats,
    /// Bytes taken on the medium.
    pub medium_bytes: u64,
    /// The part of `medium_bytes` in slots of superseded versions.
    pub obsolete_bytes: u64,
    /// The part of `medium_bytes` in slots of used blocks that are not yet written.
    pub unfilled_bytes: u64,
    /// The part of `medium_bytes` in empty blocks and chunks, the reserve included.
    pub free_bytes: u64,
    /// All DRAM that the database holds, in bytes, without the medium's pages:
    /// indexes, anchors, tiles, read marks, transactions' buffers, and queues.
    pub dram_bytes: u64,
    /// The part of `dram_bytes` in indexes.
    pub index_bytes: u64,
    /// The part of `dram_bytes` in anchors.
    pub anchor_bytes: u64,
    /// The part of `dram_bytes` in buffers of transactions, in descriptions of
    /// blocks, and in the cleaner's queues. A large transaction takes much of it;
    /// of a transaction that has ended, at most 512 KB stay.
    pub buffer_bytes: u64,
    /// The part of `dram_bytes` in tiles.
    pub tile_bytes: u64,
    /// Bytes of the newest versions of all tuples, headers included.
    pub live_bytes: u64,
    /// Tuples that exist.
    pub tuples: u64,
    /// Index entries that wait to be cleaned up.
    pub stale_entries: u64,
    /// Versions that transactions read, including newer ones on the way to them.
    pub versions_read: u64,
    /// What the collector has done.
    pub collector: CollectorStats,
}

/// The transaction that has been running for longest. Most of what it keeps can
/// be reclaimed once it has ended.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Oldest {
    /// How long ago the state was current that it reads, in seconds.
    pub age_seconds: f64,
    /// Superseded bytes on the medium, in blocks that it may be reading.
    pub held_bytes: u64,
    /// DRAM of links to versions that only transactions as old as this one walk
    /// over.
    pub held_dram_bytes: u64,
}

/// The space of a table on the medium.
#[derive(Clone, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TableSpace {
    /// Its name.
    pub table: String,
    /// Its blocks.
    pub blocks: u64,
    /// Blocks that are not full.
    pub open_blocks: u64,
    /// Bytes of the blocks.
    pub bytes: u64,
    /// Contents in them, superseded ones included.
    pub contents: u64,
    /// Superseded contents, and void slots.
    pub obsolete: u64,
    /// Bytes of obsolete contents.
    pub obsolete_bytes: u64,
}

/// How long the chains of versions are, measured on some tuples.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Chains {
    /// Tuples measured.
    pub tuples: u64,
    /// The mean number of versions that can be reached from the newest.
    pub mean: f64,
    /// The greatest number.
    pub max: u64,
    /// Versions of a tuple that take space on the medium, on average over all tuples.
    pub stored_mean: f64,
}

/// What opening the database took.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Recovery {
    /// Time of the scan and of building the indexes, in seconds.
    pub seconds: f64,
    /// The part of `seconds` spent scanning the medium.
    pub scan_seconds: f64,
    /// Contents read.
    pub contents_scanned: u64,
    /// Their bytes, headers included.
    pub bytes_scanned: u64,
    /// Contents of transactions that had not committed, which were discarded.
    pub discarded: u64,
    /// Tuples found.
    pub tuples: u64,
    /// Whether the database had been closed.
    pub was_closed: bool,
}
