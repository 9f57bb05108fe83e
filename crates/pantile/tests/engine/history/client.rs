//! Clients that record what their transactions read and write.
//!
//! Histories consist of keys and values. Keys below [`NAMED`] are the primary
//! keys of one table, which can also be scanned by a copy of the key in a
//! secondary index. The keys from [`NAMED`] on are the keys of another table's
//! unique secondary index: rows are inserted and deleted, and move from one key
//! to another.

use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use pantile::{
    Conflict, ConflictPolicy, Database, Error, Index, IndexDef, Isolation, Range, Result, Table, TableDef,
    Transaction, TransactionOptions, Type, Value,
};
use pantile_history::{History, Outcome, Recorder};
use pantile_testkit::Random;

use crate::support::{is_conflict, is_duplicate};

/// The first key of the first table.
pub const ITEMS: u64 = 0;
/// The first key of the second table.
pub const NAMED: u64 = 1000;
/// Keys of each table.
const KEYS: u64 = 7;

/// How much to run, and at which isolation levels.
#[derive(Clone, Copy)]
pub struct Load {
    pub threads: u64,
    pub transactions: u64,
    pub levels: &'static [Isolation],
    /// The tables used, by their first keys.
    pub tables: &'static [u64],
    /// Whether the database has a protocol of the laboratory: its commits may meet any conflict, and may be late.
    pub under_protocol: bool,
}

/// What a run recorded.
pub struct Recorded {
    pub history: History,
    /// Transactions that read safe snapshots.
    pub safe: HashSet<u64>,
    /// Transactions that were not serializable.
    pub late: HashSet<u64>,
}

impl Recorded {
    pub fn without_safe(&self) -> History {
        let all = self.history.transactions.iter();
        History { transactions: all.filter(|t| !self.safe.contains(&t.id)).cloned().collect() }
    }

    pub fn commits(&self) -> usize {
        let all = self.history.transactions.iter();
        all.filter(|t| matches!(t.outcome, Outcome::Committed { .. })).count()
    }
}

/// The tables.
#[derive(Clone)]
pub struct Store {
    pub db: Database,
    pub items: Table,
    by_copy: Index,
    named: Table,
    by_name: Index,
}

impl Store {
    pub fn new(db: &Database) -> Self {
        let items = TableDef::new("items")
            .column("key", Type::U64)
            .column("value", Type::U64)
            .column("copy", Type::U64)
            .primary_key(["key"])
            .index(IndexDef::new("by_copy", ["copy"]));
        let named = TableDef::new("named")
            .column("id", Type::U64)
            .column("value", Type::U64)
            .column("name", Type::U64)
            .primary_key(["id"])
            .index(IndexDef::unique("by_name", ["name"]));
        db.create_table(items).expect("a table");
        db.create_table(named).expect("a table");
        Self::find(db)
    }

    pub fn find(db: &Database) -> Self {
        let table = |name| db.table(name).expect("the table");
        let (items, named) = (table("items"), table("named"));
        let (by_copy, by_name) = (items.index("by_copy"), named.index("by_name"));
        Self { db: db.clone(), items, named, by_copy: by_copy.expect("it"), by_name: by_name.expect("it") }
    }

    /// Indexes and tables have the same rows, and names are unique.
    pub fn check_indexes(&self) {
        for begin in [Database::begin_read, Database::begin_safe_snapshot] {
            let txn = begin(&self.db).expect("a transaction");
            for (table, index) in [(&self.items, &self.by_copy), (&self.named, &self.by_name)] {
                let key =
                    |row: Result<pantile::Row<'_>>| row.and_then(|r| Ok((r.get(2)?, r.get(0)?, r.get(1)?)));
                let rows = txn.scan(table, Range::all()).and_then(|rows| rows.map(key).collect());
                let indexed = txn.scan_index(index, Range::all()).and_then(|rows| rows.map(key).collect());
                let mut rows: Vec<(u64, u64, u64)> = rows.expect("no conflict");
                let indexed: Vec<(u64, u64, u64)> = indexed.expect("no conflict");
                rows.sort_unstable();
                assert_eq!(rows, indexed, "{}", table.name());
                assert!(rows.windows(2).all(|two| two[0].0 < two[1].0), "keys are unique: {rows:?}");
            }
        }
    }

    fn read(&self, txn: &Transaction, key: u64) -> Result<Option<(u64, u64)>> {
        let row = match key {
            NAMED.. => txn.get_by_index(&self.by_name, &[(key - NAMED).into()])?,
            _ => txn.get(&self.items, &[key.into()])?,
        };
        row.map(|row| Ok((row.get(0)?, row.get(1)?))).transpose()
    }

    pub fn scan(&self, txn: &Transaction, low: u64, high: u64, rng: &mut Random) -> Result<Vec<(u64, u64)>> {
        let base = if low >= NAMED { NAMED } else { 0 };
        let (lower, upper) = ([Value::UInt(low - base)], [Value::UInt(high - base)]);
        let mut range = Range::all().from(Bound::Included(&lower)).to(Bound::Included(&upper));
        if rng.percent(50) {
            range = range.reverse();
        }
        let rows = match base {
            NAMED => txn.scan_index(&self.by_name, range)?,
            _ if rng.percent(50) => txn.scan_index(&self.by_copy, range)?,
            _ => txn.scan(&self.items, range)?,
        };
        rows.map(|row| row.and_then(|row| Ok((base + row.get::<u64>(2)?, row.get(1)?)))).collect()
    }
}

/// Runs clients side by side.
pub fn record(store: &Store, load: Load, seed: u64, origin: Instant) -> Recorded {
    let start = Barrier::new(load.threads as usize);
    let clients: Vec<Client> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..load.threads)
            .map(|n| {
                let mut client = Client {
                    store: store.clone(),
                    load,
                    added: HashSet::new(),
                    recorder: Recorder::new(n + 1, origin),
                    rng: Random::new(seed << 8 | n, 0),
                    safe: HashSet::new(),
                    late: HashSet::new(),
                };
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    for _ in 0..load.transactions {
                        client.transaction();
                    }
                    client
                })
            })
            .collect();
        threads.into_iter().map(|t| t.join().expect("the client ends")).collect()
    });
    let (mut safe, mut late) = (HashSet::new(), HashSet::new());
    let parts = clients.into_iter().map(|client| {
        safe.extend(client.safe);
        late.extend(client.late);
        client.recorder.finish()
    });
    let history = History::merge(parts);
    Recorded { history, safe, late }
}

struct Client {
    store: Store,
    load: Load,
    /// Keys that the running transaction has added.
    added: HashSet<u64>,
    recorder: Recorder,
    rng: Random,
    safe: HashSet<u64>,
    late: HashSet<u64>,
}

impl Client {
    /// Runs a transaction, and runs it again after conflicts.
    fn transaction(&mut self) {
        let policy =
            *self.rng.pick(&[ConflictPolicy::Abort, ConflictPolicy::Wait(Duration::from_millis(100))]);
        let level = *self.rng.pick(self.load.levels);
        let options = TransactionOptions::new().isolation(level).conflict(policy);
        let options = match self.rng.below(10) {
            0 => options.safe_snapshot(),
            1 | 2 => options.read_only(true),
            _ => options,
        };
        let program = self.rng.clone();
        for _ in 0..3 {
            self.rng = program.clone();
            if self.attempt(options, level) {
                return;
            }
            std::thread::yield_now();
        }
    }

    /// Whether it ended as intended.
    fn attempt(&mut self, options: TransactionOptions, level: Isolation) -> bool {
        let id = self.recorder.begin();
        self.added.clear();
        let mut txn = self.store.db.begin_with(options).expect("a transaction");
        if options == options.safe_snapshot() {
            self.safe.insert(id);
        } else if level != Isolation::Serializable {
            self.late.insert(id);
        }
        let steps = 1 + self.rng.below(6);
        for _ in 0..steps {
            if let Err(error) = self.step(&mut txn) {
                assert!(is_conflict(&error) || is_duplicate(&error), "{error}");
                assert!(!self.safe.contains(&id), "a safe snapshot meets no conflict: {error}");
                drop(txn);
                self.recorder.abort();
                return !is_conflict(&error);
            }
            if self.rng.percent(15) {
                std::thread::yield_now();
            }
        }
        if self.rng.percent(10) {
            txn.rollback();
            self.recorder.abort();
            return true;
        }
        match txn.commit() {
            Ok(ts) => self.recorder.commit(ts.get()),
            // It had to move.
            Err(Error::Conflict { conflict: Conflict::ReadChanged, .. })
                if level == Isolation::Serializable =>
            {
                self.recorder.abort();
                return false;
            }
            Err(error) if self.load.under_protocol && is_conflict(&error) => {
                self.recorder.abort();
                return false;
            }
            Err(error) => panic!("conflicts show before: {error}"),
        }
        true
    }

    fn step(&mut self, txn: &mut Transaction) -> Result<()> {
        let base = *self.rng.pick(self.load.tables);
        let key = base + self.rng.below(KEYS);
        let dice = if txn.is_read_only() { self.rng.below(50) } else { self.rng.below(100) };
        match dice {
            0..10 if base == 0 => self.read_many(txn, key)?,
            70..80 if base == 0 => self.change_many(txn, key)?,
            0..30 => {
                let row = self.store.read(txn, key)?;
                self.recorder.read(key, row.map(|r| r.1));
            }
            30..50 => {
                let high = (key + self.rng.below(4)).min(base + KEYS);
                let found = self.store.scan(txn, key, high, &mut self.rng)?;
                self.recorder.scan(key, high, found);
            }
            50..80 if base == 0 => {
                let value = self.recorder.fresh();
                // All columns beside the key, which leaves nothing of the row.
                let all = [(1, value.into()), (2, key.into())];
                let is_there = self.rng.percent(50) && txn.update(&self.store.items, &[key.into()], &all)?;
                if !is_there && !txn.upsert(&self.store.items, &[key.into(), value.into(), key.into()])? {
                    self.added.insert(key);
                }
                self.recorder.write(key, value);
            }
            // Adding a row and deleting it again writes nothing. The history
            // would have a tombstone, which at the timestamp of a late commit
            // would hide what others have added meanwhile.
            75.. if self.is_late(txn) && self.added.contains(&key) => {}
            _ if base == 0 => match txn.delete(&self.store.items, &[key.into()])? {
                true => self.recorder.delete(key),
                false => self.recorder.read(key, None),
            },
            50..75 => self.write_named(txn, key)?,
            75..85 => self.move_named(txn, key)?,
            _ => self.delete_named(txn, key)?,
        }
        Ok(())
    }

    fn is_late(&self, txn: &Transaction) -> bool {
        txn.isolation() != Isolation::Serializable || self.load.under_protocol
    }

    /// Reads some keys by one call, perhaps one of them twice.
    fn read_many(&mut self, txn: &Transaction, key: u64) -> Result<()> {
        let keys = [key, self.rng.below(KEYS), self.rng.below(KEYS)];
        let rows = txn.get_many(&self.store.items, &keys.map(|key| [key.into()]))?;
        for (key, row) in keys.into_iter().zip(rows) {
            self.recorder.read(key, row.map(|row| row.get(1)).transpose()?);
        }
        Ok(())
    }

    /// Changes the rows of some keys by one call.
    fn change_many(&mut self, txn: &mut Transaction, key: u64) -> Result<()> {
        let keys = [0, 1, 2].map(|n| (key + n * (KEYS / 3)) % KEYS);
        let values = keys.map(|_| self.recorder.fresh());
        let mut changed = [false; 3];
        txn.modify_many(&self.store.items, &keys.map(|key| [key.into()]), |n, row| {
            changed[n] = true;
            row.set(1, values[n].into()).map(|()| true)
        })?;
        for n in 0..keys.len() {
            match changed[n] {
                true => self.recorder.write(keys[n], values[n]),
                false => self.recorder.read(keys[n], None),
            }
        }
        Ok(())
    }

    /// The row with a name, which is recorded as read.
    fn find_named(&mut self, txn: &Transaction, key: u64) -> Result<Option<u64>> {
        let row = self.store.read(txn, key)?;
        self.recorder.read(key, row.map(|r| r.1));
        Ok(row.map(|r| r.0))
    }

    fn write_named(&mut self, txn: &mut Transaction, key: u64) -> Result<()> {
        let value = self.recorder.fresh();
        let written = match self.find_named(txn, key)? {
            Some(id) => self.change_named(txn, id, key, &[(1, value)])?,
            None => {
                let id = self.recorder.fresh();
                txn.insert(&self.store.named, &[id.into(), value.into(), (key - NAMED).into()])?;
                self.added.insert(key);
                true
            }
        };
        if written {
            self.recorder.write(key, value);
        }
        Ok(())
    }

    /// Changes the row if it still has the name. Beside read-committed
    /// transactions, it may have another name by now.
    fn change_named(
        &self,
        txn: &mut Transaction,
        id: u64,
        key: u64,
        changes: &[(usize, u64)],
    ) -> Result<bool> {
        txn.modify(&self.store.named, &[id.into()], |row| {
            if row.get::<u64>(2)? != key - NAMED {
                return Ok(false);
            }
            changes.iter().try_for_each(|(column, value)| row.set(*column, (*value).into()))?;
            Ok(true)
        })
    }

    fn move_named(&mut self, txn: &mut Transaction, key: u64) -> Result<()> {
        let to = NAMED + self.rng.below(KEYS);
        let value = self.recorder.fresh();
        if let Some(id) = self.find_named(txn, key)?
            && to != key
            && self.change_named(txn, id, key, &[(1, value), (2, to - NAMED)])?
        {
            self.recorder.delete(key);
            self.recorder.write(to, value);
            self.added.insert(to);
        }
        Ok(())
    }

    fn delete_named(&mut self, txn: &mut Transaction, key: u64) -> Result<()> {
        if let Some(id) = self.find_named(txn, key)?
            && txn
                .get_for_update(&self.store.named, &[id.into()])?
                .is_some_and(|row| matches!(row.get::<u64>(2), Ok(name) if name == key - NAMED))
            && txn.delete(&self.store.named, &[id.into()])?
        {
            self.recorder.delete(key);
        }
        Ok(())
    }
}
