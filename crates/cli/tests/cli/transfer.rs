//! Dumping and loading, as people and scripts do it.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pantile::{Database, IndexDef, TableDef, Type, Value};
use tempfile::TempDir;

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn pantile(args: &[&str]) -> Output {
    command(args).output().expect("the command runs")
}

/// Runs a verb that reads `input`.
fn feed(args: &[&str], input: &[u8]) -> Output {
    let mut child = command(args).stdin(Stdio::piped()).spawn().expect("the command runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    // A command that has failed reads no more.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("the command ends")
}

fn told(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr.clone()).expect("UTF-8"))
}

#[track_caller]
fn succeeds(output: Output) -> Vec<u8> {
    assert_eq!(output.status.code(), Some(0), "{:?}", told(&output));
    output.stdout
}

/// A database with a table of `rows` rows and an empty one, and a directory beside it.
fn shop(rows: u32) -> (TempDir, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("shop");
    let db = Database::open(&path).expect("a database");
    let orders = TableDef::new("orders")
        .column("id", Type::U32)
        .nullable("note", Type::String(40))
        .primary_key(["id"])
        .index(IndexDef::new("by_note", ["note"]));
    let orders = db.create_table(orders).expect("a table");
    db.create_table(TableDef::new("none").column("id", Type::U8).primary_key(["id"])).expect("a table");
    let note = |id| if id % 3 == 0 { Value::Null } else { "a \"note\",\nof two lines".into() };
    db.run(|txn| (0..rows).try_for_each(|id| txn.insert(&orders, &[id.into(), note(id)]))).expect("rows");
    drop(orders);
    db.close().expect("closed");
    (dir, path.to_str().expect("UTF-8").to_owned())
}

fn at(dir: &TempDir, name: &str) -> String {
    dir.path().join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn a_dump_is_loaded_from_a_pipe_a_file_and_a_directory() {
    let (dir, shop) = shop(1000);
    let output = pantile(&["dump", &shop]);
    let (_, summary) = told(&output);
    let dump = succeeds(output);
    assert!(summary.starts_with(&format!("2 tables, 1000 rows, {} bytes; ", dump.len())), "{summary}");
    let (file, csv, json) = (at(&dir, "shop.dump"), at(&dir, "csv"), at(&dir, "json"));
    fs::write(&file, &dump).expect("written");
    succeeds(pantile(&["dump", &shop, "--into", &csv, "--format", "csv"]));
    let quiet = pantile(&["dump", &shop, "--into", &json, "--quiet"]);
    assert_eq!((told(&quiet), quiet.stdout), ((Some(0), String::new()), Vec::new()));
    for (name, from) in [("pipe", "-"), ("file", &file), ("csv2", &csv), ("json2", &json)] {
        let new = at(&dir, name);
        let output = feed(&["load", &new, "--create", "--from", from], &dump);
        let told = String::from_utf8(succeeds(output)).expect("UTF-8");
        assert!(told.starts_with("2 tables created, 1000 rows loaded; "), "{told}");
        assert_eq!(succeeds(pantile(&["dump", &new])), dump, "{name}");
        succeeds(pantile(&["check", &new]));
    }
    assert!(Path::new(&json).join("orders.jsonl").exists() && Path::new(&csv).join("schema.jsonl").exists());
}

#[test]
fn rows_go_into_a_table_that_exists() {
    let (dir, shop) = shop(100);
    let schema = succeeds(pantile(&["dump", &shop, "--schema"]));
    let dump = succeeds(pantile(&["dump", &shop, "--table", "orders"]));
    for format in ["csv", "jsonl"] {
        let new = at(&dir, format);
        succeeds(feed(&["load", &new, "--create"], &schema));
        let rows = succeeds(pantile(&["dump", &shop, "--table", "orders", "--format", format]));
        let load = ["load", &new, "--table", "orders", "--format", format];
        let record = succeeds(feed(&[&load[..], &["--json", "-"]].concat(), &rows));
        let record: serde_json::Value = serde_json::from_slice(&record).expect("JSON");
        assert_eq!((&record["rows"], &record["tables_created"]), (&100.into(), &0.into()));
        assert_eq!(record["bytes"], rows.len());
        assert_eq!(succeeds(pantile(&["dump", &new, "--table", "orders"])), dump);
        let twice = told(&feed(&load, &rows));
        let line = if format == "csv" { 2 } else { 1 };
        let message = format!(
            "pantile: line {line}: table \"orders\" already has a row with this key of index \"primary\"; nothing was loaded\n"
        );
        assert_eq!(twice, (Some(1), message));
        assert_eq!(succeeds(pantile(&["dump", &new, "--table", "orders"])), dump);
    }
    let one = at(&dir, "one");
    succeeds(feed(&["load", &one, "--create", "--table", "orders"], &succeeds(pantile(&["dump", &shop]))));
    assert_eq!(succeeds(pantile(&["dump", &one])), dump);
}

#[test]
fn a_load_that_fails_leaves_nothing() {
    let (dir, shop) = shop(50);
    let dump = succeeds(pantile(&["dump", &shop]));
    let new = at(&dir, "new");
    for end in (0..dump.len() - 1).filter(|end| dump[*end] == b'\n') {
        let (status, told) = told(&feed(&["load", &new, "--create"], &dump[..=end]));
        assert_eq!(status, Some(1));
        assert!(
            told.ends_with("it is truncated; nothing was loaded\n") && told.lines().count() == 1,
            "{told}"
        );
        assert!(!Path::new(&new).exists());
    }
    let empty = at(&dir, "empty");
    fs::create_dir(&empty).expect("a directory");
    assert_eq!(told(&feed(&["load", &empty, "--create"], &dump[..dump.len() / 2])).0, Some(1));
    assert_eq!(fs::read_dir(&empty).expect("the directory").count(), 0);
    // As a new file system has it.
    let lost = Path::new(&empty).join("lost+found");
    fs::create_dir(&lost).expect("a directory");
    assert_eq!(told(&feed(&["load", &empty, "--create"], &dump[..dump.len() / 2])).0, Some(1));
    assert_eq!(fs::read_dir(&empty).expect("the directory").count(), 1);
    fs::remove_dir(&lost).expect("removed");
    // What was there is the caller's, whatever its name.
    let cut = Path::new(&empty).join("pantile.dump");
    fs::write(&cut, &dump[..dump.len() / 2]).expect("written");
    let output = pantile(&["load", &empty, "--create", "--from", cut.to_str().expect("UTF-8")]);
    assert_eq!(told(&output).0, Some(1));
    assert_eq!(fs::read_dir(&empty).expect("the directory").count(), 1);
    fs::remove_file(&cut).expect("it is there");
    succeeds(feed(&["load", &empty, "--create"], &dump));
    // A database that was there stays, even without tables.
    fs::remove_dir_all(&empty).expect("removed");
    Database::open(&empty).expect("a database").close().expect("closed");
    assert_eq!(told(&feed(&["load", &empty, "--create"], &dump[..dump.len() / 2])).0, Some(1));
    succeeds(feed(&["load", &empty], &dump));
    let load = ["load", &shop, "--table", "orders", "--format", "csv"];
    for (rows, message) in [
        ("id,nose\n", "line 1: column \"nose\" of table \"orders\" does not exist"),
        (
            "id\n900\nx\n",
            "line 3, column \"id\": u32 (a whole number from 0 to 4294967295) is expected, not \"x\"",
        ),
    ] {
        let message = format!("pantile: {message}; nothing was loaded\n");
        assert_eq!(told(&feed(&load, rows.as_bytes())), (Some(1), message));
    }
    let none = told(&pantile(&["load", &at(&dir, "nowhere"), "--from", "/nowhere"]));
    assert_eq!(
        none,
        (Some(1), "pantile: cannot read /nowhere: No such file or directory (os error 2)\n".into())
    );
    let (status, complaint) = told(&feed(&["load", &at(&dir, "nowhere")], &dump));
    assert_eq!(status, Some(1));
    assert!(complaint.starts_with("pantile: there is no database in "), "{complaint}");
    assert_eq!(succeeds(pantile(&["dump", &shop])), dump);
    let output = feed(&[&load[..], &["--batch", "2"]].concat(), b"id\n900\n901\n902\n903\n904\nx\n");
    let (status, complaint) = told(&output);
    let wanted =
        "; 4 rows of table \"orders\", up to line 5, are committed and stay; nothing else was loaded\n";
    assert!(status == Some(1) && complaint.ends_with(wanted), "{complaint}");
    let rows = succeeds(pantile(&["dump", &shop, "--table", "orders", "--format", "csv"]));
    assert!(String::from_utf8(rows).expect("UTF-8").ends_with("902,\\N\n903,\\N\n"));
}

#[test]
fn wrong_command_lines_are_status_2() {
    let (dir, shop) = shop(1);
    let text = at(&dir, "text");
    succeeds(pantile(&["dump", &shop, "--into", &text]));
    for wrong in [
        &["dump"][..],
        &["dump", &shop, "--format", "csv"],
        &["dump", &shop, "--format", "xml", "--table", "orders"],
        &["dump", &shop, "--format", "csv", "--table", "orders", "--table", "none"],
        &["dump", &shop, "--schema", "--into", "there"],
        &["load"],
        &["load", &shop, "--format", "csv"],
        &["load", &shop, "--batch", "0"],
        &["load", &shop, "--null", "x"],
        &["load", &shop, "--from", &text, "--format", "csv", "--table", "orders"],
    ] {
        let output = pantile(wrong);
        let (status, told) = told(&output);
        assert_eq!((status, told.lines().count()), (Some(2), 1), "{wrong:?}: {told}");
        assert!(output.stdout.is_empty() && told.starts_with("pantile: "), "{told}");
    }
    for failing in
        [&["dump", "/nowhere"][..], &["dump", &shop, "--table", "x"], &["dump", &shop, "--into", &text]]
    {
        let (status, told) = told(&pantile(failing));
        assert_eq!((status, told.lines().count()), (Some(1), 1), "{failing:?}: {told}");
    }
    for verb in ["dump", "load"] {
        let help = succeeds(pantile(&[verb, "--help"]));
        assert!(String::from_utf8(help).expect("UTF-8").contains("Examples:"));
    }
}

/// `head` and others leave when they have seen enough.
#[test]
fn a_reader_that_leaves_is_a_failure_of_a_whole_dump_only() {
    let (_dir, shop) = shop(50_000);
    for more in [&[][..], &["--schema"], &["--table", "orders", "--format", "csv"]] {
        for seen in [0, 10_000] {
            let mut child =
                command(&[&["dump", &shop][..], more].concat()).spawn().expect("the command runs");
            let mut stdout = child.stdout.take().expect("a pipe");
            let mut part = Vec::new();
            stdout.by_ref().take(seen).read_to_end(&mut part).expect("read");
            drop(stdout);
            let (status, told) = told(&child.wait_with_output().expect("the command ends"));
            assert_eq!(status, Some(i32::from(more.is_empty())), "{told}");
            assert!(!told.contains("panicked"), "{told}");
            assert_eq!(told.contains("has left, which is not whole"), more.is_empty(), "{told}");
        }
    }
    let full = command(&["dump", &shop]).stdout(fs::File::create("/dev/full").expect("a device")).output();
    let (status, told) = told(&full.expect("the command runs"));
    assert_eq!(
        (status, told.as_str()),
        (
            Some(1),
            "pantile: cannot write the output: No space left on device (os error 28); what was written, if anything, is not the whole\n"
        )
    );
}

#[cfg(unix)]
#[test]
fn an_interrupted_load_leaves_nothing() {
    let (_dir, shop) = shop(10);
    let before = succeeds(pantile(&["dump", &shop]));
    let mut child = command(&["load", &shop, "--table", "orders", "--format", "csv"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut line = String::from("id,note\n");
    // More than the pipe holds, so that the command is at work.
    (1000..20_000).for_each(|id| line += &format!("{id},a note of some length\n"));
    stdin.write_all(line.as_bytes()).expect("the command reads");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(kill.expect("kill runs").success());
    for id in 20_000..u32::MAX {
        if stdin.write_all(format!("{id},a note of some length\n").as_bytes()).is_err() {
            break;
        }
    }
    let output = child.wait_with_output().expect("the command ends");
    let lines = "stopping; Ctrl-C again ends it at once\npantile: interrupted; nothing was loaded\n";
    assert_eq!(told(&output), (Some(1), lines.into()));
    assert_eq!(succeeds(pantile(&["dump", &shop])), before);
}
