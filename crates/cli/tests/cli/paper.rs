//! `pantile paper` as people and scripts use it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn paper(args: &[&str]) -> Output {
    command(args).output().expect("the command runs")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pantile"));
    command.arg("paper").args(args);
    command
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("UTF-8")
}

/// What is said on stderr, but for the warning of a debug build.
fn told(output: &Output) -> Vec<&str> {
    text(&output.stderr).lines().filter(|line| !line.starts_with("warning: this is a debug build")).collect()
}

/// How many runs are announced.
fn announced(output: &Output) -> usize {
    let line = told(output).into_iter().find(|line| line.contains(" runs, as far as ")).expect("it is told");
    line.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

fn record(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("claims.json")).expect("there")).expect("JSON")
}

#[test]
fn claims_are_listed() {
    let output = paper(&["--list"]);
    assert!(output.status.success());
    let list = text(&output.stdout);
    assert_eq!(list.lines().count(), 30);
    assert!(list.lines().any(|line| line.starts_with("TB-7a ")) && list.contains("ZN-24/25/26"));
    assert_eq!(text(&paper(&["--list", "st-t5"]).stdout).lines().count(), 1);
}

#[test]
fn an_unknown_claim_is_one_line_and_status_2() {
    let dir = tempfile::tempdir().unwrap();
    let output = paper(&["TB-7a", "TB-77", "--out", dir.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        told(&output),
        ["pantile: there is no claim \"TB-77\"; `pantile paper --list` lists all claims"]
    );
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}

#[test]
fn a_report_is_written_and_gone_on_with() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("report");
    let args = ["ZN-17", "--quick", "--budget", "1", "--out", dir.to_str().unwrap()];
    let first = paper(&args);
    assert!(first.status.success(), "{:?}", told(&first));
    assert!(text(&first.stdout).contains("index.html"));
    let page = fs::read_to_string(dir.join("index.html")).unwrap();
    assert!(page.contains("ZN-17") && page.contains("<svg"));
    let claims = record(&dir);
    assert_eq!((&claims[0]["id"], claims.as_array().unwrap().len()), (&"ZN-17".into(), 1));
    assert_eq!(claims[0]["verdict"], "cannot be judged here");
    let made = claims[0]["runs"].as_u64().unwrap() as usize;
    assert!(made >= 1);
    let lines = fs::read_to_string(dir.join("runs.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), made);

    let again = paper(&args);
    assert_eq!(announced(&again), announced(&first) - made);
    let fresh = paper(&[&args[..], &["--fresh"]].concat());
    assert_eq!(announced(&fresh), announced(&first));
}

#[test]
fn an_interrupted_report_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = command(&["ZN-17", "--out", dir.path().to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Once it has told what it will do it can be interrupted.
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while !lines.next().expect("it says so").unwrap().contains(" runs, as far as ") {}
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    lines.for_each(drop);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("interrupted; the same command goes on"));
    assert!(fs::read_to_string(dir.path().join("index.html")).unwrap().contains("were interrupted"));
    assert_eq!(record(dir.path())[0]["verdict"], "cannot be judged here");
}
