//! Nothing is acknowledged before it is durable, and nobody waits on a worker. Gates, not times, decide when a sync ends.

use std::sync::Arc;

use openraft::Vote;
use openraft::storage::{RaftLogStorage, RaftLogStorageExt, RaftStateMachine};
use pantile::Options;
use pantile_testkit::{GatedMedium, run_case};
use pantile_tokio::AsyncDatabase;
use tempfile::{TempDir, tempdir};

use crate::node::{Node, Put, entry, log_id, open_on};

/// A single worker, which would keep the gate closed for ever if it was blocked.
fn on_one_worker<F: Future<Output = ()>>(name: &str, case: impl FnOnce() -> F + Send + 'static) {
    run_case(name, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        runtime.block_on(case());
    });
}

async fn open() -> (Arc<GatedMedium>, Node, TempDir) {
    let (medium, dir) = (GatedMedium::new(), tempdir().expect("a directory"));
    let db = Options::new().on_medium(Arc::clone(&medium) as _).open("unused").expect("open");
    let node = open_on(AsyncDatabase::new(db), dir.path()).await;
    (medium, node, dir)
}

async fn await_waiting(medium: &Arc<GatedMedium>) {
    let medium = Arc::clone(medium);
    tokio::task::spawn_blocking(move || medium.await_waiting(1)).await.expect("a fence waits");
}

/// Opens a gate when a call waits at it; the call has not returned before.
async fn not_before_the_sync<T>(medium: &Arc<GatedMedium>, call: impl Future<Output = T>) -> T {
    medium.close_gate();
    let mut call = std::pin::pin!(call);
    tokio::select! {
        biased;
        _ = &mut call => panic!("it returned before it was durable"),
        () = await_waiting(medium) => {}
    }
    medium.open_gate(None);
    call.await
}

#[test]
fn nothing_is_acknowledged_before_it_is_durable() {
    on_one_worker("acknowledged", || async {
        let (medium, mut node, _dir) = open().await;
        let put = || Put::new(1, 1, 1);
        let mut log = node.log.clone();
        not_before_the_sync(&medium, log.blocking_append([entry(0, put())])).await.expect("append");
        not_before_the_sync(&medium, log.save_vote(&Vote::new(1, 1))).await.expect("a vote");
        not_before_the_sync(&medium, log.save_committed(Some(log_id(1, 0)))).await.expect("committed");
        not_before_the_sync(&medium, node.state.apply([entry(0, put())])).await.expect("apply");
        not_before_the_sync(&medium, log.truncate(log_id(1, 0))).await.expect("truncate");
        not_before_the_sync(&medium, log.purge(log_id(1, 0))).await.expect("purge");
    });
}

#[test]
fn raft_hears_of_a_sync_that_fails() {
    on_one_worker("failing", || async {
        let (medium, mut node, _dir) = open().await;
        medium.close_gate();
        let mut log = node.log.clone();
        let appended = tokio::spawn(async move { log.blocking_append([entry(0, Put::new(1, 1, 1))]).await });
        await_waiting(&medium).await;
        medium.open_gate(Some("the disk is gone"));
        let failed = appended.await.expect("no panic").expect_err("it is not durable");
        assert!(failed.to_string().contains("the disk is gone"), "{failed}");
        let failed = node.log.save_vote(&Vote::new(1, 1)).await.expect_err("nothing can be saved");
        assert!(failed.to_string().contains("the disk is gone"), "{failed}");
    });
}
