//! Splits full nodes.

use crate::batch::Batch;
use crate::directory::Span;
use crate::layout::{Content, Layout};
use crate::node::{Locked, Node, Side};
use crate::search::{common_prefix, separator};
use crate::tree::{Step, Tree};
use std::ops::Range;

/// After this many inserts, each right behind the one before, a node counts as
/// being filled in key order.
const RUN: u64 = 3;

/// Where a node is cut in two.
struct Cut {
    /// Entries before this one stay on the left. In an inner node, this entry
    /// itself moves up as the separator.
    at: usize,
    /// The first key that belongs to the right half.
    separator: Vec<u64>,
}

/// The entries and the range of a node about to be split.
struct Halves {
    entries: Batch,
    low: Option<Vec<u64>>,
    high: Option<Vec<u64>>,
    leaf: bool,
}

impl Halves {
    fn left<'a>(&'a self, cut: &'a Cut) -> Content<'a> {
        let high = self.leaf.then_some(cut.separator.as_slice());
        Content {
            entries: &self.entries,
            range: 0..cut.at,
            is_leaf: self.leaf,
            low: self.low.as_deref(),
            high,
        }
    }

    fn right<'a>(&'a self, cut: &'a Cut) -> Content<'a> {
        let low = self.leaf.then_some(cut.separator.as_slice());
        let range = cut.at + usize::from(!self.leaf)..self.entries.len();
        Content { entries: &self.entries, range, is_leaf: self.leaf, low, high: self.high.as_deref() }
    }
}

impl<L: Layout> Tree<L> {
    /// Makes room for `key` in a full, locked node, or in its parent. Either
    /// way the caller starts again from the root.
    #[cold]
    pub(crate) fn split(&self, parent: Option<Step<'_>>, node: Locked<'_>, key: &[u64]) {
        let Some(step) = parent else {
            return self.split_root(node, key);
        };
        let Some(parent) = step.node.lock_if(step.version) else {
            return;
        };
        if !self.split_child(&parent, step.child, &node, key) {
            let version = parent.next_version();
            drop((node, parent));
            self.split_inner(key, step.node, version);
        }
    }

    /// Makes room in an inner node that covers `key`, unless it has been changed since it had this
    /// version: then there may be room. How full it is would not tell that it has none. A separator
    /// without the words that all others begin with can double what they take.
    fn split_inner(&self, key: &[u64], full: Node<'_>, version: u64) {
        let Some(path) = self.descend(full.level(), |node| self.covering(node, key)) else {
            return;
        };
        if path.node.addr() != full.addr() || path.version != version {
            return;
        }
        if let Some(node) = path.node.lock_if(version) {
            self.split(path.parent, node, key);
        }
    }

    /// Splits `node`, child `i` of `parent`. Returns false if the parent has no
    /// room.
    fn split_child(&self, parent: &Locked<'_>, i: usize, node: &Locked<'_>, key: &[u64]) -> bool {
        let halves = self.halves(**node);
        let cut = self.cut(**node, &halves, key);
        let right = self.new_node(node.level(), node.mark());
        if !self.layout.insert(parent, i, &cut.separator, right.addr() as u64) {
            self.free_node(right.addr());
            return false;
        }
        parent.note_insert(i);
        self.store_halves(&halves, &cut, **node, right);
        if halves.leaf {
            self.enter_halves(parent, &halves, &cut, **node, right);
        }
        true
    }

    /// Splits the root by moving its content into two new children.
    fn split_root(&self, root: Locked<'_>, key: &[u64]) {
        let halves = self.halves(*root);
        let cut = self.cut(*root, &halves, key);
        let [left, right] = [0; 2].map(|_| self.new_node(root.level(), root.mark()));
        if !halves.leaf {
            left.set_first_child(root.first_child());
        }
        self.store_halves(&halves, &cut, left, right);
        let mut top = self.batch();
        top.push(&cut.separator, right.addr() as u64);
        root.set_level(root.level() + 1);
        root.set_first_child(left.addr() as u64);
        self.layout.store(*root, &Content::inner(&top, 0..1));
    }

    fn store_halves(&self, halves: &Halves, cut: &Cut, left: Node<'_>, right: Node<'_>) {
        if !halves.leaf {
            right.set_first_child(halves.entries.value(cut.at));
        }
        self.layout.store(right, &halves.right(cut));
        self.layout.store(left, &halves.left(cut));
        if halves.leaf {
            [left, right].into_iter().for_each(|leaf| leaf.set_tree(self.id));
        }
    }

    /// Tells the directory where the halves of a leaf are.
    fn enter_halves(&self, parent: &Locked<'_>, halves: &Halves, cut: &Cut, left: Node<'_>, right: Node<'_>) {
        if self.is_directory_unfit() {
            self.fit_directory(self.gaps(parent));
        }
        let (first, at) = (|fence: &Vec<u64>| fence[0], cut.separator[0]);
        let low = halves.low.as_ref().map_or(0, first);
        let high = halves.high.as_ref().map_or(u64::MAX, first);
        let halves = [(left.addr(), Span { low, high: at }), (right.addr(), Span { low: at, high })];
        self.directory.split(halves, at);
    }

    fn halves(&self, node: Node<'_>) -> Halves {
        let [low, high] = [Side::Low, Side::High].map(|side| self.fence(node, side));
        Halves { entries: self.entries(node), low, high, leaf: node.level() == 0 }
    }

    /// Where to cut: at the new key if keys arrive in order, so that the left
    /// half stays full; otherwise in the middle.
    fn cut(&self, node: Node<'_>, halves: &Halves, key: &[u64]) -> Cut {
        let pos = self.layout.find(node, key).after();
        let ordered = pos == 0 || pos == halves.entries.len() || node.insert_run() >= RUN;
        let wanted = if ordered { pos } else { middle(&halves.entries) };
        // Long fences may need slightly more room than one entry frees.
        let near = [0, -1, 1, -2, 2].into_iter().filter_map(|by| wanted.checked_add_signed(by));
        let inside = |&at: &usize| at == pos || (1..halves.entries.len()).contains(&at);
        let mut cuts = near.filter(inside).map(|at| cut_at(halves, at, pos, key));
        let cut = cuts.find(|cut| self.fits(halves, cut));
        cut.unwrap_or_else(|| {
            let cut = cut_at(halves, middle(&halves.entries), pos, key);
            // While the tree is whole.
            assert!(self.fits(halves, &cut), "half of the entries are more than a node takes");
            cut
        })
    }

    fn fits(&self, halves: &Halves, cut: &Cut) -> bool {
        let cost = self.layout.cost(&halves.left(cut)).max(self.layout.cost(&halves.right(cut)));
        cost <= self.layout.budget()
    }
}

/// Cuts before entry `at`. `pos` is the position of the new `key`.
fn cut_at(halves: &Halves, at: usize, pos: usize, key: &[u64]) -> Cut {
    let entries = &halves.entries;
    if !halves.leaf {
        let at = at.min(entries.len() - 1);
        return Cut { at, separator: entries.key(at).to_vec() };
    }
    let separator = match (at == pos, at == entries.len()) {
        (true, true) => separator(entries.key(at - 1), key),
        (true, false) => separator(key, entries.key(at)),
        _ => separator(entries.key(at - 1), entries.key(at)),
    };
    Cut { at, separator: separator.to_vec() }
}

/// The position that has half of the entries before it, by the words that a node takes for them. It has those once
/// with which all keys begin.
fn middle(entries: &Batch) -> usize {
    let len = entries.len();
    let first = entries.key(0);
    let shared = common_prefix(first, entries.key(len - 1)).min(first.len() - 1);
    let size = |range: Range<usize>| entries.key_words(&range) + 3 * range.len() - shared * range.len();
    let half = size(0..len) / 2;
    let mut at = len / 2;
    while at > 1 && size(0..at) > half {
        at -= 1;
    }
    while at + 1 < len && size(0..at) < half {
        at += 1;
    }
    at
}
