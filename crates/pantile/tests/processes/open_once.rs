//! A database is open in one process at a time, by whatever name it is
//! reached (T17).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use pantile::{CheckOptions, Database, Error, Options, Range, Result, Table, TableDef, Type, check, inspect};
use pantile_nvm::NvmConfig;
use pantile_testkit::{ScratchDir, await_that, fails};

const OPENER: &str = "PANTILE_TEST_OPENER";
const OWNER: &str = "PANTILE_TEST_OWNER";
const HOLDER: &str = "PANTILE_TEST_HOLDER";

fn table(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U32).primary_key(["id"]);
    db.table("t").or_else(|_| db.create_table(def)).expect("table")
}

/// Asserts that an opening was refused in words that name the process.
fn is_refused<T: std::fmt::Debug>(outcome: Result<T>, place: &Path, user: &str) {
    let place = place.display().to_string();
    fails!(outcome, Error::AlreadyOpen { .. }, place.as_str(), "open already", user, "close it there first");
}

/// A process by its number and its command, as the message names it.
fn in_process(process: u32) -> String {
    let command = fs::read_to_string(format!("/proc/{process}/comm")).expect("it runs");
    format!("in process {process} ({});", command.trim_end())
}

/// Every way to open the database in a directory is refused.
fn all_are_refused(place: &Path, user: &str) {
    is_refused(Database::open(place), place, user);
    is_refused(Options::new().create(false).open(place), place, user);
    is_refused(Options::new().custom_medium(NvmConfig::E).open(place), place, user);
    is_refused(check(place, &CheckOptions::new()), place, user);
    is_refused(inspect(place, &CheckOptions::new()), place, user);
}

/// Does nothing unless it is started as the second process.
#[test]
fn other_process() {
    if let Some(place) = std::env::var_os(OPENER) {
        let owner = in_process(std::env::var(OWNER).expect("a process").parse().expect("a number"));
        all_are_refused(Path::new(&place), &owner);
    }
}

/// Opens a database and holds it until it is killed; does nothing otherwise.
#[test]
fn holder() {
    let Some(place) = std::env::var_os(HOLDER) else { return };
    let db = Database::open(&place).expect("open");
    let t = table(&db);
    db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("insert");
    fs::write(Path::new(&place).join("held"), b"").expect("write");
    loop {
        std::thread::park();
    }
}

fn child(test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args(["--exact", &format!("open_once::{test}")]).stdout(Stdio::null());
    command
}

fn held(place: &Path) -> Child {
    let mut child = child("holder").env(HOLDER, place).spawn().expect("child");
    await_that("the child has it", || {
        assert!(child.try_wait().expect("wait").is_none(), "the child ended by itself");
        place.join("held").exists()
    });
    child
}

#[test]
fn a_database_is_open_once() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    let t = table(&db);
    all_are_refused(place.path(), "in this process");
    let mut other = child("other_process");
    other.env(OPENER, place.path()).env(OWNER, std::process::id().to_string());
    assert!(other.status().expect("run").success(), "another process could open it");
    db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("the first opener continues");
    drop((db, t));
    drop(Database::open(place.path()).expect("free again"));
}

#[test]
fn no_other_file_is_needed_and_none_can_be_removed() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    let names = || {
        let entries =
            fs::read_dir(place.path()).expect("list").map(|entry| entry.expect("entry").file_name());
        let mut names: Vec<_> = entries.collect();
        names.sort();
        names
    };
    // The worker publishes statistics as soon as it comes to that.
    assert_eq!(
        names().into_iter().filter(|name| name != "pantile.stats").collect::<Vec<_>>(),
        ["pantile.data"]
    );
    drop(db);
    // A cache is left.
    assert_eq!(names(), ["pantile.data", "pantile.image"]);
}

#[test]
fn links_lead_to_the_same_lock() {
    let place = ScratchDir::new();
    let at = |name: &str| place.path().join(name);
    let db = Database::open(at("a")).expect("open");
    let t = table(&db);
    symlink(at("a"), at("directory")).expect("link");
    for linked in ["symbolic", "hard"] {
        fs::create_dir(at(linked)).expect("directory");
    }
    symlink(at("a/pantile.data"), at("symbolic/pantile.data")).expect("link");
    fs::hard_link(at("a/pantile.data"), at("hard/pantile.data")).expect("link");
    let names = ["directory", "symbolic", "hard"];
    for name in names {
        all_are_refused(&at(name), "in this process");
    }
    for id in 0..100u32 {
        db.run(|txn| txn.insert(&t, &[id.into()])).expect("insert");
    }
    db.close().expect("close");
    drop(t);
    for name in names {
        let db = Database::open(at(name)).expect("free");
        let txn = db.begin_read().expect("begin");
        assert_eq!(txn.scan(&table(&db), Range::all()).expect("scan").count(), 100, "{name}");
    }
}

#[test]
fn a_killed_holder_leaves_no_lock() {
    let place = ScratchDir::new();
    let mut child = held(place.path());
    all_are_refused(place.path(), &in_process(child.id()));
    child.kill().expect("kill");
    child.wait().expect("wait");
    let db = Database::open(place.path()).expect("free");
    let txn = db.begin_read().expect("begin");
    assert!(txn.get(&table(&db), &[1u32.into()]).expect("get").is_some());
}

#[test]
fn a_holder_whose_file_is_removed_does_not_stand_in_the_way() {
    let place = ScratchDir::new();
    let mut child = held(place.path());
    fs::remove_file(place.path().join("pantile.data")).expect("remove");
    // The name is free, and what is made there is another database.
    let db = Database::open(place.path()).expect("another file");
    assert!(db.tables().is_empty());
    child.kill().expect("kill");
    child.wait().expect("wait");
    all_are_refused(place.path(), "in this process");
}
