//! The shell, as scripts call it.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{ChildStdin, Command, Output, Stdio};

use pantile::{Database, TableDef, Type};
use tempfile::TempDir;

fn shell(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
    command.arg("shell").args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn told(output: &Output) -> (Option<i32>, &str, &str) {
    let text = |bytes| std::str::from_utf8(bytes).expect("UTF-8");
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn run(args: &[&str]) -> Output {
    shell(args).output().expect("the command runs")
}

/// Runs the shell with a script on stdin.
fn feed(args: &[&str], script: &str) -> Output {
    let mut child = shell(args).stdin(Stdio::piped()).spawn().expect("the command runs");
    // A shell that has failed reads no more.
    let _ = child.stdin.take().expect("a pipe").write_all(script.as_bytes());
    child.wait_with_output().expect("the command ends")
}

/// A database with a table of `rows` rows.
fn shop(rows: u32) -> (TempDir, String) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("shop");
    let db = Database::open(&path).expect("a database");
    let def = TableDef::new("orders").column("id", Type::U32).column("note", Type::String(40));
    let orders = db.create_table(def.primary_key(["id"])).expect("a table");
    db.run(|txn| (0..rows).try_for_each(|id| txn.insert(&orders, &[id.into(), "a note".into()])))
        .expect("rows");
    drop(orders);
    db.close().expect("closed");
    (dir, path.to_str().expect("UTF-8").to_owned())
}

#[test]
fn commands_and_scripts_print_results_and_end_with_a_status() {
    let (dir, path) = shop(3);
    let output = run(&[&path, "-c", "tables", "-c", "count orders"]);
    assert_eq!(told(&output), (Some(0), "orders\n3\n", ""));
    let output = run(&[&path, "--mode", "csv", "-c", "scan orders limit 1"]);
    assert_eq!(told(&output), (Some(0), "id,note\n0,a note\n", ""));
    let output = feed(&[&path], "# a script\ninsert orders 7 new\n\nget orders x\ninsert orders 8 new\n");
    let says = "pantile: stdin, line 4: column \"id\": u32 (a whole number from 0 to 4294967295) is expected, not \"x\"\n";
    assert_eq!(told(&output), (Some(1), "inserted\n", says));
    let output = feed(&[&path, "--mode", "jsonl"], "get orders 7\ncount orders\n.quit\nget nothing\n");
    assert_eq!(told(&output), (Some(0), "{\"id\":7,\"note\":\"new\"}\n4\n", ""));
    let output = run(&[&path, "-c", "begin", "-c", "delete orders 7"]);
    let says = "pantile: a transaction was left open and is rolled back; `commit` would have kept it\n";
    assert_eq!(told(&output), (Some(1), "begun\ndeleted\n", says));
    assert_eq!(told(&run(&[&path, "-c", "count orders"])), (Some(0), "4\n", ""));
    let new = dir.path().join("new");
    let new = new.to_str().expect("UTF-8");
    let output = run(&[new, "-c", "tables"]);
    let (status, _, says) = told(&output);
    assert_eq!(
        (status, says),
        (Some(1), &*format!("pantile: there is no database in {new}; --create makes one\n"))
    );
    assert_eq!(told(&run(&[new, "--create", "-c", "tables"])), (Some(0), "", ""));
    assert_eq!(run(&[new, "--create", "--read-only"]).status.code(), Some(2));
}

/// The limit on the length of files stands for a device without room.
#[test]
fn a_dump_that_finds_no_room_names_its_file_and_leaves_none() {
    let (dir, path) = shop(5_000);
    let file = dir.path().join("orders.csv");
    let file = file.to_str().expect("UTF-8");
    // In blocks of 512 bytes. With the signal ignored, writing fails.
    let limited = "ulimit -f 16 && trap '' XFSZ && exec \"$0\" \"$@\"";
    let shell = [env!("CARGO_BIN_EXE_pantile"), "shell", &path, "--read-only", "-c"];
    let command = format!("dump orders {file}");
    let output = Command::new("sh").args(["-c", limited]).args(shell).arg(&command).output();
    let output = output.expect("the command runs");
    let (status, _, says) = told(&output);
    assert_eq!(status, Some(1));
    assert!(says.starts_with(&format!("pantile: cannot write {file}: ")), "{says}");
    assert!(!std::path::Path::new(file).exists(), "a part of a table is no dump of it");
    let output = run(&[&path, "-c", &command]);
    assert_eq!(told(&output), (Some(0), &*format!("5000 rows written to {file}\n"), ""));
}

#[test]
fn a_process_that_has_the_database_open_is_named_and_can_be_read_beside() {
    let (_dir, path) = shop(3);
    let db = Database::open(&path).expect("open");
    let output = run(&[&path, "-c", "tables"]);
    let (status, _, says) = told(&output);
    assert_eq!(status, Some(1));
    assert!(says.contains(&std::process::id().to_string()), "{says}");
    assert!(says.ends_with("close it there first, or read beside it with --read-only\n"), "{says}");
    assert_eq!(told(&run(&[&path, "--read-only", "-c", "count orders"])), (Some(0), "3\n", ""));
    let output = run(&[&path, "--read-only", "-c", "delete orders 1"]);
    assert_eq!(told(&output).0, Some(1));
    assert!(told(&output).2.contains("read-only"), "{output:?}");
    db.close().expect("closed");
}

#[test]
fn a_reader_that_leaves_is_no_failure_of_a_shell() {
    let (_dir, path) = shop(50_000);
    for mode in ["table", "csv", "jsonl"] {
        let mut child =
            shell(&[&path, "--mode", mode, "-c", "scan orders"]).spawn().expect("the command runs");
        let mut stdout = child.stdout.take().expect("a pipe");
        let mut first = [0; 8];
        stdout.read_exact(&mut first).expect("rows");
        drop(stdout);
        let output = child.wait_with_output().expect("the command ends");
        assert_eq!(told(&output), (Some(0), "", ""), "{mode}");
    }
}

/// What comes behind it would be taken for done.
#[test]
fn commands_behind_a_reader_that_leaves_are_missed() {
    let (_dir, path) = shop(50_000);
    let scripts =
        [("", "scan orders\ndelete orders 1\n"), ("; the transaction", "begin\nscan orders\ncommit\n")];
    for (told_too, script) in scripts {
        let mut child = shell(&[&path]).stdin(Stdio::piped()).spawn().expect("the command runs");
        child.stdin.take().expect("a pipe").write_all(script.as_bytes()).expect("a script");
        let mut stdout = child.stdout.take().expect("a pipe");
        stdout.read_exact(&mut [0; 8]).expect("rows");
        drop(stdout);
        let output = child.wait_with_output().expect("the command ends");
        let (status, _, says) = told(&output);
        assert_eq!(status, Some(1), "{says}");
        assert!(says.contains("has left, and commands that follow may not have run"), "{says}");
        assert!(says.contains(told_too), "{says}");
    }
    let mut child =
        shell(&[&path, "-c", "scan orders", "-c", "delete orders 1"]).spawn().expect("the command runs");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("the command ends").code(), Some(1));
    assert_eq!(told(&run(&[&path, "-c", "count orders"])), (Some(0), "50000\n", ""));
}

#[test]
fn a_long_scan_streams_and_can_be_interrupted() {
    let (_dir, path) = shop(50_000);
    let mut child = shell(&[&path, "-c", "scan orders"]).spawn().expect("the command runs");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut first = [0; 8];
    // The pipe is full soon, so the scan is under way until it is read.
    stdout.read_exact(&mut first).expect("rows");
    let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("a signal");
    assert!(killed.success());
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("what was printed");
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(told(&output), (Some(1), "", "pantile: interrupted; this command changed nothing\n"));
    assert!(rest.lines().count() < 49_000, "{}", rest.lines().count());
}

/// As under `nohup`: the terminal goes, and the command goes on.
#[test]
fn what_the_caller_ignores_stays_ignored() {
    let (_dir, path) = shop(3);
    let mut child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_pantile"), "shell", &path])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut count = |stdin: &mut ChildStdin| {
        writeln!(stdin, "count orders").expect("the command reads");
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it answers");
        assert_eq!(line, "3\n");
    };
    count(&mut stdin);
    let sent = Command::new("kill").args(["-HUP", &child.id().to_string()]).status().expect("a signal");
    assert!(sent.success());
    count(&mut stdin);
    drop(stdin);
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
}

/// A supervisor ends it with one signal while it waits for commands, and it says what it did not keep.
#[test]
fn a_shell_that_waits_on_a_pipe_ends_when_it_is_told_to() {
    let (_dir, path) = shop(3);
    for signal in ["-TERM", "-INT"] {
        let mut child = shell(&[&path]).stdin(Stdio::piped()).spawn().expect("the command runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        writeln!(stdin, "begin\ndelete orders 1").expect("the command reads");
        let mut answers = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        assert_eq!(answers.next().expect("an answer").expect("UTF-8"), "begun");
        assert_eq!(answers.next().expect("an answer").expect("UTF-8"), "deleted");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().expect("a signal");
        assert!(sent.success());
        let output = child.wait_with_output().expect("the command ends");
        let says = "pantile: cannot read stdin: interrupted; the transaction that was open is rolled back\n";
        assert_eq!(told(&output), (Some(1), "", says), "{signal}");
        drop(stdin);
        assert_eq!(told(&run(&[&path, "-c", "count orders"])).1, "3\n");
    }
    let output = feed(&[&path], "begin\ndelete orders 1\nbogus\n");
    let says =
        "there is no command \"bogus\"; `.help` lists them; the transaction that was open is rolled back\n";
    assert_eq!(told(&output).2, format!("pantile: stdin, line 3: {says}"));
}
