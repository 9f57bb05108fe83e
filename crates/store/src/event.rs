//! Trace events: the history of every block.

use pantile_base::TableId;

use crate::block::BlockRef;
use crate::stream::Life;

/// What has happened to a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockEvent {
    /// A stream has begun to append to it.
    Opened,
    /// It is full.
    Sealed,
    /// Theta of it has been superseded; it waits in a `gc_pending_queue`.
    Pending,
    /// No transaction can see its superseded versions; it waits in a
    /// `local_gc_queue`.
    Queued,
    /// Queued in the same way, while a long transaction bypasses it.
    Bypassed,
    /// It is being emptied, and the frozen flag is on the medium.
    Frozen,
    /// Its survivors have been moved.
    Relocated,
    /// It is being erased from the medium.
    Released,
    /// Its space can be used.
    Freed,
}

/// Emits an event with the target `pantile::block` at the trace level.
#[inline]
pub fn emit(event: BlockEvent, block: BlockRef, table: TableId) {
    tracing::trace!(
        target: "pantile::block",
        event = ?event,
        chunk = block.id.chunk,
        index = block.id.index,
        opened_at = block.opened_at,
        table = table.0,
    );
}

/// Emits that a block has been opened: also where its bytes are, and how long what is written there is
/// expected to live.
pub(crate) fn emit_opened(block: BlockRef, table: TableId, offset: u64, bytes: u32, life: Life) {
    tracing::trace!(
        target: "pantile::block",
        event = ?BlockEvent::Opened,
        chunk = block.id.chunk,
        index = block.id.index,
        opened_at = block.opened_at,
        table = table.0,
        offset,
        bytes,
        life = ?life,
    );
}
