//! The database as callers hold it: beginning transactions, closing.

use std::ops::ControlFlow;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pantile_cc::ClockSource;
use pantile_media::{Facts, Medium};
use pantile_reclaim::Compaction;

use crate::api::all_prepared::AllPrepared;
use crate::api::{opening, reading};
use crate::engine::alarm::Due;
use crate::engine::core::Core;
use crate::engine::failure::from_medium;
use crate::engine::reader_processes::ReaderProcesses;
use crate::engine::seats::Seats;
use crate::engine::syncer::LastCommits;
use crate::engine::table::Table;
use crate::engine::worker::Worker;
use crate::transactions::in_flight::InFlight;
use crate::transactions::retry::Retry;
use crate::transactions::transaction::Transaction;
use crate::types::error::{Error, Result};
use crate::types::options::Options;
use crate::types::stats::Recovery;
use crate::types::transaction_error::TransactionError;
use crate::types::transaction_options::TransactionOptions;

/// Tries after a transaction found no space.
const FULL_TRIES: u32 = 8;

/// An open database. Handles are cheap to clone; the last one closes it.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("shop");
/// use pantile::{Database, TableDef, Type};
/// let db = Database::open(&path)?;
/// let stock = db.create_table(
///     TableDef::new("stock").column("item", Type::U32).column("pieces", Type::I64).primary_key(["item"]),
/// )?;
/// db.run(|txn| txn.insert(&stock, &[7u32.into(), 100i64.into()]))?;
/// let pieces: i64 = db.run(|txn| txn.get(&stock, &[7u32.into()])?.expect("just inserted").get(1))?;
/// assert_eq!(pieces, 100);
/// db.close()?;
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone)]
pub struct Database {
    // Fields are dropped in this order: the last handle ends the threads that
    // use the core before it lets go of the core.
    pub(crate) worker: Option<Arc<Worker>>,
    pub(crate) readers: Option<Arc<ReaderProcesses>>,
    _last_commits: Arc<LastCommits>,
    // It closes the core if transactions still run: the last commits are over then.
    pub(crate) prepared: Arc<AllPrepared>,
    pub(crate) seats: Arc<Seats>,
    pub(crate) core: Arc<Core>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("options", &self.core.options)
            .field("worker", &self.worker.is_some())
            .field("readers", &self.readers.is_some())
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Starts the threads of an open database.
    fn over(core: Arc<Core>) -> Self {
        let worker = Worker::start(&core).map(Arc::new);
        let (readers, seats) = (ReaderProcesses::start(&core).map(Arc::new), Arc::new(Seats::new(&core)));
        let last_commits = Arc::new(core.syncer.last_commits());
        Self { worker, readers, _last_commits: last_commits, prepared: Arc::default(), seats, core }
    }

    /// Opens the database in the directory `path` with default options, or
    /// creates it.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    /// Opens the database in the directory `path` for reading only.
    ///
    /// Another process may have it open and write meanwhile. See [`Options::open_read_only`].
    ///
    /// # Errors
    /// As [`Options::open_read_only`].
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open_read_only(path)
    }

    /// Begins a serializable read-write transaction.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`], [`Error::Closed`].
    #[track_caller]
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`Database::begin`].
    #[track_caller]
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        let is_read_only = self.core.options.is_read_only();
        let options = if is_read_only { options.read_only(true) } else { options };
        Transaction::begin(self.seats.own(), options, Location::caller())
    }

    /// Begins a serializable read-only transaction.
    ///
    /// It sees every commit acknowledged before this call. It does not fail because of what others
    /// write, except rows of a prepared transaction (`docs/isolation.md` in the repository), and waits
    /// only for commits that are being decided or made durable. Its reads leave
    /// marks: an older writer that changes what was read commits at a later timestamp, or starts
    /// again. The transaction fails if all transaction slots are in use, and when it uses a table
    /// that was dropped or truncated after this call.
    ///
    /// Transactions are ordered by when they begin. So this transaction may also see a later commit
    /// of a serializable writer that was open at this call: all of it, unless this transaction has
    /// already read something that the writer changes. To read a state that was complete at the
    /// call, use [`Database::begin_safe_snapshot`].
    ///
    /// With [`Options::writers_move(false)`](crate::Options::writers_move), a read waits for an
    /// older writer that has locked the row. It waits as long as the
    /// [`ConflictPolicy`](crate::ConflictPolicy) allows, and then fails with [`Error::Conflict`].
    ///
    /// # Errors
    /// As [`Database::begin`].
    #[track_caller]
    pub fn begin_read(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default().read_only(true))
    }

    /// Whether the database shows every commit that was acknowledged when it was opened.
    ///
    /// This is false only after [`Options::open_read_only`] beside another process, if commits were
    /// made there while another transaction went on writing. To see them, open the database again
    /// when that transaction has ended.
    pub fn is_current(&self) -> bool {
        self.core.options.beside().is_none_or(|beside| beside.is_current)
    }

    /// Begins a read-only transaction at the newest safe snapshot.
    ///
    /// The snapshot is older than every running writer, so nothing can be committed before it any
    /// more. It shows the commits that were acknowledged before this call, up to the beginning of
    /// the oldest of those writers. Its reads never wait, never fail because of other transactions,
    /// and leave no marks. [`Transaction::age`] returns the age of the snapshot.
    ///
    /// # Errors
    /// As [`Database::begin`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let writer = db.begin()?;
    /// let report = db.begin_safe_snapshot()?;
    /// assert!(report.timestamp() < writer.timestamp());
    /// println!("the report is {:?} old", report.age());
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn begin_safe_snapshot(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default().safe_snapshot())
    }

    /// Begins a [`Retry`], for a retry loop of your own.
    pub fn retry(&self) -> Retry<'_> {
        Retry::new(&self.core)
    }

    /// Runs `body` in a transaction and commits it.
    ///
    /// If `body` fails, the transaction is rolled back. If the transaction conflicts with others,
    /// `body` runs again from the beginning.
    ///
    /// `body` can fail with [`Error`], or with any other type that implements [`TransactionError`].
    /// If `body` ends with `Ok(…)` and `?` follows the call, the compiler cannot infer the type.
    /// Then write `Ok::<_, Error>(…)`.
    ///
    /// # Errors
    /// The error of `body` or of the commit, unless the transaction
    /// [can be run again](Error::is_retryable). Such an error is returned once the time of
    /// [`Options::retry_for`] is over, 30 seconds by default. After [`Error::StorageFull`] the
    /// transaction is run again up to eight times.
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let t = db.create_table(TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert(&t, &[1u64.into(), 5i64.into()]))?;
    /// let doubled = db.run(|txn| {
    ///     let n = txn.get(&t, &[1u64.into()])?.expect("a row").get::<i64>("n")?;
    ///     txn.update(&t, &[1u64.into()], &[("n", (2 * n).into())])?;
    ///     Ok::<_, Error>(2 * n)
    /// })?;
    /// assert_eq!(doubled, 10);
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn run<T, E: TransactionError>(
        &self,
        body: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.run_with(TransactionOptions::default(), body)
    }

    /// Like [`Database::run`], with options.
    ///
    /// # Errors
    /// As [`Database::run`].
    #[track_caller]
    pub fn run_with<T, E: TransactionError>(
        &self,
        options: TransactionOptions,
        body: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let (value, _) = self.run_until(options, body, Transaction::commit)?;
        Ok(value)
    }

    /// Like [`Database::run_with`], but returns as soon as the writes are visible, before they are durable: one thread
    /// can have many commits in flight. See [`Transaction::publish`].
    ///
    /// # Errors
    /// As [`Database::run`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let log = db.create_table(TableDef::new("log").column("id", Type::U64).primary_key(["id"]))?;
    /// let options = TransactionOptions::new();
    /// let ((), commit) = db.run_and_publish(options, |txn| txn.insert(&log, &[1u64.into()]))?;
    /// assert_eq!(db.begin_read()?.count(&log, Range::all())?, 1);
    /// commit.wait()?;
    /// # Ok::<(), Error>(())
    /// ```
    #[track_caller]
    pub fn run_and_publish<T, E: TransactionError>(
        &self,
        options: TransactionOptions,
        body: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<(T, InFlight), E> {
        self.run_until(options, body, Transaction::publish)
    }

    /// Runs `body` and `end` until both have succeeded, or trying again is of no use.
    #[track_caller]
    fn run_until<T, C, E: TransactionError>(
        &self,
        options: TransactionOptions,
        mut body: impl FnMut(&mut Transaction) -> Result<T, E>,
        end: impl Fn(Transaction) -> Result<C>,
    ) -> Result<(T, C), E> {
        let mut retry = self.retry();
        let mut full_tries = 0;
        loop {
            let outcome = self.begin_with(options).map_err(E::from).and_then(|mut txn| {
                let value = body(&mut txn)?;
                Ok((value, end(txn)?))
            });
            let error = match outcome {
                Ok(ended) => return Ok(ended),
                Err(error) => error,
            };
            match error.of_database() {
                Some(inner) if retry.again(inner) => {}
                // The transaction has made the collector free space when it ended.
                Some(Error::StorageFull { .. }) if full_tries < FULL_TRIES => full_tries += 1,
                _ => return Err(error),
            }
        }
    }

    /// Waits until everything that is visible now is durable: also what was
    /// [published](Transaction::publish), and with [`Durability::None`](crate::Durability::None) all commits. There it
    /// takes some milliseconds, and is the way to make what has been loaded survive a power failure.
    /// It also waits there for commits that are under way. So do not call it from a thread that has
    /// a transaction open for whose locks another one may wait.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::MediumFailed`]; with [`Durability::None`](crate::Durability::None) also
    /// [`Error::TooManyTransactions`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// # let def = TableDef::new("log").column("id", Type::U64).primary_key(["id"]);
    /// # let log = db.create_table(def)?;
    /// for id in 0..100u64 {
    ///     let ((), _left) = db.run_and_publish(TransactionOptions::new(), |txn| txn.insert(&log, &[id.into()]))?;
    /// }
    /// db.sync()?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn sync(&self) -> Result<()> {
        self.core.check_open()?;
        self.core.sync()
    }

    /// A table by name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`].
    pub fn table(&self, name: &str) -> Result<Table> {
        self.core.check_open()?;
        self.core.tables.by_name(name)
    }

    /// The names of all tables, in order.
    pub fn tables(&self) -> Vec<String> {
        self.core.tables.names()
    }

    /// The properties of the medium that do not change while the database is open.
    ///
    /// ```
    /// # use pantile::*;
    /// let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// assert_eq!(db.medium().name, "dram");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn medium(&self) -> &Facts {
        self.core.store.medium().facts()
    }

    /// What opening the database took.
    pub fn recovery(&self) -> Recovery {
        self.core.recovery
    }

    /// Where timestamps come from.
    pub fn clock_source(&self) -> ClockSource {
        self.core.registry.clock().source()
    }

    /// Reduces the space that the database takes to the least that its layout allows.
    ///
    /// The call works beside running transactions. It moves live versions out of every block that
    /// has something obsolete in it, and gives empty space back to the system. While it works, the
    /// copies take space of their own. What writers make obsolete meanwhile is left to the database,
    /// so the call also ends beside writers that never rest.
    ///
    /// Usually this is not necessary: the database keeps its space below
    /// [`GcOptions::space_target`](crate::GcOptions::space_target) by itself.
    ///
    /// Returns what is left to do of what there was at the call: nothing, unless running
    /// transactions still see it. Collectors other than TB-Collect move nothing together; with
    /// them, only dropped tables and empty space are given back.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::TooManyTransactions`], [`Error::MediumFailed`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let db = Options::new().medium(MediumKind::Dram).open("unused")?;
    /// let left = db.compact()?;
    /// assert!(left.is_done());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn compact(&self) -> Result<Compaction> {
        self.compact_with(|_| ControlFlow::Continue(()))
    }

    /// Like [`Database::compact`], and calls `progress` from time to time with what is left to do.
    /// The call stops when `progress` returns `Break`.
    ///
    /// # Errors
    /// As [`Database::compact`].
    pub fn compact_with(&self, progress: impl FnMut(&Compaction) -> ControlFlow<()>) -> Result<Compaction> {
        self.core.compact(progress)
    }

    /// Does one round of the work that follows commits: cleans indexes, frees space, writes a state
    /// record.
    ///
    /// Returns the time after which to call it again, or `None` if there is nothing to do.
    ///
    /// The database does this by itself, in a thread of its own. Call it for a database without
    /// that thread ([`Options::worker`]) in which nothing is committed for a while.
    pub fn upkeep(&self) -> Option<Duration> {
        let due = self.core.round();
        self.core.observe();
        if let Some(making) = self.core.begin_image() {
            self.core.make_image(making);
        }
        match due {
            Due::In(time) => Some(time),
            Due::AfterAnEnd | Due::AfterAWrite => None,
        }
    }

    /// Closes the database. Later calls on any handle fail with [`Error::Closed`]. Its directory can be
    /// opened again once every handle is dropped, clones of other threads included.
    ///
    /// The call first waits for a sync of the worker that is under way. Then it waits for running
    /// transactions to end, at most ten seconds. Meanwhile these can go on and commit, and no new
    /// transaction can begin. If the database takes more space than
    /// [`GcOptions::space_target`](crate::GcOptions::space_target) promises, closing reduces it
    /// first, for at most a second.
    ///
    /// # Errors
    /// [`Error::StillOpen`] with the transactions that have not ended. The database stays open
    /// then. To be able to try again, keep a handle: call `db.clone().close()`.
    /// [`Error::MediumFailed`] and similar if the last state cannot be recorded. The database is
    /// closed then, and no commit that was acknowledged as durable is lost, but the next opening
    /// takes longer.
    pub fn close(self) -> Result<()> {
        self.core.close(Duration::from_secs(10), || self.prepared.let_go(&self.core))
    }
}

/// The medium beneath an open database.
///
/// Use it to open a database in DRAM again after this one is gone, or to look at what a process
/// that is killed now would leave. While the database is open, only the database may write to the
/// medium; see [`Medium`]. Safe code cannot:
///
/// ```compile_fail,E0133
/// # use pantile::*;
/// let db = Options::new().medium(MediumKind::Dram).open("unused").unwrap();
/// lab::medium_of(&db).write(0, b"x");
/// ```
pub fn medium_of(db: &Database) -> Arc<dyn Medium> {
    Arc::clone(db.core.store.medium())
}

/// Makes the medium of an open database take this many bytes more, and keep them until the database is closed,
/// so that the system's work for them is over before something is timed.
///
/// # Errors
/// [`Error::StorageFull`] and others of the medium.
pub fn take_ahead(db: &Database, bytes: u64) -> Result<()> {
    db.core.store.take_ahead(bytes).map_err(from_medium)
}

impl Options {
    /// Opens the database in the directory `path`, or creates it. Media in
    /// DRAM ignore the path.
    ///
    /// # Errors
    /// [`Error::AlreadyOpen`], [`Error::NoDatabase`], [`Error::NotADatabase`],
    /// [`Error::FormatVersion`], [`Error::Damaged`], [`Error::StorageFull`],
    /// [`Error::UnfitMedium`], [`Error::Io`], [`Error::InvalidOption`],
    /// [`Error::IncompleteBackup`], [`Error::IncrementalBackup`]. If the call fails, stored data is
    /// untouched, and files made for a new database are removed.
    pub fn open(self, path: impl AsRef<Path>) -> Result<Database> {
        self.check()?;
        let core = opening::open(path.as_ref(), self)?;
        let db = Database::over(core);
        db.repeat_prepared()?;
        Ok(db)
    }
}

impl Options {
    /// Opens the database in the directory `path` for reading only.
    ///
    /// Another process may have the database open and write to it, or open it later. Either process
    /// can be killed, and any number of processes can read. Writing fails with [`Error::ReadOnly`].
    /// If no other process has the database open, a process that opens it to write waits while this
    /// call scans the contents, at most ten minutes.
    ///
    /// The state is that of a [safe snapshot](Database::begin_safe_snapshot) taken in the writing
    /// process when this one opens. It is older than every transaction that is writing then and
    /// does not end within a tenth of a second; the call waits that long. The state does not change
    /// afterwards: to see later commits, open the database again.
    ///
    /// Opening reads all contents and builds the indexes in this process's memory. As long as the
    /// database is open here, the writing process keeps what this one reads. It gives back no space
    /// that was in use when this process opened the database, and no space of dropped tables. A
    /// process that is killed no longer counts.
    ///
    /// It opens the file at the path. Options of commits, of space and of the medium have no effect.
    /// The writing process needs its
    /// [worker](Options::worker). Both processes must run on one machine, in one network namespace.
    ///
    /// On macOS and Windows no other process may have the database open, and none can open it while
    /// it is read.
    ///
    /// # Errors
    /// [`Error::NoDatabase`]; [`Error::ReadersRefused`] if the process that has it open does not
    /// answer within ten seconds, or [`Error::AlreadyOpen`] instead on macOS and Windows;
    /// [`Error::NotADatabase`], [`Error::FormatVersion`],
    /// [`Error::Damaged`], [`Error::Io`], [`Error::InvalidOption`].
    ///
    /// ```
    /// # use pantile::*;
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let path = dir.path();
    /// let db = Database::open(path)?;
    /// let t = db.create_table(TableDef::new("t").column("id", Type::U32).primary_key(["id"]))?;
    /// db.run(|txn| txn.insert(&t, &[1u32.into()]))?;
    ///
    /// // This could be another process.
    /// let reader = Database::open_read_only(path)?;
    /// db.run(|txn| txn.insert(&t, &[2u32.into()]))?;
    /// let seen = reader.begin_read()?.count(&reader.table("t")?, Range::all())?;
    /// assert_eq!(seen, 1);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn open_read_only(self, path: impl AsRef<Path>) -> Result<Database> {
        self.check()?;
        let core = reading::open(path.as_ref(), self)?;
        Ok(Database::over(core))
    }
}

#[cfg(pantile_shuttle)]
impl Database {
    /// For models: what a thread that has found no space does, once.
    pub fn collect_hard(&self) {
        self.core.collect_hard();
    }
}
