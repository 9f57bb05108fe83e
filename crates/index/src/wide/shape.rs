//! Where the parts of a node for keys of several words are.

use pantile_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::node::{HEADER, META, Node};

/// The shape of a node, packed into one header word.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) count: usize,
    pub(super) cap: usize,
    pub(super) prefix: usize,
    /// Where the free part of the heap begins.
    pub(super) top: usize,
    /// How many words every tail has, if all have as many.
    pub(super) even: Option<usize>,
}

/// How many bits of the word each of the first four parts has. The last has the rest.
const BITS: u32 = 13;

impl Shape {
    #[inline(always)]
    pub(super) fn of(node: Node<'_>) -> Self {
        let word = node.get(META);
        let part = |i: u32| (word >> (BITS * i)) as usize & ((1 << BITS) - 1);
        Self { count: part(0), cap: part(1), prefix: part(2), top: part(3), even: part(4).checked_sub(1) }
    }

    pub(super) fn write(self, node: Node<'_>) {
        let parts = [self.count, self.cap, self.prefix, self.top, self.even.map_or(0, |len| len + 1)];
        let word = parts.iter().rev().fold(0, |word, &part| word << BITS | part as u64);
        node.set(META, word);
    }

    #[inline(always)]
    pub(super) fn heads_at(self) -> usize {
        HEADER + self.prefix
    }

    /// The words of a record: the value and, if all tails have as many words, the tail.
    #[inline(always)]
    pub(super) fn record(self) -> usize {
        1 + self.even.unwrap_or(0)
    }

    #[inline(always)]
    pub(super) fn record_at(self, pos: usize) -> usize {
        self.heads_at() + self.cap + pos * self.record()
    }

    #[inline(always)]
    pub(super) fn places_at(self) -> usize {
        self.record_at(self.cap)
    }

    pub(super) fn heap_at(self) -> usize {
        self.places_at() + if self.even.is_some() { 0 } else { self.cap.div_ceil(2) }
    }
}

/// Words `from..from + len`, or none if the range leaves the node (I4).
#[inline(always)]
pub(super) fn part(node: Node<'_>, from: usize, len: usize) -> &[AtomicU64] {
    node.words().get(from..from + len).unwrap_or(&[])
}

#[inline(always)]
pub(super) fn word(node: Node<'_>, at: usize) -> u64 {
    node.words().get(at).map_or(0, |word| word.load(Relaxed))
}

pub(super) fn load_words(words: &[AtomicU64]) -> impl Iterator<Item = u64> {
    words.iter().map(|word| word.load(Relaxed))
}

/// The location of some words in the heap: offset and length in half a word.
#[inline(always)]
pub(super) fn pack(at: usize, len: usize) -> u64 {
    (at as u64) << 16 | len as u64
}

#[inline(always)]
pub(super) fn unpack(node: Node<'_>, place: u64) -> &[AtomicU64] {
    part(node, (place >> 16) as u16 as usize, place as u16 as usize)
}

#[inline(always)]
pub(super) fn tail(node: Node<'_>, shape: Shape, pos: usize) -> &[AtomicU64] {
    if let Some(len) = shape.even {
        return part(node, shape.record_at(pos) + 1, len);
    }
    let pair = word(node, shape.places_at() + pos / 2);
    unpack(node, if pos & 1 == 0 { pair } else { pair >> 32 })
}
