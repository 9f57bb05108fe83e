//! One database on several media: which medium may open it, even after an
//! unclean end, and what happens when a medium is missing or cannot be read.
//!
//! Without persistent memory, the medium `dax` runs on an ordinary file system
//! here; a killed process sees no difference. `PANTILE_DAX_DIR` names a
//! directory on a DAX file system for real persistent memory.
//! `PANTILE_CRASH_ROUNDS` and `PANTILE_CRASH_SEED` set more rounds and other
//! seeds.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use pantile::{Collector, Database, Durability, Error, Medium, MediumKind, Options, Result, TableDef, Type};
use pantile_crash::history::History;
use pantile_crash::settings::Settings;
use pantile_crash::verify::verify;
use pantile_crash::work::{Life, work_on};
use pantile_media::{DaxMedium, DaxOptions, DirectoryOptions, FileMedium, FileOptions, MediumError};
use pantile_nvm::{NvmConfig, NvmMedium};
use pantile_store::{Store, StoreError, StoreOptions};
use pantile_testkit::{Random, ScratchDir, await_that, fails, from_env};

const KIND: &str = "PANTILE_MEDIA_KIND";
const PLACE: &str = "PANTILE_MEDIA_PLACE";
const CHUNK: u64 = 2 << 20;

fn dax_directory() -> Option<PathBuf> {
    std::env::var_os("PANTILE_DAX_DIR").map(PathBuf::from)
}

fn temporary() -> ScratchDir {
    dax_directory().map_or_else(ScratchDir::new, ScratchDir::within)
}

fn open(kind: &str, path: &Path) -> Result<Database> {
    let options = Options::new().streams(3);
    match kind {
        "file" => options,
        "relaxed" => options.durability(Durability::None),
        "nvm" => options.custom_medium(NvmConfig::E),
        _ if dax_directory().is_some() => options.medium(MediumKind::Dax),
        _ => match DaxMedium::open_without_persistence(path, DaxOptions::default()) {
            Ok(medium) => options.on_medium(medium),
            Err(MediumError::Locked { path, process }) => return Err(Error::AlreadyOpen { path, process }),
            Err(error) => panic!("{error}"),
        },
    }
    .open(path)
}

fn log_path(place: &Path) -> PathBuf {
    place.join("acknowledged")
}

/// Does nothing unless it is started as the child.
#[test]
fn child() {
    let (Ok(kind), Some(place)) = (std::env::var(KIND), std::env::var_os(PLACE)) else {
        return;
    };
    let place = Path::new(&place);
    match kind.strip_suffix("+cut") {
        Some(kind) => read_what_is_gone(kind, place),
        None => work_until_killed(&kind, place),
    }
}

fn work_until_killed(kind: &str, place: &Path) {
    let seed = from_env("PANTILE_CRASH_SEED", 1);
    let settings = Settings {
        seed,
        clients: 4,
        medium: pantile_bench::settings::Medium::File,
        durability: Durability::Sync,
        gc: Collector::TB_COLLECT,
        protocol: None,
    };
    let life = Life { settings, number: 1, close_after: None, sabotage: None };
    let log = OpenOptions::new().append(true).open(log_path(place)).expect("log");
    let outcome = work_on(&life, || open(kind, &place.join("db")), log);
    // The parent notices if the child did not wait for it.
    eprintln!("{outcome:?}");
    std::process::abort();
}

fn start_child(kind: &str, place: &Path, stderr: Stdio) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", "media::child", "--nocapture"]).env(KIND, kind).env(PLACE, place);
    command.stdout(Stdio::null()).stderr(stderr).spawn().expect("child")
}

fn kill_at_work(kind: &str, place: &Path, random: &mut Random) {
    let has_begun = || fs::read_to_string(log_path(place)).expect("log").contains("\ncommit ");
    let mut child = start_child(kind, place, Stdio::inherit());
    await_that("a commit", has_begun);
    thread::sleep(Duration::from_micros(random.below(100_000)));
    if let Some(status) = child.try_wait().expect("wait") {
        panic!("{kind}: the child ended by itself: {status}");
    }
    child.kill().expect("kill");
    child.wait().expect("wait");
}

#[test]
fn a_killed_process_on_one_medium_is_followed_by_another_medium() {
    let seed = from_env("PANTILE_CRASH_SEED", 1);
    let rounds = from_env("PANTILE_CRASH_ROUNDS", 2);
    println!("PANTILE_CRASH_SEED={seed} PANTILE_CRASH_ROUNDS={rounds}");
    let mut random = Random::new(seed, 0);
    let place = temporary();
    let place = place.path();
    File::create(log_path(place)).expect("log");
    let mut history = History::default();
    for round in 0..rounds {
        // Each medium after each other one; a third one verifies.
        for (killed, next) in [
            ("file", "dax"),
            ("dax", "file"),
            ("relaxed", "dax"),
            ("nvm", "dax"),
            ("dax", "nvm"),
            ("dax", "relaxed"),
            ("dax", "dax"),
        ] {
            kill_at_work(killed, place, &mut random);
            history.read(&fs::read_to_string(log_path(place)).expect("log")).expect("lines");
            File::create(log_path(place)).expect("log");
            let db = open(next, &place.join("db"))
                .unwrap_or_else(|error| panic!("round {round}, {killed} then {next}: {error}"));
            assert!(!db.recovery().was_closed);
            let problems = verify(&db, &mut history).expect("verify");
            assert!(problems.is_empty(), "{killed} then {next}: {problems:?}");
            if random.below(2) == 0 {
                db.close().expect("close");
            }
        }
    }
    println!("{:?} transactions", history.lasts);
    assert!(history.lasts.iter().all(|&last| last > 0), "{history:?}");
}

fn table_of(db: &Database) -> pantile::Table {
    let def = TableDef::new("t").column("id", Type::U32).column("text", Type::String(5000));
    match db.tables().is_empty() {
        true => db.create_table(def.primary_key(["id"])).expect("create"),
        false => db.table("t").expect("table"),
    }
}

fn ids(db: &Database) -> BTreeSet<u32> {
    let (txn, table) = (db.begin_read().expect("begin"), table_of(db));
    let rows = txn.scan(&table, pantile::Range::all()).expect("scan");
    rows.map(|row| row.and_then(|row| row.get(0)).expect("row")).collect()
}

#[test]
fn a_closed_database_goes_from_medium_to_medium() {
    let place = temporary();
    let path = place.path().join("db");
    for (turn, kind) in (0..).zip(["file", "dax", "relaxed", "dax", "nvm", "dax", "file"]) {
        let db = open(kind, &path).expect("open");
        assert_eq!(db.medium().name, kind.replace("relaxed", "file").replace("nvm", "nvm:E"));
        let table = table_of(&db);
        assert_eq!(ids(&db), (0..turn).collect(), "{kind}");
        db.run(|txn| txn.insert(&table, &[turn.into(), "x".repeat(3000).as_str().into()])).expect("insert");
        db.close().expect("close");
    }
}

#[test]
fn places_without_persistent_memory_are_refused() {
    if !Path::new("/dev/shm").exists() {
        return eprintln!("skipped: there is no file system in memory");
    }
    let place = ScratchDir::within("/dev/shm");
    let path = place.path().join("db");
    let dax = || Options::new().medium(MediumKind::Dax);
    let refused = || {
        fails!(
            dax().open(&path),
            Error::UnfitMedium { .. },
            "pantile.data cannot be used as persistent memory",
            "MAP_SYNC",
            "nothing was changed",
            "dax=always",
            "or use the medium \"file\""
        );
    };
    refused();
    fails!(dax().create(false).open(&path), Error::NoDatabase(_), "no database");
    let db = Database::open(&path).expect("the way out");
    let table = table_of(&db);
    db.run(|txn| txn.insert(&table, &[1u32.into(), "x".into()])).expect("insert");
    db.close().expect("close");
    let before = fs::read(path.join("pantile.data")).expect("read");
    refused();
    assert!(fs::read(path.join("pantile.data")).expect("read") == before, "the file was changed");
    assert_eq!(ids(&Database::open(&path).expect("open")), [1].into());
}

fn store(medium: Arc<dyn Medium>, boot: u64) -> Result<Store, StoreError> {
    Store::open(medium, StoreOptions { boot, ..StoreOptions::default() }, 99)
}

#[test]
fn emulated_memory_is_believed_only_while_the_machine_runs() {
    let place = ScratchDir::new();
    let emulated = || NvmMedium::open(place.path(), NvmConfig::E, DirectoryOptions::default()).expect("nvm");
    let file = || FileMedium::open(place.path(), FileOptions::default()).expect("file");
    let record = |medium: Arc<dyn Medium>, boot, closed| {
        let store = store(medium, boot).expect("open");
        let sample = store.sample(|| pantile::Timestamp::from_raw(1000));
        let recorded = if closed { store.record_closed(sample) } else { store.record_state(sample, &[]) };
        recorded.expect("record");
    };
    record(emulated(), 1, false);
    let Err(StoreError::Damaged { detail, .. }) = store(file(), 2) else {
        panic!("another boot believes what was only in memory");
    };
    assert!(detail.contains("emulated persistent memory"), "{detail}");
    store(emulated(), 2).expect_err("not even for emulated memory");
    drop(store(file(), 1).expect("the same boot"));
    record(emulated(), 1, true);
    drop(store(file(), 2).expect("closed before the machine stopped"));
    // What the file medium has taken over stays with the file medium.
    record(emulated(), 1, false);
    record(file(), 1, false);
    drop(store(file(), 2).expect("durable"));
}

fn cut_short(path: &Path, len: u64) {
    File::options().write(true).open(path).expect("open").set_len(len).expect("length");
}

/// A database of some chunks, and the path of its data file.
fn stored(path: &Path) -> PathBuf {
    let db = Database::open(path).expect("open");
    let table = table_of(&db);
    let text = "x".repeat(5000);
    for part in 0..8u32 {
        db.run(|txn| {
            (0..200u32).try_for_each(|n| txn.insert(&table, &[(part * 200 + n).into(), text.as_str().into()]))
        })
        .expect("insert");
    }
    db.close().expect("close");
    path.join("pantile.data")
}

#[test]
fn a_file_cut_short_while_it_is_opened_is_an_error() {
    for len in [0, 4096, CHUNK, CHUNK + 4096, 2 * CHUNK + 40_960, 3 * CHUNK] {
        let place = ScratchDir::new();
        let data = stored(place.path());
        let medium = FileMedium::open(place.path(), FileOptions::default()).expect("file");
        cut_short(&data, len);
        fails!(
            Options::new().on_medium(medium).open(place.path()),
            Error::Damaged { .. },
            "pantile.data",
            "it cannot be read",
            "nothing was changed",
            "restore a copy"
        );
        assert_eq!(fs::metadata(&data).expect("file").len(), len, "the file was changed");
    }
}

fn read_what_is_gone(kind: &str, place: &Path) {
    // The worker would write to what is gone.
    let options = Options::new().worker(false).explain_bus_errors(kind != "silent").max_bytes(fs_len(place));
    let db = options.open(place).expect("open");
    let table = db.table("t").expect("table");
    cut_short(&place.join("pantile.data"), CHUNK);
    let txn = db.begin_read().expect("begin");
    for id in 0..1600u32 {
        let row = txn.get(&table, &[id.into()]).expect("get").expect("row");
        assert_eq!(row.get::<&str>(1).expect("text").len(), 5000);
    }
}

fn fs_len(place: &Path) -> u64 {
    fs::metadata(place.join("pantile.data")).expect("file").len()
}

#[test]
fn a_read_that_fails_says_so_and_ends_the_process() {
    for (kind, explained) in [("file+cut", true), ("silent+cut", false)] {
        let place = ScratchDir::new();
        stored(place.path());
        let output = start_child(kind, place.path(), Stdio::piped()).wait_with_output().expect("child");
        let text = String::from_utf8_lossy(&output.stderr);
        // Signal 7 is SIGBUS.
        assert_eq!(output.status.signal(), Some(7), "{kind}: {text}");
        for part in ["pantile.data cannot be read at byte", "it is only 2097152 bytes long", "pantile check"]
        {
            assert_eq!(text.contains(part), explained, "{kind}: {text}");
        }
    }
}
