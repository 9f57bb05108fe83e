//! A table in which every row is known, and functions that wait for the
//! collector.

use pantile::lab::medium_of;
use std::collections::BTreeMap;
use std::time::Duration;

use pantile::{
    Database, GcOptions, MediumKind, Options, Pacing, Range, Result, Row, Stats, Table, TableDef, Timestamp,
    Transaction, Type, Value,
};
use pantile_testkit::{Patience, copy_of, mix};

const NUDGE: &str = "nudge";

/// The collector as eager as possible, with state records every 25 ms.
pub fn gc() -> GcOptions {
    GcOptions {
        theta: 0.5,
        queue_share: 0.0,
        epoch: Duration::from_millis(1),
        pacing: Pacing::Fixed,
        ..GcOptions::default()
    }
}

/// In memory, with small blocks. Committing threads do all of the collector's
/// work, so that nothing happens between two commits: a copy of the medium is
/// what a process leaves that is killed.
pub fn options() -> Options {
    Options::new().medium(MediumKind::Dram).gc(gc()).block_slots(16).streams(1).worker(false)
}

pub fn open(options: Options) -> Database {
    let db = options.open("unused").expect("open");
    prepare(&db);
    db
}

/// Makes the row that [`nudge`] locks.
pub fn prepare(db: &Database) {
    let def = TableDef::new(NUDGE).column("id", Type::U8).primary_key(["id"]);
    if !db.tables().contains(&def.name) {
        let table = db.create_table(def).expect("create");
        db.run(|txn| txn.insert(&table, &[0u8.into()])).expect("insert");
    }
}

/// The n-th version of a row; any mixture of two versions is detected.
pub fn data(key: u64, n: u64) -> Vec<u8> {
    vec![mix(key ^ mix(n)) as u8; 24 + (key % 8) as usize]
}

pub fn check_row(row: &Row<'_>) -> Result<(u64, u64)> {
    let (key, n): (u64, u64) = (row.get(0)?, row.get(1)?);
    assert_eq!(row.get::<&[u8]>(2)?, data(key, n), "row {key} as of {n}");
    Ok((key, n))
}

/// The rows of a table by key, as a transaction sees them.
pub fn seen(txn: &Transaction, table: &Table) -> Result<BTreeMap<u64, u64>> {
    txn.scan(table, Range::all())?.map(|row| check_row(&row?)).collect()
}

/// A table and its expected rows.
pub struct Rows {
    pub db: Database,
    pub table: Table,
    pub expected: BTreeMap<u64, u64>,
    next: u64,
}

impl Rows {
    /// The table of this name as it is; created if it does not exist.
    pub fn named(db: &Database, name: &str) -> Self {
        let def = TableDef::new(name).column("key", Type::U64).column("n", Type::U64);
        let def = def.column("data", Type::Bytes(100)).primary_key(["key"]);
        let table = db.table(name).or_else(|_| db.create_table(def)).expect("a table");
        let expected = seen(&db.begin_read().expect("begin"), &table).expect("rows");
        let next = expected.values().max().map_or(1, |n| n + 1);
        Self { db: db.clone(), table, expected, next }
    }

    pub fn new(db: &Database) -> Self {
        Self::named(db, "rows")
    }

    pub fn filled(db: &Database, keys: impl IntoIterator<Item = u64>) -> Self {
        let mut rows = Self::new(db);
        rows.put(keys);
        rows
    }

    /// Writes the next version of each key, ten in a transaction.
    pub fn put(&mut self, keys: impl IntoIterator<Item = u64>) {
        let keys: Vec<u64> = keys.into_iter().collect();
        for keys in keys.chunks(10) {
            self.try_put(keys).expect("a commit");
        }
    }

    /// Writes the next version of each key in one transaction.
    pub fn try_put(&mut self, keys: &[u64]) -> Result<Timestamp> {
        let n = self.next;
        let ts = self.db.run(|txn| {
            for &key in keys {
                put(txn, &self.table, key, n)?;
            }
            Ok(txn.timestamp())
        })?;
        self.next += 1;
        self.expected.extend(keys.iter().map(|&key| (key, n)));
        Ok(ts)
    }

    pub fn delete(&mut self, keys: impl IntoIterator<Item = u64>) {
        let keys: Vec<u64> = keys.into_iter().collect();
        for keys in keys.chunks(10) {
            self.db
                .run(|txn| keys.iter().try_for_each(|&key| delete(txn, &self.table, key)))
                .expect("a commit");
            self.expected.retain(|key, _| !keys.contains(key));
        }
    }

    /// Checks that every row is there once, and no other row.
    pub fn check(&self) {
        let txn = self.db.begin_read().expect("begin");
        assert_eq!(seen(&txn, &self.table).expect("rows"), self.expected);
    }

    /// Checks the same in what a process that is killed now would leave.
    pub fn check_after_crash(&self, options: Options) -> Rows {
        let found = Rows::named(&open(options.on_medium(copy_of(&*medium_of(&self.db)))), self.table.name());
        assert_eq!(found.expected, self.expected);
        found
    }

    /// The blocks of the table.
    pub fn blocks(&self) -> u64 {
        let spaces = self.db.space_by_table();
        spaces.iter().find(|space| space.table == self.table.name()).map_or(0, |space| space.blocks)
    }
}

pub fn put(txn: &mut Transaction, table: &Table, key: u64, n: u64) -> Result<()> {
    txn.upsert(table, &[key.into(), n.into(), Value::Bytes(&data(key, n))]).map(|_| ())
}

pub fn delete(txn: &mut Transaction, table: &Table, key: u64) -> Result<()> {
    txn.delete(table, &[key.into()]).map(|_| ())
}

/// A commit that changes nothing: its thread does some of the collector's work.
pub fn nudge(db: &Database, table: &Table) {
    let locked = db.run(|txn| txn.get_for_update(table, &[0u8.into()]).map(|row| row.is_some()));
    assert!(locked.expect("a commit"), "a commit that locks nothing does no work");
}

/// Lets the collector work until a condition holds.
pub fn collect_until(db: &Database, what: &str, mut done: impl FnMut(&Stats) -> bool) -> Stats {
    let table = db.table(NUDGE).expect("prepared");
    let patience = Patience::new();
    loop {
        for _ in 0..32 {
            nudge(db, &table);
        }
        let stats = db.stats();
        if done(&stats) {
            return stats;
        }
        patience.check(|| format!("never: {what}\n{stats:#?}\n{:#?}", db.space_by_table()));
    }
}

/// Lets epochs pass, so that what was done before is older than what is done
/// after, and lets the collector work a little.
pub fn let_epochs_pass(db: &Database) {
    std::thread::sleep(gc().epoch * 2);
    collect_until(db, "a moment", |_| true);
}

/// Lets the collector work until `n` more blocks have been reclaimed.
pub fn reclaim(db: &Database, blocks: u64) {
    let before = db.stats().collector.blocks_reclaimed;
    collect_until(db, "blocks reclaimed", |s| s.collector.blocks_reclaimed >= before + blocks);
}

/// Lets the collector work until it has nothing left to do. Blocks that are not
/// full wait until they are.
pub fn settle(db: &Database) -> Stats {
    collect_until(db, "nothing waits", |s| is_settled(db, s))
}

/// Whether the collector has nothing left to do.
pub fn is_settled(db: &Database, stats: &Stats) -> bool {
    let c = &stats.collector;
    let open = db.space_by_table().iter().map(|space| space.open_blocks).sum();
    c.pending_blocks <= open && c.queued_blocks + c.long_tx_blocks + c.frozen_blocks == 0
}
