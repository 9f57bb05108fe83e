//! Messages over TCP: their length in four bytes, and MessagePack.

use std::collections::BTreeMap;
use std::io;

use openraft::BasicNode;
use openraft::raft::{AppendEntriesRequest, InstallSnapshotRequest, VoteRequest};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::machine::{Put, Types};

/// No message is longer: something else talks to this port.
const LONGEST: u32 = 256 << 20;

#[derive(Serialize, Deserialize)]
pub enum Message {
    Append(AppendEntriesRequest<Types>),
    Vote(VoteRequest<u64>),
    Snapshot(InstallSnapshotRequest<Types>),
    Init(BTreeMap<u64, BasicNode>),
    Put(Put),
    Get(String),
    /// What the node itself has, without asking the others.
    Local(String),
    Status,
}

/// What a client gets.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer<T> {
    Done(T),
    /// Another node leads, at this address if it is known.
    Elsewhere(Option<String>),
    Failed(String),
    /// Asking again is of no use.
    Rejected(String),
}

/// How far a node is. Entries have numbers from 0 on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Status {
    pub leader: Option<u64>,
    pub last_entry: Option<u64>,
    pub applied: Option<u64>,
    pub snapshot: Option<u64>,
    pub purged: Option<u64>,
}

/// A connection to a node, which is made when it is needed.
pub struct Connection {
    address: String,
    stream: Option<TcpStream>,
}

impl Connection {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), stream: None }
    }

    /// Sends a message and waits for the answer. After an error, or if nobody waits any longer, the next message has a
    /// new connection.
    pub async fn ask<T: DeserializeOwned>(&mut self, message: &Message) -> io::Result<T> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => TcpStream::connect(&self.address).await?,
        };
        stream.set_nodelay(true)?;
        send(&mut stream, message).await?;
        let answer = receive(&mut stream).await?;
        self.stream = Some(stream);
        Ok(answer)
    }
}

pub async fn send(stream: &mut TcpStream, message: &impl Serialize) -> io::Result<()> {
    let bytes = rmp_serde::to_vec_named(message).map_err(io::Error::other)?;
    let length = u32::try_from(bytes.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other("the message is too long; nothing was sent"))?;
    stream.write_all(&length.to_le_bytes()).await?;
    stream.write_all(&bytes).await
}

pub async fn receive<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let length = stream.read_u32_le().await?;
    if length > LONGEST {
        return Err(io::Error::other("this is no message of the service"));
    }
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes).await?;
    rmp_serde::from_slice(&bytes).map_err(io::Error::other)
}
