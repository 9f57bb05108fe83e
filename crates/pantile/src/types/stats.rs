//! Counters, gauges and measurements.

use std::fmt;
use std::time::Duration;

use pantile_base::Timestamp;
use pantile_media::MediumStats;
use pantile_reclaim::CollectorStats;

use crate::types::running::OpenTransaction;

/// What a database has done since it was opened, and what it takes.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Stats {
    /// Transactions committed, read-only ones included.
    pub commits: u64,
    /// Transactions rolled back, for any reason.
    pub aborts: u64,
    /// Transactions running now. [`Database::transactions`](crate::Database::transactions)
    /// lists them, and what each keeps.
    pub running: u64,
    /// Transactions that were ended from outside and that their programs have not
    /// dropped yet. What they hold stays until then.
    pub ended_not_dropped: u64,
    /// Transactions that held back more than
    /// [`Options::max_pinned_age`](crate::Options::max_pinned_age) or
    /// [`Options::max_pinned_bytes`](crate::Options::max_pinned_bytes) allow, and were
    /// warned of.
    pub pin_warnings: u64,
    /// Transactions that held back more than these options allow, and were ended.
    pub pin_ends: u64,
    /// Contents written by commits.
    pub contents_written: u64,
    /// Bytes of these contents, headers included. Write amplification is relative to them.
    pub payload_bytes: u64,
    /// Bytes of live versions that the collector has copied, headers included.
    pub copied_bytes: u64,
    /// What the medium has done.
    pub medium: MediumStats,
    /// Bytes taken on the medium.
    pub medium_bytes: u64,
    /// Bytes of the index image and its successor, in files beside the medium.
    pub image_bytes: u64,
    /// The part of `medium_bytes` in slots of superseded versions. Without a collector (in the
    /// laboratory) about that: what slots leave free counts, too.
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
    /// The part of `dram_bytes` in nodes that no index uses now. New keys take them first, in
    /// indexes with nodes of the same size. They go back to the system when the database is closed.
    pub free_node_bytes: u64,
    /// The part of `dram_bytes` in anchors, and in ids of deleted rows.
    pub anchor_bytes: u64,
    /// The part of `dram_bytes` in buffers of transactions, in descriptions of blocks, and in the
    /// cleaner's queues. A large transaction takes much of it. When a transaction has ended, at
    /// most 512 KB of its buffers stay.
    pub buffer_bytes: u64,
    /// The part of `dram_bytes` in tiles.
    pub tile_bytes: u64,
    /// The part of `dram_bytes` in the cache of rows ([`Options::row_cache`](crate::Options::row_cache)).
    pub row_cache_bytes: u64,
    /// Look-ups of a row that was in the cache. One read may look up more than once.
    pub row_cache_hits: u64,
    /// Look-ups of a row that was not in the cache.
    pub row_cache_misses: u64,
    /// Bytes of the newest versions of all tuples, headers included.
    pub live_bytes: u64,
    /// Tuples that exist.
    pub tuples: u64,
    /// Index entries that wait to be cleaned up.
    pub stale_entries: u64,
    /// Versions that transactions read, including newer ones on the way to them.
    pub versions_read: u64,
    /// Contents found damaged since the database was opened, while those that opening did not read
    /// were verified in the background. Their rows stay as they are:
    /// [`Database::verify`](crate::Database::verify) lists them.
    pub damaged_contents: u64,
    /// Whether the upkeep in the background has ended by a panic, which was reported on stderr. Nothing is
    /// collected until the database is opened again.
    pub upkeep_has_ended: bool,
    /// Blocks that are not yet verified, because an index image made it unnecessary to read them.
    pub unread_blocks: u64,
    /// What the collector has done.
    pub collector: CollectorStats,
}

/// A running transaction and what it keeps from being reclaimed; see
/// [`Database::transactions`](crate::Database::transactions).
///
/// The figures are upper bounds, because they are known for whole blocks only. As soon as the
/// transaction may see one version in a block, everything superseded in the block counts.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct RunningTransaction {
    /// Its kind, its age, and the thread that began it.
    pub transaction: OpenTransaction,
    /// The timestamp at which it reads. A read-committed transaction reads at this or any later
    /// one.
    pub timestamp: Timestamp,
    /// Superseded bytes on the medium, in blocks that it may be reading.
    pub held_bytes: u64,
    /// The number of those blocks.
    pub held_blocks: u64,
    /// The same by table, the largest amount first.
    pub tables: Vec<HeldOfTable>,
    /// The part of `held_bytes` that no other transaction holds: what its end
    /// would free, at most.
    pub freed_bytes: u64,
    /// Bytes of DRAM in links to old versions that it may follow.
    pub held_dram_bytes: u64,
    /// The part of `held_dram_bytes` that its end would free.
    pub freed_dram_bytes: u64,
    /// Bytes of DRAM in the buffers of its uncommitted writes, with what earlier transactions have
    /// left there. Its end frees all but 512 KB of them, or 16 MB for all that are larger.
    pub buffer_bytes: u64,
}

/// What a transaction holds back of one table.
#[derive(Clone, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct HeldOfTable {
    /// The table's name.
    pub table: String,
    /// Superseded bytes, in blocks that the transaction may be reading.
    pub bytes: u64,
    /// The number of those blocks.
    pub blocks: u64,
}

/// Another process that reads the database; see
/// [`Database::reading_processes`](crate::Database::reading_processes).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReadingProcess {
    /// Its process id; `None` if it was reading before this process opened the database.
    pub process: Option<u32>,
    /// For how long it has read, if that is known.
    pub age: Option<Duration>,
    /// Superseded bytes on the medium, in blocks that it may be reading. Others may
    /// hold them, too.
    pub held_bytes: u64,
}

impl fmt::Display for ReadingProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "process {process}")?,
            None => f.write_str("a process from before the opening")?,
        }
        write!(f, " reads the database and holds back {} bytes until it closes it", self.held_bytes)
    }
}

/// The space of a table on the medium.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
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
    /// Contents in the blocks, superseded ones included.
    pub contents: u64,
    /// Superseded contents, and void slots.
    pub obsolete: u64,
    /// Bytes of obsolete contents.
    pub obsolete_bytes: u64,
}

/// What a table takes in detail; see
/// [`Database::parts_by_table`](crate::Database::parts_by_table).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct TableParts {
    /// Its name; empty for what belongs to no table.
    pub table: String,
    /// Its rows, as the newest transaction sees them.
    pub rows: u64,
    /// Its blocks by their state.
    pub blocks: Vec<BlocksInState>,
    /// Its indexes, the primary one first. Hidden and dropped tables have none.
    pub indexes: Vec<IndexParts>,
}

impl TableParts {
    /// The bytes of all its blocks.
    pub fn bytes(&self) -> u64 {
        self.blocks.iter().map(|blocks| blocks.bytes).sum()
    }

    /// The bytes in slots of the newest versions of rows.
    pub fn live_bytes(&self) -> u64 {
        self.blocks.iter().map(|blocks| blocks.live_bytes).sum()
    }
}

/// The blocks of a table that are in one state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct BlocksInState {
    /// `open`: commits append to them. `sealed`: they are full. `frozen`: the
    /// collector empties them. `released`: they become free soon. `free`: they belong
    /// to no table. `record`: state records.
    pub state: &'static str,
    /// The number of blocks.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The part of them in slots of the newest versions of rows.
    pub live_bytes: u64,
    /// The part in slots of superseded versions.
    pub obsolete_bytes: u64,
    /// The part in slots that are not written yet.
    pub unfilled_bytes: u64,
}

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct IndexParts {
    /// Its name; `primary` for the primary one.
    pub name: String,
    /// Its columns, most significant first.
    pub columns: Vec<String>,
    /// Whether it takes no second row with the same key.
    pub unique: bool,
    /// Its memory in bytes; `None` as long as it is in an image only.
    pub bytes: Option<u64>,
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
    /// The greatest number of versions that can be reached from the newest.
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
    /// Whether the database had been closed, and nothing was added since.
    pub was_closed: bool,
    /// Whether opening used an index image. Then opening read only what was written after the
    /// image, and indexes are loaded when they are first used.
    pub from_image: bool,
}
