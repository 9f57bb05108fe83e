//! Nodes of a machine: which memory is whose, and where a thread runs.

use crate::os;
use pantile_base::limits::CHUNK_BYTES;
use std::fmt::Debug;
use std::fs;
use std::path::Path;

/// Where the parts of a medium lie on a machine of several nodes: processors with memory of their own, which they
/// reach sooner than that of others (NUMA).
pub trait Nodes: Send + Sync + Debug {
    /// Their number, 2 or more.
    fn count(&self) -> usize;

    /// The node that has a chunk of the medium. It stays the same.
    fn of_chunk(&self, chunk: u32) -> usize;

    /// The node that the calling thread runs on.
    fn here(&self) -> usize;
}

/// Chunks in a row that are on one node. The system keeps a record for each such row.
const ROW_CHUNKS: u64 = 8;

/// The nodes that have memory.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct MachineNodes {
    /// The numbers that the system knows them by.
    ids: Vec<u32>,
    /// By processor, an index into `ids`. Processors of nodes without memory use the first.
    of_cpu: Vec<usize>,
}

impl MachineNodes {
    /// Those of this machine; `None` where there is one, or the system does not say.
    pub(crate) fn detect() -> Option<Self> {
        Self::told_in(Path::new("/sys/devices/system/node"))
    }

    /// What a directory of the system tells.
    fn told_in(dir: &Path) -> Option<Self> {
        let list = |name: &str| Some(numbers(fs::read_to_string(dir.join(name)).ok()?.trim()));
        let ids = list("has_memory")?;
        if ids.len() < 2 {
            return None;
        }
        let mut of_cpu = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            for cpu in list(&format!("node{id}/cpulist"))? {
                let cpu = cpu as usize;
                of_cpu.resize(of_cpu.len().max(cpu + 1), 0);
                of_cpu[cpu] = index;
            }
        }
        Some(Self { ids, of_cpu })
    }

    /// Asks for memory of the right nodes behind bytes `from..to` of a mapping at `at`, which are not used yet. A wish:
    /// the system may refuse, or take memory of another node where one is full.
    pub(crate) fn place(&self, at: impl Fn(u64) -> *mut std::ffi::c_void, from: u64, to: u64) {
        for (start, end, node) in self.rows(from, to) {
            // SAFETY: the caller attaches the range, and nobody uses it yet.
            unsafe { os::prefer_node(at(start), end - start, self.ids[node]) };
        }
    }

    /// The parts of `from..to` that are on one node each.
    fn rows(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64, usize)> {
        let bytes = ROW_CHUNKS * CHUNK_BYTES;
        (from / bytes..to.div_ceil(bytes)).map(move |row| {
            let (start, end) = (row * bytes, (row + 1) * bytes);
            (start.max(from), end.min(to), self.of_chunk((row * ROW_CHUNKS) as u32))
        })
    }
}

impl Nodes for MachineNodes {
    fn count(&self) -> usize {
        self.ids.len()
    }

    fn of_chunk(&self, chunk: u32) -> usize {
        (u64::from(chunk) / ROW_CHUNKS) as usize % self.ids.len()
    }

    fn here(&self) -> usize {
        os::cpu_here().and_then(|cpu| self.of_cpu.get(cpu).copied()).unwrap_or(0)
    }
}

/// The numbers of a list like `0-3,8`. What is not a number is left out.
fn numbers(list: &str) -> Vec<u32> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(files: &[(&str, &str)]) -> Option<MachineNodes> {
        let root = tempfile::tempdir().expect("directory");
        for (name, text) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().expect("a directory")).expect("create");
            fs::write(path, format!("{text}\n")).expect("write");
        }
        MachineNodes::told_in(root.path())
    }

    #[test]
    fn a_machine_without_nodes_has_none() {
        assert_eq!(told(&[]), None);
        assert_eq!(told(&[("has_memory", "0"), ("node0/cpulist", "0-3")]), None);
        assert_eq!(told(&[("has_memory", "0-1"), ("node0/cpulist", "0-3")]), None, "half of it is not told");
    }

    #[test]
    fn processors_belong_to_nodes_with_memory() {
        let files = [
            ("has_memory", "0,3"),
            ("node0/cpulist", "0-1,4"),
            ("node1/cpulist", "6"),
            ("node3/cpulist", "2-3,5"),
        ];
        let nodes = told(&files).expect("two nodes");
        assert_eq!(nodes, MachineNodes { ids: vec![0, 3], of_cpu: vec![0, 0, 1, 1, 0, 1] });
        assert!(nodes.here() < nodes.count());
        // A node may have memory only.
        let files = [("has_memory", "0-1"), ("node0/cpulist", "0"), ("node1/cpulist", "")];
        assert_eq!(told(&files).map(|nodes| (nodes.count(), nodes.of_cpu)), Some((2, vec![0])));
    }

    #[test]
    fn rows_of_chunks_are_on_one_node() {
        let nodes = MachineNodes { ids: vec![0, 3], of_cpu: vec![] };
        let row = ROW_CHUNKS * CHUNK_BYTES;
        let rows: Vec<_> = nodes.rows(row - 5, 3 * row + 7).collect();
        let expected =
            [(row - 5, row, 0), (row, 2 * row, 1), (2 * row, 3 * row, 0), (3 * row, 3 * row + 7, 1)];
        assert_eq!(rows, expected);
        for (start, _, node) in rows {
            assert_eq!(nodes.of_chunk((start / CHUNK_BYTES) as u32), node);
        }
        assert_eq!(nodes.rows(row, row).count(), 0);
    }
}
