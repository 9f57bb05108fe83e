//! Memory runs out. A medium in memory that cannot grow is full, like any other
//! medium. If an index, a table of anchors or a buffer cannot grow, the process
//! ends with a message, and what it acknowledged is on its medium.
//!
//! The limit holds for a process, so each test runs in a process of its own.

use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;

use pantile::{Database, Durability, Error, MediumKind, Options, Range, Table, TableDef, Type, Value};
use pantile_testkit::{ScratchDir, fails, run_case};

const LIMITED: &str = "PANTILE_TEST_MEMORY";

const SIGABRT: i32 = 6;

/// Rows of each transaction of the child that works until it dies.
const ROWS: u64 = 500;

/// Far more rows than fit into any limit here.
const MOST: u64 = 10_000;

/// The resource to limit, as the shell names it.
#[derive(Clone, Copy)]
enum Of {
    /// Memory that is private to the process and writable.
    Data,
    Addresses,
}

/// Runs a test of this file again with a limit in KiB on a resource, and with a
/// directory.
fn limited(test: &str, of: Of, kib: u64, place: &Path) -> Output {
    let letter = match of {
        Of::Data => 'd',
        Of::Addresses => 'v',
    };
    let script = format!("ulimit -c 0 && ulimit -{letter} {kib} && exec \"$0\" --exact {test} --nocapture");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg(std::env::current_exe().expect("this binary"));
    shell.env(LIMITED, place).env("RUST_BACKTRACE", "0").stdin(Stdio::null());
    run_case(test, move || shell.output().expect("run"))
}

fn table_of(db: &Database, most: u32) -> Table {
    if let Ok(table) = db.table("t") {
        return table;
    }
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(most));
    db.create_table(def.primary_key(["id"])).expect("create")
}

fn ids(db: &Database, table: &Table) -> Vec<u64> {
    let txn = db.begin_read().expect("begin");
    let rows = txn.scan(table, Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

/// Does nothing unless it is started under a limit.
#[test]
fn child_in_memory() {
    if std::env::var_os(LIMITED).is_none() {
        return;
    }
    let db = Options::new().medium(MediumKind::Dram).streams(1).open("unused").expect("open");
    let table = table_of(&db, 60_000);
    let data = vec![7; 30_000];
    let put = |id: u64| db.run(|txn| txn.insert(&table, &[id.into(), Value::Bytes(&data)]));
    let (mut all, mut last) = (Vec::new(), Ok(()));
    for id in 0..MOST {
        last = put(id);
        if last.is_err() {
            break;
        }
        all.push(id);
    }
    let full = all.len();
    // The system may have some for the next try.
    fails!(last, Error::StorageFull { .. }, "no room", "`ulimit -d`", "left no trace", "can be read");
    assert_eq!(ids(&db, &table), all);
    for id in all.drain(..all.len() / 2) {
        assert!(db.run(|txn| txn.delete(&table, &[id.into()])).expect("deletes go on"));
    }
    assert_eq!(ids(&db, &table), all);
    println!("full with {full} rows");
}

fn has_run_out(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    output.status.signal() == Some(SIGABRT) && said.contains("memory allocation of ")
}

/// The medium takes memory in chunks. After the last chunk, less may be left
/// than a buffer needs, but not under each of these limits.
#[test]
fn a_medium_in_memory_is_full_when_there_is_no_more() {
    let limits = [0, 500, 1_000, 1_500].map(|kib| (64 << 10) + kib);
    let run = |kib| move || limited("memory::child_in_memory", Of::Data, kib, Path::new("unused"));
    let outputs = thread::scope(|scope| {
        limits.map(|kib| scope.spawn(run(kib))).map(|child| child.join().expect("no panic"))
    });
    let mut full = 0;
    for (kib, output) in limits.iter().zip(&outputs) {
        let text = String::from_utf8_lossy(&output.stdout);
        let said = String::from_utf8_lossy(&output.stderr);
        let is_full = output.status.success() && text.contains("full with ");
        assert!(is_full || has_run_out(output), "{kib} KiB: {}\n{text}{said}", output.status);
        full += u64::from(is_full);
    }
    assert!(full > 0, "{outputs:?}");
}

/// Does nothing unless it is started under a limit.
#[test]
fn child_on_a_file() {
    let Some(place) = std::env::var_os(LIMITED) else { return };
    // A killed process loses nothing, even without syncs.
    let options = Options::new().durability(Durability::None).streams(1).recovery_threads(1);
    let db = options.open(&place).expect("open");
    let table = table_of(&db, 60);
    println!("opened");
    let first = ids(&db, &table).len() as u64 / ROWS;
    for n in first..MOST {
        let ids = n * ROWS..(n + 1) * ROWS;
        db.run(|txn| ids.clone().try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(b"x")])))
            .expect("memory runs out elsewhere");
        let mut out = std::io::stdout().lock();
        writeln!(out, "commit {n}").and_then(|()| out.flush()).expect("the parent listens");
    }
}

#[test]
fn a_process_without_memory_ends_and_loses_nothing() {
    let place = ScratchDir::new();
    let mut acknowledged = 0;
    let mut ends = 0;
    // Some end at work, and some while they recover what earlier ones wrote.
    for kib in [32 << 10, 48 << 10, (64 << 10) + 300, 24 << 10] {
        let output = limited("memory::child_on_a_file", Of::Data, kib, place.path());
        let (text, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.signal(), Some(6), "{kib} KiB: {}\n{said}", output.status);
        assert!(said.contains("memory allocation of "), "{said}");
        let last =
            text.lines().filter_map(|line| line.strip_prefix("commit ")?.parse::<u64>().ok()).next_back();
        ends += u64::from(last.is_some());
        acknowledged = last.map_or(acknowledged, |last| last + 1);
        println!("{kib} KiB: opened {}, {acknowledged} transactions", text.contains("opened"));
        let db = Database::open(place.path()).expect("with memory");
        let found = ids(&db, &table_of(&db, 60));
        assert!(found.iter().copied().eq(0..found.len() as u64), "in order and without gaps");
        let found = found.len() as u64;
        assert_eq!(found % ROWS, 0, "part of a transaction is there");
        assert!((acknowledged..=acknowledged + 1).contains(&(found / ROWS)), "{found}, {acknowledged}");
        acknowledged = found / ROWS;
        db.close().expect("close");
    }
    assert!(ends > 1, "the children died before they could work");
}

/// Does nothing unless it is started under a limit.
#[test]
fn child_without_addresses() {
    let Some(place) = std::env::var_os(LIMITED) else { return };
    for medium in [MediumKind::Dram, MediumKind::File] {
        let outcome = Options::new().medium(medium).open(&place);
        fails!(outcome, Error::Io { .. }, "cannot reserve addresses", "`ulimit -v`", "give it more");
    }
}

#[test]
fn too_few_addresses_are_an_error_of_opening() {
    let place = ScratchDir::new();
    let output = limited("memory::child_without_addresses", Of::Addresses, 250 << 10, place.path());
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    let db = Database::open(place.path()).expect("with addresses");
    assert!(db.tables().is_empty());
}
