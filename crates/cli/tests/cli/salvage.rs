//! Dumps of damaged databases, and what a check says at its end.

use std::fs;
use std::process::{Command, Output};

use pantile::{Database, TableDef, Type, Value};
use tempfile::TempDir;

fn pantile(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pantile")).args(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// Bytes that are found in the file, in a row of `id`.
fn long(id: u32) -> String {
    format!("<long value {id:03}>").repeat(6000)
}

fn letters() -> (TempDir, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("letters");
    let db = Database::open(&path).expect("a database");
    let def = TableDef::new("letters")
        .column("id", Type::U32)
        .column("body", Type::String(1 << 20))
        .primary_key(["id"]);
    let letters = db.create_table(def).expect("a table");
    let short = db.create_table(TableDef::new("short").column("id", Type::U32).primary_key(["id"]));
    let short = short.expect("a table");
    for id in 0..10u32 {
        let body = long(id);
        db.run(|txn| txn.insert(&letters, &[id.into(), body.as_str().into()])).expect("a row");
        db.run(|txn| txn.insert(&short, &[id.into()])).expect("a row");
    }
    drop((letters, short));
    db.close().expect("closed");
    (dir, path.to_str().expect("UTF-8").to_owned())
}

/// Flips bits all over a value out of line, in every copy that the file has of it.
fn hurt(path: &str, id: u32) {
    let file = format!("{path}/pantile.data");
    let mut bytes = fs::read(&file).expect("the file");
    let wanted = format!("<long value {id:03}>");
    let all = bytes.windows(wanted.len()).enumerate().filter(|(_, at)| *at == wanted.as_bytes());
    let places: Vec<usize> = all.map(|(at, _)| at).collect();
    assert!(places.len() > 1000, "the value is in the file");
    places.iter().for_each(|at| bytes[*at] ^= 1);
    fs::write(&file, bytes).expect("written");
}

#[test]
fn a_dump_of_a_damaged_database_has_all_that_is_whole_and_names_the_rest() {
    let (dir, path) = letters();
    for id in [3, 5] {
        hurt(&path, id);
    }
    let before = fs::read(format!("{path}/pantile.data")).expect("the file");
    let plain = pantile(&["dump", &path]);
    assert!(plain.status.code() == Some(1) && plain.stdout.is_empty(), "{}", text(&plain.stdout));
    assert!(text(&plain.stderr).contains("damaged"), "{}", text(&plain.stderr));
    let output = pantile(&["dump", &path, "--salvage"]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    for id in [3, 5] {
        assert!(
            told.contains(&format!("lost: table \"letters\", the row with the primary key ({id}): ")),
            "{told}"
        );
    }
    assert!(told.contains("lost in table \"letters\": 2 rows with keys from (3) to (5)\n"), "{told}");
    assert!(
        told.ends_with("which is unchanged; what was asked for and is not named above is in the dump\n"),
        "{told}"
    );
    assert_eq!(fs::read(format!("{path}/pantile.data")).expect("the file"), before);

    let file = dir.path().join("rest.dump");
    fs::write(&file, &output.stdout).expect("written");
    let new = dir.path().join("new");
    let loaded = pantile(&["load", new.to_str().unwrap(), "--create", "--from", file.to_str().unwrap()]);
    assert!(loaded.status.success(), "{}", text(&loaded.stderr));
    let db = Database::open(&new).expect("the copy");
    let txn = db.begin_read().expect("a transaction");
    let ids = |name: &str| -> Vec<u32> {
        let table = db.table(name).expect("the table");
        let rows = txn.scan(&table, pantile::Range::all()).expect("a scan");
        rows.map(|row| row.expect("a row").get(0).expect("the key")).collect()
    };
    assert_eq!(ids("letters"), [0, 1, 2, 4, 6, 7, 8, 9]);
    assert_eq!(ids("short"), (0..10).collect::<Vec<_>>());
    let letters = db.table("letters").expect("the table");
    for id in ids("letters") {
        let row = txn.get(&letters, &[id.into()]).expect("a read").expect("the row");
        assert_eq!(row.get::<String>("body").expect("the value"), long(id));
    }
}

#[test]
fn nothing_is_lost_of_a_database_that_is_whole() {
    let (_dir, path) = letters();
    let (plain, salvaged) = (pantile(&["dump", &path]), pantile(&["dump", &path, "--salvage", "--quiet"]));
    assert_eq!((salvaged.status.code(), text(&salvaged.stderr)), (Some(0), ""));
    assert_eq!(salvaged.stdout, plain.stdout);
    hurt(&path, 0);
    let table = pantile(&["dump", &path, "--salvage", "--table", "letters", "--format", "csv"]);
    assert_eq!(table.status.code(), Some(1));
    // The header and nine rows.
    assert_eq!(text(&table.stdout).lines().count(), 10);
}

/// Modes are those of Unix.
#[cfg(unix)]
#[test]
fn nobody_may_read_the_copy_who_may_not_read_the_database() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, path) = letters();
    let [file, place] = [format!("{path}/pantile.data"), path.clone()];
    for (number, mode) in [0o600, 0o640, 0o644, 0o444].into_iter().enumerate() {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("the mode");
        fs::set_permissions(&place, fs::Permissions::from_mode(mode | 0o100)).expect("the mode");
        let copy = dir.path().join(format!("copy-{number}"));
        let output = pantile(&["salvage", &path, "--into", copy.to_str().expect("UTF-8"), "--quiet"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mode_of = |of: &std::path::Path| of.metadata().expect("it").permissions().mode() & 0o777;
        // Its owner may write to it.
        let wanted = (mode | 0o700, mode | 0o600);
        assert_eq!((mode_of(&copy), mode_of(&copy.join("pantile.data"))), wanted, "copy {number}");
        Database::open(&copy).and_then(Database::close).expect("the copy is a database");
    }
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).expect("so that it can be removed");
}

#[test]
fn every_loss_is_a_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("numbers");
    let db = Database::open(&path).expect("a database");
    let def = TableDef::new("numbers").column("id", Type::U32).column("mark", Type::FixedBytes(16));
    let numbers = db.create_table(def.primary_key(["id"])).expect("a table");
    let mark = [0xA7; 16];
    db.run(|txn| (0..1500u32).try_for_each(|id| txn.insert(&numbers, &[id.into(), Value::Bytes(&mark)])))
        .expect("rows");
    drop(numbers);
    db.close().expect("closed");
    let file = path.join("pantile.data");
    let whole = fs::read(&file).expect("the file");
    let places: Vec<_> = (0..whole.len() - 16).filter(|&at| whole[at..at + 16] == mark).collect();
    assert_eq!(places.len(), 1500);
    for (lost, of_table, in_all) in [
        (1, "1 damaged place", "1 place is damaged or lost"),
        (1400, "1400 damaged places", "1400 places are damaged or lost"),
    ] {
        let mut bytes = whole.clone();
        places[..lost].iter().for_each(|at| bytes[*at] ^= 1);
        fs::write(&file, bytes).expect("written");
        let output = pantile(&["dump", path.to_str().unwrap(), "--salvage"]);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert_eq!(told.lines().filter(|line| line.starts_with("lost: ")).count(), lost, "{told}");
        assert!(told.contains(&format!("lost in table \"numbers\": what lies in {of_table}\n")), "{told}");
        assert!(told.contains(&format!("pantile: {in_all} in ")), "{told}");
        let end = format!("{{\"end_of_dump\":true,\"tables\":1,\"rows\":{}}}\n", 1500 - lost);
        assert!(text(&output.stdout).ends_with(&end));
    }
}

/// The last line that a check prints.
fn end_of_check(path: &str) -> (Option<i32>, String) {
    let output = pantile(&["check", path]);
    let all = format!("{}{}", text(&output.stdout), text(&output.stderr));
    (output.status.code(), all.lines().last().unwrap_or_default().to_owned())
}

#[test]
fn a_check_ends_by_saying_what_to_do() {
    let (dir, path) = letters();
    let expect = |path: &str, status, says: &str| {
        let (code, last) = end_of_check(path);
        assert!(code == Some(status) && last.contains(says), "{code:?} {last}");
    };
    expect(&path, 0, "sound, nothing to do; ");
    let db = Database::open(&path).expect("open");
    expect(&path, 1, "close it there first");
    db.close().expect("closed");
    hurt(&path, 1);
    expect(&path, 1, "restore a copy, or copy what is whole into a new database");
    let other = dir.path().join("other");
    expect(other.to_str().unwrap(), 1, "name the directory that has the file pantile.data");
    fs::create_dir(&other).expect("a directory");
    fs::write(other.join("pantile.data"), vec![7; 1 << 21]).expect("a file");
    expect(other.to_str().unwrap(), 1, "name the directory of a database, or restore a copy");
}
