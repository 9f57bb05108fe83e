//! Which node a partition is mapped to, and which thread a transaction is assigned to: Algorithms 3 and 4.

use std::cmp::Reverse;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicUsize, Ordering};

use pantile_testkit::Random;

/// Partitions. Their map and their counts fit into a processor's cache.
pub const PARTITIONS: usize = 2048;

/// Loads of nodes may differ by this much before a transaction goes to the least one instead of its data: delta.
pub const BALANCED: f64 = 0.3;

/// A partition is mapped to another node only for this many times the accesses of its own: eta.
pub const CHANGE: f64 = 1.2;

/// Nodes with this many times the least mapped accesses, or more, get no further partition.
pub const NEARLY_LEAST: f64 = 1.1;

/// The partition of a key. Keys are numbers that lie close together, and are their own hash.
pub fn partition_of(key: u64) -> usize {
    (key % PARTITIONS as u64) as usize
}

/// Partitions, the node of each, and the accesses of each thread to each.
///
/// Thread `n` belongs to node `n` modulo the number of nodes.
#[derive(Debug)]
pub struct SoftPartition {
    nodes: usize,
    /// By thread, then by partition.
    accesses: Vec<Vec<AtomicU32>>,
    /// By partition.
    node_of: Vec<AtomicU8>,
    /// The thread of each node that is next.
    turn: Vec<AtomicUsize>,
}

impl SoftPartition {
    /// For threads on nodes, of which there are no more than threads. Partitions are mapped to nodes by turns.
    pub fn new(threads: usize, nodes: usize) -> Self {
        assert!((1..=threads).contains(&nodes), "{threads} threads on {nodes} nodes");
        let zeros = || (0..PARTITIONS).map(|_| AtomicU32::new(0)).collect();
        Self {
            nodes,
            accesses: (0..threads).map(|_| zeros()).collect(),
            node_of: (0..PARTITIONS).map(|partition| AtomicU8::new((partition % nodes) as u8)).collect(),
            turn: (0..nodes).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    /// The nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The threads of a node.
    pub fn threads_of(&self, node: usize) -> impl Iterator<Item = usize> + use<> {
        (node..self.accesses.len()).step_by(self.nodes)
    }

    /// The node that a partition is mapped to.
    pub fn node_of(&self, partition: usize) -> usize {
        usize::from(self.node_of[partition].load(Ordering::Relaxed))
    }

    /// Algorithm 3: the thread for a transaction with these keys, where each node has this load, from 0 to 1. Only a
    /// transaction of which no key is known goes to a random node.
    pub fn assign(&self, load: &[f64], keys: &[u64], random: &mut Random) -> usize {
        let least = (0..self.nodes).min_by(|a, b| load[*a].total_cmp(&load[*b])).unwrap_or(0);
        let most = load.iter().copied().fold(0.0, f64::max);
        let node = if most - load[least] > BALANCED { least } else { self.affinity(keys, random) };
        let threads = self.threads_of(node).count();
        let turn = self.turn[node].fetch_add(1, Ordering::Relaxed) % threads;
        let thread = node + turn * self.nodes;
        for key in keys {
            self.accesses[thread][partition_of(*key)].fetch_add(1, Ordering::Relaxed);
        }
        thread
    }

    /// The node with most votes, each key one.
    fn affinity(&self, keys: &[u64], random: &mut Random) -> usize {
        if keys.is_empty() {
            return random.below(self.nodes as u64) as usize;
        }
        let votes =
            |node: &usize| keys.iter().filter(|key| self.node_of(partition_of(**key)) == *node).count();
        // The first of those with as many.
        (0..self.nodes).rev().max_by_key(votes).unwrap_or(0)
    }

    /// Algorithm 4: maps partitions to nodes by the accesses since the last time, the hottest partition first.
    pub fn map(&self) {
        let counts = self.take_counts();
        let total = |partition: usize| counts.iter().map(|of| u64::from(of[partition])).sum::<u64>();
        let mut order: Vec<_> = (0..PARTITIONS).map(|partition| (total(partition), partition)).collect();
        order.sort_by_key(|&(accesses, partition)| (Reverse(accesses), partition));
        let mut mapped = vec![Mapped::default(); self.nodes];
        for (_, partition) in order {
            let of = |node: usize| counts[node][partition];
            let own = self.node_of(partition);
            let candidate = candidates(&mapped).max_by_key(|&node| (of(node), Reverse(node)));
            let node =
                candidate.filter(|&node| f64::from(of(node)) > f64::from(of(own)) * CHANGE).unwrap_or(own);
            self.node_of[partition].store(node as u8, Ordering::Relaxed);
            mapped[node].partitions += 1;
            mapped[node].accesses += u64::from(of(node));
        }
    }

    /// The accesses of each node to each partition, which begin at zero again.
    fn take_counts(&self) -> Vec<Vec<u32>> {
        let of_node = |node: usize| {
            let of = |partition: usize| {
                self.threads_of(node).map(|n| self.accesses[n][partition].swap(0, Ordering::Relaxed)).sum()
            };
            (0..PARTITIONS).map(of).collect()
        };
        (0..self.nodes).map(of_node).collect()
    }
}

/// What has been mapped to a node.
#[derive(Debug, Clone, Copy, Default)]
struct Mapped {
    partitions: usize,
    accesses: u64,
}

/// The nodes that may get another partition: those without more accesses than others, and with no more than
/// their share of the partitions.
fn candidates(mapped: &[Mapped]) -> impl Iterator<Item = usize> {
    let least = mapped.iter().map(|node| node.accesses).min().unwrap_or(0);
    let share = PARTITIONS.div_ceil(mapped.len());
    (0..mapped.len()).filter(move |&node| {
        let Mapped { partitions, accesses } = mapped[node];
        // A node that has none is not above the least, even where that is zero.
        (accesses == least || (accesses as f64) < NEARLY_LEAST * least as f64) && partitions < share
    })
}

#[cfg(test)]
#[path = "map_test.rs"]
mod tests;
