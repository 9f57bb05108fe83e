//! What the database takes of DRAM, and whether a statement may take more.

use pantile_cc::Slot;
use pantile_reclaim::CollectorStats;
use pantile_store::Space;

use crate::engine::core::Core;
use crate::engine::index::IndexInner;
use crate::engine::memory_limit::Adds;
use crate::engine::table::TableInner;
use crate::types::error::{Error, Result};
use crate::types::memory::MemoryUse;

/// What a statement may need nodes for.
#[derive(Clone, Copy)]
pub(crate) enum Nodes<'t> {
    /// Entries in all indexes of a table.
    Rows(&'t TableInner),
    /// Entries of an index.
    Entries(&'t IndexInner),
    /// Nothing: all that it adds is in buffers.
    None,
}

impl Nodes<'_> {
    /// Bytes of free nodes that it can take.
    fn spare_bytes(self) -> u64 {
        match self {
            Self::Rows(table) => table.spare_node_bytes(),
            Self::Entries(index) => index.tree().spare_bytes(),
            Self::None => 0,
        }
    }
}

impl Core {
    /// What the database takes of DRAM, with these blocks and queues.
    pub fn memory_use(&self, space: &Space, collector: &CollectorStats) -> MemoryUse {
        let tables = self.tables.all();
        let arena = &self.tables.arena;
        let fixed = self.marks.bytes() + self.registry.bytes() + self.counters.bytes() + self.insight.bytes();
        let indexes = arena.used_bytes();
        MemoryUse {
            limit: self.memory.bytes(),
            indexes,
            free_nodes: arena.kept_bytes().saturating_sub(indexes),
            spare: 0,
            anchors: tables.iter().map(|table| table.anchor_bytes()).sum(),
            tiles: space.tile_bytes,
            buffers: self.buffers.bytes() + self.stale.bytes() + self.images.bytes() + space.block_bytes,
            row_cache: self.row_cache.as_ref().map_or(0, |cache| cache.stats().bytes),
            rest: fixed + collector.queue_bytes,
        }
    }

    /// Fails if a statement of this slot would take the database beyond its
    /// limit.
    #[cold]
    pub fn check_memory(&self, slot: Slot, nodes: Nodes<'_>, adds: Adds) -> Result<()> {
        let add_up = || {
            let mut taken = self.memory_use(&self.store.space(), &self.reclaimer.stats(&self.store));
            taken.spare = nodes.spare_bytes().min(taken.free_nodes);
            // The buffers of the transaction double when they are full.
            let wanted = taken.counted() + self.buffers.bytes_of(slot);
            (self.memory.left(wanted, adds), taken)
        };
        let (mut left, mut taken) = add_up();
        if left == 0 {
            // Transactions that have ended have left theirs to those that follow.
            self.buffers.forget();
            self.forget_indexes();
            (left, taken) = add_up();
        }
        self.memory.note(&taken);
        if let Nodes::Rows(table) = nodes {
            self.memory.allow(&table.allowance, &taken);
        }
        match left {
            0 => Err(Error::MemoryFull(Box::new(taken))),
            _ => Ok(()),
        }
    }
}
