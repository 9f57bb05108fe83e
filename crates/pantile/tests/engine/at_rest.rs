//! A small database stays small, and one that is at rest gives back what nobody
//! needs, partly filled blocks included. Time is simulated.

use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::{Database, MediumKind, Options, Range, Table, TableDef, Transaction, Type, Value};
use pantile_testkit::copy_of;

const MB: u64 = 1 << 20;
/// What a database at rest takes beside twice its live bytes.
const LITTLE: u64 = 3 * MB / 2;
/// Lanes that nothing is appended to are given up within this time, and what
/// they leave is emptied.
const REST: Duration = Duration::from_secs(10);

struct Small {
    db: Database,
    time: SimulatedTime,
}

impl Small {
    fn new() -> Self {
        let time = SimulatedTime::default();
        let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone()).streams(2);
        Self { db: options.open("unused").expect("open"), time }
    }

    fn table(&self, name: &str) -> Table {
        let def = TableDef::new(name).column("id", Type::U64).column("data", Type::Bytes(200));
        self.db.create_table(def.primary_key(["id"])).expect("create")
    }

    fn run(&self, body: impl FnMut(&mut Transaction) -> pantile::Result<()>) {
        self.db.run(body).expect("a commit");
        self.time.advance(Duration::from_micros(50));
    }

    /// Lets the worker work until it has nothing to do.
    fn rest(&self) {
        let until = self.time.now() + REST;
        while let Some(pause) = self.db.upkeep() {
            self.time.advance(pause.max(Duration::from_micros(100)));
            assert!(self.time.now() < until, "the worker has no end: {:#?}", self.db.stats());
        }
    }

    #[track_caller]
    fn assert_at_most(&self, bytes: u64) {
        let stats = self.db.stats();
        assert!(stats.medium_bytes <= bytes, "{stats:#?} {:#?}", self.db.space_by_table());
    }

    /// What a process that is killed now leaves.
    fn killed(&self) -> Database {
        let options = Options::new().on_medium(copy_of(&*medium_of(&self.db)));
        options.open("unused").expect("open again")
    }
}

fn insert(txn: &mut Transaction, table: &Table, id: u64) -> pantile::Result<()> {
    txn.insert(table, &[id.into(), Value::Bytes(&[id as u8; 90])])
}

fn ids(db: &Database, name: &str) -> Vec<u64> {
    let table = db.table(name).expect("the table");
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(&table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("a row")).collect()
}

/// A hundred times its size passes through a queue.
#[test]
fn a_queue_takes_what_it_holds() {
    const LENGTH: u64 = 1000;
    let small = Small::new();
    let queue = small.table("queue");
    for id in 0..100 * LENGTH {
        small.run(|txn| {
            insert(txn, &queue, id)?;
            if id >= LENGTH { txn.delete(&queue, &[(id - LENGTH).into()]).map(|_| ()) } else { Ok(()) }
        });
        if id % 1000 == 0 {
            small.db.upkeep();
        }
    }
    small.rest();
    small.assert_at_most(LITTLE);
    let expected: Vec<_> = (99 * LENGTH..100 * LENGTH).collect();
    assert_eq!(ids(&small.db, "queue"), expected);
    assert_eq!(ids(&small.killed(), "queue"), expected);
}

/// The blocks that were partly filled when the last row went are given back
/// while the database is open and idle.
#[test]
fn tables_without_rows_take_nothing() {
    let small = Small::new();
    let tables: Vec<_> = (0..40).map(|n| small.table(&format!("t{n}"))).collect();
    for rows in [1, 50, 2000] {
        for table in &tables {
            for first in (0..rows).step_by(10) {
                small.run(|txn| (first..rows.min(first + 10)).try_for_each(|id| insert(txn, table, id)));
            }
        }
        for table in &tables {
            for first in (0..rows).step_by(10) {
                small.run(|txn| {
                    let mut ids = first..rows.min(first + 10);
                    ids.try_for_each(|id| txn.delete(table, &[id.into()]).map(|_| ()))
                });
            }
        }
        small.rest();
        small.assert_at_most(LITTLE);
        let of_tables = small.db.space_by_table().into_iter().filter(|space| space.table.starts_with('t'));
        assert_eq!(of_tables.map(|space| space.blocks).sum::<u64>(), 0, "after {rows} rows each");
        assert!(ids(&small.killed(), "t7").is_empty());
    }
    // They can be filled again.
    small.run(|txn| insert(txn, &tables[7], 1));
    assert_eq!(ids(&small.killed(), "t7"), [1]);
}

/// What is alive in partly filled blocks is moved out of a chunk that is nearly
/// empty otherwise, and is found after a kill at any time.
#[test]
fn rows_that_are_left_move_together() {
    let small = Small::new();
    let tables: Vec<_> = (0..8).map(|n| small.table(&format!("t{n}"))).collect();
    for table in &tables {
        for first in (0..10_000).step_by(100) {
            small.run(|txn| (first..first + 100).try_for_each(|id| insert(txn, table, id)));
        }
    }
    let left = |id: &u64| id.is_multiple_of(500);
    for table in &tables {
        for first in (0..10_000u64).step_by(100) {
            small.run(|txn| {
                let mut ids = (first..first + 100).filter(|id| !left(id));
                ids.try_for_each(|id| txn.delete(table, &[id.into()]).map(|_| ()))
            });
        }
    }
    let expected: Vec<_> = (0..10_000).filter(left).collect();
    let until = small.time.now() + REST;
    let mut rounds = 0;
    while let Some(pause) = small.db.upkeep() {
        small.time.advance(pause.max(Duration::from_micros(100)));
        assert!(small.time.now() < until, "{:#?}", small.db.stats());
        rounds += 1;
        if rounds % 16 == 0 {
            let killed = small.killed();
            tables.iter().for_each(|table| assert_eq!(ids(&killed, table.name()), expected));
        }
    }
    small.assert_at_most(2 * MB);
    tables.iter().for_each(|table| assert_eq!(ids(&small.db, table.name()), expected));
}
