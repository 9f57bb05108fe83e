//! A client, which finds the leader and asks again after failures.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use openraft::BasicNode;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep, timeout};

use super::machine::Put;
use super::wire::{Answer, Connection, Message, Status};

/// For one answer; then it asks again, perhaps another node.
const ANSWER: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(100);
/// A new leader is elected meanwhile. What takes longer, somebody should know of.
const SOON: Duration = Duration::from_secs(3);

/// Knows some of the nodes.
pub struct Client {
    addresses: Vec<String>,
    patience: Duration,
}

impl Client {
    pub fn new(addresses: &[&str]) -> Self {
        let addresses = addresses.iter().map(ToString::to_string).collect();
        Self { addresses, patience: Duration::from_secs(120) }
    }

    pub async fn init(&self, nodes: BTreeMap<u64, BasicNode>) -> io::Result<()> {
        once(&self.addresses[0], &Message::Init(nodes)).await
    }

    /// Returns what was there before, when the put is durable on most nodes. A put that failed may still be made.
    pub async fn put(&self, key: &str, value: &str) -> io::Result<Option<String>> {
        self.led(&Message::Put(Put { key: key.into(), value: value.into() })).await
    }

    /// Sees every put that was acknowledged before.
    pub async fn get(&self, key: &str) -> io::Result<Option<String>> {
        self.led(&Message::Get(key.into())).await
    }

    /// What the first node has.
    pub async fn local(&self, key: &str) -> io::Result<Option<String>> {
        once(&self.addresses[0], &Message::Local(key.into())).await
    }

    /// How far the first node is.
    pub async fn status(&self) -> io::Result<Status> {
        once(&self.addresses[0], &Message::Status).await
    }

    /// Asks the leader. A node that does not lead names the one that does; if it does not know, or does not answer, the next is asked.
    async fn led<T: DeserializeOwned>(&self, message: &Message) -> io::Result<T> {
        let began = Instant::now();
        let mut is_told = false;
        let mut next = self.addresses.iter().cycle();
        let mut leader = None;
        let mut pause = Duration::ZERO;
        loop {
            let address = leader.take().or_else(|| next.next().cloned());
            let address = address.expect("a client knows a node");
            let failed = match ask(&address, message).await {
                Ok(Answer::Done(value)) => return Ok(value),
                Ok(Answer::Elsewhere(address)) => {
                    leader = address;
                    io::Error::other("no node leads")
                }
                Ok(Answer::Rejected(why)) => return Err(io::Error::other(why)),
                Ok(Answer::Failed(why)) => io::Error::other(why),
                Err(error) => error,
            };
            let waited = began.elapsed();
            if waited > self.patience {
                return Err(io::Error::new(failed.kind(), format!("{address}: {failed}")));
            }
            if waited > SOON && !is_told {
                eprintln!("{address}: {failed}; asking again, for {} s in all", self.patience.as_secs());
                is_told = true;
            }
            // The first that is asked names the leader nearly always.
            sleep(pause).await;
            pause = PAUSE;
        }
    }
}

async fn ask<T: DeserializeOwned>(address: &str, message: &Message) -> io::Result<Answer<T>> {
    timeout(ANSWER, Connection::new(address).ask(message)).await?
}

async fn once<T: DeserializeOwned>(address: &str, message: &Message) -> io::Result<T> {
    match ask(address, message).await? {
        Answer::Done(value) => Ok(value),
        Answer::Elsewhere(_) => Err(io::Error::other("this node does not lead")),
        Answer::Failed(why) | Answer::Rejected(why) => Err(io::Error::other(why)),
    }
}
