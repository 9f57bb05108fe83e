//! Options of databases and transactions.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use pantile_base::limits::{BLOCK_SLOTS, HEAD_BYTES};
use pantile_base::sync::atomic::{AtomicBool, Ordering};
use pantile_base::sync::thread;
use pantile_cc::{Protocol, SimulatedTime};
use pantile_media::{Durability, MapOptions, Medium, MediumFactory};
use pantile_reclaim::{Collector, GcOptions};
use pantile_store::Beside;

use crate::types::bounds::check_bounds;
use crate::types::error::{Error, Result};
use crate::types::exclusive_stage::ExclusiveStage;
use crate::types::lost::LostParts;
use crate::types::reading::Reading;
use crate::types::running::{OnPinned, PinnedLimits};
use crate::types::transaction_options::ConflictPolicy;

/// Where a database is stored.
///
/// ```
/// use pantile::{MediumKind, Options};
/// let scratch = Options::new().medium(MediumKind::Dram).open("unused")?;
/// assert!(!scratch.medium().survives_exit);
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum MediumKind {
    /// A file in the database's directory.
    #[default]
    File,
    /// Memory, which is freed with the last handle.
    Dram,
    /// Persistent memory: a file in the database's directory, on a file system
    /// that is mounted with `dax=always`. Every acknowledged commit is
    /// durable, whatever [`Options::durability`] says.
    Dax,
}

/// The progress of a long step of opening.
///
/// ```
/// use pantile::{MediumKind, Options, Progress, RecoveryStep};
/// let options = Options::new().medium(MediumKind::Dram).progress(|Progress { step, done, total, .. }| {
///     let what = if step == RecoveryStep::Scan { "bytes read" } else { "tables indexed" };
///     println!("{done} of {total} {what}");
/// });
/// # options.open("unused")?;
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Progress {
    /// The step.
    pub step: RecoveryStep,
    /// How much is done: bytes while scanning, tables while indexing.
    pub done: u64,
    /// How much there is to do in all.
    pub total: u64,
}

/// The steps of recovery; see [`Progress`] for an example.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RecoveryStep {
    /// Reading the medium.
    Scan,
    /// Building the indexes.
    Index,
}

/// Most threads of recovery, and most streams.
const MOST_THREADS: u64 = 1024;

/// The least limit on memory: an empty database takes almost half of it.
const LEAST_MEMORY: u64 = 8 << 20;

/// The least cache of rows.
const LEAST_ROW_CACHE: u64 = 1 << 20;

const BEGIN_WAIT: Duration = Duration::from_secs(10);

const VERIFY_RATE: u64 = 64 << 20;
/// The same where the data is larger than memory: reads wait for the device then.
const VERIFY_RATE_BESIDE_READS: u64 = 1 << 20;

const RETRY_FOR: Duration = Duration::from_secs(30);

type ProgressCall = Arc<dyn Fn(Progress) + Send + Sync>;

/// How to open a database.
///
/// ```
/// use pantile::{Durability, MediumKind, Options};
/// let db = Options::new().medium(MediumKind::Dram).open("unused")?;
/// # Ok::<(), pantile::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Options {
    pub(crate) medium: MediumKind,
    pub(crate) custom_medium: Option<Arc<dyn MediumFactory>>,
    pub(crate) on_medium: Option<Arc<dyn Medium>>,
    pub(crate) durability: Durability,
    pub(crate) persistent_caches: bool,
    pub(crate) silent_bus_errors: bool,
    pub(crate) collector: Collector,
    pub(crate) gc: GcOptions,
    pub(crate) without_worker: bool,
    pub(crate) without_page: bool,
    pub(crate) without_image: bool,
    pub(crate) image_every: Option<u64>,
    pub(crate) verify_reads: bool,
    pub(crate) verify_rate: Option<u64>,
    pub(crate) conflict: ConflictPolicy,
    pub(crate) writers_stay: bool,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) must_exist: bool,
    pub(crate) begin_wait: Option<Duration>,
    pub(crate) exclusive: ExclusiveStage,
    pub(crate) retry_for: Option<Duration>,
    pub(crate) recovery_threads: Option<usize>,
    pub(crate) streams: Option<usize>,
    pub(crate) block_slots: Option<u32>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) preallocate: u64,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) row_cache: Option<u64>,
    pub(crate) pinned: PinnedLimits,
    pub(crate) progress: Option<ProgressCall>,
    pub(crate) simulated_time: Option<SimulatedTime>,
    /// The database is damaged and opened to be read; what is left out goes here.
    pub(crate) salvage: Option<Arc<LostParts>>,
    /// Recovery ends with [`Error::Cancelled`] once this is raised.
    pub(crate) stop: Option<Arc<AtomicBool>>,
    /// Another process may have the database open, or open it.
    pub(crate) reading: Option<Arc<Reading>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("medium", &self.medium)
            .field("custom_medium", &self.custom_medium)
            .field("durability", &self.durability)
            .field("collector", &self.collector)
            .field("conflict", &self.conflict)
            .finish_non_exhaustive()
    }
}

/// The number of cores. The system takes a while to tell it.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

impl Options {
    /// Whether nothing reaches the medium.
    pub(crate) fn is_read_only(&self) -> bool {
        self.salvage.is_some() || self.reading.is_some()
    }

    /// What may be read beside the process that writes.
    pub(crate) fn beside(&self) -> Option<&Beside> {
        self.reading.as_ref()?.beside.as_ref()
    }

    /// The defaults: a file, durable commits, and up to a second of waiting on
    /// conflicts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets where the database is stored.
    #[must_use]
    pub fn medium(mut self, medium: MediumKind) -> Self {
        (self.medium, self.custom_medium) = (medium, None);
        self
    }

    /// Stores the database on a medium of another crate, in the database's directory. Of this and
    /// [`Options::medium`], the last call counts.
    ///
    /// ```
    /// # let dir = tempfile::tempdir().unwrap();
    /// use pantile::Options;
    /// use pantile_nvm::NvmConfig;
    /// let db = Options::new().custom_medium(NvmConfig::OPTANE).open(dir.path())?;
    /// assert_eq!(db.medium().name, "nvm:optane");
    /// # Ok::<(), pantile::Error>(())
    /// ```
    #[must_use]
    pub fn custom_medium(mut self, factory: impl MediumFactory + 'static) -> Self {
        self.medium = MediumKind::default();
        self.custom_medium = Some(Arc::new(factory));
        self
    }

    /// Opens the database on a medium that is already open, for example one in
    /// DRAM that an earlier handle used. While a database uses it, another
    /// opening on it fails with [`Error::AlreadyOpen`].
    #[must_use]
    pub fn on_medium(mut self, medium: Arc<dyn Medium>) -> Self {
        self.on_medium = Some(medium);
        self
    }

    /// Sets when a commit is acknowledged; see [`Durability`].
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether the platform saves the CPU's caches when power fails (eADR). Commits on
    /// [`MediumKind::Dax`] then write no cache lines back. **If the platform does not save them, a
    /// power failure loses acknowledged commits.**
    #[must_use]
    pub fn persistent_caches(mut self, persistent: bool) -> Self {
        self.persistent_caches = persistent;
        self
    }

    /// Whether a failed read of the data file is explained on stderr before
    /// SIGBUS ends the process (the default). This installs a handler of that
    /// signal for the whole process. Signals that do not concern data files go
    /// on to the handler that was there before.
    #[must_use]
    pub fn explain_bus_errors(mut self, explain: bool) -> Self {
        self.silent_bus_errors = !explain;
        self
    }

    /// Sets the collector that frees space.
    #[must_use]
    pub fn collector(mut self, collector: Collector) -> Self {
        self.collector = collector;
        self
    }

    /// Whether the database has a thread that cleans up after commits, frees
    /// space and writes state records (the default). The thread sleeps while there is nothing to
    /// do. Without it, committing threads do all of this, and a database in which nothing is
    /// committed keeps its garbage until the program calls
    /// [`Database::upkeep`](crate::Database::upkeep).
    ///
    /// If the system refuses the thread, the database works as without it.
    #[must_use]
    pub fn worker(mut self, worker: bool) -> Self {
        self.without_worker = !worker;
        self
    }

    /// Whether the database publishes its statistics once a second, in the file
    /// `pantile.stats` beside its data file (the default), for
    /// [`tools::watch`](crate::tools::watch) and the command `pantile top` in other
    /// processes. Closing the database removes the file. Nothing is written while
    /// nothing happens.
    #[must_use]
    pub fn publish_stats(mut self, publish: bool) -> Self {
        self.without_page = !publish;
        self
    }

    /// Whether the database writes index images, and uses one when it is opened (the default).
    ///
    /// An index image is a file beside the data file. With it, the next opening need not read all
    /// data. A row with a short key takes about 12 bytes of the file, and 3 more for each secondary
    /// index; random or long keys take more ([`Stats::image_bytes`](crate::Stats::image_bytes)).
    /// The file holds no rows, and can be removed while the database is closed.
    #[must_use]
    pub fn index_image(mut self, image: bool) -> Self {
        self.without_image = !image;
        self
    }

    /// Sets after how many appended bytes an index image is written while the database is open.
    ///
    /// If the process is killed, the next opening reads what was appended after the last image. By
    /// default an image is written when 20 times its size have been appended. Large images are
    /// written sooner: after 2 GB, or after five times their size if that is more. The first image
    /// is written by the same rule, or earlier, as soon as nothing else is written.
    #[must_use]
    pub fn index_image_every(mut self, bytes: u64) -> Self {
        self.image_every = Some(bytes);
        self
    }

    /// Whether each read verifies the checksum of the version that it returns, and fails with
    /// [`Error::Damaged`] if it does not match.
    ///
    /// By default reads do not verify checksums. [`Database::verify`](crate::Database::verify)
    /// does, and so does opening, unless an index image makes it unnecessary to read all data.
    #[must_use]
    pub fn verify_reads(mut self, verify: bool) -> Self {
        self.verify_reads = verify;
        self
    }

    /// Sets how many bytes per second the database verifies in the background, after it was opened
    /// with an index image.
    ///
    /// With an image, opening does not read all data, so checksums are verified afterwards. The
    /// default is 64 MB, or 1 MB where the data is larger than memory; 0 means not at all.
    /// [`Stats::damaged_contents`](crate::Stats::damaged_contents) counts the damage that is found.
    /// If any was found, the next opening reads and checks the whole database.
    #[must_use]
    pub fn verify_rate(mut self, bytes_per_second: u64) -> Self {
        self.verify_rate = Some(bytes_per_second);
        self
    }

    /// Sets how the collector works.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pantile::{GcOptions, MediumKind, Options};
    /// let gc = GcOptions { epoch: Duration::from_millis(10), ..GcOptions::default() };
    /// let db = Options::new().medium(MediumKind::Dram).gc(gc).open("unused")?;
    /// # Ok::<(), pantile::Error>(())
    /// ```
    #[must_use]
    pub fn gc(mut self, gc: GcOptions) -> Self {
        self.gc = gc;
        self
    }

    /// Sets what transactions do on conflicts, unless their own options say
    /// otherwise.
    #[must_use]
    pub fn conflict(mut self, conflict: ConflictPolicy) -> Self {
        self.conflict = conflict;
        self
    }

    /// Whether a serializable writer moves to a later timestamp when later transactions have read
    /// what it writes (the default).
    ///
    /// The writer then reads again all that it has read, and fails with [`Conflict::ReadChanged`]
    /// only if something of it has changed. Fresh read-only transactions do not wait for a writer
    /// that is still at work.
    ///
    /// Without it writers keep the timestamp at which they began, as in
    /// multi-version timestamp ordering (MVTO): a writer fails with
    /// [`Conflict::ReadByLater`] when a later transaction has read what it
    /// writes, and readers wait for older writers.
    ///
    /// [`Conflict::ReadChanged`]: crate::Conflict::ReadChanged
    /// [`Conflict::ReadByLater`]: crate::Conflict::ReadByLater
    #[must_use]
    pub fn writers_move(mut self, move_: bool) -> Self {
        self.writers_stay = !move_;
        self
    }

    /// Runs transactions under a concurrency control of the laboratory, for comparison. `None`
    /// means the engine's own.
    ///
    /// Every transaction is serializable then, whatever level it asks for, except those at safe
    /// snapshots. No transaction can be [prepared](crate::Database::prepare), and a database with
    /// prepared transactions is refused with [`Error::InvalidOption`]. The lists of rows that
    /// transactions have read are not bounded by [`Options::memory_limit`].
    #[must_use]
    pub fn protocol(mut self, protocol: impl Into<Option<Protocol>>) -> Self {
        self.protocol = protocol.into();
        self
    }

    /// Sets how long a transaction that begins waits for a free transaction slot: 10 seconds by
    /// default.
    ///
    /// There are 1,024 slots, of which transactions that may write can have 960. After this time
    /// the call fails with [`Error::TooManyTransactions`], and so does the definition of a table or
    /// an index. [`Database::run`](crate::Database::run) begins again for as long as
    /// [`Options::retry_for`] says. It also limits how long a writer waits for a transaction that has
    /// the exclusive stage; then it begins.
    #[must_use]
    pub fn begin_wait(mut self, limit: Duration) -> Self {
        self.begin_wait = Some(limit);
        self
    }

    /// Sets how long [`Database::run`](crate::Database::run) and [`Retry`](crate::Retry) try again:
    /// 30 seconds by default. An attempt that has begun is not cut short, and a long transaction is
    /// tried a few times more ([`ExclusiveStage::spent`](crate::ExclusiveStage::spent)).
    #[must_use]
    pub fn retry_for(mut self, limit: Duration) -> Self {
        self.retry_for = Some(limit);
        self
    }

    /// Sets when a transaction runs without other writers; see [`ExclusiveStage`].
    #[must_use]
    pub fn exclusive_stage(mut self, when: ExclusiveStage) -> Self {
        self.exclusive = when;
        self
    }

    /// Whether to create a database where there is none (the default).
    #[must_use]
    pub fn create(mut self, create: bool) -> Self {
        self.must_exist = !create;
        self
    }

    /// Sets the number of threads of recovery, from 1 to 1,024; by default one per core. If the
    /// system refuses threads, recovery uses fewer.
    #[must_use]
    pub fn recovery_threads(mut self, threads: usize) -> Self {
        self.recovery_threads = Some(threads);
        self
    }

    /// Sets how many commits can append at the same time, from 1 to 1,024. The default is one per
    /// core, but only one where commits share syncs, because a sync takes longer the more places
    /// have been written to.
    #[must_use]
    pub fn streams(mut self, streams: usize) -> Self {
        self.streams = Some(streams);
        self
    }

    /// Sets how many contents a block holds: from 1 to 1,920, which is the default. Small blocks
    /// are reclaimed sooner and waste more space. Tests use them to reclaim much in a short time.
    #[must_use]
    pub fn block_slots(mut self, contents: u32) -> Self {
        self.block_slots = Some(contents);
        self
    }

    /// Limits the bytes that the medium may take, from 64 KiB to 1 TiB, which is
    /// the default. Commits beyond the limit fail with [`Error::StorageFull`]. A database whose file
    /// is already larger opens, and its file cannot grow.
    ///
    /// With less than about 16 MB above twice the live bytes, commits may also fail for a moment
    /// while blocks are free: these suit rows of another size, or wait for a state record.
    #[must_use]
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = Some(bytes);
        self
    }

    /// Limits the bytes of DRAM that the database takes, from 8 MB on.
    ///
    /// The limit applies to everything that [`Stats::dram_bytes`](crate::Stats::dram_bytes) counts,
    /// such as indexes, anchors, tiles and buffers. Free index nodes count as used, except those
    /// that the rows being written can use: an index can use only nodes of its own size, which
    /// depends on the length of its keys. The limit does not apply to the system's copies of the
    /// data file. The default is three quarters of what the process may have: the machine's memory,
    /// or the limit of its control group.
    ///
    /// At the limit, statements that would take more fail with [`Error::MemoryFull`]. New rows fail
    /// first, when a sixteenth is left. Then changes of rows fail, and locks of rows by a
    /// transaction that holds 4,096 already. Reads, deletes and commits go on, and so does the
    /// program. Reads fail only in a serializable transaction that may write, if its notes of what
    /// it has read would take more than a megabyte. A database that is already larger can be
    /// opened.
    #[must_use]
    pub fn memory_limit(mut self, bytes: u64) -> Self {
        self.memory_limit = Some(bytes);
        self
    }

    /// Keeps copies of rows that are read often, in this many bytes of DRAM, from 1 MB on. There is
    /// no such cache by default.
    ///
    /// The cache is for databases that are larger than memory and have small rows, few of which are
    /// read often. The system keeps whole pages of 4 KB, of which a row of 100 bytes is a fortieth;
    /// the row cache keeps single rows. But its bytes are no longer available for pages, and
    /// updates become slower. The cache is not used in front of a file that fits into memory. Its
    /// bytes count towards [`Options::memory_limit`], and may be at most half of it. In addition, a
    /// transaction holds up to 1 MB of copies that it has read. Measure before you use the cache:
    /// `docs/performance.md` in the repository has figures that show where it pays and where it
    /// does not.
    ///
    /// A form of CLOCK chooses which rows are kept. The idea is that of the Met-Cache (Zen+, VLDB
    /// Journal 2023, section 3.2).
    ///
    /// ```
    /// # use pantile::{MediumKind, Options};
    /// let db = Options::new().medium(MediumKind::Dram).row_cache(64 << 20).open("unused")?;
    /// assert_eq!(db.stats().row_cache_hits, 0);
    /// # Ok::<(), pantile::Error>(())
    /// ```
    #[must_use]
    pub fn row_cache(mut self, bytes: u64) -> Self {
        self.row_cache = Some(bytes);
        self
    }

    /// Limits how long a transaction may hold back garbage, and sets what the database does about
    /// one that exceeds the limit.
    ///
    /// A transaction that holds back nothing may be of any age. Without a worker
    /// ([`Options::worker`]), only [`Database::upkeep`](crate::Database::upkeep) checks the limit.
    ///
    /// ```
    /// # use pantile::*;
    /// use std::time::Duration;
    /// let options = Options::new()
    ///     .max_pinned_age(Duration::from_secs(60), OnPinned::Warn)
    ///     .max_pinned_bytes(10 << 30, OnPinned::End);
    /// # options.medium(MediumKind::Dram).open("unused")?;
    /// # Ok::<(), Error>(())
    /// ```
    #[must_use]
    pub fn max_pinned_age(mut self, limit: Duration, then: OnPinned) -> Self {
        self.pinned.age = Some((limit, then));
        self
    }

    /// Limits how many bytes of garbage on the medium a transaction may hold back, and sets what
    /// the database does about one that exceeds the limit.
    /// [`RunningTransaction::held_bytes`](crate::stats::RunningTransaction::held_bytes) counts
    /// these bytes. A limit of zero is exceeded by every transaction that holds back anything, and so is
    /// one of [`Options::max_pinned_age`].
    #[must_use]
    pub fn max_pinned_bytes(mut self, limit: u64, then: OnPinned) -> Self {
        self.pinned.bytes = Some((limit, then));
        self
    }

    /// Makes the medium take at least this many bytes when the database is opened, so that a load that follows does not
    /// wait for the system to allocate them. The most is [`Options::max_bytes`].
    ///
    /// It keeps nothing free for later: what has not been used goes back to the system when writes pause.
    #[must_use]
    pub fn preallocate(mut self, bytes: u64) -> Self {
        self.preallocate = bytes;
        self
    }

    /// Sets a function that reports the progress of recovery. It is called now and then, from
    /// several threads, while the database is opened.
    #[must_use]
    pub fn progress(mut self, call: impl Fn(Progress) + Send + Sync + 'static) -> Self {
        self.progress = Some(Arc::new(call));
        self
    }

    /// Replaces the machine's clocks by a time that the caller advances. A
    /// program that uses the database from one thread, on a deterministic
    /// medium, can then be repeated exactly.
    ///
    /// ```
    /// use std::time::Duration;
    /// use pantile::lab::SimulatedTime;
    /// use pantile::{MediumKind, Options};
    /// let time = SimulatedTime::default();
    /// let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    /// let db = options.open("unused")?;
    /// let first = db.begin()?.timestamp();
    /// time.advance(Duration::from_secs(3600));
    /// assert!(db.begin()?.timestamp() > first);
    /// # Ok::<(), pantile::Error>(())
    /// ```
    #[must_use]
    pub fn simulated_time(mut self, time: SimulatedTime) -> Self {
        self.simulated_time = Some(time);
        self
    }

    pub(crate) fn check(&self) -> Result<()> {
        let threads = 1..=MOST_THREADS;
        check_bounds("recovery_threads", self.recovery_threads.map(|n| n as u64), threads.clone())?;
        check_bounds("streams", self.streams.map(|n| n as u64), threads)?;
        check_bounds("block_slots", self.block_slots.map(u64::from), 1..=BLOCK_SLOTS as u64)?;
        let most = MapOptions::default().reserve_bytes;
        check_bounds("max_bytes", self.max_bytes, HEAD_BYTES..=most)?;
        let most = self.max_bytes.unwrap_or(most);
        check_bounds("preallocate", Some(self.preallocate), 0..=most)?;
        check_bounds("memory_limit", self.memory_limit, LEAST_MEMORY..=u64::MAX)?;
        check_bounds("row_cache", self.row_cache, LEAST_ROW_CACHE..=u64::MAX)?;
        self.exclusive.check()?;
        self.gc.check().map_err(Error::InvalidOption)
    }

    /// How long the beginning of a transaction waits for a slot. Where time is
    /// simulated there is one thread, and nobody would free one.
    pub(crate) fn wait_to_begin(&self) -> Duration {
        if self.simulated_time.is_some() { Duration::ZERO } else { self.begin_wait.unwrap_or(BEGIN_WAIT) }
    }

    /// Bytes to look at per second after opening with an image.
    pub(crate) fn rate_of_verifying(&self, reads_wait: bool) -> u64 {
        let rate = if reads_wait { VERIFY_RATE_BESIDE_READS } else { VERIFY_RATE };
        self.verify_rate.unwrap_or(rate)
    }

    pub(crate) fn time_to_retry(&self) -> Duration {
        self.retry_for.unwrap_or(RETRY_FOR)
    }

    /// The same with numbers of streams and threads that suit the machine, where none
    /// were chosen.
    pub(crate) fn for_this_machine(mut self) -> Self {
        let cores = cores();
        let streams = if self.shares_syncs() { 1 } else { cores };
        self.streams.get_or_insert(streams);
        self.recovery_threads.get_or_insert(cores);
        self
    }

    /// Whether commits wait for syncs, which they share. Fences of other media than files are a thread's own.
    fn shares_syncs(&self) -> bool {
        let is_file = self.medium == MediumKind::File && self.custom_medium.is_none();
        is_file && self.durability != Durability::None
    }

    pub(crate) fn times_commits(&self) -> TimesCommits {
        match self.simulated_time {
            // A run is to be repeated exactly, and asking a clock may move it.
            Some(_) => TimesCommits::None,
            None if self.shares_syncs() => TimesCommits::All,
            None => TimesCommits::Some,
        }
    }

    pub(crate) fn threads_of_recovery(&self) -> usize {
        self.recovery_threads.unwrap_or(1)
    }

    pub(crate) fn check_stopped(&self) -> Result<()> {
        match &self.stop {
            Some(stop) if stop.load(Ordering::Relaxed) => Err(Error::Cancelled),
            _ => Ok(()),
        }
    }

    pub(crate) fn report(&self, progress: Progress) {
        if let Some(call) = &self.progress {
            call(progress);
        }
    }
}

/// Which commits are timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TimesCommits {
    All,
    Some,
    None,
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pantile_media::{DirectoryOptions, MediumError};

    use super::*;

    #[derive(Debug)]
    struct Elsewhere;

    impl MediumFactory for Elsewhere {
        fn open(&self, _: &Path, _: DirectoryOptions) -> std::result::Result<Arc<dyn Medium>, MediumError> {
            unreachable!("it is not opened")
        }
    }

    #[test]
    fn only_commits_that_share_syncs_share_a_stream() {
        let streams = |options: Options| options.for_this_machine().streams;
        assert_eq!(streams(Options::new()), Some(1));
        for options in [
            Options::new().durability(Durability::None),
            Options::new().medium(MediumKind::Dram),
            Options::new().medium(MediumKind::Dax),
            Options::new().custom_medium(Elsewhere),
        ] {
            assert_eq!(streams(options), Some(cores()));
        }
        assert_eq!(streams(Options::new().custom_medium(Elsewhere).streams(3)), Some(3));
    }
}
