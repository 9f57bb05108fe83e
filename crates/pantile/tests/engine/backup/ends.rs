//! Backups that end early: there is no database then, and the source and the next
//! call go on.

use std::fs;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::{
    BackupOptions, CheckOptions, Database, Error, MediumKind, Options, TableDef, Type, Value, check, inspect,
    restore, salvage,
};
use pantile_testkit::{ScratchDir, await_that, fails};

use super::{back_up, is_sound, open};

const ROWS: u64 = 3_000;

fn filled() -> Database {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1_000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    let fill = |txn: &mut pantile::Transaction| {
        (0..ROWS).try_for_each(|id| txn.insert(&table, &[id.into(), Value::Bytes(&[7; 1_000])]))
    };
    db.run(fill).expect("fill");
    db
}

/// Copies a part, notes that, and waits until the database is being closed.
fn until_closed(db: &Database, copied: &Arc<AtomicBool>) -> BackupOptions {
    let (db, copied) = (db.clone(), Arc::clone(copied));
    BackupOptions::new().progress(move |done| {
        if done.bytes > 0 {
            copied.store(true, Ordering::Relaxed);
            await_that("it is closed", || matches!(db.begin_read(), Err(Error::Closed)));
        }
        ControlFlow::Continue(())
    })
}

/// What a process that is killed now leaves of a backup.
fn begun(db: &Database) -> ScratchDir {
    let place = ScratchDir::new();
    let (from, to) = (place.path().join("running"), place.path().join("killed"));
    let (copied, copy) = (Arc::new(AtomicBool::new(false)), (from.clone(), to.clone()));
    let note = Arc::clone(&copied);
    let options = BackupOptions::new().progress(move |done| {
        if done.rows < ROWS / 2 {
            return ControlFlow::Continue(());
        }
        let part = "pantile.incomplete";
        fs::create_dir_all(copy.1.join(part)).expect("create");
        let data = |path: &std::path::Path| path.join(part).join("pantile.data");
        fs::copy(data(&copy.0), data(&copy.1)).expect("copy");
        note.store(true, Ordering::Relaxed);
        ControlFlow::Break(())
    });
    fails!(db.backup_to(&from, &options), Error::Cancelled, "cancelled");
    assert!(copied.load(Ordering::Relaxed));
    fails!(Options::new().open(&from), Error::IncompleteBackup(_), "not completed");
    place
}

#[test]
fn a_part_is_refused_and_completed() {
    let db = filled();
    let place = begun(&db);
    let path = place.path().join("killed");
    let refusal = "that was not completed";
    let into = place.path().join("restored");
    let options = CheckOptions::new();
    for part in [path.clone(), path.join("pantile.incomplete")] {
        fails!(Options::new().open(&part), Error::IncompleteBackup(_), refusal, "killed holds", "again");
        fails!(restore(&part, &into, &options), Error::IncompleteBackup(_), refusal);
    }
    fails!(Options::new().create(false).open(&path), Error::IncompleteBackup(_), refusal);
    fails!(check(&path, &options), Error::IncompleteBackup(_), refusal);
    fails!(inspect(&path, &options), Error::IncompleteBackup(_), refusal);
    fails!(salvage(&path, &options), Error::IncompleteBackup(_), refusal);
    assert!(!into.exists());
    // It is the work of a backup, and stays also if it is not alone.
    let (whole, stray) = (back_up(&db).0, path.join("stray"));
    fails!(restore(whole.path(), &path, &options), Error::IncompleteBackup(_), refusal);
    fs::write(&stray, b"mine").expect("write");
    fails!(restore(whole.path(), &path, &options), Error::NotEmpty(_), "not empty");
    fails!(db.backup_to(&path, &BackupOptions::new()), Error::NotEmpty(_), "not empty");
    fs::remove_file(&stray).expect("remove");
    assert!(path.join("pantile.incomplete/pantile.data").exists());
    // A medium in memory has nothing to do with the directory.
    Options::new().medium(MediumKind::Dram).open(&path).expect("open");
    db.backup_to(&path, &BackupOptions::new()).expect("back up again");
    is_sound(&path);
    assert_eq!(fs::read_dir(&path).expect("list").count(), 1);
}

/// A restore that was killed begins anew.
#[test]
fn a_part_of_what_was_restored_is_made_anew() {
    let db = filled();
    let (backup, place) = (back_up(&db).0, ScratchDir::new());
    let part = place.path().join("pantile.restoring");
    fs::create_dir(&part).expect("create");
    fs::write(part.join("pantile.data"), b"half").expect("write");
    for path in [place.path(), &part] {
        fails!(Options::new().open(path), Error::IncompleteBackup(_), "do again what was begun");
    }
    fails!(db.backup_to(place.path(), &BackupOptions::new()), Error::IncompleteBackup(_), "not completed");
    assert!(part.join("pantile.data").exists());
    restore(backup.path(), place.path(), &CheckOptions::new()).expect("restore");
    is_sound(place.path());
    assert_eq!(fs::read_dir(place.path()).expect("list").count(), 1);
}

/// Killed after the data file has moved up: the part is empty, and the database
/// whole.
#[test]
fn a_part_beside_a_whole_backup_says_nothing() {
    let db = filled();
    let place = ScratchDir::new();
    db.backup_to(place.path(), &BackupOptions::new()).expect("back up");
    fs::create_dir(place.path().join("pantile.incomplete")).expect("create");
    is_sound(place.path());
    assert_eq!(open(place.path()).tables(), ["t"]);
    fails!(db.backup_to(place.path(), &BackupOptions::new()), Error::NotEmpty(_), "not empty");
}

#[test]
fn a_directory_with_something_in_it_is_left_alone() {
    let db = filled();
    let place = ScratchDir::new();
    let (path, file) = (place.path().join("db"), place.path().join("file"));
    Database::open(&path).expect("open").close().expect("close");
    let before = fs::read(path.join("pantile.data")).expect("read");
    for full in [path.as_path(), place.path()] {
        let phrase = "name a directory that is empty or does not exist";
        fails!(db.backup_to(full, &BackupOptions::new()), Error::NotEmpty(_), "left as it is", " or", phrase);
        fails!(restore(&path, full, &CheckOptions::new()), Error::NotEmpty(_), phrase);
    }
    assert_eq!(fs::read(path.join("pantile.data")).expect("read"), before);
    fs::write(&file, b"mine").expect("write");
    fails!(db.backup_to(&file, &BackupOptions::new()), Error::Io { .. }, "file");
    fails!(db.backup_to(file.join("below"), &BackupOptions::new()), Error::Io { .. }, "below");
    fails!(db.backup_to("", &BackupOptions::new()), Error::InvalidOption(_), "path");
    assert_eq!(fs::read(&file).expect("read"), b"mine");
    // Directories are made as far as they are missing.
    let deep = place.path().join("a/b/c");
    db.backup_to(&deep, &BackupOptions::new()).expect("back up");
    is_sound(&deep);
}

#[test]
fn two_backups_do_not_share_a_directory() {
    let db = filled();
    let place = ScratchDir::new();
    let path = place.path().join("backup");
    let copied = Arc::new(AtomicBool::new(false));
    let options = until_closed(&db, &copied);
    std::thread::scope(|scope| {
        let first = scope.spawn(|| db.backup_to(&path, &options));
        await_that("a part is copied", || copied.load(Ordering::Relaxed));
        let second = db.backup_to(&path, &BackupOptions::new());
        fails!(second, Error::BeingFilled(_), "a backup is being made in", "wait until that has ended");
        assert!(path.join("pantile.incomplete/pantile.data").exists());
        // Closing ends it, and waits for nothing else.
        db.clone().close().expect("close");
        fails!(first.join().expect("no panic"), Error::Closed, "closed");
    });
    fails!(db.backup_to(&path, &BackupOptions::new()), Error::Closed, "closed");
    fails!(Options::new().open(&path), Error::IncompleteBackup(_), "not completed");
}

/// A program's own mistake leaves nothing, and nobody waiting.
#[test]
fn a_panic_of_the_caller() {
    let db = filled();
    let place = ScratchDir::new();
    let path = place.path().join("backup");
    let options = BackupOptions::new().progress(|done| match done.rows {
        0 => ControlFlow::Continue(()),
        rows => panic!("the caller fails at {rows} rows"),
    });
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| db.backup_to(&path, &options)));
    assert!(outcome.is_err() && !path.exists());
    assert_eq!(db.stats().running, 0);
    db.backup_to(&path, &BackupOptions::new()).expect("back up");
    is_sound(&path);
}

/// Closing does not wait for a backup that waits for a writer either.
#[test]
fn closing_ends_a_backup_that_waits() {
    let db = filled();
    let place = ScratchDir::new();
    let path = place.path().join("backup");
    let writer = db.begin().expect("begin");
    std::thread::scope(|scope| {
        let options = BackupOptions::new().wait(Duration::MAX);
        let (db, path) = (&db, &path);
        let backup = scope.spawn(move || db.backup_to(path, &options));
        await_that("it has begun", || path.exists());
        let closing = scope.spawn(|| db.clone().close());
        fails!(backup.join().expect("no panic"), Error::Closed, "closed");
        drop(writer);
        closing.join().expect("no panic").expect("close");
    });
    assert!(!path.exists());
}

/// Damage is not copied with a checksum that fits.
#[test]
fn damage_is_found() {
    let place = ScratchDir::new();
    let (path, backup) = (place.path().join("db"), place.path().join("backup"));
    let db = Database::open(&path).expect("open");
    filled().backup_to(place.path().join("copy"), &BackupOptions::new()).expect("back up");
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1_000));
    let table = db.create_table(def.primary_key(["id"])).expect("create");
    let put = |id: u64| db.run(|txn| txn.insert(&table, &[id.into(), Value::Bytes(b"a row to be hurt")]));
    (0..100).for_each(|id| put(id).expect("insert"));
    // The mapping shows what is in the file.
    let data = path.join("pantile.data");
    let mut bytes = fs::read(&data).expect("read");
    let at = bytes.windows(16).position(|bytes| bytes == b"a row to be hurt").expect("a row");
    bytes[at] ^= 1;
    let file = fs::File::options().write(true).open(&data).expect("open");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[at..=at], at as u64).expect("write");
    fails!(db.backup_to(&backup, &BackupOptions::new()), Error::Damaged { .. }, "checksum", "table 16");
    fails!(Options::new().open(&backup), Error::IncompleteBackup(_), "not completed");
    assert_eq!(db.verify(None).expect("verify").damaged.len(), 1);
    // What is open to be salvaged is copied in another way.
    db.close().expect("close");
    let salvaged = salvage(&path, &CheckOptions::new()).expect("salvage");
    let refused = salvaged.database().backup_to(&backup, &BackupOptions::new());
    fails!(refused, Error::InvalidOption(_), "copy_into");
}

/// What commits once the moment is fixed is not in the backup, whether or not it has
/// been copied by then; and the call is told beside which writers it is.
#[test]
fn the_moment_is_told_before_anything_is_copied() {
    let (db, place) = (filled(), ScratchDir::new());
    let table = db.table("t").expect("the table");
    let (writer, seen) = ((db.clone(), table.clone()), Arc::new(AtomicBool::new(false)));
    let told = Arc::clone(&seen);
    let options = BackupOptions::new().at_moment(move |is_current| {
        assert!(is_current && !told.swap(true, Ordering::Relaxed));
        let (db, table) = &writer;
        db.run(|txn| txn.delete(table, &[7u64.into()])).expect("delete");
        ControlFlow::Continue(())
    });
    let report = db.backup_to(place.path(), &options).expect("back up");
    assert!(seen.load(Ordering::Relaxed) && report.rows == ROWS, "{report:?}");

    // Beside a serializable writer the moment lies before it, and the call may not want that.
    let mut writer = db.begin().expect("begin");
    writer.insert(&table, &[ROWS.into(), Value::Bytes(&[7])]).expect("insert");
    db.run(|txn| txn.insert(&table, &[(ROWS + 1).into(), Value::Bytes(&[7])])).expect("insert");
    let place = ScratchDir::new();
    let refuses = BackupOptions::new().wait(Duration::ZERO).at_moment(|is_current| {
        assert!(!is_current);
        ControlFlow::Break(())
    });
    fails!(db.backup_to(place.path(), &refuses), Error::Cancelled, "cancelled");
    writer.commit().expect("commit");
    let report = db.backup_to(place.path(), &BackupOptions::new()).expect("back up");
    assert_eq!((report.is_current, report.rows), (true, ROWS + 1));
}
