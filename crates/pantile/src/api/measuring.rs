//! What a database has done, and what it takes.

use std::panic::Location;
use std::sync::Arc;

use pantile_base::TableId;
use pantile_media::MediumExt;
use pantile_store::{DEPENDENCIES, Held, TableBlocks};

use crate::api::database::Database;
use crate::engine::ending::HeldBy;
use crate::engine::still_open::describe;
use crate::engine::table::TableInner;
use crate::engine::{catalog, pieces};
use crate::types::error::Result;
use crate::types::running::{EndedBy, TransactionId};
use crate::types::stats::{Chains, HeldOfTable, RunningTransaction, Stats, TableSpace};

impl Database {
    /// Counters and gauges. The call visits all tables and blocks, so do not
    /// make it for every transaction.
    pub fn stats(&self) -> Stats {
        let core = &self.core;
        let space = core.store.space();
        let tables = core.tables.all();
        let index_bytes = tables.iter().map(|t| t.index_bytes()).sum::<u64>();
        let collector = core.reclaimer.stats(&core.store);
        let memory = core.memory_use(&space, &collector);
        let running = core.rounds.apart(|| core.registry.running() as u64);
        let mut stats = Stats {
            running,
            ended_not_dropped: core.ended_not_dropped(),
            contents_written: space.contents_appended,
            payload_bytes: space.payload_bytes,
            copied_bytes: space.copied_bytes,
            medium: core.store.medium().stats(),
            medium_bytes: space.medium_bytes,
            obsolete_bytes: space.obsolete_bytes,
            unfilled_bytes: space.unfilled_bytes,
            free_bytes: space.free_block_bytes + space.free_chunk_bytes,
            dram_bytes: memory.all(),
            index_bytes,
            anchor_bytes: memory.anchors,
            buffer_bytes: memory.buffers,
            tile_bytes: memory.tiles,
            stale_entries: core.stale.len() as u64,
            damaged_contents: core.store.damaged(),
            unread_blocks: core.unread.left(),
            collector,
            ..Stats::default()
        };
        core.counters.add_to(&mut stats);
        stats
    }

    /// The running transactions, the oldest first, and how much old data each
    /// of them keeps. The call visits every block and no row.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let report = db.begin_read()?;
    /// let running = db.transactions();
    /// assert_eq!(running[0].timestamp, report.timestamp());
    /// let [first, ..] = &running[..] else { unreachable!() };
    /// println!("{} keeps {} bytes", first.transaction, first.held_bytes);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn transactions(&self) -> Vec<RunningTransaction> {
        let core = &self.core;
        let now = core.registry.now();
        let running = core.holders().into_iter().map(|HeldBy { open, holder, held }| RunningTransaction {
            transaction: describe(&open, Some(holder), now),
            timestamp: open.reads_at,
            held_bytes: held.bytes,
            held_blocks: held.tables.values().map(|(_, blocks)| blocks).sum(),
            tables: self.held_by_table(&held),
            freed_bytes: held.bytes_alone,
            held_dram_bytes: held.dram,
            freed_dram_bytes: held.dram_alone,
            buffer_bytes: core.buffers.bytes_of(open.slot),
        });
        running.collect()
    }

    fn held_by_table(&self, held: &Held) -> Vec<HeldOfTable> {
        let named = |(&id, &(bytes, blocks))| HeldOfTable { table: self.listed_name(id), bytes, blocks };
        let mut tables: Vec<_> = held.tables.iter().map(named).collect();
        tables.sort_by_key(|table| std::cmp::Reverse(table.bytes));
        tables
    }

    /// Ends a transaction of any thread: nothing more of it is committed. Its next
    /// call fails with [`Error::TransactionEnded`](crate::Error::TransactionEnded), and one that waits for a lock
    /// returns at once with the same. What it holds, locks included, goes when its
    /// program drops it, and not before: the program may still look at rows that it
    /// has read, which lie on the medium itself.
    /// [`Stats::ended_not_dropped`](crate::Stats::ended_not_dropped) counts those
    /// that are left.
    ///
    /// A commit that has begun goes on.
    ///
    /// # Errors
    /// [`Error::UnknownTransaction`](crate::Error::UnknownTransaction) if no such transaction is open.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).primary_key(["id"]))?;
    /// let report = db.begin_read()?;
    /// db.end_transaction(report.id())?;
    /// assert!(matches!(report.get(&t, &[1u64.into()]), Err(Error::TransactionEnded { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn end_transaction(&self, id: TransactionId) -> Result<()> {
        self.core.end_transaction(id, EndedBy::Call(Location::caller()))
    }

    /// What each table takes on the medium. The hidden tables of values out of
    /// line are listed by themselves, and so are dropped tables until their
    /// space has been given back. The call visits every block.
    pub fn space_by_table(&self) -> Vec<TableSpace> {
        let tables = self.core.store.space_by_table();
        let named = tables.into_iter().map(|(id, blocks)| {
            let TableBlocks { blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes } = blocks;
            let table = self.listed_name(id);
            TableSpace { table, blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes }
        });
        named.collect()
    }

    fn listed_name(&self, id: TableId) -> String {
        if id == DEPENDENCIES {
            return catalog::OF_DEPENDENCIES.to_owned();
        }
        let Some(table) = self.core.tables.in_use(id) else {
            return format!("table {} (dropped)", id.0);
        };
        let name = &table.schema().name;
        let name = if pieces::is_hidden(id) { pieces::listed_name(name) } else { name.clone() };
        if table.is_dropped() { format!("{name} (dropped)") } else { name }
    }

    /// How long the chains of versions are, measured on about `samples` tuples
    /// of each table.
    pub fn chains(&self, samples: u64) -> Chains {
        let core = &self.core;
        let space = core.store.space();
        let mut stats = Stats::default();
        core.counters.add_to(&mut stats);
        let mut chains = Chains {
            stored_mean: space.contents_stored as f64 / stats.tuples.max(1) as f64,
            ..Chains::default()
        };
        if let Ok(visitor) = core.visitor("measuring chains") {
            for table in core.tables.all() {
                visitor.measure_chains(&table, (table.tuples_end() / samples.max(1)).max(1), &mut chains);
            }
        }
        chains.mean /= chains.tuples.max(1) as f64;
        chains
    }
}

/// Entries in all indexes, those of the catalog and of values out of line
/// included, and those of dropped indexes not. Once everything is cleaned up,
/// each row has one in each index of its table. The call loads what is still in
/// an image, and visits every entry.
///
/// # Errors
/// If an index cannot be loaded.
pub fn index_entries(db: &Database) -> Result<u64> {
    let entries = |table: &Arc<TableInner>| {
        db.core.load_apart(table)?;
        Ok(table.index_entries())
    };
    db.core.tables.all().iter().map(entries).sum()
}
