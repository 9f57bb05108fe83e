//! What a node layout provides to the tree.

use std::ops::Range;

use crate::arena::Class;
use crate::batch::Batch;
use crate::node::{Locked, Node, Side};

/// Where a key is likely to be in a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Guess {
    pub(crate) place: usize,
    /// How many entries around that place to look at.
    pub(crate) window: usize,
}

/// Where a key is in a node, or where it would be.
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

/// The new content of a node: its entries and, for a leaf, the range it covers.
pub(crate) struct Content<'a> {
    pub(crate) entries: &'a Batch,
    pub(crate) range: Range<usize>,
    pub(crate) is_leaf: bool,
    pub(crate) low: Option<&'a [u64]>,
    pub(crate) high: Option<&'a [u64]>,
}

impl<'a> Content<'a> {
    /// The new content of an inner node.
    pub(crate) fn inner(entries: &'a Batch, range: Range<usize>) -> Self {
        Self { entries, range, is_leaf: false, low: None, high: None }
    }

    /// The fence on one side.
    pub(crate) fn fence(&self, side: Side) -> Option<&'a [u64]> {
        match side {
            Side::Low => self.low,
            Side::High => self.high,
        }
    }
}

/// How nodes hold sorted entries. Leaves hold keys and values. Inner nodes hold
/// separators; the value of a separator is the child that begins at it.
///
/// The defaults are those of a layout in which the place of a key cannot be guessed.
///
/// Optimistic readers may call functions that take a [`Node`], while its words
/// change. The functions then return garbage, but they neither panic nor read
/// outside the node (I4). Keys given have at least one word.
pub(crate) trait Layout: Copy + Send + Sync + 'static {
    /// Whether every key has exactly one word.
    const ONE_WORD: bool;

    /// The size class of the tree's nodes.
    fn class(&self) -> Class;

    /// Whether a key of this many words can be stored.
    fn accepts(&self, key_words: usize) -> bool;

    /// Whether an entry of these can be stored.
    #[inline(always)]
    fn holds(&self, _key: &[u64], _value: u64) -> bool {
        true
    }

    /// Prefetches the lines of the node at `addr` that a search reads.
    fn prefetch(&self, addr: usize);

    /// How many of the keys of an inner node are not above `key`: the child that covers it.
    #[inline(always)]
    fn covering(&self, node: Node<'_>, key: &[u64]) -> usize {
        self.find(node, key).after()
    }

    /// Prefetches the line of the leaf at `addr` that says what range it covers.
    #[inline(always)]
    fn prefetch_leaf_header(&self, addr: usize) {
        self.prefetch(addr);
    }

    /// Prefetches the lines in which `key` will be looked for in the leaf at `addr`, child `i` of `parent`.
    #[inline(always)]
    fn prefetch_child(&self, _parent: Node<'_>, _i: usize, addr: usize, _key: &[u64]) {
        self.prefetch(addr);
    }

    /// Where in a leaf, whose header is there, `key` is likely to be.
    #[inline(always)]
    fn guess(&self, _leaf: Node<'_>, _key: &[u64]) -> Option<Guess> {
        None
    }

    /// The same where [`Layout::guess`] has none.
    #[inline(always)]
    fn guess_far(&self, _leaf: Node<'_>, _key: &[u64]) -> Option<Guess> {
        None
    }

    /// Prefetches the lines in which [`Layout::find_guess`] looks.
    #[inline(always)]
    fn prefetch_guess(&self, _leaf: Node<'_>, _guess: Option<Guess>) {}

    /// Finds `key` in a leaf, first where it was guessed to be.
    #[inline(always)]
    fn find_guess(&self, leaf: Node<'_>, key: &[u64], _guess: Option<Guess>) -> Slot {
        self.find(leaf, key)
    }

    /// The number of entries in the node.
    fn count(&self, node: Node<'_>) -> usize;

    /// About how many words the node's keys have, which is for making room.
    fn key_words(&self, node: Node<'_>) -> usize;

    /// Finds `key`.
    fn find(&self, node: Node<'_>, key: &[u64]) -> Slot;

    /// The value of entry `pos`.
    fn value(&self, node: Node<'_>, pos: usize) -> u64;

    /// Appends the entries at `positions` to `out`.
    fn load(&self, node: Node<'_>, positions: impl Iterator<Item = usize> + Clone, out: &mut Batch);

    /// Replaces `out` with the fence on one side. Returns false if there is
    /// none.
    fn fence(&self, node: Node<'_>, side: Side, out: &mut Vec<u64>) -> bool;

    /// Whether `key` lies below the fence on one side of a leaf. All keys lie above a low fence,
    /// and below a high fence, that is not there.
    fn is_below_fence(&self, leaf: Node<'_>, side: Side, key: &[u64]) -> bool;

    /// Whether a leaf covers `key`.
    #[inline(always)]
    fn covers(&self, leaf: Node<'_>, key: &[u64]) -> bool {
        !self.is_below_fence(leaf, Side::Low, key) && self.is_below_fence(leaf, Side::High, key)
    }

    /// Inserts an entry at `pos`. Returns false and changes nothing if the node
    /// has no room.
    fn insert(&self, node: &Locked<'_>, pos: usize, key: &[u64], value: u64) -> bool;

    /// Removes the entry at `pos`.
    fn remove(&self, node: &Locked<'_>, pos: usize);

    /// The cost of `content`. A node can hold it if the cost is within the
    /// budget.
    fn cost(&self, content: &Content<'_>) -> usize;

    /// The most cost that a node can hold.
    fn budget(&self) -> usize;

    /// Replaces the entries and fences of a node that is locked or unpublished.
    /// The content must fit.
    fn store(&self, node: Node<'_>, content: &Content<'_>);
}
