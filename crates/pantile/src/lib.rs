//! Pantile is an embedded transactional storage engine.
//!
//! It is a library that stores tables of typed rows, with primary keys and secondary indexes, in a directory.
//! Transactions are serializable by default, and a commit is durable when it returns. Every change creates a new
//! version of a row, so long readers see one consistent state while others write. There is no log that rows are merged
//! from later; on files, a short journal makes small commits cheap.
//!
//! ```
//! use pantile::{Database, IndexDef, Range, TableDef, Type};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let db = Database::open(dir.path())?;
//! let orders = db.create_table(
//!     TableDef::new("orders")
//!         .column("id", Type::U64)
//!         .column("customer", Type::U32)
//!         .column("cents", Type::I64)
//!         .primary_key(["id"])
//!         .index(IndexDef::new("by_customer", ["customer"])),
//! )?;
//!
//! // Both rows are committed, or neither. `run` starts again after a conflict.
//! db.run(|txn| {
//!     txn.insert(&orders, &[1u64.into(), 7u32.into(), 1250i64.into()])?;
//!     txn.insert(&orders, &[2u64.into(), 7u32.into(), 300i64.into()])
//! })?;
//!
//! // By primary key.
//! let txn = db.begin_read()?;
//! let order = txn.get(&orders, &[1u64.into()])?.expect("order 1 exists");
//! assert_eq!(order.get::<i64>("cents")?, 1250);
//!
//! // By index.
//! let by_customer = orders.index("by_customer")?;
//! let mut total = 0;
//! for order in txn.scan_index(&by_customer, Range::prefix(&[7u32.into()]))? {
//!     total += order?.get::<i64>("cents")?;
//! }
//! assert_eq!(total, 1550);
//! drop(txn);
//! db.close()?;
//!
//! // Everything is there when the database is opened again.
//! let db = Database::open(dir.path())?;
//! assert_eq!(db.table("orders")?.name(), "orders");
//! # Ok(())
//! # }
//! ```
//!
//! # Where to look
//!
//! 1. [`Database`] opens, creates tables and begins transactions. [`Options`] sets how it opens.
//! 2. [`TableDef`], [`ColumnDef`], [`Type`] and [`IndexDef`] define a table. [`Table`] and [`Index`] are handles.
//! 3. [`Transaction`] reads and writes. It takes rows as [`Value`]s and returns them as [`Row`]s; a [`Range`] selects
//!    which rows to scan.
//! 4. [`Record`](trait@Record) and [`TypedTable`] read and write rows as structs, with `#[derive(Record)]` and the
//!    feature `derive`.
//! 5. [`Error`] and [`Conflict`] say what went wrong. Implement [`TransactionError`] for an error type of your own.
//! 6. [`TransactionOptions`], [`Isolation`] and [`ConflictPolicy`] choose how one transaction runs.
//! 7. [`tools`] checks the files of a closed database and reads damaged ones. [`stats`] has the counters of a running
//!    database. [`media`] is for media of other crates, and [`lab`] is for tests and measurements.
//!
//! # Durability
//!
//! [`Options::durability`] says when a commit is acknowledged.
//!
//! | [`Durability`] | a commit returns | a power failure loses |
//! | --- | --- | --- |
//! | `Sync` (default) | when it is durable; concurrent commits share a sync | no acknowledged commit |
//! | `Group` | the same; it may wait up to 500 µs for others to share its sync | no acknowledged commit |
//! | `None` | before it is durable | the newest commits, usually those of the last second; a consistent earlier state remains |
//!
//! `Group` gives the same guarantee as `Sync`, and is worthwhile when many threads commit at once. With any of the
//! three, a process that is killed loses no acknowledged commit. The exception is a database in DRAM, which ends with
//! its last handle. If a sync fails, the database accepts no more commits, but what was durable can still be read
//! ([`Error::MediumFailed`]).
//!
//! # Isolation
//!
//! Each transaction chooses its level ([`TransactionOptions::isolation`]). Levels can be mixed.
//!
//! | [`Isolation`] | reads show | permits |
//! | --- | --- | --- |
//! | `Serializable` (default) | the state at the transaction's timestamp, which it gets when it begins | no anomaly: transactions are as if run one by one, in an order that agrees with real time |
//! | `Snapshot` | the same | write skew, also by phantoms, and the read-only anomaly |
//! | `ReadCommitted` | what is committed when the statement begins | the same, and read skew and lost updates |
//!
//! No level shows uncommitted data or half a commit. At read committed, [`Transaction::modify`] and
//! [`Transaction::get_for_update`] prevent lost updates of a row. The file `docs/isolation.md` in the repository lists
//! every anomaly with the test that shows it.
//!
//! A timestamp is a place in the serial order, not a moment. A serializable or snapshot transaction sees every commit
//! that was acknowledged before it began, and no commit of a writer that began later. A serializable writer that was
//! open when it began may still commit at an earlier timestamp. The transaction then sees that commit, unless it has
//! already read something that the writer changes. Only a safe snapshot shows a state that was complete when it
//! began.
//!
//! # Fresh reads and safe snapshots
//!
//! [`Database::begin_read`] sees every commit that was acknowledged before it. It may also see a later commit of a
//! serializable writer that was open when it began. Its reads wait only for a commit that is being decided or made
//! durable, and never conflict with others. They may force an older writer to commit at a later timestamp, or to
//! start again.
//!
//! [`Database::begin_safe_snapshot`] reads a state from before every running writer. Its reads never wait and never
//! conflict with others, and they do not affect writers.
//!
//! Use a fresh transaction to see what another has just committed. Use a safe snapshot for long reports, or where the
//! result must not depend on when it is read.
//!
//! # Errors and trying again
//!
//! The message of an [`Error`] says what happened, what is still true and what to do. A call that failed has changed
//! nothing, unless its message says otherwise. [`Error::is_retryable`] returns whether the whole transaction can
//! succeed when it runs again. [`Database::run`] runs it again by itself, so its closure may run several times.
//! [`Retry`] does so for a loop of your own. [`ConflictPolicy`] says how long a call waits for a lock: a second by
//! default.
//!
//! # Medium
//!
//! | [`Options::medium`] | what it is | choose it for |
//! | --- | --- | --- |
//! | [`MediumKind::File`] (default) | a file in the database's directory | disks and SSDs |
//! | [`MediumKind::Dax`] | the same file, on persistent memory mounted with `dax=always` | persistent memory; every commit is durable |
//! | [`MediumKind::Dram`] | memory, freed with the last handle | tests, caches |
//! | [`Options::custom_medium`] | a medium of another crate | see [`media`] |
//!
//! # Space
//!
//! Old versions are garbage once no transaction can see them. The collector frees them in whole blocks, a little
//! after each commit, and gives empty space back to the system. An open transaction holds garbage back: while it
//! runs, every version that it may read stays. It also holds back 16 to 64 bytes of memory for each row that others
//! change meanwhile, however often they change it. [`GcOptions`] sets how eagerly the collector works,
//! [`Options::max_bytes`] limits the medium, and [`Database::stats`] counts what is live, obsolete and free.
//!
//! # Limits
//!
//! | what | limit |
//! | --- | --- |
//! | transactions open at once | 1,024, of which 960 may write |
//! | rows written by one transaction | 16,777,215, pieces of values out of line included |
//! | row, without its values out of line (long values move there) | 65,535 bytes |
//! | value out of line | 4 GB |
//! | index key, encoded | 3,064 bytes |
//! | rows of a table | 2^40 |
//! | columns of a table | about 1,400, as many as fit into its definition |
//! | definition of a table, encoded | 60,000 bytes |
//! | changes of a table's layout | 255 |
//! | medium | 1 TiB of address space |
//!
//! Indexes are kept in memory: about 28 bytes for each row of a table with one index.
//!
//! # Threads and processes
//!
//! [`Database`], [`Table`] and [`Index`] are handles: cloning them is cheap, and any number of threads can use them.
//! A [`Transaction`] can move to another thread, but one thread uses it at a time. Only one process at a time can
//! open a database to write, and only once; a second opening fails with [`Error::AlreadyOpen`]. Any number of
//! processes can open the database to read it, with or without a process that writes ([`Database::open_read_only`]).
//! After a fork, the child process must not use it, nor drop it: the threads that dropping waits for are the parent's.
//!
//! ```
//! # use pantile::*;
//! fn shared<T: Clone + Send + Sync>() {}
//! fn movable<T: Send>() {}
//! (shared::<Database>(), shared::<Table>(), shared::<Index>(), movable::<Transaction>());
//! ```
//!
//! # Platform and features
//!
//! Pantile is tested on Linux on x86-64. These features are off by default:
//!
//! | feature | adds |
//! | --- | --- |
//! | `derive` | `#[derive(Record)]`: structs as rows |
//! | `serde` | `Table::serialize` and `Row::deserialize`; statistics and reports are serializable |
//! | `anyhow` | closures of [`Database::run`] may fail with `anyhow::Error` |
//!
//! The format on the medium may change until version 1.
//!
//! # More to read
//!
//! In the repository, `docs/guide` is a guide in the order of a user's questions, and `crates/pantile/examples` has
//! whole programs. `docs/design.md` explains why the engine is correct, `docs/isolation.md` isolation and conflicts,
//! `docs/rows.md` values, structs and conversions, `docs/format.md` the bytes on the medium, and
//! `docs/architecture.md` the code.

mod api;
mod engine;
pub mod tools;
mod transactions;
mod types;

/// What the code generated by `#[derive(Record)]` calls.
#[doc(hidden)]
pub mod derived {
    pub use crate::types::derived::*;
}

pub use api::all_prepared::PreparedTransaction;
pub use api::bulk::BulkError;
pub use api::database::Database;
pub use api::migrations::{Migration, Migrations};
pub use api::typed::TypedTable;
pub use engine::table::{Index, Table};
#[cfg(feature = "derive")]
pub use pantile_derive::Record;
pub use transactions::cursor::Cursor;
pub use transactions::in_flight::InFlight;
pub use transactions::retry::Retry;
pub use transactions::row_edit::RowEdit;
pub use transactions::savepoint::Savepoint;
pub use transactions::scan::Scan;
pub use transactions::transaction::Transaction;
pub use types::columns::ColumnRef;
pub use types::error::{Conflict, Error, Holding, Result};
pub use types::exclusive_stage::ExclusiveStage;
pub use types::from_value::{FromValue, Misfit};
pub use types::index_progress::IndexProgress;
pub use types::isolation::Isolation;
pub use types::options::{MediumKind, Options, Progress, RecoveryStep};
pub use types::owned_value::OwnedValue;
pub use types::pieces::Pieces;
pub use types::position::Position;
pub use types::range::Range;
pub use types::record::{Field, Record};
pub use types::row::Row;
pub use types::row_id::RowId;
pub use types::running::{EndedBy, OnPinned, OpenTransaction, TransactionId};
pub use types::schema::{ColumnDef, IndexDef, TableDef, Type};
pub use types::table_change::TableChange;
pub use types::transaction_error::TransactionError;
pub use types::transaction_options::{ConflictPolicy, TransactionOptions};
pub use types::value::{Decimal, Micros, ParseDecimalError, Value};

/// Orders transactions: a later one has a greater timestamp.
///
/// ```
/// # use pantile::*;
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// let first = db.begin()?.commit()?;
/// let second = db.begin()?.commit()?;
/// assert!(Timestamp::ZERO < first && first < second);
/// # Ok::<(), Error>(())
/// ```
pub use pantile_base::Timestamp;
/// When a commit returns, and what a power failure can then lose.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// use pantile::{Durability, Options};
/// let db = Options::new().durability(Durability::Group).open(dir.path())?;
/// # Ok::<(), pantile::Error>(())
/// ```
pub use pantile_media::Durability;
pub use pantile_reclaim::Collector;
/// How eagerly the collector frees space.
///
/// ```
/// # use pantile::*;
/// let gc = GcOptions { space_target: 1.1, pacing: Pacing::Adaptive, ..GcOptions::default() };
/// let db = Options::new().medium(MediumKind::Dram).gc(gc).open("unused")?;
/// # Ok::<(), Error>(())
/// ```
pub use pantile_reclaim::GcOptions;
pub use pantile_reclaim::Pacing;

#[doc(no_inline)]
pub use lab::SimulatedTime;
#[doc(no_inline)]
pub use media::{Medium, MediumExt};
#[doc(no_inline)]
pub use stats::Stats;
#[doc(no_inline)]
pub use tools::{BackupOptions, CheckOptions, check, inspect, restore, salvage};

/// Counters and measurements of a database.
///
/// ```
/// use pantile::{Database, Stats, stats::{Chains, CollectorStats, MediumStats, Recovery, TableSpace}};
/// # use pantile::{MediumKind, Options, TableDef, Type};
/// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # let pets = db.create_table(TableDef::new("pets").column("id", Type::U32).primary_key(["id"]))?;
/// db.run(|txn| txn.insert(&pets, &[1u32.into()]))?;
///
/// let stats: Stats = db.stats();
/// assert!(stats.obsolete_bytes + stats.free_bytes <= stats.medium_bytes);
/// let medium: MediumStats = stats.medium;
/// assert!(medium.bytes_written > 0);
/// let collector: CollectorStats = stats.collector;
/// assert_eq!(collector.blocks_reclaimed, 0);
///
/// let spaces: Vec<TableSpace> = db.space_by_table();
/// assert!(spaces.iter().any(|space| space.table == "pets" && space.contents == 1));
/// let chains: Chains = db.chains(1000);
/// assert_eq!(chains.max, 1);
/// let recovery: Recovery = db.recovery();
/// assert_eq!(recovery.tuples, 0);
/// # Ok::<(), pantile::Error>(())
/// ```
pub mod stats {
    pub use pantile_media::MediumStats;
    pub use pantile_reclaim::{CollectorStats, Compaction};

    pub use crate::types::figures::{Figures, History, Sample};
    pub use crate::types::memory::MemoryUse;
    pub use crate::types::page::{Page, PageReader, PageTransaction};
    pub use crate::types::stats::{
        BlocksInState, Chains, HeldOfTable, IndexParts, ReadingProcess, Recovery, RunningTransaction, Stats,
        TableParts, TableSpace,
    };
    pub use crate::types::verified::{DamagedRow, Verified};
}

/// The medium beneath a database, and media of other crates.
///
/// An application needs none of this. A crate that offers a medium depends on the crate `pantile-media`, which has
/// the parts that media are made of. It implements [`MediumFactory`](media::MediumFactory) and the unsafe trait
/// [`Medium`]. [`Options::custom_medium`] takes the factory.
///
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use pantile::Options;
/// use pantile::media::{Medium, MediumFactory};
/// use pantile_media::{DirectoryOptions, DramMedium, MediumError};
///
/// /// Memory that takes no more than 100 MB.
/// #[derive(Debug)]
/// struct SmallMemory;
///
/// impl MediumFactory for SmallMemory {
///     fn open(&self, _: &Path, options: DirectoryOptions) -> Result<Arc<dyn Medium>, MediumError> {
///         let map = pantile_media::MapOptions { max_bytes: Some(100 << 20), ..options.map };
///         Ok(DramMedium::new(map)?)
///     }
/// }
///
/// let db = Options::new().custom_medium(SmallMemory).open("unused")?;
/// assert_eq!(db.medium().limit, 100 << 20);
/// # Ok::<(), pantile::Error>(())
/// ```
pub mod media {
    pub use pantile_media::{Facts, Medium, MediumExt, MediumFactory};
}

/// Tools for tests and measurements.
///
/// They are time that a program controls, the source of timestamps, the entries of indexes, and the medium beneath a
/// database.
///
/// ```
/// use std::time::Duration;
/// use pantile::lab::{ClockSource, SimulatedTime};
/// use pantile::{MediumKind, Options};
/// let time = SimulatedTime::default();
/// let db = Options::new().medium(MediumKind::Dram).simulated_time(time.clone()).open("unused")?;
/// assert_eq!(db.clock_source(), ClockSource::SharedCounter);
/// let report = db.begin_read()?;
/// time.advance(Duration::from_secs(3600));
/// assert!(report.age() > Duration::from_secs(3599));
/// # Ok::<(), pantile::Error>(())
/// ```
pub mod lab {
    pub use pantile_cc::{ClockSource, Protocol, Reads, SimulatedTime};

    pub use crate::api::database::{medium_of, take_ahead};
    pub use crate::api::measuring::index_entries;
}
