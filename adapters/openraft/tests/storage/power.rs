//! The power of a node is cut at every moment at which it has just acknowledged something. What it has acknowledged is
//! there, the log has no hole, and the state is that of the entries that it says it has applied.

use std::sync::Arc;

use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::{Entry, RaftLogReader, Vote};
use pantile::{Options, OwnedValue};
use pantile_testkit::cut::{Broken, CutKind, CutMedium, Image, Keep};
use pantile_tokio::AsyncDatabase;
use tempfile::{TempDir, tempdir};

use crate::node::{Node, Put, Types, entry, log_id, open_on};

const STEPS: u64 = 12;

/// What a node has acknowledged. Numbers are those of the next entry: 0 before the first.
#[derive(Clone, Copy, Default, Debug)]
struct Promised {
    appended: u64,
    term: u64,
    purged: u64,
    committed: u64,
    applied: u64,
}

async fn open(medium: &Arc<CutMedium>) -> pantile::Result<(Node, TempDir)> {
    let dir = tempdir().expect("a directory");
    let medium = Arc::clone(medium);
    let db = AsyncDatabase::open(move || Options::new().on_medium(medium).open("unused")).await?;
    Ok((open_on(db, dir.path()).await, dir))
}

/// Every eighth is longer than what a row takes in line.
fn nth(index: u64) -> Entry<Types> {
    let ballast = vec![index as u8; if index % 8 == 7 { 70_000 } else { 50 }];
    entry(index, Put { ballast, ..Put::new(index, index as u8, 10) })
}

/// Works, and says after each acknowledgement how many events of the medium there have been.
async fn work(medium: &Arc<CutMedium>) -> Vec<(usize, Promised)> {
    let (mut node, _dir) = open(medium).await.expect("open");
    let mut promised = Promised::default();
    let mut moments = Vec::new();
    for step in 0..STEPS {
        let first = promised.appended;
        node.append([nth(first), nth(first + 1)]).await;
        promised.appended += 2;
        moments.push((medium.events(), promised));
        node.log.save_vote(&Vote::new(step + 1, 1)).await.expect("a vote");
        promised.term = step + 1;
        moments.push((medium.events(), promised));
        node.log.save_committed(Some(log_id(1, first + 1))).await.expect("committed");
        promised.committed = first + 2;
        moments.push((medium.events(), promised));
        node.state.apply([nth(first), nth(first + 1)]).await.expect("apply");
        promised.applied = first + 2;
        moments.push((medium.events(), promised));
        if step % 4 == 3 {
            node.log.purge(log_id(1, first - 5)).await.expect("purge");
            promised.purged = first - 4;
            moments.push((medium.events(), promised));
        }
    }
    moments
}

/// What a node has after it has been opened again, as a promise.
async fn found(node: &mut Node) -> Promised {
    let state = node.log.get_log_state().await.expect("a state");
    let vote = node.log.read_vote().await.expect("read");
    let next = |id: Option<openraft::LogId<u64>>| id.map_or(0, |id| id.index + 1);
    Promised {
        appended: next(state.last_log_id),
        term: vote.map_or(0, |vote| vote.leader_id().term),
        purged: next(state.last_purged_log_id),
        committed: next(node.log.read_committed().await.expect("read")),
        applied: next(node.state.applied_state().await.expect("read").0),
    }
}

/// Whether what is left after a cut keeps a promise, and agrees with itself.
async fn keeps(medium: &Arc<CutMedium>, promised: Promised) -> bool {
    let Ok((mut node, _dir)) = open(medium).await else { return false };
    let found = found(&mut node).await;
    let entries = node.log.try_get_log_entries(..).await.expect("every entry can be read");
    let is_log = entries.into_iter().eq((found.purged..found.appended).map(nth));
    let rows = node.rows();
    let values = rows.iter().take(found.applied as usize).map(|row| &row[0]);
    let is_state = values.eq(&(0..found.applied).map(OwnedValue::UInt).collect::<Vec<_>>());
    is_log
        && is_state
        && rows.len() as u64 == 2 * found.applied
        && found.appended >= promised.appended
        && found.term >= promised.term
        && found.purged >= promised.purged
        && found.committed >= promised.committed
        && found.applied >= promised.applied
}

/// The moments after which a promise was broken, on a medium that may be a broken one.
async fn broken_promises(broken: Option<Broken>) -> Vec<(Keep, Promised)> {
    let medium = CutMedium::new(&Image::default(), CutKind::File, broken);
    let moments = work(&medium).await;
    let mut found = Vec::new();
    for (n, (events, promised)) in moments.into_iter().enumerate() {
        let keeps_of = Keep::of(CutKind::File);
        let keep = keeps_of[n % keeps_of.len()];
        let left = medium.after_cut(events, keep, n as u64);
        if !keeps(&left, promised).await {
            found.push((keep, promised));
        }
    }
    found
}

#[tokio::test]
async fn a_power_cut_takes_nothing_that_was_acknowledged() {
    let broken = broken_promises(None).await;
    assert!(broken.is_empty(), "{broken:?}");
}

/// Shows that the test above can fail.
#[tokio::test]
async fn a_medium_that_does_not_sync_is_noticed() {
    assert!(!broken_promises(Some(Broken::Sync)).await.is_empty());
}
