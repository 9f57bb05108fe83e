//! Looking up many keys at once, so that their cache misses overlap.

use std::ops::Bound;

use crate::batch::Batch;
use crate::finger::Finger;
use crate::layout::{Guess, Layout};
use crate::node::{Node, Side};
use crate::scan::Scan;
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
        let mut leaves = [self.root(); SIDE_BY_SIDE];
        for (key, leaf) in keys.iter().zip(&mut leaves) {
            if let Some(addr) = self.directory.find(key[0]) {
                self.layout.prefetch_leaf_header(addr);
                // SAFETY: it was the address of a leaf of this tree, and the arena keeps its memory
                // and its size (I1).
                *leaf = unsafe { self.node(addr) };
            }
        }
        let (mut versions, mut guesses) = ([STOPPED; SIDE_BY_SIDE], [None; SIDE_BY_SIDE]);
        let (mut others, mut rest) = ([0; SIDE_BY_SIDE], 0);
        for (i, (key, leaf)) in keys.iter().zip(leaves).enumerate() {
            if let Some(version) = self.version_of(leaf, key) {
                versions[i] = version;
                guesses[i] = self.guess(leaf, key);
                self.layout.prefetch_guess(leaf, guesses[i]);
            } else {
                others[rest] = i;
                rest += 1;
            }
        }
        if rest > 0 {
            self.descend_together(keys, &others[..rest], &mut leaves, &mut versions);
            for i in &others[..rest] {
                guesses[*i] = self.guess(leaves[*i], keys[*i]);
                self.layout.prefetch_guess(leaves[*i], guesses[*i]);
            }
        }
        for (i, (key, found)) in keys.iter().zip(found).enumerate() {
            let leaf = leaves[i];
            let slot = self.layout.find_guess(leaf, key, guesses[i]);
            *found = slot.found.then(|| self.layout.value(leaf, slot.pos));
            // What was read from a leaf that has changed means nothing.
            if !leaf.unchanged(versions[i]) {
                *found = self.get(key, None);
            }
        }
    }

    #[inline(always)]
    fn guess(&self, leaf: Node<'_>, key: &[u64]) -> Option<Guess> {
        self.layout.guess(leaf, key).or_else(|| self.layout.guess_far(leaf, key))
    }

    /// Puts a finger where each key belongs, found side by side, and brings in the leaves there. A finger
    /// stays as it was if a writer gets in the way.
    pub(crate) fn put_fingers(&self, keys: &[&[u64]], fingers: &[Finger]) {
        assert_eq!(keys.len(), fingers.len(), "a finger for each key");
        let others: [usize; SIDE_BY_SIDE] = std::array::from_fn(|i| i);
        for (keys, fingers) in keys.chunks(SIDE_BY_SIDE).zip(fingers.chunks(SIDE_BY_SIDE)) {
            let (mut leaves, mut versions) = ([self.root(); SIDE_BY_SIDE], [STOPPED; SIDE_BY_SIDE]);
            self.descend_together(keys, &others[..keys.len()], &mut leaves, &mut versions);
            for ((finger, leaf), version) in fingers.iter().zip(leaves).zip(versions) {
                if version != STOPPED {
                    self.layout.prefetch(leaf.words().as_ptr().addr());
                    self.put_finger(finger, leaf, version);
                }
            }
        }
    }

    /// Appends to `found` the values of the first entries of ranges, found side by side: at most
    /// `most` of a range. None of a leaf that changes meanwhile, nor of a range without a lower bound.
    pub(crate) fn first_values(&self, ranges: &mut [Scan], most: usize, found: &mut Vec<u64>) {
        for ranges in ranges.chunks_mut(SIDE_BY_SIDE) {
            ranges.iter_mut().for_each(Scan::normalise::<L>);
            let ranges = &*ranges;
            let (mut keys, mut begun) = ([&[][..]; SIDE_BY_SIDE], [0; SIDE_BY_SIDE]);
            let mut count = 0;
            for (i, range) in ranges.iter().enumerate() {
                if let Bound::Included(lower) | Bound::Excluded(lower) = range.lower()
                    && !lower.is_empty()
                    && !range.is_finished()
                {
                    keys[i] = lower;
                    begun[count] = i;
                    count += 1;
                }
            }
            if count == 0 {
                continue;
            }
            let (mut leaves, mut versions) = ([self.root(); SIDE_BY_SIDE], [STOPPED; SIDE_BY_SIDE]);
            self.descend_together(&keys, &begun[..count], &mut leaves, &mut versions);
            for &i in &begun[..count] {
                self.first_of(leaves[i], versions[i], &ranges[i], most, found);
            }
        }
    }

    /// The values of a range that begins in this leaf.
    fn first_of(&self, leaf: Node<'_>, version: u64, range: &Scan, most: usize, found: &mut Vec<u64>) {
        let before = found.len();
        let (from, to) = range.positions(self, leaf);
        let goes_on = to == self.layout.count(leaf) && to - from < most;
        let to = to.min(from.saturating_add(most));
        found.extend((from..to).map(|pos| self.layout.value(leaf, pos)));
        let fence = goes_on.then(|| self.fence(leaf, Side::High)).flatten();
        if !leaf.unchanged(version) {
            return found.truncate(before);
        }
        let Some(fence) = fence else { return };
        let mut rest = Scan::new(Bound::Included(&fence), range.upper(), range.direction());
        let (mut batch, mut left) = (Batch::with_limit(most), most - (to - from));
        while left > 0 && self.scan(&mut rest, None, &mut batch) {
            let next = batch.len().min(left);
            found.extend((0..next).map(|pos| batch.value(pos)));
            left -= next;
        }
    }

    /// Goes down side by side for the keys whose leaves the directory did not know.
    #[inline(never)]
    fn descend_together<'t>(
        &'t self,
        keys: &[&[u64]],
        others: &[usize],
        leaves: &mut [Node<'t>; SIDE_BY_SIDE],
        versions: &mut [u64; SIDE_BY_SIDE],
    ) {
        let (root, mut wanted) = (self.root(), [keys[others[0]]; SIDE_BY_SIDE]);
        wanted.iter_mut().zip(others).for_each(|(key, i)| *key = keys[*i]);
        let keys = &wanted[..others.len()];
        let mut descents = Descents { nodes: [root; SIDE_BY_SIDE], versions: [root.version(); SIDE_BY_SIDE] };
        // All leaves are on one level, and so are all nodes at which the descents are.
        let levels = root.level();
        for _ in 1..levels {
            self.go_down(keys, &mut descents, |inner| self.layout.prefetch(inner));
        }
        if levels > 0 {
            self.go_down(keys, &mut descents, |leaf| self.layout.prefetch_leaf_header(leaf));
        }
        for (((key, leaf), version), i) in keys.iter().zip(descents.nodes).zip(descents.versions).zip(others)
        {
            if version != STOPPED && self.directory.is_there() {
                self.note(leaf, key[0]);
            }
            (leaves[*i], versions[*i]) = (leaf, version);
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
