//! The state that entries make, and its snapshots.

use std::fs::File;
use std::io::Seek;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use openraft::storage::RaftStateMachine;
use openraft::{
    Entry, EntryPayload, ErrorSubject, ErrorVerb, LogId, OptionalSend, RaftSnapshotBuilder, RaftTypeConfig,
    Snapshot, SnapshotMeta, StorageError, StoredMembership,
};
use pantile::{Database, Isolation, Table, Transaction, TransactionOptions};
use pantile_tokio::AsyncDatabase;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;
use tokio::io::AsyncWriteExt;

use crate::failed::{Outcome, failing};
use crate::files::Files;
use crate::marks::Marks;
use crate::rows;

const APPLIED: &str = "applied";

type StoreResult<C, T> = Result<T, StorageError<<C as RaftTypeConfig>::NodeId>>;
type Meta<C> = SnapshotMeta<<C as RaftTypeConfig>::NodeId, <C as RaftTypeConfig>::Node>;

/// What an application does with requests on which the cluster has agreed.
pub trait StateMachine<C: RaftTypeConfig>: Send + Sync + 'static {
    /// The tables of the state. They belong to [`StateMachine::apply`] alone: a snapshot has all of their rows, and
    /// replaces all of them on the node that installs it. They are the same on every node.
    fn tables(&self) -> Vec<Table>;

    /// Carries out a request in a transaction, in which Raft's own record of it is written too. It does the same on
    /// every node: it uses neither clocks nor chance, and nothing but the request and the tables. It may run again
    /// after a conflict.
    ///
    /// # Errors
    /// Those of the database, which end the node. What a request asks in vain is an answer: `C::R` says so.
    fn apply(&self, txn: &mut Transaction, request: &C::D) -> pantile::Result<C::R>;
}

/// How far the state has come. It is in the state, so it is never ahead of it or behind.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
struct Applied<C: RaftTypeConfig> {
    log_id: Option<LogId<C::NodeId>>,
    membership: StoredMembership<C::NodeId, C::Node>,
}

impl<C: RaftTypeConfig> Default for Applied<C> {
    fn default() -> Self {
        Self { log_id: None, membership: StoredMembership::default() }
    }
}

/// The state of a node.
///
/// Entries that Raft applies together are one transaction, which is durable when they are acknowledged. Clones are
/// handles of the same state.
pub struct StateStore<C: RaftTypeConfig, M> {
    db: AsyncDatabase,
    inner: Arc<Inner<C, M>>,
}

struct Inner<C: RaftTypeConfig, M> {
    machine: M,
    marks: Marks,
    files: Files,
    /// The newest snapshot of this run. Raft makes another when it needs one and there is none.
    newest: Mutex<Option<Kept<C>>>,
}

struct Kept<C: RaftTypeConfig> {
    meta: Meta<C>,
    file: NamedTempFile,
}

impl<C: RaftTypeConfig, M> Clone for StateStore<C, M> {
    fn clone(&self) -> Self {
        Self { db: self.db.clone(), inner: Arc::clone(&self.inner) }
    }
}

impl<C: RaftTypeConfig, M> std::fmt::Debug for StateStore<C, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateStore").field("db", &self.db).finish_non_exhaustive()
    }
}

impl<C, M> StateStore<C, M>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = tokio::fs::File>,
    C::R: Default,
    M: StateMachine<C>,
{
    /// The state in a database, which may be that of the log, and holds one state. Snapshots are files in a directory
    /// of their own, which is created if it is not there; those that a process has left behind are removed.
    ///
    /// # Errors
    /// As [`Database::open_or_create`], and [`Error::Io`](pantile::Error::Io) if the directory cannot be used.
    pub async fn open(db: &AsyncDatabase, machine: M, snapshots: impl AsRef<Path>) -> pantile::Result<Self> {
        let snapshots = snapshots.as_ref().to_owned();
        let inner = db.call(move |db| {
            let operation = || format!("use the directory of snapshots {}", snapshots.display());
            let failed = |source| pantile::Error::Io { operation: operation(), source };
            let files = Files::open(&snapshots).map_err(failed)?;
            Ok::<_, pantile::Error>(Inner {
                machine,
                marks: Marks::open(db)?,
                files,
                newest: Mutex::default(),
            })
        });
        let inner = Arc::new(inner.await??);
        Ok(Self { db: db.clone(), inner })
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner<C, M>, &Database) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let inner = Arc::clone(&self.inner);
        self.db.call(move |db| work(&inner, db)).await?
    }

    async fn apply_all(&self, entries: Vec<Entry<C>>) -> Outcome<Vec<C::R>> {
        let inner = Arc::clone(&self.inner);
        self.db.run(move |txn| inner.apply(txn, &entries)).await
    }
}

impl<C, M> Inner<C, M>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = tokio::fs::File>,
    C::R: Default,
    M: StateMachine<C>,
{
    fn applied(&self, txn: &Transaction) -> Outcome<Applied<C>> {
        Ok(self.marks.get(txn, APPLIED)?.unwrap_or_default())
    }

    fn apply(&self, txn: &mut Transaction, entries: &[Entry<C>]) -> Outcome<Vec<C::R>> {
        let mut applied = self.applied(txn)?;
        let mut answers = Vec::with_capacity(entries.len());
        for Entry { log_id, payload } in entries {
            applied.log_id = Some(log_id.clone());
            answers.push(match payload {
                EntryPayload::Blank => C::R::default(),
                EntryPayload::Normal(request) => self.machine.apply(txn, request)?,
                EntryPayload::Membership(membership) => {
                    applied.membership = StoredMembership::new(Some(log_id.clone()), membership.clone());
                    C::R::default()
                }
            });
        }
        self.marks.set(txn, APPLIED, &applied)?;
        Ok(answers)
    }

    /// Reads one state, while entries are applied.
    fn build(&self, db: &Database) -> Outcome<Snapshot<C>> {
        let options = TransactionOptions::new().read_only(true).isolation(Isolation::Snapshot);
        let txn = db.begin_with(options)?;
        let Applied { log_id, membership } = self.applied(&txn)?;
        let file = self.files.create()?;
        rows::write(&self.machine.tables(), &txn, file.as_file())?;
        let snapshot_id = name_of(log_id.as_ref());
        self.keep(SnapshotMeta { last_log_id: log_id, last_membership: membership, snapshot_id }, file)
    }

    /// Replaces the state, in one transaction.
    fn install(&self, db: &Database, meta: Meta<C>, mut received: File) -> Outcome<()> {
        let mut file = self.files.create()?;
        received.rewind()?;
        std::io::copy(&mut received, &mut file)?;
        let (log_id, membership) = (meta.last_log_id.clone(), meta.last_membership.clone());
        let applied = Applied::<C> { log_id, membership };
        db.run(|txn| {
            rows::replace(&self.machine.tables(), txn, file.as_file())?;
            self.marks.set(txn, APPLIED, &applied)
        })?;
        self.keep(meta, file).map(drop)
    }

    /// Keeps a snapshot in the place of an older one, and opens it.
    fn keep(&self, meta: Meta<C>, file: NamedTempFile) -> Outcome<Snapshot<C>> {
        let kept = Kept { meta, file };
        let snapshot = kept.open()?;
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        // One may have been installed while this one was made.
        if newest.as_ref().is_none_or(|newest| newest.meta.last_log_id <= kept.meta.last_log_id) {
            *newest = Some(kept);
        }
        Ok(snapshot)
    }

    fn newest(&self) -> Outcome<Option<Snapshot<C>>> {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.as_ref().map(Kept::open).transpose()
    }
}

impl<C: RaftTypeConfig<SnapshotData = tokio::fs::File>> Kept<C> {
    /// With a position of its own: each node that it is sent to reads it by itself.
    fn open(&self) -> Outcome<Snapshot<C>> {
        let file = tokio::fs::File::from_std(self.file.reopen()?);
        Ok(Snapshot { meta: self.meta.clone(), snapshot: Box::new(file) })
    }
}

/// A name that no other snapshot has, also of another node: two of the same entries can differ in their bytes.
fn name_of<N: openraft::NodeId>(last: Option<&LogId<N>>) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let last = last.map_or_else(|| "none".to_owned(), ToString::to_string);
    format!("{last}-{}-{}", now.as_nanos(), std::process::id())
}

impl<C, M> RaftSnapshotBuilder<C> for StateStore<C, M>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = tokio::fs::File>,
    C::R: Default,
    M: StateMachine<C>,
{
    async fn build_snapshot(&mut self) -> StoreResult<C, Snapshot<C>> {
        self.call(Inner::build).await.map_err(failing(ErrorSubject::StateMachine, ErrorVerb::Read))
    }
}

impl<C, M> RaftStateMachine<C> for StateStore<C, M>
where
    C: RaftTypeConfig<Entry = Entry<C>, SnapshotData = tokio::fs::File>,
    C::R: Default,
    M: StateMachine<C>,
{
    type SnapshotBuilder = Self;

    async fn applied_state(
        &mut self,
    ) -> StoreResult<C, (Option<LogId<C::NodeId>>, StoredMembership<C::NodeId, C::Node>)> {
        let applied = self.call(|inner, db| inner.applied(&db.begin_read()?));
        let applied = applied.await.map_err(failing(ErrorSubject::StateMachine, ErrorVerb::Read))?;
        Ok((applied.log_id, applied.membership))
    }

    async fn apply<I>(&mut self, entries: I) -> StoreResult<C, Vec<C::R>>
    where
        I: IntoIterator<Item = Entry<C>> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let answers = self.apply_all(entries.into_iter().collect());
        answers.await.map_err(failing(ErrorSubject::StateMachine, ErrorVerb::Write))
    }

    async fn get_snapshot_builder(&mut self) -> Self {
        self.clone()
    }

    async fn begin_receiving_snapshot(&mut self) -> StoreResult<C, Box<tokio::fs::File>> {
        let file = self.call(|inner, _| inner.files.create_nameless());
        let file = file.await.map_err(failing(ErrorSubject::Snapshot(None), ErrorVerb::Write))?;
        Ok(Box::new(tokio::fs::File::from_std(file)))
    }

    async fn install_snapshot(
        &mut self,
        meta: &Meta<C>,
        snapshot: Box<tokio::fs::File>,
    ) -> StoreResult<C, ()> {
        let about = || failing(ErrorSubject::Snapshot(Some(meta.signature())), ErrorVerb::Write);
        let mut received = snapshot;
        received.flush().await.map_err(|error| about()(error.into()))?;
        let (received, meta_of) = (received.into_std().await, meta.clone());
        self.call(move |inner, db| inner.install(db, meta_of, received)).await.map_err(about())
    }

    async fn get_current_snapshot(&mut self) -> StoreResult<C, Option<Snapshot<C>>> {
        let newest = self.call(|inner, _| inner.newest());
        newest.await.map_err(failing(ErrorSubject::Snapshot(None), ErrorVerb::Read))
    }
}
