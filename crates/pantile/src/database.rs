//! The database: opening, beginning transactions, closing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::control::{Control, is_removed};
use pantile_base::limits::{BLOCK_SLOTS, TRANSACTION_SLOTS};
use pantile_base::sync::atomic::Ordering;
use pantile_base::sync::{Instant, thread};
use pantile_cc::Clock;
use pantile_media::{
    Create, DaxMedium, DaxOptions, DirectoryOptions, DramMedium, Durability, FileMedium, FileOptions,
    MapOptions, Medium, MediumExt, NvmMedium,
};
use pantile_store::{Store, StoreOptions, TableBlocks};

use crate::background::Background;
use crate::core::{Core, Parts, from_medium, from_store};
use crate::error::{Error, Result};
use crate::options::{MediumKind, Options, TransactionOptions};
use crate::recovery;
use crate::stats::{Chains, Recovery, Stats, TableSpace};
use crate::table::Table;
use crate::transaction::Transaction;

/// Tries that [`Database::run`] makes before it gives up.
const RUN_TRIES: u32 = 1000;

/// Tries after there was no space.
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
    /// Goes first: it works with the core.
    background: Option<Arc<Background>>,
    pub(crate) core: Arc<Core>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("options", &self.core.options)
            .field("background", &self.background.is_some())
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the database in the directory `path` with default options, or
    /// makes it.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Options::new().open(path)
    }

    pub(crate) fn open_with(path: &Path, options: Options) -> Result<Self> {
        let began = Instant::now();
        let medium = match &options.on_medium {
            Some(medium) => Arc::clone(medium),
            None => open_medium(path, &options)?,
        };
        let store_options = StoreOptions {
            streams: options
                .streams
                .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)),
            block_slots: options.block_slots.unwrap_or(BLOCK_SLOTS as u32),
            boot: boot_id(&options),
            relaxed: options.durability == Durability::None
                && options.medium != MediumKind::Dax
                && medium.facts().survives_exit,
            layout: options.collector.layout(),
        };
        let in_path = |e| from_store(e, path);
        let store = Store::open(medium, store_options, identity(&options)).map_err(in_path)?;
        let (found, summary) = recovery::scan(&store, &options).map_err(in_path)?;
        let reclaimer = options.collector.build(options.gc, store_options.streams);
        // Timestamps go on above everything on the medium (T5).
        let highest = if is_removed(Control::ClockGoesOn) { 0 } else { summary.highest.tick() };
        let clock = match options.simulated_time.clone() {
            Some(time) => Clock::simulated(highest, time),
            None => Clock::new(highest),
        };
        let mut core = Core::new(Parts { options, store, clock, reclaimer });
        core.recover_tables(&found, summary, began)?;
        let preallocate = core.options.preallocate;
        core.store.medium().preallocate(preallocate).map_err(from_medium)?;
        // What recovery has decided is durable before anything is added.
        core.record_state(false)?;
        core.release_dropped();
        core.reclaimer.resume(&core.store);
        let core = Arc::new(core);
        Ok(Self { background: Background::of(&core)?.map(Arc::new), core })
    }

    /// Begins a serializable read-write transaction.
    ///
    /// # Errors
    /// [`Error::TooManyTransactions`], [`Error::Closed`].
    pub fn begin(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default())
    }

    /// Begins a transaction.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_with(&self, options: TransactionOptions) -> Result<Transaction> {
        Transaction::begin(Arc::clone(&self.core), options)
    }

    /// Begins a serializable read-only transaction that sees every commit
    /// acknowledged before this call. It leaves marks that can make older
    /// writers fail, and waits for older writers of what it reads.
    ///
    /// # Errors
    /// As [`Database::begin`].
    pub fn begin_read(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default().read_only(true))
    }

    /// Begins a read-only transaction at the newest safe snapshot: older than
    /// every running writer. It never fails because of others, never waits,
    /// leaves no marks, and [`Transaction::age`] tells how old its state is.
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
    pub fn begin_safe_snapshot(&self) -> Result<Transaction> {
        self.begin_with(TransactionOptions::default().safe_snapshot())
    }

    /// Runs a transaction and commits it, again from the beginning as long as
    /// others stand in its way.
    ///
    /// # Errors
    /// What `body` or the commit returns, unless [`Error::is_retryable`];
    /// after a thousand tries that too.
    pub fn run<T>(&self, body: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.run_with(TransactionOptions::default(), body)
    }

    /// As [`Database::run`], with options.
    ///
    /// # Errors
    /// As [`Database::run`].
    pub fn run_with<T>(
        &self,
        options: TransactionOptions,
        mut body: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let mut retry = self.retry();
        let mut full_tries = 0;
        loop {
            let outcome = self.begin_with(options).and_then(|mut txn| {
                let value = body(&mut txn)?;
                txn.commit().map(|_| value)
            });
            match outcome {
                Err(error) if retry.tries() < RUN_TRIES && retry.again(&error) => {}
                // The collector has been at work since.
                Err(Error::StorageFull { .. }) if full_tries < FULL_TRIES => full_tries += 1,
                other => return other,
            }
        }
    }

    /// A table by name.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`].
    pub fn table(&self, name: &str) -> Result<Table> {
        self.core.check_open()?;
        self.core.table(name)
    }

    /// The names of all tables, in order.
    pub fn tables(&self) -> Vec<String> {
        self.core.tables.read().keys().cloned().collect()
    }

    /// The medium, on which a database in DRAM can be opened again.
    pub fn medium(&self) -> Arc<dyn Medium> {
        Arc::clone(self.core.store.medium())
    }

    /// What opening took.
    pub fn recovery(&self) -> Recovery {
        self.core.recovery
    }

    /// Where timestamps come from.
    pub fn clock_source(&self) -> pantile_cc::ClockSource {
        self.core.registry.clock().source()
    }

    /// Counters and gauges. Adds up over all tables and blocks, so not for
    /// every transaction.
    pub fn stats(&self) -> Stats {
        let core = &self.core;
        let space = core.store.space();
        // Not under the lock of the tables: a collector at work waits for it.
        let tables: Vec<_> = core.by_id.read().values().cloned().collect();
        let index_bytes = tables.iter().map(|t| t.index_bytes()).sum::<u64>();
        let anchor_bytes = tables.iter().map(|t| t.tuples_end() * 8).sum::<u64>();
        let collector = core.reclaimer.stats(&core.store);
        let mut stats = Stats {
            running: core.registry.running() as u64,
            contents_written: space.contents_appended,
            payload_bytes: space.payload_bytes,
            medium: core.store.medium().stats(),
            medium_bytes: space.medium_bytes,
            obsolete_bytes: space.obsolete_bytes,
            unfilled_bytes: space.unfilled_bytes,
            free_bytes: space.free_block_bytes + space.free_chunk_bytes,
            dram_bytes: index_bytes
                + anchor_bytes
                + space.tile_bytes
                + core.marks.bytes()
                + collector.queue_bytes,
            index_bytes,
            anchor_bytes,
            tile_bytes: space.tile_bytes,
            stale_entries: core.cleanup.len() as u64,
            collector,
            ..Stats::default()
        };
        core.counters.add_to(&mut stats);
        stats
    }

    /// What each table takes on the medium, hidden ones included. Looks at
    /// every block.
    pub fn space_by_table(&self) -> Vec<TableSpace> {
        let tables = self.core.store.space_by_table();
        let named = tables.into_iter().filter_map(|(id, blocks)| {
            let table = self.core.table_by_id(id)?.schema.name.clone();
            let TableBlocks { blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes } = blocks;
            Some(TableSpace { table, blocks, open_blocks, bytes, contents, obsolete, obsolete_bytes })
        });
        named.collect()
    }

    /// How long the chains of versions are, from about `samples` tuples of
    /// each table.
    pub fn chains(&self, samples: u64) -> Chains {
        let core = &self.core;
        let space = core.store.space();
        let mut stats = Stats::default();
        core.counters.add_to(&mut stats);
        let mut chains = Chains {
            stored_mean: space.contents_stored as f64 / stats.tuples.max(1) as f64,
            ..Chains::default()
        };
        let tables: Vec<_> = core.by_id.read().values().cloned().collect();
        if let Ok(visitor) = core.visitor() {
            for table in tables {
                visitor.measure_chains(&table, (table.tuples_end() / samples.max(1)).max(1), &mut chains);
            }
        }
        chains.mean /= chains.tuples.max(1) as f64;
        chains
    }

    /// Closes the database: later calls on any handle fail with
    /// [`Error::Closed`]. Waits for running transactions to end, at most ten
    /// seconds.
    ///
    /// # Errors
    /// [`Error::Timeout`] if some are still running, the database stays open
    /// then; [`Error::MediumFailed`] and the like if the last state cannot be
    /// recorded: nothing that was acknowledged is lost, the next opening takes
    /// longer.
    pub fn close(self) -> Result<()> {
        self.core.close(Duration::from_secs(10))
    }
}

impl Core {
    fn close(&self, limit: Duration) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(Error::Closed);
        }
        let clock = self.registry.clock();
        let deadline = clock.elapsed() + limit;
        while self.registry.running() > 0 {
            if clock.elapsed() >= deadline {
                self.closed.store(false, Ordering::Release);
                return Err(Error::Timeout(limit));
            }
            clock.sleep(Duration::from_millis(1));
        }
        self.record_state(true)
    }
}

#[cfg(pantile_shuttle)]
impl Database {
    /// For models: what a thread does that has found no space, once.
    pub fn collect_hard(&self) {
        self.core.collect_hard();
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        // Only the last handle gets here. What fails now costs the next
        // opening some time, and nothing else.
        if !self.closed.load(Ordering::Acquire) {
            let _ = self.close(Duration::ZERO);
        }
    }
}

fn open_medium(path: &Path, options: &Options) -> Result<Arc<dyn Medium>> {
    let create = if options.must_exist { Create::MustExist } else { Create::IfMissing };
    let map = MapOptions { max_bytes: options.max_bytes, ..MapOptions::default() };
    let explain_bus_errors = !options.silent_bus_errors;
    let opened: Result<Arc<dyn Medium>, _> = match options.medium {
        MediumKind::File => {
            let file = FileOptions {
                durability: options.durability,
                max_bytes: options.max_bytes,
                create,
                explain_bus_errors,
                ..FileOptions::default()
            };
            FileMedium::open(path, file).map(|m| m as Arc<dyn Medium>)
        }
        MediumKind::Dram => DramMedium::new(map).map(|m| m as Arc<dyn Medium>),
        MediumKind::Dax => {
            let persistent_caches = options.persistent_caches;
            let dax = DaxOptions { map, create, persistent_caches, explain_bus_errors };
            DaxMedium::open(path, dax).map(|m| m as Arc<dyn Medium>)
        }
        MediumKind::Nvm(config) => {
            let nvm = DirectoryOptions { map, create, explain_bus_errors };
            NvmMedium::open(path, config, nvm).map(|m| m as Arc<dyn Medium>)
        }
    };
    opened.map_err(from_medium)
}

/// A number that identifies this boot of the machine. Where the system does
/// not tell, no two are alike: what a machine that stops may take counts as gone.
fn boot_id(options: &Options) -> u64 {
    if options.simulated_time.is_some() {
        return identity(options);
    }
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits = id.chars().filter_map(|digit| digit.to_digit(16)).take(16);
    match digits.fold(0, |n, digit| n << 4 | u64::from(digit)) {
        0 => identity(options),
        boot => boot,
    }
}

/// A number that no other database has; simulated, one for each time.
fn identity(options: &Options) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    match &options.simulated_time {
        Some(time) => time.now().as_nanos() as u64,
        None => RandomState::new().hash_one(std::time::SystemTime::now()),
    }
}

const _: () = assert!(TRANSACTION_SLOTS < 0xfffe, "an anchor's owner has 16 bits, and two names are taken");
