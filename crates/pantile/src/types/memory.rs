//! What a database takes of DRAM.

use std::fmt;

/// The DRAM, in bytes, of a database that has reached
/// [`Options::memory_limit`](crate::Options::memory_limit); see
/// [`Error::MemoryFull`](crate::Error::MemoryFull).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MemoryUse {
    /// The limit.
    pub limit: u64,
    /// Nodes of indexes.
    pub indexes: u64,
    /// Nodes that no index uses now. Only indexes with nodes of the same size can
    /// take them.
    pub free_nodes: u64,
    /// The part of `free_nodes` that does not count towards the limit: before the
    /// statement's rows need other nodes, they take as many bytes of these.
    pub spare: u64,
    /// Anchors: a word for each row.
    pub anchors: u64,
    /// Tiles: links between versions that running transactions may need.
    pub tiles: u64,
    /// Buffers of transactions, descriptions of blocks, and the cleaner's queues.
    pub buffers: u64,
    /// The cache of rows ([`Options::row_cache`](crate::Options::row_cache)).
    pub row_cache: u64,
    /// Everything else: read marks, counters, the collector's queues.
    pub rest: u64,
}

impl MemoryUse {
    /// All bytes, free nodes included.
    pub fn all(&self) -> u64 {
        self.indexes + self.free_nodes + self.anchors + self.tiles + self.buffers + self.row_cache + self.rest
    }

    /// The bytes that count towards the limit.
    pub fn counted(&self) -> u64 {
        self.all() - self.spare
    }
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{:.1} of {:.1} MB are taken: {:.1} by indexes, {:.1} by free nodes of a size that the statement cannot use, {:.1} by anchors, {:.1} by tiles, {:.1} by buffers, {:.1} by the cache of rows, {:.1} by all else",
            mb(self.counted()),
            mb(self.limit),
            mb(self.indexes),
            mb(self.free_nodes - self.spare),
            mb(self.anchors),
            mb(self.tiles),
            mb(self.buffers),
            mb(self.row_cache),
            mb(self.rest)
        )
    }
}
