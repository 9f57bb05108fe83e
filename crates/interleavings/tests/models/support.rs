//! A small database, and rows that reveal any mixture of two versions.

use std::sync::Arc;
use std::time::Duration;

use pantile::{
    Collector, ConflictPolicy, Database, Error, GcOptions, Isolation, Medium, Options, Pacing, Range, Result,
    Row, Table, TableDef, Transaction, TransactionOptions, Type, Value,
};
use pantile_base::sync::model::advance;
use pantile_base::sync::thread::{self, JoinHandle};
use pantile_media::{DramMedium, MapOptions};

/// Bytes of a row. Large, so that a chunk has only a few dozen blocks, because
/// each execution creates and scans all of them.
const ROW_BYTES: usize = 30_000;

pub const EPOCH: Duration = Duration::from_micros(100);

/// A database in memory with one table. Its blocks hold a few contents and are
/// emptied as soon as half of the contents are superseded.
pub struct Small {
    pub db: Database,
    pub table: Table,
    medium: Arc<dyn Medium>,
    collector: Collector,
    block_slots: u32,
    writers_move: bool,
}

impl Small {
    pub fn new(block_slots: u32) -> Self {
        Self::beside(Collector::TB_COLLECT, block_slots)
    }

    /// The same with another collector.
    pub fn beside(collector: Collector, block_slots: u32) -> Self {
        Self::on(collector, block_slots, None, true)
    }

    /// The same with at most `max_bytes`.
    pub fn limited(block_slots: u32, max_bytes: u64) -> Self {
        Self::on(Collector::TB_COLLECT, block_slots, Some(max_bytes), true)
    }

    /// The same with writers that keep their timestamps.
    pub fn unmoved(block_slots: u32) -> Self {
        Self::on(Collector::TB_COLLECT, block_slots, None, false)
    }

    fn on(collector: Collector, block_slots: u32, max_bytes: Option<u64>, writers_move: bool) -> Self {
        let map = MapOptions { reserve_bytes: 1 << 28, max_bytes };
        let medium: Arc<dyn Medium> = DramMedium::new(map).expect("memory");
        let db = open(&medium, collector, block_slots, writers_move);
        let def = TableDef::new("rows").column("key", Type::U64).column("n", Type::U64);
        let def = def.column("data", Type::Bytes(ROW_BYTES as u32)).primary_key(["key"]);
        let table = db.create_table(def).expect("create");
        Self { db, table, medium, collector, block_slots, writers_move }
    }

    /// The same database for another thread of the model.
    pub fn share(&self) -> Self {
        Self {
            db: self.db.clone(),
            table: self.table.clone(),
            medium: Arc::clone(&self.medium),
            collector: self.collector,
            block_slots: self.block_slots,
            writers_move: self.writers_move,
        }
    }

    /// Spawns a thread of the model.
    pub fn spawn(&self, run: impl FnOnce(Self) + Send + 'static) -> JoinHandle<()> {
        let own = self.share();
        thread::spawn(move || run(own))
    }

    /// Writes the n-th version of some rows in one transaction, and retries
    /// until it succeeds.
    pub fn put(&self, keys: &[u64], n: u64) {
        let put = |txn: &mut Transaction| keys.iter().try_for_each(|&key| put(txn, &self.table, key, n));
        self.db.run(put).expect("a commit");
    }

    /// As [`Small::put`], in a new epoch.
    pub fn put_later(&self, keys: &[u64], n: u64) {
        advance(EPOCH * 2);
        self.put(keys, n);
        advance(EPOCH * 2);
    }

    /// Runs several rounds of everything the collector can do, each in a new
    /// epoch.
    pub fn collect(&self, rounds: u32) {
        for _ in 0..rounds {
            advance(EPOCH * 2);
            self.db.collect_hard();
        }
    }

    /// Blocks reclaimed so far.
    pub fn reclaimed(&self) -> u64 {
        self.db.stats().collector.blocks_reclaimed
    }

    /// Versions reclaimed so far.
    pub fn versions_reclaimed(&self) -> u64 {
        self.db.stats().collector.versions_reclaimed
    }

    /// Checks that all rows are present, now and after the database is
    /// reopened.
    pub fn check(self, expected: &[(u64, u64)]) {
        assert_eq!(all(&self.db.begin_read().expect("begin"), &self.table).expect("rows"), expected);
        self.db.clone().close().expect("nothing runs");
        self.check_closed(expected);
    }

    /// The same, opened again.
    pub fn again(self) -> Self {
        drop((self.db, self.table));
        let db = open(&self.medium, self.collector, self.block_slots, self.writers_move);
        Self { table: db.table("rows").expect("the table"), db, ..self }
    }

    /// Checks that all rows are present after a database that was closed is
    /// reopened.
    pub fn check_closed(self, expected: &[(u64, u64)]) {
        drop((self.db, self.table));
        let db = open(&self.medium, self.collector, self.block_slots, self.writers_move);
        assert!(db.recovery().was_closed);
        let table = db.table("rows").expect("the table");
        assert_eq!(all(&db.begin_read().expect("begin"), &table).expect("rows"), expected, "reopened");
    }
}

fn open(medium: &Arc<dyn Medium>, collector: Collector, block_slots: u32, writers_move: bool) -> Database {
    let gc = GcOptions {
        theta: 0.5,
        queue_share: 0.0,
        space_target: 1.0,
        epoch: EPOCH,
        pacing: Pacing::Fixed,
        bypass: true,
        ..GcOptions::default()
    };
    let options = Options::new().on_medium(Arc::clone(medium)).gc(gc).block_slots(block_slots).streams(1);
    // The models call for rounds themselves.
    let options = options.worker(false).writers_move(writers_move);
    options.collector(collector).recovery_threads(1).open("unused").expect("open")
}

/// Transactions with this isolation wait for others. A wait that never ends is
/// a deadlock in the model.
pub fn at(isolation: Isolation) -> TransactionOptions {
    TransactionOptions::new().isolation(isolation).conflict(ConflictPolicy::Wait(Duration::from_secs(10)))
}

fn data(key: u64, n: u64) -> Vec<u8> {
    vec![(key * 31 + n * 7) as u8; ROW_BYTES - 50]
}

pub fn put(txn: &mut Transaction, table: &Table, key: u64, n: u64) -> Result<()> {
    txn.upsert(table, &[key.into(), n.into(), Value::Bytes(&data(key, n))]).map(|_| ())
}

/// Changes the version of a row, without reading it before.
pub fn change(txn: &mut Transaction, table: &Table, key: u64, to: impl FnOnce(u64) -> u64) -> Result<bool> {
    txn.modify(table, &[key.into()], |row| {
        let n = to(row.get("n")?);
        row.set("n", n.into())?;
        row.set("data", Value::Bytes(&data(key, n))).map(|()| true)
    })
}

/// The version of a row.
pub fn version(row: &Row<'_>) -> u64 {
    let (key, n) = (row.get::<u64>(0).expect("a key"), row.get::<u64>(1).expect("a number"));
    let expected = (key * 31 + n * 7) as u8;
    let bytes = row.get::<&[u8]>(2).expect("bytes");
    assert!(bytes.iter().all(|&b| b == expected), "all bytes belong to version {n} of row {key}");
    n
}

pub fn get(txn: &Transaction, table: &Table, key: u64) -> Result<Option<u64>> {
    let row = txn.get(table, &[key.into()])?;
    row.as_ref().inspect(|row| assert_eq!(row.get::<u64>(0).expect("a key"), key, "the row asked for"));
    Ok(row.map(|row| version(&row)))
}

/// All rows.
pub fn all(txn: &Transaction, table: &Table) -> Result<Vec<(u64, u64)>> {
    txn.scan(table, Range::all())?
        .map(|row| row.and_then(|row| Ok((row.get::<u64>(0)?, version(&row)))))
        .collect()
}

/// The result, or `None` if it conflicted with another transaction.
pub fn unless_conflict<T>(result: Result<T>) -> Option<T> {
    match result {
        Ok(done) => Some(done),
        Err(Error::Conflict { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

pub fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
}
