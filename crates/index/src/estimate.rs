//! Estimates how many entries lie in a range, from the nodes on the way to its ends and a few
//! between them.

use std::ops::Bound;

use crate::layout::Layout;
use crate::node::{Backoff, Node};
use crate::tree::Tree;

/// Children that stand for all between the two that lead to the ends.
const BETWEEN: usize = 4;
/// Children that stand for all of a node.
const OF_ALL: usize = 2;

/// An end of a range: a key, and whether it lies above the entry of the key.
type End<'k> = Option<(&'k [u64], bool)>;

impl<L: Layout> Tree<L> {
    /// About how many entries lie in a range. Exact if it lies in one leaf or two
    /// that follow each other.
    pub(crate) fn estimate(&self, lower: Bound<&[u64]>, upper: Bound<&[u64]>) -> u64 {
        fn end(bound: Bound<&[u64]>, is_lower: bool) -> End<'_> {
            match bound {
                Bound::Unbounded => None,
                // Nothing comes before a key of no words.
                Bound::Included([]) | Bound::Excluded([]) if is_lower => None,
                Bound::Included(key) => Some((key, !is_lower)),
                Bound::Excluded(key) => Some((key, is_lower)),
            }
        }
        if matches!(upper, Bound::Included([]) | Bound::Excluded([])) {
            return 0;
        }
        let mut backoff = Backoff::default();
        loop {
            let root = self.root();
            if let Some(entries) = self.within(root, root.version(), end(lower, true), end(upper, false)) {
                return entries.round() as u64;
            }
            backoff.wait();
        }
    }

    /// About how many entries below a node lie between two ends. `None` if a
    /// writer interfered.
    fn within(&self, node: Node<'_>, version: u64, low: End<'_>, high: End<'_>) -> Option<f64> {
        let count = self.layout.count(node);
        if node.level() == 0 {
            let place = |(key, after)| {
                let slot = self.layout.find(node, key);
                if after { slot.after() } else { slot.pos }
            };
            let (from, to) = (low.map_or(0, place), high.map_or(count, place));
            return node.unchanged(version).then_some(to.saturating_sub(from) as f64);
        }
        let first = low.map_or(0, |(key, _)| self.covering(node, key));
        let last = high.map_or(count, |(key, _)| self.covering(node, key));
        if first >= last {
            let (child, of_child) = self.child_at(node, version, first)?;
            return self.within(child, of_child, low, high);
        }
        let (left, of_left) = self.child_at(node, version, first)?;
        let (right, of_right) = self.child_at(node, version, last)?;
        let ends = self.within(left, of_left, low, None)? + self.within(right, of_right, None, high)?;
        Some(ends + self.all_of(node, version, first + 1, last - first - 1, BETWEEN)?)
    }

    /// About how many entries `len` children of a node have, as `samples` of them
    /// tell.
    fn all_of(&self, node: Node<'_>, version: u64, first: usize, len: usize, samples: usize) -> Option<f64> {
        let samples = samples.min(len);
        let mut sum = 0.0;
        for n in 0..samples {
            let (child, of_child) =
                self.child_at(node, version, first + (2 * n + 1) * len / (2 * samples))?;
            let count = self.layout.count(child);
            sum += match child.level() {
                0 => child.unchanged(of_child).then_some(count as f64)?,
                _ => self.all_of(child, of_child, 0, count + 1, OF_ALL)?,
            };
        }
        Some(if samples == 0 { 0.0 } else { sum * len as f64 / samples as f64 })
    }

    /// A child and its version.
    fn child_at(&self, node: Node<'_>, version: u64, n: usize) -> Option<(Node<'_>, u64)> {
        let child = self.child(node, version, n, |_, _, addr| self.layout.prefetch(addr))?;
        let of_child = child.version();
        // The node was still its parent's child when its version was taken.
        node.unchanged(version).then_some((child, of_child))
    }
}
