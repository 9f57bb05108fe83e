//! Backups that are cut short by a kill or a full device: there is no backup
//! then, and the database that was backed up is as it was.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pantile::{
    BackupOptions, CheckOptions, Database, Error, Options, Range, TableDef, Type, Value, check, restore,
};
use pantile_testkit::{Random, SaysDone, ScratchDir, SeedNote, seeds};

const PLACE: &str = "PANTILE_BACKUP_PLACE";
const CASE: &str = "PANTILE_BACKUP_CASE";
const BEGUN: &str = "the backup begins";
const DONE: &str = "all of it was done";
const ROWS: u64 = 4_000;

/// A database of about 8 MB, in which all rows have the same number.
fn stored(path: &Path) {
    let db = Database::open(path).expect("open");
    let def = TableDef::new("t").column("id", Type::U64).column("n", Type::U64);
    let def = def.column("data", Type::Bytes(2_000)).primary_key(["id"]);
    let table = db.create_table(def).expect("create");
    let row =
        |id: u64| db.run(|txn| txn.insert(&table, &[id.into(), 0u64.into(), Value::Bytes(&[7; 2_000])]));
    for first in (0..ROWS).step_by(500) {
        let some = first..first + 500;
        let fill = |txn: &mut pantile::Transaction| {
            some.clone()
                .skip(1)
                .try_for_each(|id| txn.insert(&table, &[id.into(), 0u64.into(), Value::Bytes(&[7; 2_000])]))
        };
        row(first).expect("fill");
        db.run(fill).expect("fill");
    }
    drop(table);
    db.close().expect("close");
}

/// The number that all rows of a database have.
fn number(path: &Path) -> u64 {
    let db = Options::new().create(false).open(path).expect("open");
    let txn = db.begin_read().expect("begin");
    let table = db.table("t").expect("table");
    let rows = txn.scan(&table, Range::all()).expect("scan").map(|row| {
        let row = row.expect("a row");
        row.get::<u64>(1).expect("a number")
    });
    let all: Vec<u64> = rows.collect();
    assert!(all.len() as u64 == ROWS && all.iter().all(|n| *n == all[0]), "the rows differ");
    all[0]
}

/// Does nothing unless it is started in a place.
#[test]
fn child() {
    let (Ok(case), Some(place)) = (std::env::var(CASE), std::env::var_os(PLACE)) else { return };
    let place = Path::new(&place);
    match case.as_str() {
        "killed" => back_up_for_ever(place),
        "full" => without_room(place),
        other => panic!("{other}"),
    }
}

/// Changes all rows in each transaction, and backs up beside that, again and
/// again, until the process is killed.
fn back_up_for_ever(place: &Path) {
    let db = Options::new().create(false).open(place.join("db")).expect("open");
    let table = db.table("t").expect("table");
    let add = |txn: &mut pantile::Transaction| {
        (0..ROWS).try_for_each(|id| {
            txn.modify(&table, &[id.into()], |row| {
                let n: u64 = row.get(1)?;
                row.set(1, (n + 1).into()).map(|()| true)
            })
            .map(|_| ())
        })
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            loop {
                db.run(add).expect("add");
            }
        });
        for n in 0.. {
            println!("{BEGUN}");
            db.backup_to(place.join(format!("backup {n}")), &BackupOptions::new()).expect("back up");
        }
    });
}

fn spawn(case: &str, place: &Path, limit: &str) -> Command {
    let script = format!("trap '' XFSZ; {limit} exec \"$0\" --exact backup::child --nocapture");
    let mut child = Command::new("sh");
    child.args(["-c", &script]).arg(std::env::current_exe().expect("this binary"));
    child.env(CASE, case).env(PLACE, place);
    child
}

/// At any moment: each backup is whole, or is refused and can be made anew.
#[test]
fn killed_while_it_backs_up() {
    let mut parts = 0;
    for seed in seeds(0, 12) {
        let _note = SeedNote(seed);
        let place = ScratchDir::new();
        stored(&place.path().join("db"));
        let mut child = spawn("killed", place.path(), "").stdout(Stdio::piped()).spawn().expect("child");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.expect("a line").contains(BEGUN)));
        std::thread::sleep(Duration::from_micros(Random::new(seed, 0).below(60_000)));
        child.kill().expect("kill");
        child.wait().expect("ended");
        number(&place.path().join("db"));
        for n in 0.. {
            let backup = place.path().join(format!("backup {n}"));
            if !backup.exists() {
                break;
            }
            parts += u64::from(is_a_part(&backup, place.path()));
            let sound = check(&backup, &CheckOptions::new()).expect("check");
            assert!(sound.is_sound(), "{sound:?}");
            number(&backup);
        }
    }
    assert!(parts > 0 || std::env::var("PANTILE_SEED").is_ok(), "no backup was cut short");
}

/// Whether a killed process has left a part of a backup. It is made anew then.
fn is_a_part(backup: &Path, place: &Path) -> bool {
    if !backup.join("pantile.data").exists() {
        // It was killed before the part was there, or later.
        if backup.join("pantile.incomplete").exists() {
            let opened = Options::new().open(backup).map(drop);
            assert!(matches!(opened, Err(Error::IncompleteBackup(_))), "{opened:?}");
            let restored = restore(backup, place.join("restored"), &CheckOptions::new());
            assert!(matches!(restored, Err(Error::IncompleteBackup(_))), "{restored:?}");
        }
        let db = Options::new().create(false).open(place.join("db")).expect("open");
        db.backup_to(backup, &BackupOptions::new()).expect("back up again");
        return true;
    }
    false
}

/// Backs up and restores where no file may be as long as the database. Writers go
/// on meanwhile: they have room, for a while, in the file that is there.
fn without_room(place: &Path) {
    let db = Options::new().create(false).open(place.join("small")).expect("open");
    let (refused, done) = (place.join("refused"), AtomicBool::new(false));
    let table =
        db.create_table(TableDef::new("u").column("id", Type::U64).primary_key(["id"])).expect("create");
    let large = Options::new().create(false).open(place.join("db")).expect("open");
    std::thread::scope(|scope| {
        let over = SaysDone(&done);
        scope.spawn(|| {
            for id in 0u64.. {
                if done.load(Ordering::Relaxed) {
                    return;
                }
                db.run(|txn| txn.upsert(&table, &[(id % 50).into()])).expect("writers go on");
            }
        });
        let full = large.backup_to(&refused, &BackupOptions::new()).map(drop);
        drop(over);
        let error = full.expect_err("no room");
        assert!(matches!(error, Error::StorageFull { .. }), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("no room") && text.contains("the backup in"), "{text}");
    });
    assert!(!refused.exists(), "what had begun was removed");
    let txn = large.begin_read().expect("begin");
    assert_eq!(txn.scan(&large.table("t").expect("table"), Range::all()).expect("scan").count() as u64, ROWS);
    drop(txn);
    // It did nothing to the source, which can be written to if there is room.
    assert_eq!(large.stats().running, 0);
    large.close().expect("close");
    let full = restore(place.join("db"), &refused, &CheckOptions::new()).map(drop);
    assert!(matches!(full, Err(Error::StorageFull { .. })), "{full:?}");
    assert!(!refused.exists());
    println!("{DONE}");
}

#[test]
fn a_device_without_room() {
    // In blocks of 512 bytes, all of them less than the database takes.
    for limit in [200, 2_000, 4_100, 9_000] {
        let place = ScratchDir::new();
        stored(&place.path().join("db"));
        Database::open(place.path().join("small")).expect("open").close().expect("close");
        let output = spawn("full", place.path(), &format!("ulimit -f {limit};")).output().expect("child");
        let (out, said) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if limit > 4_096 {
            assert!(output.status.success() && out.contains(DONE), "{limit}: {out}{said}");
        }
        assert_eq!(number(&place.path().join("db")), 0);
        assert!(fs::read_dir(place.path()).expect("list").count() <= 2);
    }
}
