//! Look-ups whose misses overlap.

use crate::layout::Layout;
use crate::node::Node;
use crate::tree::Tree;

/// Descents that go side by side. More would wait for the processor's fill
/// buffers instead of for the memory.
pub const SIDE_BY_SIDE: usize = 16;

/// In place of the version of a node, which never gets there: a writer
/// interfered with this descent.
const STOPPED: u64 = u64::MAX;

impl<L: Layout> Tree<L> {
    /// Looks up keys side by side: each goes one level down before the first
    /// goes the next, so that nodes are brought in together (group prefetching:
    /// Chen, Ailamaki, Gibbons, Mowry, *Improving Hash Join Performance through
    /// Prefetching*, ICDE 2004).
    pub(crate) fn get_many(&self, keys: &[&[u64]], found: &mut [Option<u64>]) {
        assert_eq!(keys.len(), found.len(), "a place for each key");
        for (keys, found) in keys.chunks(SIDE_BY_SIDE).zip(found.chunks_mut(SIDE_BY_SIDE)) {
            self.get_together(keys, found);
        }
    }

    fn get_together(&self, keys: &[&[u64]], found: &mut [Option<u64>]) {
        let root = self.root();
        let mut descents = Descents { nodes: [root; SIDE_BY_SIDE], versions: [root.version(); SIDE_BY_SIDE] };
        // All leaves are on one level, and so are all nodes at which the descents are.
        let levels = root.level();
        for _ in 1..levels {
            self.go_down(keys, &mut descents, |inner| self.layout.prefetch(inner));
        }
        if levels > 0 {
            self.go_down(keys, &mut descents, |leaf| self.layout.prefetch_leaf_header(leaf));
        }
        let Descents { nodes, versions } = descents;
        for (key, leaf) in keys.iter().zip(nodes) {
            self.layout.prefetch_near(leaf, key);
        }
        for (((key, leaf), version), found) in keys.iter().zip(nodes).zip(versions).zip(found) {
            let slot = self.layout.find_near(leaf, key);
            *found = slot.found.then(|| self.layout.value(leaf, slot.pos));
            // What was read from a leaf that has changed means nothing.
            if !leaf.unchanged(version) {
                *found = self.get(key, None);
            }
        }
    }

    /// Each descent goes one level down; `prefetch` is called with the node that it comes to.
    #[inline(always)]
    fn go_down<'t>(&'t self, keys: &[&[u64]], descents: &mut Descents<'t>, prefetch: impl Fn(usize)) {
        let Descents { nodes, versions } = descents;
        let mut children = [0; SIDE_BY_SIDE];
        for (((key, node), version), child) in keys.iter().zip(&*nodes).zip(&mut *versions).zip(&mut children)
        {
            *child = self.child_word(*node, self.covering(*node, key));
            if !node.unchanged(*version) {
                *version = STOPPED;
            }
            prefetch(*child);
        }
        for (((_, node), version), addr) in keys.iter().zip(nodes).zip(versions).zip(children) {
            if *version != STOPPED {
                // SAFETY: the version was checked after the word was read (I2).
                let child = unsafe { self.node(addr) };
                let version_of_child = child.version();
                // It was still its parent's child when its version was taken.
                *version = if node.unchanged(*version) { version_of_child } else { STOPPED };
                *node = child;
            }
        }
    }
}

/// Where descents are that go side by side.
struct Descents<'t> {
    nodes: [Node<'t>; SIDE_BY_SIDE],
    versions: [u64; SIDE_BY_SIDE],
}
