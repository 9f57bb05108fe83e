//! Limits of the process, which each error names. Where a limit is lifted, the same
//! database goes on.
//!
//! The limits hold for a process, so each test runs in a process of its own. The
//! system would end that where it writes beyond the limit of a file (SIGXFSZ).

use std::fs::File;
use std::path::Path;
use std::process::Command;

use pantile::{
    BackupOptions, CheckOptions, Database, Durability, Error, MediumKind, Options, Range, Result, Table,
    TableDef, Type, Value, check, restore,
};
use pantile_testkit::{ScratchDir, fails, run_case};

const PLACE: &str = "PANTILE_TEST_LIMITS";
const DONE: &str = "all of it was done";

/// Runs a test of this file again under a limit.
fn limited(test: &str, limit: &str, place: &Path) {
    let script =
        format!("ulimit -c 0 && ulimit -S {limit} && exec \"$0\" --exact limits::{test} --nocapture");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(std::env::current_exe().expect("this binary")).env(PLACE, place);
    let output = run_case(test, move || shell.output().expect("run"));
    let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && out.contains(DONE), "{test}: {}, {out}{said}", output.status);
}

/// Changes a limit of this process. False without the command for that.
fn set_limit(limit: &str) -> bool {
    let mut prlimit = Command::new("prlimit");
    prlimit.arg(format!("--pid={}", std::process::id())).arg(limit);
    prlimit.status().is_ok_and(|status| status.success())
}

fn table(db: &Database) -> Table {
    db.table("t").unwrap_or_else(|_| {
        let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(40_000));
        db.create_table(def.primary_key(["id"])).expect("create")
    })
}

fn count(db: &Database) -> u64 {
    let txn = db.begin_read().expect("begin");
    txn.count(&db.table("t").expect("table"), Range::all()).expect("count")
}

fn put(db: &Database, id: u64) -> Result<()> {
    let table = table(db);
    db.run(|txn| txn.insert(&table, &[id.into(), Value::Bytes(&[7; 30_000])]))
}

/// Adds rows until one is refused, and returns how many there are then.
fn fill(db: &Database, from: u64) -> (u64, Error) {
    (from..from + 10_000).find_map(|id| put(db, id).err().map(|error| (id, error))).expect("full at last")
}

/// Does nothing unless it is started under a limit.
#[test]
fn child_with_a_file_size() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    for durability in [Durability::Sync, Durability::None] {
        let path = Path::new(&place).join(format!("{durability:?}"));
        let db = Options::new().durability(durability).open(&path).expect("open");
        let (rows, error) = fill(&db, 0);
        fails!(
            Err::<(), _>(error),
            Error::StorageFull { .. },
            "pantile.data is full",
            "no file beyond 8388608 bytes (`ulimit -f`)",
            "raise the limit",
            "can be read"
        );
        assert_eq!(count(&db), rows);
        if set_limit("--fsize=20971520:") {
            let (more, _) = fill(&db, rows);
            assert!(more > rows, "it has gone on");
            assert_eq!(count(&db), more);
        }
        db.close().expect("close");
        set_limit("--fsize=8388608:");
    }
    println!("{DONE}");
}

#[test]
fn the_file_size_of_the_process_is_named_and_can_be_raised() {
    let place = ScratchDir::new();
    limited("child_with_a_file_size", "-f 16384", place.path());
    for durability in [Durability::Sync, Durability::None] {
        let path = place.path().join(format!("{durability:?}"));
        assert!(check(&path, &CheckOptions::new()).expect("check").is_sound());
    }
}

/// Does nothing unless it is started under a limit.
#[test]
fn child_that_copies() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let place = Path::new(&place);
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    (0..300).for_each(|id| put(&db, id).expect("insert"));
    let full = db.backup_to(place.join("copy"), &BackupOptions::new());
    fails!(full, Error::StorageFull { .. }, "the backup in", "`ulimit -f`", "raise the limit");
    assert!(!place.join("copy").exists());
    put(&db, 300).expect("the source goes on");
    let full = restore(place.join("backup"), place.join("restored"), &CheckOptions::new());
    fails!(full, Error::StorageFull { .. }, "restored", "`ulimit -f`", "raise the limit");
    println!("{DONE}");
}

#[test]
fn a_copy_that_may_not_be_so_large_names_the_limit() {
    let place = ScratchDir::new();
    let db = Database::open(place.path().join("db")).expect("open");
    (0..300).for_each(|id| put(&db, id).expect("insert"));
    db.backup_to(place.path().join("backup"), &BackupOptions::new()).expect("backup");
    limited("child_that_copies", "-f 4096", place.path());
}

/// Does nothing unless it is started under a limit.
#[test]
fn child_with_few_addresses() {
    let Some(place) = std::env::var_os(PLACE) else { return };
    let opened = Database::open(&place);
    fails!(
        opened,
        Error::StorageFull { .. },
        "2147483648 bytes are needed",
        "`ulimit -v`",
        "raise the limit"
    );
    for read in [Database::open_read_only(&place).map(drop), check(&place, &CheckOptions::new()).map(drop)] {
        fails!(read, Error::Io { .. }, "cannot map", "pantile.data", "`ulimit -v`", "give it more");
    }
    println!("{DONE}");
}

/// A mapping beyond the addresses that were reserved would lie over others.
#[test]
fn a_database_larger_than_the_addresses_of_the_process_is_refused() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    put(&db, 0).expect("insert");
    db.close().expect("close");
    let file = File::options().write(true).open(place.path().join("pantile.data")).expect("data file");
    // The hole at its end counts as free chunks.
    file.set_len(2 << 30).expect("lengthen");
    limited("child_with_few_addresses", "-v 1500000", place.path());
    assert_eq!(count(&Database::open(place.path()).expect("with addresses")), 1);
}
