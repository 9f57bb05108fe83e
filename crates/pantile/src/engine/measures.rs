//! What the database counts and takes, put together from its parts.

use std::collections::BTreeMap;

use pantile_base::TableId;
use pantile_media::MediumExt;
use pantile_store::{BlockState, DEPENDENCIES, Held, RowCache, Space, StateBlocks, TableBlocks};

use crate::engine::core::Core;
use crate::engine::ending::HeldBy;
use crate::engine::still_open::describe;
use crate::engine::{catalog, pieces};
use crate::types::stats::{BlocksInState, HeldOfTable, RunningTransaction, Stats, TableParts, TableSpace};

/// One look at everything.
pub(crate) struct Looked {
    pub stats: Stats,
    pub space: Space,
    pub holders: Vec<HeldBy>,
    /// What any of them holds back.
    pub pinned_bytes: u64,
}

impl Core {
    /// Visits all tables and blocks.
    pub fn look(&self) -> Looked {
        let space = self.store.space();
        let stats = self.stats_with(&space);
        let (holders, pinned_bytes) = self.holders_and_all();
        Looked { stats, space, holders, pinned_bytes }
    }

    pub fn stats(&self) -> Stats {
        self.stats_with(&self.store.space())
    }

    fn stats_with(&self, space: &Space) -> Stats {
        let collector = self.reclaimer.stats(&self.store);
        let memory = self.memory_use(space, &collector);
        let cached = self.row_cache.as_ref().map(RowCache::stats).unwrap_or_default();
        let running = self.rounds.apart(|| self.registry.running() as u64);
        let mut stats = Stats {
            running,
            ended_not_dropped: self.registry.asked_to_end() as u64,
            contents_written: space.contents_appended,
            payload_bytes: space.payload_bytes,
            copied_bytes: space.copied_bytes,
            medium: self.store.medium().stats(),
            medium_bytes: space.medium_bytes,
            image_bytes: self.store.image_bytes(),
            obsolete_bytes: space.obsolete_bytes,
            unfilled_bytes: space.unfilled_bytes,
            free_bytes: space.free_bytes(),
            dram_bytes: memory.all(),
            index_bytes: memory.indexes,
            free_node_bytes: memory.free_nodes,
            anchor_bytes: memory.anchors,
            buffer_bytes: memory.buffers,
            tile_bytes: memory.tiles,
            row_cache_bytes: cached.bytes,
            row_cache_hits: cached.hits,
            row_cache_misses: cached.misses,
            stale_entries: self.stale.len() as u64,
            damaged_contents: self.store.damaged(),
            upkeep_has_ended: self.rounds.have_ended(),
            unread_blocks: self.unread.left(),
            collector,
            ..Stats::default()
        };
        self.counters.add_to(&mut stats);
        if !self.reclaimer.notes_superseded() {
            // Blocks do not know what is superseded in them.
            stats.obsolete_bytes = space.stored_bytes.saturating_sub(stats.live_bytes);
        }
        stats
    }

    pub fn running_transactions(&self) -> Vec<RunningTransaction> {
        let now = self.registry.now();
        let running = self.holders().into_iter().map(|HeldBy { open, holder, held }| RunningTransaction {
            transaction: describe(&open, Some(holder), now),
            timestamp: open.reads_at,
            held_bytes: held.bytes,
            held_blocks: held.blocks(),
            tables: self.held_by_table(&held),
            freed_bytes: held.bytes_alone,
            held_dram_bytes: held.dram,
            freed_dram_bytes: held.dram_alone,
            buffer_bytes: self.buffers.bytes_of(open.slot),
        });
        running.collect()
    }

    /// The most first.
    pub fn held_by_table(&self, held: &Held) -> Vec<HeldOfTable> {
        let named = |(&id, &(bytes, blocks))| HeldOfTable { table: self.listed_name(id), bytes, blocks };
        let mut tables: Vec<_> = held.tables.iter().map(named).collect();
        tables.sort_by_key(|table| std::cmp::Reverse(table.bytes));
        tables
    }

    pub fn space_by_table(&self) -> Vec<TableSpace> {
        let tables = self.store.space_by_table();
        let named = tables.into_iter().map(|(id, blocks)| {
            let TableBlocks { blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes } = blocks;
            let table = self.listed_name(id);
            TableSpace { table, blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes }
        });
        named.collect()
    }

    pub fn parts_by_table(&self) -> Vec<TableParts> {
        let mut tables = BTreeMap::<Option<TableId>, TableParts>::new();
        for table in self.tables.all() {
            let indexes = if pieces::is_hidden(table.id) { Vec::new() } else { table.index_parts() };
            let parts = TableParts { rows: table.rows.get(), indexes, ..TableParts::default() };
            tables.insert(Some(table.id), parts);
        }
        for ((table, state), blocks) in self.store.space_by_state() {
            let StateBlocks { blocks, bytes, live_bytes, obsolete_bytes, unfilled_bytes } = blocks;
            let state = name_of(state);
            let blocks = BlocksInState { state, blocks, bytes, live_bytes, obsolete_bytes, unfilled_bytes };
            tables.entry(table).or_default().blocks.push(blocks);
        }
        let named = tables.into_iter().map(|(id, parts)| {
            let table = id.map(|id| self.listed_name(id)).unwrap_or_default();
            TableParts { table, ..parts }
        });
        named.collect()
    }

    fn listed_name(&self, id: TableId) -> String {
        if id == DEPENDENCIES {
            return catalog::OF_DEPENDENCIES.to_owned();
        }
        let Some(table) = self.tables.in_use(id) else {
            return format!("table {} (dropped)", id.0);
        };
        let name = &table.schema().name;
        let name = if pieces::is_hidden(id) { pieces::listed_name(name) } else { name.clone() };
        // Others may have had the name before, or have it again.
        if table.is_dropped() { format!("{name}, table {} (dropped)", id.0) } else { name }
    }
}

fn name_of(state: BlockState) -> &'static str {
    match state {
        BlockState::Free => "free",
        BlockState::Open => "open",
        BlockState::Sealed => "sealed",
        BlockState::Frozen => "frozen",
        BlockState::Released => "released",
        BlockState::Record => "record",
    }
}
