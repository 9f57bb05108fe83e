//! The layout for keys of exactly one word: two plain arrays.

use std::ptr;

use pantile_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::arena::Class;
use crate::batch::Batch;
use crate::layout::{Content, Guess, Layout, Slot};
use crate::node::{HEADER, HIGH, LOW, Locked, META, Node, Side, prefetch};
use crate::search::{copy_in, lower_bound, shift_down, shift_up, upper_bound};

/// Entries of a node. Unused key words hold the largest key, so that a search
/// runs over the whole array and its number of steps is a constant.
const CAPACITY: usize = 64;
const KEYS: usize = HEADER;
const VALUES: usize = KEYS + CAPACITY;
const WORDS: usize = VALUES + CAPACITY;
/// Keys around the place that has been guessed for one, among which it is looked for first: in leaves with few
/// gaps, and in others.
const NEAR: usize = 8;
const FAR: usize = 16;
const _: () = assert!(FAR == 2 * 64 / size_of::<u64>(), "its first, middle and last line are fetched");
/// One in this many keys of a leaf is looked at to see whether all are spread evenly.
const SAMPLED: usize = 4;
/// How many times the number of its entries the range of a leaf is wide at most for
/// guesses to be good.
const SPARSE: u64 = 4;
const CLASS: Class = Class::holding(WORDS);
const _: () = assert!(CLASS.words() == WORDS, "the node fills its size class");

/// Keys of one word.
#[derive(Clone, Copy)]
pub(crate) struct Narrow;

#[inline(always)]
fn keys(node: Node<'_>) -> &[AtomicU64] {
    &node.words()[KEYS..KEYS + CAPACITY]
}

#[inline(always)]
fn values(node: Node<'_>) -> &[AtomicU64] {
    &node.words()[VALUES..VALUES + CAPACITY]
}

/// Where the window around a place begins.
#[inline(always)]
fn window_at(place: usize, window: usize) -> usize {
    place.saturating_sub(window / 2).min(CAPACITY - window)
}

/// How many of the sorted keys of a leaf are below `key`, looked for first in the window around a place.
#[inline(always)]
fn near_bound<const WINDOW: usize>(keys: &[AtomicU64], place: usize, key: u64) -> usize {
    let start = window_at(place, WINDOW);
    match lower_bound(&keys[start..][..WINDOW], key) {
        0 => lower_bound(&keys[..start], key),
        within if within == WINDOW => start + WINDOW + lower_bound(&keys[start + WINDOW..], key),
        within => start + within,
    }
}

impl Narrow {
    /// The slot of a key that is above `pos` keys of a node.
    #[inline(always)]
    fn slot(self, node: Node<'_>, pos: usize, key: u64) -> Slot {
        let is_there = |word: &AtomicU64| word.load(Relaxed) == key;
        Slot { pos, found: pos < self.count(node) && keys(node).get(pos).is_some_and(is_there) }
    }

    /// How many keys there can be below `key` and below `high`, from `low` on, if these are not more than `most`.
    #[inline(always)]
    fn room(low: u64, high: u64, key: u64, most: u64) -> Option<(usize, usize)> {
        // What is left of a word behind shorter columns is zeros, and does not count.
        let unit = (low | high | key).trailing_zeros();
        let width = high.wrapping_sub(low).wrapping_shr(unit);
        let from_low = key.wrapping_sub(low).wrapping_shr(unit);
        (from_low < width && width <= most).then_some((from_low as usize, width as usize))
    }

    /// Where a key is if `count` keys are spread evenly from `low` to `high`.
    #[inline(always)]
    fn even_place(low: u64, high: u64, count: usize, key: u64) -> usize {
        let width = high.wrapping_sub(low);
        // Few enough bits for a product of half a word, see `guess`.
        let down = (u64::BITS - width.leading_zeros()).saturating_sub(u32::BITS - CAPACITY.ilog2() - 1);
        let [from_low, width] = [key.wrapping_sub(low), width].map(|wide| (wide >> down) as u32);
        (from_low.wrapping_mul(count as u32) / width.max(1)) as usize
    }

    /// Whether most keys of a leaf are where they would be if all were spread evenly.
    fn are_even(low: u64, high: u64, keys: &[u64]) -> bool {
        let sampled = || keys.iter().enumerate().step_by(SAMPLED);
        let is_near =
            |(i, key): &(usize, &u64)| Self::even_place(low, high, keys.len(), **key).abs_diff(*i) < FAR / 2;
        4 * sampled().filter(is_near).count() >= 3 * sampled().count()
    }

    /// Whether a leaf that is bounded on both sides covers a key.
    #[inline(always)]
    fn is_between_fences(leaf: Node<'_>, key: u64) -> bool {
        let low = leaf.get(LOW);
        key.wrapping_sub(low) < leaf.get(HIGH).wrapping_sub(low)
    }
}

impl Layout for Narrow {
    const ONE_WORD: bool = true;

    #[inline(always)]
    fn class(&self) -> Class {
        CLASS
    }

    #[inline(always)]
    fn accepts(&self, key_words: usize) -> bool {
        key_words == 1
    }

    #[inline(always)]
    fn prefetch(&self, addr: usize) {
        prefetch(addr, WORDS / 8);
    }

    #[inline(always)]
    fn covering(&self, node: Node<'_>, key: &[u64]) -> usize {
        upper_bound(keys(node), key[0]).min(self.count(node))
    }

    #[inline(always)]
    fn prefetch_leaf_header(&self, addr: usize) {
        prefetch(addr, HEADER / 8);
    }

    #[inline(always)]
    fn prefetch_child(&self, parent: Node<'_>, i: usize, addr: usize, key: &[u64]) {
        // Between these separators there is no room for more keys than a leaf takes, and most likely all are there.
        if let Some(before) = i.checked_sub(1)
            && i < self.count(parent)
            && let [low, high] = [before, i].map(|at| keys(parent)[at].load(Relaxed))
            && let Some((place, _)) = Self::room(low, high, key[0], CAPACITY as u64)
        {
            prefetch(addr, HEADER / 8);
            for part in [KEYS, VALUES] {
                // Some below may be missing.
                prefetch(addr.wrapping_add((part + place.saturating_sub(NEAR / 2)) * 8), 1);
                prefetch(addr.wrapping_add((part + place) * 8), 1);
            }
            return;
        }
        self.prefetch(addr);
    }

    #[inline(always)]
    fn guess(&self, leaf: Node<'_>, key: &[u64]) -> Option<Guess> {
        if !leaf.is_bounded() {
            return None;
        }
        let count = self.count(leaf);
        let (from_low, width) = Self::room(leaf.get(LOW), leaf.get(HIGH), key[0], SPARSE * count as u64)?;
        Some(match width == count {
            true => Guess { place: from_low, window: 1 },
            // Both are small: a division of halves of a word takes less time on many processors.
            false => Guess { place: (from_low as u32 * count as u32 / width as u32) as usize, window: NEAR },
        })
    }

    #[inline(always)]
    fn guess_far(&self, leaf: Node<'_>, key: &[u64]) -> Option<Guess> {
        (leaf.is_bounded() && leaf.is_even()).then(|| {
            let place = Self::even_place(leaf.get(LOW), leaf.get(HIGH), self.count(leaf), key[0]);
            Guess { place, window: FAR }
        })
    }

    #[inline(always)]
    fn prefetch_guess(&self, leaf: Node<'_>, guess: Option<Guess>) {
        let Some(Guess { place, window }) = guess else {
            return self.prefetch(leaf.words().as_ptr().addr());
        };
        let start = window_at(place % CAPACITY, window);
        for words in [keys(leaf), values(leaf)] {
            let line_of = |place: usize| ptr::from_ref(&words[place]).addr();
            prefetch(line_of(start), 1);
            if window > 1 {
                prefetch(line_of(start + window - 1), 1);
            }
            if window == FAR {
                prefetch(line_of(start + FAR / 2), 1);
            }
        }
    }

    #[inline(always)]
    fn find_guess(&self, leaf: Node<'_>, key: &[u64], guess: Option<Guess>) -> Slot {
        let Some(Guess { place, window }) = guess else {
            return self.find(leaf, key);
        };
        let place = place % CAPACITY;
        if keys(leaf)[place].load(Relaxed) == key[0] {
            return Slot { pos: place, found: true };
        }
        let pos = match window {
            FAR => near_bound::<FAR>(keys(leaf), place, key[0]),
            _ => near_bound::<NEAR>(keys(leaf), place, key[0]),
        };
        self.slot(leaf, pos, key[0])
    }

    #[inline(always)]
    fn count(&self, node: Node<'_>) -> usize {
        (node.get(META) as usize).min(CAPACITY)
    }

    fn key_words(&self, node: Node<'_>) -> usize {
        self.count(node)
    }

    #[inline(always)]
    fn find(&self, node: Node<'_>, key: &[u64]) -> Slot {
        self.slot(node, lower_bound(keys(node), key[0]), key[0])
    }

    #[inline(always)]
    fn value(&self, node: Node<'_>, pos: usize) -> u64 {
        values(node).get(pos).map_or(0, |value| value.load(Relaxed))
    }

    #[inline]
    fn load(&self, node: Node<'_>, positions: impl Iterator<Item = usize> + Clone, out: &mut Batch) {
        let (keys, values) = (keys(node), values(node));
        out.extend_one_word(
            positions.clone().map(|pos| keys[pos % CAPACITY].load(Relaxed)),
            positions.map(|pos| values[pos % CAPACITY].load(Relaxed)),
        );
    }

    fn fence(&self, node: Node<'_>, side: Side, out: &mut Vec<u64>) -> bool {
        out.clear();
        out.push(node.get(side.word()));
        node.has_fence(side)
    }

    #[inline(always)]
    fn covers(&self, leaf: Node<'_>, key: &[u64]) -> bool {
        if leaf.is_bounded() {
            return Self::is_between_fences(leaf, key[0]);
        }
        !self.is_below_fence(leaf, Side::Low, key) && self.is_below_fence(leaf, Side::High, key)
    }

    #[inline(always)]
    fn is_below_fence(&self, leaf: Node<'_>, side: Side, key: &[u64]) -> bool {
        if leaf.has_fence(side) { key[0] < leaf.get(side.word()) } else { side == Side::High }
    }

    fn insert(&self, node: &Locked<'_>, pos: usize, key: &[u64], value: u64) -> bool {
        let count = self.count(**node);
        if count == CAPACITY {
            return false;
        }
        shift_up(&keys(**node)[pos..=count], 1);
        shift_up(&values(**node)[pos..=count], 1);
        node.set(KEYS + pos, key[0]);
        node.set(VALUES + pos, value);
        node.set(META, count as u64 + 1);
        true
    }

    fn remove(&self, node: &Locked<'_>, pos: usize) {
        let count = self.count(**node);
        shift_down(&keys(**node)[pos..count], 1);
        shift_down(&values(**node)[pos..count], 1);
        node.set(KEYS + count - 1, u64::MAX);
        node.set(META, count as u64 - 1);
    }

    fn cost(&self, content: &Content<'_>) -> usize {
        content.range.len()
    }

    fn budget(&self) -> usize {
        CAPACITY
    }

    fn store(&self, node: Node<'_>, content: &Content<'_>) {
        let count = content.range.len();
        let (new_keys, new_values) = content.entries.parts(content.range.clone());
        copy_in(keys(node), new_keys);
        copy_in(values(node), new_values);
        keys(node)[count..].iter().for_each(|key| key.store(u64::MAX, Relaxed));
        node.set(META, count as u64);
        let fences = content.low.zip(content.high).filter(|_| content.is_leaf);
        node.set_even(fences.is_some_and(|(low, high)| Self::are_even(low[0], high[0], new_keys)));
        for side in [Side::Low, Side::High] {
            node.set_has_fence(side, content.fence(side).is_some());
            node.set(side.word(), content.fence(side).map_or(0, |fence| fence[0]));
        }
    }
}
