//! Backups beside writers: one state, and all of it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use pantile::{
    BackupOptions, CheckOptions, ColumnDef, Database, Durability, Error, IndexDef, Range, Table, TableChange,
    TableDef, Transaction, Type, restore,
};
use pantile_testkit::{Bed, Random, SaysDone, ScratchDir, SeedNote, seeds};

use super::{back_up, is_sound, open, patient};
use crate::support::{Beside, LEVELS, in_memory, wait_at};

const ACCOUNTS: u64 = 50;
const EACH: i64 = 100;

/// Two tables of accounts, and a log in which each transfer has a number.
struct Ledger {
    db: Database,
    sides: [Table; 2],
    log: Table,
}

/// The balances of both tables, and the transfers.
type State = ([BTreeMap<u64, i64>; 2], Vec<(u64, u64)>);

impl Ledger {
    fn new(db: &Database) -> Self {
        let accounts = |name: &str| {
            let def = TableDef::new(name).column("id", Type::U64).column("cents", Type::I64);
            def.primary_key(["id"]).index(IndexDef::new("by_cents", ["cents"]))
        };
        let log = TableDef::new("log").column("n", Type::U64).column("what", Type::U64).primary_key(["n"]);
        let create = |def| db.create_table(def).expect("create");
        let sides = [create(accounts("left")), create(accounts("right"))];
        let fill = |txn: &mut Transaction| {
            let mut each = sides.iter().flat_map(|side| (0..ACCOUNTS).map(move |id| (side, id)));
            each.try_for_each(|(side, id)| txn.insert(side, &[id.into(), EACH.into()]))
        };
        db.run(fill).expect("fill");
        let log = create(log);
        db.run(|txn| txn.insert(&log, &[0u64.into(), 0u64.into()])).expect("fill");
        Self { db: db.clone(), sides, log }
    }

    fn of(db: &Database) -> Self {
        let table = |name| db.table(name).expect("a table");
        Self { db: db.clone(), sides: [table("left"), table("right")], log: table("log") }
    }

    /// What transfer `n` does to both sides, from what it was drawn from.
    fn effect(what: u64) -> [(u64, i64); 2] {
        let amount = (what % 19) as i64;
        [(what % ACCOUNTS, -amount), (what / ACCOUNTS % ACCOUNTS, amount)]
    }

    /// Moves money from one table to the other, and notes that. Row 0 of the log
    /// counts, so transfers are in the order of their numbers.
    fn transfer(&self, what: u64) -> u64 {
        let options = wait_at(LEVELS[(what % 3) as usize], Duration::from_secs(10));
        let add = |txn: &mut Transaction, table: &Table, id: u64, by: i64| {
            txn.modify(table, &[id.into()], |row| {
                let old: i64 = row.get(1)?;
                row.set(1, (old + by).into()).map(|()| true)
            })
            .map(|_| ())
        };
        let body = |txn: &mut Transaction| {
            add_one(txn, &self.log)?;
            let n: u64 = txn.get(&self.log, &[0u64.into()])?.expect("the counter").get(1)?;
            let [left, right] = Self::effect(what);
            add(txn, &self.sides[0], left.0, left.1)?;
            add(txn, &self.sides[1], right.0, right.1)?;
            txn.insert(&self.log, &[n.into(), what.into()])?;
            Ok::<_, Error>(n)
        };
        self.db.run_with(options, body).expect("it succeeds in the end")
    }

    fn state(&self) -> State {
        let txn = self.db.begin_read().expect("begin");
        let side = |table: &Table| -> BTreeMap<u64, i64> {
            let index = table.index("by_cents").expect("the index");
            let by_key = txn.scan(table, Range::all()).expect("scan").map(|row| {
                let row = row.expect("a row");
                (row.get(0).expect("id"), row.get(1).expect("cents"))
            });
            let by_key: BTreeMap<u64, i64> = by_key.collect();
            let by_index = txn.scan_index(&index, Range::all()).expect("scan").map(|row| {
                let row = row.expect("a row");
                (row.get(0).expect("id"), row.get(1).expect("cents"))
            });
            assert_eq!(by_index.collect::<BTreeMap<u64, i64>>(), by_key);
            by_key
        };
        let log = txn.scan(&self.log, Range::all()).expect("scan").map(|row| {
            let row = row.expect("a row");
            (row.get(0).expect("n"), row.get(1).expect("what"))
        });
        ([side(&self.sides[0]), side(&self.sides[1])], log.collect())
    }
}

fn add_one(txn: &mut Transaction, log: &Table) -> pantile::Result<()> {
    txn.modify(log, &[0u64.into()], |row| {
        let old: u64 = row.get(1)?;
        row.set(1, (old + 1).into()).map(|()| true)
    })
    .map(|_| ())
}

/// Asserts that a state is that after its transfers, all of them and each whole.
/// Returns how many there are.
fn check_state((sides, log): &State) -> u64 {
    let count = log[0].1;
    let numbers: Vec<u64> = log[1..].iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "transfers are missing");
    let full: BTreeMap<u64, i64> = (0..ACCOUNTS).map(|id| (id, EACH)).collect();
    let mut expected = [full.clone(), full];
    for (_, what) in &log[1..] {
        for (side, (id, by)) in expected.iter_mut().zip(Ledger::effect(*what)) {
            *side.get_mut(&id).expect("an account") += by;
        }
    }
    assert_eq!(&expected, sides);
    count
}

fn run(bed: Bed, beside: Beside, backups: u64, seed: u64) {
    let _note = SeedNote(seed);
    let mut home = beside.home(bed, seed);
    let db = home.open();
    let ledger = Ledger::new(&db);
    let (done, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        for n in 0..2u64 {
            let (ledger, done, acknowledged) = (&ledger, &done, &acknowledged);
            scope.spawn(move || {
                let mut random = Random::new(seed, n);
                while !done.load(Ordering::Relaxed) {
                    let number = ledger.transfer(random.below(1 << 40));
                    acknowledged.fetch_max(number, Ordering::SeqCst);
                }
            });
        }
        let mut last = 0;
        for _ in 0..backups {
            let before = acknowledged.load(Ordering::SeqCst);
            let (place, report) = back_up(&db);
            let copy = open(place.path());
            let count = check_state(&Ledger::of(&copy).state());
            assert!(report.is_current && count >= before.max(last), "{count} of {before} and more");
            assert!(count <= acknowledged.load(Ordering::SeqCst) + 2);
            // A state of its own: what is done to it does not reach the other.
            assert_eq!(Ledger::of(&copy).transfer(7), count + 1);
            last = count;
        }
        drop(over);
    });
    let (place, _) = back_up(&db);
    assert_eq!(Ledger::of(&open(place.path())).state(), ledger.state());
}

/// Each backup continues the one before, and some are interrupted: each is one
/// state, and has all that was acknowledged before it was called.
#[test]
fn one_state_since_another() {
    for seed in seeds(80, 3) {
        let _note = SeedNote(seed);
        let db = Beside::Eager.home(Bed::Dram, seed).open();
        let ledger = Ledger::new(&db);
        let (done, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
        let (place, mut random) = (ScratchDir::new(), Random::new(seed, 7));
        std::thread::scope(|scope| {
            let over = SaysDone(&done);
            scope.spawn(|| {
                let mut random = Random::new(seed, 0);
                while !done.load(Ordering::Relaxed) {
                    let number = ledger.transfer(random.below(1 << 40));
                    acknowledged.fetch_max(number, Ordering::SeqCst);
                }
            });
            for n in 0..5u64 {
                let backup = place.path().join(n.to_string());
                let all = || match n {
                    0 => patient(),
                    n => patient().since(place.path().join((n - 1).to_string())),
                };
                if random.one_in(2) {
                    let stop = all().progress(|done| match done.bytes {
                        0 => ControlFlow::Continue(()),
                        _ => ControlFlow::Break(()),
                    });
                    drop(db.backup_to(&backup, &stop));
                }
                let before = acknowledged.load(Ordering::SeqCst);
                if let Err(error) = db.backup_to(&backup, &all()) {
                    assert!(matches!(error, Error::NotEmpty(_)), "{error}");
                    continue;
                }
                let into = place.path().join(format!("restored {n}"));
                restore(&backup, &into, &CheckOptions::new()).expect("restore");
                is_sound(&into);
                let count = check_state(&Ledger::of(&open(&into)).state());
                assert!(count >= before && count <= acknowledged.load(Ordering::SeqCst) + 1);
            }
            drop(over);
        });
    }
}

#[test]
fn one_state_in_memory() {
    for seed in seeds(0, 8) {
        run(Bed::Dram, Beside::Eager, 3, seed);
        run(Bed::Dram, Beside::Any, 3, seed);
    }
}

#[test]
fn one_state_on_files() {
    for seed in seeds(20, 2) {
        for durability in [Durability::Sync, Durability::Group, Durability::None] {
            run(Bed::File(durability), Beside::Any, 3, seed);
        }
        run(Bed::Nvm, Beside::Eager, 3, seed);
    }
}

/// Collectors that write to the slots of versions one by one, too.
#[test]
fn one_state_beside_every_collector() {
    for (seed, collector) in
        seeds(40, pantile_rivals::all().len() as u64).into_iter().zip(pantile_rivals::all())
    {
        run(Bed::Dram, Beside::This(*collector), 2, seed);
    }
}

/// Definitions change all the time: the backup has those of its moment, with
/// their rows.
#[test]
fn definitions_change_meanwhile() {
    for seed in seeds(60, 3) {
        let _note = SeedNote(seed);
        let db = in_memory();
        let stay = TableDef::new("stays").column("id", Type::U64).column("n", Type::U64).primary_key(["id"]);
        let stays = db.create_table(stay).expect("create");
        db.run(|txn| (0..3_000u64).try_for_each(|id| txn.insert(&stays, &[id.into(), (id % 7).into()])))
            .expect("fill");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let over = SaysDone(&done);
            scope.spawn(|| change_definitions(&db, &stays, &done, seed));
            let mut random = Random::new(seed, 9);
            for _ in 0..12 {
                // Slow enough that much is dropped while its rows are still to be copied.
                let options = BackupOptions::new().rate(1 << (20 + random.below(4)));
                let place = ScratchDir::new();
                let report = db.backup_to(place.path(), &options).expect("back up");
                is_sound(place.path());
                check_definitions(&open(place.path()), report.tables);
            }
            drop(over);
        });
    }
}

/// Tables come with `n` rows in one transaction after their definition, and go.
fn change_definitions(db: &Database, stays: &Table, done: &AtomicBool, seed: u64) {
    let mut random = Random::new(seed, 8);
    let name = |n: u64| format!("t{n}");
    for n in 0.. {
        if done.load(Ordering::Relaxed) {
            return;
        }
        let def = TableDef::new(name(n)).column("id", Type::U64).column("data", Type::Bytes(200_000));
        let table = db.create_table(def.primary_key(["id"])).expect("create");
        let data = vec![n as u8; *random.pick(&[10, 3_000, 100_000])];
        let rows = 1 + n % 5;
        let fill = |txn: &mut Transaction| {
            (0..rows).try_for_each(|id| txn.insert(&table, &[id.into(), pantile::Value::Bytes(&data)]))
        };
        db.run(fill).expect("fill");
        if n % 4 == 0 {
            db.create_index(stays, IndexDef::new("by_n", ["n"])).expect("create");
        } else if n % 4 == 2 {
            db.drop_index(stays, "by_n").expect("drop");
        }
        if n >= 6 {
            db.drop_table(&name(n - 6)).expect("drop");
        }
    }
}

fn check_definitions(copy: &Database, tables: u64) {
    assert_eq!(copy.tables().len() as u64, tables);
    let txn = copy.begin_read().expect("begin");
    let stays = copy.table("stays").expect("the table");
    assert_eq!(txn.scan(&stays, Range::all()).expect("scan").count(), 3_000);
    if let Ok(index) = stays.index("by_n") {
        assert_eq!(txn.scan_index(&index, Range::all()).expect("scan").count(), 3_000);
    }
    let names = copy.tables();
    let mut numbers: Vec<u64> =
        names.iter().filter_map(|name| name.strip_prefix('t')?.parse().ok()).collect();
    numbers.sort_unstable();
    // Six or seven follow each other, and each but the last has all of its rows.
    assert!(numbers.len() <= 7 && numbers.windows(2).all(|two| two[1] == two[0] + 1), "{numbers:?}");
    for n in &numbers {
        let table = copy.table(&format!("t{n}")).expect("a table");
        let rows = txn.scan(&table, Range::all()).expect("scan").map(|row| {
            let row = row.expect("a row");
            let data = row.get::<Vec<u8>>(1).expect("data");
            assert!(data.iter().all(|byte| *byte == *n as u8));
        });
        let rows = rows.count() as u64;
        assert!(rows == 1 + n % 5 || rows == 0 && numbers.last() == Some(n), "{rows} rows in {names:?}");
    }
}

/// Columns come and go beside writers that began before: the backup has a
/// definition that its rows can be read by.
#[test]
fn columns_change_meanwhile() {
    for seed in seeds(70, 3) {
        let _note = SeedNote(seed);
        let db = in_memory();
        let def = TableDef::new("t").column("id", Type::U64).column("n", Type::I64).primary_key(["id"]);
        let table = db.create_table(def).expect("create");
        db.run(|txn| (0..40u64).try_for_each(|id| txn.insert(&table, &[id.into(), 10i64.into()])))
            .expect("fill");
        let done = AtomicBool::new(false);
        let move_one = |random: &mut Random| {
            let ids = [random.below(40), random.below(40)];
            let moved = db.run(|txn| {
                // It has begun, and a backup too, and the columns change.
                std::thread::sleep(Duration::from_millis(2));
                ids.iter().zip([-1, 1]).try_for_each(|(id, by)| {
                    let edit = |row: &mut pantile::RowEdit<'_>| {
                        let n: i64 = row.get(1)?;
                        row.set(1, (n + by).into()).map(|()| true)
                    };
                    txn.modify(&table, &[(*id).into()], edit).map(drop)
                })
            });
            moved.expect("move");
        };
        std::thread::scope(|scope| {
            for stream in 0..2 {
                let (done, move_one) = (&done, &move_one);
                scope.spawn(move || {
                    let mut random = Random::new(seed, stream);
                    while !done.load(Ordering::Relaxed) {
                        move_one(&mut random);
                    }
                });
            }
            scope.spawn(|| {
                let mut newest = table.clone();
                for n in 0..200 {
                    let column = ColumnDef::new("m", Type::I64).default(10i64);
                    let change = match n % 2 {
                        0 => TableChange::new().add_column_before("n", column),
                        _ => TableChange::new().drop_column("m"),
                    };
                    newest = db.alter_table(&newest, &change).expect("change");
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
            // Also if something is wrong.
            let _end = SetAtEnd(&done);
            for _ in 0..20 {
                let (place, _) = back_up(&db);
                let copy = open(place.path());
                let (t, txn) = (copy.table("t").expect("the table"), copy.begin_read().expect("begin"));
                let sum = |column: &str| -> pantile::Result<i64> {
                    txn.scan(&t, Range::all())?.map(|row| row?.get::<i64>(column)).sum()
                };
                assert_eq!(sum("n").expect("numbers"), 400);
                assert!(t.column("m").is_err() || sum("m").expect("numbers") == 400);
            }
        });
    }
}

/// Sets a flag when it goes.
struct SetAtEnd<'f>(&'f AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A backup waits for older writers. What committed beside one that goes on is
/// left out, and so said.
#[test]
fn a_long_writer() {
    let db = in_memory();
    let ledger = Ledger::new(&db);
    let at_once = BackupOptions::new().wait(Duration::ZERO);
    let mut long = db.begin().expect("begin");
    long.update(&ledger.sides[0], &[3u64.into()], &[(1, 7i64.into())]).expect("update");
    ledger.transfer(ACCOUNTS + 1);
    let place = ScratchDir::new();
    let report = db.backup_to(place.path().join("early"), &at_once).expect("back up");
    assert!(!report.is_current);
    assert_eq!(check_state(&Ledger::of(&open(&place.path().join("early"))).state()), 0);
    let backup = || db.backup_to(place.path().join("late"), &patient());
    let report = std::thread::scope(|scope| {
        let waiting = scope.spawn(backup);
        std::thread::sleep(Duration::from_millis(20));
        assert!(!waiting.is_finished());
        long.rollback();
        waiting.join().expect("no panic").expect("back up")
    });
    assert!(report.is_current);
    assert_eq!(check_state(&Ledger::of(&open(&place.path().join("late"))).state()), 1);
}

/// It holds what it reads, as statistics show, and writers go on.
#[test]
fn it_shows_as_a_reader() {
    let db = in_memory();
    let ledger = Ledger::new(&db);
    let place = ScratchDir::new();
    let (watched, seen) = (db.clone(), std::sync::Arc::new(AtomicU64::new(0)));
    let note = std::sync::Arc::clone(&seen);
    let options = BackupOptions::new().progress(move |done| {
        assert!(done.tables <= done.total_tables && done.total_tables <= 3);
        note.fetch_max(watched.transactions().len() as u64, Ordering::Relaxed);
        ControlFlow::Continue(())
    });
    db.backup_to(place.path().join("backup"), &options).expect("back up");
    assert_eq!(seen.load(Ordering::Relaxed), 1);
    assert_eq!(db.stats().running, 0);
    ledger.transfer(1);
    let zero = db.backup_to(place.path().join("zero"), &BackupOptions::new().rate(0));
    pantile_testkit::fails!(zero, Error::InvalidOption(_), "rate is 0");
}
