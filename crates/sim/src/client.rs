//! One of several clients whose calls take turns in one thread.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::{
    ConflictPolicy, Database, Error, InFlight, Isolation, Range, Savepoint, Table, Transaction,
    TransactionOptions, Value,
};

use crate::state::{Change, Look, Row, Versions};
use pantile_testkit::Random;

/// Keys are below this.
pub(crate) const KEYS: u64 = 24;
/// The same where many rows are deleted.
const MANY_KEYS: u64 = 300;
/// Values of the column with a secondary index are below this.
const VALUES: u64 = 5;
/// A large transaction writes this many rows, from this key on.
const FLOOD: u64 = 400;
const FLOOD_KEYS: u64 = 1 << 50;
const LATE: [Isolation; 2] = [Isolation::Snapshot, Isolation::ReadCommitted];
/// Blocks that a collector may open when it makes room.
const OPENED: u64 = 12;
/// Lengths of values out of line.
const LONG: [u64; 3] = [66_000, 66_000, 140_000];

/// Rows by table and key; `None` if the row was deleted.
type Writes = BTreeMap<(String, u64), Option<Row>>;

/// A client between two of its calls.
pub(crate) struct Client {
    core: u8,
    open: Option<Open>,
}

struct Open {
    txn: Transaction,
    kind: TransactionMode,
    /// Calls until it ends.
    left: u64,
    writes: Writes,
    savepoint: Option<(Savepoint, Writes)>,
    /// What it has read, and would read again if it moved.
    looks: RefCell<Vec<Look>>,
    /// Tables that it has used, some of them dropped since.
    tables: BTreeMap<String, Table>,
    /// Those in which it has locked rows, or wanted to.
    locked: BTreeSet<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum TransactionMode {
    Writer(Isolation),
    Reader,
    /// Reads at a safe snapshot.
    Safe,
}

/// What a turn did to the database.
pub(crate) enum Turn {
    Nothing,
    /// A reader has been told what is there at a timestamp.
    Told {
        at: u64,
        looks: Vec<Look>,
    },
    /// There was no space for a commit.
    Refused,
    Committed(Commit),
    /// Others see the commit, and it is not yet durable.
    Published(Commit, InFlight),
}

/// A commit, and what it rests on.
pub(crate) struct Commit {
    pub ts: u64,
    pub changes: Vec<Change>,
    /// When the transaction has read.
    pub read_at: u64,
    pub looks: Vec<Look>,
}

/// What clients mostly do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    /// A mix of everything.
    Varied,
    /// Write the same few rows again and again, so that whole blocks become
    /// obsolete.
    Churning,
    /// Write and delete runs of many rows, so that tombstones are swept.
    Deleting,
}

impl Mood {
    pub fn is_busy(self) -> bool {
        self != Mood::Varied
    }

    /// The first key to use, and how many keys from there on.
    fn keys(self, hot: u64, random: &mut Random) -> (u64, u64) {
        match self {
            // Some rows are written once, and the contents beside them become obsolete.
            Mood::Churning if random.one_in(6) => (KEYS + random.below(1 << 40), 1),
            Mood::Churning if !random.one_in(8) => (random.below(hot), 1),
            Mood::Varied | Mood::Churning => (random.below(KEYS), 1),
            Mood::Deleting => (random.below(MANY_KEYS), 1 + random.below(24)),
        }
    }
}

/// The rows of a table that were selected by a value of the indexed column.
pub(crate) struct Selection {
    pub table: String,
    value: u64,
    /// When the transaction reads.
    at: u64,
}

/// What all clients share.
pub(crate) struct Stage<'s> {
    pub db: &'s Database,
    pub versions: &'s mut Versions,
    pub random: &'s mut Random,
    pub mood: Mood,
    /// The number of keys that are written most, where the same keys are
    /// written again and again.
    pub hot: u64,
    /// Some transactions are large.
    pub floods: bool,
    /// Many transactions draw their timestamp when they commit.
    pub often_late: bool,
    /// The client's commit was refused, and it looks what is there.
    pub is_looking: bool,
    /// The database is being closed, so that no transaction begins.
    pub is_closing: bool,
    /// Another commit may be left in flight.
    pub may_publish: bool,
    /// How long a transaction is run again, and the time that passes.
    pub retry_for: Duration,
    pub time: &'s SimulatedTime,
    /// What was just read through an index that is to be dropped.
    pub scanned: &'s mut Option<Selection>,
    /// What was read through an index that has been dropped. An older writer
    /// tries to change it.
    pub wanted: &'s mut Option<Selection>,
}

impl Client {
    pub fn new(core: u8) -> Self {
        Self { core, open: None }
    }

    pub fn core(&self) -> u8 {
        self.core
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_none()
    }

    /// Makes one call.
    ///
    /// # Errors
    /// A description, if the database answered wrongly.
    pub fn turn(&mut self, stage: &mut Stage<'_>) -> Result<Turn, String> {
        let Some(open) = &mut self.open else {
            if stage.random.one_in(80) {
                return run(stage);
            }
            self.open = begin(self.core, stage)?;
            return Ok(Turn::Nothing);
        };
        if open.left == 0 {
            return self.open.take().expect("the transaction is open").end(stage);
        }
        open.left -= 1;
        match open.call(stage) {
            Err(Call::Conflict(how)) if !open.is_writer() => Err(format!("a reader met a conflict: {how}")),
            Err(Call::Refused | Call::Conflict(_)) if stage.random.one_in(2) => {
                self.open.take().expect("the transaction is open").txn.rollback();
                Ok(Turn::Nothing)
            }
            Ok(()) if !open.is_writer() => Ok(Turn::Told { at: open.ts(), looks: open.looks.take() }),
            Ok(()) | Err(Call::Refused | Call::Conflict(_)) => Ok(Turn::Nothing),
            Err(Call::Wrong(how)) => Err(how),
        }
    }

    /// Ends the open transaction without committing.
    pub fn leave(&mut self) {
        self.open = None;
    }
}

/// Why a call did not do what it should.
enum Call {
    /// Legitimately: there was no space, or no table.
    Refused,
    /// Another transaction stood in the way, which it may only of writers.
    Conflict(String),
    Wrong(String),
}

impl From<Error> for Call {
    fn from(error: Error) -> Self {
        match error {
            Error::Conflict { .. } => Call::Conflict(error.to_string()),
            Error::StorageFull { .. } | Error::TableDropped(_) => Call::Refused,
            other => Call::Wrong(format!("a call failed: {other}")),
        }
    }
}

fn begin(core: u8, stage: &mut Stage<'_>) -> Result<Option<Open>, String> {
    // Where rows are churned, most transactions write. Where runs of rows are
    // deleted only one client writes, because others would only conflict.
    if stage.mood == Mood::Deleting && core > 0 && !stage.random.one_in(16) {
        return Ok(None);
    }
    let kind = match stage.random.below(if stage.mood.is_busy() { 48 } else { 20 }) {
        _ if stage.is_looking => TransactionMode::Reader,
        0..16 if stage.often_late => TransactionMode::Writer(*stage.random.pick(&LATE)),
        20.. | 0..12 => TransactionMode::Writer(Isolation::Serializable),
        12..14 => TransactionMode::Writer(Isolation::Snapshot),
        14..16 => TransactionMode::Writer(Isolation::ReadCommitted),
        16..18 => TransactionMode::Reader,
        18..20 => TransactionMode::Safe,
    };
    let options = TransactionOptions::new().conflict(ConflictPolicy::Abort);
    let options = match kind {
        TransactionMode::Writer(isolation) => options.isolation(isolation),
        TransactionMode::Reader => options.read_only(true),
        TransactionMode::Safe => options.safe_snapshot(),
    };
    let txn = match stage.db.begin_with(options) {
        Err(Error::Closed) if stage.is_closing => return Ok(None),
        other => other.map_err(|error| format!("begin: {error}"))?,
    };
    let left = match kind {
        // Some readers run for long.
        TransactionMode::Reader | TransactionMode::Safe if stage.random.one_in(4) => {
            match stage.mood.is_busy() {
                true => 50 + stage.random.below(500),
                false => 20 + stage.random.below(60),
            }
        }
        _ if stage.random.one_in(30) => 30,
        _ => 1 + stage.random.below(if stage.mood.is_busy() { 3 } else { 5 }),
    };
    Ok(Some(Open {
        txn,
        kind,
        left,
        writes: Writes::new(),
        savepoint: None,
        looks: RefCell::default(),
        tables: BTreeMap::new(),
        locked: BTreeSet::new(),
    }))
}

/// Writes a row in a transaction that is run again while others have locked it,
/// for as long as it may be.
fn run(stage: &mut Stage<'_>) -> Result<Turn, String> {
    let names = stage.db.tables();
    let Some(name) = names.get(stage.random.below(names.len().max(1) as u64) as usize) else {
        return Ok(Turn::Nothing);
    };
    let table = stage.db.table(name).map_err(|error| format!("run: {error}"))?;
    let (key, _) = stage.mood.keys(stage.hot, stage.random);
    let row = (stage.random.below(VALUES), vec![stage.random.below(250) as u8 + 1; 9]);
    let options = TransactionOptions::new().conflict(ConflictPolicy::Abort);
    let began = stage.time.now();
    let attempt = || {
        let mut txn = stage.db.begin_with(options)?;
        txn.upsert(&table, &values(&table, key, &row))?;
        // It may have moved behind readers since it began.
        Ok(txn.commit()?.get())
    };
    let mut retry = stage.db.retry();
    let outcome = loop {
        match attempt() {
            Err(error) if retry.again(&error) => {}
            outcome => break outcome,
        }
    };
    let took = stage.time.now() - began;
    match outcome {
        Ok(ts) => {
            let changes = vec![Change::Put(name.clone(), key, Some(row))];
            stage.versions.commit(ts, &changes)?;
            Ok(Turn::Committed(Commit { ts, changes, read_at: ts, looks: Vec::new() }))
        }
        Err(Error::StorageFull { .. }) => Ok(Turn::Refused),
        Err(Error::Closed) if stage.is_closing => Ok(Turn::Nothing),
        Err(Error::Conflict { .. }) if took >= stage.retry_for => Ok(Turn::Nothing),
        Err(error) => Err(format!("run, after {took:?} of {:?}: {error}", stage.retry_for)),
    }
}

impl Open {
    fn call(&mut self, stage: &mut Stage<'_>) -> Result<(), Call> {
        let mut names = stage.db.tables();
        names.extend(self.tables.keys().filter(|name| !stage.versions.has(name)).cloned());
        let Some(name) = names.get(stage.random.below(names.len().max(1) as u64) as usize) else {
            return Ok(());
        };
        let (key, run) = stage.mood.keys(stage.hot, stage.random);
        if key % 3 == 0 {
            self.txn.end_statement();
        }
        let writes = self.is_writer();
        let is_older = |read: &mut Selection| self.may_precede(read.at);
        if let Some(read) = stage.wanted.take_if(is_older).filter(|read| stage.versions.has(&read.table)) {
            return self.put_value(stage, &read.table, key, read.value);
        }
        if writes && stage.floods && stage.random.one_in(100) {
            return self.flood(stage, &names);
        }
        let first = if writes && stage.mood.is_busy() && !stage.random.one_in(4) { 7 } else { 0 };
        match first + stage.random.below(if writes { 16 } else { 6 } - first) {
            0..2 => self.get(stage, name, key),
            2 => self.get_many(stage, name, key..key + 2 * run),
            3..5 => self.scan(stage, name, key),
            5 => self.scan_index(stage, name),
            6 => self.lock(stage, name, key),
            7..13 => (key..key + run).try_for_each(|key| self.put(stage, name, key)),
            13..15 => (key..key + 2 * run).try_for_each(|key| self.delete(stage, name, key)),
            _ => self.save_or_go_back(stage),
        }
    }

    /// The table, which may have been dropped since it was used first.
    fn table(&mut self, stage: &Stage<'_>, name: &str) -> Result<Table, Error> {
        if let Some(table) = self.tables.get(name) {
            return Ok(table.clone());
        }
        let table = stage.db.table(name)?;
        self.tables.insert(name.to_owned(), table.clone());
        Ok(table)
    }

    fn table_to_lock(&mut self, stage: &Stage<'_>, name: &str) -> Result<Table, Error> {
        self.locked.insert(name.to_owned());
        self.table(stage, name)
    }

    /// Writes or deletes many rows of one table, or a row of every table.
    fn flood(&mut self, stage: &mut Stage<'_>, names: &[String]) -> Result<(), Call> {
        let keys = FLOOD_KEYS..FLOOD_KEYS + FLOOD;
        let name = stage.random.pick(names).clone();
        match stage.random.below(if names.len() > 3 { 6 } else { 3 }) {
            0 => keys.into_iter().try_for_each(|key| self.delete(stage, &name, key)),
            1..3 => keys.into_iter().try_for_each(|key| self.put(stage, &name, key)),
            _ => names.iter().try_for_each(|name| self.put(stage, name, 0)),
        }
    }

    fn is_writer(&self) -> bool {
        matches!(self.kind, TransactionMode::Writer(_))
    }

    /// Whether it writes below a timestamp, unless it moves.
    fn may_precede(&self, ts: u64) -> bool {
        self.kind == TransactionMode::Writer(Isolation::Serializable) && self.txn.timestamp().get() < ts
    }

    /// The timestamp at which the next call reads.
    fn ts(&self) -> u64 {
        match self.kind {
            TransactionMode::Writer(Isolation::ReadCommitted) => u64::MAX,
            _ => self.txn.timestamp().get(),
        }
    }

    /// Whether what it reads restricts later writers.
    fn is_remembered(&self) -> bool {
        !matches!(self.kind, TransactionMode::Writer(Isolation::ReadCommitted))
    }

    fn expected(&self, stage: &mut Stage<'_>, table: &str, key: u64) -> Option<Row> {
        if let Some(own) = self.writes.get(&(table.to_owned(), key)) {
            return own.clone();
        }
        self.look(stage, Look::Key(table.to_owned(), key));
        stage.versions.peek(table, key, self.ts())
    }

    /// Records what a read restricts.
    fn look(&self, stage: &mut Stage<'_>, look: Look) {
        if self.is_remembered() {
            stage.versions.record(&look, self.ts());
            self.looks.borrow_mut().push(look);
        }
    }

    fn expected_range(&self, stage: &mut Stage<'_>, table: &str, keys: (u64, u64)) -> BTreeMap<u64, Row> {
        self.look(stage, Look::Range(table.to_owned(), keys));
        let mut rows = stage.versions.peek_range(table, keys, self.ts());
        self.add_own(table, keys, &mut rows);
        rows
    }

    fn add_own(&self, table: &str, keys: (u64, u64), rows: &mut BTreeMap<u64, Row>) {
        for ((_, key), row) in self.writes.iter().filter(|((name, _), _)| name == table) {
            match row {
                Some(row) if (keys.0..=keys.1).contains(key) => rows.insert(*key, row.clone()),
                _ => rows.remove(key),
            };
        }
    }

    fn wrong(&self, what: &str, found: &impl std::fmt::Debug, expected: &impl std::fmt::Debug) -> Call {
        let txn = &self.txn;
        Call::Wrong(format!("{what} by {txn:?}: found {found:?}, expected {expected:?}"))
    }

    fn get(&mut self, stage: &mut Stage<'_>, name: &str, key: u64) -> Result<(), Call> {
        let table = self.table(stage, name)?;
        let found = self.txn.get(&table, &[key.into()])?.map(|row| decode(&row)).transpose()?;
        let expected = self.expected(stage, name, key);
        let found = found.map(|(_, row)| row);
        if found == expected { Ok(()) } else { Err(self.wrong(&format!("{name} {key}"), &found, &expected)) }
    }

    fn get_many(
        &mut self,
        stage: &mut Stage<'_>,
        name: &str,
        keys: std::ops::Range<u64>,
    ) -> Result<(), Call> {
        let table = self.table(stage, name)?;
        let named: Vec<[Value<'_>; 1]> = keys.clone().map(|key| [key.into()]).collect();
        let rows = self.txn.get_many(&table, &named)?;
        let decoded = |row: Option<pantile::Row<'_>>| row.map(|row| decode(&row)).transpose();
        let found: Vec<_> = rows.into_iter().map(decoded).collect::<Result<_, Error>>()?;
        for (key, found) in keys.zip(found) {
            let (found, expected) = (found.map(|(_, row)| row), self.expected(stage, name, key));
            if found != expected {
                return Err(self.wrong(&format!("{name} {key}, of many"), &found, &expected));
            }
        }
        Ok(())
    }

    fn scan(&mut self, stage: &mut Stage<'_>, name: &str, key: u64) -> Result<(), Call> {
        let table = self.table(stage, name)?;
        let keys = if stage.random.one_in(3) { (0, u64::MAX) } else { (key, key + 5) };
        let (first, last) = ([keys.0.into()], [keys.1.into()]);
        let range = Range::all().from(Bound::Included(&first)).to(Bound::Included(&last));
        let found = self.txn.scan(&table, range)?.map(|row| decode(&row?)).collect::<Result<_, Error>>()?;
        let expected = self.expected_range(stage, name, keys);
        let found: BTreeMap<u64, Row> = found;
        if found == expected {
            Ok(())
        } else {
            Err(self.wrong(&format!("{name} {keys:?}"), &found, &expected))
        }
    }

    fn scan_index(&mut self, stage: &mut Stage<'_>, name: &str) -> Result<(), Call> {
        let table = self.table(stage, name)?;
        let Ok(index) = table.index(BY_V) else { return Ok(()) };
        let value = stage.random.below(VALUES);
        let selection = Selection { table: name.to_owned(), value, at: self.txn.timestamp().get() };
        *stage.scanned = stage.random.one_in(3).then_some(selection);
        let rows = self.txn.scan_index(&index, Range::prefix(&[value.into()]))?;
        let found: BTreeMap<u64, Row> = rows.map(|row| decode(&row?)).collect::<Result<_, Error>>()?;
        self.look(stage, Look::Value(name.to_owned(), value));
        let mut expected = stage.versions.peek_range(name, (0, u64::MAX), self.ts());
        self.add_own(name, (0, u64::MAX), &mut expected);
        expected.retain(|_, row| row.0 == value);
        if found == expected {
            Ok(())
        } else {
            Err(self.wrong(&format!("{name} by v {value}"), &found, &expected))
        }
    }

    fn lock(&mut self, stage: &mut Stage<'_>, name: &str, key: u64) -> Result<(), Call> {
        let table = self.table_to_lock(stage, name)?;
        self.txn.get_for_update(&table, &[key.into()])?;
        Ok(())
    }

    fn put(&mut self, stage: &mut Stage<'_>, name: &str, key: u64) -> Result<(), Call> {
        let value = stage.random.below(VALUES);
        self.put_value(stage, name, key, value)
    }

    fn put_value(&mut self, stage: &mut Stage<'_>, name: &str, key: u64, value: u64) -> Result<(), Call> {
        let table = self.table_to_lock(stage, name)?;
        let len = match stage.random.below(300) {
            0 if stage.mood != Mood::Deleting => *stage.random.pick(&LONG),
            1..60 if stage.mood == Mood::Varied => 4 + stage.random.below(300),
            // Rows of one size class fill their blocks soon.
            _ if stage.mood.is_busy() => 4 + stage.random.below(4),
            _ => 4 + stage.random.below(30),
        };
        let row = (value, vec![stage.random.below(250) as u8 + 1; len as usize]);
        match self.txn.upsert(&table, &values(&table, key, &row)) {
            // The handle is from before.
            Err(Error::ColumnDropped { .. }) => {
                let table = stage.db.table(name)?;
                self.txn.upsert(&table, &values(&table, key, &row))?;
                self.tables.insert(name.to_owned(), table);
            }
            outcome => drop(outcome?),
        }
        self.writes.insert((name.to_owned(), key), Some(row));
        Ok(())
    }

    fn delete(&mut self, stage: &mut Stage<'_>, name: &str, key: u64) -> Result<(), Call> {
        let table = self.table_to_lock(stage, name)?;
        if self.txn.delete(&table, &[key.into()])? {
            self.writes.insert((name.to_owned(), key), None);
        }
        Ok(())
    }

    fn save_or_go_back(&mut self, stage: &mut Stage<'_>) -> Result<(), Call> {
        match self.savepoint.take() {
            Some((savepoint, writes)) if stage.random.one_in(2) => {
                self.txn.rollback_to(savepoint)?;
                self.writes = writes;
            }
            _ => self.savepoint = Some((self.txn.savepoint(), self.writes.clone())),
        }
        Ok(())
    }

    fn end(self, stage: &mut Stage<'_>) -> Result<Turn, String> {
        if stage.random.one_in(8) {
            self.txn.rollback();
            return Ok(Turn::Nothing);
        }
        let changes: Vec<Change> =
            self.writes.into_iter().map(|((table, key), row)| Change::Put(table, key, row)).collect();
        let is_large = changes.len() as u64 >= FLOOD / 2;
        let began = self.txn.timestamp().get();
        let before = if is_large { open_blocks(stage.db) } else { 0 };
        let may_fly = stage.may_publish && stage.random.one_in(2);
        let ended = match may_fly {
            true => self.txn.publish().map(|flight| (flight.timestamp(), Some(flight))),
            false => self.txn.commit().map(|ts| (ts, None)),
        };
        match ended {
            Ok((ts, flight)) => {
                let (ts, looks) = (ts.get(), self.looks.into_inner());
                if self.kind == TransactionMode::Writer(Isolation::Serializable) && ts > began {
                    stage.versions.read_again(&looks, began, ts)?;
                }
                stage.versions.commit(ts, &changes)?;
                let commit = Commit { ts, changes, read_at: began, looks };
                Ok(match flight {
                    Some(flight) => Turn::Published(commit, flight),
                    None => Turn::Committed(commit),
                })
            }
            Err(Error::Conflict { .. }) => Ok(Turn::Nothing),
            Err(Error::StorageFull { .. }) if is_large && open_blocks(stage.db) > before + OPENED => {
                Err(format!("a refused commit left {} open blocks of {before}", open_blocks(stage.db)))
            }
            Err(Error::StorageFull { .. }) => Ok(Turn::Refused),
            Err(Error::TableDropped(_)) if self.locked.iter().any(|name| !stage.versions.has(name)) => {
                Ok(Turn::Nothing)
            }
            Err(error) => Err(format!("commit: {error}")),
        }
    }
}

/// Blocks that are not full.
fn open_blocks(db: &Database) -> u64 {
    db.space_by_table().iter().map(|of| of.open_blocks).sum()
}

/// The secondary index of each table, on the second column.
pub(crate) const BY_V: &str = "by_v";

/// A column that some tables have at some times, behind the others, with its only
/// value.
pub(crate) const PAD: (&str, u64) = ("pad", 7);

/// The values of a row, for a handle that may know the pad.
fn values<'r>(table: &Table, key: u64, row: &'r Row) -> Vec<Value<'r>> {
    let mut values = vec![key.into(), row.0.into(), Value::Bytes(&row.1)];
    if table.column(PAD.0).is_ok() {
        values.push(PAD.1.into());
    }
    values
}

/// The key and the rest of a row.
pub(crate) fn decode(row: &pantile::Row<'_>) -> pantile::Result<(u64, Row)> {
    Ok((row.get(0)?, (row.get(1)?, row.get::<Option<Vec<u8>>>(2)?.unwrap_or_default())))
}
