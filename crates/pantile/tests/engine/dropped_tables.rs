//! Tables that are dropped beside transactions: who keeps their space, and for how long (I-37).

use std::fmt::Debug;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use pantile::lab::SimulatedTime;
use pantile::tools::BackupOptions;
use pantile::{
    Collector, Database, Error, Isolation, Range, Result, Row, Table, TableDef, Transaction,
    TransactionOptions, Type, Value,
};
use pantile_base::sync::RwLock;
use pantile_testkit::{Bed, Home, Random, SaysDone, ScratchDir, SeedNote, await_that, seeds};

use crate::collector::rows::{Rows, check_row, open, options, put, seen};
use crate::support::{LEVELS, PULSE, abort_at, is_conflict, let_collect};

/// All kinds of transactions.
fn kinds() -> Vec<TransactionOptions> {
    let levels = LEVELS.into_iter().flat_map(|level| [false, true].map(|reads| (level, reads)));
    let at_levels = levels.map(|(level, reads)| abort_at(level).read_only(reads));
    at_levels.chain([TransactionOptions::new().safe_snapshot()]).collect()
}

/// A database whose time the test tells.
struct Timed {
    db: Database,
    time: SimulatedTime,
}

impl Timed {
    fn open() -> Self {
        let time = SimulatedTime::default();
        Self { db: open(options().simulated_time(time.clone())), time }
    }

    /// A transaction. What follows is later by any clock.
    fn begin(&self, kind: TransactionOptions) -> Transaction {
        self.time.advance(Duration::from_millis(1));
        let txn = self.db.begin_with(kind).expect("a transaction");
        self.time.advance(Duration::from_millis(1));
        txn
    }

    /// Time enough for all that nobody keeps to be given back.
    fn let_time_pass(&self) {
        for _ in 0..20 {
            self.time.advance(Duration::from_millis(30));
            self.db.upkeep();
        }
    }

    /// Fills another table, which takes whatever space is free.
    fn take_space(&self) {
        self.let_time_pass();
        staged(&self.db, "other").put(0..500);
    }

    fn check_gone(&self, when: impl Debug) {
        self.let_time_pass();
        assert!(!is_any_left(&self.db), "{when:?}: {:#?}", self.db.space_by_table());
    }
}

/// Whether dropped tables take space.
fn is_any_left(db: &Database) -> bool {
    db.space_by_table().iter().any(|space| space.table.contains("dropped"))
}

/// Bytes of dropped tables that transactions are said to keep.
fn held(db: &Database) -> u64 {
    let transactions = db.transactions();
    let tables = transactions.iter().flat_map(|txn| &txn.tables);
    tables.filter(|of| of.table.contains("dropped")).map(|of| of.bytes).sum()
}

/// A table of this name with some rows.
fn staged(db: &Database, name: &str) -> Rows {
    let mut staged = Rows::named(db, name);
    staged.put(0..100);
    staged
}

/// Rows are verified some at a time, and nothing keeps the table between: one that is dropped and whose space others
/// use by then is left out.
#[test]
fn a_table_that_is_dropped_while_its_rows_are_verified_has_no_damage() {
    let timed = Timed::open();
    let mut rows = staged(&timed.db, "rows");
    rows.put(0..2000);
    let steps = AtomicU64::new(0);
    let found = timed.db.verify_table(&rows.table, || {
        if steps.fetch_add(1, Ordering::Relaxed) == 2 {
            timed.db.drop_table("rows").expect("it is there");
            timed.take_space();
            timed.check_gone("it was dropped");
        }
        ControlFlow::Continue(())
    });
    let found = found.expect("verified");
    assert!(found.damaged.is_empty() && (1..2000).contains(&found.rows), "{found:?}");
}

/// A job makes, fills, and drops or truncates tables. A transaction that has seen none of
/// them keeps none of them, whatever it is, and goes on.
#[test]
fn tables_made_and_dropped_behind_a_transaction_take_no_space() {
    for kind in kinds() {
        let timed = Timed::open();
        let db = &timed.db;
        let kept = Rows::filled(db, 0..50);
        let mut txn = timed.begin(kind);
        let writes = !txn.is_read_only();
        assert_eq!(seen(&txn, &kept.table).expect("rows"), kept.expected);
        if writes {
            put(&mut txn, &kept.table, 1000, 1).expect("a row");
        }
        for round in 0..10 {
            let staging = staged(db, "staging");
            if round % 2 == 0 {
                db.truncate_table(&staging.table).expect("it is there");
            }
            db.drop_table("staging").expect("it is there");
        }
        timed.check_gone(kind);
        assert_eq!(held(db), 0);
        let rows = seen(&txn, &kept.table).expect("rows");
        assert_eq!(rows.len(), 50 + usize::from(writes));
        txn.commit().expect("nobody is in its way");
    }
}

/// Links that a long reader would walk along go with their table.
#[test]
fn links_of_a_dropped_table_take_no_memory() {
    let timed = Timed::open();
    let db = &timed.db;
    let reader = timed.begin(TransactionOptions::new().read_only(true));
    for _ in 0..5 {
        let mut staging = staged(db, "staging");
        // It has links, and blocks that are bypassed.
        let beside = timed.begin(TransactionOptions::new().read_only(true));
        for _ in 0..10 {
            staging.put(0..100);
            timed.let_time_pass();
        }
        assert!(db.stats().collector.kept_tiles > 0);
        drop(beside);
        db.drop_table("staging").expect("it is there");
        timed.check_gone("nobody reads it any more");
        assert_eq!(db.stats().collector.kept_tiles, 0);
    }
    drop(reader);
}

/// A prepared transaction keeps none of them either.
#[test]
fn tables_made_and_dropped_behind_a_prepared_transaction_take_no_space() {
    for level in LEVELS {
        let timed = Timed::open();
        let db = &timed.db;
        let kept = Rows::filled(db, 0..50);
        let mut txn = timed.begin(abort_at(level));
        put(&mut txn, &kept.table, 1000, 1).expect("a row");
        let prepared = db.prepare(txn, b"x").expect("nothing is in its way");
        staged(db, "staging");
        db.drop_table("staging").expect("it is there");
        timed.check_gone("all is given back");
        prepared.commit().expect("nothing is in its way");
    }
}

/// Rows that a transaction has borrowed of a table that is newer than itself stay as long as it runs,
/// although the table is dropped.
#[test]
fn borrowed_rows_of_a_newer_table_stay() {
    for snapshot_taken in [false, true] {
        for read_only in [false, true] {
            let timed = Timed::open();
            let db = &timed.db;
            let options = abort_at(Isolation::ReadCommitted).read_only(read_only);
            let mut txn = timed.begin(options);
            let staging = staged(db, "staging");
            if snapshot_taken {
                txn.take_snapshot();
            }
            let rows = txn.scan(&staging.table, Range::all()).expect("a scan");
            let rows: Vec<Row<'_>> = rows.collect::<Result<_>>().expect("rows");
            assert_eq!(rows.len(), 100);
            db.drop_table("staging").expect("it is there");
            timed.take_space();
            assert!(is_any_left(db));
            assert!(held(db) > 0, "it is not said who keeps it");
            for row in &rows {
                check_row(row).expect("a row");
            }
            drop(rows);
            drop(txn);
            timed.check_gone("nobody reads it any more");
        }
    }
}

/// A scan of a table that is newer than the transaction goes on, and finds it empty.
#[test]
fn a_scan_of_a_newer_table_goes_on() {
    for kind in [abort_at(Isolation::Serializable).read_only(true), TransactionOptions::new().safe_snapshot()]
    {
        let timed = Timed::open();
        let db = &timed.db;
        let txn = timed.begin(kind);
        let staging = staged(db, "staging");
        let mut scan = txn.scan(&staging.table, Range::all()).expect("a scan");
        db.drop_table("staging").expect("it is there");
        timed.take_space();
        assert!(is_any_left(db));
        assert!(scan.next().is_none(), "the table is newer");
        drop(scan);
        assert!(matches!(txn.scan(&staging.table, Range::all()), Err(Error::TableDropped(_))));
        drop(txn);
        timed.check_gone("nobody reads it any more");
    }
}

/// A late writer may have written into a table that is newer than its snapshot. What it has locked
/// there is unlocked in the end.
#[test]
fn a_newer_table_stays_for_a_writer() {
    for level in [Isolation::Snapshot, Isolation::ReadCommitted] {
        let timed = Timed::open();
        let db = &timed.db;
        let mut kept = Rows::filled(db, 0..50);
        let mut txn = timed.begin(abort_at(level));
        let staging = staged(db, "staging");
        put(&mut txn, &staging.table, 1000, 1).expect("a row");
        kept.try_put(&[1]).expect("a commit");
        db.drop_table("staging").expect("it is there");
        timed.take_space();
        assert!(is_any_left(db));
        assert!(matches!(txn.commit(), Err(Error::TableDropped(_))));
        timed.check_gone("nobody uses it any more");
        kept.check();
    }
}

/// A transaction that began while the table was there keeps it, and one that began before or after does not.
#[test]
fn a_table_stays_for_those_who_began_while_it_was_there() {
    for kind in kinds() {
        let timed = Timed::open();
        let db = &timed.db;
        let before = timed.begin(kind);
        let staging = staged(db, "staging");
        let beside = timed.begin(kind);
        db.drop_table("staging").expect("it is there");
        let after = timed.begin(kind);
        timed.let_time_pass();
        assert!(is_any_left(db), "beside {kind:?}");
        drop(beside);
        timed.check_gone("nobody uses it any more");
        for txn in [before, after] {
            assert!(matches!(txn.scan(&staging.table, Range::all()), Err(Error::TableDropped(_))));
        }
    }
}

/// A backup may be of a moment at which a table was there that has been dropped since, if a writer
/// keeps that moment open.
#[test]
fn a_table_stays_for_backups_of_its_time() {
    let (timed, copies) = (Timed::open(), ScratchDir::new());
    let db = &timed.db;
    let mut kept = Rows::filled(db, 0..50);
    let staging = staged(db, "staging");
    let mut writer = timed.begin(TransactionOptions::new());
    put(&mut writer, &kept.table, 1000, 1).expect("a row");
    db.drop_table("staging").expect("it is there");
    kept.put(0..50);
    timed.take_space();
    let report = db.backup_to(copies.path().join("copy"), &BackupOptions::new()).expect("a backup");
    assert!(report.timestamp < writer.timestamp());
    let copy = Database::open_read_only(copies.path().join("copy")).expect("open");
    let txn = copy.begin_read().expect("a transaction");
    assert_eq!(seen(&txn, &copy.table("staging").expect("the table")).expect("rows"), staging.expected);
    writer.commit().expect("nobody has read what it writes");
    timed.check_gone("nobody can read it any more");
}

/// What is left after a kill is all that was committed, whenever the space of dropped tables is given back.
#[test]
fn nothing_is_lost_by_a_kill_beside_tables_that_go() {
    let timed = Timed::open();
    let db = &timed.db;
    let mut kept = Rows::filled(db, 0..50);
    let reader = timed.begin(TransactionOptions::new().read_only(true));
    for round in 0..30u64 {
        let staging = staged(db, "staging");
        // It is evidence of what it has written elsewhere.
        db.run(|txn| {
            put(txn, &staging.table, 1, 9).and_then(|()| put(txn, &kept.table, round, 1000 + round))
        })
        .expect("a commit");
        kept.expected.insert(round, 1000 + round);
        db.drop_table("staging").expect("it is there");
        for _ in 0..3 {
            kept.try_put(&[40 + round % 10]).expect("a commit");
            kept.check_after_crash(options());
        }
    }
    timed.check_gone("all is given back");
    kept.check_after_crash(options());
    drop(reader);
}

/// A table that is filled by one transaction with rows of its number.
struct Numbered {
    table: Table,
    number: u64,
}

const NUMBERED_ROWS: u64 = 60;

fn numbered(db: &Database, number: u64) -> Numbered {
    let def = TableDef::new(format!("t{number}")).column("id", Type::U64).column("number", Type::U64);
    let table = db.create_table(def.column("data", Type::Bytes(300)).primary_key(["id"])).expect("a table");
    let data = vec![number as u8; 40 + (number % 200) as usize];
    let row = |id: u64| [id.into(), number.into(), Value::Bytes(&data)];
    db.run(|txn| txn.insert_many(&table, (0..NUMBERED_ROWS).map(row))).expect("no conflict");
    Numbered { table, number }
}

impl Numbered {
    /// The rows are all there or none is, and they stay as long as they are borrowed.
    fn check(&self, txn: &Transaction, random: &mut Random) -> Result<()> {
        let mut rows = Vec::new();
        for row in txn.scan(&self.table, Range::all())? {
            rows.push(row?);
            if random.one_in(20) {
                thread::sleep(Duration::from_micros(random.below(2_000)));
            }
        }
        assert!(rows.is_empty() || rows.len() as u64 == NUMBERED_ROWS, "{} rows", rows.len());
        // Long enough for the space of a dropped table to be used again.
        let pause = if random.one_in(3) { 50_000 + random.below(100_000) } else { random.below(2_000) };
        thread::sleep(Duration::from_micros(pause));
        for row in &rows {
            assert_eq!(row.get::<u64>("number")?, self.number, "{txn:?}");
            assert!(row.get::<&[u8]>("data")?.iter().all(|byte| *byte == self.number as u8));
        }
        Ok(())
    }
}

fn read(db: &Database, tables: &RwLock<Vec<Numbered>>, done: &AtomicBool, mut random: Random) {
    let kinds = kinds();
    while !done.load(Ordering::Relaxed) {
        let txn = db.begin_with(*random.pick(&kinds)).expect("a transaction");
        for _ in 0..random.below(12) {
            let chosen = {
                let tables = tables.read();
                let Numbered { table, number } = random.pick(&tables);
                Numbered { table: table.clone(), number: *number }
            };
            match chosen.check(&txn, &mut random) {
                Ok(()) | Err(Error::TableDropped(_)) => {}
                Err(error) => assert!(is_conflict(&error), "{error}"),
            }
        }
    }
}

/// Tables come and go beside transactions of all kinds and two that stay. Each transaction finds
/// all rows of a table or none, and all space is given back.
fn any_tables(collector: Collector, seed: u64) {
    let _seed = SeedNote(seed);
    let mut home = Home::new(Bed::Dram).eager_with(collector, seed);
    let db = home.open();
    let def = TableDef::new(PULSE).column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
    let pulse = db.create_table(def).expect("a table");
    let stay = [abort_at(Isolation::Serializable).read_only(true), abort_at(Isolation::Snapshot)];
    let stay = stay.map(|kind| db.begin_with(kind).expect("a transaction"));
    let tables = RwLock::new(vec![numbered(&db, 0)]);
    let (done, next) = (AtomicBool::new(false), AtomicU64::new(1));
    thread::scope(|scope| {
        let _done = SaysDone(&done);
        for n in 1..4 {
            let (db, tables, done) = (&db, &tables, &done);
            scope.spawn(move || read(db, tables, done, Random::new(seed, n)));
        }
        let mut random = Random::new(seed, 0);
        for _ in 0..60 {
            let new = numbered(&db, next.fetch_add(1, Ordering::Relaxed));
            tables.write().push(new);
            let_collect(&db, &pulse, Duration::from_millis(random.below(4)));
            while tables.read().len() > 3 {
                let at = random.index(3);
                let gone = tables.write().remove(at);
                db.drop_table(gone.table.name()).expect("it is there");
            }
        }
    });
    await_that("all is given back", || {
        let_collect(&db, &pulse, Duration::from_millis(1));
        !is_any_left(&db)
    });
    drop(stay);
}

#[test]
fn any_tables_beside_any_transactions() {
    for collector in [Collector::TB_COLLECT, pantile_rivals::HYPER, pantile_rivals::STEAM] {
        seeds(1, 2).into_iter().for_each(|seed| any_tables(collector, seed));
    }
}
