//! Backups that go on with what is there: after an interruption, and since an
//! earlier backup.

use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use pantile::{
    BackupOptions, CheckOptions, ColumnDef, Database, Durability, Error, IndexDef, MediumKind, Options,
    TableChange, TableDef, Type, Value, check, inspect, restore, salvage,
};
use pantile_testkit::{Bed, Home, Random, ScratchDir, SeedNote, fails, seeds};

use super::{back_up, everything, is_sound, open};

fn state(db: &Database) -> Vec<String> {
    everything(db, &db.begin_read().expect("begin"))
}

/// Asserts that what is restored is what the database holds.
#[track_caller]
pub fn restores(backup: &Path, db: &Database) {
    let place = ScratchDir::new();
    let into = place.path().join("restored");
    restore(backup, &into, &CheckOptions::new()).expect("restore");
    is_sound(&into);
    assert!(state(&open(&into)) == state(db), "what was restored differs");
}

fn def(name: &str) -> TableDef {
    TableDef::new(name)
        .column("id", Type::U64)
        .column("n", Type::U32)
        .column("data", Type::Bytes(200_000))
        .primary_key(["id"])
        .index(IndexDef::new("by_n", ["n"]))
}

/// Does something that changes rows or definitions.
pub fn change(db: &Database, random: &mut Random) {
    let names = db.tables();
    let table = (!names.is_empty()).then(|| db.table(&names[random.index(names.len())]).expect("a table"));
    match (random.below(12), table) {
        (0, _) | (_, None) => {
            let name = format!("t{}", random.below(6));
            drop(db.create_table_if_absent(def(&name)).expect("create"));
        }
        (1, Some(table)) => db.drop_table(table.name()).expect("drop"),
        (2, Some(table)) => {
            let column = ColumnDef::new("more", Type::I64).default(3i64);
            let change = match table.column("more") {
                Ok(_) => TableChange::new().drop_column("more"),
                Err(_) => TableChange::new().add_column_before("data", column),
            };
            drop(db.alter_table(&table, &change).expect("alter"));
        }
        (3, Some(table)) => drop(db.truncate_table(&table).expect("truncate")),
        (4, Some(table)) => {
            let all = db.run(|txn| txn.delete_range(&table, pantile::Range::prefix(&[])).map(drop));
            all.expect("delete");
        }
        (5, Some(_)) => drop(db.compact().expect("compact")),
        (_, Some(table)) => {
            let has_more = table.column("more").is_ok();
            let rows: Vec<(u64, u32, Vec<u8>)> = (0..1 + random.below(60))
                .map(|_| {
                    let len = if random.one_in(40) { 70_000 } else { random.index(300) };
                    (random.below(200), random.below(9) as u32, vec![random.below(256) as u8; len])
                })
                .collect();
            let put = |txn: &mut pantile::Transaction| {
                for (id, n, data) in &rows {
                    let mut row = vec![(*id).into(), (*n).into(), Value::Bytes(data)];
                    if has_more {
                        row.insert(2, Value::Int(i64::from(*n)));
                    }
                    match n {
                        0 => drop(txn.delete(&table, &[(*id).into()])?),
                        _ => drop(txn.upsert(&table, &row)?),
                    }
                }
                Ok::<_, Error>(())
            };
            db.run(put).expect("put");
        }
    }
}

/// Stops when this much has been copied or kept.
pub fn until(bytes: u64) -> BackupOptions {
    BackupOptions::new().progress(move |done| match done.bytes + done.kept_bytes >= bytes {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    })
}

/// Changes, backups of all of it and since any earlier one, interruptions,
/// closing and opening, in any order.
fn run(bed: Bed, seed: u64) {
    let _note = SeedNote(seed);
    let mut random = Random::new(seed, 0);
    let mut home = Home::new(bed);
    let mut db = home.open();
    let place = ScratchDir::new();
    let mut backups: Vec<PathBuf> = Vec::new();
    for n in 0..6 {
        (0..random.below(40)).for_each(|_| change(&db, &mut random));
        if bed != Bed::Dram && random.one_in(3) {
            match random.one_in(2) {
                true => db.close().expect("close"),
                false => home.kill(db, Vec::new()),
            }
            db = home.open();
        }
        let backup = place.path().join(format!("backup {n}"));
        let since = if backups.is_empty() || random.one_in(4) { None } else { Some(random.pick(&backups)) };
        let with = |options: BackupOptions| match since {
            Some(since) => options.since(since),
            None => options,
        };
        while random.one_in(2) {
            let stopped = db.backup_to(&backup, &with(until(random.below(2_000_000))));
            match stopped {
                Err(Error::Cancelled) => {}
                Ok(_) => break,
                Err(other) => panic!("{other}"),
            }
            (0..random.below(20)).for_each(|_| change(&db, &mut random));
            if random.one_in(4) {
                hurt(&backup, &mut random);
            }
        }
        if !backup.join("pantile.data").exists() && !backup.join("pantile.increment").exists() {
            let report = db.backup_to(&backup, &with(BackupOptions::new())).expect("back up");
            assert!(report.kept_rows <= report.rows);
            restores(&backup, &db);
        }
        backups.push(backup);
    }
    // None of them has been changed by those that continue it.
    for backup in &backups {
        let into = ScratchDir::new();
        restore(backup, into.path(), &CheckOptions::new()).expect("restore");
    }
}

/// Flips a bit of what an interrupted backup has left, or cuts off its end.
fn hurt(backup: &Path, random: &mut Random) {
    let data = backup.join("pantile.incomplete/pantile.data");
    let Ok(mut bytes) = fs::read(&data) else { return };
    match random.one_in(3) {
        true => bytes.truncate(random.index(bytes.len().max(1))),
        false => {
            let at = random.index(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
    }
    fs::write(&data, bytes).expect("write");
}

#[test]
fn any_chain_in_memory() {
    seeds(0, 10).into_iter().for_each(|seed| run(Bed::Dram, seed));
}

#[test]
fn any_chain_on_files() {
    for seed in seeds(100, 3) {
        run(Bed::File(Durability::None), seed);
    }
}

fn filled() -> Database {
    let db = Options::new().medium(MediumKind::Dram).open("unused").expect("open");
    let table = db.create_table(def("t")).expect("create");
    let row = |id: u64| [id.into(), 1u32.into(), Value::Bytes(&[7; 1_000])];
    db.run(|txn| (0..3_000u64).try_for_each(|id| txn.insert(&table, &row(id)))).expect("fill");
    db
}

#[test]
fn what_was_copied_is_not_copied_again() {
    let db = filled();
    let place = ScratchDir::new();
    let backup = place.path().join("backup");
    fails!(db.backup_to(&backup, &until(2_000_000)), Error::Cancelled, "cancelled");
    let table = db.table("t").expect("the table");
    db.run(|txn| txn.delete(&table, &[5u64.into()])).expect("delete");
    db.run(|txn| txn.update(&table, &[6u64.into()], &[("n", 2u32.into())])).expect("update");
    let report = db.backup_to(&backup, &BackupOptions::new()).expect("back up");
    assert_eq!((report.rows, report.deleted_rows), (2_999, 1));
    assert!((1_000..2_999).contains(&report.kept_rows), "{report:?}");
    is_sound(&backup);
    assert!(state(&open(&backup)) == state(&db));
}

#[test]
fn an_increment_is_as_large_as_what_has_changed() {
    let db = filled();
    let (full, place) = (back_up(&db).0, ScratchDir::new());
    let table = db.table("t").expect("the table");
    db.run(|txn| txn.update(&table, &[6u64.into()], &[("n", 2u32.into())])).expect("update");
    let options = BackupOptions::new().since(full.path());
    let report = db.backup_to(place.path(), &options).expect("back up");
    assert_eq!((report.rows, report.kept_rows, report.deleted_rows), (3_000, 2_999, 0));
    assert!(report.bytes < 2_000 && report.file_bytes < 1 << 20, "{report:?}");
    restores(place.path(), &db);
    // It is no database, and says so.
    let (path, refusal) = (place.path(), "an incremental backup");
    let options = CheckOptions::new();
    let link = full.path().join("link");
    std::os::unix::fs::symlink(path.join("pantile.increment"), &link).expect("a link");
    for path in [path.to_owned(), path.join("pantile.increment"), link] {
        fails!(Options::new().open(&path), Error::IncrementalBackup(_), refusal, "restore it");
    }
    fails!(check(path, &options), Error::IncrementalBackup(_), refusal);
    fails!(inspect(path, &options), Error::IncrementalBackup(_), refusal);
    fails!(salvage(path, &options), Error::IncrementalBackup(_), refusal);
    fails!(db.backup_to(path, &BackupOptions::new()), Error::NotEmpty(_), "not empty");
}

#[test]
fn a_chain_is_moved_and_broken() {
    let db = filled();
    let place = ScratchDir::new();
    let at = |name: &str| place.path().join(name);
    db.backup_to(at("a/full"), &BackupOptions::new()).expect("back up");
    let table = db.table("t").expect("the table");
    for (n, (name, since)) in [("one", "full"), ("two", "one"), ("three", "two")].into_iter().enumerate() {
        db.run(|txn| txn.delete(&table, &[(n as u64).into()])).expect("delete");
        let options = BackupOptions::new().since(at("a").join(since));
        db.backup_to(at("a").join(name), &options).expect("back up");
    }
    restores(&at("a/three"), &db);
    fs::rename(at("a"), at("b")).expect("move");
    restores(&at("b/three"), &db);
    // One in the middle is away, or another one is in its place.
    let into = at("into");
    let try_it = || restore(at("b/three"), &into, &CheckOptions::new());
    fs::rename(at("b/one"), at("away")).expect("move");
    fails!(try_it(), Error::MissingBackup { .. }, "/b/two", "/one", "pantile.increment/since");
    fs::create_dir(at("b/one")).expect("create");
    fails!(try_it(), Error::NoDatabase(_), "one");
    fs::remove_dir(at("b/one")).expect("remove");
    db.backup_to(at("b/one"), &BackupOptions::new().since(at("b/full"))).expect("back up");
    fails!(try_it(), Error::Damaged { .. }, "not the one that this incremental backup continues");
    fs::remove_dir_all(at("b/one")).expect("remove");
    fs::rename(at("away"), at("b/one")).expect("move");
    // The first one was opened and written to.
    let used = open(&at("b/full"));
    let t = used.table("t").expect("the table");
    used.run(|txn| txn.delete(&t, &[77u64.into()])).expect("delete");
    drop(t);
    fails!(try_it(), Error::AlreadyOpen { .. }, "open already");
    used.close().expect("close");
    fails!(try_it(), Error::Damaged { .. }, "was written to");
    assert!(!into.exists());
    let since = BackupOptions::new().since(at("b/three"));
    fails!(db.backup_to(&into, &since), Error::Damaged { .. }, "was written to");
    fails!(db.backup_to(&into, &BackupOptions::new().since(at("nowhere"))), Error::NoDatabase(_), "nowhere");
    assert!(!into.exists());
    // Whether it is there or not, and however it is spelled.
    let around = at("b").join("../b/three");
    for (dir, since) in [(&into, &into), (&at("b/three"), &around)] {
        let since = BackupOptions::new().since(since);
        fails!(db.backup_to(dir, &since), Error::InvalidOption(_), "cannot be since itself");
    }
    assert!(!into.exists());
    let since = at("b/three/pantile.increment/since");
    fs::write(&since, b"pantile increment 2\nsince .\n").expect("write");
    fails!(try_it(), Error::Damaged { .. }, "which backup");
    fs::write(&since, b"pantile increment 1\nsince .\n").expect("write");
    fails!(try_it(), Error::FormatVersion { found: 1, supported: 2 }, "version 1");
}

/// The newest increment has none after it that would miss something.
#[test]
fn an_increment_whose_contents_are_others_is_refused() {
    let db = filled();
    let place = ScratchDir::new();
    let at = |name: &str| place.path().join(name);
    db.backup_to(at("full"), &BackupOptions::new()).expect("back up");
    let table = db.table("t").expect("the table");
    for (n, name) in ["one", "other"].into_iter().enumerate() {
        db.backup_to(at(name), &BackupOptions::new().since(at("full"))).expect("back up");
        db.run(|txn| txn.delete(&table, &[(n as u64).into()])).expect("delete");
    }
    let try_it = || restore(at("other"), at("into"), &CheckOptions::new());
    let lacks = "does not hold what it held";
    let (since, data) =
        (at("other/pantile.increment/since"), |of: &str| at(of).join("pantile.increment/pantile.data"));
    let text = fs::read_to_string(&since).expect("read");
    for field in ["until", "at"] {
        // One digit is another.
        let from = text.find(&format!("\n{field} ")).expect("the field") + field.len() + 17;
        let digit = if &text[from..=from] == "0" { "1" } else { "0" };
        fs::write(&since, [&text[..from], digit, &text[from + 1..]].concat()).expect("write");
        let refused = try_it().expect_err("refused").to_string();
        assert!(refused.contains(lacks) || refused.contains("was written to"), "{field}: {refused}");
    }
    fs::write(&since, &text).expect("write");
    try_it().expect("restored");
    fs::remove_dir_all(at("into")).expect("remove");
    // The first one holds nothing: no row had changed.
    fs::copy(data("one"), data("other")).expect("copy");
    fails!(try_it(), Error::Damaged { .. }, lacks);
    assert!(!at("into").exists());
    let since = BackupOptions::new().since(at("other"));
    fails!(db.backup_to(at("into"), &since), Error::Damaged { .. }, lacks);
}

/// A way that leads to itself ends.
#[test]
fn a_chain_in_a_circle() {
    let db = filled();
    let (full, place) = (back_up(&db).0, ScratchDir::new());
    db.backup_to(place.path(), &BackupOptions::new().since(full.path())).expect("back up");
    let since = place.path().join("pantile.increment/since");
    let text = fs::read_to_string(&since).expect("read");
    let lines: Vec<&str> =
        text.lines().map(|line| if line.starts_with("since") { "since ." } else { line }).collect();
    fs::write(&since, lines.join("\n")).expect("write");
    let into = ScratchDir::new();
    let tried = restore(place.path(), into.path(), &CheckOptions::new());
    fails!(tried, Error::MissingBackup { .. }, "continues the one in");
}

/// As if the call had been killed between the last record and the renaming.
fn take_back(backup: &Path) {
    let part = backup.join("pantile.incomplete");
    fs::create_dir(&part).expect("create");
    fs::rename(backup.join("pantile.data"), part.join("pantile.data")).expect("move");
}

#[test]
fn a_part_with_its_last_record_is_gone_on_with() {
    let db = filled();
    let place = ScratchDir::new();
    let backup = place.path().join("backup");
    db.backup_to(&backup, &BackupOptions::new()).expect("back up");
    take_back(&backup);
    let table = db.table("t").expect("the table");
    let update = |id: u64| db.run(|txn| txn.update(&table, &[id.into()], &[("n", 2u32.into())]));
    (0..2_000).for_each(|id| assert!(update(id).expect("update")));
    let copies_some = BackupOptions::new().progress(|done| match done.bytes {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    });
    fails!(db.backup_to(&backup, &copies_some), Error::Cancelled, "cancelled");
    let report = db.backup_to(&backup, &BackupOptions::new()).expect("back up");
    assert!(report.kept_rows > 1_000, "{report:?}");
    restores(&backup, &db);
}

/// An opening that writes nothing drops tombstones, and rows of tables that are
/// gone.
#[test]
fn an_earlier_backup_may_be_opened() {
    for drops in [false, true] {
        let (db, place) = (filled(), ScratchDir::new());
        let [full, next] = ["full", "next"].map(|name| place.path().join(name));
        fails!(db.backup_to(&full, &until(2_500_000)), Error::Cancelled, "cancelled");
        let table = db.table("t").expect("the table");
        match drops {
            true => db.drop_table("t").expect("drop"),
            false => drop(db.run(|txn| txn.delete_range(&table, pantile::Range::all())).expect("delete")),
        }
        let rest = db.create_table(def("rest")).expect("create");
        let put =
            |id: u64| db.run(|txn| txn.insert(&rest, &[id.into(), 1u32.into(), Value::Bytes(&[1; 50])]));
        (0..50).for_each(|id| put(id).expect("insert"));
        db.backup_to(&full, &BackupOptions::new()).expect("back up");
        (50..60).for_each(|id| put(id).expect("insert"));
        db.backup_to(&next, &BackupOptions::new().since(&full)).expect("back up");
        let opened = open(&full);
        opened.compact().expect("compact");
        opened.close().expect("close");
        restores(&next, &db);
        db.backup_to(place.path().join("last"), &BackupOptions::new().since(&next)).expect("back up");
        restores(&place.path().join("last"), &db);
    }
}

/// What was inserted and deleted in an earlier backup could hide rows that have
/// the same ids.
#[test]
fn deletions_in_an_earlier_backup_are_found() {
    let (db, place) = (filled(), ScratchDir::new());
    let [full, next] = ["full", "next"].map(|name| place.path().join(name));
    db.backup_to(&full, &BackupOptions::new()).expect("back up");
    let put = |db: &Database| {
        let table = db.table("t").expect("the table");
        db.run(|txn| txn.insert(&table, &[9_000u64.into(), 1u32.into(), Value::Bytes(&[1; 50])]))
            .expect("put");
    };
    put(&db);
    db.backup_to(&next, &BackupOptions::new().since(&full)).expect("back up");
    let used = Options::new().create(false).collector(pantile::Collector::NONE).open(&full).expect("open");
    put(&used);
    let table = used.table("t").expect("the table");
    assert!(used.run(|txn| txn.delete(&table, &[9_000u64.into()])).expect("delete"));
    drop(table);
    used.close().expect("close");
    let tried = restore(&next, place.path().join("into"), &CheckOptions::new());
    fails!(tried, Error::Damaged { .. }, "was written to");
}

#[test]
fn names_of_any_kind() {
    let (db, place) = (filled(), ScratchDir::new());
    let mut names = vec![OsString::from("new\nline\r"), "10%".into(), "%41 ä".into()];
    #[cfg(target_os = "linux")]
    names.push(std::os::unix::ffi::OsStringExt::from_vec(b"not\xffUnicode".to_vec()));
    for (n, name) in (0u64..).zip(&names) {
        let (full, next) = (place.path().join(name), place.path().join(format!("next {n}")));
        db.backup_to(&full, &BackupOptions::new()).expect("back up");
        let table = db.table("t").expect("the table");
        db.run(|txn| txn.delete(&table, &[n.into()])).expect("delete");
        db.backup_to(&next, &BackupOptions::new().since(&full)).expect("back up");
        restores(&next, &db);
    }
}
