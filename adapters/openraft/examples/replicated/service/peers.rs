//! How Raft talks to the other nodes.

use openraft::BasicNode;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;

use super::machine::Types;
use super::wire::{Connection, Message};

type Outcome<T, E> = Result<T, RPCError<u64, BasicNode, E>>;

pub struct Peers;

pub struct Peer {
    id: u64,
    connection: Connection,
}

impl RaftNetworkFactory<Types> for Peers {
    type Network = Peer;

    async fn new_client(&mut self, id: u64, node: &BasicNode) -> Peer {
        Peer { id, connection: Connection::new(&node.addr) }
    }
}

impl Peer {
    async fn ask<T, E>(&mut self, message: Message) -> Outcome<T, E>
    where
        T: DeserializeOwned,
        E: std::error::Error + DeserializeOwned,
    {
        let answer = self.connection.ask::<Result<T, E>>(&message).await;
        let answer = answer.map_err(|error| Unreachable::new(&error))?;
        Ok(answer.map_err(|error| RemoteError::new(self.id, error))?)
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _: RPCOption,
    ) -> Outcome<AppendEntriesResponse<u64>, RaftError<u64>> {
        self.ask(Message::Append(request)).await
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _: RPCOption,
    ) -> Outcome<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>> {
        self.ask(Message::Snapshot(request)).await
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _: RPCOption,
    ) -> Outcome<VoteResponse<u64>, RaftError<u64>> {
        self.ask(Message::Vote(request)).await
    }
}
