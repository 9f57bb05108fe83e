//! A finger: where the last key was entered, so that the next key beside it needs no descent.

use std::cell::Cell;

use pantile_base::sync::atomic::{AtomicU64, Ordering};

/// Where a thread has last entered a key, so that the next one that belongs there needs no
/// descent: the keys of a load, of a queue's tail or of an order's lines.
///
/// It names a leaf and the version at which it was left. As long as the leaf has that version
/// it is in its tree and covers the same keys (I3). Only the end of a tree frees nodes without a
/// new version, so the tree is named as well. A finger may be kept for any time.
#[derive(Clone, Default, Debug)]
pub struct Finger(pub(crate) Cell<LeafSeen>);

/// A leaf as a thread has left or read it.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct LeafSeen {
    /// Zero is none.
    pub tree: u64,
    pub leaf: usize,
    pub version: u64,
}

/// A number for a tree, which no other tree of this process has, of whatever arena. Never zero.
pub(crate) fn next_tree() -> u64 {
    static TREES: AtomicU64 = AtomicU64::new(0);
    TREES.fetch_add(1, Ordering::Relaxed) + 1
}
