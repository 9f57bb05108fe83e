//! Look-ups whose misses overlap.

use crate::layout::Layout;
use crate::tree::Tree;

/// Descents that go side by side. More would wait for the processor's fill
/// buffers instead of for the memory.
const SIDE_BY_SIDE: usize = 16;

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
        let root_version = root.version();
        let mut nodes = [root; SIDE_BY_SIDE];
        let mut versions = [root_version; SIDE_BY_SIDE];
        let mut children = [0; SIDE_BY_SIDE];
        // All leaves are on one level, and so are all nodes at which the descents are.
        for level in (1..=root.level()).rev() {
            for (n, key) in keys.iter().enumerate() {
                children[n] = self.child_word(nodes[n], self.covering(nodes[n], key));
                if !nodes[n].unchanged(versions[n]) {
                    versions[n] = STOPPED;
                }
                match level {
                    1 => self.layout.prefetch_leaf_header(children[n]),
                    _ => self.layout.prefetch(children[n]),
                }
            }
            for n in 0..keys.len() {
                if versions[n] != STOPPED {
                    // SAFETY: the version was checked after the word was read (I2).
                    let child = unsafe { self.node(children[n]) };
                    let version = child.version();
                    // It was still its parent's child when its version was taken.
                    versions[n] = if nodes[n].unchanged(versions[n]) { version } else { STOPPED };
                    nodes[n] = child;
                }
            }
        }
        let keys = || keys.iter().copied().zip(nodes);
        keys().for_each(|(key, leaf)| self.layout.prefetch_near(leaf, key));
        for (((key, leaf), version), found) in keys().zip(versions).zip(found) {
            // What was read from a leaf that has changed means nothing.
            let slot = self.layout.find_near(leaf, key);
            *found = slot.found.then(|| self.layout.value(leaf, slot.pos));
            if !leaf.unchanged(version) {
                *found = self.get(key, None);
            }
        }
    }
}
