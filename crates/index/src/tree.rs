//! The tree: descents, and lookups, inserts and removals of single keys.

use std::sync::Arc;

use pantile_base::sync::atomic::{AtomicU64, Ordering};

use crate::arena::NodeArena;
use crate::directory::{Directory, Span};
use crate::finger::{Finger, LeafSeen, next_tree};
use crate::layout::{Layout, Slot};
use crate::node::{Backoff, Locked, Node, Side};

/// The result of an insert.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Insert {
    /// The entry was inserted.
    Inserted,
    /// The key is present, with this value. Nothing changed.
    Exists(u64),
    /// The key was absent, but a reader relied on its absence at this
    /// timestamp, which is newer than the insert's. Nothing changed.
    Forbidden(u64),
}

/// A B+-tree with nodes of layout `L`.
///
/// The root never moves. When it splits, its content moves to two new children.
pub(crate) struct Tree<L: Layout> {
    pub(crate) layout: L,
    pub(crate) arena: Arc<NodeArena>,
    /// No other tree of this process has it, or had it.
    pub(crate) id: u64,
    root: usize,
    nodes: AtomicU64,
    pub(crate) directory: Directory,
}

/// The node that a descent ended at, and its parent.
pub(crate) struct Path<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) version: u64,
    pub(crate) parent: Option<Step<'a>>,
}

/// An inner node on the way down, and the child that the descent took.
#[derive(Clone, Copy)]
pub(crate) struct Step<'a> {
    pub(crate) node: Node<'a>,
    pub(crate) version: u64,
    pub(crate) child: usize,
}

impl<L: Layout> Tree<L> {
    /// An empty tree.
    pub(crate) fn new(layout: L, arena: &Arc<NodeArena>) -> Self {
        let (id, nodes) = (next_tree(), AtomicU64::new(0));
        let directory = Directory::default();
        let mut tree = Self { layout, arena: Arc::clone(arena), id, root: 0, nodes, directory };
        let root = tree.new_node(0, 0).addr();
        tree.root = root;
        tree.store_empty(tree.root());
        tree
    }

    /// Sets the root of a tree under construction and frees the old one.
    pub(crate) fn replace_root(&mut self, root: usize) {
        self.free_node(self.root);
        self.root = root;
    }

    /// Bytes of all nodes and of the directory.
    pub(crate) fn bytes(&self) -> u64 {
        let nodes = self.nodes.load(Ordering::Relaxed) * self.layout.class().bytes() as u64;
        nodes + self.directory.bytes() as u64
    }

    /// Whether the tree deserves another directory. Trees for keys of several words have none: it
    /// gains nothing there.
    #[inline]
    pub(crate) fn is_directory_unfit(&self) -> bool {
        L::ONE_WORD && self.directory.is_unfit_for(self.nodes.load(Ordering::Relaxed))
    }

    /// Makes another directory. `gaps` are between first keys of neighbouring leaves.
    #[cold]
    pub(crate) fn fit_directory(&self, gaps: Vec<u64>) {
        let bytes = self.directory.fit(self.nodes.load(Ordering::Relaxed), gaps);
        self.arena.note_directory(bytes);
    }

    /// The gaps between the separators of a locked node.
    pub(crate) fn gaps(&self, node: &Locked<'_>) -> Vec<u64> {
        let separators = self.entries(**node);
        (1..separators.len()).map(|i| separators.key(i)[0] - separators.key(i - 1)[0]).collect()
    }

    #[inline(always)]
    pub(crate) fn root(&self) -> Node<'_> {
        // SAFETY: the root is a node of this tree from `new` to `drop` (I1).
        unsafe { self.node(self.root) }
    }

    /// # Safety
    /// `addr` is the address of a node of this tree's class and arena (I2).
    #[inline(always)]
    pub(crate) unsafe fn node(&self, addr: usize) -> Node<'_> {
        // SAFETY: the arena outlives the tree (I1); the rest is by the
        // contract.
        unsafe { Node::at(addr, self.layout.class().words()) }
    }

    /// A fresh node that no other thread knows. No content is stored yet.
    pub(crate) fn new_node(&self, level: usize, mark: u64) -> Node<'_> {
        self.new_node_at(self.arena.allocate(self.layout.class()), level, mark)
    }

    /// The same at an address that the arena has returned for the layout's class.
    pub(crate) fn new_node_at(&self, addr: usize, level: usize, mark: u64) -> Node<'_> {
        self.nodes.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the arena returned it for this class.
        let node = unsafe { self.node(addr) };
        node.init(level, mark);
        node
    }

    /// Frees a node that no node of the tree refers to any more. Its version
    /// must have grown since it was reachable (I3).
    pub(crate) fn free_node(&self, addr: usize) {
        self.nodes.fetch_sub(1, Ordering::Relaxed);
        self.arena.free(addr, self.layout.class());
    }

    /// The word of child `i`. Races with writers like any read.
    #[inline(always)]
    pub(crate) fn child_word(&self, node: Node<'_>, i: usize) -> usize {
        let word = if i == 0 { node.first_child() } else { self.layout.value(node, i - 1) };
        word as usize
    }

    /// Child `i`, if `node` is still at `version`.
    #[inline(always)]
    pub(crate) fn child(
        &self,
        node: Node<'_>,
        version: u64,
        i: usize,
        prefetch: impl Fn(Node<'_>, usize, usize) + Copy,
    ) -> Option<Node<'_>> {
        let addr = self.child_word(node, i);
        prefetch(node, i, addr);
        // SAFETY: the version is checked after the read (I2).
        node.unchanged(version).then(|| unsafe { self.node(addr) })
    }

    /// Child `i` of a locked inner node.
    pub(crate) fn locked_child(&self, node: &Locked<'_>, i: usize) -> Node<'_> {
        debug_assert!(node.level() > 0 && i <= self.layout.count(**node));
        // SAFETY: read under the lock (I2).
        unsafe { self.node(self.child_word(**node, i)) }
    }

    /// Descends to `level`, or stops at the root if the tree is lower. Takes
    /// the child that `pick` returns. Returns `None` if a writer interfered.
    #[inline(always)]
    pub(crate) fn descend(&self, level: usize, pick: impl Fn(Node<'_>) -> usize) -> Option<Path<'_>> {
        self.descend_by(level, pick, |_, _, addr| self.layout.prefetch(addr))
    }

    /// The same. `prefetch` is called with a node, the number of a child and its address.
    #[inline(always)]
    fn descend_by(
        &self,
        level: usize,
        pick: impl Fn(Node<'_>) -> usize,
        prefetch: impl Fn(Node<'_>, usize, usize) + Copy,
    ) -> Option<Path<'_>> {
        let mut node = self.root();
        let mut version = node.version();
        let mut parent = None;
        while node.level() > level {
            let i = pick(node);
            let child = self.child(node, version, i, prefetch)?;
            let child_version = child.version();
            // The node was still its parent's child when its version was taken.
            if !node.unchanged(version) {
                return None;
            }
            parent = Some(Step { node, version, child: i });
            (node, version) = (child, child_version);
        }
        Some(Path { node, version, parent })
    }

    /// The child that covers `key`.
    #[inline(always)]
    pub(crate) fn covering(&self, node: Node<'_>, key: &[u64]) -> usize {
        self.layout.covering(node, key)
    }

    /// The version of a leaf that the directory has named, if it covers `key`. As long as it has
    /// that version, it is a leaf of this tree.
    #[inline(always)]
    pub(crate) fn version_of(&self, leaf: Node<'_>, key: &[u64]) -> Option<u64> {
        let version = leaf.version();
        // The version comes first, and what the leaf covers last (I8).
        (leaf.tree() == self.id && self.layout.covers(leaf, key)).then_some(version)
    }

    /// Enters a leaf that covers the key `word`, which the directory did not know.
    #[cold]
    pub(crate) fn note(&self, leaf: Node<'_>, word: u64) {
        // SAFETY: addresses in the directory are those of leaves of this tree, and the arena keeps
        // their memory and their size (I1).
        let span_of = |addr| (addr != 0).then(|| unsafe { self.node(addr) }).and_then(|leaf| self.span(leaf));
        // A root that is a leaf is in no directory: a look-up finds it without.
        if let Some(span) = self.span(leaf)
            && leaf.addr() != self.root
        {
            self.directory.note(leaf.addr(), span, word, span_of);
        }
    }

    /// What a leaf of this tree covers, as far as that matters to a directory.
    fn span(&self, leaf: Node<'_>) -> Option<Span> {
        let is_of_this = leaf.tree() == self.id;
        let fence = |side, none| if leaf.has_fence(side) { leaf.get(side.word()) } else { none };
        is_of_this.then(|| Span { low: fence(Side::Low, 0), high: fence(Side::High, u64::MAX) })
    }

    /// Calls `attempt` with the leaf that covers `key` until it returns a
    /// result.
    #[inline(always)]
    fn at_leaf<'a, R>(&'a self, key: &[u64], attempt: impl FnMut(Path<'a>) -> Option<R>) -> R {
        self.at_leaf_by(key, |_, _, addr| self.layout.prefetch(addr), attempt)
    }

    /// The same. `prefetch` is called as by [`Tree::descend_by`].
    #[inline(always)]
    fn at_leaf_by<'a, R>(
        &'a self,
        key: &[u64],
        prefetch: impl Fn(Node<'_>, usize, usize) + Copy,
        mut attempt: impl FnMut(Path<'a>) -> Option<R>,
    ) -> R {
        let mut backoff = Backoff::default();
        loop {
            let path = self.descend_by(0, |node| self.covering(node, key), prefetch);
            if let Some(result) = path.and_then(&mut attempt) {
                return result;
            }
            backoff.wait();
        }
    }

    /// The value of `key`. If there is none and a mark is given, raises the
    /// leaf's read mark to it.
    #[inline]
    pub(crate) fn get(&self, key: &[u64], mark: Option<u64>) -> Option<u64> {
        let prefetch = |parent: Node<'_>, i, addr| match parent.level() {
            1 => self.layout.prefetch_child(parent, i, addr, key),
            _ => self.layout.prefetch(addr),
        };
        self.at_leaf_by(key, prefetch, |Path { node, version, .. }| {
            let slot = self.layout.find_guess(node, key, self.layout.guess(node, key));
            let value = slot.found.then(|| self.layout.value(node, slot.pos));
            if let (None, Some(mark)) = (value, mark) {
                node.raise_mark(mark);
            }
            node.unchanged(version).then_some(value)
        })
    }

    /// The read mark of the leaf that covers `key`.
    pub(crate) fn mark(&self, key: &[u64]) -> u64 {
        self.at_leaf(key, |Path { node, version, .. }| {
            let mark = node.mark();
            node.unchanged(version).then_some(mark)
        })
    }

    /// The leaf of a finger and its version, if it covers `key` and nobody has changed it.
    #[inline(always)]
    pub(crate) fn at_finger(&self, finger: &Finger, key: &[u64]) -> Option<(Node<'_>, u64)> {
        let seen = finger.0.get();
        let leaf = self.leaf_of(seen)?;
        (self.layout.covers(leaf, key) && leaf.unchanged(seen.version)).then_some((leaf, seen.version))
    }

    /// Puts the finger on a leaf that will be unlocked with this version.
    #[inline(always)]
    pub(crate) fn put_finger(&self, finger: &Finger, leaf: Node<'_>, version: u64) {
        finger.0.set(self.seen(leaf, version));
    }

    /// Names a leaf as it is at a version.
    #[inline(always)]
    pub(crate) fn seen(&self, leaf: Node<'_>, version: u64) -> LeafSeen {
        LeafSeen { tree: self.id, leaf: leaf.addr(), version }
    }

    /// Whether a leaf is of this tree, and still as it was.
    pub(crate) fn is_as_seen(&self, seen: LeafSeen) -> bool {
        self.leaf_of(seen).is_some_and(|leaf| leaf.unchanged(seen.version))
    }

    /// Where a leaf of this tree was. What is read from it counts only if its version is still the same.
    #[inline(always)]
    fn leaf_of(&self, seen: LeafSeen) -> Option<Node<'_>> {
        // SAFETY: it was the address of a leaf of this tree, and the arena keeps its memory and
        // its size (I1).
        (seen.tree == self.id).then(|| unsafe { self.node(seen.leaf) })
    }

    /// Inserts unless the key is present or the read mark forbids it. Looks first where the
    /// finger is, and leaves it where the key is now.
    #[inline]
    pub(crate) fn insert(&self, key: &[u64], value: u64, ts: u64, finger: &Finger) -> Insert {
        if let Some((node, version)) = self.at_finger(finger, key)
            // A leaf that has no room is split from its parent.
            && let Some(outcome) = self.insert_at(node, version, key, (value, ts), finger, drop)
        {
            return outcome;
        }
        self.at_leaf(key, |Path { node, version, parent }| {
            let make_room = |leaf: Locked<'_>| self.split(parent, leaf, key);
            self.insert_at(node, version, key, (value, ts), finger, make_room)
        })
    }

    /// The same at the leaf that covered `key` at this version. `None` if it no longer had that
    /// version, or had no room: then it has been given to `make_room`.
    #[inline(always)]
    fn insert_at<'a>(
        &self,
        node: Node<'a>,
        version: u64,
        key: &[u64],
        (value, ts): (u64, u64),
        finger: &Finger,
        make_room: impl FnOnce(Locked<'a>),
    ) -> Option<Insert> {
        let Slot { pos, found } = self.layout.find(node, key);
        if found {
            let present = self.layout.value(node, pos);
            return node.unchanged(version).then_some(Insert::Exists(present));
        }
        let mark = node.mark();
        if mark > ts {
            return node.unchanged(version).then_some(Insert::Forbidden(mark));
        }
        let leaf = node.lock_if(version)?;
        // Checked again under the lock: only this check counts (I5).
        let mark = leaf.mark();
        if mark > ts {
            return Some(Insert::Forbidden(mark));
        }
        if !self.layout.insert(&leaf, pos, key, value) {
            make_room(leaf);
            return None;
        }
        leaf.note_insert(pos);
        self.put_finger(finger, node, leaf.next_version());
        Some(Insert::Inserted)
    }

    /// Removes `key` if its value is `value`, and raises the mark of its leaf.
    pub(crate) fn remove(&self, key: &[u64], value: u64, floor: impl Fn() -> u64) -> bool {
        let left = self.at_leaf(key, |Path { node, version, .. }| {
            let slot = self.layout.find(node, key);
            if !slot.found || self.layout.value(node, slot.pos) != value {
                return node.unchanged(version).then_some(None);
            }
            let leaf = node.lock_if(version)?;
            leaf.raise_mark(floor());
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
        // SAFETY: called with the root or a child word of a tree that no thread
        // uses (I2).
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
        self.arena.note_directory(self.directory.clear());
    }
}
