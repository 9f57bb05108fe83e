//! The device is full while threads commit and the database is closed. What
//! was closed opens as closed, with all that was acknowledged.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use pantile::{
    CheckOptions, Database, Durability, Error, Options, Range, Result, Table, TableDef, Type, Value, check,
};
use pantile_testkit::{Random, ScratchDir, await_that};

const PLACE: &str = "PANTILE_TEST_FULL_DEVICE";
const DONE: &str = "all of it was done";
const THREADS: u64 = 3;
const ROUNDS: u64 = 6;
/// A thread writes and deletes those of these keys that are its own.
const KEYS: u64 = 300;

/// The length of each row's data, by key.
type Rows = BTreeMap<u64, usize>;

fn table(db: &Database) -> Table {
    db.table("t").unwrap_or_else(|_| {
        let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(200_000));
        db.create_table(def.primary_key(["id"])).expect("create")
    })
}

fn rows(db: &Database, table: &Table) -> Rows {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| {
        let row = row.expect("a row");
        Ok((row.get(0)?, row.get::<Option<Vec<u8>>>(1)?.unwrap_or_default().len()))
    })
    .collect::<Result<_>>()
    .expect("rows")
}

/// A transaction of one to twenty rows, which are written or deleted.
fn transaction(
    db: &Database,
    table: &Table,
    thread: u64,
    random: &mut Random,
) -> Result<Vec<(u64, Option<usize>)>> {
    let is_deletion = random.one_in(3);
    let longest = *random.pick(&[100, 2_000, 150_000]);
    let mut changes = Vec::new();
    let mut txn = db.begin()?;
    for _ in 0..1 + random.below(20) {
        let key = random.below(KEYS) / THREADS * THREADS + thread;
        let len = (!is_deletion).then(|| random.below(longest) as usize);
        match len {
            Some(len) => drop(txn.upsert(table, &[key.into(), Value::Bytes(&vec![7; len])])?),
            None => drop(txn.delete(table, &[key.into()])?),
        }
        changes.push((key, len));
    }
    txn.commit()?;
    Ok(changes)
}

/// Commits until the database is closed. Returns the thread's rows.
fn work(db: &Database, thread: u64, mut random: Random, mut rows: Rows, tried: &AtomicU64) -> Rows {
    let table = table(db);
    rows.retain(|key, _| key % THREADS == thread);
    loop {
        match transaction(db, &table, thread, &mut random) {
            Ok(changes) => changes.into_iter().for_each(|(key, len)| {
                match len {
                    Some(len) => rows.insert(key, len),
                    None => rows.remove(&key),
                };
            }),
            Err(Error::StorageFull { .. } | Error::Conflict { .. }) => {}
            Err(Error::Closed) => return rows,
            Err(error) => panic!("{error}"),
        }
        tried.fetch_add(1, Ordering::Relaxed);
    }
}

/// Takes what is left of the device.
fn fill(path: &Path) -> bool {
    let mut file = File::create(path).expect("file");
    // The limit that stands in for a device is one on each file.
    (0..16_000).any(|_| file.write_all(&[1; 4_096]).is_err())
}

fn round(place: &Path, durability: Durability, seed: u64) {
    let (path, hog) = (place.join("database"), place.join("hog"));
    let open = || Options::new().durability(durability).open(&path).expect("open");
    let db = open();
    let before = rows(&db, &table(&db));
    let mut random = Random::new(seed, THREADS);
    let tried = AtomicU64::new(0);
    let after: Rows = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let (db, tried, before) = (&db, &tried, before.clone());
                scope.spawn(move || work(db, thread, Random::new(seed, thread), before, tried))
            })
            .collect();
        let enough = random.below(200);
        await_that("the threads work", || tried.load(Ordering::Relaxed) >= enough);
        fill(&hog);
        let more = enough + random.below(20);
        await_that("the threads go on", || tried.load(Ordering::Relaxed) >= more);
        db.clone().close().expect("closing needs no room");
        workers.into_iter().flat_map(|worker| worker.join().expect("no panic")).collect()
    });
    drop(db);
    let findings = check(&path, &CheckOptions::new()).expect("check");
    assert!(findings.is_sound(), "seed {seed}, {durability:?}: {findings:?}");
    let db = open();
    assert!(db.recovery().was_closed, "seed {seed}, {durability:?}");
    assert_eq!(rows(&db, &table(&db)), after, "seed {seed}, {durability:?}");
    db.close().expect("close");
    fs::remove_file(&hog).expect("remove");
}

/// Opens and checks a file with a hole while the device is full. The
/// hole is at its end and counts as free chunks.
#[test]
fn child_with_holes() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let (path, hog) = (Path::new(&place).join("database"), Path::new(&place).join("hog"));
    let db = Database::open(&path).expect("open");
    let table = table(&db);
    db.run(|txn| txn.insert(&table, &[1u64.into(), Value::Bytes(&[7; 9_000])])).expect("insert");
    db.close().expect("close");
    let file = File::options().write(true).open(path.join("pantile.data")).expect("data file");
    file.set_len(file.metadata().expect("look").len() + (8 << 20)).expect("lengthen");
    assert!(fill(&hog));
    assert!(check(&path, &CheckOptions::new()).expect("check").is_sound());
    let reader = Database::open_read_only(&path).expect("open read-only");
    assert_eq!(rows(&reader, &reader.table("t").expect("table")), Rows::from([(1, 9_000)]));
    drop(reader);
    let db = Database::open(&path).expect("open");
    assert_eq!(rows(&db, &db.table("t").expect("table")), Rows::from([(1, 9_000)]));
    db.close().expect("close");
    println!("{DONE}");
}

/// A reader opens the database beside its writer. The chunks of a table in the middle
/// of the file have been given back, and the device is full.
#[test]
fn child_that_reads_beside_holes() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let (path, hog) = (Path::new(&place).join("database"), Path::new(&place).join("hog"));
    let db = Database::open(&path).expect("open");
    let def = |name: &str| {
        let def = TableDef::new(name).column("id", Type::U64).column("data", Type::Bytes(10_000));
        def.primary_key(["id"])
    };
    for (name, rows) in [("before", 750), ("t", 2_500), ("behind", 750)] {
        let table = db.create_table(def(name)).expect("create");
        for first in (0..rows).step_by(250) {
            let fill = |key: u64| [key.into(), Value::Bytes(&[7; 4_000])];
            db.run(|txn| txn.insert_many(&table, (first..first + 250).map(fill))).expect("insert");
        }
    }
    db.drop_table("t").expect("drop");
    await_that("the file has holes of whole chunks", || {
        // A state record lets the space go.
        let row = [0u64.into(), Value::Bytes(&[8; 100])];
        db.run(|txn| txn.upsert(&db.table("behind").expect("table"), &row)).expect("upsert");
        let found = path.join("pantile.data").metadata().expect("look");
        found.blocks() * 512 + (4 << 20) < found.len()
    });
    assert!(fill(&hog));
    let reader = Database::open_read_only(&path).expect("open read-only");
    let behind = reader.table("behind").expect("table");
    assert_eq!(reader.begin_read().expect("begin").count(&behind, Range::all()).expect("count"), 750);
    drop((behind, reader));
    db.close().expect("close");
    println!("{DONE}");
}

/// Does nothing unless it is started on a small device.
#[test]
fn child() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    for durability in [Durability::Sync, Durability::Group, Durability::None] {
        (0..ROUNDS).for_each(|seed| round(Path::new(&place), durability, seed));
        fs::remove_dir_all(Path::new(&place).join("database")).expect("remove");
    }
    println!("{DONE}");
}

/// Runs the child after a script. Returns whether it could be run.
fn run(command: &mut Command, place: &Path) -> bool {
    let binary = std::env::current_exe().expect("this binary");
    let output = command.arg(place).arg(binary).env(PLACE, place).output();
    let Ok(output) = output else { return false };
    let (out, error) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if out.contains("running 1 test") {
        assert!(output.status.success() && out.contains(DONE), "{}\n{out}{error}", output.status);
        return true;
    }
    println!("{error}");
    false
}

/// The script that runs a test of this file in a process of its own.
fn child_script(test: &str) -> String {
    format!("exec \"$1\" --exact full_device::{test} --nocapture")
}

#[test]
fn closing_on_a_full_file_system() {
    on_a_small_file_system("child", 8);
}

#[test]
fn holes_on_a_full_file_system() {
    on_a_small_file_system("child_with_holes", 8);
    on_a_small_file_system("child_that_reads_beside_holes", 32);
}

fn on_a_small_file_system(test: &str, megabytes: u32) {
    let place = ScratchDir::new();
    // A mount that only this process sees, as root or as an emulated root.
    let script = format!("mount -t tmpfs -o size={megabytes}m tmpfs \"$0\" && {}", child_script(test));
    let ways = [&["--mount"][..], &["--map-root-user", "--mount"]];
    let done = ways.iter().any(|way| {
        let mut command = Command::new("unshare");
        run(command.args(*way).args(["sh", "-c", &script]), place.path())
    });
    if !done {
        println!("skipped: mounting a small file system takes `unshare` and the right to use it");
    }
}

#[test]
fn closing_at_the_limit_of_a_file() {
    let place = ScratchDir::new();
    // Blocks of 512 bytes. With the signal ignored, the system returns an error.
    let script = format!("ulimit -f 12000 && trap '' XFSZ && {}", child_script("child"));
    assert!(run(Command::new("sh").args(["-c", &script]), place.path()));
}
