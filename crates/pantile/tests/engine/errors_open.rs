//! Opening what cannot be opened, and using what has been closed: each gives
//! one clear error and leaves every file unchanged (T17).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pantile::lab::{SimulatedTime, medium_of};
use pantile::tools::{CheckOptions, check, restore, salvage};
use pantile::{
    ConflictPolicy, Database, Error, GcOptions, Isolation, MediumKind, Options, Range, Table, TableDef,
    TransactionOptions, Type,
};
use pantile_nvm::NvmConfig;
use pantile_testkit::cut::Image;
use pantile_testkit::{FaultMedium, ScratchDir, await_that, fails};

/// Where the first chunk begins, and the size of its header page.
const HEAD: u64 = 64 << 10;
const CHUNK: u64 = 2 << 20;
const PAGE: usize = 12_288;

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
    let text = "Dear diary, ".repeat((HEAD / 12) as usize + 1);
    refused(|data| fs::write(data, &text.as_bytes()[..HEAD as usize]).expect("write"), is_foreign);
    refused(|data| patch(data, 3, b"X"), is_foreign);
    // Zeros at the front do not make a file empty.
    refused(|data| patch(data, 0, &[0; 64]), is_foreign);
}

/// A data file that was emptied, or of which only zeros are left, is not taken for a database that has just been
/// created.
#[test]
fn an_emptied_data_file_is_no_new_database() {
    let zeros = |len: u64| move |data: &Path| fs::write(data, vec![0; len as usize]).expect("write");
    let lens = [0, HEAD, 3 * HEAD, CHUNK - HEAD];
    for len in lens {
        refused(zeros(len), |error| {
            fails!(Err::<(), _>(error), Error::Damaged { .. }, "was emptied", "pantile.image", "backup");
        });
    }
    // A creation that was cut short leaves less than a chunk.
    refused(zeros(CHUNK), |error| assert!(matches!(error, Error::NotADatabase { .. }), "{error}"));

    for len in lens {
        let place = ScratchDir::new();
        let data = stored(place.path());
        zeros(len)(&data);
        let backup = place.path().join("copy");
        let is_none = |outcome: pantile::Result<()>| fails!(outcome, Error::NoDatabase(_), "no database");
        is_none(Options::new().create(false).open(place.path()).map(drop));
        is_none(Options::new().open_read_only(place.path()).map(drop));
        is_none(check(place.path(), &CheckOptions::new()).map(drop));
        is_none(salvage(place.path(), &CheckOptions::new()).map(drop));
        is_none(restore(place.path(), &backup, &CheckOptions::new()).map(drop));
        assert!(!backup.exists() && fs::read(&data).is_ok_and(|bytes| bytes == vec![0; len as usize]));
        // To begin anew is possible.
        fs::remove_file(place.path().join("pantile.image")).expect("there is an image");
        assert!(Database::open(place.path()).expect("a new database").tables().is_empty());
    }
}

#[test]
fn other_format_versions() {
    let is_version = |error: Error| {
        let form = Error::FormatVersion { found: 4, supported: 3 };
        assert_eq!(error.to_string(), form.to_string());
        fails!(Err::<(), _>(error), Error::FormatVersion { .. }, "version 4", "version 3", "left as it is");
    };
    refused(|data| patch(data, 8, &[4]), is_version);
}

#[test]
fn truncated_files() {
    let set_len = |len| {
        move |data: &Path| {
            fs::File::options().write(true).open(data).expect("open").set_len(len).expect("len")
        }
    };
    refused(set_len(HEAD + 4096), |error| {
        fails!(Err::<(), _>(error), Error::NotADatabase { .. }, "truncated", "69632 bytes", "left as it is");
    });
    // Whole chunks are missing, and with them blocks that the rest relies on.
    refused(set_len(HEAD), |error| {
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
    damaged(HEAD as usize + 9, "offset 65536");
    damaged(HEAD as usize + 64, "block 0.0");
    // The first content of the first block.
    damaged(HEAD as usize + PAGE + 256 + 26, "slot 0");
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
    let leads_nowhere = "it is a link to something that does not exist";
    symlink(at("nowhere"), at("link")).expect("link");
    fails!(Database::open(at("link")), Error::Io { .. }, "cannot open", leads_nowhere);
    fs::create_dir(at("linked")).expect("directory");
    symlink(at("nowhere"), at("linked").join("pantile.data")).expect("link");
    fails!(Database::open(at("linked")), Error::Io { .. }, "linked/pantile.data", leads_nowhere);
    assert!(!at("nowhere").exists(), "nothing was made");
    // No file can be made there, and nobody removes it.
    fails!(Database::open("/proc"), Error::Io { .. }, "/proc/pantile.data", "No such file");
}

/// Every number that an option does not take is refused, with the option's
/// name, the number and the bounds, before anything is made.
#[test]
fn options_out_of_bounds() {
    let place = ScratchDir::new();
    let never = place.path().join("never");
    let dram = || Options::new().medium(MediumKind::Dram);
    let gc = |change: fn(&mut GcOptions)| {
        let mut gc = GcOptions::default();
        change(&mut gc);
        Options::new().gc(gc)
    };
    let cases = [
        (Options::new().streams(0), "streams is 0; it can be from 1 to 1024"),
        (Options::new().streams(usize::MAX), "streams is 18446744073709551615; it can be from 1 to 1024"),
        (dram().streams(1025), "streams is 1025;"),
        (Options::new().recovery_threads(0), "recovery_threads is 0; it can be from 1 to 1024"),
        (Options::new().recovery_threads(usize::MAX), "recovery_threads is 18446744073709551615;"),
        (Options::new().block_slots(0), "block_slots is 0; it can be from 1 to 1920"),
        (Options::new().block_slots(u32::MAX), "block_slots is 4294967295;"),
        (Options::new().max_bytes(0), "max_bytes is 0; it can be from 65536 to 1099511627776"),
        (dram().max_bytes(HEAD - 1), "max_bytes is 65535;"),
        (dram().max_bytes(u64::MAX), "max_bytes is 18446744073709551615;"),
        (Options::new().preallocate(u64::MAX), "preallocate is 18446744073709551615; it can be from 0 to"),
        (dram().preallocate(1 << 62), "preallocate is 4611686018427387904;"),
        (
            dram().max_bytes(8 * CHUNK).preallocate(9 * CHUNK),
            "preallocate is 18874368; it can be from 0 to 16777216",
        ),
        (gc(|gc| gc.theta = f64::NAN), "theta is NaN; it can be from 0.5 to 1"),
        (gc(|gc| gc.queue_share = -1.0), "queue_share is -1; it can be from 0 to 1"),
        (gc(|gc| gc.space_target = f64::INFINITY), "space_target is inf; it can be from 1 to 1000"),
        (gc(|gc| gc.epoch = Duration::MAX), "; it can be from 100 us to 10 s"),
        (gc(|gc| gc.interval = Duration::ZERO), "interval is 0ns; it can be from 100 us to 60 s"),
        (gc(|gc| gc.epoch_commits = Some(0)), "epoch_commits is 0; it can be 1 or more"),
    ];
    for (options, says) in cases {
        fails!(options.open(&never), Error::InvalidOption(_), says);
    }
    assert!(!never.exists());
}

/// What is within bounds works, however large it is.
#[test]
fn options_at_their_bounds() {
    let dram = || Options::new().medium(MediumKind::Dram);
    let gc = GcOptions { space_target: 1000.0, epoch_commits: Some(u64::MAX), ..GcOptions::default() };
    let endless = dram().conflict(ConflictPolicy::Wait(Duration::MAX)).begin_wait(Duration::MAX);
    let cases = [
        dram().streams(1024),
        dram().recovery_threads(1024),
        dram().block_slots(1),
        dram().max_bytes(1 << 40),
        dram().gc(gc),
        dram().begin_wait(Duration::ZERO).retry_for(Duration::ZERO),
        endless.retry_for(Duration::MAX),
    ];
    for options in cases {
        let db = options.open("unused").expect("open");
        let table = table(&db);
        db.run(|txn| txn.insert(&table, &[1u32.into()])).expect("insert");
        db.close().expect("close");
    }
}

#[test]
fn closed_databases() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    let table = table(&db);
    let handle = db.clone();
    db.close().expect("close");
    let closed = "is closed, or is just being closed; open it again";
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
    fails!(
        db.clone().close(),
        Error::StillOpen { .. },
        "1 transaction is still open after 10s (transaction ",
        "Serializable, open for 10.0s, begun at ",
        "errors_open.rs:",
        "begun by thread ",
        "nothing was closed",
        "end them and close it again"
    );
    assert!(time.now() - before >= Duration::from_secs(10));
    // It stays open, and the transaction can end.
    txn.insert(&table, &[1u32.into()]).expect("insert");
    txn.commit().expect("commit");
    db.close().expect("close");
}

/// Closes the database in the end. A very busy machine may delay the thread that has
/// a transaction for longer than closing waits.
fn close_in_the_end(db: &Database) -> pantile::Result<()> {
    loop {
        match db.clone().close() {
            Err(Error::StillOpen { .. }) => {}
            outcome => return outcome,
        }
    }
}

#[test]
fn closing_waits_for_transactions() {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = table(&db);
    db.run(|txn| txn.insert(&table, &[1u32.into()])).expect("insert");
    let txn = db.begin_read().expect("begin");
    let closer = db.clone();
    let closing = std::thread::spawn(move || close_in_the_end(&closer));
    await_that("closing has begun", || matches!(db.begin_read(), Err(Error::Closed)));
    assert!(!closing.is_finished());
    assert!(txn.get(&table, &[1u32.into()]).expect("reads still work").is_some());
    drop(txn);
    closing.join().expect("no panic").expect("closed");
}

/// Transactions that run when closing begins can write and commit.
#[test]
fn closing_dooms_no_transaction() {
    let place = ScratchDir::new();
    let db = Database::open(place.path()).expect("open");
    let table = table(&db);
    let mut txn = db.begin().expect("begin");
    txn.insert(&table, &[1u32.into()]).expect("insert");
    let closer = db.clone();
    let closing = std::thread::spawn(move || close_in_the_end(&closer));
    await_that("closing has begun", || matches!(db.begin_read(), Err(Error::Closed)));
    txn.insert(&table, &[2u32.into()]).expect("it goes on");
    txn.commit().expect("and commits");
    closing.join().expect("no panic").expect("closed");
    drop((db, table));
    let db = Database::open(place.path()).expect("open again");
    assert!(db.recovery().was_closed);
    let table = db.table("t").expect("the table");
    let txn = db.begin_read().expect("begin");
    assert_eq!(txn.scan(&table, Range::all()).expect("scan").count(), 2);
}

/// The error names what is open, the oldest first.
#[test]
fn closing_says_what_is_open() {
    let time = SimulatedTime::default();
    let options = Options::new().medium(MediumKind::Dram).simulated_time(time.clone());
    let db = options.open("unused").expect("open");
    let levels = [Isolation::ReadCommitted, Isolation::Snapshot, Isolation::Serializable];
    let mut open = Vec::new();
    for level in levels {
        open.push(db.begin_with(TransactionOptions::new().isolation(level).read_only(true)).expect("begin"));
        time.advance(Duration::from_secs(1));
    }
    let named = std::thread::Builder::new().name("importer".into());
    let handle = db.clone();
    open.push(named.spawn(move || handle.begin().expect("begin")).expect("spawn").join().expect("no panic"));
    let Err(Error::StillOpen { open: listed, waited }) = db.clone().close() else { panic!("4 are open") };
    assert_eq!(waited, Duration::from_secs(10));
    assert_eq!(
        listed.iter().map(|t| t.age.as_secs_f64().round()).collect::<Vec<_>>(),
        [13.0, 12.0, 11.0, 10.0]
    );
    let isolation: Vec<_> = listed.iter().map(|t| t.isolation.expect("transactions")).collect();
    assert_eq!(isolation[..3], levels);
    assert!(listed[..3].iter().all(|t| t.read_only && t.thread.is_some()) && !listed[3].read_only);
    assert!(listed[3].to_string().ends_with("that has ended"), "{}", listed[3]);
    open.extend((0..5).map(|_| db.begin_safe_snapshot().expect("it is open")));
    fails!(db.clone().close(), Error::StillOpen { .. }, "9 transactions are", "; and 4 more)");
    drop(open);
    db.close().expect("close");
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
