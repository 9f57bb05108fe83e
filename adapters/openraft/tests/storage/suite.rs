//! The tests that `openraft` publishes for stores, on files.

use openraft::StorageError;
use openraft::testing::{StoreBuilder, Suite};
use pantile_openraft::{LogStore, StateStore};
use tempfile::TempDir;

use crate::node::{Machine, Types, open};

struct Builder;

impl StoreBuilder<Types, LogStore<Types>, StateStore<Types, Machine>, TempDir> for Builder {
    async fn build(
        &self,
    ) -> Result<(TempDir, LogStore<Types>, StateStore<Types, Machine>), StorageError<u64>> {
        let dir = tempfile::tempdir().expect("a directory");
        let node = open(dir.path()).await;
        Ok((dir, node.log, node.state))
    }
}

#[test]
fn the_published_suite() {
    Suite::test_all(Builder).expect("all of it");
}
