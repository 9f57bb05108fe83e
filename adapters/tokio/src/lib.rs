//! Pantile in async programs, without blocking tokio's workers.
//!
//! A call of the database may wait: for a lock, for a page of the data file, for a sync. [`AsyncDatabase`] makes such
//! calls on tokio's blocking threads, on a bounded number at a time. A transaction holds a thread only until it is
//! visible; its task then waits for the sync without one. So a few threads serve many tasks, and one task can have many
//! commits in flight.
//!
//! ```
//! use futures::TryStreamExt;
//! use pantile::{Database, Range, TableDef, TransactionOptions, Type};
//! use pantile_tokio::AsyncDatabase;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let dir = tempfile::tempdir()?;
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let path = dir.path().to_owned();
//! let db = AsyncDatabase::open(move || Database::open(path)).await?;
//! let def = TableDef::new("log").column("id", Type::U64).primary_key(["id"]);
//! let log = db.call(move |db| db.create_table(def)).await??;
//!
//! // Durable when it returns.
//! let table = log.clone();
//! db.run(move |txn| txn.insert(&table, &[1u64.into()])).await?;
//!
//! // Row by row, as fast as the program takes them.
//! let options = TransactionOptions::new().read_only(true);
//! let rows = db.scan(options, move |txn| txn.cursor(&log, Range::all()), |row| row.get::<u64>("id"));
//! assert_eq!(rows.try_collect::<Vec<_>>().await?, [1]);
//! db.close().await?;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! # Cancellation
//!
//! The future of a call can be dropped at any time. The call has then never begun, or it ends whole: a transaction is
//! never half done. A call that has begun is not stopped, and a transaction that is dropped before it has returned may
//! commit, as one whose client has gone away may. A task that must know whether it has reads the database.
//!
//! # Runtime
//!
//! Calls need a tokio runtime, of either flavour. A runtime that is shut down ends what has begun and drops what has
//! not; a future that another runtime still polls then fails with [`Error::Closed`].

mod stream;

use std::panic::resume_unwind;
use std::sync::Arc;

use pantile::{Database, Error, InFlight, Result, Transaction, TransactionError, TransactionOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, spawn_blocking};

pub use stream::RowStream;

/// Threads at a time, if the program does not say. Commits need a thread for microseconds; reads of a data file that
/// is longer than memory wait for the device.
const THREADS: u32 = 16;

/// A [`Database`] whose calls are futures. Cloning it is cheap; clones share the threads.
#[derive(Clone, Debug)]
pub struct AsyncDatabase {
    db: Database,
    free: Arc<Semaphore>,
    threads: u32,
}

impl AsyncDatabase {
    /// Uses a database that is open, on at most 16 threads at a time.
    pub fn new(db: Database) -> Self {
        Self::with_threads(db, THREADS)
    }

    /// Uses a database that is open, on at most `threads` threads at a time.
    ///
    /// # Panics
    /// If `threads` is 0.
    pub fn with_threads(db: Database, threads: u32) -> Self {
        assert!(threads > 0, "a database needs a thread to run on");
        Self { db, free: Arc::new(Semaphore::new(threads as usize)), threads }
    }

    /// Opens a database on a blocking thread.
    ///
    /// # Errors
    /// Those of `open`.
    pub async fn open(open: impl FnOnce() -> Result<Database> + Send + 'static) -> Result<Self> {
        on_thread(open).await?.map(Self::new)
    }

    /// The database itself. Its calls block; [`AsyncDatabase::call`] is for those that take long.
    pub fn database(&self) -> &Database {
        &self.db
    }

    /// Makes a call of the database on a blocking thread: one that creates a table, copies a backup or compacts.
    ///
    /// # Errors
    /// [`Error::Closed`] if the runtime is shut down: the call has not begun then.
    ///
    /// # Panics
    /// If `work` panics.
    pub async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Database) -> T + Send + 'static,
    ) -> Result<T> {
        let turn = self.turn(1).await;
        let db = self.db.clone();
        on_thread(move || {
            let _turn = turn;
            work(&db)
        })
        .await
    }

    /// Runs `body` in a transaction and commits it, as [`Database::run`] does, and returns when it is durable.
    ///
    /// # Errors
    /// As [`Database::run`], and [`AsyncDatabase::call`].
    ///
    /// # Panics
    /// If `body` panics. The transaction is rolled back.
    pub async fn run<T: Send + 'static, E: TransactionError + Send + 'static>(
        &self,
        body: impl FnMut(&mut Transaction) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        self.run_with(TransactionOptions::new(), body).await
    }

    /// Like [`AsyncDatabase::run`], with options.
    ///
    /// # Errors
    /// As [`AsyncDatabase::run`].
    ///
    /// # Panics
    /// As [`AsyncDatabase::run`].
    pub async fn run_with<T: Send + 'static, E: TransactionError + Send + 'static>(
        &self,
        options: TransactionOptions,
        body: impl FnMut(&mut Transaction) -> Result<T, E> + Send + 'static,
    ) -> Result<T, E> {
        let (value, commit) = self.publish(options, body).await?;
        commit.await?;
        Ok(value)
    }

    /// Like [`AsyncDatabase::run_with`], but returns as soon as the writes are visible. Awaiting the [`InFlight`]
    /// returns whether they are durable; nothing may be acknowledged before. A task that publishes again before it
    /// awaits has many commits in flight, and they share syncs.
    ///
    /// A database without its [worker](pantile::Options::worker) has no thread that waits for syncs: awaiting the
    /// commit then blocks.
    ///
    /// # Errors
    /// As [`AsyncDatabase::run`].
    ///
    /// # Panics
    /// As [`AsyncDatabase::run`].
    pub async fn publish<T: Send + 'static, E: TransactionError + Send + 'static>(
        &self,
        options: TransactionOptions,
        body: impl FnMut(&mut Transaction) -> Result<T, E> + Send + 'static,
    ) -> Result<(T, InFlight), E> {
        self.call(move |db| db.run_and_publish(options, body)).await?
    }

    /// Closes the database when the calls before this one have ended. Calls after it fail with [`Error::Closed`].
    ///
    /// # Errors
    /// As [`Database::close`]. An open [`RowStream`] is a running transaction.
    pub async fn close(self) -> Result<()> {
        let turn = self.turn(self.threads).await;
        on_thread(move || {
            let _turn = turn;
            self.db.close()
        })
        .await?
    }

    /// Waits for so many of the threads; calls get them in the order in which they ask.
    async fn turn(&self, threads: u32) -> OwnedSemaphorePermit {
        let free = Arc::clone(&self.free);
        free.acquire_many_owned(threads).await.expect("nothing closes the semaphore")
    }
}

/// Work on a blocking thread. Where tokio has no thread for it yet, and it is dropped, it never begins. Aborting leaves
/// what has begun.
struct OnThread<T>(JoinHandle<T>);

impl<T> Drop for OnThread<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let mut work = OnThread(spawn_blocking(work));
    match (&mut work.0).await {
        Ok(value) => Ok(value),
        Err(ended) if ended.is_panic() => resume_unwind(ended.into_panic()),
        Err(_) => Err(Error::Closed),
    }
}
