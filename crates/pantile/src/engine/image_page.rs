//! Pages of an index image in few bits: columns of numbers, and entries of indexes.
//!
//! Neighbours in an index begin alike, tuple ids and addresses are far from 64 bits, and
//! the key of an entry that is not unique ends with its tuple id. So each column of a
//! page holds how far its numbers are above the least of them ("frame of reference":
//! Goldstein, Ramakrishnan, Shaft, ICDE 1998, section 2).

use pantile_store::PAGE_WORDS;

/// Writes a column: the least number, the bits of each, and their distances from the
/// least, the low bits first.
pub(crate) fn pack(numbers: impl Iterator<Item = u64> + Clone, out: &mut Vec<u64>) {
    let least = numbers.clone().min().unwrap_or(0);
    let most = numbers.clone().max().unwrap_or(0);
    let bits = u64::BITS - (most - least).leading_zeros();
    out.extend([least, u64::from(bits)]);
    let (mut word, mut used) = (0, 0);
    for number in numbers {
        let above = number - least;
        word |= above << used;
        used += bits;
        if used >= u64::BITS {
            out.push(word);
            used -= u64::BITS;
            word = if used == 0 { 0 } else { above >> (bits - used) };
        }
    }
    if used > 0 {
        out.push(word);
    }
}

/// A column that has been read.
pub(crate) struct Column<'p> {
    words: &'p [u64],
    least: u64,
    bits: usize,
    mask: u64,
}

impl<'p> Column<'p> {
    /// Takes a column of this many numbers off the words; `None` if it is not there.
    pub fn take(words: &mut &'p [u64], count: usize) -> Option<Self> {
        let [least, bits, rest @ ..] = *words else { return None };
        let bits = usize::try_from(*bits).ok().filter(|bits| *bits <= 64)?;
        let len = count.checked_mul(bits)?.div_ceil(64);
        let (column, rest) = rest.split_at_checked(len)?;
        *words = rest;
        let mask = if bits == 0 { 0 } else { u64::MAX >> (64 - bits) };
        Some(Self { words: column, least: *least, bits, mask })
    }

    #[inline]
    pub fn get(&self, n: usize) -> u64 {
        if self.bits == 0 {
            return self.least;
        }
        let (word, shift) = (n * self.bits / 64, n * self.bits % 64);
        let mut above = self.words[word] >> shift;
        if shift + self.bits > 64 {
            above |= self.words[word + 1] << (64 - shift);
        }
        self.least.wrapping_add(above & self.mask)
    }
}

/// Entries for a page.
#[derive(Default)]
pub(crate) struct PageOfKeys {
    keys: Vec<u64>,
    /// Where each key ends in `keys`.
    ends: Vec<u64>,
    values: Vec<u64>,
    out: Vec<u64>,
}

/// Words of a page before its columns: the number of entries; the words of a key if all
/// have as many, or 0; and 1 if such keys end with their values.
const HEAD_WORDS: usize = 3;
/// Words that a column adds to its numbers at most.
const COLUMN_WORDS: usize = 2;

impl PageOfKeys {
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub fn has_room_for(&self, key: &[u64]) -> bool {
        let numbers = self.keys.len() + 2 * self.values.len() + key.len() + 2;
        HEAD_WORDS + numbers + COLUMN_WORDS * (key.len() + 2) <= PAGE_WORDS
    }

    pub fn push(&mut self, key: &[u64], value: u64) {
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len() as u64);
        self.values.push(value);
    }

    /// The page, which is empty afterwards.
    pub fn take(&mut self) -> &[u64] {
        let width = self.ends.first().map_or(1, |end| *end as usize);
        let is_even = (1..).zip(&self.ends).all(|(n, end)| *end == n * width as u64);
        let lasts = self.keys.iter().skip(width - 1).step_by(width);
        let ends_with_value = is_even && width > 1 && lasts.eq(&self.values);
        self.out.clear();
        self.out.push(self.values.len() as u64);
        self.out.extend([if is_even { width as u64 } else { 0 }, u64::from(ends_with_value)]);
        if is_even {
            for column in 0..width - usize::from(ends_with_value) {
                pack(self.keys.iter().skip(column).step_by(width).copied(), &mut self.out);
            }
        } else {
            pack(self.ends.iter().copied(), &mut self.out);
            pack(self.keys.iter().copied(), &mut self.out);
        }
        pack(self.values.iter().copied(), &mut self.out);
        self.keys.clear();
        self.ends.clear();
        self.values.clear();
        &self.out
    }
}

/// A page that has been read.
#[derive(Default)]
pub(crate) struct KeysOfPage {
    width: usize,
    ends: Vec<u64>,
    keys: Vec<u64>,
    pub values: Vec<u64>,
}

impl KeysOfPage {
    /// Reads a page. Returns whether the words are one; nothing counts otherwise.
    pub fn read(&mut self, words: &[u64]) -> bool {
        self.try_read(words).is_some()
    }

    fn try_read(&mut self, words: &[u64]) -> Option<()> {
        let [count, width, ends_with_value, rest @ ..] = words else { return None };
        let mut rest = rest;
        // No page has more; and memory is taken for no more, whatever the words are.
        let fits = |n: &usize| *n <= PAGE_WORDS;
        let count = usize::try_from(*count).ok().filter(fits)?;
        self.width = usize::try_from(*width).ok().filter(fits)?;
        let is_short = *ends_with_value != 0;
        self.ends.clear();
        self.keys.clear();
        if self.width > 0 {
            let total = self.width.checked_mul(count).filter(fits)?;
            self.keys.resize(total, 0);
            for column in 0..self.width - usize::from(is_short) {
                let numbers = Column::take(&mut rest, count)?;
                let places = self.keys.iter_mut().skip(column).step_by(self.width);
                (0..count).zip(places).for_each(|(n, place)| *place = numbers.get(n));
            }
        } else {
            let ends = Column::take(&mut rest, count)?;
            self.ends.extend((0..count).map(|n| ends.get(n)));
            let total = usize::try_from(self.ends.last().copied().unwrap_or(0)).ok().filter(fits)?;
            if !self.ends.is_sorted() {
                return None;
            }
            let keys = Column::take(&mut rest, total)?;
            self.keys.extend((0..total).map(|n| keys.get(n)));
        }
        let values = Column::take(&mut rest, count)?;
        self.values.clear();
        self.values.extend((0..count).map(|n| values.get(n)));
        if is_short && self.width > 0 {
            let lasts = self.keys.iter_mut().skip(self.width - 1).step_by(self.width);
            lasts.zip(&self.values).for_each(|(last, value)| *last = *value);
        }
        rest.is_empty().then_some(())
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn key(&self, n: usize) -> &[u64] {
        if self.width > 0 {
            return &self.keys[n * self.width..(n + 1) * self.width];
        }
        let start = if n == 0 { 0 } else { self.ends[n - 1] as usize };
        &self.keys[start..self.ends[n] as usize]
    }

    /// The number of keys that are not above this one.
    pub fn upto(&self, key: &[u64]) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.key(middle) <= key { from = middle + 1 } else { to = middle }
        }
        from
    }
}

#[cfg(test)]
#[path = "image_page_test.rs"]
mod tests;
