//! `pantile crashtest`: processes are really killed, and faults really found.
//!
//! `PANTILE_CRASH_ROUNDS` and `PANTILE_CRASH_SEED` give more rounds and others.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use pantile_testkit::{Patience, await_that, from_env};
use serde_json::Value;

fn pantile() -> Command {
    Command::new(env!("CARGO_BIN_EXE_pantile"))
}

fn run(args: &[&str]) -> Output {
    pantile().args(args).output().expect("the command runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

fn is_empty(dir: &Path) -> bool {
    dir.read_dir().expect("a directory").next().is_none()
}

/// Some rounds, which must find nothing. Returns the record.
fn rounds(more: &[&str]) -> Value {
    let seed = from_env("PANTILE_CRASH_SEED", u64::from(std::process::id())).to_string();
    let rounds = from_env("PANTILE_CRASH_ROUNDS", 4).to_string();
    println!("PANTILE_CRASH_SEED={seed} PANTILE_CRASH_ROUNDS={rounds}");
    let dir = tempfile::tempdir().unwrap();
    let mut command = pantile();
    command.args(["crashtest", "--seed", &seed, "--rounds", &rounds, "--json", "-"]).args(more);
    let output = command.env("TMPDIR", dir.path()).output().unwrap();
    if !output.status.success() {
        let kept = dir.keep();
        panic!("{}\nkept in {}", text(&output.stderr), kept.display());
    }
    assert!(is_empty(dir.path()), "what is not needed any more goes");
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["losses"], &record["rounds"]), (&0.into(), &rounds.parse::<u64>().unwrap().into()));
    assert!(record["transactions_acknowledged"].as_u64().unwrap() > 0, "{record}");
    let kills: u64 = record["kills"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    assert!(kills >= record["rounds"].as_u64().unwrap(), "{record}");
    record
}

/// Rounds, and more if all lives were too short for the collector.
fn rounds_that_collect(more: &[&str]) {
    let collected = |record: Value| record["collector"]["blocks_reclaimed"].as_u64().unwrap();
    let patience = Patience::new();
    while collected(rounds(more)) == 0 {
        patience.check(|| "nothing was collected".into());
    }
}

#[test]
fn a_killed_process_loses_nothing_on_a_synced_file() {
    rounds_that_collect(&[]);
}

#[test]
fn a_killed_process_loses_nothing_with_group_commit() {
    rounds(&["--durability", "group", "--gc", "tb-collect-eager"]);
}

#[test]
fn a_killed_process_loses_nothing_even_without_syncs() {
    rounds(&["--durability", "none", "--threads", "2"]);
}

#[test]
fn a_killed_process_loses_nothing_on_emulated_memory() {
    rounds_that_collect(&["--medium", "nvm:E"]);
}

#[test]
fn a_killed_process_loses_nothing_without_a_collector() {
    let record = rounds(&["--gc", "none", "--threads", "1"]);
    assert_eq!(record["collector"]["blocks_reclaimed"], 0);
}

#[test]
fn a_killed_process_loses_nothing_under_any_protocol() {
    for protocol in pantile_protocols::all() {
        let record = rounds(&["--protocol", protocol.name(), "--threads", "2"]);
        assert_eq!(record["protocol"], protocol.name(), "{record}");
    }
}

#[test]
fn faults_are_found_told_and_kept() {
    for (fault, told) in
        [("acknowledge-early", "acknowledged transactions are missing"), ("lose-row", "table items: ")]
    {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().to_str().unwrap();
        let args = ["crashtest", "--rounds", "100", "--seed", "5", "--dir", place, "--sabotage", fault];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(1), "{fault} was not found: {}", text(&output.stdout));
        let out = text(&output.stdout);
        assert!(out.contains(told), "{out}");
        assert!(out.contains("again: pantile crashtest --rounds ") && out.contains(" --seed 5 "), "{out}");
        let line = text(&output.stderr).lines().last().unwrap();
        assert!(line.starts_with("pantile: round ") && line.contains(" with seed 5: "), "{line}");
        let kept = line.rsplit(' ').next().map(Path::new).unwrap();
        for part in ["db", "found", "acknowledged", "errors"] {
            assert!(kept.join(part).exists(), "{part} was not kept in {}", kept.display());
        }
    }
}

#[test]
fn the_two_halves_work_apart() {
    let dir = tempfile::tempdir().unwrap();
    let (db, first, second) = (dir.path().join("db"), dir.path().join("first"), dir.path().join("second"));
    let work = |life: &str, acks: &Path| {
        let mut command = pantile();
        command.arg("crashtest-work").arg(&db).args(["--seed", "3", "--life", life]);
        command.args(["--close-after", "0.2", "--acks"]).arg(acks).output().unwrap()
    };
    assert!(work("1", &first).status.success());
    assert!(work("2", &second).status.success());
    let verify = |acks: &[&Path]| {
        let mut command = pantile();
        command.arg("crashtest-verify").arg(&db);
        acks.iter().for_each(|acks| _ = command.arg("--acks").arg(acks));
        command.output().unwrap()
    };
    let whole = verify(&[&first, &second]);
    assert!(whole.status.success(), "{}", text(&whole.stderr));
    assert!(text(&whole.stdout).ends_with(" transactions acknowledged, 0 losses\n"));
    // Nobody acknowledged this one, and the line after it was cut off.
    let mut told = fs::read_to_string(&second).unwrap();
    told += "commit 1 1000000 1000000\ncommit 2 20000";
    fs::write(&second, told).unwrap();
    let missing = verify(&[&first, &second]);
    assert_eq!(missing.status.code(), Some(1));
    let out = text(&missing.stdout);
    assert!(out.starts_with("client 1: the last ") && out.lines().count() == 1, "{out}");
}

#[test]
fn ctrl_c_ends_a_test_cleanly() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = pantile();
    command.args(["crashtest", "--seconds", "600", "--json", "-"]).env("TMPDIR", dir.path());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    await_that("the test has begun", || !is_empty(dir.path()));
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let record: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&record["interrupted"], &record["losses"]), (&true.into(), &0.into()));
    assert!(text(&output.stderr).trim_end().ends_with("; interrupted"));
    assert!(is_empty(dir.path()));
}

#[test]
fn wrong_arguments_are_one_line_and_status_2() {
    for wrong in [
        &["crashtest", "--rounds", "0"][..],
        &["crashtest", "--rounds", "3", "--seconds", "3"],
        &["crashtest", "--medium", "dram"],
        &["crashtest", "--gc", "all"],
        &["crashtest", "--threads", "0"],
        &["crashtest-verify", "db"],
    ] {
        let output = run(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty());
        let complaint = text(&output.stderr);
        assert!(complaint.starts_with("pantile: ") && complaint.lines().count() == 1, "{complaint}");
    }
}

#[test]
fn what_cannot_be_written_is_a_failure() {
    let output = run(&["crashtest", "--rounds", "1", "--json", "/nowhere/record.json"]);
    assert_eq!(output.status.code(), Some(1));
    let line = text(&output.stderr).lines().last().unwrap();
    assert_eq!(line, "pantile: cannot write /nowhere/record.json: No such file or directory (os error 2)");
}

#[test]
fn help_has_an_example() {
    let output = run(&["crashtest", "--help"]);
    assert!(text(&output.stdout).contains("pantile crashtest --rounds 50"), "{}", text(&output.stdout));
    assert!(!text(&run(&["--help"]).stdout).contains("crashtest-work"));
}

#[test]
fn what_is_not_simulated_is_refused() {
    for (option, value) in [("--durability", "none"), ("--dir", "/tmp"), ("--sabotage", "lose-row")] {
        let args = ["crashtest", "--simulate", "--cuts", "1", option, value];
        let output = run(&args);
        assert_eq!(output.status.code(), Some(2), "{option}");
        let told = text(&output.stderr);
        assert!(told.contains(&format!("--simulate has no {option}")), "{told}");
    }
}
