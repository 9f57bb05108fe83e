//! Builds a tree from sorted entries, left to right.

use std::fmt;
use std::sync::Arc;

use crate::arena::NodeArena;
use crate::batch::Batch;
use crate::layout::{Content, Layout};
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

/// A tree whose leaves are being written.
struct Loader<L: Layout> {
    tree: Tree<L>,
    budget: usize,
    /// The entries of the next leaf.
    pending: Batch,
    /// The low fence of the next leaf; `None` for the first.
    low: Option<Vec<u64>>,
    /// The finished nodes, each with its low key.
    finished: Vec<(Vec<u64>, usize)>,
}

impl<L: Layout> Loader<L> {
    /// Adds an entry. Returns false if it is not above the last one.
    fn push(&mut self, key: &[u64], value: u64) -> bool {
        let len = self.pending.len();
        if len > 0 && self.pending.key(len - 1) >= key {
            return false;
        }
        self.pending.push(key, value);
        let (low, high) = (self.low.as_deref(), Some(key));
        let content = Content { entries: &self.pending, range: 0..len + 1, low, high };
        if len > 0 && self.tree.layout.cost(&content) > self.budget {
            self.pending.remove(len);
            let high = separator(self.pending.key(len - 1), key).to_vec();
            self.finish_leaf(Some(high));
            self.pending.push(key, value);
        }
        true
    }

    /// Frees the leaves of an abandoned tree.
    fn free_finished(&mut self) {
        self.finished.drain(..).for_each(|(_, leaf)| self.tree.free_node(leaf));
    }

    /// Writes the pending entries to a leaf whose high fence is `high`.
    fn finish_leaf(&mut self, high: Option<Vec<u64>>) {
        let leaf = self.tree.new_node(0, 0);
        let range = 0..self.pending.len();
        let (low, end) = (self.low.as_deref(), high.as_deref());
        let content = Content { entries: &self.pending, range, low, high: end };
        self.tree.layout.store(leaf, &content);
        self.finished.push((self.low.take().unwrap_or_default(), leaf.addr()));
        self.low = high;
        self.pending.clear(L::ONE_WORD);
    }

    /// Writes the inner nodes of `level` above the finished nodes.
    fn finish_level(&mut self, level: usize) {
        let mut children = std::mem::take(&mut self.finished).into_iter().peekable();
        while let Some((low, first)) = children.next() {
            let mut entries = self.tree.batch();
            while let Some((key, child)) = children.peek() {
                entries.push(key, *child as u64);
                if self.is_too_much(&entries) {
                    entries.remove(entries.len() - 1);
                    break;
                }
                children.next();
            }
            let node = self.tree.new_node(level, 0);
            node.set_first_child(first as u64);
            self.tree.layout.store(node, &Content::inner(&entries, 0..entries.len()));
            self.finished.push((low, node.addr()));
        }
    }

    fn is_too_much(&self, entries: &Batch) -> bool {
        let content = Content::inner(entries, 0..entries.len());
        entries.len() > 1 && self.tree.layout.cost(&content) > self.budget
    }

    /// Writes all levels above the leaves.
    fn finish(mut self) -> Tree<L> {
        let mut level = 0;
        self.finish_leaf(None);
        while self.finished.len() > 1 {
            level += 1;
            self.finish_level(level);
        }
        let root = self.finished[0].1;
        self.tree.replace_root(root);
        self.tree
    }
}

impl<L: Layout> Tree<L> {
    /// A tree of the given entries. Each node is filled to `fill` of its
    /// capacity.
    pub(crate) fn bulk_load<K: AsRef<[u64]>>(
        layout: L,
        arena: &Arc<NodeArena>,
        entries: impl IntoIterator<Item = (K, u64)>,
        fill: f64,
    ) -> Result<Self, Unsorted> {
        let tree = Self::new(layout, arena);
        // A leaf's high fence may be a word longer than its last key.
        let most = layout.budget() - usize::from(!L::ONE_WORD);
        let budget = (most as f64 * fill.clamp(0.5, 1.0)) as usize;
        let pending = tree.batch();
        let mut loader = Loader { tree, budget, pending, low: None, finished: Vec::new() };
        for (position, (key, value)) in entries.into_iter().enumerate() {
            let key = key.as_ref();
            assert!(layout.accepts(key.len()), "a key has {} words", key.len());
            if !loader.push(key, value) {
                loader.free_finished();
                return Err(Unsorted { position });
            }
        }
        Ok(loader.finish())
    }
}
