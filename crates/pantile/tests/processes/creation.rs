//! Databases that cannot be created or opened: the error says why, nothing
//! that was made stays, and a database that is there is as it was.
//!
//! Limits and rights hold for a process, so most of this runs in children.

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use pantile::{
    CheckOptions, Database, Durability, Error, Options, Range, Result, TableDef, Type, check, inspect,
};
use pantile_nvm::NvmConfig;
use pantile_testkit::{ScratchDir, fails};

const CASE: &str = "PANTILE_CREATION_CASE";
const PLACE: &str = "PANTILE_CREATION_PLACE";

/// A user that may do nothing.
const NOBODY: u32 = 65_534;

fn options() -> [Options; 3] {
    [Options::new(), Options::new().durability(Durability::None), Options::new().custom_medium(NvmConfig::E)]
}

/// Everything below a directory.
fn names(place: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in fs::read_dir(place).expect("list") {
        let path = entry.expect("entry").path();
        if path.is_dir() {
            all.extend(names(&path));
        }
        all.push(path);
    }
    all.sort();
    all
}

/// Makes a database with one row.
fn stored(path: &Path) -> Vec<u8> {
    let db = Database::open(path).expect("open");
    let def = TableDef::new("t").column("id", Type::U32).primary_key(["id"]);
    let t = db.create_table(def).expect("create");
    db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("insert");
    db.close().expect("close");
    fs::read(path.join("pantile.data")).expect("read")
}

fn is_whole(path: &Path) {
    let db = Options::new().create(false).open(path).expect("open");
    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.scan(&db.table("t").expect("table"), Range::all()).expect("scan").count(), 1);
}

/// The child: tries what its case says.
#[test]
fn child() {
    let (Ok(case), Some(place)) = (std::env::var(CASE), std::env::var_os(PLACE)) else { return };
    let place = Path::new(&place);
    match case.as_str() {
        "full" => refused_or_whole(place, &["no room", "`ulimit -f`"]),
        "addresses" => refused_or_whole(place, &["cannot reserve addresses", "`ulimit -v`"]),
        "descriptors" => without_descriptors(place),
        "rights" => without_rights(place),
        other => panic!("{other}"),
    }
}

/// The status of a shell that may not execute a program.
const NOT_EXECUTED: i32 = 126;

fn run(case: &str, limit: &str, place: &Path) {
    let command = format!("{limit} exec \"$0\" --exact creation::child --nocapture");
    let mut child = Command::new("sh");
    child.args(["-c", &command]).arg(std::env::current_exe().expect("this binary"));
    child.env(CASE, case).env(PLACE, place);
    // Root may do everything, and only root can become another user.
    if case == "rights" && fs::metadata("/proc/self").expect("process").uid() == 0 {
        child.uid(NOBODY).gid(NOBODY);
    }
    // Not to a file of the caller's: the limit would hold for it, too.
    let output = child.output().expect("child");
    let said = String::from_utf8_lossy(&output.stderr);
    if case == "rights" && output.status.code() == Some(NOT_EXECUTED) {
        return eprintln!("skipped: without rights, this program cannot be run where it is: {said}");
    }
    assert!(output.status.success(), "{case}, {limit}: {}, {said}", output.status);
}

/// Opening a new database fails in these words, or works.
fn refused_or_whole(place: &Path, words: &[&str]) {
    for options in options() {
        let path = place.join("new");
        match options.open(&path) {
            Err(error) => {
                let text = error.to_string();
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
                assert_eq!(names(place), [] as [PathBuf; 0], "{text}");
                fs::write(place.with_extension("refused"), b"").expect("write");
            }
            Ok(db) => {
                drop(db);
                fs::remove_dir_all(&path).expect("remove");
            }
        }
    }
}

#[test]
fn a_creation_without_room_leaves_nothing() {
    let all = ScratchDir::new();
    for (case, limits) in [
        ("full", ["ulimit -f 0;", "ulimit -f 1;", "ulimit -f 2048;", "ulimit -f 4096;", "ulimit -f 6000;"]),
        ("addresses", ["ulimit -v 100000;", "ulimit -v 200000;", "ulimit -v 250000;", "", ""]),
    ] {
        let place = all.path().join(case);
        fs::create_dir(&place).expect("directory");
        for limit in limits {
            run(case, limit, &place);
        }
        assert!(place.with_extension("refused").exists(), "{case}: no limit was low enough");
    }
}

/// Opens with every number of descriptors, until there are enough.
fn without_descriptors(place: &Path) {
    let (existing, path) = (place.join("existing"), place.join("made/new"));
    let before = fs::read(existing.join("pantile.data")).expect("read");
    for options in options() {
        for free in 0.. {
            let mut taken: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
            taken.truncate(taken.len() - free);
            let attempts =
                [options.clone().open(&path), options.clone().open(&existing)].map(|r| r.map(drop));
            drop(taken);
            for error in attempts.iter().filter_map(|attempt| attempt.as_ref().err()) {
                let text = error.to_string();
                assert!(text.contains("Too many open files") && text.contains("`ulimit -n`"), "{text}");
            }
            match &attempts[0] {
                Err(_) => assert!(!place.join("made").exists(), "{free} descriptors leave something"),
                Ok(()) => fs::remove_dir_all(place.join("made")).expect("remove"),
            }
            match &attempts[1] {
                Err(_) => assert!(fs::read(existing.join("pantile.data")).expect("read") == before),
                Ok(()) => fs::write(existing.join("pantile.data"), &before).expect("write"),
            }
            if attempts.iter().all(Result::is_ok) {
                assert!(free > 0, "no limit");
                break;
            }
        }
    }
}

#[test]
fn an_opening_without_descriptors_leaves_everything_as_it_was() {
    let place = ScratchDir::new();
    stored(&place.path().join("existing"));
    run("descriptors", "ulimit -n 40;", place.path());
    is_whole(&place.path().join("existing"));
}

/// As a user that may read some and write nothing.
fn without_rights(place: &Path) {
    let denied = |outcome: Result<Database>| fails!(outcome, Error::Io { .. }, "ermission denied");
    for options in options() {
        denied(options.clone().open(place.join("new")));
        denied(options.clone().open(place.join("empty")));
        denied(options.clone().open(place.join("existing")));
        denied(options.open(place.join("closed/database")));
    }
    // What can be read can be checked.
    assert!(check(place.join("existing"), &CheckOptions::new()).expect("check").is_sound());
}

#[test]
fn an_opening_without_rights_leaves_everything_as_it_was() {
    let place = ScratchDir::within("/tmp");
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("mode");
    for (name, mode) in [("empty", 0o555), ("existing", 0o755), ("closed", 0o700)] {
        let path = place.path().join(name);
        fs::create_dir(&path).expect("directory");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("mode");
    }
    let existing = place.path().join("existing");
    let before = stored(&existing);
    fs::set_permissions(existing.join("pantile.data"), fs::Permissions::from_mode(0o644)).expect("mode");
    let all = names(place.path());
    run("rights", "", place.path());
    assert_eq!(names(place.path()), all);
    assert!(fs::read(existing.join("pantile.data")).expect("read") == before);
    is_whole(&existing);
}

#[test]
fn an_empty_path_is_refused() {
    for options in options() {
        fails!(options.clone().open(""), Error::InvalidOption(_), "path of the database is empty", "\".\"");
        fails!(options.create(false).open(""), Error::InvalidOption(_), "path of the database is empty");
    }
    fails!(check("", &CheckOptions::new()), Error::InvalidOption(_), "path of the database is empty");
    fails!(inspect("", &CheckOptions::new()), Error::InvalidOption(_), "path of the database is empty");
    assert!(!Path::new("pantile.data").exists());
}

#[test]
fn names_that_cannot_be_made_leave_nothing() {
    let place = ScratchDir::new();
    let long = "n".repeat(256);
    for options in options() {
        fails!(options.clone().open(place.path().join(&long)), Error::Io { .. }, "File name too long");
        let below = place.path().join("a/b").join(&long).join("c");
        fails!(options.clone().open(below), Error::Io { .. }, "File name too long");
        fails!(options.open("/proc/pantile/new"), Error::Io { .. }, "/proc/pantile", "No such file");
        assert_eq!(names(place.path()), [] as [PathBuf; 0]);
    }
}

#[test]
fn foreign_files_stay() {
    let place = ScratchDir::new();
    let path = place.path().join("db");
    fs::create_dir(&path).expect("directory");
    fs::write(path.join("letter"), b"Dear diary").expect("write");
    let db = Database::open(&path).expect("open");
    drop(db);
    assert_eq!(names(&path), ["letter", "pantile.data", "pantile.image"].map(|name| path.join(name)));
    assert_eq!(fs::read(path.join("letter")).expect("read"), b"Dear diary");
    // A data file of something else is no database, and stays.
    fs::write(path.join("pantile.data"), vec![b'x'; 2 << 20]).expect("write");
    for options in options() {
        fails!(options.open(&path), Error::NotADatabase { .. }, "left as it is");
    }
    assert!(fs::read(path.join("pantile.data")).expect("read").iter().all(|&byte| byte == b'x'));
}

#[test]
fn a_failed_creation_in_a_directory_that_was_there_leaves_the_directory() {
    let place = ScratchDir::new();
    let refused = Options::new().max_bytes(64 << 10).open(place.path());
    fails!(refused, Error::StorageFull { .. }, "no room");
    assert_eq!(names(place.path()), [] as [PathBuf; 0]);
    let refused = Options::new().max_bytes(64 << 10).open(place.path().join("a/b"));
    fails!(refused, Error::StorageFull { .. }, "no room");
    assert_eq!(names(place.path()), [] as [PathBuf; 0]);
}
