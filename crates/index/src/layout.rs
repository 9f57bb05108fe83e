//! What a node layout must offer to the tree.

use std::ops::Range;

use crate::arena::Class;
use crate::batch::Batch;
use crate::node::{Locked, Node, Side};

/// Where a key is in a node, or would be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Slot {
    /// How many of the node's keys are below the key.
    pub(crate) pos: usize,
    /// Whether the key itself is at `pos`.
    pub(crate) found: bool,
}

impl Slot {
    /// How many of the node's keys are not above the key.
    #[inline(always)]
    pub(crate) fn after(self) -> usize {
        self.pos + usize::from(self.found)
    }
}

/// What a node is to hold: entries, and the range it covers if it is a leaf.
pub(crate) struct Content<'a> {
    pub(crate) entries: &'a Batch,
    pub(crate) range: Range<usize>,
    pub(crate) low: Option<&'a [u64]>,
    pub(crate) high: Option<&'a [u64]>,
}

impl<'a> Content<'a> {
    /// What an inner node is to hold.
    pub(crate) fn inner(entries: &'a Batch, range: Range<usize>) -> Self {
        Self { entries, range, low: None, high: None }
    }

    /// The fence on one side.
    pub(crate) fn fence(&self, side: Side) -> Option<&'a [u64]> {
        match side {
            Side::Low => self.low,
            Side::High => self.high,
        }
    }
}

/// How nodes hold sorted entries. Leaves hold keys and values; inner nodes hold
/// separators and, as value, the child that begins at each of them.
///
/// Functions that take a [`Node`] may be called by optimistic readers, on words
/// that change under them: they return nonsense then, but neither panic nor
/// leave the node (I4). Keys given have at least one word.
pub(crate) trait Layout: Copy + Send + Sync + 'static {
    /// Whether every key has exactly one word.
    const ONE_WORD: bool;

    /// The size class of the tree's nodes.
    fn class(&self) -> Class;

    /// Whether a key of so many words can be stored.
    fn accepts(&self, key_words: usize) -> bool;

    /// Asks for the lines of the node at `addr` that a search reads.
    fn prefetch(&self, addr: usize);

    /// How many entries the node has.
    fn count(&self, node: Node<'_>) -> usize;

    /// Finds `key`.
    fn find(&self, node: Node<'_>, key: &[u64]) -> Slot;

    /// The value of entry `pos`.
    fn value(&self, node: Node<'_>, pos: usize) -> u64;

    /// Appends the entries at `positions` to `out`.
    fn load(&self, node: Node<'_>, positions: impl Iterator<Item = usize> + Clone, out: &mut Batch);

    /// Replaces `out` by the fence on one side; false if there is none.
    fn fence(&self, node: Node<'_>, side: Side, out: &mut Vec<u64>) -> bool;

    /// Puts an entry in at `pos`; false, and nothing changed, if it has no room.
    fn insert(&self, node: &Locked<'_>, pos: usize, key: &[u64], value: u64) -> bool;

    /// Takes the entry at `pos` out.
    fn remove(&self, node: &Locked<'_>, pos: usize);

    /// What `content` costs; a node holds it if that is within the budget.
    fn cost(&self, content: &Content<'_>) -> usize;

    /// What a node can hold.
    fn budget(&self) -> usize;

    /// Replaces the entries and fences of a node that is locked or unpublished.
    /// The content fits.
    fn store(&self, node: Node<'_>, content: &Content<'_>);
}
