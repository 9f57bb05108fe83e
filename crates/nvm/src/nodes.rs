//! Two nodes of a machine (NUMA), each with a half of the threads and a memory of its own.

use pantile_base::limits::CHUNK_BYTES;
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The nodes that there are.
pub const NODES: usize = 2;

/// How many times as long remote memory takes as local memory, by the publication: "2-3x" (Zen+, section 1).
pub const PUBLISHED_REMOTE_COST: f64 = 2.5;

/// The highest cost. Machines are at two or three; with a hundred, a run still ends.
pub const MOST_REMOTE_COST: f64 = 100.0;

/// The pages that are spread over the nodes where nobody places anything.
const PAGE_BYTES: u64 = 4096;

/// Threads that nobody has told their node take one in turn.
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static NODE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The calling thread belongs to node `n`, modulo the number of nodes, from here on.
pub fn join_node(n: usize) {
    NODE.set(Some(n % NODES));
}

/// The node that the calling thread belongs to.
pub fn node_here() -> usize {
    NODE.get().unwrap_or_else(|| {
        join_node(NEXT.fetch_add(1, Ordering::Relaxed));
        node_here()
    })
}

/// Two nodes, and what lies where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NodeConfig {
    /// What lies where.
    pub placement: Placement,
    /// How many times as long reads and writes of the other node's memory take, 1 to [`MOST_REMOTE_COST`].
    pub remote_cost: f64,
}

/// What lies where: the designs that Zen+ compares (section 5.6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// All of it where the thread is that looks.
    Local,
    /// All of it on the other node.
    Remote,
    /// Pages by turns, and the engine knows nothing of it: "NUMA-agnostic".
    Naive,
    /// Chunks by turns, and the engine knows. Its threads write to chunks of their node: "NUMA-local write". With
    /// transactions that are sent to the threads of a node it is the soft partition.
    LocalWrites,
}

impl Placement {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Placement::Local, Placement::Remote, Placement::Naive, Placement::LocalWrites];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Placement::Local => "local",
            Placement::Remote => "remote",
            Placement::Naive => "naive",
            Placement::LocalWrites => "local-writes",
        }
    }

    /// Whether the publication has all threads on one node, and all memory on one.
    pub(crate) fn is_of_one_node(self) -> bool {
        matches!(self, Placement::Local | Placement::Remote)
    }

    /// The node of a byte, as a thread of node `here` finds it.
    pub(crate) fn node_of(self, offset: u64, here: usize) -> usize {
        match self {
            Placement::Local => here,
            Placement::Remote => (here + 1) % NODES,
            Placement::Naive => (offset / PAGE_BYTES) as usize % NODES,
            Placement::LocalWrites => (offset / CHUNK_BYTES) as usize % NODES,
        }
    }
}

impl NodeConfig {
    /// Fails unless the figures make sense, with what is wrong.
    pub(crate) fn check(self) -> Result<(), String> {
        if (1.0..=MOST_REMOTE_COST).contains(&self.remote_cost) {
            return Ok(());
        }
        Err(format!("\"{self}\": remote memory must cost 1 to {MOST_REMOTE_COST} times as much"))
    }
}

impl fmt::Display for NodeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nodes:{}:{}", self.placement.name(), self.remote_cost)
    }
}

impl FromStr for NodeConfig {
    type Err = ();

    /// As it is shown: `nodes:naive:2.5`. Without the cost, it is the published one.
    fn from_str(text: &str) -> Result<Self, ()> {
        let text = text.strip_prefix("nodes:").ok_or(())?;
        let (name, cost) = text.split_once(':').map_or((text, None), |(name, cost)| (name, Some(cost)));
        let placement = Placement::ALL.into_iter().find(|placement| placement.name() == name).ok_or(())?;
        let remote_cost = cost.map_or(Ok(PUBLISHED_REMOTE_COST), str::parse).map_err(|_| ())?;
        let config = Self { placement, remote_cost };
        config.check().map(|()| config).map_err(|_| ())
    }
}

/// What an engine is told of [`Placement::LocalWrites`].
#[derive(Debug)]
pub(crate) struct ChunksByTurns;

impl pantile_media::Nodes for ChunksByTurns {
    fn count(&self) -> usize {
        NODES
    }

    fn of_chunk(&self, chunk: u32) -> usize {
        Placement::LocalWrites.node_of(u64::from(chunk) * CHUNK_BYTES, 0)
    }

    fn here(&self) -> usize {
        node_here()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_media::Nodes;

    #[test]
    fn names_are_read_as_they_are_shown() {
        for placement in Placement::ALL {
            let config = NodeConfig { placement, remote_cost: 3.25 };
            assert_eq!(config.to_string().parse(), Ok(config));
        }
        let naive = NodeConfig { placement: Placement::Naive, remote_cost: PUBLISHED_REMOTE_COST };
        assert_eq!("nodes:naive".parse(), Ok(naive));
        assert!("nodes:naive:100".parse::<NodeConfig>().is_ok());
        for wrong in ["naive", "nodes:", "nodes:none", "nodes:naive:"] {
            assert_eq!(wrong.parse::<NodeConfig>(), Err(()), "{wrong}");
        }
        for cost in ["0.5", "inf", "nan", "100.1", "1e9"] {
            assert_eq!(format!("nodes:naive:{cost}").parse::<NodeConfig>(), Err(()), "{cost}");
        }
    }

    #[test]
    fn each_placement_puts_memory_where_it_says() {
        let of = |placement: Placement, offset, here| placement.node_of(offset, here);
        for here in 0..NODES {
            assert_eq!((of(Placement::Local, 5, here), of(Placement::Remote, 5, here)), (here, 1 - here));
            let pages = [0, 4095, 4096, 8192].map(|offset| of(Placement::Naive, offset, here));
            assert_eq!(pages, [0, 0, 1, 0]);
            let chunks = [0, CHUNK_BYTES - 1, CHUNK_BYTES, 2 * CHUNK_BYTES];
            assert_eq!(chunks.map(|offset| of(Placement::LocalWrites, offset, here)), [0, 0, 1, 0]);
        }
        assert_eq!([0, 1, 2].map(|chunk| ChunksByTurns.of_chunk(chunk)), [0, 1, 0]);
    }

    #[test]
    fn threads_take_nodes_in_turn_or_are_told() {
        let untold = || std::thread::spawn(|| [node_here(), node_here()]).join().expect("thread");
        let seen: Vec<_> = (0..8).map(|_| untold()).collect();
        assert!(seen.iter().all(|[first, again]| first == again));
        assert!((0..NODES).all(|node| seen.iter().any(|[first, _]| *first == node)), "{seen:?}");
        let told =
            |n| std::thread::spawn(move || (join_node(n), ChunksByTurns.here())).join().expect("thread").1;
        assert_eq!([0, 1, 2, 3].map(told), [0, 1, 0, 1]);
    }
}
