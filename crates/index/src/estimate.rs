//! Guessing how many entries lie in a range, from the nodes on the way to its ends.

use std::cell::Cell;
use std::ops::Bound;

use crate::layout::Layout;
use crate::node::Backoff;
use crate::tree::{Path, Tree};

/// An end of a range, as the way to it shows it.
#[derive(Clone, Copy)]
struct End {
    /// The part of all entries that lies below it.
    below: f64,
    /// The entries of the tree, if all nodes are like those on the way.
    of: f64,
}

impl<L: Layout> Tree<L> {
    /// About how many entries lie in a range. Exact if the range lies in one leaf.
    pub(crate) fn estimate(&self, lower: Bound<&[u64]>, upper: Bound<&[u64]>) -> u64 {
        let find = |bound: Bound<&[u64]>, other: f64, includes: bool| match bound {
            Bound::Unbounded => (self.end(None, false), other),
            Bound::Included(key) | Bound::Excluded(key) => {
                let end = self.end(Some(key), includes == matches!(bound, Bound::Included(_)));
                (end, end.below)
            }
        };
        // Above an excluded lower bound, and above an included upper bound.
        let (low, from) = find(lower, 0.0, false);
        let (high, to) = find(upper, 1.0, true);
        let of = match (lower, upper) {
            (Bound::Unbounded, _) => high.of,
            (_, Bound::Unbounded) => low.of,
            _ => (low.of + high.of) / 2.0,
        };
        ((to - from) * of).round().max(0.0) as u64
    }

    /// The way to a key, or through the middle. `after` is above the key.
    fn end(&self, key: Option<&[u64]>, after: bool) -> End {
        let mut backoff = Backoff::default();
        loop {
            let below = Cell::new(0.0);
            let of = Cell::new(1.0);
            let step = |at: usize, among: usize| {
                below.set(below.get() + at as f64 / (of.get() * among.max(1) as f64));
                of.set(of.get() * among as f64);
            };
            let path = self.descend(0, |node| {
                let children = self.layout.count(node) + 1;
                let at = key.map_or(children / 2, |key| self.covering(node, key));
                step(at, children);
                at
            });
            if let Some(Path { node, version, .. }) = path {
                let count = self.layout.count(node);
                let slot = key.map(|key| self.layout.find(node, key));
                let at = slot.map_or(count / 2, |slot| if after { slot.after() } else { slot.pos });
                step(at, count);
                if node.unchanged(version) {
                    return End { below: below.get(), of: of.get() };
                }
            }
            backoff.wait();
        }
    }
}
