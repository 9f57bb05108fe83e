//! A small database stays small, and one that is at rest gives back what nobody
//! needs, partly filled blocks included. Time is simulated.

use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::{Database, Error, Options, Range, Table, TableDef, Transaction, Type, Value};
use pantile_media::{DramMedium, MapOptions, MediumExt};
use pantile_testkit::{Random, copy_of};

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
        Self::with(MapOptions::default())
    }

    fn with(options: MapOptions) -> Self {
        let time = SimulatedTime::default();
        // What a medium finds ahead of use, in time that is not simulated, does not count.
        let medium = DramMedium::small(options).expect("memory");
        let options = Options::new().on_medium(medium).simulated_time(time.clone()).streams(2);
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

    /// Lets this time pass, in which the worker works.
    fn work_for(&self, time: Duration) {
        let until = self.time.now() + time;
        while self.time.now() < until {
            let pause = self.db.upkeep().unwrap_or(time).max(Duration::from_micros(100));
            self.time.advance(pause.min(until - self.time.now()));
        }
    }

    #[track_caller]
    fn assert_at_most(&self, bytes: u64) {
        let stats = self.db.stats();
        assert!(stats.free_bytes < stats.medium_bytes, "{stats:#?}");
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

/// Its rows come as fast as the engine takes them. What has passed through it is
/// given back meanwhile, and nearly all of it two seconds after the last row.
#[test]
fn a_queue_is_small_soon_after_the_last_row() {
    const LENGTH: u64 = 1000;
    let small = Small::new();
    let queue = small.table("queue");
    let mut most = 0;
    for first in (0..200 * LENGTH).step_by(10) {
        small.run(|txn| (first..first + 10).try_for_each(|id| insert(txn, &queue, id)));
        if let Some(oldest) = first.checked_sub(LENGTH) {
            let mut ids = oldest..oldest + 10;
            small.run(|txn| ids.try_for_each(|id| txn.delete(&queue, &[id.into()]).map(|_| ())));
        }
        if first % 1000 == 0 {
            small.db.upkeep();
            most = most.max(small.db.stats().medium_bytes);
        }
    }
    assert!(most <= 8 * MB, "{most} bytes while it was in use");
    small.work_for(Duration::from_secs(2));
    small.assert_at_most(2 * MB);
}

/// Rows of which hardly two are of one size.
fn sizes() -> Vec<usize> {
    (0..300).map(|n| n * 77 % 300).map(|n| 16 + n * n * 57_000 / 90_000).collect()
}

impl Small {
    fn of_sizes() -> (Self, Table) {
        let small = Self::new();
        let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::Bytes(65_000));
        let table = small.db.create_table(def.primary_key(["id"])).expect("create");
        (small, table)
    }

    /// Writes them all, each in a transaction. If the streams alternate, another
    /// transaction has the first slot each time.
    fn put_sizes(&self, table: &Table, alternate: bool) {
        for (id, len) in (0u64..).zip(sizes()) {
            let beside = (alternate && id % 2 == 1).then(|| self.db.begin_read().expect("begin"));
            let data = vec![id as u8; len];
            self.run(|txn| txn.upsert(table, &[id.into(), Value::Bytes(&data)]).map(|_| ()));
            drop(beside);
        }
    }
}

/// A few rows of a size have no more blocks if they come by several streams.
#[test]
fn few_rows_share_blocks_whatever_streams_they_come_by() {
    let blocks = |alternate| {
        let (small, table) = Small::of_sizes();
        small.put_sizes(&table, alternate);
        let of_tables = small.db.space_by_table().into_iter().filter(|space| space.table == "rows");
        of_tables.map(|space| space.blocks).sum::<u64>()
    };
    assert_eq!(blocks(true), blocks(false));
}

#[test]
fn rows_of_all_sizes_take_little() {
    let (small, table) = Small::of_sizes();
    small.put_sizes(&table, true);
    let bytes: usize = sizes().iter().map(|len| len + 8).sum();
    small.work_for(Duration::from_secs(2));
    small.assert_at_most(3 * bytes as u64);
    small.put_sizes(&table, true);
    small.work_for(Duration::from_secs(2));
    small.assert_at_most(2 * small.db.stats().live_bytes + 16 * MB);
    // What closing moves out of a chunk takes one more at most.
    let (medium, most) = (medium_of(&small.db), small.db.stats().medium_bytes + 2 * MB);
    drop((table, small.db.close()));
    assert!(medium.len() <= most, "{} bytes after closing, {most} allowed", medium.len());
}

/// Closing a database that nothing can be won in writes little.
#[test]
fn closing_many_small_tables_moves_nothing() {
    let small = Small::new();
    for n in 0..300 {
        let table = small.table(&format!("t{n}"));
        small.run(|txn| insert(txn, &table, 1));
    }
    let medium = medium_of(&small.db);
    let before = medium.stats();
    small.db.close().expect("close");
    let written = (medium.stats() - before).bytes_written;
    assert!(written < MB / 4, "{written} bytes");
}

/// Closing does not wait for updates that do not come, nor for blocks to be idle.
#[test]
fn closing_after_updates_is_soon_done() {
    let small = Small::new();
    let def = TableDef::new("rows").column("id", Type::U64).column("data", Type::Bytes(2000));
    let table = small.db.create_table(def.primary_key(["id"])).expect("create");
    let mut random = Random::new(1, 0);
    for n in 0..100u64 {
        small.run(|txn| {
            for _ in 0..20 {
                let (id, len) = (random.below(500), random.below(2000));
                if random.below(5) == 0 {
                    txn.delete(&table, &[id.into()])?;
                } else {
                    txn.upsert(&table, &[id.into(), Value::Bytes(&vec![n as u8; len as usize])])?;
                }
            }
            Ok(())
        });
    }
    let (medium, began) = (medium_of(&small.db), small.time.now());
    let most = 2 * small.db.stats().live_bytes + LITTLE;
    drop(table);
    small.db.close().expect("close");
    let took = small.time.now() - began;
    assert!(took < Duration::from_millis(400), "{took:?}");
    assert!(medium.len() <= most, "{} bytes, {most} allowed", medium.len());
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

/// Where little room is left, what is free at the end stays for what comes. That is no reason to work.
#[test]
fn the_worker_rests_although_little_room_is_left() {
    let small = Small::with(MapOptions { max_bytes: Some(16 * MB), ..MapOptions::default() });
    let mut tables = Vec::new();
    let full = loop {
        let def = TableDef::new(format!("t{}", tables.len())).column("id", Type::U64);
        let made = small.db.create_table(def.column("data", Type::Bytes(200)).primary_key(["id"]));
        match made.and_then(|table| small.db.run(|txn| insert(txn, &table, 1)).map(|()| table)) {
            Ok(table) => tables.push(table),
            Err(error) => break error,
        }
        small.time.advance(Duration::from_micros(50));
    };
    assert!(matches!(full, Error::StorageFull { .. }) && tables.len() > 100, "{full}, {}", tables.len());
    for table in tables.iter().rev().take(tables.len() / 2) {
        small.rest();
        small.db.drop_table(table.name()).expect("drop");
    }
    small.rest();
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
