//! The tree: descents, lookups, inserts and removals of single keys.

use std::sync::Arc;

use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::arena::NodeArena;
use crate::layout::{Layout, Slot};
use crate::node::{Backoff, Locked, Node};

/// A B+-tree with nodes of layout `L`.
///
/// What became of an insert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// The entry is there now.
    Inserted,
    /// The key was there, with this value; nothing changed.
    Exists(u64),
    /// The key was absent, and somebody relied on that at this timestamp, which
    /// is newer than the insert's; nothing changed.
    Forbidden(u64),
}

/// The root never moves: when it splits, its content moves to two new children.
pub(crate) struct Tree<L: Layout> {
    pub(crate) layout: L,
    arena: Arc<NodeArena>,
    root: usize,
    nodes: AtomicU64,
}

/// The node a descent ended at, and how it got there.
pub(crate) struct Path<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) version: u64,
    pub(crate) parent: Option<Step<'a>>,
}

/// An inner node on the way down, and which of its children the way took.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) version: u64,
    pub(crate) child: usize,
}

impl<L: Layout> Tree<L> {
    /// An empty tree.
    pub(crate) fn new(layout: L, arena: &Arc<NodeArena>) -> Self {
        let mut tree = Self { layout, arena: Arc::clone(arena), root: 0, nodes: AtomicU64::new(0) };
        let root = tree.new_node(0, 0).addr();
        tree.root = root;
        tree.store_empty(tree.root());
        tree
    }

    /// Makes `root` the root of a tree under construction, freeing the old one.
    pub(crate) fn replace_root(&mut self, root: usize) {
        self.free_node(self.root);
        self.root = root;
    }

    /// Bytes of all nodes.
    pub(crate) fn bytes(&self) -> u64 {
        self.nodes.load(Ordering::Relaxed) * self.layout.class().bytes() as u64
    }

    #[inline(always)]
    pub(crate) fn root(&self) -> Node<'_> {
        // SAFETY: the root is a node of this tree from `new` to `drop` (I1).
        unsafe { self.node(self.root) }
    }

    /// # Safety
    /// `addr` is the address of a node of this tree's class and arena (I2).
    #[inline(always)]
    unsafe fn node(&self, addr: usize) -> Node<'_> {
        // SAFETY: the arena lives as long as the tree (I1); the rest is the caller's.
        unsafe { Node::at(addr, self.layout.class().words()) }
    }

    /// A fresh node that nobody else knows, without any content stored yet.
    pub(crate) fn new_node(&self, level: usize, mark: u64) -> Node<'_> {
        self.nodes.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the arena gave it for this class.
        let node = unsafe { self.node(self.arena.allocate(self.layout.class())) };
        node.init(level, mark);
        node
    }

    /// Gives a node back that no node of the tree leads to any more, and whose
    /// version has grown since it was reachable (I3).
    pub(crate) fn free_node(&self, addr: usize) {
        self.nodes.fetch_sub(1, Ordering::Relaxed);
        self.arena.free(addr, self.layout.class());
    }

    /// The word of child `i`; racy like any read.
    #[inline(always)]
    pub(crate) fn child_word(&self, node: Node<'_>, i: usize) -> usize {
        let word = if i == 0 { node.first_child() } else { self.layout.value(node, i - 1) };
        word as usize
    }

    /// Child `i`, if `node` is still at `version`.
    #[inline(always)]
    pub(crate) fn child(&self, node: Node<'_>, version: u64, i: usize) -> Option<Node<'_>> {
        let addr = self.child_word(node, i);
        self.layout.prefetch(addr);
        // SAFETY: the version is checked after the read (I2).
        node.unchanged(version).then(|| unsafe { self.node(addr) })
    }

    /// Child `i` of a locked inner node.
    pub(crate) fn locked_child(&self, node: &Locked<'_>, i: usize) -> Node<'_> {
        debug_assert!(node.level() > 0 && i <= self.layout.count(**node));
        // SAFETY: read under the lock (I2).
        unsafe { self.node(self.child_word(**node, i)) }
    }

    /// Goes down to `level`, or to the root if it is not that high, taking the
    /// child that `pick` says. `None` if a writer got in the way.
    #[inline(always)]
    pub(crate) fn descend(&self, level: usize, pick: impl Fn(Node<'_>) -> usize) -> Option<Path<'_>> {
        let mut node = self.root();
        let mut version = node.version();
        let mut parent = None;
        while node.level() > level {
            let i = pick(node);
            let child = self.child(node, version, i)?;
            let child_version = child.version();
            // Still the child when its version was taken.
            if !node.unchanged(version) {
                return None;
            }
            parent = Some(Step { node, version, child: i });
            (node, version) = (child, child_version);
        }
        Some(Path { node, version, parent })
    }

    /// Which child covers `key`.
    #[inline(always)]
    pub(crate) fn covering(&self, node: Node<'_>, key: &[u64]) -> usize {
        self.layout.find(node, key).after()
    }

    /// Calls `attempt` with the leaf that covers `key` until it gives a result.
    #[inline(always)]
    fn at_leaf<'a, R>(&'a self, key: &[u64], mut attempt: impl FnMut(Path<'a>) -> Option<R>) -> R {
        let mut backoff = Backoff::default();
        loop {
            let path = self.descend(0, |node| self.covering(node, key));
            if let Some(result) = path.and_then(&mut attempt) {
                return result;
            }
            backoff.wait();
        }
    }

    /// The value of `key`. If there is none, and a mark is given, the leaf's
    /// read mark is raised to it.
    #[inline]
    pub(crate) fn get(&self, key: &[u64], mark: Option<u64>) -> Option<u64> {
        self.at_leaf(key, |Path { node, version, .. }| {
            let slot = self.layout.find(node, key);
            let value = slot.found.then(|| self.layout.value(node, slot.pos));
            if let (None, Some(mark)) = (value, mark) {
                node.raise_mark(mark);
            }
            node.unchanged(version).then_some(value)
        })
    }

    /// Inserts unless present, or forbidden by the read mark.
    #[inline]
    pub(crate) fn insert(&self, key: &[u64], value: u64, ts: u64) -> Insert {
        self.at_leaf(key, |path| {
            let Path { node, version, .. } = path;
            let slot = self.layout.find(node, key);
            if slot.found {
                let present = self.layout.value(node, slot.pos);
                return node.unchanged(version).then_some(Insert::Exists(present));
            }
            let mark = node.mark();
            if mark > ts {
                return node.unchanged(version).then_some(Insert::Forbidden(mark));
            }
            let leaf = node.lock_if(version)?;
            // Again under the lock: only this look counts (I5).
            let mark = leaf.mark();
            if mark > ts {
                return Some(Insert::Forbidden(mark));
            }
            self.insert_locked(path, leaf, slot, key, value).then_some(Insert::Inserted)
        })
    }

    /// Inserts into a locked leaf; false if it had to make room instead.
    #[inline]
    fn insert_locked(&self, path: Path<'_>, leaf: Locked<'_>, slot: Slot, key: &[u64], value: u64) -> bool {
        let inserted = self.layout.insert(&leaf, slot.pos, key, value);
        if inserted {
            leaf.note_insert(slot.pos);
        } else {
            self.split(path.parent, leaf, key);
        }
        inserted
    }

    /// Removes `key` if its value is `value`, and raises the mark of its range.
    pub(crate) fn remove(&self, key: &[u64], value: u64, floor: u64) -> bool {
        let left = self.at_leaf(key, |Path { node, version, .. }| {
            let slot = self.layout.find(node, key);
            if !slot.found || self.layout.value(node, slot.pos) != value {
                return node.unchanged(version).then_some(None);
            }
            let leaf = node.lock_if(version)?;
            leaf.raise_mark(floor);
            self.layout.remove(&leaf, slot.pos);
            Some(Some(self.layout.count(node)))
        });
        if left.is_some_and(|left| self.is_sparse(left)) {
            self.merge(key, 0);
        }
        left.is_some()
    }

    /// Frees the subtree at `addr`.
    fn free_subtree(&self, addr: usize) {
        // SAFETY: called with the root or a child word of an idle tree (I2).
        let node = unsafe { self.node(addr) };
        if node.level() > 0 {
            (0..=self.layout.count(node)).for_each(|i| self.free_subtree(self.child_word(node, i)));
        }
        self.free_node(addr);
    }
}

impl<L: Layout> Drop for Tree<L> {
    fn drop(&mut self) {
        self.free_subtree(self.root);
    }
}
