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
}

impl Shape {
    #[inline(always)]
    pub(super) fn of(node: Node<'_>) -> Self {
        let word = node.get(META);
        let part = |i: u32| (word >> (16 * i)) as u16 as usize;
        Self { count: part(0), cap: part(1), prefix: part(2), top: part(3) }
    }

    pub(super) fn write(self, node: Node<'_>) {
        let parts = [self.count, self.cap, self.prefix, self.top];
        let word = parts.iter().rev().fold(0, |word, &part| word << 16 | part as u64);
        node.set(META, word);
    }

    #[inline(always)]
    pub(super) fn heads_at(self) -> usize {
        HEADER + self.prefix
    }

    #[inline(always)]
    pub(super) fn values_at(self) -> usize {
        self.heads_at() + self.cap
    }

    #[inline(always)]
    pub(super) fn tails_at(self) -> usize {
        self.values_at() + self.cap
    }

    pub(super) fn heap_at(self) -> usize {
        self.tails_at() + self.cap.div_ceil(2)
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
    let pair = word(node, shape.tails_at() + pos / 2);
    unpack(node, if pos & 1 == 0 { pair } else { pair >> 32 })
}
