//! A data file that is removed, replaced or renamed while the database is
//! open: commits fail soon, and closing does not say that all is well.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use pantile::{Database, Durability, Error, MediumKind, Options, Range, Table, TableDef, Type};
use pantile_media::{DaxMedium, DaxOptions};
use pantile_nvm::NvmConfig;
use pantile_testkit::{Patience, ScratchDir, fails};

const BEDS: [&str; 5] = ["sync", "group", "none", "nvm", "dax"];

fn open(bed: &str, place: &Path) -> Database {
    let options = Options::new().medium(MediumKind::File);
    let options = match bed {
        "sync" => options,
        "group" => options.durability(Durability::Group),
        "none" => options.durability(Durability::None),
        "nvm" => options.custom_medium(NvmConfig::E),
        _ => options
            .on_medium(DaxMedium::open_without_persistence(place, DaxOptions::default()).expect("medium")),
    };
    options.open(place).expect("open")
}

fn filled(db: &Database) -> Table {
    let def = TableDef::new("t").column("id", Type::U32).primary_key(["id"]);
    let t = db.create_table(def).expect("create");
    db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("insert");
    t
}

/// Commits until that fails.
fn commits_fail(db: &Database, t: &Table, what: &str) {
    let patience = Patience::new();
    for id in 2u32.. {
        if let Err(error) = db.run(|txn| txn.insert(t, &[id.into()])) {
            fails!(Err::<(), _>(error), Error::MediumFailed { .. }, "pantile.data", what, "reads go on");
            return;
        }
        patience.check(|| format!("{id} commits into a file that is gone"));
    }
}

/// What is done to the directory of an open database, and what is said then.
type Change = (&'static str, fn(&Path), &'static str);

const CHANGES: [Change; 4] = [
    ("removed", remove, "was removed while"),
    ("unlinked", |place| fs::remove_file(place.join("pantile.data")).expect("remove"), "was removed while"),
    ("renamed", |place| fs::rename(place, place.with_extension("old")).expect("rename"), "was renamed"),
    (
        "replaced",
        |place| {
            let data = place.join("pantile.data");
            fs::copy(&data, place.join("copy")).expect("copy");
            fs::rename(&data, place.join("old")).expect("rename");
            fs::rename(place.join("copy"), data).expect("rename");
        },
        "it was replaced",
    ),
];

/// The worker may put the page of statistics there meanwhile.
fn remove(place: &Path) {
    let patience = Patience::new();
    while let Err(error) = fs::remove_dir_all(place) {
        assert_eq!(error.kind(), ErrorKind::DirectoryNotEmpty, "{error}");
        patience.check(|| format!("{error} all the time"));
    }
}

#[test]
fn commits_into_a_file_that_is_gone_fail() {
    for (name, change, what) in CHANGES {
        for bed in BEDS {
            let place = ScratchDir::new();
            let path = place.path().join("db");
            let db = open(bed, &path);
            let t = filled(&db);
            change(&path);
            commits_fail(&db, &t, what);
            let txn = db.begin_read().expect("reads go on");
            assert!(txn.scan(&t, Range::all()).expect("scan").count() > 0, "{name}, {bed}");
            drop(txn);
            fails!(db.close(), Error::MediumFailed { .. }, what);
        }
    }
}

#[test]
fn closing_a_file_that_is_gone_fails() {
    for (_, change, what) in CHANGES {
        for bed in BEDS {
            let place = ScratchDir::new();
            let path = place.path().join("db");
            let db = open(bed, &path);
            filled(&db);
            change(&path);
            fails!(db.close(), Error::MediumFailed { .. }, "pantile.data", what);
        }
    }
}

#[test]
fn what_was_renamed_has_all_that_was_acknowledged() {
    let place = ScratchDir::new();
    let (path, later) = (place.path().join("db"), place.path().join("db.old"));
    let db = open("sync", &path);
    let t = filled(&db);
    fs::rename(&path, &later).expect("rename");
    let (mut acknowledged, patience) = (1, Patience::new());
    while db.run(|txn| txn.insert(&t, &[(acknowledged + 1).into()])).is_ok() {
        acknowledged += 1;
        patience.check(|| format!("{acknowledged} commits into a file that was renamed"));
    }
    drop((db, t));
    let db = open("sync", &later);
    let txn = db.begin_read().expect("begin");
    let found = txn.scan(&db.table("t").expect("table"), Range::all()).expect("scan").count();
    assert!(found as u32 >= acknowledged, "{found} of {acknowledged} rows");
}

#[test]
fn links_and_relative_names_are_no_change() {
    let place = ScratchDir::new();
    let (path, link) = (place.path().join("db"), place.path().join("link"));
    fs::create_dir(&path).expect("directory");
    std::os::unix::fs::symlink(&path, &link).expect("link");
    let db = open("sync", &link);
    let t = filled(&db);
    // The link was followed when the database was opened.
    fs::remove_file(&link).expect("remove");
    db.run(|txn| txn.insert(&t, &[2u32.into()])).expect("insert");
    fs::hard_link(path.join("pantile.data"), path.join("another name")).expect("link");
    db.run(|txn| txn.insert(&t, &[3u32.into()])).expect("insert");
    db.close().expect("close");
}
