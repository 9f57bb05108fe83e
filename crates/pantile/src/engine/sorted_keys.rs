//! Keys that recovery sorts before it builds indexes from them.

use std::cmp::Ordering;

use pantile_base::TupleId;

use crate::types::key::Key;

/// Keys in order, with the tuples they belong to.
#[derive(Default)]
pub(crate) struct SortedKeys {
    /// The words of the keys that have more than one, in the order in which they
    /// came.
    words: Vec<u64>,
    entries: Vec<Entry>,
}

struct Entry {
    /// The first word of the key. Sorting seldom compares more, and a key of one
    /// word is nowhere else.
    first: u64,
    /// Where in the words a longer key begins, and its length.
    at: u64,
    tuple: u64,
}

/// Bits of [`Entry::at`] that hold the key's length.
const LEN_BITS: u32 = 16;

impl Entry {
    fn key<'k>(&'k self, words: &'k [u64]) -> &'k [u64] {
        match (self.at & ((1 << LEN_BITS) - 1)) as usize {
            1 => std::slice::from_ref(&self.first),
            len => &words[(self.at >> LEN_BITS) as usize..][..len],
        }
    }

    /// Compares keys; `words` are those of the entry's run.
    fn cmp(&self, words: &[u64], other: &Self, other_words: &[u64]) -> Ordering {
        self.first.cmp(&other.first).then_with(|| self.key(words).cmp(other.key(other_words)))
    }
}

impl SortedKeys {
    pub fn push(&mut self, key: &Key, tuple: TupleId) {
        let words = key.words();
        let at = ((self.words.len() as u64) << LEN_BITS) | words.len() as u64;
        self.entries.push(Entry { first: words[0], at, tuple: tuple.0 });
        if words.len() > 1 {
            self.words.extend_from_slice(words);
        }
    }

    pub fn sort(&mut self) {
        let words = &self.words;
        self.entries.sort_unstable_by(|a, b| a.cmp(words, b, words));
    }

    /// The lowest key.
    pub fn first(&self) -> Option<&[u64]> {
        (!self.entries.is_empty()).then(|| self.key(0))
    }

    fn key(&self, n: usize) -> &[u64] {
        self.entries[n].key(&self.words)
    }
}

/// Merges sorted runs.
pub(crate) struct Merge<'r> {
    runs: Vec<(&'r SortedKeys, usize)>,
}

impl<'r> Merge<'r> {
    pub fn new(runs: impl Iterator<Item = &'r SortedKeys>) -> Self {
        Self { runs: runs.map(|run| (run, 0)).collect() }
    }

    /// Leaves out the keys below `low`.
    pub fn from(runs: impl Iterator<Item = &'r SortedKeys>, low: &[u64]) -> Self {
        let start = |run: &SortedKeys| {
            let (mut from, mut to) = (0, run.entries.len());
            while from < to {
                let middle = from.midpoint(to);
                if run.key(middle) < low { from = middle + 1 } else { to = middle }
            }
            from
        };
        Self { runs: runs.map(|run| (run, start(run))).collect() }
    }
}

impl<'r> Iterator for Merge<'r> {
    type Item = (&'r [u64], u64);

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.runs.iter_mut().filter_map(|(run, at)| Some((run.entries.get(*at)?, run, at)));
        let (entry, run, at) =
            left.min_by(|(a, of_a, _), (b, of_b, _)| a.cmp(&of_a.words, b, &of_b.words))?;
        *at += 1;
        Some((entry.key(&run.words), entry.tuple))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pantile_testkit::Random;

    /// Keys of one word lie elsewhere than longer ones that begin with the same word.
    #[test]
    fn runs_of_keys_of_any_length_are_merged_in_order() {
        let mut random = Random::new(1, 1);
        for _ in 0..50 {
            let mut runs: Vec<SortedKeys> = (0..3).map(|_| SortedKeys::default()).collect();
            let mut expected = Vec::new();
            for tuple in 0..random.below(200) {
                let words: Vec<u64> = (0..1 + random.below(3)).map(|_| random.below(6)).collect();
                let mut key = Key::default();
                words.iter().for_each(|word| key.push_tuple(*word));
                runs[random.index(3)].push(&key, TupleId(tuple));
                expected.push((words, tuple));
            }
            runs.iter_mut().for_each(SortedKeys::sort);
            expected.sort();
            let low = vec![random.below(6), random.below(6)];
            let of = |merge: Merge<'_>| {
                let mut all: Vec<_> = merge.map(|(key, tuple)| (key.to_vec(), tuple)).collect();
                // Of equal keys any order will do.
                all.chunk_by_mut(|a, b| a.0 == b.0).for_each(|equal| equal.sort());
                all
            };
            assert_eq!(of(Merge::new(runs.iter())), expected);
            expected.retain(|(words, _)| *words >= low);
            assert_eq!(of(Merge::from(runs.iter(), &low)), expected);
        }
    }
}
