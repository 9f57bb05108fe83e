//! Restoring: a copy that has been checked, or nothing.

use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt};

use pantile::tools::RestoreReport;
use pantile::{
    BackupOptions, CheckOptions, Database, Durability, Error, IndexDef, Options, Range, TableDef, Type,
    Value, restore,
};
use pantile_testkit::{Bed, Home, Random, ScratchDir, SeedNote, fails, seeds};

use super::{back_up, everything, is_sound, open};

fn filled() -> Database {
    let db = Home::new(Bed::Dram).open();
    let def = TableDef::new("t").column("id", Type::U64).nullable("data", Type::Bytes(100_000));
    let def = def.column("n", Type::U32).primary_key(["id"]).index(IndexDef::new("by_n", ["n"]));
    let table = db.create_table(def).expect("create");
    let mut random = Random::new(1, 0);
    for id in 0..300u64 {
        let data = vec![7; random.index(if id % 50 == 0 { 90_000 } else { 400 })];
        let row = [id.into(), Value::Bytes(&data), (id as u32 % 9).into()];
        db.run(|txn| txn.insert(&table, &row)).expect("insert");
    }
    db
}

#[test]
fn what_is_restored_is_what_was_backed_up() {
    let db = filled();
    let (backup, report) = back_up(&db);
    let place = ScratchDir::new();
    let into = place.path().join("a/b");
    let restored: RestoreReport = restore(backup.path(), &into, &CheckOptions::new()).expect("restore");
    assert_eq!((restored.tables, restored.file_bytes), (report.tables, report.file_bytes));
    is_sound(&into);
    let copy = open(&into);
    let all = |db: &Database| everything(db, &db.begin_read().expect("begin"));
    assert!(all(&copy) == all(&db));
    let used = restore(&into, place.path().join("other"), &CheckOptions::new());
    fails!(used, Error::AlreadyOpen { .. }, "open already in this process");
    assert!(!place.path().join("other").exists());
    // The backup was not touched.
    is_sound(backup.path());
}

/// Keys and rows are read by nobody who may not read the database.
#[test]
fn what_is_made_of_a_database_is_as_private() {
    for mode in [0o600, 0o640, 0o644] {
        let place = ScratchDir::new();
        let [shop, backup, back] = ["shop", "backup", "back"].map(|name| place.path().join(name));
        let db = Database::open(&shop).expect("open");
        let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
        let table = db.create_table(def).expect("create");
        db.run(|txn| txn.insert(&table, &[1u64.into()])).expect("insert");
        fs::set_permissions(shop.join("pantile.data"), fs::Permissions::from_mode(mode)).expect("a mode");
        db.backup_to(&backup, &BackupOptions::new()).expect("a backup");
        restore(&backup, &back, &CheckOptions::new()).expect("restored");
        db.close().expect("closed");
        let copies = [shop.join("pantile.image"), backup.join("pantile.data"), back.join("pantile.data")];
        for copy in copies {
            let found = copy.metadata().expect("it is there").permissions().mode() & 0o777;
            assert_eq!(found, mode, "{}", copy.display());
        }
    }
}

/// Any database that is closed can be restored, also one that was killed.
#[test]
fn a_database_that_was_in_use() {
    let mut home = Home::new(Bed::File(Durability::None));
    let db = home.open();
    let def = TableDef::new("t").column("id", Type::U64).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    db.run(|txn| (0..1_000u64).try_for_each(|id| txn.insert(&table, &[id.into()]))).expect("fill");
    drop(table);
    home.kill(db, Vec::new());
    let place = ScratchDir::new();
    let into = place.path().join("restored");
    restore(home.path(), &into, &CheckOptions::new()).expect("restore");
    let copy = open(&into);
    let (txn, table) = (copy.begin_read().expect("begin"), copy.table("t").expect("table"));
    assert_eq!(txn.scan(&table, Range::all()).expect("scan").count(), 1_000);
    drop(txn);
    fails!(restore("/nowhere", &into, &CheckOptions::new()), Error::NotEmpty(_), "not empty");
    let nowhere = restore("/nowhere", place.path().join("other"), &CheckOptions::new());
    fails!(nowhere, Error::NoDatabase(_), "/nowhere");
}

/// A bit that has flipped anywhere is found, or changes nothing.
#[test]
fn a_damaged_backup_is_refused() {
    let (backup, _) = back_up(&filled());
    let before = {
        let copy = open(backup.path());
        let all = everything(&copy, &copy.begin_read().expect("begin"));
        copy.close().expect("close");
        all
    };
    // Opening leaves an index image; it says nothing of a copy.
    let data = backup.path().join("pantile.data");
    let whole = fs::read(&data).expect("read");
    let mut refused = 0;
    for seed in seeds(0, 60) {
        let _note = SeedNote(seed);
        let mut random = Random::new(seed, 0);
        let at = random.index(whole.len());
        let hurt = whole[at] ^ (1 << random.below(8));
        let file = fs::File::options().write(true).open(&data).expect("open");
        file.write_all_at(&[hurt], at as u64).expect("write");
        let place = ScratchDir::new();
        let into = place.path().join("restored");
        match restore(backup.path(), &into, &CheckOptions::new()) {
            Ok(_) => {
                let copy = Options::new().create(false).open(&into).expect("open");
                assert!(everything(&copy, &copy.begin_read().expect("begin")) == before, "byte {at}");
            }
            Err(error) => {
                refused += 1;
                assert!(matches!(error, Error::Damaged { .. } | Error::NotADatabase { .. }), "{error}");
                assert!(!into.exists());
            }
        }
        file.write_all_at(&whole[at..=at], at as u64).expect("write");
    }
    println!("{refused} refused");
    fs::write(&data, &whole[..whole.len() / 2]).expect("write");
    let place = ScratchDir::new();
    let half = restore(backup.path(), place.path(), &CheckOptions::new());
    fails!(half, Error::Damaged { .. }, "damaged data at the copy of the backup in");
    assert_eq!(fs::read_dir(place.path()).expect("list").count(), 0);
}
