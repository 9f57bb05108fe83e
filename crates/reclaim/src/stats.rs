/// What a collector has done since the database was opened, and what waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectorStats {
    /// Blocks freed.
    pub blocks_reclaimed: u64,
    /// The part of `blocks_reclaimed` that was bypassed by a transaction that
    /// had begun before them and still ran (TB-Collect 4.4, second case).
    pub blocks_bypassed: u64,
    /// The part of `blocks_reclaimed` that was compacted because space was
    /// short, before theta of it had been superseded.
    pub blocks_compacted: u64,
    /// Old versions whose space was freed.
    pub versions_reclaimed: u64,
    /// Live versions copied out of blocks.
    pub survivors_relocated: u64,
    /// Versions visited by following a chain, a background thread's included.
    pub versions_traversed: u64,
    /// Tombstones found to hide nothing any more.
    pub tombstones_dropped: u64,
    /// Tiles dropped because every version of their block is visible to all.
    pub tiles_dropped: u64,
    /// Block headers written to the medium.
    pub headers_written: u64,
    /// How often a committing thread did some of the collector's work.
    pub steps: u64,
    /// The longest of these steps, in microseconds.
    pub pause_us_max: u64,
    /// Waiting now in `gc_pending_queue`s: blocks that are obsolete for the most part.
    pub pending_blocks: u64,
    /// Waiting now in `local_gc_queue`s: blocks that nobody can see into.
    pub queued_blocks: u64,
    /// Now in `local_gc_queue_frozen`s: blocks being emptied and freed.
    pub frozen_blocks: u64,
    /// Waiting now in `long_tx_gc_queue`s: blocks that a long transaction bypasses.
    pub long_tx_blocks: u64,
    /// Tiles kept now for chains that long transactions walk, without their blocks.
    pub kept_tiles: u64,
    /// Blocks that a `local_gc_queue` may hold at present before it is worked off.
    pub queue_capacity: u64,
    /// Old versions that wait one by one, in the lists of collectors that free
    /// versions and not blocks.
    pub waiting_versions: u64,
    /// DRAM of everything that waits, in bytes.
    pub queue_bytes: u64,
    /// Deleted tuples whose tombstones wait now until nothing is left to hide.
    pub waiting_tombstones: u64,
}
