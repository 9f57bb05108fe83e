//! Searches and shifts sorted runs of atomic words.

use std::cmp::Ordering;
use std::hint::select_unpredictable;

use pantile_base::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many of the sorted `words` are below `key`. Has no unpredictable
/// branches.
#[inline(always)]
pub(crate) fn lower_bound(words: &[AtomicU64], key: u64) -> usize {
    count_while(words, |word| word < key)
}

/// How many of the sorted `words` are not above `key`.
#[inline(always)]
pub(crate) fn upper_bound(words: &[AtomicU64], key: u64) -> usize {
    count_while(words, |word| word <= key)
}

#[inline(always)]
fn count_while(words: &[AtomicU64], before: impl Fn(u64) -> bool) -> usize {
    let (mut base, mut len) = (0, words.len());
    if len == 0 {
        return 0;
    }
    while len > 1 {
        let half = len / 2;
        // SAFETY: `base + len <= words.len()` holds on entry and stays true:
        // either `base` grows by as much as `len` shrinks, or only `len`
        // shrinks. `half < len`.
        let word = unsafe { words.get_unchecked(base + half - 1) }.load(Relaxed);
        base = select_unpredictable(before(word), base + half, base);
        len -= half;
    }
    // SAFETY: as above, with `len == 1`.
    let word = unsafe { words.get_unchecked(base) }.load(Relaxed);
    base + usize::from(before(word))
}

/// Compares stored words with key words: word by word, then by length.
#[inline]
pub(crate) fn compare(stored: &[AtomicU64], key: &[u64]) -> Ordering {
    for (word, key) in stored.iter().zip(key) {
        match word.load(Relaxed).cmp(key) {
            Ordering::Equal => {}
            unequal => return unequal,
        }
    }
    stored.len().cmp(&key.len())
}

/// Words that are moved at a time: the compiler makes no wider moves of atomic words by itself.
const AT_A_TIME: usize = 8;

/// Moves all words up by some positions. The last are lost, the first keep a copy.
#[inline]
pub(crate) fn shift_up(words: &[AtomicU64], by: usize) {
    let mut rest = &words[..words.len() - by];
    while let Some((before, from)) = rest.split_last_chunk::<AT_A_TIME>() {
        let moved = from.each_ref().map(|word| word.load(Relaxed));
        copy_in(&words[before.len() + by..], &moved);
        rest = before;
    }
    for i in (0..rest.len()).rev() {
        words[i + by].store(rest[i].load(Relaxed), Relaxed);
    }
}

/// Moves all words down by some positions. The first are lost, the last keep a copy.
#[inline]
pub(crate) fn shift_down(words: &[AtomicU64], by: usize) {
    let (mut to, mut rest) = (words, &words[by..]);
    while let Some((from, behind)) = rest.split_first_chunk::<AT_A_TIME>() {
        let moved = from.each_ref().map(|word| word.load(Relaxed));
        copy_in(to, &moved);
        (to, rest) = (&to[AT_A_TIME..], behind);
    }
    for (to, from) in to.iter().zip(rest) {
        to.store(from.load(Relaxed), Relaxed);
    }
}

/// Copies `values` over the first words of `words`.
#[inline]
pub(crate) fn copy_in(words: &[AtomicU64], values: &[u64]) {
    for (word, value) in words[..values.len()].iter().zip(values) {
        word.store(*value, Relaxed);
    }
}

/// The number of leading words that two keys share.
pub(crate) fn common_prefix(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// The shortest key above `below` and not above `above`.
pub(crate) fn separator<'a>(below: &[u64], above: &'a [u64]) -> &'a [u64] {
    debug_assert!(below < above);
    &above[..common_prefix(below, above) + 1]
}
