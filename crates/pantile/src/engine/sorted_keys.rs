//! Keys that recovery sorts before it builds indexes from them.

use pantile_base::TupleId;

use crate::types::key::Key;

/// Keys in order, with the tuples they belong to.
#[derive(Default)]
pub(crate) struct SortedKeys {
    words: Vec<u64>,
    /// The first word of the key (sorting seldom compares more), where the key
    /// begins with its length, and the tuple.
    entries: Vec<(u64, u64, u64)>,
}

/// Bits of an entry's second field that hold the key's length.
const LEN_BITS: u32 = 16;

impl SortedKeys {
    pub fn push(&mut self, key: &Key, tuple: TupleId) {
        let at = ((self.words.len() as u64) << LEN_BITS) | key.words().len() as u64;
        self.entries.push((key.words()[0], at, tuple.0));
        self.words.extend_from_slice(key.words());
    }

    pub fn sort(&mut self) {
        let words = &self.words;
        self.entries
            .sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key_at(words, a.1).cmp(key_at(words, b.1))));
    }

    /// The lowest key.
    pub fn first(&self) -> Option<&[u64]> {
        (!self.entries.is_empty()).then(|| self.key(0))
    }

    fn key(&self, n: usize) -> &[u64] {
        key_at(&self.words, self.entries[n].1)
    }
}

fn key_at(words: &[u64], at: u64) -> &[u64] {
    let start = (at >> LEN_BITS) as usize;
    &words[start..start + (at & ((1 << LEN_BITS) - 1)) as usize]
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
        let left = self.runs.iter_mut().filter(|(run, at)| *at < run.entries.len());
        let (run, at) = left.min_by(|a, b| a.0.key(a.1).cmp(b.0.key(b.1)))?;
        let next = (run.key(*at), run.entries[*at].2);
        *at += 1;
        Some(next)
    }
}
