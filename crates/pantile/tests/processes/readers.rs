//! Processes that read a database beside the one that writes (I-27), and without
//! one. Either is killed.

use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::stats::PageReader;
use pantile::tools::{BackupOptions, watch};
use pantile::{
    Database, Durability, Error, Options, Range, Row, Table, TableChange, TableDef, Transaction, Type, Value,
};
use pantile_base::sync::thread;
use pantile_testkit::{Patience, SaysDone, ScratchDir, await_that, fails};

const WRITER: &str = "PANTILE_TEST_WRITER";
const READER: &str = "PANTILE_TEST_READER";

const ROWS: u32 = 4000;
/// What all rows together have, in every state that is committed.
const TOTAL: i64 = ROWS as i64 * 100;

fn bank(db: &Database) -> Table {
    let def = TableDef::new("bank")
        .column("id", Type::U32)
        .column("cents", Type::I64)
        .column("note", Type::String(300))
        .primary_key(["id"]);
    db.open_or_create(def).expect("table")
}

fn fill(db: &Database) {
    let bank = bank(db);
    let note = "n".repeat(100);
    let insert = |txn: &mut Transaction| {
        txn.insert_many(&bank, (0..ROWS).map(|id| [id.into(), 100i64.into(), note.as_str().into()]))
    };
    db.run(|txn| insert(txn).map(drop)).expect("fill");
}

/// Moves cents from one row to another, and makes their notes long and short.
fn shift(db: &Database, bank: &Table, n: u32) {
    let (from, to) = (n.wrapping_mul(2_654_435_761) % ROWS, n.wrapping_mul(40_503) % ROWS);
    let note = "x".repeat((n % 250) as usize);
    db.run(|txn| {
        for (id, by) in [(from, -1i64), (to, 1)] {
            txn.modify(bank, &[id.into()], |row| {
                let cents: i64 = row.get(1)?;
                row.set(1, (cents + by).into())?;
                row.set(2, note.as_str().into())?;
                Ok(true)
            })?;
        }
        Ok::<_, Error>(())
    })
    .expect("shift");
}

/// All rows as they are read here.
fn state(db: &Database) -> Vec<(u32, i64, String)> {
    let (bank, txn) = (db.table("bank").expect("table"), db.begin_read().expect("begin"));
    let row = |row: Row<'_>| {
        Ok::<_, Error>((row.get("id")?, row.get("cents")?, row.get::<&str>("note")?.to_owned()))
    };
    let rows = txn.scan(&bank, Range::all()).expect("scan");
    rows.map(|found| found.and_then(row).expect("a row")).collect()
}

fn whole(db: &Database) -> Vec<(u32, i64, String)> {
    let state = state(db);
    assert_eq!(state.len(), ROWS as usize);
    assert_eq!(state.iter().map(|(_, cents, _)| cents).sum::<i64>(), TOTAL);
    state
}

/// Writes until it is killed; does nothing otherwise.
#[test]
fn writer() {
    let Some(place) = std::env::var_os(WRITER) else { return };
    let db = Database::open(&place).expect("open");
    let bank = bank(&db);
    for n in 0.. {
        shift(&db, &bank, n);
        match n % 2000 {
            0 => drop(fs::write(Path::new(&place).join("beside"), n.to_string())),
            500 => drop(db.compact().expect("compact")),
            1000 => drop(db.create_table(TableDef::new("other").column("id", Type::U8).primary_key(["id"]))),
            1500 => drop(db.drop_table("other")),
            _ => {}
        }
    }
}

/// Reads until it is killed; does nothing otherwise.
#[test]
fn reader() {
    let Some(place) = std::env::var_os(READER) else { return };
    let db = Database::open_read_only(&place).expect("open");
    let first = whole(&db);
    fs::write(Path::new(&place).join("reads"), b"").expect("write");
    loop {
        assert_eq!(whole(&db), first);
    }
}

fn start(test: &str, variable: &str, place: &Path, sign: &str) -> Child {
    let _ = fs::remove_file(place.join(sign));
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", &format!("readers::{test}")]).stdout(Stdio::null()).env(variable, place);
    let mut child = command.spawn().expect("child");
    await_that("the child works", || {
        assert!(child.try_wait().expect("wait").is_none(), "the child ended by itself");
        place.join(sign).exists()
    });
    child
}

fn kill(mut child: Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}

/// Dropping the last handle ends the threads that serve readers before it closes the database.
#[test]
fn what_others_read_outlives_a_writer_that_is_dropped() {
    let home = ScratchDir::new();
    let place = home.path();
    let open = || Options::new().durability(Durability::None).open(place).expect("open");
    let db = open();
    fill(&db);
    let mut child = start("reader", READER, place, "reads");
    for _ in 0..2 {
        let (db, bank) = (db.clone(), bank(&db));
        (0..20_000).for_each(|n| shift(&db, &bank, n));
    }
    drop(db);
    let db = open();
    let bank = bank(&db);
    (0..20_000).for_each(|n| shift(&db, &bank, n));
    thread::sleep(Duration::from_millis(100));
    assert!(child.try_wait().expect("wait").is_none(), "it reads what it has read");
    assert_eq!(db.reading_processes().len(), 1);
    kill(child);
    await_that("nothing is held for it", || db.reading_processes().is_empty());
}

#[test]
fn readers_beside_writers_that_are_killed() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    db.close().expect("close");
    let mut kept: Vec<(Database, Vec<_>)> = Vec::new();
    for _ in 0..4 {
        let writer = start("writer", WRITER, place.path(), "beside");
        for _ in 0..3 {
            let reader = Database::open_read_only(place.path()).expect("open");
            let state = whole(&reader);
            kept.push((reader, state));
        }
        kill(writer);
        // The next writer finds the marks of those that are left.
        kept.drain(..kept.len() / 2);
        for (reader, state) in &kept {
            assert_eq!(&whole(reader), state);
        }
    }
    let db = Database::open(place.path()).expect("open");
    whole(&db);
    db.compact().expect("compact");
    for (reader, state) in &kept {
        assert_eq!(&whole(reader), state, "after everything was moved");
    }
}

#[test]
fn what_a_killed_reader_held_is_given_back() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    let bank = bank(&db);
    db.compact().expect("compact");
    let before = db.stats().medium_bytes;
    for late in [false, true] {
        let child = start("reader", READER, place.path(), "reads");
        let other = if late { None } else { Some(Database::open_read_only(place.path()).expect("open")) };
        (0..20_000).for_each(|n| shift(&db, &bank, n));
        let readers = db.reading_processes();
        assert_eq!(readers.len(), 1 + usize::from(!late));
        assert!(readers.iter().any(|reader| reader.process == Some(child.id())));
        assert!(readers.iter().all(|reader| reader.held_bytes > 0));
        await_that("others are told who reads", || {
            shift(&db, &bank, 0);
            let is_it = |reader: &PageReader| reader.process == child.id() && reader.held_bytes > 0;
            watch(place.path()).is_ok_and(|page| page.readers.iter().any(is_it))
        });
        let metric = format!("pantile_reader_held_bytes{{process=\"{}\"}}", child.id());
        assert!(db.metrics().contains(&metric));
        db.create_table(TableDef::new("gone").column("id", Type::U8).primary_key(["id"])).expect("create");
        db.drop_table("gone").expect("drop");
        kill(child);
        drop(other);
        await_that("the space is given back", || {
            db.compact().expect("compact");
            db.stats().medium_bytes <= before + (1 << 20)
        });
    }
    whole(&db);
}

/// Series with the same labels are a fault for Prometheus.
#[test]
fn readers_in_one_process_are_series_of_their_own() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    let readers = [(); 3].map(|()| Database::open_read_only(place.path()).expect("open"));
    let text = db.metrics();
    let series = text.lines().filter_map(|line| line.strip_prefix("pantile_reader_held_bytes{"));
    let labels: Vec<_> = series.filter_map(|line| Some(line.split_once('}')?.0)).collect();
    let process = format!("process=\"{}\"", std::process::id());
    let numbered = |number| format!("{process},number=\"{number}\"");
    assert_eq!(labels, [process.clone(), numbered(2), numbered(3)]);
    drop(readers);
}

/// There is always one, but what an earlier one held is given back while a later one
/// reads. So are tables that were dropped before it came.
#[test]
fn readers_one_after_the_other_hold_no_more_than_one() {
    let place = ScratchDir::new();
    let db = Options::new().durability(Durability::None).open(place.path()).expect("open");
    fill(&db);
    let bank = bank(&db);
    let make = |round: u32| {
        let def = TableDef::new(format!("t{round}")).column("id", Type::U32).primary_key(["id"]);
        let table = db.create_table(def).expect("create");
        db.run(|txn| (0..100u32).try_for_each(|n| txn.insert(&table, &[n.into()]))).expect("insert");
    };
    make(0);
    let mut reader = Database::open_read_only(place.path()).expect("open");
    let mut one = 0;
    for round in 0..20 {
        // The reader has found it.
        db.drop_table(&format!("t{round}")).expect("drop");
        make(round + 1);
        (0..5_000).for_each(|n| shift(&db, &bank, n));
        if round == 0 {
            one = db.stats().obsolete_bytes;
        }
        let next = Database::open_read_only(place.path()).expect("open");
        assert_eq!(whole(&next), state(&db));
        assert_eq!(whole(&reader), state(&reader));
        drop(std::mem::replace(&mut reader, next));
    }
    await_that("what earlier ones held is given back", || {
        shift(&db, &bank, 0);
        !are_dropped_left(&db) && db.stats().obsolete_bytes < 5 * one
    });
    assert_eq!(db.reading_processes().len(), 1);
    assert_eq!(whole(&reader), state(&reader));
}

/// Rows of 3 KB, and a reader that has been there for longer than a few epochs once some of each block is dead.
/// With `takes_over`, another one has been there before.
fn beside_a_reader(options: Options, rows: u32, takes_over: bool, act: impl FnOnce(&Database, &Table)) {
    let place = ScratchDir::new();
    let db = options.durability(Durability::None).open(place.path()).expect("open");
    let t = wide(&db);
    for id in 0..rows {
        db.run(|txn| txn.insert(&t, &row(id, 0))).expect("insert");
    }
    let before = takes_over.then(|| Database::open_read_only(place.path()).expect("a reader"));
    let reader = Database::open_read_only(place.path()).expect("a reader");
    drop(before);
    for id in (0..rows).step_by(4) {
        match db.run(|txn| txn.upsert(&t, &row(id, 1)).map(drop)) {
            Err(Error::StorageFull { .. }) => break,
            updated => updated.expect("update"),
        }
    }
    thread::sleep(Duration::from_millis(400));
    act(&db, &t);
    drop(reader);
    db.close().expect("close");
}

/// A table of such rows.
fn wide(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U32).column("bytes", Type::FixedBytes(3000));
    db.create_table(def.primary_key(["id"])).expect("table")
}

fn row(id: u32, byte: u8) -> [Value<'static>; 2] {
    [id.into(), Value::Bytes(if byte == 0 { &[0; 3000] } else { &[1; 3000] })]
}

/// The blocks would stay beside the copies.
#[test]
fn what_a_reader_reads_is_not_moved_together() {
    beside_a_reader(Options::new(), 6000, false, |db, _| {
        let before = db.stats();
        db.compact().expect("compact");
        let after = db.stats();
        let copied = after.copied_bytes - before.copied_bytes;
        assert!(copied < 2 << 20, "{copied} bytes were copied");
    });
}

/// But if there is always a reader, what is alive in blocks leaves them once.
#[test]
fn blocks_do_not_stay_for_one_reader_after_the_other() {
    let place = ScratchDir::new();
    let db = Options::new().durability(Durability::None).open(place.path()).expect("open");
    let t = wide(&db);
    // It holds none of the blocks that come after it.
    let always = Database::open_read_only(place.path()).expect("a reader");
    let mut reader = Database::open_read_only(place.path()).expect("a reader");
    for round in 0..16u32 {
        let rows = || round * 2000..(round + 1) * 2000;
        db.run(|txn| txn.insert_many(&t, rows().map(|id| row(id, 1))).map(drop)).expect("insert");
        let next = Database::open_read_only(place.path()).expect("a reader");
        // Longer than a few epochs, together.
        thread::sleep(Duration::from_millis(300));
        drop(std::mem::replace(&mut reader, next));
        // One row of each block stays.
        for id in rows().filter(|id| id % 20 > 0) {
            db.run(|txn| txn.delete(&t, &[id.into()])).expect("delete");
        }
    }
    let taken = || db.stats().medium_bytes;
    await_that("the space follows the data", || {
        db.run(|txn| txn.upsert(&t, &row(0, 1)).map(drop)).expect("update");
        taken() < 70 << 20
    });
    drop((always, reader));
    db.close().expect("close");
}

/// Blocks that came after a reader are none of its.
#[test]
fn a_full_database_has_room_again_beside_a_reader_of_before() {
    let place = ScratchDir::new();
    let options = Options::new().durability(Durability::None).max_bytes(24 << 20);
    let db = options.open(place.path()).expect("open");
    let t = wide(&db);
    let reader = Database::open_read_only(place.path()).expect("a reader");
    let full = (0..).find(|&id| db.run(|txn| txn.insert(&t, &row(id, 1))).is_err()).expect("it is full");
    for id in (0..full).step_by(2) {
        db.run(|txn| txn.delete(&t, &[id.into()])).expect("delete");
    }
    let mut id = full;
    await_that("there is room again", || {
        id += u32::from(db.run(|txn| txn.insert(&t, &row(id, 1))).is_ok());
        id == full + 500
    });
    drop(reader);
    db.close().expect("close");
}

#[test]
fn a_full_database_can_delete_beside_a_reader() {
    for takes_over in [false, true] {
        beside_a_reader(Options::new().max_bytes(24 << 20), 5000, takes_over, |db, t| {
            let full = (5000..).find_map(|id| db.run(|txn| txn.insert(t, &row(id, 1))).err());
            assert!(matches!(full, Some(Error::StorageFull { .. })), "{full:?}");
            for id in 0..2000u32 {
                let is_gone = db.run(|txn| txn.delete(t, &[id.into()]));
                assert!(is_gone.unwrap_or_else(|error| panic!("{id} of 2000 ({takes_over}): {error}")));
            }
        });
    }
}

/// A table that is dropped while another process reads it keeps its space, but not its indexes, and the
/// writer does not work on it all the time.
#[test]
fn what_is_dropped_beside_a_reader_takes_no_memory() {
    let place = ScratchDir::new();
    let db = Options::new().durability(Durability::None).open(place.path()).expect("open");
    fill(&db);
    let def = TableDef::new("staging").column("id", Type::U32).primary_key(["id"]);
    let mut staging = db.create_table(def).expect("create");
    let bank = bank(&db);
    // Ten such tables take four times as much.
    let most = db.stats().dram_bytes + (5 << 20);
    let mut readers = Vec::new();
    for _ in 0..10 {
        db.run(|txn| (0..50_000u32).try_for_each(|n| txn.insert(&staging, &[n.into()]))).expect("insert");
        readers.push(Database::open_read_only(place.path()).expect("open"));
        staging = db.truncate_table(&staging).expect("truncate");
        await_that("the memory is given back", || {
            shift(&db, &bank, 0);
            db.stats().dram_bytes < most
        });
    }
    await_that("nothing is written", || {
        let syncs = db.stats().medium.syncs;
        thread::sleep(Duration::from_secs(2));
        db.stats().medium.syncs == syncs
    });
    assert!(are_dropped_left(&db));
    for reader in &readers {
        whole(reader);
    }
}

/// Whether dropped tables take space.
fn are_dropped_left(db: &Database) -> bool {
    db.space_by_table().iter().any(|space| space.table.contains("dropped"))
}

/// A job makes, fills and drops tables beside a reader that cannot know of them, and beside one that was
/// there before the database was opened again. Their space is given back, and what the readers read is not.
#[test]
fn tables_made_and_dropped_beside_a_reader_take_no_space() {
    let place = ScratchDir::new();
    let open = || Options::new().durability(Durability::None).open(place.path()).expect("open");
    let stage = |db: &Database| {
        let bank = bank(db);
        let def = TableDef::new("staging").column("id", Type::U32).column("note", Type::String(100));
        let def = def.primary_key(["id"]);
        for _ in 0..10 {
            let staging = db.create_table(def.clone()).expect("create");
            let note = "s".repeat(90);
            let rows = (0..5_000u32).map(|id| [id.into(), note.as_str().into()]);
            db.run(|txn| txn.insert_many(&staging, rows.clone()).map(drop)).expect("insert");
            db.truncate_table(&staging).expect("truncate");
            db.drop_table("staging").expect("drop");
            (0..500).for_each(|n| shift(db, &bank, n));
        }
        await_that("the space is given back", || {
            shift(db, &bank, 0);
            !are_dropped_left(db)
        });
    };
    let db = open();
    fill(&db);
    let reader = Database::open_read_only(place.path()).expect("open");
    let first = whole(&reader);
    stage(&db);
    assert_eq!(whole(&reader), first);
    db.close().expect("close");
    let db = open();
    stage(&db);
    assert_eq!(whole(&reader), first);
    let second = Database::open_read_only(place.path()).expect("open");
    let then = whole(&second);
    stage(&db);
    assert_eq!((whole(&reader), whole(&second)), (first, then));
}

/// A reader of before keeps the space of a table that is dropped, also when the writer is opened again, and
/// nobody waits for it.
#[test]
fn a_writer_opens_beside_a_reader_of_what_was_dropped() {
    let place = ScratchDir::new();
    let open =
        || Options::new().durability(Durability::None).open(place.path()).expect("a reader keeps nobody out");
    let db = open();
    fill(&db);
    let def = TableDef::new("staging").column("id", Type::U32).primary_key(["id"]);
    let staging = db.create_table(def).expect("create");
    db.run(|txn| (0..200_000u32).try_for_each(|n| txn.insert(&staging, &[n.into()]))).expect("insert");
    db.close().expect("close");
    let reader = Database::open_read_only(place.path()).expect("open");
    let first = whole(&reader);
    let db = open();
    db.drop_table("staging").expect("drop");
    db.close().expect("close");
    let mut kept = 0;
    for _ in 0..2 {
        let db = open();
        db.compact().expect("compact");
        kept = db.stats().medium_bytes;
        db.close().expect("close");
    }
    assert_eq!(whole(&reader), first);
    drop(reader);
    let db = open();
    await_that("the table's space is given back", || {
        db.compact().expect("compact");
        db.stats().medium_bytes < kept
    });
}

#[test]
fn a_writer_comes_to_a_reader() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    // One stopped without closing, one closed.
    let stopped = std::mem::ManuallyDrop::new(db);
    let copy = ScratchDir::new();
    fs::copy(place.path().join("pantile.data"), copy.path().join("pantile.data")).expect("copy");
    std::mem::ManuallyDrop::into_inner(stopped).close().expect("close");
    for path in [place.path(), copy.path()] {
        let reader = Database::open_read_only(path).expect("open");
        let second = Database::open_read_only(path).expect("open");
        let state = whole(&reader);
        // How long a sync takes here does not matter.
        let options = Options::new().durability(Durability::None);
        let db = options.open(path).expect("a reader keeps nobody out");
        let readers = db.reading_processes();
        assert!(readers.len() == 2 && readers.iter().all(|reader| reader.process.is_none()));
        let bank = bank(&db);
        (0..20_000).for_each(|n| shift(&db, &bank, n));
        db.compact().expect("compact");
        assert_eq!(whole(&reader), state);
        drop(reader);
        assert_eq!(whole(&second), state);
        assert_ne!(whole(&db), state);
        db.close().expect("a reader does not keep it from closing");
        assert_eq!(whole(&second), state);
        drop(second);
        whole(&Database::open(path).expect("open"));
    }
}

#[test]
fn readers_see_what_was_committed_before_them() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    let bank = bank(&db);
    let long = "v".repeat(100_000);
    let def =
        TableDef::new("long").column("id", Type::U32).column("v", Type::String(200_000)).primary_key(["id"]);
    let values = db.create_table(def).expect("create");
    for n in 0..20u32 {
        shift(&db, &bank, n);
        let wide =
            TableChange::new().add_column(pantile::ColumnDef::new(format!("c{n}"), Type::U32).nullable());
        db.alter_table(&bank, &wide).expect("alter");
        db.run(|txn| txn.insert(&values, &[n.into(), long.as_str().into()])).expect("insert");
        // Another thread is about to write.
        let mut open = db.begin().expect("begin");
        open.delete(&bank, &[n.into()]).expect("delete");
        let reader = Database::open_read_only(place.path()).expect("open");
        assert_eq!(state(&reader), state(&db));
        let txn = reader.begin_safe_snapshot().expect("begin");
        let read = reader.table("long").expect("table");
        assert_eq!(txn.count(&read, Range::all()).expect("count"), u64::from(n) + 1);
        let row = txn.get(&read, &[n.into()]).expect("get").expect("a row");
        assert_eq!(row.get::<String>("v").expect("read"), long);
        assert_eq!(reader.table("bank").expect("table").columns().len(), 4 + n as usize);
        open.rollback();
    }
}

/// What was committed beside a transaction that goes on writing is not in what a reader saves, and so it is said.
/// Transactions that end soon are waited for.
#[test]
fn a_backup_beside_another_process_says_what_it_misses() {
    let (place, copies) = (ScratchDir::new(), ScratchDir::new());
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    let bank = bank(&db);
    let back_up = |name: &str| {
        let reader = Database::open_read_only(place.path()).expect("open");
        let report = reader.backup_to(copies.path().join(name), &BackupOptions::new()).expect("back up");
        let copy = Database::open_read_only(copies.path().join(name)).expect("open");
        (report, state(&reader), state(&copy))
    };
    let mut long = db.begin().expect("begin");
    long.delete(&bank, &[0u32.into()]).expect("delete");
    let before = state(&db);
    shift(&db, &bank, 1);
    let after = state(&db);
    assert_ne!(before, after);
    let (report, read, copied) = back_up("beside");
    assert!(!report.is_current && report.timestamp < long.timestamp(), "{report:?}");
    let is_current = || Database::open_read_only(place.path()).expect("open").is_current();
    assert!(!is_current() && db.is_current());
    assert_eq!((&read, &copied), (&before, &before));
    long.rollback();
    let (report, read, copied) = back_up("afterwards");
    assert!(report.is_current && is_current(), "{report:?}");
    assert_eq!((&read, &copied), (&after, &after));
    // One is always writing, and none for long.
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let _over = SaysDone(&over);
        for n in 0..2u32 {
            let (db, bank, over) = (&db, &bank, &over);
            scope.spawn(move || {
                while !over.load(Ordering::Relaxed) {
                    let mut short = db.begin().expect("begin");
                    short.delete(bank, &[n.into()]).expect("delete");
                    thread::sleep(Duration::from_millis(5));
                    short.rollback();
                }
            });
        }
        // A busy machine may stop one of them for long.
        let patience = Patience::new();
        for n in 0.. {
            let (report, _, copied) = back_up(&format!("busy {n}"));
            assert_eq!(copied, after);
            if report.is_current {
                break;
            }
            patience.check(|| "it waits for none of them".into());
        }
    });
}

/// A child that is forked keeps sockets until it runs its program, also that of a
/// database that has been closed meanwhile and is opened again.
#[test]
fn an_address_that_is_taken_for_a_moment_is_waited_for() {
    let place = ScratchDir::new();
    fill(&Database::open(place.path()).expect("open"));
    let file = fs::metadata(place.path().join("pantile.data")).expect("metadata");
    let name = format!("pantile-{:x}-{:x}", file.dev(), file.ino());
    let address = SocketAddr::from_abstract_name(name).expect("an address");
    let taken = UnixListener::bind_addr(&address).expect("bind");
    let db = Database::open(place.path()).expect("open");
    db.run(|txn| txn.delete(&bank(&db), &[0u32.into()])).expect("delete");
    drop(taken);
    let reader = Database::open_read_only(place.path()).expect("the reader is served");
    let rows = reader.begin_read().expect("begin").count(&bank(&reader), Range::all()).expect("count");
    assert_eq!(rows, u64::from(ROWS) - 1);
}

#[test]
fn readers_are_told_what_they_cannot_do() {
    let place = ScratchDir::new();
    fails!(Database::open_read_only(place.path()), Error::NoDatabase(_), "there is no database in");
    fs::write(place.path().join("pantile.data"), b"").expect("write");
    fails!(Database::open_read_only(place.path()), Error::NoDatabase(_), "there is no database in");
    fs::remove_file(place.path().join("pantile.data")).expect("remove");
    let db = Database::open(place.path()).expect("open");
    fill(&db);
    let reader = Database::open_read_only(place.path()).expect("open");
    let bank = reader.table("bank").expect("table");
    let outcome = reader.run(|txn| txn.delete(&bank, &[1u32.into()]));
    fails!(outcome, Error::ReadOnly, "read-only");
    fails!(reader.drop_table("bank"), Error::ReadOnly, "read-only");
    reader.close().expect("close");
    db.close().expect("close");
    let db = Options::new().max_bytes(16 << 20).open(place.path()).expect("open");
    let bank = self::bank(&db);
    let reader = Database::open_read_only(place.path()).expect("open");
    let long = "w".repeat(300);
    let grow =
        |n: u32| db.run(|txn| txn.insert(&bank, &[(ROWS + n).into(), 0i64.into(), long.as_str().into()]));
    (0..4).for_each(|n| shift(&db, &bank, n));
    let full = (0..).find_map(|n| grow(n).err()).expect("it is full in the end");
    let process = format!("process {} reads the database and holds back", std::process::id());
    fails!(Err::<(), _>(full), Error::StorageFull { .. }, process.as_str());
    drop(reader);
    drop((bank, db));
    let db = Options::new().worker(false).open(place.path()).expect("open");
    let began = thread::spawn({
        let path = place.path().to_owned();
        move || Database::open_read_only(path)
    });
    let outcome = began.join().expect("no panic");
    fails!(outcome, Error::ReadersRefused { .. }, "in this process", "does not answer");
    drop(db);
}
