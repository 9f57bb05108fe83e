//! Merges sparse nodes, so that emptied ranges cost nothing.

use crate::batch::Batch;
use crate::layout::{Content, Layout};
use crate::node::{Locked, Node, Side};
use crate::tree::{Step, Tree};

/// Attempts at a merge before it is left to the next removal.
const ATTEMPTS: usize = 8;
/// Numbers of entries at which a merge is tried, beside the powers of two from [`MANY`] on, and none: a node that
/// can have 64 is left with half of them by each split, and has no room for such a neighbour.
const FEW: [usize; 2] = [8, 16];
const MANY: usize = 64;

/// The result of an attempt to merge.
enum Merge {
    /// Done, or not needed.
    Settled,
    /// A writer interfered.
    Disturbed,
    /// The node is its parent's only child, so the parent must be merged first.
    OnlyChild,
    /// Merged; the parent has this many separators left.
    Merged(usize),
}

/// Two neighbours to merge, and the separator between them.
struct Pair<'a, 'p> {
    parent: &'p Locked<'a>,
    /// The position of the separator in the parent.
    at: usize,
    left: Locked<'a>,
    right: Locked<'a>,
}

impl<L: Layout> Tree<L> {
    /// Whether a node with `count` entries, which has just lost one, is worth an attempt at a
    /// merge: whenever it has lost half of them, however many a node of these keys has.
    pub(crate) fn is_sparse(&self, count: usize) -> bool {
        count == 0 || FEW.contains(&count) || count >= MANY && count.is_power_of_two()
    }

    /// Merges the node at `level` that covers `key` with a neighbour, if both fit
    /// into one with room to spare. Then treats its ancestors likewise.
    #[cold]
    pub(crate) fn merge(&self, key: &[u64], level: usize) {
        for _ in 0..ATTEMPTS {
            match self.try_merge(key, level) {
                Merge::Settled => return,
                Merge::Disturbed => {}
                Merge::OnlyChild => self.merge(key, level + 1),
                Merge::Merged(left) if self.is_sparse(left) => return self.merge(key, level + 1),
                Merge::Merged(_) => return,
            }
        }
    }

    fn try_merge(&self, key: &[u64], level: usize) -> Merge {
        let Some(path) = self.descend(level, |node| self.covering(node, key)) else {
            return Merge::Disturbed;
        };
        let Some(step) = path.parent else {
            return self.lower_root(path.node, path.version);
        };
        match step.node.lock_if(step.version) {
            Some(parent) => self.merge_child(&parent, step),
            None => Merge::Disturbed,
        }
    }

    /// Merges the child that `step` took with its right neighbour, or with its
    /// left one if that has too much or is not there.
    fn merge_child(&self, parent: &Locked<'_>, step: Step<'_>) -> Merge {
        let count = self.layout.count(**parent);
        if count == 0 {
            return Merge::OnlyChild;
        }
        let pair = |at| Pair {
            parent,
            at,
            left: self.locked_child(parent, at).lock(),
            right: self.locked_child(parent, at + 1).lock(),
        };
        let merged = if step.child < count { self.merge_pair(pair(step.child)) } else { Merge::Settled };
        match merged {
            Merge::Settled if step.child > 0 => self.merge_pair(pair(step.child - 1)),
            merged => merged,
        }
    }

    fn merge_pair(&self, pair: Pair<'_, '_>) -> Merge {
        let mut entries = self.entries(*pair.left);
        let leaf = pair.left.level() == 0;
        if !leaf {
            let separator = self.entries(**pair.parent).key(pair.at).to_vec();
            entries.push(&separator, pair.right.first_child());
        }
        self.layout.load(*pair.right, 0..self.layout.count(*pair.right), &mut entries);
        let (low, high) = (self.fence(*pair.left, Side::Low), self.fence(*pair.right, Side::High));
        let (low, high, range) = (low.as_deref(), high.as_deref(), 0..entries.len());
        let content = Content { entries: &entries, range, is_leaf: leaf, low, high };
        let (cost, budget) = (self.layout.cost(&content), self.layout.budget());
        let drained = self.is_drained(*pair.left) || self.is_drained(*pair.right);
        if cost <= budget / 4 * 3 || (drained && cost <= budget) {
            self.join(pair, &content)
        } else {
            if drained && !leaf {
                self.share(&pair, &entries);
            }
            Merge::Settled
        }
    }

    /// Whether a node has no entries: an empty leaf, or the parent of an only
    /// child.
    fn is_drained(&self, node: Node<'_>) -> bool {
        self.layout.count(node) == 0
    }

    /// Moves everything into the left node and frees the right one.
    fn join(&self, Pair { parent, at, left, right }: Pair<'_, '_>, content: &Content<'_>) -> Merge {
        left.raise_mark(right.mark());
        self.layout.store(*left, content);
        self.layout.remove(parent, at);
        let (count, freed) = (self.layout.count(**parent), right.addr());
        // It leaves the tree with the version that it has from here on (I8).
        right.set_tree(0);
        let is_leaf = left.level() == 0;
        drop(right);
        self.free_node(freed);
        if is_leaf && self.is_directory_unfit() {
            self.fit_directory(self.gaps(parent));
        }
        Merge::Merged(count)
    }

    /// Spreads the children of two inner nodes evenly over both.
    fn share(&self, pair: &Pair<'_, '_>, entries: &Batch) {
        let (at, len) = (entries.len() / 2, entries.len());
        let mut above = self.entries(**pair.parent);
        above.remove(pair.at);
        above.insert(pair.at, entries.key(at), pair.right.addr() as u64);
        let contents = [
            (**pair.parent, Content::inner(&above, 0..above.len())),
            (*pair.left, Content::inner(entries, 0..at)),
            (*pair.right, Content::inner(entries, at + 1..len)),
        ];
        if contents.iter().all(|(_, content)| self.layout.cost(content) <= self.layout.budget()) {
            pair.right.set_first_child(entries.value(at));
            contents.iter().for_each(|(node, content)| self.layout.store(*node, content));
        }
    }

    /// Replaces the content of a root that has one child with that child's
    /// content.
    fn lower_root(&self, root: Node<'_>, version: u64) -> Merge {
        if root.level() == 0 || self.layout.count(root) > 0 {
            return Merge::Settled;
        }
        let Some(root) = root.lock_if(version) else {
            return Merge::Disturbed;
        };
        let child = self.locked_child(&root, 0).lock();
        let entries = self.entries(*child);
        root.raise_mark(child.mark());
        root.set_level(child.level());
        // A root that is a leaf is not in the directory.
        if child.level() > 0 {
            root.set_first_child(child.first_child());
        } else {
            root.set_tree(0);
            self.arena.note_directory(self.directory.clear());
        }
        let (range, is_leaf) = (0..entries.len(), child.level() == 0);
        self.layout.store(*root, &Content { entries: &entries, range, is_leaf, low: None, high: None });
        let freed = child.addr();
        child.set_tree(0);
        drop(child);
        self.free_node(freed);
        Merge::Disturbed
    }
}
