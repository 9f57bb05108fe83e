//! The layout for keys of two words whose second word is also the value: those of most secondary
//! indexes, where the second word is the tuple.
//!
//! ```text
//! leaf:       header | first words (63) | second words (63) |                | fences' second words
//! inner node: header | first words (42) | second words (42) | children (42)
//! ```
//! Separators and fences may have one word only. They are stored with a zero behind it: no key
//! lies between the two.

use std::iter;

use pantile_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::arena::Class;
use crate::batch::Batch;
use crate::layout::{Content, Layout, Slot};
use crate::node::{HEADER, Locked, META, Node, Side, prefetch};
use crate::search::{lower_bound, shift_down, shift_up, upper_bound};

/// Entries of a leaf.
const LEAF: usize = 63;
/// Entries of an inner node, which have a child each.
const INNER: usize = 42;
/// The second words of a leaf's fences.
const FENCES: usize = HEADER + 2 * LEAF;
const WORDS: usize = FENCES + 2;
const CLASS: Class = Class::holding(WORDS);
const _: () = assert!(CLASS.words() == WORDS && HEADER + 3 * INNER <= FENCES);
/// Units that a node has to spend. An entry costs one for each of its words.
const BUDGET: usize = LEAF * OF_LEAF;
const OF_LEAF: usize = 2;
const OF_INNER: usize = 3;
const _: () = assert!(INNER * OF_INNER == BUDGET);

/// Keys of two words, of which the second is the value.
#[derive(Clone, Copy)]
pub(crate) struct Pairs;

/// A node's arrays. However a writer changes the node meanwhile, they are inside it: one look says
/// how many there are, and their length is cut to what fits then (I4).
struct Arrays<'a> {
    is_leaf: bool,
    capacity: usize,
    count: usize,
    node: Node<'a>,
}

impl<'a> Arrays<'a> {
    #[inline(always)]
    fn of(node: Node<'a>) -> Self {
        let is_leaf = node.level() == 0;
        let capacity = if is_leaf { LEAF } else { INNER };
        Self { is_leaf, capacity, count: (node.get(META) as usize).min(capacity), node }
    }

    /// The first words of all keys.
    #[inline(always)]
    fn firsts(&self) -> &'a [AtomicU64] {
        &self.node.words()[HEADER..][..self.count]
    }

    #[inline(always)]
    fn seconds(&self) -> &'a [AtomicU64] {
        &self.node.words()[HEADER + self.capacity..][..self.count]
    }

    #[inline(always)]
    fn values(&self) -> &'a [AtomicU64] {
        let before = if self.is_leaf { self.capacity } else { 2 * self.capacity };
        &self.node.words()[HEADER + before..][..self.count]
    }

    /// How many arrays there are.
    fn arrays(&self) -> usize {
        if self.is_leaf { OF_LEAF } else { OF_INNER }
    }

    /// The words `from..to` of each array. There is room for one more than there are.
    fn each(&self, from: usize, to: usize) -> impl Iterator<Item = &'a [AtomicU64]> {
        let (words, capacity) = (self.node.words(), self.capacity);
        (0..self.arrays()).map(move |n| &words[HEADER + n * capacity..][from..to])
    }
}

/// A key, or a part of one, as it is stored.
#[inline(always)]
fn stored(key: &[u64]) -> (u64, u64) {
    (key[0], key.get(1).copied().unwrap_or(0))
}

impl Layout for Pairs {
    const ONE_WORD: bool = false;

    #[inline(always)]
    fn class(&self) -> Class {
        CLASS
    }

    #[inline(always)]
    fn accepts(&self, key_words: usize) -> bool {
        key_words == 2
    }

    #[inline(always)]
    fn holds(&self, key: &[u64], value: u64) -> bool {
        key[1] == value
    }

    #[inline(always)]
    fn prefetch(&self, addr: usize) {
        prefetch(addr, WORDS / 8);
    }

    #[inline(always)]
    fn count(&self, node: Node<'_>) -> usize {
        Arrays::of(node).count
    }

    fn key_words(&self, node: Node<'_>) -> usize {
        2 * self.count(node)
    }

    #[inline(always)]
    fn find(&self, node: Node<'_>, key: &[u64]) -> Slot {
        let arrays = Arrays::of(node);
        let (firsts, (first, second)) = (arrays.firsts(), stored(key));
        let pos = lower_bound(firsts, first);
        let is_same = |pos: usize| firsts.get(pos).is_some_and(|word| word.load(Relaxed) == first);
        if !is_same(pos) {
            return Slot { pos, found: false };
        }
        let same = if is_same(pos + 1) { upper_bound(&firsts[pos..], first) } else { 1 };
        let seconds = &arrays.seconds()[pos..][..same];
        let behind = lower_bound(seconds, second);
        let is_there = seconds.get(behind).is_some_and(|word| word.load(Relaxed) == second);
        let pos = pos + behind;
        match key.len() {
            // The first word alone is below all keys that begin with it, but may be a separator.
            1 => Slot { pos, found: is_there && !arrays.is_leaf },
            2 => Slot { pos, found: is_there },
            // Longer bounds are above the key that they begin with.
            _ => Slot { pos: pos + usize::from(is_there), found: false },
        }
    }

    #[inline(always)]
    fn value(&self, node: Node<'_>, pos: usize) -> u64 {
        Arrays::of(node).values().get(pos).map_or(0, |value| value.load(Relaxed))
    }

    fn load(&self, node: Node<'_>, positions: impl Iterator<Item = usize> + Clone, out: &mut Batch) {
        let arrays = Arrays::of(node);
        let (firsts, seconds, values) = (arrays.firsts(), arrays.seconds(), arrays.values());
        for pos in positions {
            // Of a node that changes meanwhile there may be fewer.
            let (Some(first), Some(second), Some(value)) =
                (firsts.get(pos), seconds.get(pos), values.get(pos))
            else {
                return;
            };
            let second = iter::once(second.load(Relaxed));
            out.push_parts(iter::empty(), first.load(Relaxed), second, value.load(Relaxed));
        }
    }

    fn fence(&self, node: Node<'_>, side: Side, out: &mut Vec<u64>) -> bool {
        out.clear();
        out.push(node.get(side.word()));
        // As it was given, so that a scan up to this word ends here.
        match node.get(second_of_fence(side)) {
            0 => {}
            second => out.push(second),
        }
        node.has_fence(side)
    }

    #[inline(always)]
    fn is_below_fence(&self, leaf: Node<'_>, side: Side, key: &[u64]) -> bool {
        match leaf.has_fence(side) {
            true => stored(key) < (leaf.get(side.word()), leaf.get(second_of_fence(side))),
            false => side == Side::High,
        }
    }

    fn insert(&self, node: &Locked<'_>, pos: usize, key: &[u64], value: u64) -> bool {
        let arrays = Arrays::of(**node);
        let (count, capacity) = (arrays.count, arrays.capacity);
        if count == capacity {
            return false;
        }
        arrays.each(pos, count + 1).for_each(|words| shift_up(words, 1));
        let (first, second) = stored(key);
        node.set(HEADER + pos, first);
        node.set(HEADER + capacity + pos, second);
        if !arrays.is_leaf {
            node.set(HEADER + 2 * capacity + pos, value);
        }
        node.set(META, count as u64 + 1);
        true
    }

    fn remove(&self, node: &Locked<'_>, pos: usize) {
        let arrays = Arrays::of(**node);
        arrays.each(pos, arrays.count).for_each(|words| shift_down(words, 1));
        node.set(META, arrays.count as u64 - 1);
    }

    fn cost(&self, content: &Content<'_>) -> usize {
        content.range.len() * if content.is_leaf { OF_LEAF } else { OF_INNER }
    }

    fn budget(&self) -> usize {
        BUDGET
    }

    fn store(&self, node: Node<'_>, content: &Content<'_>) {
        node.set(META, content.range.len() as u64);
        let arrays = Arrays::of(node);
        debug_assert!(arrays.is_leaf == content.is_leaf && arrays.count == content.range.len());
        let values = arrays.values();
        for (i, pos) in content.range.clone().enumerate() {
            let (first, second) = stored(content.entries.key(pos));
            arrays.firsts()[i].store(first, Relaxed);
            arrays.seconds()[i].store(second, Relaxed);
            values[i].store(content.entries.value(pos), Relaxed);
        }
        if !arrays.is_leaf {
            return;
        }
        for side in [Side::Low, Side::High] {
            let fence = content.fence(side);
            let (first, second) = fence.map_or((0, 0), stored);
            node.set_has_fence(side, fence.is_some());
            node.set(side.word(), first);
            node.set(second_of_fence(side), second);
        }
    }
}

fn second_of_fence(side: Side) -> usize {
    match side {
        Side::Low => FENCES,
        Side::High => FENCES + 1,
    }
}
