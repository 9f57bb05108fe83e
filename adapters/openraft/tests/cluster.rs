//! Three processes of the example, which are killed while a client writes. Every put that was acknowledged is on all three
//! nodes in the end.
//!
//! The test starts its own binary again for each node.

#[path = "../examples/replicated/service/mod.rs"]
mod service;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use openraft::BasicNode;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use service::Client;

const COMMAND: &str = "PANTILE_OPENRAFT_COMMAND";
/// Nothing comes near this, also on a slow and busy machine.
const PATIENCE: Duration = Duration::from_secs(240);
/// Entries after which a node makes a snapshot: a few, so that a node that was away needs one.
const ENTRIES: u64 = 40;

/// Does nothing unless it is started as a node.
#[test]
fn child() {
    let Ok(command) = std::env::var(COMMAND) else { return };
    let arguments: Vec<String> = command.split('\n').map(str::to_owned).collect();
    service::run(&arguments).expect("a node");
}

/// A process, which does not outlive the test.
struct Running {
    child: Child,
    /// The node may write to it as long as it runs.
    _output: BufReader<ChildStdout>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }
}

/// Starts a node; returns the address on which it listens.
fn start(id: usize, address: &str, directory: &str) -> Option<(Running, String)> {
    let command = ["start", &id.to_string(), address, directory, &ENTRIES.to_string()].join("\n");
    let mut child = Command::new(std::env::current_exe().expect("this binary"))
        .args(["--exact", "child", "--nocapture"])
        .env(COMMAND, command)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child");
    let mut output = BufReader::new(child.stdout.take().expect("output"));
    let listens = output.by_ref().lines().map_while(Result::ok).find_map(|line| {
        let (_, address) = line.split_once(" listens on ")?;
        Some(address.to_owned())
    });
    let running = Running { child, _output: output };
    listens.map(|address| (running, address))
}

struct Cluster {
    place: TempDir,
    addresses: Vec<String>,
    running: Vec<Option<Running>>,
    /// What was acknowledged.
    put: BTreeMap<String, String>,
}

impl Cluster {
    /// Ports are the system's choice. Each node has an address of its own on loopback, so that nobody takes its port
    /// while it is away.
    async fn start() -> Self {
        let place = tempfile::tempdir().expect("a directory");
        let [high, low, ..] = std::process::id().to_le_bytes();
        let mut cluster = Self { place, addresses: Vec::new(), running: Vec::new(), put: BTreeMap::new() };
        for node in 0..3 {
            let any_port = format!("127.{}.{}.{}:0", 1 + high % 250, low, node + 1);
            let (running, address) =
                start(node + 1, &any_port, &cluster.directory(node)).expect("a node starts");
            cluster.addresses.push(address);
            cluster.running.push(Some(running));
        }
        let members = (1..).zip(&cluster.addresses).map(|(id, address)| (id, BasicNode::new(address)));
        cluster.node(0).init(members.collect()).await.expect("init");
        cluster
    }

    fn directory(&self, node: usize) -> String {
        let directory: PathBuf = self.place.path().join(format!("node {node}"));
        directory.to_str().expect("a path of text").to_owned()
    }

    fn node(&self, node: usize) -> Client {
        Client::new(&[&self.addresses[node]])
    }

    /// Knows all nodes that run.
    fn client(&self) -> Client {
        let running = self.addresses.iter().zip(&self.running).filter(|(_, running)| running.is_some());
        Client::new(&running.map(|(address, _)| address.as_str()).collect::<Vec<_>>())
    }

    fn kill(&mut self, node: usize) {
        drop(self.running[node].take().expect("it runs"));
    }

    /// Somebody may have its port for a moment, so it tries again.
    async fn restart(&mut self, node: usize) {
        let end = Instant::now() + PATIENCE;
        while self.running[node].is_none() {
            assert!(Instant::now() < end, "node {node} does not start again");
            let started = start(node + 1, &self.addresses[node], &self.directory(node));
            self.running[node] = started.map(|(running, _)| running);
            sleep(Duration::from_millis(20)).await;
        }
    }

    async fn put(&mut self, keys: std::ops::Range<u32>) {
        let client = self.client();
        for key in keys {
            // Some are longer than what a row takes in line.
            let length = if key % 40 == 39 { 300_000 } else { 100 };
            let (key, value) = (format!("key {key}"), format!("{key} ").repeat(length / 4));
            client.put(&key, &value).await.expect("a put is acknowledged");
            self.put.insert(key, value);
        }
    }

    /// Waits until a condition holds of the status of a node.
    async fn until(
        &self,
        what: &str,
        node: usize,
        holds: impl Fn(&service::Status) -> bool,
    ) -> service::Status {
        let end = Instant::now() + PATIENCE;
        loop {
            let status = self.node(node).status().await;
            match status {
                Ok(status) if holds(&status) => return status,
                status => {
                    assert!(Instant::now() < end, "waited in vain until node {node} {what}: {status:?}")
                }
            }
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The number of the node that leads in the eyes of another one.
    async fn leader(&self, asked: usize) -> usize {
        let status = self.until("knows a leader", asked, |status| status.leader.is_some()).await;
        status.leader.expect("a leader") as usize - 1
    }

    /// Waits until a node has everything, and looks at each value.
    async fn check(&self, node: usize) {
        // A put that is acknowledged is on most nodes; the leader's newest entry is not older.
        let newest = self.put.keys().last().expect("a put");
        self.client().get(newest).await.expect("a leader answers");
        let leader = self.leader(node).await;
        let last = self.until("has entries", leader, |status| status.last_entry.is_some()).await.last_entry;
        self.until("has applied them", node, |status| status.applied >= last).await;
        for (key, value) in &self.put {
            let found = self.node(node).local(key).await.expect("it answers");
            assert!(found.as_ref() == Some(value), "{key} on node {node}");
        }
    }
}

#[tokio::test]
async fn no_acknowledged_put_is_lost_when_nodes_are_killed() {
    let mut cluster = Cluster::start().await;
    cluster.put(0..60).await;

    // The leader, until the others have purged entries that it does not have.
    let leader = cluster.leader(0).await;
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    let last = cluster.until("has entries", leader, |status| status.last_entry.is_some()).await.last_entry;
    cluster.kill(leader);
    cluster.put(60..160).await;
    for other in others {
        cluster.until("has purged entries", other, |status| status.purged > last).await;
    }
    cluster.restart(leader).await;
    cluster.check(leader).await;

    // A follower.
    let follower = (cluster.leader(leader).await + 1) % 3;
    cluster.kill(follower);
    cluster.put(160..180).await;
    cluster.restart(follower).await;
    cluster.put(180..200).await;
    for node in 0..3 {
        cluster.check(node).await;
    }

    // All of them.
    (0..3).for_each(|node| cluster.kill(node));
    for node in 0..3 {
        cluster.restart(node).await;
    }
    for (key, value) in &cluster.put {
        let found = cluster.client().get(key).await.expect("a leader answers");
        assert!(found.as_ref() == Some(value), "{key}");
    }
    for node in 0..3 {
        cluster.check(node).await;
    }
    assert!(cluster.client().put(&"k".repeat(201), "").await.is_err(), "a key that no node could take");
}
