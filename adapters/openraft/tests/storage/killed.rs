//! A node is killed. What it has acknowledged is there, the log has no hole, and a snapshot is there whole or not at all.
//!
//! The tests start their own binary again as a child, which works until it is killed.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::{RaftLogReader, RaftSnapshotBuilder, Snapshot, SnapshotMeta, Vote};
use pantile::OwnedValue;

use crate::node::{Node, Put, Types, entry, log_id, open};

const PLACE: &str = "PANTILE_OPENRAFT_KILL_PLACE";
const DONE: &str = "done ";
/// Entries that are appended together.
const BATCH: u64 = 3;
const KEYS: u64 = 200;

fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Kills the child when it has acknowledged so many steps; returns the last that it has.
fn killed_after(test: &str, place: &Path, steps: usize) -> u64 {
    let mut child = start_child(test, place);
    let output = BufReader::new(child.stdout.take().expect("output"));
    let done = output.lines().map_while(Result::ok);
    let mut done = done.filter_map(|line| line.split_once(DONE)?.1.parse::<u64>().ok());
    let last = done.by_ref().nth(steps - 1).expect("the child goes on");
    child.kill().expect("kill");
    child.wait().expect("wait");
    done.last().unwrap_or(last)
}

fn start_child(test: &str, place: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", test, "--nocapture"])
        .env(PLACE, place)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child")
}

async fn next_index(node: &mut Node) -> u64 {
    let state = node.log.get_log_state().await.expect("a state");
    state.last_log_id.map_or(0, |last| last.index + 1)
}

/// Does nothing unless it is started as the child. Every tenth batch is 1 MB, and the log is purged as it grows.
#[tokio::test]
async fn appending_child() {
    let Some(place) = place() else { return };
    let mut node = open(&place).await;
    let first = next_index(&mut node).await;
    for index in (first..).step_by(BATCH as usize) {
        let ballast = if index / BATCH % 10 == 9 { 1 << 20 } else { 100 };
        let put = Put { ballast: vec![index as u8; ballast], ..Put::new(index, 1, 1) };
        node.append((index..index + BATCH).map(|index| entry(index, put.clone()))).await;
        node.log.save_vote(&Vote::new(index + BATCH, 1)).await.expect("a vote");
        if index >= 60 {
            node.log.purge(log_id(1, index - 60)).await.expect("purge");
        }
        println!("{DONE}{}", index + BATCH - 1);
    }
}

#[tokio::test]
async fn a_killed_node_loses_nothing_and_its_log_has_no_hole() {
    let dir = tempfile::tempdir().expect("a directory");
    for steps in [1, 60, 25] {
        let last = killed_after("killed::appending_child", dir.path(), steps);
        let mut node = open(dir.path()).await;
        let end = next_index(&mut node).await;
        assert!(end == last + 1 || end == last + 1 + BATCH, "the log ends at {end}, acknowledged was {last}");
        let state = node.log.get_log_state().await.expect("a state");
        let first = state.last_purged_log_id.map_or(0, |purged| purged.index + 1);
        assert!(first + 60 + 2 * BATCH >= end, "purged as it grew: {first} to {end}");
        let entries = node.log.try_get_log_entries(..).await.expect("every entry can be read");
        assert!(
            entries.iter().map(|entry| entry.log_id.index).eq(first..end),
            "{first} to {end} without a hole"
        );
        let vote = node.log.read_vote().await.expect("read").expect("a vote");
        assert!(vote >= Vote::new(last + 1, 1) && vote <= Vote::new(end, 1), "{vote} after {last}");
    }
}

/// A snapshot in which every value has these bytes.
async fn snapshot_of(place: &Path, fill: u8) -> Snapshot<Types> {
    let dir = tempfile::tempdir_in(place).expect("a directory");
    let mut node = open(dir.path()).await;
    node.state.apply((0..KEYS).map(|key| entry(key, Put::new(key, fill, 2000)))).await.expect("apply");
    node.state.get_snapshot_builder().await.build_snapshot().await.expect("a snapshot")
}

/// Installs two snapshots in turn, that of bytes 1 as odd entries and that of bytes 0 as even ones.
#[tokio::test]
async fn installing_child() {
    let Some(place) = place() else { return };
    let snapshots = [snapshot_of(&place, 0).await, snapshot_of(&place, 1).await];
    let mut node = open(&place).await;
    let first = node.state.applied_state().await.expect("read").0.map_or(0, |last| last.index + 1);
    for index in first.. {
        let Snapshot { meta, snapshot } = &snapshots[(index % 2) as usize];
        let meta = SnapshotMeta { last_log_id: Some(log_id(1, index)), ..meta.clone() };
        let file = snapshot.try_clone().await.expect("a handle");
        node.state.install_snapshot(&meta, Box::new(file)).await.expect("install");
        println!("{DONE}{index}");
    }
}

#[tokio::test]
async fn a_node_that_is_killed_while_it_installs_has_one_snapshot_whole() {
    let dir = tempfile::tempdir().expect("a directory");
    for steps in [1, 14, 7, 4] {
        let last = killed_after("killed::installing_child", dir.path(), steps);
        let mut node = open(dir.path()).await;
        let applied = node.state.applied_state().await.expect("read").0.expect("a snapshot").index;
        assert!(applied == last || applied == last + 1, "{applied} after {last}");
        let rows = node.rows();
        assert_eq!(rows.len(), 2 * KEYS as usize, "every row of both tables");
        let value = OwnedValue::Bytes(vec![(applied % 2) as u8; 2000]);
        assert!(
            rows[..KEYS as usize].iter().all(|row| row[1] == value),
            "rows that are not of snapshot {applied}"
        );
    }
}
