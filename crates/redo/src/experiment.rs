//! How long opening takes after a kill, for the engine and for a store with a redo log.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use pantile::{Database, Options, Table, TableDef, Type, Value};
use pantile_bench::settings::Medium as MediumName;
use pantile_bench::{Error, Result};
use pantile_media::{DramMedium, MapOptions, Medium, MediumExt};
use pantile_nvm::NvmMedium;
use pantile_testkit::Random;

use crate::ending::EndingMedium;
use crate::store::{Change, RedoError, RedoStore};
use crate::tuples::Beyond;

/// The seed of data and transactions, unless another is asked for.
pub const SEED: u64 = 42;

/// Bytes of a row, and of its key (Zen+ 5.1).
const ROW_BYTES: u64 = 1000;
const KEY_BYTES: u64 = 8;

/// Rows that a transaction updates: half of the 16 operations of balanced YCSB (Zen+ 5.1). The other half reads.
const UPDATES: usize = 8;

/// Rows of a transaction that loads.
const BATCH: u64 = 1000;

const TABLE: &str = "usertable";

/// What is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A database of the engine.
    Pantile,
    /// A [`RedoStore`].
    RedoLog,
}

impl Kind {
    /// Both.
    pub const ALL: [Self; 2] = [Kind::Pantile, Kind::RedoLog];

    /// What it is called: the engine by its collector.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Pantile => "tb-collect",
            Kind::RedoLog => "redo-log",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.ok_or_else(|| format!("{name} is neither tb-collect nor redo-log"))
    }
}

/// A database of YCSB, and transactions that update it before it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experiment {
    /// Megabytes of rows.
    pub megabytes: u64,
    /// Transactions of eight updates after loading, and for the store with a log after its checkpoint.
    pub transactions: u64,
    /// The memory has this many times the bytes of DRAM: of a store with a log, one row in this many is in DRAM, and the
    /// others are in memory of the same kind.
    pub ratio: u64,
    /// The seed of the data and the transactions.
    pub seed: u64,
}

/// What a kill has left.
#[derive(Debug)]
pub struct Left {
    kind: Kind,
    medium: Arc<dyn Medium>,
    name: MediumName,
    ratio: u64,
    rows: u64,
    /// What the last transaction has written.
    last: Vec<(u64, Vec<u8>)>,
}

/// An opening.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Opened {
    /// Seconds until the first row had been read.
    pub seconds: f64,
    /// Bytes of rows, or of the checkpoint and the log, that it had to read.
    pub bytes: u64,
}

impl Experiment {
    /// Loads a database on this medium, updates it and leaves it as a kill does. There is no index image. `stop` is raised
    /// to end it early.
    ///
    /// # Errors
    /// Those of the engine and of the medium; [`Error::Setting`] for media that do not outlive a process in this one;
    /// [`Error::Interrupted`].
    pub fn leave(&self, kind: Kind, medium: MediumName, stop: &AtomicBool) -> Result<Left> {
        let (name, medium) = (medium, memory(medium)?);
        let rows = (self.megabytes * 1_000_000 / ROW_BYTES).max(1);
        let mut left = Left { kind, medium, name, ratio: self.ratio, rows, last: Vec::new() };
        let text = Text::new(self.seed);
        match kind {
            Kind::Pantile => self.leave_database(&mut left, &text, stop)?,
            Kind::RedoLog => self.leave_store(&mut left, &text, stop)?,
        }
        Ok(left)
    }

    fn leave_database(&self, left: &mut Left, text: &Text, stop: &AtomicBool) -> Result<()> {
        let medium = EndingMedium::over(Arc::clone(&left.medium));
        let db = open(&medium)?;
        let def = TableDef::new(TABLE).column("key", Type::U64);
        let def = def.column("field", Type::Bytes((ROW_BYTES - KEY_BYTES) as u32)).primary_key(["key"]);
        let table = db.create_table(def)?;
        for first in (0..left.rows).step_by(BATCH as usize) {
            go_on(stop)?;
            db.run(|txn| {
                let batch = first..(first + BATCH).min(left.rows);
                batch.into_iter().try_for_each(|key| txn.insert(&table, &row(key, text.field(key))))
            })?;
        }
        for number in 0..self.transactions {
            go_on(stop)?;
            let changes = text.changes(number, left.rows);
            db.run(|txn| {
                changes.iter().try_for_each(|(key, field)| txn.upsert(&table, &row(*key, field)).map(drop))
            })?;
            left.last = owned(&changes);
        }
        medium.end();
        drop(db);
        Ok(())
    }

    fn leave_store(&self, left: &mut Left, text: &Text, stop: &AtomicBool) -> Result<()> {
        let field_bytes = ROW_BYTES - KEY_BYTES;
        let rows = (0..left.rows).map(|key| (key, text.field(key).to_vec()));
        let mut store =
            RedoStore::create(Arc::clone(&left.medium), None, field_bytes, rows).map_err(store_error)?;
        for number in 0..self.transactions {
            go_on(stop)?;
            let changes = text.changes(number, left.rows);
            let changed: Vec<Change<'_>> = changes.iter().map(|(key, field)| (*key, Some(*field))).collect();
            store.commit(&changed).map_err(store_error)?;
            left.last = owned(&changes);
        }
        Ok(())
    }
}

impl Left {
    /// Opens it, reads a row, checks that nothing is lost, and leaves it as another kill does. Only opening and
    /// the first row are timed.
    ///
    /// # Errors
    /// Those of the engine and of the medium; [`Error::Missing`], [`Error::Lost`].
    pub fn open(&self) -> Result<Opened> {
        match self.kind {
            Kind::Pantile => self.open_database(),
            Kind::RedoLog => self.open_store(),
        }
    }

    fn open_database(&self) -> Result<Opened> {
        let medium = EndingMedium::over(Arc::clone(&self.medium));
        let began = Instant::now();
        let db = open(&medium)?;
        let table = db.table(TABLE)?;
        read(&db, &table, 0)?;
        let seconds = began.elapsed().as_secs_f64();
        // The definition of the table is a tuple, too.
        self.check(db.stats().tuples - 1, |key| read(&db, &table, key))?;
        let bytes = db.recovery().bytes_scanned;
        medium.end();
        Ok(Opened { seconds, bytes })
    }

    fn open_store(&self) -> Result<Opened> {
        let beyond = Beyond { memory: memory(self.name)?, ratio: self.ratio };
        // Persistent memory needs no clearing before it is written to.
        let ready = beyond.memory.preallocate(self.rows * ROW_BYTES);
        ready.map_err(|error| store_error(error.into()))?;
        let began = Instant::now();
        let store = RedoStore::open(Arc::clone(&self.medium), Some(beyond)).map_err(store_error)?;
        let read = |key| store.get(key).ok_or_else(|| missing(key));
        read(0)?;
        let seconds = began.elapsed().as_secs_f64();
        self.check(store.rows(), read)?;
        Ok(Opened { seconds, bytes: store.durable_bytes() })
    }

    /// Fails unless all rows are there, and what was written last.
    fn check(&self, found: u64, read: impl Fn(u64) -> Result<Vec<u8>>) -> Result<()> {
        if found != self.rows {
            return Err(Error::Lost { tuples: self.rows, found });
        }
        self.last.iter().try_for_each(|(key, field)| match read(*key)? == *field {
            true => Ok(()),
            false => Err(missing(*key)),
        })
    }
}

/// Fields of rows are parts of one text, which takes no time to make.
struct Text {
    letters: Vec<u8>,
    seed: u64,
}

impl Text {
    fn new(seed: u64) -> Self {
        let mut letters = vec![0; 1 << 16];
        Random::new(seed, 0).fill_letters(&mut letters);
        Self { letters, seed }
    }

    fn field(&self, of: u64) -> &[u8] {
        let len = (ROW_BYTES - KEY_BYTES) as usize;
        let at = Random::new(self.seed, of).index(self.letters.len() - len);
        &self.letters[at..at + len]
    }

    /// What a transaction changes.
    fn changes(&self, number: u64, rows: u64) -> Vec<(u64, &[u8])> {
        let mut random = Random::new(self.seed.wrapping_add(1), number);
        let mut changes: Vec<(u64, &[u8])> = Vec::new();
        for _ in 0..UPDATES {
            let (key, of) = (random.below(rows), random.word());
            changes.retain(|(other, _)| *other != key);
            changes.push((key, self.field(of)));
        }
        changes
    }
}

fn owned(changes: &[(u64, &[u8])]) -> Vec<(u64, Vec<u8>)> {
    changes.iter().map(|(key, field)| (*key, field.to_vec())).collect()
}

fn memory(medium: MediumName) -> Result<Arc<dyn Medium>> {
    match medium {
        MediumName::Nvm(config) => NvmMedium::anonymous(config).map(|medium| medium as Arc<dyn Medium>),
        MediumName::Dram => DramMedium::new(MapOptions::default()).map(|medium| medium as Arc<dyn Medium>),
        MediumName::File | MediumName::Dax { .. } => {
            return Err(Error::Setting(format!(
                "{medium}: recovery is measured on dram and on emulated memory"
            )));
        }
    }
    .map_err(|error| store_error(error.into()))
}

fn open(medium: &Arc<EndingMedium>) -> Result<Database> {
    let medium = Arc::clone(medium) as Arc<dyn Medium>;
    Ok(Options::new().on_medium(medium).index_image(false).open("unused")?)
}

fn row(key: u64, field: &[u8]) -> [Value<'_>; 2] {
    [key.into(), field.into()]
}

fn read(db: &Database, table: &Table, key: u64) -> Result<Vec<u8>> {
    let txn = db.begin_read()?;
    let row = txn.get(table, &[key.into()])?.ok_or_else(|| missing(key))?;
    Ok(row.get::<&[u8]>("field")?.to_vec())
}

fn missing(key: u64) -> Error {
    Error::Missing { what: "row as it was written last", key: key.to_string() }
}

fn store_error(error: RedoError) -> Error {
    Error::io("use a store with a redo log", std::io::Error::other(error))
}

fn go_on(stop: &AtomicBool) -> Result<()> {
    match stop.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted { during: "leaving a database to recover" }),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Opening checks that nothing is lost, as often as one likes.
    #[test]
    fn both_are_opened_again_and_again_after_kills() {
        let experiment = Experiment { megabytes: 2, transactions: 50, ratio: 4, seed: SEED };
        for medium in ["dram", "nvm:E"] {
            let medium = MediumName::by_name(medium).expect("a medium");
            for kind in Kind::ALL {
                let left = experiment.leave(kind, medium, &AtomicBool::new(false)).expect("left");
                for _ in 0..2 {
                    let opened = left.open().expect("opened");
                    assert!(opened.bytes >= 2_000_000, "{kind}: {opened:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_lost_is_noticed() {
        let experiment = Experiment { megabytes: 1, transactions: 3, ratio: 4, seed: SEED };
        let medium = MediumName::by_name("dram").expect("a medium");
        for kind in Kind::ALL {
            let mut left = experiment.leave(kind, medium, &AtomicBool::new(false)).expect("left");
            left.rows += 1;
            assert!(matches!(left.open(), Err(Error::Lost { .. })), "{kind}");
            left.rows -= 1;
            left.last[0].1[0] ^= 1;
            assert!(matches!(left.open(), Err(Error::Missing { .. })), "{kind}");
        }
    }

    #[test]
    fn names_are_read_as_they_are_shown() {
        Kind::ALL.iter().for_each(|kind| assert_eq!(kind.to_string().parse(), Ok(*kind)));
        "wal".parse::<Kind>().expect_err("no kind");
        let file = MediumName::by_name("file").expect("a medium");
        let experiment = Experiment { megabytes: 1, transactions: 1, ratio: 4, seed: SEED };
        experiment.leave(Kind::RedoLog, file, &AtomicBool::new(false)).expect_err("a file");
        let stop = AtomicBool::new(true);
        let dram = MediumName::by_name("dram").expect("a medium");
        let stopped = experiment.leave(Kind::Pantile, dram, &stop);
        assert!(matches!(stopped, Err(Error::Interrupted { .. })));
    }
}
