//! Backing up and restoring, as scripts do it.

use std::path::Path;
use std::process::{Command, Output};

use pantile::{Database, TableDef, Type, Value};
use pantile_testkit::Patience;

const ROWS: u64 = 2_000;

fn pantile(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pantile")).args(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn stored(path: &Path) {
    let db = Database::open(path).expect("open");
    let def = TableDef::new("pets").column("id", Type::U64).column("data", Type::Bytes(1_000));
    let pets = db.create_table(def.primary_key(["id"])).expect("create");
    db.run(|txn| (0..ROWS).try_for_each(|id| txn.insert(&pets, &[id.into(), Value::Bytes(&[7; 1_000])])))
        .expect("fill");
    drop(pets);
    db.close().expect("close");
}

#[test]
fn there_and_back() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (shop, backup, back) = (at("shop"), at("backup"), at("back"));
    stored(&place.path().join("shop"));
    let output = pantile(&["backup", &shop, "--to", &backup]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.starts_with(&format!("1 tables and {ROWS} rows backed up to {backup}: ")), "{told}");
    let output = pantile(&["restore", &backup, "--to", &back, "--json", "-"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&report["tables"], &report["rows"]), (&1.into(), &ROWS.into()));
    assert!(pantile(&["check", &back]).status.success());
    let slow = pantile(&["backup", &back, "--to", &at("slow"), "--rate", "4000000", "--json", "-"]);
    let report: serde_json::Value = serde_json::from_slice(&slow.stdout).unwrap();
    assert_eq!((&report["rows"], &report["is_current"]), (&ROWS.into(), &true.into()));
    assert!(report["seconds"].as_f64() > Some(0.4), "{report}");
}

/// The process may write no long files.
#[test]
fn no_room_for_a_copy() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (shop, backup) = (at("shop"), at("backup"));
    stored(&place.path().join("shop"));
    assert!(pantile(&["backup", &shop, "--to", &backup]).status.success());
    for (verb, from, to) in
        [("backup", &shop, "--to"), ("restore", &backup, "--to"), ("salvage", &shop, "--into")]
    {
        for blocks in [64, 4096] {
            // In blocks of 512 bytes.
            let limited = format!("ulimit -f {blocks} && exec \"$0\" \"$@\"");
            let mut shell = Command::new("sh");
            shell.args(["-c", &limited, env!("CARGO_BIN_EXE_pantile"), verb, from, to, &at("copy")]);
            let output = shell.output().expect("the command runs");
            let told = text(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{verb}: {told}");
            assert!(told.contains("no room ("), "{verb}: {told}");
            assert!(!told.contains("delete rows") && told.contains("`ulimit -f`"), "{verb}: {told}");
            assert!(!place.path().join("copy").exists(), "{verb}, {blocks} blocks: {told}");
        }
    }
}

/// Another process has the database open: this one.
#[test]
fn beside_the_process_that_writes() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (shop, backup) = (at("shop"), at("backup"));
    stored(&place.path().join("shop"));
    let db = Database::open(&shop).expect("open");
    let pets = db.table("pets").expect("table");
    db.run(|txn| txn.insert(&pets, &[ROWS.into(), Value::Bytes(&[8; 10])])).expect("insert");
    let output = pantile(&["backup", &shop, "--to", &backup]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let dumped = pantile(&["dump", &shop, "--table", "pets", "--format", "csv"]);
    assert!(dumped.status.success(), "{}", text(&dumped.stderr));
    assert_eq!(text(&dumped.stdout).lines().count() as u64, 1 + ROWS + 1, "a header and the rows");
    db.run(|txn| txn.delete(&pets, &[ROWS.into()])).expect("the writer goes on");
    let copy = Database::open(&backup).expect("open");
    let txn = copy.begin_read().expect("begin");
    let rows = txn.count(&copy.table("pets").expect("table"), pantile::Range::all());
    assert_eq!(rows.expect("count"), ROWS + 1);
}

#[test]
fn what_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (shop, backup) = (at("shop"), at("backup"));
    stored(&place.path().join("shop"));
    let refused = |args: &[&str], status: i32, phrase: &str| {
        let output = pantile(args);
        let told = text(&output.stderr);
        assert!(output.status.code() == Some(status) && told.contains(phrase), "{args:?}: {told}");
        assert_eq!(told.lines().filter(|line| line.starts_with("pantile: ")).count(), 1, "{told}");
    };
    refused(&["backup", &shop, "--to", &shop], 1, "shop is not empty");
    refused(&["backup", &at("none"), "--to", &backup], 1, "there is no database in");
    refused(&["backup", &shop], 2, "--to");
    refused(&["backup", &shop, "--to", &backup, "--rate", "0"], 2, "--rate");
    assert!(!place.path().join("backup").exists());
    assert!(pantile(&["backup", &shop, "--to", &backup]).status.success());
    refused(&["backup", &shop, "--to", &backup], 1, "backup is not empty");
    refused(&["backup", &shop, "--to", &backup, "--since", &backup], 2, "cannot be since itself");
    refused(&["restore", &backup, "--to", &shop], 1, "shop is not empty");
    let data = place.path().join("backup/pantile.data");
    let mut bytes = std::fs::read(&data).unwrap();
    let at_row = bytes.windows(8).position(|bytes| bytes == [7; 8]).unwrap();
    bytes[at_row] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    refused(&["restore", &backup, "--to", &at("back")], 1, "damaged data at the copy of the backup in");
    assert!(!place.path().join("back").exists());
    let part = place.path().join("part/pantile.incomplete");
    std::fs::create_dir_all(&part).unwrap();
    std::fs::copy(&data, part.join("pantile.data")).unwrap();
    for verb in ["check", "inspect", "compact"] {
        refused(&[verb, &at("part")], 1, "that was not completed");
    }
    refused(&["restore", &at("part"), "--to", &at("back")], 1, "not completed");
}

/// Ctrl-C while it copies leaves nothing behind, and says so.
#[cfg(unix)]
#[test]
fn an_interrupted_copy_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    let (shop, backup, to) = (at("shop"), at("backup"), at("to"));
    stored(&place.path().join("shop"));
    assert!(pantile(&["backup", &shop, "--to", &backup]).status.success());
    for (args, made) in [
        (["restore", &backup, "--to", &to], "to/pantile.restoring"),
        (["salvage", &shop, "--into", &to], "to.unfinished/pantile.data"),
    ] {
        let made = place.path().join(made);
        // It may be faster than the signal.
        let patience = Patience::new();
        loop {
            patience.check(|| format!("{args:?} was never caught at work"));
            let _ = std::fs::remove_dir_all(&to);
            let mut child = Command::new(env!("CARGO_BIN_EXE_pantile"))
                .args(args)
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .expect("the command runs");
            while !made.exists() && child.try_wait().expect("a status").is_none() {
                std::hint::spin_loop();
            }
            let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).output();
            sent.expect("kill runs");
            let output = child.wait_with_output().expect("the command ends");
            let is_stopped = output.status.code() == Some(130);
            if is_stopped {
                assert!(text(&output.stderr).starts_with("pantile: stopped"), "{}", text(&output.stderr));
            }
            if is_stopped && text(&output.stderr).contains("is removed") {
                break;
            }
        }
        assert!(!made.exists());
    }
}
