//! Reading whole nodes, and walking over leaves.

use crate::batch::Batch;
use crate::layout::{Content, Layout};
use crate::node::{Node, Side};
use crate::tree::Tree;

impl<L: Layout> Tree<L> {
    /// An empty batch for this tree's keys.
    pub(crate) fn batch(&self) -> Batch {
        let mut batch = Batch::new();
        batch.clear(L::ONE_WORD);
        batch
    }

    /// All entries of a node.
    pub(crate) fn entries(&self, node: Node<'_>) -> Batch {
        let mut entries = self.batch();
        let count = self.layout.count(node);
        entries.reserve(count, self.layout.key_words(node));
        self.layout.load(node, 0..count, &mut entries);
        entries
    }

    /// The fence on one side of a leaf.
    pub(crate) fn fence(&self, node: Node<'_>, side: Side) -> Option<Vec<u64>> {
        let mut fence = Vec::new();
        self.layout.fence(node, side, &mut fence).then_some(fence)
    }

    /// Stores no entries and no fences in a leaf.
    pub(crate) fn store_empty(&self, node: Node<'_>) {
        let content = Content { entries: &self.batch(), range: 0..0, is_leaf: true, low: None, high: None };
        self.layout.store(node, &content);
    }

    /// The total number of entries in the leaves, each leaf counted at its own
    /// moment.
    pub(crate) fn len(&self) -> usize {
        let (mut total, mut low, mut high) = (0, Vec::new(), Vec::new());
        loop {
            // The empty key is below all others, but it has no head to search for.
            let pick = |node: Node<'_>| {
                if low.is_empty() { 0 } else { self.covering(node, &low) }
            };
            let Some(path) = self.descend(0, pick) else {
                continue;
            };
            let count = self.layout.count(path.node);
            let more = self.layout.fence(path.node, Side::High, &mut high);
            if !path.node.unchanged(path.version) {
                continue;
            }
            total += count;
            if !more {
                return total;
            }
            std::mem::swap(&mut low, &mut high);
        }
    }
}
