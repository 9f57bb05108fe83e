//! What a database has done, and what it takes.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use crate::api::database::Database;
use crate::engine::table::TableInner;
use crate::types::error::{Error, Result};
use crate::types::figures::{Figures, History};
use crate::types::running::{EndedBy, OnPinned, TransactionId};
use crate::types::stats::{Chains, ReadingProcess, RunningTransaction, Stats, TableParts, TableSpace};

impl Database {
    /// Counters and gauges. The call visits all tables and blocks, so do not
    /// make it for every transaction.
    pub fn stats(&self) -> Stats {
        self.core.stats()
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
        self.core.running_transactions()
    }

    /// The processes that have opened the database [to read it](crate::Options::open_read_only),
    /// and the space that each holds back until it closes the database or ends.
    ///
    /// The call visits all blocks for each process.
    pub fn reading_processes(&self) -> Vec<ReadingProcess> {
        self.core.reading_processes()
    }

    /// Ends a transaction of any thread, so that it cannot commit any more.
    ///
    /// The transaction's next call fails with
    /// [`Error::TransactionEnded`](crate::Error::TransactionEnded). A call that waits for a lock
    /// returns with the same error at once. What the transaction holds, locks included, is released
    /// only when its program drops it, because the program may still look at rows that it has read,
    /// which lie on the medium itself.
    /// [`Stats::ended_not_dropped`](crate::Stats::ended_not_dropped) counts the transactions that
    /// are ended and not yet dropped.
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

    /// Changes [`Options::max_pinned_age`](crate::Options::max_pinned_age) of the open database.
    /// `None` means no limit.
    ///
    /// The new limit applies to transactions that are already open, including those that have been
    /// warned of.
    ///
    /// ```
    /// # use pantile::*;
    /// # use std::time::Duration;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// db.set_max_pinned_age(Some((Duration::from_secs(60), OnPinned::End)));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_max_pinned_age(&self, limit: Option<(Duration, OnPinned)>) {
        self.core.limit_pinned(|limits| limits.age = limit);
    }

    /// Changes [`Options::max_pinned_bytes`](crate::Options::max_pinned_bytes) of the open
    /// database, as [`Database::set_max_pinned_age`] changes the other limit.
    pub fn set_max_pinned_bytes(&self, limit: Option<(u64, OnPinned)>) {
        self.core.limit_pinned(|limits| limits.bytes = limit);
    }

    /// Counters and gauges in one flat list, with the percentiles of commits since the
    /// last sample. The call visits all tables and blocks.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let figures = db.figures();
    /// assert!(figures.pinned_bytes <= figures.obsolete_bytes);
    /// println!("{} bytes can still be written", figures.room_bytes);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn figures(&self) -> Figures {
        self.core.figures()
    }

    /// Samples of what the database has done lately.
    ///
    /// There is about one sample per second for the last 10 minutes in which anything began or
    /// ended, and one per minute for a day. The worker takes the samples; without a worker,
    /// [`Database::upkeep`] does. They take at most 400 KB of memory, which
    /// [`Stats::dram_bytes`](crate::Stats::dram_bytes) counts.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// for two in db.history().seconds.windows(2) {
    ///     let seconds = (two[1].at_millis - two[0].at_millis) as f64 / 1e3;
    ///     println!("{} commits per second", (two[1].commits - two[0].commits) as f64 / seconds);
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn history(&self) -> History {
        self.core.history()
    }

    /// The time until the medium is full, if its used part goes on growing as in the last minute.
    ///
    /// `None` if it has not grown, or if nothing is known of the last seconds. Both limits count:
    /// [`Options::max_bytes`](crate::Options::max_bytes), and the free space of the file system.
    pub fn full_in(&self) -> Option<Duration> {
        self.core.full_in()
    }

    /// All figures, tables and holders of garbage in the text format of Prometheus
    /// (version 0.0.4), as docs/insight.md lists them. The call visits all tables and
    /// blocks.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// db.begin()?.commit()?;
    /// assert!(db.metrics().contains("\npantile_commits_total 1\n"));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn metrics(&self) -> String {
        self.core.metrics()
    }

    /// What each table takes on the medium. The hidden tables of values out of
    /// line are listed by themselves, and so are dropped tables until their
    /// space has been given back: as `orders, table 17 (dropped)`, since several
    /// may have had one name. The call visits every block. In a process that reads beside one that
    /// writes, the list is empty and [`Stats::free_bytes`](crate::stats::Stats::free_bytes) counts all: what is in use is known to the writer
    /// only.
    pub fn space_by_table(&self) -> Vec<TableSpace> {
        self.core.space_by_table()
    }

    /// The space of each table in detail: its blocks by state, its rows, and its indexes.
    ///
    /// The tables are those of [`Database::space_by_table`]. An entry with an empty name has what
    /// belongs to no table. The call visits every block.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// for table in db.parts_by_table() {
    ///     println!("{}: {} rows in {} bytes", table.table, table.rows, table.live_bytes());
    /// }
    /// # Ok::<(), Error>(())
    /// ```
    pub fn parts_by_table(&self) -> Vec<TableParts> {
        self.core.parts_by_table()
    }

    /// Measures how long the chains of versions are, on about `samples` tuples
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

/// Counts the entries in all indexes.
///
/// The indexes of the catalog and of values out of line are included, dropped indexes are not. Once
/// everything is cleaned up, each row has one entry in each index of its table. The call loads
/// indexes that are still in an image only, and visits every entry.
///
/// # Errors
/// The call fails if an index cannot be loaded.
pub fn index_entries(db: &Database) -> Result<u64> {
    let entries = |table: &Arc<TableInner>| {
        match db.core.load_apart(table) {
            // Since the list was made.
            Err(Error::TableDropped(_)) => Ok(0),
            loaded => loaded.map(|()| table.index_entries()),
        }
    };
    db.core.tables.all().iter().map(entries).sum()
}
