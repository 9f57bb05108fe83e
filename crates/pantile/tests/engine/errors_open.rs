//! Opening what cannot be opened, and using what has been closed: each gives
//! one clear error and leaves every file unchanged (T17).

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::{Database, Error, MediumKind, Options, Range, Table, TableDef, Type};
use pantile_nvm::NvmConfig;
use pantile_testkit::cut::Image;
use pantile_testkit::{FaultMedium, ScratchDir, await_that, fails};

const CHUNK: u64 = 2 << 20;

fn table(db: &Database) -> Table {
    db.create_table(TableDef::new("t").column("id", Type::U32).primary_key(["id"])).expect("create")
}

/// A closed database with one row, and the path of its data file.
fn stored(place: &Path) -> PathBuf {
    let db = Database::open(place).expect("open");
    let table = table(&db);
    db.run(|txn| txn.insert(&table, &[1u32.into()])).expect("insert");
    db.close().expect("close");
    place.join("pantile.data")
}

/// Changes a data file, and asserts that opening fails and leaves the file in
/// that state.
fn refused(change: impl Fn(&Path), check: impl Fn(Error)) {
    let place = ScratchDir::new();
    let data = stored(place.path());
    change(&data);
    let before = fs::read(&data).expect("read");
    for options in [Options::new(), Options::new().custom_medium(NvmConfig::E)] {
        check(options.open(place.path()).expect_err("refused"));
        assert!(fs::read(&data).expect("read") == before, "the file was changed");
    }
}

fn patch(data: &Path, offset: usize, bytes: &[u8]) {
    let mut whole = fs::read(data).expect("read");
    whole[offset..offset + bytes.len()].copy_from_slice(bytes);
    fs::write(data, whole).expect("write");
}

#[test]
fn files_that_are_not_ours() {
    let is_foreign = |error: Error| {
        fails!(Err::<(), _>(error), Error::NotADatabase { .. }, "not a Pantile database", "left as it is");
    };
    let text = "Dear diary, ".repeat((CHUNK / 12) as usize + 1);
    refused(|data| fs::write(data, &text.as_bytes()[..CHUNK as usize]).expect("write"), is_foreign);
    refused(|data| patch(data, 3, b"X"), is_foreign);
    // Zeros at the front do not make a file empty.
    refused(|data| patch(data, 0, &[0; 64]), is_foreign);
}

#[test]
fn other_format_versions() {
    let is_version = |error: Error| {
        let form = Error::FormatVersion { found: 2, supported: 1 };
        assert_eq!(error.to_string(), form.to_string());
        fails!(Err::<(), _>(error), Error::FormatVersion { .. }, "version 2", "version 1", "left as it is");
    };
    refused(|data| patch(data, 8, &[2]), is_version);
}

#[test]
fn truncated_files() {
    let set_len = |len| {
        move |data: &Path| {
            fs::File::options().write(true).open(data).expect("open").set_len(len).expect("len")
        }
    };
    refused(set_len(CHUNK + 4096), |error| {
        fails!(
            Err::<(), _>(error),
            Error::NotADatabase { .. },
            "truncated",
            "2101248 bytes",
            "left as it is"
        );
    });
    // Whole chunks are missing, and with them blocks that the rest relies on.
    refused(set_len(CHUNK), |error| {
        fails!(
            Err::<(), _>(error),
            Error::Damaged { .. },
            "truncated",
            "nothing was changed",
            "restore a copy"
        );
    });
}

#[test]
fn damaged_files() {
    let damaged = |at: usize, place: &'static str| {
        refused(
            |data| patch(data, at, &[fs::read(data).expect("read")[at] ^ 0x10]),
            |error| {
                fails!(
                    Err::<(), _>(error),
                    Error::Damaged { .. },
                    "damaged data",
                    place,
                    "nothing was changed"
                )
            },
        );
    };
    damaged(20, "superblock");
    damaged(CHUNK as usize + 9, "offset 2097152");
    damaged(CHUNK as usize + 64, "block 1.0");
    // The first content of the first block.
    damaged(CHUNK as usize + 4096 + 256 + 26, "slot 0");
}

#[test]
fn paths_that_hold_no_database() {
    let place = ScratchDir::new();
    let at = |name: &str| place.path().join(name);
    let must_exist = || Options::new().create(false);
    fails!(must_exist().open(at("missing")), Error::NoDatabase(_), "no database", "missing");
    assert!(!at("missing").exists());
    fs::create_dir(at("empty")).expect("directory");
    fails!(must_exist().open(at("empty")), Error::NoDatabase(_), "no database", "empty");
    assert_eq!(fs::read_dir(at("empty")).expect("list").count(), 0, "no file was made");
    fs::write(at("file"), b"a file").expect("write");
    fails!(Database::open(at("file")), Error::NotADatabase { .. }, "not a directory");
    assert_eq!(fs::read(at("file")).expect("read"), b"a file");
    fs::create_dir_all(at("nested").join("pantile.data")).expect("directory");
    fails!(Database::open(at("nested")), Error::NotADatabase { .. }, "not an ordinary file");
    fails!(Database::open(at("file").join("below")), Error::Io { .. }, "cannot look at", "file/below");
    for options in [Options::new().streams(0), Options::new().recovery_threads(0)] {
        fails!(options.open(at("never")), Error::InvalidOption(_), "at least 1");
    }
    assert!(!at("never").exists());
}

#[test]
fn closed_databases() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    let table = table(&db);
    let handle = db.clone();
    db.close().expect("close");
    let closed = "has been closed; open it again";
    fails!(handle.begin(), Error::Closed, closed);
    fails!(handle.begin_read(), Error::Closed, closed);
    fails!(handle.begin_safe_snapshot(), Error::Closed, closed);
    fails!(handle.run(|txn| txn.insert(&table, &[1u32.into()])), Error::Closed, closed);
    fails!(handle.table("t"), Error::Closed, closed);
    fails!(
        handle.create_table(TableDef::new("u").column("id", Type::U8).primary_key(["id"])),
        Error::Closed,
        closed
    );
    fails!(handle.create_index(&table, pantile::IndexDef::new("i", ["id"])), Error::Closed, closed);
    fails!(handle.drop_index(&table, "i"), Error::Closed, closed);
    fails!(handle.drop_table("t"), Error::Closed, closed);
    fails!(handle.clone().close(), Error::Closed, closed);
    drop(handle);
    let db = Database::open(place.path()).expect("open again");
    assert!(db.recovery().was_closed);
    assert_eq!(db.tables(), ["t"]);
}

#[test]
fn closing_does_not_wait_for_ever() {
    let time = SimulatedTime::default();
    let db =
        Options::new().medium(MediumKind::Dram).simulated_time(time.clone()).open("unused").expect("open");
    let table = table(&db);
    let mut txn = db.begin().expect("begin");
    let before = time.now();
    fails!(db.clone().close(), Error::Timeout(_), "10s", "nothing was changed");
    assert!(time.now() - before >= Duration::from_secs(10));
    // It stays open, and the transaction can end.
    txn.insert(&table, &[1u32.into()]).expect("insert");
    txn.commit().expect("commit");
    db.close().expect("close");
}

#[test]
fn closing_waits_for_transactions() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| txn.insert(&table, &[1u32.into()])).expect("insert");
    let txn = db.begin_read().expect("begin");
    let closer = db.clone();
    let closing = std::thread::spawn(move || {
        loop {
            // A very busy machine may delay the other thread for longer than
            // this wait.
            match closer.clone().close() {
                Err(Error::Timeout(_)) => {}
                outcome => break outcome,
            }
        }
    });
    await_that("closing has begun", || matches!(db.begin_read(), Err(Error::Closed)));
    assert!(!closing.is_finished());
    assert!(txn.get(&table, &[1u32.into()]).expect("reads still work").is_some());
    drop(txn);
    closing.join().expect("no panic").expect("closed");
}

#[test]
fn a_medium_in_use_takes_no_second_database() {
    let place = ScratchDir::new();
    for options in [Options::new().medium(MediumKind::Dram), Options::new()] {
        let db = options.open(place.path()).expect("open");
        let t = table(&db);
        let medium = medium_of(&db);
        let again = || Options::new().on_medium(medium.clone()).open("unused");
        fails!(again(), Error::AlreadyOpen { .. }, "open already in this process", "close it there first");
        db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("the first goes on");
        db.close().expect("close");
        drop(t);
        let db = again().expect("free again");
        let txn = db.begin_read().expect("begin");
        assert_eq!(txn.scan(&db.table("t").expect("table"), Range::all()).expect("scan").count(), 1);
    }
}

#[test]
fn a_failed_medium_takes_no_more_commits() {
    let medium = FaultMedium::new(&Image::default(), None);
    let db = Options::new().on_medium(medium.clone()).open("unused").expect("open");
    let t = table(&db);
    db.run(|txn| txn.insert(&t, &[1u32.into()])).expect("insert");
    let mut failed = 0;
    for id in 2..20u32 {
        if id == 11 {
            medium.fail("the device is gone");
        }
        if let Err(error) = db.run(|txn| txn.insert(&t, &[id.into()])) {
            failed += 1;
            fails!(
                Err::<(), _>(error),
                Error::MediumFailed { .. },
                "the device is gone",
                "is kept",
                "reads go on"
            );
        } else {
            assert_eq!(failed, 0, "a commit succeeded after a failure");
        }
    }
    assert_eq!(failed, 9);
    let txn = db.begin_read().expect("reads still work");
    let ids: Vec<u32> = txn
        .scan(&t, Range::all())
        .expect("scan")
        .map(|row| row.and_then(|r| r.get(0)).expect("row"))
        .collect();
    assert_eq!(ids.len() as u32, 19 - failed, "what was acknowledged can be read, and nothing else");
    drop(txn);
    fails!(db.close(), Error::MediumFailed { .. }, "the device is gone");
}
