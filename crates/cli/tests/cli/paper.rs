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

/// What a command said on stderr until it was interrupted, and its output.
/// It is interrupted once it has said a certain line: how far it comes does
/// not depend on the machine.
fn interrupted_at(args: &[&str], is_line: impl Fn(&str) -> bool) -> (Vec<String>, Output) {
    let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    let mut said = Vec::new();
    loop {
        said.push(lines.next().expect("it says so"));
        if is_line(&said[said.len() - 1]) {
            break;
        }
    }
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    said.extend(lines);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{said:?}");
    (said, output)
}

fn is_announcement(line: &str) -> bool {
    line.contains(" runs in about ")
}

/// How many runs are announced.
fn announced(said: &[String]) -> usize {
    let line = said.iter().find(|line| is_announcement(line)).expect("it is told");
    line.split(' ').next().and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn a_report_is_written_and_gone_on_with() {
    let outer = tempfile::tempdir().unwrap();
    let dir = outer.path().join("report");
    let args = ["ZN-17", "--quick", "--out", dir.to_str().unwrap()];
    let (first, output) = interrupted_at(&args, |line| line.starts_with("1/"));
    assert!(text(&output.stdout).contains("index.html"));
    let page = fs::read_to_string(dir.join("index.html")).unwrap();
    assert!(page.contains("ZN-17") && page.contains("<svg"));
    let claims = record(&dir);
    assert_eq!((&claims[0]["id"], claims.as_array().unwrap().len()), (&"ZN-17".into(), 1));
    assert_eq!(claims[0]["verdict"], "cannot be judged here");
    let made = claims[0]["runs"].as_u64().unwrap() as usize;
    assert!(made >= 1);
    let lines = fs::read_to_string(dir.join("runs.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), made);

    let (again, _) = interrupted_at(&args, is_announcement);
    assert_eq!(announced(&again), announced(&first) - made);
    let (fresh, _) = interrupted_at(&[&args[..], &["--fresh"]].concat(), is_announcement);
    assert_eq!(announced(&fresh), announced(&first));
}

/// What opens a database again has no throughput.
#[test]
fn a_run_of_recovery_is_done() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["ZN-22", "--quick", "--out", dir.path().to_str().unwrap()];
    let (said, _) = interrupted_at(&args, |line| line.contains(" --example recovery "));
    let line = said.iter().find(|line| line.contains(" --example recovery ")).unwrap();
    assert!(line.ends_with(": done"), "{line}");
}

#[test]
fn an_interrupted_report_is_written() {
    let dir = tempfile::tempdir().unwrap();
    // Once it has told what it will do it can be interrupted.
    let args = ["ZN-17", "--quick", "--out", dir.path().to_str().unwrap()];
    let (_, output) = interrupted_at(&args, is_announcement);
    assert!(text(&output.stdout).contains("interrupted; the same command goes on"));
    assert!(fs::read_to_string(dir.path().join("index.html")).unwrap().contains("were interrupted"));
    assert_eq!(record(dir.path())[0]["verdict"], "cannot be judged here");
}
