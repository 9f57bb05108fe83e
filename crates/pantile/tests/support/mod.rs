//! What the integration tests share: homes for databases and random streams.
#![allow(dead_code, reason = "each test crate uses a part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pantile::{
    Collector, ConflictPolicy, Database, Durability, Error, Isolation, Medium, MediumKind, NvmConfig,
    Options, Transaction, TransactionOptions,
};

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

/// A stream of random numbers (SplitMix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x1234_5678_9ABC_DEF0)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
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
    /// Killed on a medium in memory: ended only with the home, since ending
    /// writes to the medium.
    killed: Vec<(Vec<Transaction>, Database)>,
    collector: Collector,
}

impl Home {
    pub fn new(bed: Bed) -> Self {
        Self { bed, dirs: vec![new_dir()], medium: None, killed: Vec::new(), collector: Collector::default() }
    }

    /// One of the collectors, a different one for each seed.
    pub fn collect_by_seed(mut self, seed: u64) -> Self {
        self.collector = Collector::ALL[seed as usize % Collector::ALL.len()];
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
        match self.bed {
            Bed::Dram => options.medium(MediumKind::Dram),
            Bed::File(durability) => options.medium(MediumKind::File).durability(durability),
            Bed::Nvm => options.medium(MediumKind::Nvm(NvmConfig::A)),
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
            self.medium = Some(db.medium());
            self.killed.push((running, db));
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
