//! What the integration tests share: homes for databases and random streams.
#![allow(dead_code, reason = "each test crate uses a part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pantile::{
    Collector, ConflictPolicy, Database, Durability, Error, GcOptions, Isolation, Medium, MediumKind,
    Options, Pacing, Range, Table, Transaction, TransactionOptions, Value,
};
use pantile_media::{DramMedium, MapOptions, MediumExt};
use pantile_nvm::NvmConfig;

/// Set to replay a random test: `PANTILE_SEED=17 cargo test -p pantile`.
const SEED: &str = "PANTILE_SEED";

/// Set to run longer: this many times the usual number of seeds.
const ROUNDS: &str = "PANTILE_ROUNDS";

/// The seeds to run: `count` from `first` on, or the one to replay.
pub fn seeds(first: u64, count: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok().map(|n| n.parse().expect("a number in the environment"));
    match number(SEED) {
        Some(seed) => vec![seed],
        None => (0..count * number(ROUNDS).unwrap_or(1)).map(|n| first + n).collect(),
    }
}

/// Says which seed a panic belongs to.
pub struct SeedNote(pub u64);

impl Drop for SeedNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay with {SEED}={}", self.0);
        }
    }
}

/// A stream of random numbers (SplitMix64), or of given bytes.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    /// Bytes that a fuzzer gave: while there are any they are the numbers.
    tape: std::collections::VecDeque<u8>,
}

impl Rng {
    pub fn new(seed: u64) -> Self {
        let state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF0;
        Self { state, tape: Default::default() }
    }

    /// Numbers of two bytes each, then random ones.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        Self { tape: bytes.iter().copied().collect(), ..Self::new(bytes.len() as u64) }
    }

    /// Whether the given bytes have been used up.
    pub fn is_spent(&self) -> bool {
        self.tape.is_empty()
    }

    pub fn next(&mut self) -> u64 {
        if let Some(low) = self.tape.pop_front() {
            return u64::from(low) | u64::from(self.tape.pop_front().unwrap_or_default()) << 8;
        }
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn index(&mut self, n: usize) -> usize {
        self.below(n as u64) as usize
    }

    /// True in `percent` of a hundred calls.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.index(from.len())]
    }
}

/// Where a test's database lives.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bed {
    Dram,
    File(Durability),
    Nvm,
}

/// A place for one database, which can be closed, killed and opened again.
pub struct Home {
    bed: Bed,
    dirs: Vec<tempfile::TempDir>,
    medium: Option<Arc<dyn Medium>>,
    collector: Collector,
    eager: Option<u64>,
    /// The collector is not the one that `eager` picks.
    forced: bool,
}

impl Home {
    pub fn new(bed: Bed) -> Self {
        Self {
            bed,
            dirs: vec![new_dir()],
            medium: None,
            collector: Collector::default(),
            eager: None,
            forced: false,
        }
    }

    /// The collector works as eagerly as it goes; how exactly, the seed says.
    pub fn eager(mut self, seed: u64) -> Self {
        self.eager = Some(seed);
        self
    }

    /// This collector, as eager as it goes.
    pub fn eager_with(mut self, collector: Collector, seed: u64) -> Self {
        (self.collector, self.eager) = (collector, Some(seed));
        self.forced = true;
        self
    }

    /// One of the collectors, a different one for each seed.
    pub fn collect_by_seed(mut self, seed: u64) -> Self {
        self.collector = pantile_rivals::all()[seed as usize % pantile_rivals::all().len()];
        self
    }

    pub fn path(&self) -> PathBuf {
        self.dir().join("db")
    }

    fn dir(&self) -> &Path {
        self.dirs.last().expect("there is always one").path()
    }

    pub fn options(&self) -> Options {
        let options = Options::new().collector(self.collector).streams(2);
        let options = match self.eager {
            Some(seed) if self.forced => eager(options, seed).collector(self.collector),
            Some(seed) => eager(options, seed),
            None => options,
        };
        match self.bed {
            Bed::Dram => options.medium(MediumKind::Dram),
            Bed::File(durability) => options.medium(MediumKind::File).durability(durability),
            Bed::Nvm => options.custom_medium(NvmConfig::A),
        }
    }

    /// Opens what is here, or makes it.
    pub fn open(&mut self) -> Database {
        let mut options = self.options();
        if let Some(medium) = self.medium.take() {
            options = options.on_medium(medium);
        }
        options.open(self.path()).expect("the database opens")
    }

    /// Closes the database, to be opened again.
    pub fn close(&mut self, db: Database) {
        if self.bed == Bed::Dram {
            self.medium = Some(db.medium());
        }
        db.close().expect("the database closes");
    }

    /// Leaves the database as a killed process would, with transactions open:
    /// the next opening finds what was on the medium at this moment.
    pub fn kill(&mut self, db: Database, running: Vec<Transaction>) {
        if self.bed == Bed::Dram {
            // What is ended after the kill still writes to the old medium.
            self.medium = Some(copy_of(&*db.medium()));
            return;
        }
        let copy = new_dir();
        copy_all(&self.path(), &copy.path().join("db"));
        drop(running);
        drop(db);
        self.dirs.clear();
        self.dirs.push(copy);
    }
}

/// Which collector a test runs beside.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Beside {
    /// One of them with its default options, a different one for each seed.
    Any,
    /// One that is as eager as it goes, and long readers.
    Eager,
    /// This one, as eager as it goes, and long readers.
    This(Collector),
}

impl Beside {
    /// Whether long readers run as well.
    pub fn is_eager(self) -> bool {
        self != Beside::Any
    }

    pub fn home(self, bed: Bed, seed: u64) -> Home {
        match self {
            Beside::Any => Home::new(bed).collect_by_seed(seed),
            Beside::Eager => Home::new(bed).eager(seed),
            Beside::This(collector) => Home::new(bed).eager_with(collector, seed),
        }
    }

    /// Takes note of what the collector has done in a run.
    pub fn note(self, db: &Database) {
        if self.is_eager() {
            let done = db.stats().collector;
            let (freed, over) = (done.blocks_reclaimed, done.blocks_bypassed);
            let versions = done.versions_reclaimed;
            println!("{freed} blocks, {over} bypassed, {versions} versions");
            FREED.fetch_add(versions, Ordering::Relaxed);
        }
    }
}

/// Versions freed in this process, as far as was noted.
static FREED: AtomicU64 = AtomicU64::new(0);

/// Runs beside an eager collector were worth it. A single run need not be: a
/// reader that stays for all of it keeps everything.
pub fn check_worth() {
    assert!(FREED.load(Ordering::Relaxed) > 0 || std::env::var(SEED).is_ok(), "nothing was collected");
}

/// Everything in a database, by every index.
type Everything = Vec<Vec<String>>;

fn everything(db: &Database, txn: &Transaction) -> pantile::Result<Everything> {
    let text = |row: pantile::Result<pantile::Row<'_>>| {
        row.and_then(|row| {
            let column = |n: usize| match row.get::<Value<'_>>(n) {
                Err(Error::OutOfLine { .. }) => row.read(n).map(|long| format!("{long:?}")),
                value => value.map(|value| format!("{value:?}")),
            };
            (0..row.len()).map(column).collect::<pantile::Result<Vec<_>>>().map(|columns| columns.join(" "))
        })
    };
    let mut all = Vec::new();
    for name in db.tables() {
        let Ok(table) = db.table(&name) else { continue };
        let rows: Vec<String> = txn.scan(&table, Range::all())?.map(text).collect::<pantile::Result<_>>()?;
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        for def in &table.definition().indexes {
            let Ok(index) = table.index(&def.name) else { continue };
            let mut found: Vec<String> =
                txn.scan_index(&index, Range::all())?.map(text).collect::<pantile::Result<_>>()?;
            found.sort_unstable();
            let by_statement = txn.isolation() == Isolation::ReadCommitted && !txn.is_read_only();
            assert!(
                by_statement || found == sorted,
                "{} of {name} for {txn:?}: {found:?} {sorted:?}",
                def.name
            );
        }
        all.push(rows);
    }
    Ok(all)
}

/// Opens readers of all kinds, keeps each for a while, and sees that those of
/// one moment always read the same. Tables must not come or go meanwhile.
pub fn read_for_long(db: &Database, done: &AtomicBool, seed: u64) {
    let mut rng = Rng::new(seed ^ 0x10_46);
    let mut readers: Vec<(Transaction, Everything)> = Vec::new();
    let kinds = [
        abort_at(Isolation::Serializable).read_only(true),
        TransactionOptions::new().safe_snapshot(),
        abort_at(Isolation::Snapshot),
        abort_at(Isolation::ReadCommitted),
    ];
    while !done.load(Ordering::Relaxed) {
        if readers.len() < 3 && rng.percent(40) {
            let txn = db.begin_with(*rng.pick(&kinds)).expect("a transaction");
            match everything(db, &txn) {
                Ok(seen) => readers.push((txn, seen)),
                Err(error) => assert!(is_conflict(&error), "{error}"),
            }
        }
        for (txn, seen) in &readers {
            match everything(db, txn) {
                Ok(_) if txn.isolation() == Isolation::ReadCommitted => {}
                Ok(now) => assert_eq!(&now, seen, "{txn:?}"),
                Err(error) => assert!(is_conflict(&error), "{error}"),
            }
        }
        if rng.percent(15) {
            readers.pop();
        } else if rng.percent(8) {
            // Survivors leave their blocks when nobody has been reading for long.
            readers.clear();
            std::thread::sleep(Duration::from_millis(rng.below(8)));
        }
        std::thread::sleep(Duration::from_micros(rng.below(3_000)));
    }
}

/// The collector as eager as it goes: blocks of a few contents, epochs in which
/// hardly a transaction fits, and nothing waits for more of a block to die.
/// The seed says which of many such settings.
pub fn eager(options: Options, seed: u64) -> Options {
    let mut rng = Rng::new(seed ^ 0xEA6E);
    let gc = GcOptions {
        theta: 0.5,
        queue_share: 0.0,
        epoch: Duration::from_micros(*rng.pick(&[100, 300, 1_000])),
        pacing: *rng.pick(Pacing::ALL),
        bypass: rng.percent(75),
        space_target: *rng.pick(&[1.0, 1.25]),
        ..GcOptions::default()
    };
    let collector = if rng.percent(75) { Collector::TB_COLLECT } else { Collector::TB_COLLECT_EAGER };
    let slots = *rng.pick(&[2, 4, 8, 16]);
    options.collector(collector).gc(gc).block_slots(slots).streams(1 + rng.index(3))
}

/// The table whose commits let the collector work.
pub const PULSE: &str = "pulse";

const PULSE_ROWS: u64 = 37;

/// Commits that say nothing, for some epochs' time: committing threads do the
/// collector's work.
pub fn let_collect(db: &Database, pulse: &Table, time: Duration) {
    let until = std::time::Instant::now() + time;
    let mut n = 0u64;
    // What is done for the whole database comes once in 64 commits.
    while n < 192 || std::time::Instant::now() < until {
        // Some rows change seldom: they survive in blocks of others that do not.
        let id = if n.is_multiple_of(5) { 3 + n / 5 % PULSE_ROWS } else { n % 3 };
        let row = [Value::UInt(id), Value::UInt(n)];
        db.run(|txn| txn.upsert(pulse, &row)).expect("nobody is in the way");
        n += 1;
    }
}

/// What a process that is killed now leaves in memory.
#[allow(unsafe_code, reason = "media in memory are read through their mapping")]
fn copy_of(medium: &dyn Medium) -> Arc<dyn Medium> {
    let len = medium.len();
    let copy =
        DramMedium::new(MapOptions { reserve_bytes: medium.facts().limit, max_bytes: None }).expect("memory");
    copy.grow(len).expect("memory");
    // SAFETY: nobody else is at work, and all of `len` is mapped.
    let bytes = unsafe { std::slice::from_raw_parts(medium.base(), len as usize) };
    copy.write(0, bytes).expect("memory");
    copy
}

fn new_dir() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a directory to copy to");
    for entry in std::fs::read_dir(from).expect("the database's directory") {
        let entry = entry.expect("an entry of it");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy of a file");
    }
}

/// A database in memory.
pub fn in_memory() -> Database {
    Home::new(Bed::Dram).open()
}

/// All isolation levels.
pub const LEVELS: [Isolation; 3] = [Isolation::Serializable, Isolation::Snapshot, Isolation::ReadCommitted];

/// Read-write at a level, failing at once on conflicts.
pub fn abort_at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation).conflict(ConflictPolicy::Abort)
}

/// Read-write at a level, waiting on conflicts.
pub fn wait_at(isolation: Isolation, limit: Duration) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation).conflict(ConflictPolicy::Wait(limit))
}

pub fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Conflict { .. })
}

pub fn is_duplicate(error: &Error) -> bool {
    matches!(error, Error::DuplicateKey { .. })
}
