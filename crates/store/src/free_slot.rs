//! Slots that may be rewritten, and the trait that holds them for the store
//! (`slots.rs`).

use std::fmt::Debug;

use pantile_base::TableId;

use crate::block::BlockRef;

/// A slot that may be rewritten, as
/// [`Store::free_slot`](crate::Store::free_slot) has decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FreeSlot {
    pub(crate) block: BlockRef,
    pub(crate) slot: u32,
    pub(crate) table: TableId,
    pub(crate) stride: u32,
}

impl FreeSlot {
    /// Its block.
    pub fn block(&self) -> BlockRef {
        self.block
    }

    /// Its number in the block.
    pub fn number(&self) -> u32 {
        self.slot
    }

    /// The table, and the size of the block's slots. Only contents of this
    /// table and size can be written there.
    pub fn class(&self) -> (TableId, u32) {
        (self.table, self.stride)
    }

    /// Another slot of the same block that has also been freed.
    #[must_use]
    pub fn sibling(self, number: u32) -> Self {
        Self { slot: number, ..self }
    }
}

/// Holds free slots for a store. Called when a commit finds no room in its open
/// block, with locks of the store held; it must not call back into the store.
pub trait SlotReuse: Send + Sync + Debug {
    /// Moves up to `most` free slots of a class to `out`, in the order in which
    /// they are to be written. `hint` spreads callers over lists.
    fn take(&self, class: (TableId, u32), hint: usize, most: usize, out: &mut Vec<FreeSlot>);

    /// Takes back slots that were not written.
    fn give_back(&self, slots: &mut dyn Iterator<Item = FreeSlot>);

    /// Forgets the slots of a dropped table.
    fn forget(&self, table: TableId);
}
