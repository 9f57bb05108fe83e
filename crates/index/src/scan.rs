//! Ordered reads of key ranges, one leaf at a time.

use std::cmp::Ordering;
use std::ops::Bound;

use crate::batch::Batch;
use crate::layout::Layout;
use crate::node::{Backoff, Node, Side};
use crate::tree::Tree;

/// The direction of a scan.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Direction {
    /// From small keys to large keys.
    #[default]
    Forward,
    /// From large keys to small keys.
    Backward,
}

/// A position in a range of keys: what remains to be read.
///
/// A scan borrows nothing and holds no locks. It may or may not see entries
/// that are inserted or removed while it runs. It sees every other entry
/// exactly once.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    lower: Edge,
    upper: Edge,
    direction: Direction,
    finished: bool,
    fence: Vec<u64>,
}

/// One end of a range.
#[derive(Clone, Debug, Default)]
struct Edge {
    kind: EdgeKind,
    key: Vec<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum EdgeKind {
    #[default]
    Unbounded,
    Included,
    Excluded,
}

impl Edge {
    fn set(&mut self, bound: Bound<&[u64]>) {
        let (kind, key): (_, &[u64]) = match bound {
            Bound::Unbounded => (EdgeKind::Unbounded, &[]),
            Bound::Included(key) => (EdgeKind::Included, key),
            Bound::Excluded(key) => (EdgeKind::Excluded, key),
        };
        self.kind = kind;
        self.key.clear();
        self.key.extend_from_slice(key);
    }

    fn get(&self) -> Bound<&[u64]> {
        match self.kind {
            EdgeKind::Unbounded => Bound::Unbounded,
            EdgeKind::Included => Bound::Included(&self.key),
            EdgeKind::Excluded => Bound::Excluded(&self.key),
        }
    }
}

impl Scan {
    /// A scan of the keys between two bounds. A bound may be any sequence of
    /// words, for example the first words of longer keys.
    pub fn new(lower: Bound<&[u64]>, upper: Bound<&[u64]>, direction: Direction) -> Self {
        let mut scan = Self::default();
        scan.reset(lower, upper, direction);
        scan
    }

    /// Starts another scan with the buffers of this one.
    pub fn reset(&mut self, lower: Bound<&[u64]>, upper: Bound<&[u64]>, direction: Direction) {
        self.lower.set(lower);
        self.upper.set(upper);
        self.direction = direction;
        self.finished = self.is_empty_range();
    }

    /// The lower bound of what remains to be read.
    pub fn lower(&self) -> Bound<&[u64]> {
        self.lower.get()
    }

    /// The upper bound of what remains to be read.
    pub fn upper(&self) -> Bound<&[u64]> {
        self.upper.get()
    }

    /// Its direction.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Whether the whole range has been read.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    fn is_empty_range(&self) -> bool {
        if self.lower.kind == EdgeKind::Unbounded || self.upper.kind == EdgeKind::Unbounded {
            return false;
        }
        match self.lower.key.cmp(&self.upper.key) {
            Ordering::Less => false,
            Ordering::Equal => self.lower.kind == EdgeKind::Excluded || self.upper.kind == EdgeKind::Excluded,
            Ordering::Greater => true,
        }
    }

    /// Replaces bounds that no key of the tree can equal with equivalent bounds
    /// that a key can.
    pub(crate) fn normalise<L: Layout>(&mut self) {
        if self.lower.key.is_empty() {
            self.lower.kind = EdgeKind::Unbounded;
        }
        if self.upper.key.is_empty() && self.upper.kind != EdgeKind::Unbounded {
            self.finished = true;
        }
        if L::ONE_WORD && self.lower.key.len() > 1 {
            self.lower.kind = EdgeKind::Excluded;
            self.lower.key.truncate(1);
        }
        if L::ONE_WORD && self.upper.key.len() > 1 {
            self.upper.kind = EdgeKind::Included;
            self.upper.key.truncate(1);
        }
    }

    /// The child of an inner node that holds the next entries.
    #[inline]
    fn pick<L: Layout>(&self, tree: &Tree<L>, node: Node<'_>) -> usize {
        let find = |edge: &Edge| tree.layout.find(node, &edge.key);
        match (self.direction, self.lower.kind, self.upper.kind) {
            (Direction::Forward, EdgeKind::Unbounded, _) => 0,
            (Direction::Forward, _, _) => find(&self.lower).after(),
            (Direction::Backward, _, EdgeKind::Unbounded) => tree.layout.count(node),
            (Direction::Backward, _, EdgeKind::Included) => find(&self.upper).after(),
            (Direction::Backward, _, EdgeKind::Excluded) => find(&self.upper).pos,
        }
    }

    /// The first and the end position of the leaf's entries in the range.
    #[inline]
    pub(crate) fn positions<L: Layout>(&self, tree: &Tree<L>, leaf: Node<'_>) -> (usize, usize) {
        let find = |edge: &Edge| tree.layout.find(leaf, &edge.key);
        let from = match self.lower.kind {
            EdgeKind::Unbounded => 0,
            EdgeKind::Included => find(&self.lower).pos,
            EdgeKind::Excluded => find(&self.lower).after(),
        };
        let to = match self.upper.kind {
            EdgeKind::Unbounded => tree.layout.count(leaf),
            EdgeKind::Included => find(&self.upper).after(),
            EdgeKind::Excluded => find(&self.upper).pos,
        };
        (from.min(to), to)
    }

    /// Reads the next leaf's entries. Returns `None` if a writer interfered.
    #[inline]
    fn attempt<L: Layout>(&mut self, tree: &Tree<L>, mark: Option<u64>, out: &mut Batch) -> Option<Progress> {
        out.clear(L::ONE_WORD);
        let path = tree.descend(0, |node| self.pick(tree, node))?;
        if let Some(mark) = mark {
            path.node.raise_mark(mark);
        }
        let (from, to) = self.positions(tree, path.node);
        let taken = (to - from).min(out.limit());
        let side = match self.direction {
            Direction::Forward => {
                tree.layout.load(path.node, from..from + taken, out);
                Side::High
            }
            Direction::Backward => {
                tree.layout.load(path.node, (to - taken..to).rev(), out);
                Side::Low
            }
        };
        out.leaf = Some(tree.seen(path.node, path.version));
        let bounded = tree.layout.fence(path.node, side, &mut self.fence);
        path.node.unchanged(path.version).then_some(Progress { partial: taken < to - from, bounded })
    }

    /// Moves the near edge of the range past the entries just read.
    #[inline]
    fn advance(&mut self, progress: Progress, out: &Batch) {
        let (near, kind) = match self.direction {
            Direction::Forward if !progress.partial => (&mut self.lower, EdgeKind::Included),
            Direction::Forward => (&mut self.lower, EdgeKind::Excluded),
            Direction::Backward => (&mut self.upper, EdgeKind::Excluded),
        };
        if progress.partial {
            near.key.clear();
            near.key.extend_from_slice(out.key(out.len() - 1));
        } else {
            std::mem::swap(&mut near.key, &mut self.fence);
        }
        near.kind = kind;
        self.finished = (!progress.partial && !progress.bounded) || self.is_empty_range();
    }
}

/// How far a scan got in a leaf.
struct Progress {
    /// The leaf has more entries in the range.
    partial: bool,
    /// The leaf has a fence on the side where the scan leaves it.
    bounded: bool,
}

impl<L: Layout> Tree<L> {
    /// See [`Scan::next_batch`].
    pub(crate) fn scan(&self, scan: &mut Scan, mark: Option<u64>, out: &mut Batch) -> bool {
        scan.normalise::<L>();
        let mut backoff = Backoff::default();
        while !scan.finished {
            if let Some(progress) = scan.attempt(self, mark, out) {
                scan.advance(progress, out);
                return true;
            }
            backoff.wait();
        }
        out.clear(L::ONE_WORD);
        false
    }
}
