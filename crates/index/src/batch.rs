//! A batch of entries, outside of any node.

use std::ops::Range;

use crate::finger::LeafSeen;

/// Entries that a scan found, in scan order. The buffers are reused.
#[derive(Clone, Debug)]
pub struct Batch {
    words: Vec<u64>,
    /// Where each key ends in `words`; unused while all keys have one word.
    ends: Vec<u32>,
    values: Vec<u64>,
    one_word: bool,
    /// How many keys from the first on have as many words as that, at least.
    even: usize,
    limit: usize,
    /// The leaf that the entries are from, or that had none.
    pub(crate) leaf: Option<LeafSeen>,
}

impl Batch {
    /// An empty batch that takes whole leaves.
    pub fn new() -> Self {
        Self::with_limit(usize::MAX)
    }

    /// An empty batch that a scan fills with at most `limit` entries (at least
    /// one) at a time, so that short scans copy no more than they need.
    pub fn with_limit(limit: usize) -> Self {
        let (words, ends, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { words, ends, values, one_word: false, even: 0, limit: limit.max(1), leaf: None }
    }

    /// Sets how many entries a scan adds at a time.
    pub fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    /// How many entries a scan adds at a time.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// How many entries there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The key of entry `i`.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn key(&self, i: usize) -> &[u64] {
        &self.words[self.start(i)..self.start(i + 1)]
    }

    /// The value of entry `i`.
    ///
    /// # Panics
    /// If there is no such entry.
    #[inline]
    pub fn value(&self, i: usize) -> u64 {
        self.values[i]
    }

    /// All entries in order.
    #[inline]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u64], u64)> + ExactSizeIterator {
        (0..self.len()).map(|i| (self.key(i), self.values[i]))
    }

    /// Removes all entries. Keys to come have one word each if `one_word`, or
    /// else any number.
    #[inline]
    pub(crate) fn clear(&mut self, one_word: bool) {
        self.one_word = one_word;
        self.words.clear();
        self.ends.clear();
        self.values.clear();
        self.even = 0;
        self.leaf = None;
    }

    /// Makes room for this many more entries, whose keys take this many words.
    pub(crate) fn reserve(&mut self, entries: usize, words: usize) {
        self.words.reserve(words);
        self.values.reserve(entries);
        if !self.one_word {
            self.ends.reserve(entries);
        }
    }

    /// Appends entries with keys of one word.
    #[inline]
    pub(crate) fn extend_one_word(
        &mut self,
        keys: impl Iterator<Item = u64>,
        values: impl Iterator<Item = u64>,
    ) {
        debug_assert!(self.one_word);
        self.words.extend(keys);
        self.values.extend(values);
    }

    /// Appends an entry with a key of these words: a prefix, a word, and the rest.
    // Each part by itself, since that is a copy, and a chain of them goes word by word.
    #[inline]
    pub(crate) fn push_parts(
        &mut self,
        prefix: impl Iterator<Item = u64>,
        head: u64,
        rest: impl Iterator<Item = u64>,
        value: u64,
    ) {
        self.words.extend(prefix);
        self.words.push(head);
        self.words.extend(rest);
        self.values.push(value);
        if !self.one_word {
            self.ends.push(self.words.len() as u32);
            self.note_even();
        }
    }

    /// Appends an entry.
    pub(crate) fn push(&mut self, key: &[u64], value: u64) {
        self.words.extend_from_slice(key);
        self.values.push(value);
        if !self.one_word {
            self.ends.push(self.words.len() as u32);
            self.note_even();
        }
    }

    /// Inserts an entry at `pos`.
    pub(crate) fn insert(&mut self, pos: usize, key: &[u64], value: u64) {
        self.even = self.even.min(pos);
        let start = self.start(pos);
        self.words.splice(start..start, key.iter().copied());
        self.values.insert(pos, value);
        if !self.one_word {
            self.ends.insert(pos, start as u32);
            self.ends[pos..].iter_mut().for_each(|end| *end += key.len() as u32);
        }
    }

    /// Removes the entry at `pos`.
    pub(crate) fn remove(&mut self, pos: usize) {
        let (start, end) = (self.start(pos), self.start(pos + 1));
        self.words.drain(start..end);
        self.values.remove(pos);
        self.even = self.even.min(pos);
        if !self.one_word {
            self.ends.remove(pos);
            self.ends[pos..].iter_mut().for_each(|e| *e -= (end - start) as u32);
        }
    }

    /// The key words and the values of the entries in `range`.
    pub(crate) fn parts(&self, range: Range<usize>) -> (&[u64], &[u64]) {
        (&self.words[self.start(range.start)..self.start(range.end)], &self.values[range])
    }

    /// The total number of words of the keys in `range`.
    pub(crate) fn key_words(&self, range: &Range<usize>) -> usize {
        self.start(range.end) - self.start(range.start)
    }

    /// The number of words of each key in `range`, if there are keys and all have as many.
    pub(crate) fn key_len(&self, range: &Range<usize>) -> Option<usize> {
        let first = range.clone().next().map(|i| self.words_of(i))?;
        // Of those that are known to be even from the first key on, one tells for all.
        let known = if range.start == 0 { self.even.min(range.end) } else { range.start };
        (known..range.end).all(|i| self.words_of(i) == first).then_some(first)
    }

    /// Appended keys may go on having as many words as the first.
    fn note_even(&mut self) {
        let last = self.len() - 1;
        if self.even == last && (last == 0 || self.words_of(last) == self.words_of(0)) {
            self.even = last + 1;
        }
    }

    fn words_of(&self, i: usize) -> usize {
        self.start(i + 1) - self.start(i)
    }

    #[inline]
    fn start(&self, i: usize) -> usize {
        match (self.one_word, i) {
            (true, _) | (_, 0) => i,
            _ => self.ends[i - 1] as usize,
        }
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}
