//! The tuples of a table about which an index image is not up to date.

use pantile_base::sync::atomic::{AtomicU64, Ordering};
use pantile_base::{Segments, TupleId, prefetch};

/// A set of tuples: those that have changed since the image was made, that are
/// gone, or of which the image may have entries that it should not have.
#[derive(Default)]
pub(crate) struct Changed(Segments<AtomicU64>);

impl Changed {
    /// Returns whether it was not there yet.
    pub fn insert(&self, tuple: TupleId) -> bool {
        let bit = 1 << (tuple.0 % 64);
        self.0.get_or_grow(tuple.0 / 64).fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// Asks the CPU to fetch what [`Changed::contains`] and [`Changed::insert`] look at.
    #[inline]
    pub fn prefetch(&self, tuple: TupleId) {
        if let Some(word) = self.0.get(tuple.0 / 64) {
            prefetch(word);
        }
    }

    #[inline]
    pub fn contains(&self, tuple: TupleId) -> bool {
        self.word(tuple.0 / 64) >> (tuple.0 % 64) & 1 == 1
    }

    /// 64 tuples from `64 * n` on, a bit each.
    #[inline]
    pub fn word(&self, n: u64) -> u64 {
        self.0.get(n).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Those in a range, in order.
    pub fn within(&self, tuples: std::ops::Range<u64>) -> impl Iterator<Item = TupleId> {
        let words = tuples.start / 64..tuples.end.div_ceil(64);
        let some = words.filter_map(|n| Some((n, self.0.get(n)?.load(Ordering::Relaxed))));
        let bits = some.filter(|(_, word)| *word != 0).flat_map(|(n, word)| {
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| n * 64 + bit)
        });
        bits.filter(move |tuple| tuples.contains(tuple)).map(TupleId)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_found_in_order() {
        let changed = Changed::default();
        let tuples = [0, 5, 63, 64, 1000, 100_000].map(TupleId);
        tuples.iter().rev().for_each(|tuple| assert!(changed.insert(*tuple)));
        assert!(!changed.insert(TupleId(63)));
        assert!(changed.within(0..200_000).eq(tuples));
        assert!(changed.within(5..1000).eq([5, 63, 64].map(TupleId)));
        assert!(tuples.iter().all(|tuple| changed.contains(*tuple)));
        assert!(![1, 62, 65, 999, 1 << 39].iter().any(|tuple| changed.contains(TupleId(*tuple))));
    }
}
