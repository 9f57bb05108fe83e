//! Patterns of use, and the space that their databases take at rest.
//!
//! Each pattern has a database of its own on a file. Its files are looked at
//! when the pattern ends, two seconds later, and after closing.

use std::path::Path;
use std::time::{Duration, Instant};

use pantile::{Database, Durability, IndexDef, Options, Table, TableDef, Type, Value};
use pantile_testkit::Random;
use serde::Serialize;

use super::files::{Size, own_memory};
use crate::error::{Error, Result};
use crate::load::Context;
use crate::place::DatabaseDir;

/// The promise is one of two seconds after a burst.
const REST: Duration = Duration::from_secs(2);
const MB: u64 = 1 << 20;
/// The default space target.
const TARGET: u64 = 2;

/// The settings of all patterns.
#[derive(Clone, Debug, Serialize)]
pub struct Settings {
    /// When a commit is acknowledged.
    #[serde(skip)]
    pub durability: Durability,
    /// How much of each pattern is run: 1 for all of it.
    pub scale: f64,
    /// Seconds for which a reader stays open beside updates.
    pub reader_seconds: f64,
    /// Seed of all random numbers.
    pub seed: u64,
}

/// What a pattern left.
#[derive(Clone, Debug, Serialize)]
pub struct Rest {
    /// The pattern.
    pub pattern: String,
    /// Bytes of the newest versions of all rows, headers included.
    pub live_bytes: u64,
    /// The files when the pattern ended.
    pub at_end: Size,
    /// The files two seconds later.
    pub later: Size,
    /// The files after closing, of what a pattern does last.
    pub closed: Option<Size>,
    /// The part of `later` in slots of superseded versions.
    pub obsolete_bytes: u64,
    /// The part of `later` in slots that are not yet written.
    pub unfilled_bytes: u64,
    /// The part of `later` in empty blocks and chunks, the reserve included.
    pub free_bytes: u64,
    /// Bytes that the files may have two seconds later and after closing.
    pub bar: u64,
    /// DRAM of the database two seconds later, as it says itself.
    pub dram_bytes: u64,
    /// Memory of the process two seconds later, without pages of files and
    /// without what it had before.
    pub own_memory: u64,
}

impl Rest {
    /// Whether the files took no more than the bar, two seconds later and after
    /// closing.
    pub fn is_within(&self) -> bool {
        self.later.allocated <= self.bar && self.closed.is_none_or(|closed| closed.allocated <= self.bar)
    }
}

type Body = fn(&mut Work<'_>) -> Result<()>;

/// A pattern: its name on the command line, and what it does.
pub struct Pattern {
    /// The name.
    pub name: &'static str,
    body: Body,
}

/// All patterns.
pub const PATTERNS: [Pattern; 11] = [
    Pattern { name: "new", body: new_database },
    Pattern { name: "tables", body: small_tables },
    Pattern { name: "sizes", body: rows_of_all_sizes },
    Pattern { name: "queue", body: queue },
    Pattern { name: "updates-100", body: |work| updates(work, 100) },
    Pattern { name: "updates-10k", body: |work| updates(work, 10_000) },
    Pattern { name: "updates-1m", body: |work| updates(work, 1_000_000) },
    Pattern { name: "one-transaction", body: one_transaction },
    Pattern { name: "reader", body: beside_a_reader },
    Pattern { name: "indexed", body: indexed },
    Pattern { name: "large", body: large_values },
];

impl Pattern {
    /// Runs it in a new database in `parent`, or among the system's temporary
    /// files. One pattern may rest several times.
    ///
    /// # Errors
    /// Those of the engine; [`Error::Io`]; [`Error::Interrupted`].
    pub fn run(
        &self,
        settings: &Settings,
        parent: Option<&Path>,
        context: &Context<'_>,
    ) -> Result<Vec<Rest>> {
        let place = DatabaseDir::temporary_in(parent)?;
        let memory = own_memory();
        let db = Options::new().durability(settings.durability).open(place.path())?;
        let mut work = Work {
            db,
            dir: place.path(),
            settings,
            context,
            memory,
            random: Random::new(settings.seed, 0),
            rests: Vec::new(),
        };
        (self.body)(&mut work)?;
        let Work { db, mut rests, .. } = work;
        db.close()?;
        if let Some(last) = rests.last_mut() {
            last.closed = Some(Size::of(place.path())?);
        }
        Ok(rests)
    }
}

/// A pattern at work.
struct Work<'a> {
    db: Database,
    dir: &'a Path,
    settings: &'a Settings,
    context: &'a Context<'a>,
    memory: u64,
    random: Random,
    rests: Vec<Rest>,
}

impl Work<'_> {
    /// This many, at the scale that is wanted.
    fn scaled(&self, n: u64) -> u64 {
        ((n as f64 * self.settings.scale) as u64).max(1)
    }

    fn table(&self, name: &str, data: u32) -> Result<Table> {
        let def = TableDef::new(name).column("id", Type::U64).column("data", Type::Bytes(data));
        Ok(self.db.create_table(def.primary_key(["id"]))?)
    }

    /// Writes rows with random data of `len` bytes, in one transaction.
    fn put(&mut self, table: &Table, ids: impl IntoIterator<Item = u64>, len: usize) -> Result<()> {
        self.check()?;
        let mut data = vec![0; len];
        self.random.fill_letters(&mut data);
        let ids: Vec<u64> = ids.into_iter().collect();
        Ok(self.db.run(|txn| {
            ids.iter().try_for_each(|&id| txn.upsert(table, &[id.into(), Value::Bytes(&data)]).map(|_| ()))
        })?)
    }

    fn check(&self) -> Result<()> {
        match self.context.stop.load(std::sync::atomic::Ordering::Relaxed) {
            true => Err(Error::Interrupted { during: "running a pattern" }),
            false => Ok(()),
        }
    }

    /// Rests two seconds and notes what is taken. `bar` is of the live bytes.
    fn rest(&mut self, pattern: String, bar: impl Fn(u64) -> u64) -> Result<()> {
        let at_end = Size::of(self.dir)?;
        std::thread::sleep(REST);
        let (later, stats) = (Size::of(self.dir)?, self.db.stats());
        self.rests.push(Rest {
            pattern,
            live_bytes: stats.live_bytes,
            at_end,
            later,
            closed: None,
            obsolete_bytes: stats.obsolete_bytes,
            unfilled_bytes: stats.unfilled_bytes,
            free_bytes: stats.free_bytes,
            bar: bar(stats.live_bytes),
            dram_bytes: stats.dram_bytes,
            own_memory: own_memory().saturating_sub(self.memory),
        });
        Ok(())
    }
}

/// What the default target promises.
fn promised(live: u64) -> u64 {
    super::promised(live, TARGET as f64)
}

fn new_database(work: &mut Work<'_>) -> Result<()> {
    work.rest("a new database".into(), |_| MB)
}

fn small_tables(work: &mut Work<'_>) -> Result<()> {
    let tables = work.scaled(500);
    for n in 0..tables {
        let table = work.table(&format!("table{n}"), 1500)?;
        work.put(&table, [1], 900)?;
    }
    work.rest(format!("{tables} tables of one row"), |_| 16 * MB)
}

/// Rows from 16 bytes to 57 KB, as many of each order of magnitude.
fn rows_of_all_sizes(work: &mut Work<'_>) -> Result<()> {
    let table = work.table("rows", 65_000)?;
    let rows = work.scaled(300);
    let lens: Vec<usize> =
        (0..rows).map(|_| 2f64.powf(4.0 + 11.8 * work.random.fraction()) as usize).collect();
    let bytes: u64 = lens.iter().map(|&len| len as u64 + 8).sum();
    let put_all =
        |work: &mut Work<'_>| (0..).zip(&lens).try_for_each(|(id, &len)| work.put(&table, [id], len));
    put_all(work)?;
    work.rest(format!("{rows} rows of 16 B to 57 KB"), |_| 3 * bytes)?;
    put_all(work)?;
    work.rest("each of them updated".into(), promised)
}

fn queue(work: &mut Work<'_>) -> Result<()> {
    const LENGTH: u64 = 1000;
    let (table, passed) = (work.table("queue", 200)?, work.scaled(200_000));
    for first in (0..passed).step_by(10) {
        work.put(&table, first..first + 10, 100)?;
        if let Some(oldest) = first.checked_sub(LENGTH) {
            let deleted = oldest..oldest + 10;
            work.db
                .run(|txn| deleted.clone().try_for_each(|id| txn.delete(&table, &[id.into()]).map(|_| ())))?;
        }
    }
    work.rest(format!("a queue of 1000 rows, {passed} passed"), |_| 2 * MB)
}

/// Rows of 25 MB in all.
fn loaded(work: &mut Work<'_>, rows: u64) -> Result<Table> {
    let table = work.table("rows", 200)?;
    for first in (0..rows).step_by(1000) {
        work.put(&table, first..(first + 1000).min(rows), 100)?;
    }
    Ok(table)
}

fn updates(work: &mut Work<'_>, rows_each: usize) -> Result<()> {
    let rows = work.scaled(200_000);
    let table = loaded(work, rows)?;
    let mut ids: Vec<u64> = (0..5).flat_map(|_| 0..rows).collect();
    ids.chunks_mut(rows as usize).for_each(|round| work.random.shuffle(round));
    for ids in ids.chunks(rows_each) {
        work.put(&table, ids.iter().copied(), 100)?;
    }
    work.rest(format!("{rows} rows updated 5 times, {rows_each} in a transaction"), promised)
}

fn one_transaction(work: &mut Work<'_>) -> Result<()> {
    let (rows, updates) = (work.scaled(8000), work.scaled(1_000_000));
    let table = loaded(work, rows)?;
    let ids: Vec<u64> = (0..updates).map(|_| work.random.below(rows)).collect();
    work.put(&table, ids, 100)?;
    work.rest(format!("{updates} updates of {rows} rows in one transaction"), promised)
}

fn beside_a_reader(work: &mut Work<'_>) -> Result<()> {
    let rows = work.scaled(88_000);
    let table = loaded(work, rows)?;
    let seen = work.db.stats().live_bytes;
    let reader = work.db.begin_read()?;
    let until = Instant::now() + Duration::from_secs_f64(work.settings.reader_seconds);
    while Instant::now() < until {
        let ids: Vec<u64> = (0..100).map(|_| work.random.below(rows)).collect();
        work.put(&table, ids, 100)?;
    }
    let seconds = work.settings.reader_seconds;
    work.rest(format!("updates beside a reader, {seconds} s"), |live| promised(live) + TARGET * seen)?;
    drop(reader);
    work.rest("after the reader".into(), promised)
}

/// Small rows with three indexes, whose keys all change with each update. Then nearly
/// all of them go.
fn indexed(work: &mut Work<'_>) -> Result<()> {
    let names = ["a", "b", "c"];
    let def = TableDef::new("rows").column("id", Type::U64).primary_key(["id"]);
    let def = names.iter().fold(def, |def, name| def.column(*name, Type::U64));
    let def = names.iter().fold(def, |def, name| def.index(IndexDef::new(*name, [*name])));
    let table = work.db.create_table(def)?;
    let rows = work.scaled(200_000);
    for first in (0..6 * rows).step_by(200) {
        work.check()?;
        let ids: Vec<u64> =
            (first..first + 200).map(|n| if n < rows { n } else { work.random.below(rows) }).collect();
        let numbers: Vec<[u64; 3]> = ids.iter().map(|_| [(); 3].map(|()| work.random.word())).collect();
        work.db.run(|txn| {
            ids.iter().zip(&numbers).try_for_each(|(&id, &[a, b, c])| {
                txn.upsert(&table, &[id.into(), a.into(), b.into(), c.into()]).map(|_| ())
            })
        })?;
    }
    work.rest(format!("{rows} rows with 3 indexes updated 5 times"), promised)?;
    for first in (0..rows).step_by(1000) {
        let gone = (first..rows.min(first + 1000)).filter(|id| id % 100 > 0);
        work.db.run(|txn| gone.clone().try_for_each(|id| txn.delete(&table, &[id.into()]).map(|_| ())))?;
    }
    work.rest("99 of 100 of them deleted".into(), promised)
}

/// A few values of 100 KB to 1 MB, written again and again.
fn large_values(work: &mut Work<'_>) -> Result<()> {
    let (table, writes) = (work.table("values", 4 << 20)?, work.scaled(4000));
    for n in 0..writes {
        let len = 100_000 + work.random.index(900_000);
        work.put(&table, [n % 20], len)?;
    }
    work.rest(format!("20 values of 0.1 to 1 MB, {writes} written"), promised)
}
