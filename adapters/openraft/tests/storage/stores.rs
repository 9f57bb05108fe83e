//! What the published suite does not look at: large entries, values of all kinds, what is there after opening again.

use std::path::Path;

use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::{Entry, EntryPayload, Membership, RaftLogReader, RaftSnapshotBuilder, SnapshotMeta, Vote};
use tempfile::tempdir;

use crate::node::{Node, Put, Types, entry, log_id, open};

/// More than a row takes in line.
const LARGE: usize = 1 << 20;

fn large(index: u64) -> Entry<Types> {
    entry(index, Put { ballast: vec![index as u8; LARGE], ..Put::new(index, index as u8, LARGE) })
}

fn ballast_of(entry: &Entry<Types>) -> &[u8] {
    let EntryPayload::Normal(put) = &entry.payload else { panic!("no put: {entry:?}") };
    &put.ballast
}

async fn reopen(node: Node, dir: &Path) -> Node {
    let Node { db, log, state } = node;
    drop((log, state));
    db.close().await.expect("close");
    open(dir).await
}

fn files_in(dir: &Path) -> usize {
    std::fs::read_dir(dir.join("snapshots")).expect("a directory").count()
}

#[tokio::test]
async fn everything_is_there_when_it_is_opened_again() {
    let dir = tempdir().expect("a directory");
    let mut node = open(dir.path()).await;
    node.log.save_vote(&Vote::new_committed(7, 3)).await.expect("a vote");
    node.append((0..20).map(|index| entry(index, Put::new(index, 1, 1)))).await;
    node.log.truncate(log_id(1, 15)).await.expect("truncate");
    node.log.purge(log_id(1, 4)).await.expect("purge");
    node.log.save_committed(Some(log_id(1, 9))).await.expect("committed");
    node.state.apply((0..9).map(|index| entry(index, Put::new(index, 1, 1)))).await.expect("apply");
    let rows = node.rows();

    let mut node = reopen(node, dir.path()).await;
    assert_eq!(node.log.read_vote().await.expect("read"), Some(Vote::new_committed(7, 3)));
    assert_eq!(node.log.read_committed().await.expect("read"), Some(log_id(1, 9)));
    let state = node.log.get_log_state().await.expect("read");
    assert_eq!((state.last_purged_log_id, state.last_log_id), (Some(log_id(1, 4)), Some(log_id(1, 14))));
    let entries = node.log.try_get_log_entries(..).await.expect("read");
    assert!(entries.iter().map(|entry| entry.log_id.index).eq(5..15));
    assert_eq!(node.state.applied_state().await.expect("read").0, Some(log_id(1, 8)));
    assert_eq!(node.rows(), rows);
    node.log.save_committed(None).await.expect("committed");
    assert_eq!(node.log.read_committed().await.expect("read"), None);
}

#[tokio::test]
async fn large_entries_are_read_whole_and_sent_a_few_at_a_time() {
    let dir = tempdir().expect("a directory");
    let mut node = open(dir.path()).await;
    node.append((1..=5).map(large)).await;
    node.append([entry(6, Put::new(1, 1, 1)), entry(7, Put::new(1, 1, 1))]).await;
    let mut node = reopen(node, dir.path()).await;

    let entries = node.log.try_get_log_entries(1..=5).await.expect("read");
    assert_eq!(entries.len(), 5);
    for (entry, index) in entries.iter().zip(1u8..) {
        assert!(ballast_of(entry) == vec![index; LARGE]);
    }
    let sent = node.log.limited_get_log_entries(2, 8).await.expect("read");
    assert_eq!(sent.iter().map(|entry| entry.log_id.index).collect::<Vec<_>>(), [2]);
    let sent = node.log.limited_get_log_entries(6, 8).await.expect("read");
    assert_eq!(sent.len(), 2);
    assert_eq!(node.log.get_log_state().await.expect("read").last_log_id, Some(log_id(1, 7)));
}

#[tokio::test]
async fn a_snapshot_brings_values_of_all_kinds_to_another_node() {
    let (here, there) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let (mut from, mut to) = (open(here.path()).await, open(there.path()).await);
    let members = Membership::new(vec![[1, 2].into()], ());
    let joined = Entry { log_id: log_id(1, 0), payload: EntryPayload::Membership(members) };
    let puts = (1..300).map(|index| entry(index, Put::new(index, 3, (index * 40) as usize)));
    let puts = puts.chain([large(300), entry(301, Put::new(1, 9, 0))]);
    let answers = from.state.apply([joined].into_iter().chain(puts)).await.expect("apply");
    assert_eq!(answers.last(), Some(&Some(1)), "the answer to the second put of a key");
    // Not what the snapshot has, and gone with it.
    to.state.apply((1..3).map(|index| entry(index, Put::new(1000 + index, 5, 5)))).await.expect("apply");

    let built = from.state.get_snapshot_builder().await.build_snapshot().await.expect("a snapshot");
    let before = from.rows();
    from.state.apply([entry(302, Put::new(2, 8, 1))]).await.expect("apply");
    let mut received = to.state.begin_receiving_snapshot().await.expect("a file");
    let mut sent = from.state.get_current_snapshot().await.expect("read").expect("a snapshot");
    assert_eq!(sent.meta, built.meta);
    tokio::io::copy(&mut sent.snapshot, &mut received).await.expect("copy");
    to.state.install_snapshot(&sent.meta, received).await.expect("install");

    assert_eq!(to.rows(), before);
    assert_ne!(from.rows(), before, "applied after the snapshot");
    assert_eq!(
        to.state.applied_state().await.expect("read"),
        (Some(log_id(1, 301)), sent.meta.last_membership)
    );
    assert_eq!(files_in(there.path()), 1, "the newest snapshot");

    // Its file is gone with the process, the state is not.
    let mut to = reopen(to, there.path()).await;
    assert_eq!(files_in(there.path()), 0);
    assert!(to.state.get_current_snapshot().await.expect("read").is_none());
    assert_eq!(to.rows(), before);
}

#[tokio::test]
async fn a_snapshot_that_is_cut_off_or_of_another_state_changes_nothing() {
    let (here, there) = (tempdir().expect("a directory"), tempdir().expect("a directory"));
    let (mut from, mut to) = (open(here.path()).await, open(there.path()).await);
    from.state.apply((0..9).map(|index| entry(index, Put::new(index, 1, 100)))).await.expect("apply");
    to.state.apply([entry(0, Put::new(77, 1, 1))]).await.expect("apply");
    let before = to.rows();

    let built = from.state.get_snapshot_builder().await.build_snapshot().await.expect("a snapshot");
    let length = built.snapshot.metadata().await.expect("a file").len();
    for length in [0, length / 2, length - 1] {
        built.snapshot.set_len(length).await.expect("cut off");
        let opened = from.state.get_current_snapshot().await.expect("read").expect("a snapshot");
        to.state.install_snapshot(&built.meta, opened.snapshot).await.expect_err("it is not whole");
    }
    let mut other = to.state.begin_receiving_snapshot().await.expect("a file");
    let unknown = rmp_serde::to_vec(&("Table", "other")).expect("bytes");
    tokio::io::copy(&mut &unknown[..], &mut other).await.expect("copy");
    to.state.install_snapshot(&built.meta, other).await.expect_err("another state");

    assert_eq!(to.rows(), before);
    assert_eq!(to.state.applied_state().await.expect("read").0, Some(log_id(1, 0)));
}

#[tokio::test]
async fn an_older_snapshot_does_not_take_the_place_of_a_newer_one() {
    let dir = tempdir().expect("a directory");
    let mut node = open(dir.path()).await;
    node.state.apply([entry(0, Put::new(1, 1, 1))]).await.expect("apply");
    let built = node.state.get_snapshot_builder().await.build_snapshot().await.expect("a snapshot");
    let newer = SnapshotMeta { last_log_id: Some(log_id(1, 50)), snapshot_id: "newer".into(), ..built.meta };
    node.state.install_snapshot(&newer, built.snapshot).await.expect("install");
    assert_eq!(node.state.applied_state().await.expect("read").0, Some(log_id(1, 50)));
    let current = node.state.get_current_snapshot().await.expect("read").expect("a snapshot");
    assert_eq!(current.meta, newer);

    let again = node.state.get_snapshot_builder().await.build_snapshot().await.expect("a snapshot");
    assert_eq!(again.meta.last_log_id, Some(log_id(1, 50)));
    assert_ne!(again.meta.snapshot_id, newer.snapshot_id);
}
