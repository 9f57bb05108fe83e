//! A node: its database, its part in Raft, and what it answers.

use std::path::Path;
use std::sync::Arc;

use openraft::error::RaftError;
use openraft::{BasicNode, Config, Raft, SnapshotPolicy, TryAsRef};
use pantile::Database;
use pantile_openraft::{LogStore, StateStore};
use pantile_tokio::AsyncDatabase;
use tokio::net::{TcpListener, TcpStream};

use super::Failure;
use super::machine::{Put, Types, Values};
use super::peers::Peers;
use super::wire::{Answer, Message, Status, receive, send};

#[derive(Clone)]
struct Node {
    db: AsyncDatabase,
    values: Values,
    raft: Raft<Types>,
}

/// Runs a node until it fails.
pub async fn run(id: u64, address: &str, directory: &str, entries: u64) -> Result<(), Failure> {
    let listener = TcpListener::bind(address).await?;
    let node = Node::open(id, Path::new(directory), entries).await?;
    println!("node {id} listens on {}", listener.local_addr()?);
    tokio::select! {
        failed = node.accept(listener) => failed,
        failed = node.stopped() => failed,
    }
}

fn config(entries: u64) -> Config {
    Config {
        cluster_name: "replicated".into(),
        heartbeat_interval: 500,
        election_timeout_min: 1500,
        election_timeout_max: 3000,
        install_snapshot_timeout: 30_000,
        snapshot_policy: SnapshotPolicy::LogsSinceLast(entries),
        snapshot_max_chunk_size: 1 << 20,
        max_in_snapshot_log_to_keep: entries / 4,
        ..Config::default()
    }
}

impl Node {
    async fn open(id: u64, directory: &Path, entries: u64) -> Result<Self, Failure> {
        let path = directory.join("database");
        let db = AsyncDatabase::open(move || Database::open(path)).await?;
        let values = db.call(Values::open).await??;
        let log = LogStore::open(&db).await?;
        let state = StateStore::open(&db, values.clone(), directory.join("snapshots")).await?;
        let config = Arc::new(config(entries).validate()?);
        let raft = Raft::new(id, config, Peers, log, state).await?;
        Ok(Self { db, values, raft })
    }

    /// Returns why Raft has stopped, when it has.
    async fn stopped(&self) -> Result<(), Failure> {
        let mut metrics = self.raft.metrics();
        loop {
            metrics.borrow_and_update().running_state.clone()?;
            metrics.changed().await?;
        }
    }

    async fn accept(&self, listener: TcpListener) -> Result<(), Failure> {
        loop {
            let (stream, _) = listener.accept().await?;
            let node = self.clone();
            tokio::spawn(async move {
                // It ends when the other side closes the connection.
                if let Err(error) = node.serve(stream).await
                    && error.kind() != std::io::ErrorKind::UnexpectedEof
                {
                    eprintln!("a connection failed: {error}");
                }
            });
        }
    }

    async fn serve(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_nodelay(true)?;
        loop {
            match receive(&mut stream).await? {
                Message::Append(request) => send(&mut stream, &self.raft.append_entries(request).await).await,
                Message::Vote(request) => send(&mut stream, &self.raft.vote(request).await).await,
                Message::Snapshot(request) => {
                    send(&mut stream, &self.raft.install_snapshot(request).await).await
                }
                Message::Init(nodes) => send(&mut stream, &answer(self.raft.initialize(nodes).await)).await,
                Message::Put(put) => send(&mut stream, &self.put(put).await).await,
                Message::Get(key) => send(&mut stream, &self.get(key).await).await,
                Message::Local(key) => send(&mut stream, &self.local(key).await).await,
                Message::Status => send(&mut stream, &Answer::Done(self.status())).await,
            }?;
        }
    }

    async fn put(&self, put: Put) -> Answer<Option<String>> {
        if !put.fits() {
            return Answer::Rejected("the key is too long; nothing was put".into());
        }
        answer_or_leader(self.raft.client_write(put).await.map(|done| done.data))
    }

    /// Sees every put that was acknowledged before.
    async fn get(&self, key: String) -> Answer<Option<String>> {
        match answer_or_leader(self.raft.ensure_linearizable().await) {
            Answer::Done(_) => self.local(key).await,
            Answer::Elsewhere(address) => Answer::Elsewhere(address),
            Answer::Failed(why) | Answer::Rejected(why) => Answer::Failed(why),
        }
    }

    async fn local(&self, key: String) -> Answer<Option<String>> {
        let values = self.values.clone();
        let read = self.db.call(move |db| values.get(&db.begin_read()?, &key));
        answer(read.await.and_then(|value| value))
    }

    fn status(&self) -> Status {
        let metrics = self.raft.metrics().borrow().clone();
        Status {
            leader: metrics.current_leader,
            last_entry: metrics.last_log_index,
            applied: metrics.last_applied.map(|id| id.index),
            snapshot: metrics.snapshot.map(|id| id.index),
            purged: metrics.purged.map(|id| id.index),
        }
    }
}

fn answer<T>(outcome: Result<T, impl std::error::Error>) -> Answer<T> {
    outcome.map_or_else(|error| Answer::Failed(error.to_string()), Answer::Done)
}

fn answer_or_leader<T, E>(outcome: Result<T, RaftError<u64, E>>) -> Answer<T>
where
    E: std::error::Error + TryAsRef<openraft::error::ForwardToLeader<u64, BasicNode>>,
{
    if let Err(error) = &outcome
        && let Some(leader) = error.forward_to_leader::<BasicNode>()
    {
        return Answer::Elsewhere(leader.leader_node.as_ref().map(|node| node.addr.clone()));
    }
    answer(outcome)
}
