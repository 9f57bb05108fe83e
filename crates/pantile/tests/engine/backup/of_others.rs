//! What is there is of another database, or of this one in another state.

use std::fs;
use std::path::Path;

use pantile::{BackupOptions, CheckOptions, Database, Error, TableDef, Type, Value, restore};
use pantile_testkit::{Bed, Home, Random, ScratchDir, SeedNote, await_that, fails, seeds};

use super::going_on::{change, restores, until};
use super::{back_up, is_sound, open};

/// What was made of another database, or of a later state than this one is in,
/// is refused; or what is restored is right nevertheless.
#[test]
fn backups_of_others() {
    for seed in seeds(200, 6) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let db = Home::new(Bed::Dram).open();
        (0..30).for_each(|_| change(&db, &mut random));
        let (early, place) = (back_up(&db).0, ScratchDir::new());
        (0..30).for_each(|_| change(&db, &mut random));
        let (late, parts) = (back_up(&db).0, place.path().join("part"));
        drop(db.backup_to(&parts, &until(random.below(3_000))));
        // It goes back, and goes on in another way.
        let back = place.path().join("back");
        restore(early.path(), &back, &CheckOptions::new()).expect("restore");
        let other = open(&back);
        (0..random.below(40)).for_each(|_| change(&other, &mut random));
        let backup = place.path().join("backup");
        match other
            .backup_to(&backup, &BackupOptions::new().since(late.path()).wait(std::time::Duration::ZERO))
        {
            Ok(_) => restores(&backup, &other),
            Err(error) => {
                assert!(matches!(error, Error::NotABackupOfThis(_)), "{error}");
                assert!(!backup.exists());
            }
        }
        if !parts.join("pantile.data").exists() {
            other.backup_to(&parts, &BackupOptions::new().wait(std::time::Duration::ZERO)).expect("back up");
            restores(&parts, &other);
        }
    }
}

const FOREIGN: &[u8] = b"a row of another database";

fn table_of(db: &Database) -> pantile::Table {
    let def = TableDef::new("t").column("id", Type::U64).column("data", Type::Bytes(1_000));
    db.create_table_if_absent(def.primary_key(["id"])).expect("create")
}

fn fill(db: &Database, rows: u64, data: &[u8]) {
    let table = table_of(db);
    db.run(|txn| (0..rows).try_for_each(|id| txn.upsert(&table, &[id.into(), Value::Bytes(data)]).map(drop)))
        .expect("fill");
}

/// How often the foreign row is in the file of a backup.
fn foreign_rows(backup: &Path) -> usize {
    let bytes = fs::read(backup.join("pantile.data")).expect("read");
    bytes.windows(FOREIGN.len()).filter(|bytes| *bytes == FOREIGN).count()
}

/// Although all rows of this one are newer.
#[test]
fn nothing_of_another_database_is_left() {
    let (other, db, place) = (Home::new(Bed::Dram).open(), Home::new(Bed::Dram).open(), ScratchDir::new());
    let [whole, backup] = ["other", "backup"].map(|name| place.path().join(name));
    fill(&other, 2_000, FOREIGN);
    other.backup_to(&whole, &BackupOptions::new()).expect("back up");
    assert!(foreign_rows(&whole) == 2_000);
    fails!(other.backup_to(&backup, &until(50_000)), Error::Cancelled, "cancelled");
    let last = other.begin_read().expect("begin").timestamp();
    await_that("the clock is later", || db.begin().expect("begin").timestamp() > last);
    fill(&db, 10, b"mine");
    let report = db.backup_to(&backup, &BackupOptions::new()).expect("back up");
    assert_eq!((report.rows, report.kept_rows, report.deleted_rows), (10, 0, 0));
    is_sound(&backup);
    assert_eq!(foreign_rows(&backup), 0);
    restores(&backup, &db);
    let next = place.path().join("next");
    let refused = db.backup_to(&next, &BackupOptions::new().since(&whole));
    fails!(refused, Error::NotABackupOfThis(_), "of another one");
    assert!(!next.exists());
}

/// A database that was restored goes on with increments, and is another one than
/// its source and than others that were restored from the same backup.
#[test]
fn what_was_restored_is_a_database_of_its_own() {
    let (db, place) = (Home::new(Bed::Dram).open(), ScratchDir::new());
    let at = |name: &str| place.path().join(name);
    fill(&db, 2_000, FOREIGN);
    db.backup_to(at("full"), &BackupOptions::new()).expect("back up");
    for name in ["one", "two"] {
        restore(at("full"), at(name), &CheckOptions::new()).expect("restore");
    }
    let [one, two] = ["one", "two"].map(|name| open(&at(name)));
    for (n, left) in [&db, &one].into_iter().enumerate() {
        fill(left, 2_000, FOREIGN);
        let backup = at(&format!("backup {n}"));
        fails!(left.backup_to(&backup, &until(50_000)), Error::Cancelled, "cancelled");
        let last = left.begin_read().expect("begin").timestamp();
        await_that("the clock is later", || two.begin().expect("begin").timestamp() > last);
        fill(&two, 2_000, b"mine");
        two.backup_to(&backup, &BackupOptions::new()).expect("back up");
        assert_eq!(foreign_rows(&backup), 0);
        restores(&backup, &two);
    }
    two.backup_to(at("next"), &BackupOptions::new().since(at("full"))).expect("back up");
    restores(&at("next"), &two);
    restore(at("next"), at("three"), &CheckOptions::new()).expect("restore");
    let three = open(&at("three"));
    three.backup_to(at("last"), &BackupOptions::new().since(at("next"))).expect("back up");
    restores(&at("last"), &three);
}

/// A database that is in use changes, and an increment since it could not be restored.
#[test]
fn a_database_is_no_earlier_backup() {
    let (db, place) = (Home::new(Bed::Dram).open(), ScratchDir::new());
    let at = |name: &str| place.path().join(name);
    fill(&db, 10, b"mine");
    db.backup_to(at("backup"), &BackupOptions::new()).expect("back up");
    restore(at("backup"), at("used"), &CheckOptions::new()).expect("restore");
    let refused = db.backup_to(at("next"), &BackupOptions::new().since(at("used")));
    fails!(refused, Error::NotABackupOfThis(_), "is no backup");
    assert!(!at("next").exists());
    db.backup_to(at("next"), &BackupOptions::new().since(at("backup"))).expect("back up");
}
