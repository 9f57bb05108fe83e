//! Builds a tree from sorted entries, left to right.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use pantile_base::share_out;
use pantile_base::sync::atomic::{AtomicUsize, Ordering};

use crate::arena::NodeArena;
use crate::batch::Batch;
use crate::layout::{Content, Layout};
use crate::node::Node;
use crate::search::separator;
use crate::tree::Tree;

/// The entries of a bulk load were not in strictly ascending key order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unsorted {
    /// How many entries precede the one out of order.
    pub position: usize,
}

impl fmt::Display for Unsorted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "entry {} of a bulk load is not above the entry before it", self.position)
    }
}

impl std::error::Error for Unsorted {}

/// Sorted entries in parts that can be read apart from each other.
pub trait Parts: Sync {
    /// Number of parts. None is empty.
    fn count(&self) -> usize;

    /// The first key of a part.
    fn first(&self, part: usize) -> &[u64];

    /// Calls `push` with the entries of a part in order, until it returns
    /// false. Returns false if it did, or if the part cannot be read.
    fn each(&self, part: usize, push: &mut impl FnMut(&[u64], u64) -> bool) -> bool;
}

/// A strip of nodes is at most this share of the leaves there are already.
const STRIP_SHARE: usize = 4;

/// Pairs of leaves that show how far leaves are apart.
const SAMPLE: usize = 64;

/// Leaves that are being written from left to right.
struct Leaves<'t, L: Layout> {
    tree: &'t Tree<L>,
    budget: usize,
    /// The entries of the next leaf.
    pending: Batch,
    /// The low fence of the next leaf; `None` for the first of the tree.
    low: Option<Vec<u64>>,
    /// The finished leaves, each with its low key.
    finished: Nodes,
    /// Nodes for the next leaves.
    strip: VecDeque<usize>,
}

/// Nodes of one level, each with its low key.
type Nodes = Vec<(Vec<u64>, usize)>;

impl<'t, L: Layout> Leaves<'t, L> {
    fn new(tree: &'t Tree<L>, fill: f64, low: Option<Vec<u64>>) -> Self {
        let (pending, finished, strip) = (tree.batch(), Vec::new(), VecDeque::new());
        Self { tree, budget: budget(tree, fill), pending, low, finished, strip }
    }

    /// Adds an entry. Returns false if it is not above the last one.
    fn push(&mut self, key: &[u64], value: u64) -> bool {
        assert!(self.tree.layout.accepts(key.len()), "a key has {} words", key.len());
        assert!(self.tree.layout.holds(key, value), "the second word of a key is not its value");
        let len = self.pending.len();
        if len > 0 && self.pending.key(len - 1) >= key {
            return false;
        }
        self.pending.push(key, value);
        let (low, high) = (self.low.as_deref(), Some(key));
        let content = Content { entries: &self.pending, range: 0..len + 1, is_leaf: true, low, high };
        if len > 0 && self.tree.layout.cost(&content) > self.budget {
            self.pending.remove(len);
            let high = separator(self.pending.key(len - 1), key).to_vec();
            self.finish_leaf(Some(high));
            self.pending.push(key, value);
        }
        true
    }

    /// The key of the last entry that has been added.
    fn last(&self) -> Option<&[u64]> {
        self.pending.len().checked_sub(1).map(|last| self.pending.key(last))
    }

    /// Writes the last leaf, whose high fence is `high`.
    fn end(&mut self, high: Option<Vec<u64>>) {
        let last = self.pending.len().saturating_sub(1);
        let (low, end) = (self.low.as_deref(), high.as_deref());
        let content = Content { entries: &self.pending, range: 0..last + 1, is_leaf: true, low, high: end };
        // The fence may be far from the entries.
        if last > 0 && self.tree.layout.cost(&content) > self.budget {
            let (key, value) = (self.pending.key(last).to_vec(), self.pending.value(last));
            self.pending.remove(last);
            let between = separator(self.pending.key(last - 1), &key).to_vec();
            self.finish_leaf(Some(between));
            self.pending.push(&key, value);
        }
        self.finish_leaf(high);
    }

    /// Frees the leaves of an abandoned tree.
    fn free(mut self) {
        self.finished.drain(..).for_each(|(_, leaf)| self.tree.free_node(leaf));
    }

    fn new_leaf(&mut self) -> Node<'t> {
        let (tree, class) = (self.tree, self.tree.layout.class());
        if self.strip.is_empty() {
            self.strip = tree.arena.allocate_strip(class, 1 + self.finished.len() / STRIP_SHARE);
        }
        tree.new_node_at(self.strip.pop_front().expect("a strip has a node"), 0, 0)
    }

    /// Writes the pending entries to a leaf whose high fence is `high`.
    fn finish_leaf(&mut self, high: Option<Vec<u64>>) {
        let leaf = self.new_leaf();
        let range = 0..self.pending.len();
        let (low, end) = (self.low.as_deref(), high.as_deref());
        let content = Content { entries: &self.pending, range, is_leaf: true, low, high: end };
        self.tree.layout.store(leaf, &content);
        leaf.set_tree(self.tree.id);
        self.finished.push((self.low.take().unwrap_or_default(), leaf.addr()));
        self.low = high;
        self.pending.clear(L::ONE_WORD);
    }
}

impl<L: Layout> Drop for Leaves<'_, L> {
    fn drop(&mut self) {
        let (arena, class) = (&self.tree.arena, self.tree.layout.class());
        self.strip.drain(..).for_each(|node| arena.free(node, class));
    }
}

fn budget<L: Layout>(tree: &Tree<L>, fill: f64) -> usize {
    // A leaf's high fence may be a word longer than its last key.
    let most = tree.layout.budget() - usize::from(!L::ONE_WORD);
    (most as f64 * fill.clamp(0.5, 1.0)) as usize
}

impl<L: Layout> Tree<L> {
    /// Writes the inner nodes of `level` above some nodes.
    fn level_above(&self, level: usize, nodes: Nodes, budget: usize) -> Nodes {
        let mut children = nodes.into_iter().peekable();
        let mut finished = Vec::new();
        while let Some((low, first)) = children.next() {
            let mut entries = self.batch();
            while let Some((key, child)) = children.peek() {
                entries.push(key, *child as u64);
                if self.is_too_much(&entries, budget) {
                    entries.remove(entries.len() - 1);
                    break;
                }
                children.next();
            }
            let node = self.new_node(level, 0);
            node.set_first_child(first as u64);
            self.layout.store(node, &Content::inner(&entries, 0..entries.len()));
            finished.push((low, node.addr()));
        }
        finished
    }

    fn is_too_much(&self, entries: &Batch, budget: usize) -> bool {
        let content = Content::inner(entries, 0..entries.len());
        entries.len() > 1 && self.layout.cost(&content) > budget
    }

    /// Writes all levels above the leaves.
    fn finish(mut self, leaves: Nodes, budget: usize) -> Self {
        let (mut level, mut nodes) = (0, leaves);
        if self.is_directory_unfit() {
            // The first has no low fence.
            let step = (nodes.len() / SAMPLE).max(1);
            let pairs = nodes[1..].windows(2).step_by(step);
            self.fit_directory(pairs.map(|two| two[1].0[0] - two[0].0[0]).collect());
        }
        while nodes.len() > 1 {
            level += 1;
            nodes = self.level_above(level, nodes, budget);
        }
        let root = nodes[0].1;
        self.replace_root(root);
        self
    }

    /// A tree of the given entries. Each node is filled to `fill` of its
    /// capacity.
    pub(crate) fn bulk_load<K: AsRef<[u64]>>(
        layout: L,
        arena: &Arc<NodeArena>,
        entries: impl IntoIterator<Item = (K, u64)>,
        fill: f64,
    ) -> Result<Self, Unsorted> {
        let tree = Self::new(layout, arena);
        let mut leaves = Leaves::new(&tree, fill, None);
        for (position, (key, value)) in entries.into_iter().enumerate() {
            if !leaves.push(key.as_ref(), value) {
                leaves.free();
                return Err(Unsorted { position });
            }
        }
        leaves.end(None);
        let (nodes, budget) = (std::mem::take(&mut leaves.finished), leaves.budget);
        drop(leaves);
        Ok(tree.finish(nodes, budget))
    }

    /// The same from entries in parts, on this many threads. `None` if the
    /// entries are not in order, or cannot be read.
    pub(crate) fn bulk_load_parts(
        layout: L,
        arena: &Arc<NodeArena>,
        parts: &impl Parts,
        threads: usize,
        fill: f64,
    ) -> Option<Self> {
        let tree = Self::new(layout, arena);
        let count = parts.count();
        if count == 0 {
            return Some(tree);
        }
        let next = AtomicUsize::new(0);
        let work = |_| {
            let mine = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
            let load = |part| (part, tree.load_part(parts, part, fill));
            mine.take_while(|&part| part < count).map(load).collect::<Vec<_>>()
        };
        let mut loaded: Vec<_> = share_out(threads.min(count), work).into_iter().flatten().collect();
        loaded.sort_unstable_by_key(|(part, _)| *part);
        let is_whole = loaded.iter().all(|(_, leaves)| leaves.is_some());
        let leaves: Nodes = loaded.into_iter().filter_map(|(_, leaves)| leaves).flatten().collect();
        if !is_whole {
            leaves.into_iter().for_each(|(_, leaf)| tree.free_node(leaf));
            return None;
        }
        let budget = budget(&tree, fill);
        Some(tree.finish(leaves, budget))
    }

    /// The leaves of a part. The first keys of parts are the fences between them.
    fn load_part(&self, parts: &impl Parts, part: usize, fill: f64) -> Option<Nodes> {
        let fence = |part: usize| parts.first(part).to_vec();
        let mut leaves = Leaves::new(self, fill, (part > 0).then(|| fence(part)));
        let high = (part + 1 < parts.count()).then(|| fence(part + 1));
        // Entries are in order, so those between the first and the last are inside, too.
        let mut is_inside = false;
        let mut push = |key: &[u64], value| {
            is_inside = is_inside || key >= parts.first(part);
            is_inside && leaves.push(key, value)
        };
        let is_read = parts.each(part, &mut push);
        let is_below = |last: &[u64]| high.as_ref().is_none_or(|high| last < &high[..]);
        if !(is_read && leaves.last().is_none_or(is_below)) {
            leaves.free();
            return None;
        }
        leaves.end(high);
        Some(std::mem::take(&mut leaves.finished))
    }
}
