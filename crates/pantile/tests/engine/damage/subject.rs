//! Databases to be damaged, and the rows that may be read from them afterwards.
//!
//! Every row carries the number of the transaction that wrote it, so that the
//! rows that are read show which transactions are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pantile::{
    CheckOptions, Database, Durability, Error, GcOptions, IndexDef, Options, Range, Result, Row, Table,
    TableDef, Type, Value, inspect,
};
use pantile_testkit::{Patience, Random, ScratchDir};

use super::layout::{Part, What, parts};

/// Table and key.
type Name = (usize, u64);

/// A row: the transaction that wrote it, and the other columns as text.
type Written = (u64, String);

/// What a transaction did.
struct Done {
    timestamp: u64,
    writes: BTreeMap<Name, Option<Written>>,
}

/// A database as a data file, with everything that was ever committed to it.
pub struct Subject {
    pub name: &'static str,
    pub data: Vec<u8>,
    pub parts: Vec<Part>,
    pub closed: bool,
    /// Transactions above it may be taken for uncommitted if they are damaged.
    watermark: u64,
    done: Vec<Done>,
    pub rows: BTreeMap<Name, Written>,
}

const NAMES: [&str; 3] = ["narrow", "wide", "pulse"];

fn definitions() -> [TableDef; 3] {
    let narrow = TableDef::new("narrow").column("id", Type::U64).column("txn", Type::U64);
    let wide = TableDef::new("wide").column("id", Type::U64).column("txn", Type::U64);
    let wide = wide.nullable("tag", Type::String(60)).column("data", Type::Bytes(300_000));
    let pulse = TableDef::new("pulse").column("id", Type::U64).column("txn", Type::U64);
    [
        narrow.primary_key(["id"]).index(IndexDef::unique("by_txn", ["txn", "id"])),
        wide.primary_key(["id"])
            .index(IndexDef::new("by_txn", ["txn"]))
            .index(IndexDef::unique("by_tag", ["tag"])),
        pulse.primary_key(["id"]),
    ]
}

/// Fills a database and records what was committed.
struct Writer {
    random: Random,
    done: Vec<Done>,
    long_values: bool,
}

impl Writer {
    fn new(seed: u64, long_values: bool) -> Self {
        Self { random: Random::new(seed, 0), done: Vec::new(), long_values }
    }

    fn commit(&mut self, db: &Database, tables: &[Table; 3]) {
        let number = self.done.len() as u64 + 1;
        let mut writes = BTreeMap::new();
        let mut txn = db.begin().expect("a transaction");
        for _ in 0..1 + self.random.below(3) {
            let name = (self.random.below(2) as usize, self.random.below(40));
            // Some rows keep their first version.
            if writes.contains_key(&name) || (name.1 >= 30 && number > 30) {
                continue;
            }
            let row = (self.random.below(5) > 0).then(|| self.put(&mut txn, tables, name, number));
            // Deleting a missing row writes nothing.
            let is_written =
                row.is_some() || txn.delete(&tables[name.0], &[name.1.into()]).expect("no conflict");
            if is_written {
                writes.insert(name, row);
            }
        }
        let id = self.random.below(3);
        txn.upsert(&tables[2], &[id.into(), number.into()]).expect("no conflict");
        writes.insert((2, id), Some((number, String::new())));
        let timestamp = txn.commit().expect("the commit").get();
        self.done.push(Done { timestamp, writes });
    }

    fn put(
        &mut self,
        txn: &mut pantile::Transaction,
        tables: &[Table; 3],
        name: Name,
        number: u64,
    ) -> Written {
        let (table, id) = name;
        if table == 0 {
            txn.upsert(&tables[0], &[id.into(), number.into()]).expect("no conflict");
            return (number, String::new());
        }
        let tag = format!("{id} by {number}");
        let tag = (!number.is_multiple_of(3)).then_some(tag);
        let is_long = self.long_values && self.random.below(8) == 0;
        let len = if is_long { 70_000 + self.random.below(60_000) } else { self.random.below(200) };
        let data = vec![(number ^ id) as u8; len as usize];
        let value = tag.as_deref().map_or(Value::Null, Value::Str);
        let row = [id.into(), number.into(), value, Value::Bytes(&data)];
        txn.upsert(&tables[1], &row).expect("no conflict");
        (number, words(tag.as_deref(), &data))
    }
}

fn words(tag: Option<&str>, data: &[u8]) -> String {
    let first = data.first().copied().unwrap_or_default();
    assert!(data.iter().all(|b| *b == first), "bytes of different rows in one value");
    format!("{tag:?} {} times {first}", data.len())
}

fn tables(db: &Database, make: bool) -> [Table; 3] {
    definitions().map(|def| {
        let name = def.name.clone();
        if make { db.create_table(def).expect("a table") } else { db.table(&name).expect("the table") }
    })
}

/// Blocks of a few contents, reclaimed as early as possible.
fn eager(options: Options) -> Options {
    let gc =
        GcOptions { theta: 0.5, queue_share: 0.0, epoch: Duration::from_micros(300), ..GcOptions::default() };
    options.gc(gc).block_slots(8).worker(false)
}

impl Subject {
    /// Closed after ordinary use.
    pub fn closed() -> Self {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let mut writer = Writer::new(1, true);
        for life in 0..3 {
            let db = open(Options::new().streams(2).worker(false), &path);
            let tables = tables(&db, life == 0);
            (0..60).for_each(|_| writer.commit(&db, &tables));
            drop(tables);
            db.close().expect("close");
        }
        Self::read("closed", &path, writer)
    }

    /// Killed, with some transactions above the durable watermark.
    pub fn killed() -> Self {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let mut writer = Writer::new(2, true);
        let db = open(Options::new().streams(2).worker(false), &path);
        let made = tables(&db, true);
        (0..80).for_each(|_| writer.commit(&db, &made));
        drop(made);
        db.close().expect("close");
        let db = open(Options::new().streams(2).worker(false), &path);
        let tables = tables(&db, false);
        (0..40).for_each(|_| writer.commit(&db, &tables));
        let copy = copy(&path, dir.path());
        Self::read("killed", &copy, writer)
    }

    /// Killed while blocks were frozen and a reader kept them from being
    /// released.
    pub fn frozen() -> Self {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let mut writer = Writer::new(3, false);
        let db = open(eager(Options::new()).streams(1), &path);
        let tables = tables(&db, true);
        (0..100).for_each(|_| writer.commit(&db, &tables));
        let patience = Patience::new();
        loop {
            let reader = db.begin_read().expect("begin");
            (0..400).for_each(|_| writer.commit(&db, &tables));
            let copy = copy(&path, dir.path());
            drop(reader);
            let seen = inspect(&copy, &CheckOptions::new()).expect("inspect");
            if seen.tables.iter().any(|table| table.frozen > 0) {
                return Self::read("frozen", &copy, writer);
            }
            patience.check(|| "no block was ever frozen".into());
        }
    }

    /// Killed while a collector moved rows that rarely change.
    pub fn moving(seed: u64) -> Self {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let mut writer = Writer::new(seed, false);
        let db = open(eager(Options::new()).streams(1), &path);
        let tables = tables(&db, true);
        let patience = Patience::new();
        // Not before the first copies, and at any moment after that.
        while db.stats().collector.survivors_relocated < 40 + seed % 97 {
            writer.commit(&db, &tables);
            patience.check(|| "nothing was moved".into());
        }
        (0..seed % 31).for_each(|_| writer.commit(&db, &tables));
        Self::read("moving", &copy(&path, dir.path()), writer)
    }

    /// Closed after much was deleted: free blocks, free chunks, copies.
    pub fn holes() -> Self {
        let dir = ScratchDir::new();
        let path = dir.path().join("db");
        let mut writer = Writer::new(4, true);
        for life in 0..2 {
            let db = open(eager(Options::new()).streams(2), &path);
            let tables = tables(&db, life == 0);
            let patience = Patience::new();
            while db.stats().collector.blocks_reclaimed < 40 {
                (0..50).for_each(|_| writer.commit(&db, &tables));
                patience.check(|| "nothing was reclaimed".into());
            }
            drop(tables);
            db.close().expect("close");
        }
        Self::read("holes", &path, writer)
    }

    fn read(name: &'static str, path: &Path, writer: Writer) -> Self {
        let seen = inspect(path, &CheckOptions::new()).expect("inspect");
        let record = seen.records.iter().find(|record| record.is_used).expect("a state record");
        let data = fs::read(path.join("pantile.data")).expect("read");
        // What was found ahead of use does not matter here. The last block stays whole.
        let used = data
            .iter()
            .rposition(|b| *b != 0)
            .map_or(0, |last| last + 1)
            .next_multiple_of(2 << 20)
            .min(data.len());
        let data = data[..used].to_vec();
        let watermark = if record.closed { u64::MAX } else { record.durable_watermark };
        assert!(record.undecided.is_empty());
        let rows = replay(&writer.done, &BTreeSet::new());
        Self { name, parts: parts(&data), data, closed: record.closed, watermark, done: writer.done, rows }
    }

    /// Whether a part is a content above the durable watermark.
    pub fn is_recent(&self, part: &Part) -> bool {
        let start = part.bytes.start;
        let timestamp = self.data[start..start + 8].iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
        part.what == What::Content && timestamp > self.watermark
    }

    /// Whether a row is one that a transaction has written.
    pub fn was_committed(&self, name: Name, row: &Written) -> bool {
        self.done.iter().any(|done| done.writes.get(&name).is_some_and(|w| w.as_ref() == Some(row)))
    }

    /// An error if the rows that were read are not allowed. Otherwise the
    /// number of transactions above the durable watermark that are missing from
    /// the rows.
    pub fn judge(&self, read: &BTreeMap<Name, Written>) -> std::result::Result<usize, String> {
        if *read == self.rows {
            return Ok(0);
        }
        let plain = self.explain(read, &BTreeSet::new());
        plain.or_else(|error| self.explain(read, &self.brought_back(read)).map_err(|_| error))
    }

    /// Finds the missing transactions that explain what was read. Rows of `back`
    /// are there because one of these had deleted them.
    fn explain(
        &self,
        read: &BTreeMap<Name, Written>,
        back: &BTreeSet<(Name, u64)>,
    ) -> std::result::Result<usize, String> {
        let mut missing: BTreeSet<u64> = back.iter().map(|(_, deleted_by)| *deleted_by).collect();
        let others: BTreeMap<_, _> = read
            .iter()
            .filter(|(name, _)| !back.iter().any(|(of, _)| of == *name))
            .map(|(name, row)| (*name, row.clone()))
            .collect();
        // Again for what follows from the first ones: a row that is not there may
        // not be there for another reason than its last deletion, which is missing.
        while self.find_missing(&others, &mut missing) {}
        if let Some(old) = missing.iter().find(|n| self.done[**n as usize - 1].timestamp <= self.watermark) {
            return Err(format!("transaction {old} is missing and was durable"));
        }
        match replay(&self.done, &missing) == others {
            true => Ok(missing.len()),
            false => Err(format!("transactions {missing:?} are missing in part")),
        }
    }

    /// Rows that were read although they have been deleted for good, with the
    /// transaction whose deletion is missing. It was not the last one: the key has
    /// come back in a new tuple and gone again, and the old tuple knows nothing of
    /// that (docs/design.md, "Known limits of these answers").
    fn brought_back(&self, read: &BTreeMap<Name, Written>) -> BTreeSet<(Name, u64)> {
        let deleted = |(name, row): (&Name, &Written)| {
            let writes = (1..).zip(&self.done).filter_map(|(n, done)| Some((n, done.writes.get(name)?)));
            let writes: Vec<(u64, &Option<Written>)> = writes.collect();
            let is_gone = writes.last().is_some_and(|(_, last)| last.is_none());
            let after = writes.iter().skip_while(|(_, written)| written.as_ref() != Some(row)).nth(1)?;
            (is_gone && after.1.is_none() && writes.last() != Some(after)).then_some((*name, after.0))
        };
        read.iter().filter_map(deleted).collect()
    }

    /// Every transaction that wrote a row after the version that was read is
    /// missing, and a missing one did not write what was read. Returns whether
    /// there are more of them than before.
    fn find_missing(&self, read: &BTreeMap<Name, Written>, missing: &mut BTreeSet<u64>) -> bool {
        let before = missing.len();
        let names: BTreeSet<&Name> = self.done.iter().flat_map(|done| done.writes.keys()).collect();
        for name in names {
            let found = read.get(name);
            for (index, done) in self.done.iter().enumerate().rev() {
                let n = index as u64 + 1;
                match done.writes.get(name) {
                    Some(written) if written.as_ref() == found && !missing.contains(&n) => break,
                    Some(_) => _ = missing.insert(n),
                    None => {}
                }
            }
        }
        missing.len() > before
    }
}

fn replay(done: &[Done], missing: &BTreeSet<u64>) -> BTreeMap<Name, Written> {
    let mut rows = BTreeMap::new();
    for (number, done) in (1..).zip(done) {
        for (name, row) in done.writes.iter().filter(|_| !missing.contains(&number)) {
            match row {
                Some(row) => _ = rows.insert(*name, row.clone()),
                None => _ = rows.remove(name),
            }
        }
    }
    rows
}

fn open(options: Options, path: &Path) -> Database {
    options.durability(Durability::None).open(path).expect("open")
}

/// What a killed process would leave.
fn copy(path: &Path, beside: &Path) -> PathBuf {
    let to = beside.join("killed");
    fs::create_dir_all(&to).expect("directory");
    fs::copy(path.join("pantile.data"), to.join("pantile.data")).expect("copy");
    to
}

/// Every row of the tables that are there, except rows that have lost a value.
pub fn read_tables(db: &Database) -> BTreeMap<Name, Written> {
    let txn = db.begin_read().expect("begin");
    let mut rows = BTreeMap::new();
    for (n, name) in NAMES.into_iter().enumerate() {
        let Ok(table) = db.table(name) else { continue };
        let found = txn.scan(&table, Range::all()).expect("scan");
        rows.extend(found.filter_map(|row| match written(n, &row.expect("a row")) {
            Ok(row) => Some(row),
            Err(Error::Damaged { .. }) => None,
            Err(error) => panic!("{error}"),
        }));
    }
    rows
}

/// All rows of a database; every index gives the same.
pub fn read(db: &Database) -> Result<BTreeMap<Name, Written>> {
    let txn = db.begin_read()?;
    let mut rows = BTreeMap::new();
    for (n, name) in NAMES.into_iter().enumerate() {
        let table = db.table(name)?;
        let of_table: BTreeMap<Name, Written> =
            txn.scan(&table, Range::all())?.map(|row| written(n, &row?)).collect::<Result<_>>()?;
        for index in &table.definition().indexes {
            let by = table.index(&index.name)?;
            let found = txn.scan_index(&by, Range::all())?;
            let found: Vec<_> = found.map(|row| written(n, &row?)).collect::<Result<_>>()?;
            assert_eq!(found.len(), of_table.len(), "index {}", index.name);
            assert_eq!(found.into_iter().collect::<BTreeMap<_, _>>(), of_table, "index {}", index.name);
        }
        rows.extend(of_table);
    }
    Ok(rows)
}

fn written(table: usize, row: &Row<'_>) -> Result<(Name, Written)> {
    let rest = match table {
        1 => words(row.get::<Option<&str>>(2)?, &row.get::<Vec<u8>>(3)?),
        _ => String::new(),
    };
    Ok(((table, row.get(0)?), (row.get(1)?, rest)))
}
