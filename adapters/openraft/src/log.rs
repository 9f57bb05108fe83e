//! The log.

use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

use openraft::log_id::RaftLogId;
use openraft::storage::{LogFlushed, RaftLogStorage};
use openraft::{
    AsyncRuntime, ErrorSubject, ErrorVerb, LogId, LogState, OptionalSend, RaftLogReader, RaftTypeConfig,
    StorageError, Vote,
};
use pantile::{Database, InFlight, Range, Table, TableDef, Transaction, TransactionOptions, Type, Value};
use pantile_tokio::AsyncDatabase;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failed::{Outcome, failing};
use crate::marks::{Marks, packed};

const VOTE: &str = "vote";
const COMMITTED: &str = "committed";
const PURGED: &str = "purged";

/// Bytes of entries after which a message to another node takes no more of them.
const MESSAGE_BYTES: usize = 1 << 20;

type StoreResult<C, T> = Result<T, StorageError<<C as RaftTypeConfig>::NodeId>>;

/// The log of a node, with its vote.
///
/// An entry is a row of the table `raft_log`. The vote, and how far the log is committed and purged, are in the table
/// `raft_marks`. Everything is durable when Raft is told so. Clones are handles of the same log.
#[derive(Clone, Debug)]
pub struct LogStore<C> {
    db: AsyncDatabase,
    log: Table,
    marks: Marks,
    types: PhantomData<C>,
}

impl<C> LogStore<C>
where
    C: RaftTypeConfig,
    C::Entry: Serialize + DeserializeOwned,
{
    /// The log in a database, which holds one log. It is created if it is not there.
    ///
    /// # Errors
    /// As [`Database::open_or_create`].
    pub async fn open(db: &AsyncDatabase) -> pantile::Result<Self> {
        let tables = db.call(|db| Ok::<_, pantile::Error>((log_table(db)?, Marks::open(db)?)));
        let (log, marks) = tables.await??;
        Ok(Self { db: db.clone(), log, marks, types: PhantomData })
    }

    async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Self, &Transaction) -> Outcome<T> + Send + 'static,
    ) -> Outcome<T> {
        let store = self.clone();
        self.db.call(move |db| read(&store, &db.begin_read()?)).await?
    }

    async fn write(
        &self,
        mut write: impl FnMut(&Self, &mut Transaction) -> Outcome<()> + Send + 'static,
    ) -> Outcome<()> {
        let store = self.clone();
        self.db.run(move |txn| write(&store, txn)).await
    }

    async fn mark<T: DeserializeOwned + Send + 'static>(&self, name: &'static str) -> Outcome<Option<T>> {
        self.read(move |store, txn| store.marks.get(txn, name)).await
    }

    async fn set_mark<T: Serialize + Send + 'static>(&self, name: &'static str, value: T) -> Outcome<()> {
        self.write(move |store, txn| store.marks.set(txn, name, &value)).await
    }

    /// Makes the entries visible. They are durable when the commit that it returns has been awaited.
    async fn publish(&self, entries: Vec<C::Entry>) -> Outcome<InFlight> {
        let log = self.log.clone();
        let published = self.db.call(move |db| {
            let rows = entries.iter().map(|entry| Ok((entry.get_log_id().index, packed(entry)?)));
            let rows = rows.collect::<Outcome<Vec<_>>>()?;
            db.run_and_publish(TransactionOptions::new(), |txn| {
                rows.iter().try_for_each(|(index, entry)| {
                    txn.upsert(&log, &[(*index).into(), entry.as_slice().into()])?;
                    Outcome::Ok(())
                })
            })
        });
        let ((), commit) = published.await??;
        Ok(commit)
    }

    /// The entries of a range: at least one if there is one, and no more once they have `bytes` bytes.
    async fn entries(&self, range: impl RangeBounds<u64>, bytes: usize) -> StoreResult<C, Vec<C::Entry>> {
        let (first, end) =
            (range.start_bound().map(|index| key(*index)), range.end_bound().map(|index| key(*index)));
        let entries = self.read(move |store, txn| {
            let range = Range::all().from(first.as_ref().map(|key| &key[..]));
            let mut left = bytes;
            let mut entries = Vec::new();
            for row in txn.scan(&store.log, range.to(end.as_ref().map(|key| &key[..])))? {
                let packed: Vec<u8> = row?.get("entry")?;
                entries.push(rmp_serde::from_slice(&packed)?);
                left = left.saturating_sub(packed.len());
                if left == 0 {
                    break;
                }
            }
            Ok(entries)
        });
        entries.await.map_err(failing(ErrorSubject::Logs, ErrorVerb::Read))
    }

    fn state(&self, txn: &Transaction) -> Outcome<LogState<C>> {
        let last_purged_log_id = self.marks.get(txn, PURGED)?;
        let mut newest = txn.scan(&self.log, Range::all().reverse().limit(1))?;
        let last_log_id = match newest.next().transpose()? {
            None => last_purged_log_id.clone(),
            Some(row) => {
                let newest: C::Entry = rmp_serde::from_slice(&row.get::<Vec<u8>>("entry")?)?;
                Some(newest.get_log_id().clone())
            }
        };
        Ok(LogState { last_purged_log_id, last_log_id })
    }
}

fn log_table(db: &Database) -> pantile::Result<Table> {
    let def = TableDef::new("raft_log")
        .column("index", Type::U64)
        .column("entry", Type::Bytes(u32::MAX))
        .primary_key(["index"]);
    db.open_or_create(def)
}

fn key(index: u64) -> [Value<'static>; 1] {
    [index.into()]
}

impl<C> RaftLogReader<C> for LogStore<C>
where
    C: RaftTypeConfig,
    C::Entry: Serialize + DeserializeOwned,
{
    async fn try_get_log_entries<R: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: R,
    ) -> StoreResult<C, Vec<C::Entry>> {
        self.entries(range, usize::MAX).await
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> StoreResult<C, Vec<C::Entry>> {
        self.entries(start..end, MESSAGE_BYTES).await
    }
}

impl<C> RaftLogStorage<C> for LogStore<C>
where
    C: RaftTypeConfig,
    C::Entry: Serialize + DeserializeOwned,
{
    type LogReader = Self;

    async fn get_log_state(&mut self) -> StoreResult<C, LogState<C>> {
        self.read(Self::state).await.map_err(failing(ErrorSubject::Logs, ErrorVerb::Read))
    }

    async fn get_log_reader(&mut self) -> Self {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote<C::NodeId>) -> StoreResult<C, ()> {
        self.set_mark(VOTE, vote.clone()).await.map_err(failing(ErrorSubject::Vote, ErrorVerb::Write))
    }

    async fn read_vote(&mut self) -> StoreResult<C, Option<Vote<C::NodeId>>> {
        self.mark(VOTE).await.map_err(failing(ErrorSubject::Vote, ErrorVerb::Read))
    }

    async fn save_committed(&mut self, committed: Option<LogId<C::NodeId>>) -> StoreResult<C, ()> {
        self.set_mark(COMMITTED, committed).await.map_err(failing(ErrorSubject::Store, ErrorVerb::Write))
    }

    async fn read_committed(&mut self) -> StoreResult<C, Option<LogId<C::NodeId>>> {
        let committed = self.mark::<Option<_>>(COMMITTED).await;
        Ok(committed.map_err(failing(ErrorSubject::Store, ErrorVerb::Read))?.flatten())
    }

    /// Returns when readers see the entries. Raft hears that they are durable later, from a task of its own.
    async fn append<I>(&mut self, entries: I, callback: LogFlushed<C>) -> StoreResult<C, ()>
    where
        I: IntoIterator<Item = C::Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let published = self.publish(entries.into_iter().collect()).await;
        let commit = published.map_err(failing(ErrorSubject::Logs, ErrorVerb::Write))?;
        let flushed =
            async move { callback.log_io_completed(commit.await.map(drop).map_err(io::Error::other)) };
        drop(C::AsyncRuntime::spawn(flushed));
        Ok(())
    }

    async fn truncate(&mut self, log_id: LogId<C::NodeId>) -> StoreResult<C, ()> {
        let truncated = self.write(move |store, txn| {
            let first = key(log_id.index);
            txn.delete_range(&store.log, Range::all().from(Bound::Included(&first)))?;
            Ok(())
        });
        truncated.await.map_err(failing(ErrorSubject::Logs, ErrorVerb::Delete))
    }

    async fn purge(&mut self, log_id: LogId<C::NodeId>) -> StoreResult<C, ()> {
        let purged = self.write(move |store, txn| {
            let last = key(log_id.index);
            txn.delete_range(&store.log, Range::all().to(Bound::Included(&last)))?;
            store.marks.set(txn, PURGED, &log_id)
        });
        purged.await.map_err(failing(ErrorSubject::Logs, ErrorVerb::Delete))
    }
}
