//! What all handles of one open database share.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use foldhash::fast::FixedState;
use pantile_base::limits::TRANSACTION_SLOTS;
use pantile_base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pantile_base::sync::{Mutex, MutexGuard, RwLock};
use pantile_base::{Address, TableId, Timestamp};
use pantile_cc::{Begin, Clock, CommitsUnderWay, ReadMarks, Registry, RunningSet, Slot};
use pantile_index::NodeArena;
use pantile_media::MediumError;
use pantile_reclaim::{Context, Reclaimer};
use pantile_store::{StateSample, Store, StoreError};

use crate::cleanup::Cleanup;
use crate::error::{Error, Result};
use crate::options::Options;
use crate::retry::Stage;
use crate::stats::{Counters, Recovery};
use crate::table::{Table, TableInner};
use crate::transaction::Buffers;
use crate::view::View;

/// How often the watermark is computed, at most.
const WATERMARK_AGE: Duration = Duration::from_millis(1);
/// A new state record is due when this share of what is used has been
/// appended, within bounds in bytes, or after so many epochs (half a second).
const STATE_SHARE: u64 = 16;
const LEAST_STATE_BYTES: u64 = 4 << 20;
const MOST_STATE_BYTES: u64 = 64 << 20;
const STATE_EPOCHS: u32 = 12;

/// How long a transaction that has found no space looks for some for others.
const ROOM_TIME: Duration = Duration::from_millis(160);

/// A table that has been dropped, at this time.
pub(crate) struct Dropped {
    pub at: Timestamp,
    /// When it was found that all transactions that could use it had ended.
    pub unused_since: Option<Timestamp>,
    pub table: TableId,
    /// For transactions that began to use it before it was dropped.
    pub in_use: Option<Arc<TableInner>>,
}

pub(crate) struct Core {
    /// Tells handles of different databases apart.
    pub id: u64,
    pub options: Options,
    pub store: Store,
    pub registry: Registry,
    pub marks: ReadMarks,
    pub arena: Arc<NodeArena>,
    pub reclaimer: Box<dyn Reclaimer>,
    pub tables: RwLock<BTreeMap<String, Table>>,
    pub by_id: RwLock<HashMap<TableId, Arc<TableInner>, FixedState>>,
    /// One definition changes at a time.
    pub ddl: Mutex<()>,
    pub next_table: AtomicU64,
    pub dropped: Mutex<Vec<Dropped>>,
    pub cleanup: Cleanup,
    pub counters: Counters,
    pub recovery: Recovery,
    pub closed: AtomicBool,
    pub stage: Stage,
    buffers: Box<[Mutex<Option<Box<Buffers>>>]>,
    upkeep: Mutex<Upkeep>,
    /// When a collector's next round is due, in microseconds of simulated time.
    next_round: AtomicU64,
}

struct Upkeep {
    /// With the commits that were under way when it was taken.
    sample: Option<(StateSample, CommitsUnderWay)>,
    /// When the last sample was taken, by the clock.
    last: Duration,
}

/// The parts that opening has put together.
pub(crate) struct Parts {
    pub options: Options,
    pub store: Store,
    pub clock: Clock,
    pub reclaimer: Box<dyn Reclaimer>,
}

impl Core {
    pub fn new(parts: Parts) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            options: parts.options,
            store: parts.store,
            registry: Registry::new(parts.clock),
            marks: ReadMarks::default(),
            arena: Arc::new(NodeArena::new()),
            reclaimer: parts.reclaimer,
            tables: RwLock::default(),
            by_id: RwLock::default(),
            ddl: Mutex::default(),
            next_table: AtomicU64::new(0),
            dropped: Mutex::default(),
            cleanup: Cleanup::default(),
            counters: Counters::default(),
            recovery: Recovery::default(),
            closed: AtomicBool::new(false),
            stage: Stage::default(),
            buffers: (0..TRANSACTION_SLOTS).map(|_| Mutex::default()).collect(),
            upkeep: Mutex::new(Upkeep { sample: None, last: Duration::ZERO }),
            next_round: AtomicU64::new(0),
        }
    }

    pub fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Whether the table is of this database and has not been dropped.
    pub fn check_own(&self, table: &TableInner) -> Result<()> {
        if table.core != self.id {
            let name = &table.schema.name;
            return Err(Error::UnknownTable(format!("{name} (the handle is of another database)")));
        }
        if table.is_dropped() {
            return Err(Error::TableDropped(table.schema.name.clone()));
        }
        Ok(())
    }

    pub fn take_buffers(&self, slot: Slot) -> Box<Buffers> {
        self.buffers[slot.index()].lock().take().unwrap_or_default()
    }

    pub fn keep_buffers(&self, slot: Slot, buffers: Box<Buffers>) {
        *self.buffers[slot.index()].lock() = Some(buffers);
    }

    /// Lets go of what the buffers of idle slots refer to.
    pub fn forget_buffers(&self) {
        for buffers in &self.buffers {
            buffers.lock().take();
        }
    }

    pub fn table(&self, name: &str) -> Result<Table> {
        let tables = self.tables.read();
        tables.get(name).cloned().ok_or_else(|| Error::UnknownTable(name.to_owned()))
    }

    pub fn table_by_id(&self, id: TableId) -> Option<Arc<TableInner>> {
        self.by_id.read().get(&id).cloned()
    }

    /// As [`Core::table_by_id`], for a running transaction that has found the
    /// table: it may have been dropped since.
    pub fn table_in_use(&self, id: TableId) -> Option<Arc<TableInner>> {
        self.table_by_id(id).or_else(|| {
            let dropped = self.dropped.lock();
            dropped.iter().find(|d| d.table == id).and_then(|d| d.in_use.clone())
        })
    }

    /// What committing threads do for the database, in bounded steps.
    pub fn maintain(&self, slot: Slot) {
        self.clean(slot);
        self.with_collector(slot, |collector, context| {
            collector.step(context)?;
            if self.is_round_due() { collector.run_background(context) } else { Ok(()) }
        });
        if self.store.appended_since_sample() >= self.state_bytes() || self.is_upkeep_due() {
            self.advance_state();
        }
    }

    /// A round of a collector that works in the background.
    pub fn run_background(&self) {
        let Ok((slot, _)) = self.registry.begin(Begin::ReaderOrLateWriter) else { return };
        // Whoever closes the database waits for us, or we find it closed.
        if self.check_open().is_ok() {
            self.with_collector(slot, |collector, context| collector.run_background(context));
        }
        self.registry.release(slot);
    }

    /// Whether a round is due that no thread in the background does.
    fn is_round_due(&self) -> bool {
        if self.options.simulated_time.is_none() {
            return false;
        }
        let Some(interval) = self.reclaimer.background() else { return false };
        let now = self.registry.clock().elapsed().as_micros() as u64;
        let next = self.next_round.load(Ordering::Relaxed);
        let is_due = now >= next;
        if is_due {
            self.next_round.store(now + interval.as_micros() as u64, Ordering::Relaxed);
        }
        is_due
    }

    /// A new state record is due after so many appended bytes: the collector
    /// can free nothing that is younger than the last.
    fn state_bytes(&self) -> u64 {
        (self.store.used_bytes() / STATE_SHARE).clamp(LEAST_STATE_BYTES, MOST_STATE_BYTES)
    }

    /// Lets the collector do something. If the medium fails meanwhile, that
    /// latches in the medium and shows at the next commit.
    #[inline]
    pub fn with_collector(
        &self,
        slot: Slot,
        work: impl FnOnce(&dyn Reclaimer, &Context<'_>) -> Result<(), StoreError>,
    ) {
        let tuples = View::new(self, slot);
        let context = Context { store: &self.store, registry: &self.registry, tuples: &tuples, slot };
        let _ = work(&*self.reclaimer, &context);
    }

    /// Frees what can be freed, for a transaction that found no space and has
    /// ended. Takes some epochs: what has been moved must be out of sight.
    pub fn make_room(&self) {
        let clock = self.registry.clock();
        let until = clock.elapsed() + ROOM_TIME.max(self.options.gc.epoch * 4);
        let (_, before) = self.store.available();
        let has_room = || {
            let (has_chunk, free_blocks) = self.store.available();
            has_chunk || free_blocks > before
        };
        while !has_room() && clock.elapsed() < until {
            if !self.collect_hard() {
                return;
            }
            clock.sleep(ROOM_TIME / 32);
        }
    }

    /// One round of the collector in which nothing is put off; false if no
    /// slot is free for it.
    pub fn collect_hard(&self) -> bool {
        let Ok((slot, _)) = self.registry.begin(Begin::WriterAtBegin) else { return false };
        // What the collector copies must be durable before a state record
        // speaks of it, and that waits for commits.
        self.registry.set_committing(slot);
        self.registry.refresh_watermark(Duration::ZERO);
        self.with_collector(slot, |collector, context| collector.make_room(context));
        self.registry.release(slot);
        self.advance_state();
        true
    }

    /// Cleans indexes a little.
    pub fn clean(&self, slot: Slot) {
        let watermark = self.registry.refresh_watermark(WATERMARK_AGE);
        self.cleanup.run(self, slot, watermark);
    }

    fn is_upkeep_due(&self) -> bool {
        let interval = self.options.gc.epoch * STATE_EPOCHS;
        let now = self.registry.clock().elapsed();
        let is_due = |u: MutexGuard<'_, Upkeep>| u.sample.is_some() || now >= u.last + interval;
        self.cleanup.is_tick() && self.upkeep.try_lock().is_some_and(is_due)
    }

    /// Moves the durable watermark on, in two steps: a sample is taken, and
    /// written once everything that was committing then has ended (I-9).
    fn advance_state(&self) {
        let Some(mut upkeep) = self.upkeep.try_lock() else { return };
        if let Some((sample, commits)) = upkeep.sample.take() {
            // Nobody waits for a long transaction: what it has yet to write is
            // evidence to be counted, like what is written later.
            let undecided = self.registry.undecided(sample.taken_at());
            let Some(undecided) = undecided.filter(|_| self.registry.are_over(&commits)) else {
                upkeep.sample = Some((sample, commits));
                return;
            };
            // A failure latches in the medium and shows at the next commit.
            let _ = self.store.record_state(sample, false, &undecided);
            self.release_dropped();
            return;
        }
        upkeep.last = self.registry.clock().elapsed();
        let sample = self.store.sample(self.sample_time());
        upkeep.sample = Some((sample, self.registry.commits_under_way()));
    }

    /// Below the timestamp of every block that is opened from now on.
    fn sample_time(&self) -> Timestamp {
        let now = self.registry.now();
        Timestamp::new(now.tick().saturating_sub(self.registry.clock().skew() + 1), 0)
    }

    /// Writes a state record now; nothing may be running.
    pub fn record_state(&self, closed: bool) -> Result<()> {
        let mut upkeep = self.upkeep.lock();
        let sample = self.store.sample(self.sample_time());
        upkeep.sample = None;
        self.store.record_state(sample, closed, &[]).map_err(|e| self.store_error(e))
    }

    /// Gives back the blocks of dropped tables that nobody can see into and
    /// whose contents nobody needs as evidence (I-10). Who wrote to one as it
    /// was dropped may have committed at any time until it ended.
    pub fn release_dropped(&self) {
        let durable = self.store.durable_watermark();
        let watermark = self.registry.watermark();
        let now = self.registry.now();
        self.dropped.lock().retain_mut(|d| {
            if d.unused_since.is_none() && d.at < watermark {
                d.unused_since = Some(now);
            }
            let is_free = d.unused_since.is_some_and(|since| since < durable);
            if is_free {
                self.reclaimer.forget(&self.store, d.table);
            }
            !is_free || self.store.release_table(d.table, now).is_err()
        });
    }

    /// The error of a lower room, in the words of the engine.
    pub fn store_error(&self, error: StoreError) -> Error {
        from_store(error, std::path::Path::new(&self.store.medium().facts().name))
    }

    /// The versions that somebody may see, from the newest on. The caller has
    /// pinned a slot before it asked who runs.
    pub fn needed_versions(&self, newest: Address, running: &RunningSet) -> Vec<Address> {
        let mut versions = Vec::new();
        if newest.is_none() {
            return versions;
        }
        versions.push(newest);
        let mut end = self.store.content(newest).txn_id();
        let mut next = self.store.link(newest);
        while let Some(link) = next.filter(|_| running.min() < end) {
            if running.may_see(link.begin_ts, end) {
                versions.push(link.address);
            }
            end = link.begin_ts;
            next = self.store.older(link);
        }
        versions
    }
}

/// The error of a lower room about the database in `path`.
pub(crate) fn from_store(error: StoreError, path: &std::path::Path) -> Error {
    match error {
        StoreError::Medium(error) => from_medium(error),
        StoreError::Foreign(detail) => Error::NotADatabase { path: path.to_owned(), detail },
        StoreError::Version(found) => {
            Error::FormatVersion { found, supported: pantile_store::FORMAT_VERSION }
        }
        StoreError::Damaged { place, detail } => Error::Damaged { place, detail },
    }
}

pub(crate) fn from_medium(error: MediumError) -> Error {
    match error {
        MediumError::Locked { path } => Error::AlreadyOpen(path),
        MediumError::Missing { path } => Error::NoDatabase(path),
        MediumError::Truncated { path, len } => Error::NotADatabase {
            path,
            detail: format!("its {len} bytes are not whole chunks; it has been truncated"),
        },
        MediumError::NotADirectory { path } => {
            Error::NotADatabase { path, detail: "it is not a directory".into() }
        }
        MediumError::NotAFile { path } => {
            Error::NotADatabase { path, detail: "it is not an ordinary file".into() }
        }
        MediumError::Failed { cause } => Error::MediumFailed { cause },
        refused @ MediumError::NoDax { .. } => Error::UnfitMedium { detail: refused.to_string() },
        MediumError::Unreadable { path, offset, source } => Error::Damaged {
            place: format!("byte {offset} of {}", path.display()),
            detail: format!("it cannot be read ({source})"),
        },
        full if full.is_full() => Error::StorageFull { detail: full.to_string() },
        MediumError::Io { operation, path, source } => {
            let path = path.map_or_else(|| "memory".to_owned(), |p| p.display().to_string());
            Error::Io { operation: format!("{operation} {path}"), source }
        }
        other => Error::Io { operation: "use the medium".into(), source: std::io::Error::other(other) },
    }
}
